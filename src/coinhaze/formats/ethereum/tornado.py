"""Tornado Cash events as its web page keeps them: deposits and withdrawals of one pool a file.

Which pool it is only the file's name tells: `deposits_CHAIN_TOKEN_AMOUNT.json`, packed by zlib or
gzip; older files leave out the chain's number. The same money on several chains is several tokens:
ether of chain 10 is `eth@10`.

Who deposited is not given: each deposit is money of its own, `deposit:TOKEN_AMOUNT:LEAF`, that
goes into the account `pool:TOKEN_AMOUNT`. A withdrawal pays its recipient the amount less the fee,
and the fee goes to `relayers:TOKEN_AMOUNT`, since no event names the relayer. Inside a block
deposits come first: no withdrawal can come before its deposit. Where a list of deposits is cut
short the pool pays out more than it took in, and its opening balance stands for those missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import msgspec

from coinhaze.errors import LedgerError
from coinhaze.formats.json.records import RecordFormat, Records
from coinhaze.formats.tabular.coin_rows import HIGHEST, LATEST
from coinhaze.ledger.accounts import DEPOSIT, POOL, RELAYERS
from coinhaze.ledger.batches import Batch, Rows, gather
from coinhaze.ledger.checks import exact_amount, whole_number

# Digits after the point of each money, as its contract counts.
DIGITS = {
    "eth": 18, "dai": 18, "cdai": 8, "usdc": 6, "usdt": 6, "wbtc": 8, "bnb": 18, "matic": 18,
    "xdai": 18, "avax": 18,
}  # fmt: skip
# Chains whose own money needs no number; that of all others is Ethereum's.
HOME = {"bnb": 56, "matic": 137, "xdai": 100, "avax": 43114}
_AGAIN = "the file is damaged or was changed: download the events again"
_RENAMED = "give the file the name that it was published under"
_PUBLISHED = (
    "the file is named as one of {0}: give it as it was published, unchanged; if these are {1}, "
    "name it {1}_..."
)
MAX_LEAVES = 2**20  # of a pool's tree, which is 20 levels high
EVENTS = 30_000  # in a batch

_NAME = re.compile(
    r"(deposits|withdrawals)_(?:([0-9]{1,9})_)?([a-z]+)_([0-9]+(?:\.[0-9]+)?)\.json.*"
)
_HASH = re.compile("0x[0-9a-f]{64}")
_ADDRESS = re.compile("0x[0-9a-f]{40}")
# Pools of one money pay in steps of five or ten: twice the amount has another number of digits.
_SIZES, _MOVES = 64, 4


class _Deposit(msgspec.Struct):
    commitment: str
    leafIndex: int
    blockNumber: int
    transactionHash: str
    timestamp: int | str | None = None


class _Withdrawal(msgspec.Struct):
    nullifierHash: str
    to: str
    fee: str
    blockNumber: int
    transactionHash: str


class _Pool(NamedTuple):
    token: str
    name: str  # token and amount as people say them
    amount: int  # in the smallest unit


_deposits: RecordFormat[_Deposit] = RecordFormat(
    "deposit of Tornado Cash",
    msgspec.json.Decoder(_Deposit | list[_Deposit]),
    hint=_PUBLISHED.format("deposits", "withdrawals"),
)
_withdrawals: RecordFormat[_Withdrawal] = RecordFormat(
    "withdrawal of Tornado Cash",
    msgspec.json.Decoder(_Withdrawal | list[_Withdrawal]),
    hint=_PUBLISHED.format("withdrawals", "deposits"),
)


def recognises(head: bytes) -> bool:
    """Tell whether a file begins with a deposit or a withdrawal."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:600]
    if not start.startswith((b"[", b"{")) or b'"transactionHash"' not in start:
        return False
    return b'"leafIndex"' in start or b'"nullifierHash"' in start


def batches(path: Path) -> Iterator[Batch]:
    """Read the deposits or the withdrawals of one pool."""
    named = _NAME.fullmatch(path.name)
    if named is None:
        fix = "such as deposits_1_eth_0.1.json: kind, number of the chain, currency, amount"
        raise LedgerError(str(path), "the name of the file must say which pool it is of", fix=fix)
    pool = _pool(path, chain=named[2], token=named[3], amount=named[4])
    row = 0
    if named[1] == "deposits":
        for found in _deposits.records(path, lambda _: 1, EVENTS):
            yield _deposit_batch(found, pool)
    else:
        last = _last_row(path)
        for paid in _withdrawals.records(path, lambda _: 1, EVENTS):
            rows = range(row, row + len(paid.records))
            yield _withdrawal_batch(paid, pool, rows if last is None else [last - r for r in rows])
            row += len(paid.records)


def _last_row(path: Path) -> int | None:
    """Count the withdrawals of a file that runs newest first, None if it does not."""
    count, before, falls, rises = 0, None, False, False
    for paid in _withdrawals.records(path, lambda _: 1, EVENTS):
        for event in paid.records:
            falls |= before is not None and event.blockNumber < before
            rises |= before is not None and event.blockNumber > before
            before = event.blockNumber
        count += len(paid.records)
    return count - 1 if falls and not rises else None


def _pool(path: Path, *, chain: str | None, token: str, amount: str) -> _Pool:
    if token not in DIGITS:
        fix = (
            f"known are {', '.join(DIGITS)}; if the file was renamed, give it the name that it was "
            "published under, else this pool cannot be read"
        )
        what = "by its name a pool of a currency whose smallest unit is not known"
        raise LedgerError(str(path), what, value=token, fix=fix)
    units = Decimal(amount).scaleb(DIGITS[token])
    if units != int(units) or not 0 < units < 2**128:
        what = f"an amount with more than {DIGITS[token]} digits after the point, or none at all"
        raise LedgerError(str(path), what, value=amount)
    home = HOME.get(token, 1)
    abroad = "" if chain is None or int(chain) == home else f"@{int(chain)}"
    return _Pool(token + abroad, f"{token}_{amount}{abroad}", int(units))


def _shown(amount: int, pool: _Pool) -> str:
    """Write an amount as people do, in whole coins."""
    token = pool.token.partition("@")[0]
    return f"{Decimal(amount).scaleb(-DIGITS[token]).normalize():f} {token.upper()}"


def _deposit_batch(found: Records[_Deposit], pool: _Pool) -> Batch:
    rows = Rows("transfers")
    for number, event in enumerate(found.records):
        where = found.place(number)
        leaf = whole_number(
            event.leafIndex, where, field="leafIndex", maximum=MAX_LEAVES - 1, fix=_AGAIN
        )
        _hash(event.commitment, where, field="commitment")
        rows.add(
            **_moment(event, pool, where, row=leaf, move=0),
            sender=f"{DEPOSIT}{pool.name}:{leaf}",
            recipient=POOL + pool.name,
            amount=str(pool.amount),
            kind="token",
            time=_time(event.timestamp, where),
        )
    return Batch(gather([rows]), lambda _, row: found.place(row), found.read)


def _withdrawal_batch(found: Records[_Withdrawal], pool: _Pool, numbers: Sequence[int]) -> Batch:
    rows = Rows("transfers")
    events = []
    for number, event in enumerate(found.records):
        where = found.place(number)
        _hash(event.nullifierHash, where, field="nullifierHash")
        fee = exact_amount(event.fee, where, field="fee")
        if fee > pool.amount:
            size = _shown(pool.amount, pool)
            what = f"a fee of {_shown(fee, pool)} in a pool of {size}, as the file is named"
            raise LedgerError(where, what, fix=_RENAMED)
        to = event.to.lower()
        if not _ADDRESS.fullmatch(to):
            raise LedgerError(where, "recipient is no address", value=event.to, fix=_AGAIN)
        parts = ((1, to, pool.amount - fee), (2, RELAYERS + pool.name, fee))
        for move, recipient, amount in parts:
            if amount:
                moment = _moment(event, pool, where, row=numbers[number], move=move)
                rows.add(
                    **moment,
                    sender=POOL + pool.name,
                    recipient=recipient,
                    amount=str(amount),
                    kind="fee" if move == 2 else "token",
                )
                events.append(number)
    return Batch(gather([rows]), lambda _, row: found.place(events[row]), found.read)


def _moment(
    event: _Deposit | _Withdrawal, pool: _Pool, where: str, *, row: int, move: int
) -> dict[str, object]:
    """Say when a transfer was; withdrawals come after all deposits of their block."""
    step = (row * _SIZES + len(str(2 * pool.amount))) * _MOVES + move
    return {
        "height": whole_number(
            event.blockNumber, where, field="blockNumber", maximum=HIGHEST, fix=_AGAIN
        ),
        "position": row if move == 0 else MAX_LEAVES + row,
        "step": step,
        "txid": _hash(event.transactionHash, where, field="transactionHash"),
        "token": pool.token,
    }


def _hash(text: str, where: str, *, field: str) -> str:
    if not _HASH.fullmatch(text.lower()):
        raise LedgerError(where, f"{field} is not 0x and 64 hex digits", value=text, fix=_AGAIN)
    return text.lower()


def _time(stated: int | str | None, where: str) -> int | None:
    if stated is None:
        return None
    if isinstance(stated, str) and not re.fullmatch("[0-9]{1,12}", stated, re.ASCII):
        raise LedgerError(where, "timestamp is not a whole number of seconds", value=stated)
    return whole_number(int(stated), where, field="timestamp", maximum=LATEST)
