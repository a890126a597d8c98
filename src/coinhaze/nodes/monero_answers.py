"""Responses of monerod, and its transactions: rings of coins by index."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import NamedTuple, TypeVar

import msgspec

from coinhaze.errors import LedgerError
from coinhaze.ledger.checks import whole_number
from coinhaze.nodes.best_chain import ChainChanged

HIGHEST = 2**31 - 1
T = TypeVar("T")

_HASH = re.compile("[0-9a-fA-F]{64}")


class Number(NamedTuple):
    """Monero's index of a coin: separate for each amount, where all hidden amounts count as 0."""

    amount: int
    place: int


class MoneroCoin(NamedTuple):
    """The name of a coin in ledgers."""

    txid: str
    vout: int


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
    """A block: its header and the ids of its transactions."""

    block_header: MoneroHeader
    tx_hashes: list[str] = []


class HeaderResponse(MoneroResponse):
    """The header of a block alone."""

    block_header: MoneroHeader


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


class _Made(msgspec.Struct):
    height: int


class _Input(msgspec.Struct):
    key: _Key | None = None
    gen: _Made | None = None  # of a coinbase


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
    height = whole_number(entry.block_height, where, field="block_height", most=HIGHEST)
    return Spending(txid, height, coinbase, made, rings)


def _ring(key: _Key, where: str) -> list[Number]:
    """Add up offsets; members named twice, as in old rings, are counted once."""
    if not key.key_offsets or min(key.key_offsets) < 0:
        raise LedgerError(where, "a ring that names no coins", value=key.key_offsets)
    numbers = [_number(key.amount, index, where) for index in accumulate(key.key_offsets)]
    return list(dict.fromkeys(numbers))


def _number(amount: int, index: int, where: str) -> Number:
    most = 2**64 - 1
    return Number(
        whole_number(amount, where, field="amount", most=most),
        whole_number(index, where, field="number of a coin", most=most),
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
