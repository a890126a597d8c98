"""bitcoin-etl transactions.json: one transaction a line, for Bitcoin and its relatives.

Values are whole satoshi. Zcash exports show pool flows as inputs and outputs of type "shielded";
which pool it was is not told, so they all go to the pool named `shielded`.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import msgspec

from coinhaze.errors import InputError, LedgerError
from coinhaze.ledger.coins import CoinLedger, Input, Output, Transaction

GENESIS_COINBASE = "4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b"


class _Input(msgspec.Struct):
    spent_transaction_hash: str | None = None
    spent_output_index: int | None = None
    type: str | None = None
    addresses: list[str] | None = None
    value: int | None = None


class _Output(msgspec.Struct):
    index: int
    value: int
    type: str | None = None
    script_hex: str | None = None
    addresses: list[str] | None = None


class _Transaction(msgspec.Struct):
    hash: str
    block_number: int
    inputs: list[_Input]
    outputs: list[_Output]
    index: int | None = None
    block_timestamp: int | None = None
    is_coinbase: bool | None = None


_decoder = msgspec.json.Decoder(_Transaction)


def recognises(head: bytes) -> bool:
    """Tell whether the first line looks like a transaction in JSON."""
    start = head.lstrip()
    return start.startswith(b"{") and b'"hash"' in start and b'"block_number"' in start


def read(paths: list[Path], *, complete: bool = False) -> CoinLedger:
    """Read transactions of all files, in the order of block and index."""
    rows = [row for path in paths for row in _rows(path)]
    rows.sort(key=lambda row: row[0])
    return CoinLedger.from_transactions((t for _, t in rows), complete=complete)


def _rows(path: Path) -> Iterator[tuple[tuple[int, int], Transaction]]:
    try:
        with open(path, "rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield _transaction(line, f"{path}:{number}")
    except (OSError, EOFError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None


def _transaction(line: bytes, where: str) -> tuple[tuple[int, int], Transaction]:
    try:
        t = _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LedgerError(where, f"not a bitcoin-etl transaction: {error}") from None
    if not t.hash:
        raise LedgerError(where, "hash is missing")
    if t.block_number < 0 or (t.index is not None and t.index < 0):
        raise LedgerError(where, "block number or index is negative", value=t.block_number)
    into_pool = sum(o.value for o in t.outputs if o.type == "shielded")
    into_pool -= sum(_shielded(i, where) for i in t.inputs if i.type == "shielded")
    # Without an index the order of lines stands: the sort is stable.
    order = (t.block_number, 0 if t.index is None else t.index)
    return order, Transaction(
        txid=t.hash,
        inputs=tuple(_input(i, where) for i in t.inputs if i.type != "shielded"),
        outputs=tuple(_output(o, t.hash) for o in t.outputs if o.type != "shielded"),
        pools=(("shielded", into_pool),) if into_pool else (),
        coinbase=t.is_coinbase,
        height=t.block_number,
        time=t.block_timestamp,
        where=where,
    )


def _shielded(i: _Input, where: str) -> int:
    if i.value is None:
        raise LedgerError(where, "a shielded input without a value")
    return i.value


def _input(i: _Input, where: str) -> Input:
    if i.spent_transaction_hash is None or i.spent_output_index is None:
        raise LedgerError(where, "an input that names no coin", value=i)
    return Input(i.spent_transaction_hash, i.spent_output_index, i.value, owner_of(i.addresses))


def _output(o: _Output, txid: str) -> Output:
    data = o.type == "nulldata" or (o.script_hex or "").startswith("6a")
    spendable = not data and txid != GENESIS_COINBASE
    return Output(o.value, owner_of(o.addresses), o.index, spendable)


def owner_of(addresses: list[str] | None) -> str | None:
    """Name the owner of an output: its address, or the sorted set of several."""
    return ",".join(sorted(set(addresses))) if addresses else None
