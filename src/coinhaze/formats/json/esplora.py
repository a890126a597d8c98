"""Esplora and mempool.space transactions: one per line, an array (a page) of them, or one per file.

Values are whole satoshi. A block tells no order of its transactions but that the coinbase comes
first. Transactions without a block, confirmed by nobody yet, are all put at one height, one above
the highest block read (or 0), and come last; until then their rows are held in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.errors import InputError, LedgerError
from coinhaze.formats.bitcoin_raw.networks import Network
from coinhaze.formats.bitcoin_raw.scripts import KeyNames, Script, network_in
from coinhaze.formats.json.records import RecordFormat, Records
from coinhaze.formats.tabular.coin_rows import (
    HIGHEST,
    ROWS,
    InputRows,
    OutputRows,
    Place,
    StatedBlock,
    TransactionRows,
    at_parents,
    coin_batch,
    numbered,
    rows_of,
    texts,
    whole_numbers,
)
from coinhaze.ledger.batches import FLAG, NUMBER, Batch


class _Coin(msgspec.Struct, gc=False):
    scriptpubkey: str
    value: int
    scriptpubkey_address: str | None = None
    asset: str | None = None


class _Input(msgspec.Struct, gc=False):
    txid: str
    vout: int
    is_coinbase: bool
    prevout: _Coin | None = None


class _Status(msgspec.Struct, gc=False):
    confirmed: bool
    block_height: int | None = None
    block_hash: str | None = None
    block_time: int | None = None


class _Transaction(msgspec.Struct, gc=False):
    txid: str
    vin: list[_Input]
    vout: list[_Coin]
    status: _Status | None = None


_WAITING = _Status(confirmed=False)
_format: RecordFormat[_Transaction] = RecordFormat(
    "transaction of Esplora",
    msgspec.json.Decoder(_Transaction | list[_Transaction]),
    hint="values are whole satoshi, ids are text",
)


def recognises(head: bytes) -> bool:
    """Tell whether the first bytes look like a transaction as Esplora gives it."""
    # Bitcoin Core writes scriptPubKey and scriptSig.
    return (
        head.lstrip().startswith((b"{", b"["))
        and b'"txid"' in head
        and (b'"scriptpubkey"' in head or b'"scriptsig"' in head)
        and b'"vin"' in head
    )


def batches(path: Path, *, tip: int = -1) -> Iterator[Batch]:
    """Read a file, or the JSON files of a folder.

    `tip` is the highest block known from elsewhere: where blocks and mempool are in two files, the
    second cannot tell how high it stands.
    """
    held: list[Batch] = []
    names = KeyNames(lambda: _network_in(path))
    for found in _format.records(path, _size, ROWS):
        in_block = [t.status is not None and t.status.confirmed for t in found.records]
        if any(in_block):
            batch = _batch(_some(found, in_block), names)
            tip = max(tip, pc.max(batch.tables["transactions"]["height"]).as_py())
            yield batch
        if not all(in_block):
            held.append(_batch(_some(found, [not b for b in in_block]), names))
    if held and tip >= HIGHEST:
        raise InputError(f"{path}: no height is left above block {tip} for what is unconfirmed")
    for batch in held:
        yield _lift(batch, tip + 1)


def _size(transaction: _Transaction) -> int:
    return len(transaction.vin) + len(transaction.vout)


def _network_in(path: Path) -> Network | None:
    """Find the network by all coins of a file, so that none of its keys has two names."""
    return network_in(
        (
            _scripts([o for t in found.records for o in t.vout]),
            [(t.status.block_hash or "", t.status.block_time) for t in found.records if t.status],
        )
        for found in _format.records(path, _size, ROWS)
    )


def _scripts(coins: Sequence[_Coin | None]) -> list[Script | None]:
    return [None if c is None else Script(c.scriptpubkey, c.scriptpubkey_address) for c in coins]


def _some(found: Records[_Transaction], chosen: list[bool]) -> Records[_Transaction]:
    if all(chosen):
        return found
    records = list(compress(found.records, chosen))
    return Records(records, list(compress(found.places, chosen)), found.read)


def _lift(batch: Batch, height: int) -> Batch:
    tables = {}
    for name, table in batch.tables.items():
        column = table.schema.get_field_index("height")
        heights = pa.repeat(pa.scalar(height, NUMBER), len(table))
        tables[name] = table.set_column(column, table.schema.field(column), heights)
    return replace(batch, tables=tables)


def _batch(found: Records[_Transaction], names: KeyNames) -> Batch:
    """Make a batch of transactions; those without a block stand at height 0."""
    records, place = found.records, found.place
    statuses = [t.status if t.status and t.status.confirmed else _WAITING for t in records]
    coinbase = [_is_coinbase(t, place, row) for row, t in enumerate(records)]
    heights = [
        _height(s, c, place, row) for row, (s, c) in enumerate(zip(statuses, coinbase, strict=True))
    ]
    transactions = TransactionRows(
        place,
        height=whole_numbers(heights, place, field="height"),
        txid=texts([t.txid for t in records], place, field="txid"),
        coinbase=pa.array(coinbase, FLAG),
        position=pa.array([0 if c else None for c in coinbase], NUMBER),
        time=whole_numbers([s.block_time for s in statuses], place, field="block_time"),
    )
    blocks: dict[StatedBlock, int] = {}
    for row, (s, height) in enumerate(zip(statuses, heights, strict=True)):
        if s.block_hash is not None:
            blocks.setdefault(StatedBlock(height, s.block_hash, None, s.block_time), row)
    outputs, inputs = _outputs(records, place, names), _inputs(records, coinbase, place, names)
    return coin_batch(transactions, outputs, inputs, digits=64, blocks=blocks, read=found.read)


def _is_coinbase(transaction: _Transaction, place: Place, row: int) -> bool:
    count = sum(i.is_coinbase for i in transaction.vin)
    if count and len(transaction.vin) > 1:
        raise LedgerError(place(row), "a coinbase with other inputs", value=transaction.txid)
    return count > 0


def _height(status: _Status, coinbase: bool, place: Place, row: int) -> int:
    if status is _WAITING:
        if coinbase:
            raise LedgerError(place(row), "a coinbase that is in no block")
        return 0
    if status.block_height is None:
        raise LedgerError(place(row), "block_height of a confirmed transaction is missing")
    return status.block_height


def _outputs(records: Sequence[_Transaction], place: Place, names: KeyNames) -> OutputRows:
    parent = rows_of([len(t.vout) for t in records])
    coins = [o for t in records for o in t.vout]

    of_row = at_parents(parent, place)
    for row, coin in enumerate(coins):
        if coin.asset is not None:
            fix = "only chains of one money can be read"
            raise LedgerError(
                of_row(row), "an output of an asset (Liquid)", value=coin.asset, fix=fix
            )
    return OutputRows(
        parent,
        vout=pa.array(numbered(parent)),
        value=whole_numbers([o.value for o in coins], of_row, field="value"),
        owner=texts(names.owners(_scripts(coins), of_row), of_row, field="scriptpubkey_address"),
        is_data=pa.array([o.scriptpubkey[:2] == "6a" for o in coins], FLAG),
    )


def _inputs(
    records: Sequence[_Transaction], coinbase: Sequence[bool], place: Place, names: KeyNames
) -> InputRows:
    counts = [0 if c else len(t.vin) for t, c in zip(records, coinbase, strict=True)]
    parent = rows_of(counts)
    spends = [i for t, c in zip(records, coinbase, strict=True) if not c for i in t.vin]
    coins = [i.prevout for i in spends]

    of_row = at_parents(parent, place)
    return InputRows(
        parent,
        vin=pa.array(numbered(parent)),
        spent_txid=texts([i.txid for i in spends], of_row, field="txid of an input"),
        spent_vout=whole_numbers([i.vout for i in spends], of_row, field="vout of an input"),
        value=whole_numbers(
            [None if c is None else c.value for c in coins], of_row, field="value of a prevout"
        ),
        owner=texts(names.owners(_scripts(coins), of_row), of_row, field="scriptpubkey_address"),
    )
