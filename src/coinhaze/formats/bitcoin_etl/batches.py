"""bitcoin-etl transactions, for Bitcoin and its relatives: JSON lines or Parquet.

Values are whole satoshi; the inputs have none before `enrich_transactions`. BigQuery's exports are
read too (whole numbers as text in JSON, NUMERIC in Parquet), and the Parquet files of AWS, whose
values are doubles of bitcoin.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from coinhaze.errors import LedgerError
from coinhaze.formats.bitcoin_etl.parquet import STATED, is_parquet, parquet_batches
from coinhaze.formats.bitcoin_etl.rows import Ends, Heads, etl_batch, owner_of
from coinhaze.formats.json.records import RecordFormat, Records
from coinhaze.formats.tabular.coin_rows import (
    ROWS,
    Place,
    at_parents,
    rows_of,
    texts,
    whole_numbers,
)
from coinhaze.ledger.batches import FLAG, NUMBER, Batch
from coinhaze.ledger.completeness import stated_number

Number = int | str


class _End(msgspec.Struct, gc=False):
    index: Number | None = None
    value: Number | None = None
    type: str | None = None
    addresses: list[str] | None = None
    address: str | None = None


class _Input(_End, gc=False):
    spent_transaction_hash: str | None = None
    spent_output_index: Number | None = None


class _Output(_End, gc=False):
    script_hex: str | None = None


class _Transaction(msgspec.Struct, gc=False):
    hash: str
    block_number: Number
    inputs: list[_Input]
    outputs: list[_Output]
    block_hash: str | None = None
    block_timestamp: Number | None = None
    index: Number | None = None
    is_coinbase: bool | None = None
    input_count: Number | float | None = None
    output_count: Number | float | None = None
    input_value: Number | float | None = None
    output_value: Number | float | None = None


_format: RecordFormat[_Transaction] = RecordFormat(
    "bitcoin-etl transaction",
    msgspec.json.Decoder(_Transaction | list[_Transaction]),
    hint="values are whole satoshi, ids are text",
)


def recognises(head: bytes) -> bool:
    """Tell whether the first bytes look like a transaction of bitcoin-etl in JSON.

    Parquet cannot be recognised by its first bytes: see `recognises_columns`.
    """
    return (
        head.lstrip().startswith((b"{", b"["))
        and b'"hash"' in head
        and b'"block_number"' in head
        and any(key in head for key in (b'"inputs"', b'"outputs"', b'"is_coinbase"'))
        and b'"from_address"' not in head
    )


def recognises_columns(names: Collection[str]) -> bool:
    """Tell by the names of its columns whether a Parquet file has the format."""
    return {"hash", "block_number", "inputs", "outputs"} <= set(names)


def batches(path: Path) -> Iterator[Batch]:
    """Read a file of JSON or Parquet, or the JSON files of a folder."""
    if is_parquet(path):
        yield from parquet_batches(path)
        return
    for found in _format.records(path, lambda t: len(t.inputs) + len(t.outputs), ROWS):
        yield _batch(found)


def _batch(found: Records[_Transaction]) -> Batch:
    records, place = found.records, found.place
    numbers = {
        name: whole_numbers([getattr(t, name) for t in records], place, field=name)
        for name in ("block_number", "index")
    }
    heads = Heads(
        place,
        hash=texts([t.hash for t in records], place, field="hash"),
        block_number=numbers["block_number"],
        block_hash=texts([t.block_hash for t in records], place, field="block_hash"),
        block_timestamp=_times([t.block_timestamp for t in records], place),
        index=numbers["index"],
        is_coinbase=pa.array([t.is_coinbase for t in records], FLAG),
        stated={
            name: pa.array([stated_number(getattr(t, field)) for t in records], NUMBER)
            for name, field in STATED.items()
        },
    )
    return etl_batch(heads, _inputs(records, place), _outputs(records, place), found.read)


def _inputs(records: Sequence[_Transaction], place: Place) -> Ends:
    ends = [i for t in records for i in t.inputs]
    at, columns = _ends([t.inputs for t in records], place, "input")
    hashes = [i.spent_transaction_hash for i in ends]
    numbers = [i.spent_output_index for i in ends]
    return Ends(
        **columns,
        spent_hash=texts(hashes, at, field="spent_transaction_hash"),
        spent_index=whole_numbers(numbers, at, field="spent_output_index"),
    )


def _outputs(records: Sequence[_Transaction], place: Place) -> Ends:
    at, columns = _ends([t.outputs for t in records], place, "output")
    scripts = [o.script_hex and o.script_hex[:2] for t in records for o in t.outputs]
    return Ends(**columns, script=texts(scripts, at, field="script_hex"))


def _ends(lists: Sequence[Sequence[_End]], place: Place, what: str) -> tuple[Place, dict[str, Any]]:
    """Give what inputs and outputs share, and where each of them stands."""
    parent = rows_of([len(some) for some in lists])
    ends = [end for some in lists for end in some]
    at = at_parents(parent, place)
    _refuse_aws(ends, at)
    return at, {
        "parent": parent,
        "index": whole_numbers([e.index for e in ends], at, field=f"index of an {what}"),
        "value": whole_numbers([e.value for e in ends], at, field=f"value of an {what}"),
        "owner": texts([owner_of(e.addresses) for e in ends], at, field="address"),
        "type": texts([e.type for e in ends], at, field="type"),
    }


def _refuse_aws(ends: Sequence[_End], at: Place) -> None:
    for row, end in enumerate(ends):
        if end.address is not None:
            what = "one address, as AWS has it with values in bitcoin, in JSON"
            raise LedgerError(at(row), what, value=end.address, fix="give AWS's own Parquet file")


def _times(values: Sequence[Number | None], place: Place) -> pa.Array:
    if str in set(map(type, values)):
        values = [_time(v, n, place) for n, v in enumerate(values)]
    return whole_numbers(values, place, field="block_timestamp")


def _time(value: Number | None, row: int, place: Place) -> Number | None:
    """Turn 2010-04-10 16:31:40 UTC, as BigQuery writes it, to seconds."""
    if not isinstance(value, str) or re.fullmatch("[0-9]+", value, re.ASCII):
        return value
    try:
        moment = datetime.fromisoformat(value.removesuffix(" UTC"))
        return int(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp())
    except (ValueError, OverflowError):
        raise LedgerError(place(row), "block_timestamp is not a time", value=value) from None
