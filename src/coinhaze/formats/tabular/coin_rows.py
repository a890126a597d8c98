"""Columns of transactions, outputs and inputs -> checked tables of a batch."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.errors import LedgerError
from coinhaze.ledger.batches import FLAG, NUMBER, TEXT, Batch, Where, table_of
from coinhaze.ledger.checks import check_name, check_names

RowNumbers = npt.NDArray[np.int64]
Place = Callable[[int], str]

ROWS = 30_000  # of inputs and outputs together, in a batch
HIGHEST = 2**31 - 1
LAST_INDEX = 2**32 - 1
LATEST = 2**32 - 1  # a block's time is 32 bits wide in Bitcoin and all that came of it
MAXIMUM = 2**63 - 1

_HEX = re.compile("(?:0x)?([0-9a-fA-F]+)")


@dataclass(frozen=True, eq=False)
class TransactionRows:
    """One row a transaction. `place` says where a transaction was read."""

    place: Place
    height: pa.Array
    txid: pa.Array
    coinbase: pa.Array
    position: pa.Array
    time: pa.Array


@dataclass(frozen=True, eq=False)
class OutputRows:
    """One row an output; `parent` is the row of its transaction, `is_data` marks no coin at all."""

    parent: RowNumbers
    vout: pa.Array
    value: pa.Array
    owner: pa.Array
    is_data: pa.Array


@dataclass(frozen=True, eq=False)
class InputRows:
    """One row an input, those of coinbases left out; `parent` is the row of its transaction."""

    parent: RowNumbers
    vin: pa.Array
    spent_txid: pa.Array
    spent_vout: pa.Array
    value: pa.Array
    owner: pa.Array


class StatedBlock(NamedTuple):
    """What a source tells of a block."""

    height: int
    hash: str
    previous: str | None
    time: int | None
    transactions: int | None = None  # how many, as the block says
    root: str | None = None  # of their Merkle tree


def coin_batch(
    transactions: TransactionRows,
    outputs: OutputRows,
    inputs: InputRows,
    *,
    digits: int | None = None,
    blocks: Mapping[StatedBlock, int] | None = None,
    flows: Sequence[tuple[int, str, int]] = (),
    read: int = 0,
) -> Batch:
    """Check the rows and make a batch of them.

    Ids have so many `digits` of hex, or are any names. `blocks` tells for each the row of one of
    its transactions; `flows` are rows of transactions, pools and what went into them.
    """
    t = _checked(transactions, digits)
    tables = {"transactions": _transaction_table(t)}
    parents: dict[str, RowNumbers] = {"transactions": np.arange(len(t.txid))}
    tables["outputs"], parents["outputs"] = _output_table(t, outputs), outputs.parent
    tables["inputs"], parents["inputs"] = _input_table(t, inputs, digits), inputs.parent
    if flows:
        parents["pool_flows"] = np.array([row for row, _, _ in flows])
        tables["pool_flows"] = _flow_table(t, flows, parents["pool_flows"])
    if blocks:
        parents["blocks"] = np.array(list(blocks.values()))
        tables["blocks"] = _block_table(list(blocks), parents["blocks"], t.place)
        tables["stated_blocks"] = _stated_table(list(blocks), parents["blocks"], t.place)
        parents["stated_blocks"] = np.array(
            [r for b, r in blocks.items() if b.transactions or b.root]
        )
    return Batch({k: v for k, v in tables.items() if len(v)}, where_of(parents, t.place), read)


def at_parents(parent: RowNumbers, place: Place) -> Place:
    """Say where inputs or outputs stand by where their transactions do."""
    return lambda row: place(int(parent[row]))


def where_of(parents: Mapping[str, RowNumbers], place: Place) -> Where:
    """Say where rows stand by where their transactions do."""
    return lambda table, row: place(int(parents[table][row]))


def texts(values: Sequence[str | None], place: Place, *, field: str) -> pa.Array:
    """Make a column of text."""
    try:
        return pa.array(values, TEXT)
    except UnicodeEncodeError:  # half of a surrogate pair
        row = next(n for n, v in enumerate(values) if v and _is_broken(v))
        raise LedgerError(place(row), f"{field} is not text", value=values[row]) from None


def whole_numbers(values: Sequence[int | str | None], place: Place, *, field: str) -> pa.Array:
    """Make a column of whole numbers, some of them written as text, as BigQuery does."""
    if str in set(map(type, values)):
        values = [_whole(v, n, place, field) for n, v in enumerate(values)]
    try:
        return pa.array(values, NUMBER)
    except (OverflowError, pa.ArrowInvalid):
        bounds = range(-(2**63), 2**63)
        row = next(n for n, v in enumerate(values) if v is not None and v not in bounds)
        raise _out_of_range(place(row), field, values[row], MAXIMUM) from None


def check_range(column: pa.Array, place: Place, *, field: str, maximum: int) -> None:
    """Refuse numbers that are missing, below 0 or above `maximum`."""
    if column.null_count:
        row = pc.index(pc.is_null(column), True).as_py()
        fix = "export the table again with it"
        raise LedgerError(place(row), f"{field} is missing", fix=fix)
    check_optional_range(column, place, field=field, maximum=maximum)


def check_optional_range(column: pa.Array, place: Place, *, field: str, maximum: int) -> None:
    """Refuse numbers below 0 or above `maximum`."""
    low, high = pc.min_max(column).as_py().values()
    if low is not None and not (low >= 0 and high <= maximum):
        outside = pc.or_(pc.less(column, 0), pc.greater(column, maximum))
        row = pc.index(outside, True).as_py()
        raise _out_of_range(place(row), field, column[row].as_py(), maximum)


def check_ids(column: pa.Array, place: Place, *, field: str, digits: int | None) -> pa.Array:
    """Refuse ids that are no names or, where `digits` are required, no hex; lower hex's case."""
    length = "+" if digits is None else f"{{{digits}}}"
    if pc.all(pc.match_substring_regex(column, f"^[0-9a-f]{length}$"), min_count=0).as_py():
        if column.null_count:
            check_names(column, place, field=field)
        return column
    check_names(column, place, field=field)
    return pa.array([_id(v, n, place, field, digits) for n, v in enumerate(column.to_pylist())])


def check_owners(column: pa.Array, place: Place) -> None:
    """Refuse owners that are empty or hold control characters; there may be none."""
    rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    check_names(column.drop_null(), lambda row: place(int(rows[row])), field="address")


def take(column: pa.Array, rows: RowNumbers) -> pa.Array:
    """Repeat what a transaction has for its inputs or outputs."""
    return column.take(pa.array(rows))


def rows_of(counts: Sequence[int] | RowNumbers) -> RowNumbers:
    """Give for each input or output the row of its transaction, which has so many."""
    return np.repeat(np.arange(len(counts)), np.array(counts, np.int64))


def numbered(parent: RowNumbers) -> RowNumbers:
    """Count from 0 in each run of equal parents, which are in order.

    >>> numbered(np.array([0, 0, 0, 2, 2])).tolist()
    [0, 1, 2, 0, 1]
    """
    starts = np.flatnonzero(np.diff(parent, prepend=-1))
    lengths = np.diff(np.append(starts, len(parent)))
    return np.arange(len(parent)) - np.repeat(starts, lengths)


def rows_of_blocks(
    stated: Sequence[StatedBlock], txids: Sequence[Sequence[str]], where: Place
) -> tuple[TransactionRows, dict[StatedBlock, int]]:
    """Make rows of whole blocks, the first transaction of each a coinbase, and tell its row.

    `where` says for the number of a block where it stands.
    """
    sizes = [len(ids) for ids in txids]
    block = rows_of(sizes)
    position = numbered(block)

    def place(row: int) -> str:
        return f"{where(int(block[row]))} transaction {position[row]}"

    heights = whole_numbers([b.height for b in stated], where, field="height")
    times = whole_numbers([b.time for b in stated], where, field="time")
    rows = TransactionRows(
        place,
        height=take(heights, block),
        txid=texts([txid for ids in txids for txid in ids], place, field="txid"),
        coinbase=pa.array(position == 0, FLAG),
        position=pa.array(position, NUMBER),
        time=take(times, block),
    )
    firsts = (np.cumsum(sizes) - sizes).tolist()
    return rows, dict(zip(stated, firsts, strict=True))


def _checked(t: TransactionRows, digits: int | None) -> TransactionRows:
    check_range(t.height, t.place, field="height", maximum=HIGHEST)
    check_optional_range(t.position, t.place, field="index in the block", maximum=LAST_INDEX)
    check_optional_range(t.time, t.place, field="time", maximum=LATEST)
    txid = check_ids(t.txid, t.place, field="id of the transaction", digits=digits)
    return replace(t, txid=txid)


def _transaction_table(t: TransactionRows) -> pa.Table:
    return table_of(
        "transactions",
        {
            "height": t.height,
            "txid": t.txid,
            "coinbase": t.coinbase,
            "position": t.position,
            "time": t.time,
        },
    )


def _output_table(t: TransactionRows, o: OutputRows) -> pa.Table:
    place = at_parents(o.parent, t.place)
    check_range(o.vout, place, field="index of an output", maximum=LAST_INDEX)
    check_range(o.value, place, field="value of an output", maximum=MAXIMUM)
    _check_unlike(o.parent, o.vout, place, "two outputs with one number")
    check_owners(o.owner, place)
    height = take(t.height, o.parent)
    # What block 0 pays its miner never entered the set of coins, on any of these chains.
    lost = pc.and_(take(t.coinbase, o.parent), pc.equal(height, 0))
    return table_of(
        "outputs",
        {
            "height": height,
            "txid": take(t.txid, o.parent),
            "vout": o.vout,
            "spendable": pc.invert(pc.or_(o.is_data, lost)),
            "value": o.value,
            "owner": o.owner,
        },
    )


def _input_table(t: TransactionRows, i: InputRows, digits: int | None) -> pa.Table:
    place = at_parents(i.parent, t.place)
    check_range(i.vin, place, field="index of an input", maximum=LAST_INDEX)
    _check_unlike(i.parent, i.vin, place, "two inputs with one number")
    check_range(i.spent_vout, place, field="index of the coin spent", maximum=LAST_INDEX)
    check_optional_range(i.value, place, field="value of an input", maximum=MAXIMUM)
    check_owners(i.owner, place)
    spent = check_ids(i.spent_txid, place, field="id of the coin spent", digits=digits)
    return table_of(
        "inputs",
        {
            "height": take(t.height, i.parent),
            "txid": take(t.txid, i.parent),
            "vin": i.vin,
            "spent_txid": spent,
            "spent_vout": i.spent_vout,
            "value": i.value,
            "owner": i.owner,
        },
    )


def _check_unlike(parent: RowNumbers, number: pa.Array, place: Place, what: str) -> None:
    """Refuse numbers that two inputs or outputs of one transaction have: one would be lost."""
    numbers = np.asarray(number)
    if np.array_equal(numbers, numbered(parent)):
        return  # as nearly all are
    key = parent.astype(np.uint64) << np.uint64(32) | numbers.astype(np.uint64)
    order = np.argsort(key, kind="stable")
    twice = order[1:][key[order[1:]] == key[order[:-1]]]
    if len(twice):
        row = int(twice.min())
        raise LedgerError(place(row), what, value=int(numbers[row]))


def _flow_table(
    t: TransactionRows, flows: Sequence[tuple[int, str, int]], parent: RowNumbers
) -> pa.Table:
    for row, _, value in flows:
        if abs(value) > MAXIMUM:
            raise LedgerError(t.place(row), f"flow of a pool beyond {MAXIMUM}", value=value)
    return table_of(
        "pool_flows",
        {
            "height": take(t.height, parent),
            "txid": take(t.txid, parent),
            "pool": [pool for _, pool, _ in flows],
            "into_pool": [value for _, _, value in flows],
        },
    )


def _block_table(
    blocks: Sequence[StatedBlock], parent: RowNumbers, of_transaction: Place
) -> pa.Table:
    place = at_parents(parent, of_transaction)
    hashes = texts([b.hash for b in blocks], place, field="hash of the block")
    before = texts([b.previous for b in blocks], place, field="hash of the block before")
    check_owners(before, place)
    return table_of(
        "blocks",
        {
            "height": [b.height for b in blocks],
            "hash": check_ids(hashes, place, field="hash of the block", digits=None),
            "previous": pc.ascii_lower(before),
            "time": [b.time for b in blocks],
        },
    )


def _stated_table(blocks: Sequence[StatedBlock], parent: RowNumbers, place: Place) -> pa.Table:
    """Give what blocks say of their transactions, those that say something."""
    for block, row in zip(blocks, parent.tolist(), strict=True):
        if block.root is not None and not re.fullmatch("[0-9a-fA-F]{64}", block.root):
            what = "the Merkle root is not 64 digits of hex"
            raise LedgerError(place(row), what, value=block.root)
    stated = [b for b in blocks if b.transactions is not None or b.root is not None]
    return table_of(
        "stated_blocks",
        {
            "height": [b.height for b in stated],
            "transaction_count": [b.transactions for b in stated],
            "merkle_root": [b.root and b.root.lower() for b in stated],
        },
    )


def _whole(value: int | str | None, row: int, place: Place, field: str) -> int | None:
    if isinstance(value, str):
        if not re.fullmatch("[0-9]{1,19}", value, re.ASCII):
            fix = "export it again: whole numbers, unchanged"
            raise LedgerError(place(row), f"{field} is not a whole number", value=value, fix=fix)
        return int(value)
    return value


def _id(value: str, row: int, place: Place, field: str, digits: int | None) -> str:
    found = _HEX.fullmatch(value)
    if digits is not None and (not found or len(found[1]) != digits):
        raise LedgerError(place(row), f"{field} is not {digits} hex digits", value=value)
    return found[1].lower() if found else check_name(value, place(row), field=field)


def _out_of_range(where: str, field: str, value: object, maximum: int) -> LedgerError:
    if isinstance(value, int) and value < 0:
        return LedgerError(where, f"{field} is negative", value=value)
    return LedgerError(where, f"{field} is above {maximum}", value=value)


def _is_broken(value: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in value)
