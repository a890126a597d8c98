"""bitcoin-etl transactions in Parquet: as BigQuery exports them, and as AWS publishes them.

BigQuery has NUMERIC satoshi and lists of addresses, AWS has doubles of bitcoin and one address.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from coinhaze.errors import InputError, LedgerError
from coinhaze.formats.bitcoin_etl.rows import Ends, Heads, etl_batch, owner_of
from coinhaze.formats.tabular.coin_rows import Place, RowNumbers
from coinhaze.formats.tabular.table_rows import TableLayout
from coinhaze.ledger.batches import FLAG, NUMBER, TEXT, Batch
from coinhaze.ledger.completeness import stated_number

MAGIC = b"PAR1"
AT_ONCE = 8192  # transactions
SATOSHI = 1e8
# Up to here a double of bitcoin, rounded, gives back the satoshi it was made of.
MAX_EXACT = 2**51
NEEDED = ("hash", "block_number", "inputs", "outputs")
# What a transaction says of itself, by the names of the store.
STATED = {
    "input_count": "input_count",
    "output_count": "output_count",
    "input_total": "input_value",
    "output_total": "output_value",
}
OPTIONAL = ("block_hash", "block_timestamp", "index", "is_coinbase", *STATED.values())
# Columns that the tables have and that are not needed.
UNNEEDED = (
    "size", "stripped_size", "virtual_size", "version", "lock_time", "input_count",
    "output_count", "input_value", "output_value", "fee", "block_timestamp_month", "date",
    "last_modified", "join_splits", "value_balance", "type", "item_id", "item_timestamp",
)  # fmt: skip
OF_ENDS = {
    "index",
    "value",
    "type",
    "addresses",
    "address",
    "script_hex",
    "spent_transaction_hash",
    "spent_output_index",
}
FAULTS = (pa.ArrowException, OSError, MemoryError, OverflowError, ValueError, KeyError)


def is_parquet(path: Path) -> bool:
    """Tell a Parquet file by its first bytes."""
    try:
        with open(path, "rb") as file:
            return file.read(4) == MAGIC
    except OSError:
        return False


def parquet_batches(path: Path) -> Iterator[Batch]:
    """Read a file, some thousand transactions at a time."""
    try:
        size = path.stat().st_size
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            columns = _leaves(file, path)
            use = TableLayout("transactions", NEEDED, OPTIONAL).use(
                file.schema_arrow.names, UNNEEDED
            )
            total, done = file.metadata.num_rows, 0
            if not total:
                yield Batch({}, columns=use)
            for rows in file.iter_batches(AT_ONCE, columns=columns, use_threads=False):
                rows.validate(full=True)
                read = min(size * (done + len(rows)) // max(total, 1), size)
                batch = _batch(rows, path, done, read)
                yield batch if done else replace(batch, columns=use)
                done += len(rows)
    except FAULTS as error:
        raise InputError(f"{path}: cannot be read as Parquet: {error}") from None
    if done != total:
        raise InputError(f"{path}: {done} rows where {total} should be")


def _leaves(file: pq.ParquetFile, path: Path) -> list[str]:
    """Choose what to read: scripts take most of a file, and only their beginning is needed."""
    names = file.schema_arrow.names
    for name in (*NEEDED, *OPTIONAL):
        count = names.count(name)
        if count > 1 or (count == 0 and name in NEEDED):
            fault = "more than one column" if count else "no column"
            raise LedgerError(str(path), f"{fault} {name!r}", value=names)
    paths = (file.schema.column(n).path.split(".") for n in range(len(file.schema)))
    return [
        ".".join(parts)
        for parts in paths
        if parts[0] in OPTIONAL
        or (parts[0] in NEEDED and (len(parts) == 1 or OF_ENDS.intersection(parts[1:])))
    ]


def _batch(rows: pa.RecordBatch, path: Path, done: int, read: int) -> Batch:
    def place(row: int) -> str:
        return f"{path}: transaction {done + row + 1}"

    def column(name: str, kind: pa.DataType) -> pa.Array:
        here = name in rows.schema.names
        return rows.column(name) if here else pa.nulls(len(rows), kind)

    heads = Heads(
        place,
        hash=_text(rows.column("hash"), place, "hash"),
        block_number=_numbers(rows.column("block_number"), place, "block_number"),
        block_hash=_text(column("block_hash", TEXT), place, "block_hash"),
        block_timestamp=_times(column("block_timestamp", NUMBER), place),
        index=_numbers(column("index", NUMBER), place, "index"),
        is_coinbase=_cast(column("is_coinbase", FLAG), FLAG, place, "is_coinbase"),
        stated={name: _stated(column(field, NUMBER)) for name, field in STATED.items()},
    )
    inputs = _ends(rows.column("inputs"), place, "inputs")
    outputs = _ends(rows.column("outputs"), place, "outputs")
    return etl_batch(heads, inputs, outputs, read)


def _ends(lists: pa.Array, place: Place, name: str) -> Ends:
    parent, records = _flatten(lists, place, name)

    def at(row: int) -> str:
        return place(int(parent[row]) if len(parent) else 0)

    given = {records.type.field(n).name for n in range(records.type.num_fields)}

    def field(field: str) -> pa.Array:
        return pc.struct_field(records, field) if field in given else pa.nulls(len(records))

    one = "address" in given
    ends = {
        "index": _numbers(field("index"), at, f"index in {name}"),
        "value": _values(field("value"), at, f"value in {name}", one),
        "type": _text(field("type"), at, f"type in {name}"),
        "owner": _text(field("address"), at, "address") if one else _owners(field("addresses"), at),
    }
    if name == "outputs":
        return Ends(parent, **ends, script=_text(field("script_hex"), at, "script_hex"))
    spent = _text(field("spent_transaction_hash"), at, "spent_transaction_hash")
    index = _numbers(field("spent_output_index"), at, "spent_output_index")
    return Ends(parent, **ends, spent_hash=spent, spent_index=index)


def _flatten(lists: pa.Array, place: Place, name: str) -> tuple[RowNumbers, pa.Array]:
    """Give the elements of lists and the row of the list each is in."""
    # A table that was loaded without list inference has records of one list of one field instead.
    wrapped = pa.types.is_struct(lists.type) and lists.type.num_fields == 1
    lists = pc.struct_field(lists, [0]) if wrapped else lists
    if not (pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type)):
        raise LedgerError(place(0), f"{name} is no list", value=str(lists.type))
    parent = pc.list_parent_indices(lists).to_numpy().astype(np.int64)
    elements = pc.list_flatten(lists)
    if wrapped and pa.types.is_struct(elements.type) and elements.type.num_fields == 1:
        elements = pc.struct_field(elements, [0])
    if name in NEEDED and not pa.types.is_struct(elements.type):
        raise LedgerError(place(0), f"{name} are no records", value=str(elements.type))
    return parent, elements


def _owners(lists: pa.Array, at: Place) -> pa.Array:
    if pa.types.is_null(lists.type):
        return lists.cast(TEXT)
    parent, flat = _flatten(lists, at, "addresses")
    names = _text(flat, lambda row: at(int(parent[row])), "addresses")
    counts = np.bincount(parent, minlength=len(lists))
    first = np.full(len(lists), -1)
    first[parent[::-1]] = np.arange(len(parent))[::-1]
    single = names.take(pa.array(first, mask=first < 0))
    several = np.flatnonzero(counts > 1)
    if not len(several):
        return single
    chosen = single.to_pylist()
    for row in several.tolist():
        chosen[row] = owner_of(names[first[row] : first[row] + counts[row]].to_pylist())
    return pa.array(chosen, TEXT)


def _values(column: pa.Array, at: Place, field: str, aws: bool) -> pa.Array:
    if not pa.types.is_floating(column.type):
        if aws and not pa.types.is_null(column.type):
            what = f"{field} is stored as {column.type} beside one address; its unit is not known"
            raise LedgerError(at(0), what, fix="AWS has doubles, bitcoin-etl has `addresses`")
        return _numbers(column, at, field)
    if not aws:
        what = f"{field} is a floating-point number beside `addresses`; its unit is not known"
        raise LedgerError(at(0), what, fix="store whole satoshi")
    return _satoshi(column, at, field)


def _satoshi(column: pa.Array, at: Place, field: str) -> pa.Array:
    """Round doubles of bitcoin to satoshi; what is not close to one is refused."""
    whole = _rounded(column)
    lost = pc.and_(column.is_valid(), pc.fill_null(pc.less(whole, 0), True))
    row = pc.index(lost, True).as_py()
    if row >= 0:
        what = f"{field} is no whole number of satoshi from 0 to 2^51, in bitcoin"
        raise LedgerError(at(row), what, value=column[row].as_py())
    return whole


def _rounded(column: pa.Array) -> pa.Array:
    """Round doubles of bitcoin to satoshi; null where one is not close to a whole number."""
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    bitcoin = pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy()
    with np.errstate(invalid="ignore", over="ignore"):
        whole = np.rint(bitcoin * SATOSHI)
        good = np.abs(whole) <= MAX_EXACT
        good &= np.abs(whole / SATOSHI - bitcoin) <= 2 * np.spacing(np.abs(bitcoin))
    return pa.array(np.where(good, whole, 0).astype(np.int64), NUMBER, mask=~(valid & good))


def _stated(column: pa.Array) -> pa.Array:
    """Take counts and totals that are whole numbers; doubles are of bitcoin, as AWS has them.

    What is no such number is of no use to compare with; its neighbours are.
    """
    if pa.types.is_floating(column.type):
        return _rounded(column)
    if not (pa.types.is_integer(column.type) or pa.types.is_decimal(column.type)):
        return pa.nulls(len(column), NUMBER)
    try:
        return column.cast(NUMBER)
    except pa.ArrowException:
        return pa.array([_whole(value) for value in column.to_pylist()], NUMBER)


def _whole(value: int | Decimal | None) -> int | None:
    return None if value is None or value != int(value) else stated_number(int(value))


def _numbers(column: pa.Array, at: Place, field: str) -> pa.Array:
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind):
        return _cast(column, NUMBER, at, field)
    raise LedgerError(at(0), f"{field} is stored as {kind}, not as whole numbers")


def _times(column: pa.Array, at: Place) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        seconds = pa.timestamp("s", column.type.tz)
        return column.cast(seconds, safe=False).cast(NUMBER)
    return _numbers(column, at, "block_timestamp")


def _text(column: pa.Array, at: Place, field: str) -> pa.Array:
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    known = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)
    if known or pa.types.is_binary(kind):
        return _cast(column, TEXT, at, field)
    raise LedgerError(at(0), f"{field} is stored as {kind}, not as text")


def _cast(column: pa.Array, kind: pa.DataType, at: Place, field: str) -> pa.Array:
    """Cast a column without loss, or name the value that cannot be."""
    try:
        return column.cast(kind)
    except pa.ArrowException as error:
        fault = str(error)
    for row in range(len(column)):
        try:
            column[row : row + 1].cast(kind)
        except pa.ArrowException:
            what = f"{field} cannot be made {kind}: {fault}"
            raise LedgerError(at(row), what, value=_shown(column[row])) from None
    raise LedgerError(at(0), f"{field} cannot be made {kind}: {fault}")


def _shown(value: pa.Scalar) -> object:
    try:
        return value.as_py()
    except (ValueError, OverflowError):
        return str(value.type)
