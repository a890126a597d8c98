"""A Monero node (monerod), over JSON-RPC and its plain JSON calls.

Inputs are rings: a transaction names the coins it may spend by their global indices, each relative
to the one before. Amounts are left out, those of coinbases too: a ledger with rings hides them all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from threading import Lock
from typing import NamedTuple, TypeVar

import msgspec

from coinhaze.errors import LedgerError, NotAnswering, SourceUnreachable, shorten
from coinhaze.ledger.batches import Batch, Rows, gather
from coinhaze.ledger.checks import whole_number
from coinhaze.nodes.best_chain import (
    HIGHEST,
    BlockMissing,
    ChainChanged,
    check_follows,
    check_heights,
)
from coinhaze.nodes.rpc import JsonRpc, RpcResult, refused

T = TypeVar("T")

Coin = tuple[str, int]  # as ledgers name it: transaction and output

_HASH = re.compile("[0-9a-fA-F]{64}")

NO_SUCH_BLOCK = -2
# The limit of a restricted node per request.
TRANSACTIONS_AT_ONCE, COINS_AT_ONCE = 100, 5_000
BLOCKS_AT_ONCE = 50
REMEMBERED = 2_000_000  # coins; ring members among them need no request


class Number(NamedTuple):
    """Monero's index of a coin: separate for each amount, where all hidden amounts count as 0."""

    amount: int
    place: int


class MoneroResponse(msgspec.Struct, kw_only=True):
    """The fields common to all responses."""

    status: str
    untrusted: bool = False


class MoneroHeader(msgspec.Struct):
    """The header of a block."""

    height: int
    hash: str
    prev_hash: str
    timestamp: int
    miner_tx_hash: str


class MoneroBlock(MoneroResponse):
    """A block: its header and, unless that alone was requested, the ids of its transactions."""

    block_header: MoneroHeader
    tx_hashes: list[str] = []


class Info(MoneroResponse):
    """The length of the chain."""

    height: int


class TransactionEntry(msgspec.Struct):
    """One of the requested transactions."""

    tx_hash: str
    as_json: str = ""
    block_height: int | None = None  # absent while in the mempool
    in_pool: bool = False
    output_indices: list[int] = []


class TransactionsResponse(MoneroResponse):
    """Transactions requested by id."""

    txs: list[TransactionEntry] = []  # monerod leaves empty lists out
    missed_tx: list[str] = []


class Out(msgspec.Struct):
    """The transaction that created a coin."""

    height: int
    txid: str


class Outs(MoneroResponse):
    """The origins of coins requested by index."""

    outs: list[Out] = []


class _Key(msgspec.Struct):
    amount: int
    key_offsets: list[int]


class _Input(msgspec.Struct):
    key: _Key | None = None
    gen: dict[str, int] | None = None  # of a coinbase


class _Output(msgspec.Struct):
    amount: int


class _Body(msgspec.Struct):
    version: int
    vin: list[_Input]
    vout: list[_Output]


class Spending(NamedTuple):
    """A transaction: the indices of the coins it created, and a ring for each input."""

    txid: str
    height: int
    coinbase: bool
    made: list[Number]
    rings: list[list[Number]]


def read_spending(entry: TransactionEntry) -> Spending:
    """Read one transaction of a response to /get_transactions."""
    txid = hash_of(entry.tx_hash, "transactions")
    where = f"transaction {txid}"
    if entry.in_pool or entry.block_height is None:
        raise ChainChanged(where, "is in no block any more", fix="read again")
    body = decode(entry.as_json.encode("utf-8", "replace"), _Body, where)
    if len(entry.output_indices) != len(body.vout):
        raise LedgerError(
            where, f"{len(body.vout)} outputs with {len(entry.output_indices)} numbers"
        )
    if not body.vin:
        raise LedgerError(where, "it has no inputs")
    # Since version 2 amounts are hidden, and coinbases, whose amounts are not, share the numbering.
    hidden = whole_number(body.version, where, field="version") >= 2
    made = [
        _number(0 if hidden else output.amount, index, where)
        for output, index in zip(body.vout, entry.output_indices, strict=True)
    ]
    coinbase = body.vin[0].gen is not None
    if any((i.gen is not None) != coinbase or (i.key is None) != coinbase for i in body.vin):
        raise LedgerError(where, "inputs that are neither rings nor a coinbase's")
    rings = [_ring(i.key, where) for i in body.vin if i.key is not None]
    height = whole_number(entry.block_height, where, field="block_height", maximum=HIGHEST)
    return Spending(txid, height, coinbase, made, rings)


def _ring(key: _Key, where: str) -> list[Number]:
    """Add up offsets; members named twice, as in old rings, are counted once."""
    if not key.key_offsets or min(key.key_offsets) < 0:
        raise LedgerError(where, "a ring that names no coins", value=key.key_offsets)
    numbers = [_number(key.amount, index, where) for index in accumulate(key.key_offsets)]
    return list(dict.fromkeys(numbers))


def _number(amount: int, index: int, where: str) -> Number:
    maximum = 2**64 - 1
    return Number(
        whole_number(amount, where, field="amount", maximum=maximum),
        whole_number(index, where, field="number of a coin", maximum=maximum),
    )


def block_row(header: MoneroHeader, height: int) -> dict[str, object]:
    """Return the row of a block, which must be the requested one."""
    where = f"block {height}"
    if header.height != height:
        raise LedgerError(where, "the node gave another block", value=header.height)
    return {
        "height": height,
        "hash": hash_of(header.hash, where),
        "previous": hash_of(header.prev_hash, where),
        "time": whole_number(header.timestamp, where, field="timestamp"),
    }


def hash_of(text: str, where: str) -> str:
    """Check a hash and return it."""
    if not _HASH.fullmatch(text):
        raise LedgerError(where, "no hash of 64 hex digits", value=text)
    return text.lower()


def decode(raw: bytes, kind: type[T], where: str) -> T:
    """Decode a response of known shape."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise LedgerError(
            where, f"an answer of another shape: {error}", value=raw[:400], fix="is it monerod's?"
        ) from None


class UntrustedNode(SourceUnreachable):
    """A node that relays what an untrusted node sent it."""


class MoneroNode:
    """A node of Monero. `lag` is how far its tip stays behind the latest block."""

    def __init__(self, rpc: JsonRpc, *, lag: int = 60, at_once: int = 3) -> None:
        self.rpc = rpc
        self.lag = lag
        self.at_once = at_once
        self._known: dict[Number, Coin] = {}
        self._read = 0
        self._reading = Lock()

    def tip(self) -> tuple[int, str]:
        """Return the height and hash of the last block that is considered final."""
        info = self._request("get_info", Info, "the latest block")
        count = whole_number(info.height, "the latest block", field="height", maximum=HIGHEST + 1)
        height = max(0, count - 1 - self.lag)
        return height, str(self._header_row(height)["hash"])

    def common_ancestor(self, headers: Mapping[int, str]) -> int | None:
        """Walk back from the highest of known blocks to the last one still on the chain."""
        for height in sorted(headers, reverse=True):
            try:
                row = self._header_row(height)
            except BlockMissing:
                continue
            if row["hash"] == headers[height].lower():
                return height
        return None

    def _header_row(self, height: int) -> dict[str, object]:
        where = f"block {height}"
        answer = self._request("get_block_header_by_height", MoneroBlock, where, height=height)
        return block_row(answer.block_header, height)

    def batches(self, first: int, last: int, *, before: str = "") -> Iterator[Batch]:
        """Read a range of blocks, both ends included; the first follows the block `before`."""
        check_heights(first, last)
        self._known.clear()  # a reorganisation since may have renumbered coins
        self._read = 0
        with ThreadPoolExecutor(self.at_once, thread_name_prefix="coinhaze-node") as pool:
            for start in range(first, last + 1, BLOCKS_AT_ONCE):
                heights = range(start, min(start + BLOCKS_AT_ONCE, last + 1))
                blocks = list(pool.map(self._block, heights))
                tables = [Rows(n) for n in ("blocks", "transactions", "outputs", "rings")]
                before = self._add(blocks, heights, before, tables)
                self._check_still_there(heights[-1], before)
                given = gather(tables)
                yield Batch(
                    given,
                    lambda table, row, given=given: (  # type: ignore[misc]
                        f"block {given[table]['height'][row].as_py()}"
                    ),
                    self._read,
                )

    def _add(
        self, blocks: Sequence[MoneroBlock], heights: range, before: str, tables: Sequence[Rows]
    ) -> str:
        """Add blocks to the tables; return the hash of the last."""
        rows = [block_row(b.block_header, h) for b, h in zip(blocks, heights, strict=True)]
        named = [
            (row, hash_of(txid, f"block {height}"), position)
            for height, row, block in zip(heights, rows, blocks, strict=True)
            for position, txid in enumerate([block.block_header.miner_tx_hash, *block.tx_hashes])
        ]
        spendings = self._spendings([txid for _, txid, _ in named])
        for row, txid, position in named:
            _check_place(spendings[txid], row, position)
        wanted = {n for s in spendings.values() for ring in s.rings for n in ring}
        coins = self._coins(wanted)
        table, transactions, outputs, rings = tables
        for row in rows:
            check_follows(row["previous"], before, f"block {row['height']}")
            before = str(row["hash"])
            table.add(**row)
        for row, txid, position in named:
            spending = spendings[txid]
            made = {"height": spending.height, "txid": txid}
            transactions.add(
                **made, coinbase=spending.coinbase, position=position, time=row["time"]
            )
            for vout in range(len(spending.made)):
                outputs.add(**made, vout=vout, spendable=True)
            for vin, ring in enumerate(spending.rings):
                for number in ring:
                    member, output = coins[number]
                    rings.add(**made, vin=vin, member_txid=member, member_vout=output)
        return before

    def _check_still_there(self, height: int, name: str) -> None:
        """Raise an error if coins may have been numbered on another branch than the blocks'."""
        now = self._header_row(height)["hash"]
        if now != name:
            raise ChainChanged(f"block {height}", "changed while it was read", value=now)

    def _block(self, height: int) -> MoneroBlock:
        return self._request("get_block", MoneroBlock, f"block {height}", height=height)

    def _spendings(self, txids: Sequence[str]) -> dict[str, Spending]:
        """Request transactions and remember the indices of the coins they created."""
        found: dict[str, Spending] = {}
        for some in _chunks(list(dict.fromkeys(txids)), TRANSACTIONS_AT_ONCE):
            wanted = {"txs_hashes": some, "decode_as_json": True, "prune": True}
            answer = self._post("/get_transactions", wanted, TransactionsResponse, "transactions")
            if answer.missed_tx:
                raise ChainChanged(
                    "transactions", "the node no longer has", value=answer.missed_tx[0]
                )
            for entry in answer.txs:
                spending = read_spending(entry)
                found[spending.txid] = spending
            missing = [txid for txid in some if txid not in found]
            if missing:
                raise LedgerError("transactions", "the node left out", value=missing[0])
        for spending in found.values():
            for vout, number in enumerate(spending.made):
                self._known[number] = (spending.txid, vout)
        return found

    def _coins(self, numbers: Iterable[Number]) -> dict[Number, Coin]:
        """Return the coins that the indices stand for."""
        numbers = set(numbers)
        unknown = sorted(numbers - self._known.keys())
        makers: dict[Number, Out] = {}
        for some in _chunks(unknown, COINS_AT_ONCE):
            wanted = {
                "outputs": [{"amount": n.amount, "index": n.place} for n in some],
                "get_txid": True,
            }
            outs = self._post("/get_outs", wanted, Outs, "ring members").outs
            if len(outs) != len(some):
                raise LedgerError(
                    "ring members", f"the node returned {len(outs)} coins, not {len(some)}"
                )
            makers.update(zip(some, outs, strict=True))
        spendings = self._spendings([hash_of(o.txid, "ring members") for o in makers.values()])
        for number, out in makers.items():
            spending = spendings[out.txid.lower()]
            if number not in spending.made or spending.height != out.height:
                raise ChainChanged(
                    f"transaction {spending.txid}", "did not make the ring member", value=number
                )
        coins = {number: self._known[number] for number in numbers}
        while len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]
        return coins

    def _request(self, method: str, kind: type[T], where: str, **params: object) -> T:
        body = {"jsonrpc": "2.0", "id": "0", "method": method, "params": params}
        raw = self.rpc.post("/json_rpc", body)
        reply = decode(raw, RpcResult, where)
        if bytes(reply.error) not in (b"", b"null"):
            error = refused(self.rpc.node, method, bytes(reply.error))
            if error.code == NO_SUCH_BLOCK:
                raise BlockMissing(f"{error} (is the node in step?)")
            raise error
        return self._checked(bytes(reply.result), kind, where)

    def _post(self, path: str, body: object, kind: type[T], where: str) -> T:
        return self._checked(self.rpc.post(path, body), kind, where)

    def _checked(self, raw: bytes, kind: type[T], where: str) -> T:
        """Decode a response; raise an error if it failed or was relayed from another node."""
        with self._reading:
            self._read += len(raw)
        said = decode(raw, MoneroResponse, where)
        if said.untrusted:
            raise UntrustedNode(
                f"{self.rpc.node}: the node passes on a bootstrap node's answers, which may be"
                " false: wait until it is in step, or start it without --bootstrap-daemon-address"
            )
        if said.status != "OK":
            fault = NotAnswering if said.status == "BUSY" else SourceUnreachable
            raise fault(f"{self.rpc.node}: {where}: the node says {shorten(said.status)}")
        return decode(raw, kind, where)


def _check_place(spending: Spending, row: dict[str, object], position: int) -> None:
    where = f"block {row['height']}, transaction {spending.txid}"
    if spending.height != row["height"]:
        raise ChainChanged(where, "is in another block by now", value=spending.height)
    if spending.coinbase != (position == 0):
        raise LedgerError(
            where, "a coinbase is the first transaction, and no other", value=position
        )


def _chunks(values: list[T], size: int) -> Iterator[list[T]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]
