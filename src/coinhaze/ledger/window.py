"""Windows: which part of a chain is meant, the last part of a ledger, and whether it moves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Bools, Ints
from coinhaze.errors import InputError, UsageError, first_few
from coinhaze.ledger.accounts import AccountLedger
from coinhaze.ledger.coins import CoinLedger


@dataclass(frozen=True)
class LedgerWindow:
    """A part of a chain, from one moment to another, both included: heights, or seconds."""

    by: str = "height"
    first: int | None = None
    last: int | None = None

    @classmethod
    def of(cls, first: str | int | None, last: str | int | None) -> LedgerWindow:
        """Read `--from` and `--to`: heights, or dates and times such as 2021-04-01.

        >>> LedgerWindow.of("2021-04-01", None).first
        1617235200
        """
        ends = [None if end is None else _moment(str(end)) for end in (first, last)]
        kinds = {end[0] for end in ends if end is not None}
        if len(kinds) > 1:
            raise UsageError("from and to are both heights or both times")
        low, high = (None if end is None else end[1] for end in ends)
        if low is not None and high is not None and low > high:
            raise UsageError(f"the window ends before it begins: {first} to {last}")
        return cls(kinds.pop() if kinds else "height", low, high)

    def inside(self, table: str = "") -> str:
        """Give the SQL condition for rows of the window."""
        column = f"{table}.{self.by}" if table else self.by
        parts = [] if self.first is None else [f"{column} >= {self.first}"]
        parts += [] if self.last is None else [f"{column} <= {self.last}"]
        return " AND ".join(parts) or "true"

    def before(self) -> str:
        """Give the SQL condition for rows that lie before the window."""
        return "false" if self.first is None else f"{self.by} < {self.first}"


ALL = LedgerWindow()


def refuse_cut(window: LedgerWindow, token: str | None, unknown: str) -> None:
    """Refuse to cut a window or a token out of what is read whole, where every value is known."""
    if unknown != "error":
        raise UsageError("`unknown` is for stores and raw blocks: here every coin has its value")
    if token is not None or window != ALL:
        raise UsageError("windows and tokens are cut out of a store: `coinhaze ingest` makes one")


def _moment(text: str) -> tuple[str, int]:
    if re.fullmatch("[0-9]{1,10}", text):
        return "height", int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{text!r} is no height and no time: give a block's height, or a time such as "
            "2021-04-01 or 2021-04-01T12:00:00"
        ) from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return "time", int(moment.timestamp())


def last_part(ledger: CoinLedger | AccountLedger, share: float) -> CoinLedger | AccountLedger:
    """Give the last `share` of a ledger's transactions as an observer would see them alone.

    >>> ledger = AccountLedger.from_transfers([("a", "b", 5), ("b", "c", 3)])
    >>> last_part(ledger, 0.5).tables()["transfers"].to_pylist()[0]["from"]
    'b'
    """
    if not 0 < share <= 1:
        raise UsageError(f"share is a part of the ledger above 0 and up to 1, not {share!r}")
    left_out = len(ledger) - max(1, round(share * len(ledger)))
    if left_out <= 0:
        return ledger
    if isinstance(ledger, AccountLedger):
        return _last_transfers(ledger, left_out)
    return _last_transactions(ledger, left_out)


def _last_transfers(ledger: AccountLedger, left_out: int) -> AccountLedger:
    rows = slice(left_out, None)
    parties, code = np.unique(
        np.concatenate([ledger.sender[rows], ledger.receiver[rows]]), return_inverse=True
    )
    sender, receiver = np.split(code, 2)
    return replace(
        ledger,
        accounts=ledger.accounts.take(pa.array(parties)),
        sender=sender,
        receiver=receiver,
        amounts=ledger.amounts.take(np.arange(left_out, len(ledger))),
        # Without ids of their own, mints go by the number of their row: keep the old one.
        ids=ledger.transfer_ids().slice(left_out),
        times=None if ledger.times is None else ledger.times.slice(left_out),
        fees=None if ledger.fees is None else ledger.fees.take(np.arange(left_out, len(ledger))),
    )


def _last_transactions(ledger: CoinLedger, left_out: int) -> CoinLedger:
    """Cut a ledger of coins: of earlier transactions only the coins still to be used stay."""
    cut = len(ledger.inside) - len(ledger) + left_out  # earlier transactions stand first
    late = np.arange(len(ledger.inside)) >= cut
    inputs, flows, rings = (
        late[rows] for rows in (ledger.input_tx, ledger.flow_tx, ledger.ring_tx)
    )
    coins = late[ledger.output_tx]
    coins[ledger.input_output[inputs]] = True
    coins[ledger.ring_output[rings]] = True
    retained = late.copy()
    retained[ledger.output_tx[coins]] = True
    tx, coin = _numbers(retained), _numbers(coins)
    owned = np.zeros(len(ledger.owners), dtype=np.bool_)
    owned[ledger.output_owner[coins]] = True
    return replace(
        ledger,
        txids=ledger.txids.filter(pa.array(retained)),
        inside=late[retained],
        coinbase=(ledger.coinbase & late)[retained],
        heights=_only(ledger.heights, late).filter(pa.array(retained)),
        times=_only(ledger.times, late).filter(pa.array(retained)),
        owners=ledger.owners.filter(pa.array(owned)),
        owner_is_coin=ledger.owner_is_coin[owned],
        output_tx=tx[ledger.output_tx[coins]],
        output_vout=ledger.output_vout[coins],
        output_value=None
        if ledger.output_value is None
        else ledger.output_value.take(np.flatnonzero(coins)),
        output_owner=_numbers(owned)[ledger.output_owner[coins]],
        output_spendable=ledger.output_spendable[coins],
        input_tx=tx[ledger.input_tx[inputs]],
        input_output=coin[ledger.input_output[inputs]],
        flow_tx=tx[ledger.flow_tx[flows]],
        flow_pool=ledger.flow_pool[flows],
        flow_into=ledger.flow_into.take(np.flatnonzero(flows)),
        ring_tx=tx[ledger.ring_tx[rings]],
        ring_vin=ledger.ring_vin[rings],
        ring_output=coin[ledger.ring_output[rings]],
        ring_probability=None
        if ledger.ring_probability is None
        else ledger.ring_probability[rings],
        complete=False,
        pool_values={},
    )


def _numbers(retained: Bools) -> Ints:
    """Give for each row that is retained its new number."""
    found: Ints = np.cumsum(retained) - 1
    return found


def _only(values: pa.Array, where: Bools) -> pa.Array:
    return pc.if_else(pa.array(where), values, pa.scalar(None, values.type))


def refuse_unmoving(
    ledger: CoinLedger | AccountLedger, sources: Sequence[object], window: LedgerWindow = ALL
) -> None:
    """Refuse a ledger without rows, or whose rows move nothing; `sources` are for the message."""
    where = _named(sources)
    where += "" if window == ALL else f", from {window.first or 0} to {window.last or 'the end'}"
    if isinstance(ledger, AccountLedger):
        if not len(ledger):
            raise InputError(f"{where}: no transfers, so there is nothing to score")
        if not np.any((ledger.sender != ledger.receiver) & ledger.amounts.positive()):
            each = "the transfer" if len(ledger) == 1 else f"each of the {len(ledger):,} transfers"
            raise InputError(
                f"{where}: nothing moves: {each} is of 0, or from an account to itself"
            )
        return
    if not ledger.inside.any():
        raise InputError(f"{where}: no transactions, so there is nothing to score")
    values = ledger.output_value
    if not ledger.inside[ledger.output_tx].any() and not len(ledger.flow_tx):
        raise InputError(
            f"{where}: the transactions have no outputs: give the table of outputs, and that of "
            "inputs, beside it"
        )
    if values is not None and not values.positive().any() and not len(ledger.flow_tx):
        raise InputError(f"{where}: nothing moves: every coin is worth 0")


def nothing_in(sources: Sequence[object]) -> InputError:
    """Make the error for files that hold neither transfers nor transactions."""
    return InputError(
        f"{_named(sources)}: neither transfers nor transactions, so there is nothing to score"
    )


def _named(sources: Sequence[object]) -> str:
    names = [str(s) if isinstance(s, str) or hasattr(s, "__fspath__") else "table" for s in sources]
    return first_few(names)
