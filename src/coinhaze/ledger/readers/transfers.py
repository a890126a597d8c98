"""transfers.csv: a header with from, to, amount and an optional time; rows in ledger order."""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.errors import LedgerError
from coinhaze.ledger.accounts import AccountLedger
from coinhaze.ledger.checks import Place
from coinhaze.ledger.readers.csv_table import line_of, read_columns

COLUMNS = ("from", "to", "amount")


def recognises(head: bytes) -> bool:
    """Tell whether the first line is a header with the three columns."""
    lines = head.splitlines()
    names = [n.strip().strip(b'"') for n in lines[0].split(b",")] if lines else []
    return all(column.encode() in names for column in COLUMNS)


def read(paths: list[Path], *, complete: bool = False) -> AccountLedger:
    """Read the files one after the other as one ledger."""
    tables = [read_columns(path, COLUMNS, optional=["time"]) for path in paths]
    place = _places(paths, [len(t) for t in tables])
    some_time = any("time" in t.column_names for t in tables)
    # A file without times has rows of unknown time.
    table = pa.concat_tables(tables, promote_options="default").combine_chunks()
    return AccountLedger.from_columns(
        table["from"],
        table["to"],
        table["amount"],
        times=_times(table["time"], place) if some_time else None,
        place=place,
    )


def _places(paths: list[Path], lengths: list[int]) -> Place:
    starts = [sum(lengths[:k]) for k in range(len(lengths))]

    def place(row: int) -> str:
        k = bisect_right(starts, row) - 1
        return f"{paths[k]}:{line_of(paths[k], row - starts[k])}"

    return place


def _times(column: pa.ChunkedArray, place: Place) -> pa.Array:
    return times_of(pc.if_else(pc.equal(column, ""), None, column).combine_chunks(), place)


def times_of(text: pa.Array, place: Place) -> pa.Array:
    """Read seconds since 1970 or ISO 8601, all rows alike; null is unknown."""
    seconds = pc.match_substring_regex(text, "^[0-9]{1,11}$")
    if pc.all(seconds).as_py() is not False:
        return pc.cast(pc.cast(text, pa.int64()), pa.timestamp("s", "UTC"))
    first = next(v for v in text.to_pylist() if v is not None)
    in_seconds = first.isascii() and first.isdigit()
    for row, value in enumerate(text.to_pylist()):
        if value is not None and (in_seconds or not _is_iso(value)):
            if in_seconds and seconds[row].as_py():
                continue
            rule = "seconds since 1970" if in_seconds else "like 2021-02-01T12:00:00Z"
            fix = "all rows alike: seconds since 1970, or ISO 8601"
            raise LedgerError(place(row), f"time is not {rule}", value=value, fix=fix)
    return pc.cast(_instants(text), pa.timestamp("s", "UTC"), safe=False)


def _instants(text: pa.Array) -> pa.Array:
    """Read ISO 8601; what names no zone is UTC, a date alone its first moment."""
    zoned = pc.match_substring_regex(text, "([zZ]|[+-][0-9]{2}:?[0-9]{2})$")
    dates = pc.match_substring_regex(text, "^[0-9]{4}-[0-9]{2}-[0-9]{2}$")
    text = pc.if_else(dates, pc.binary_join_element_wise(text, "T00:00:00Z", ""), text)
    local = pc.and_not(pc.invert(zoned), dates)
    text = pc.if_else(local, pc.binary_join_element_wise(text, "Z", ""), text)
    return pc.cast(text, pa.timestamp("us", "UTC"))


def _is_iso(value: str) -> bool:
    try:
        _instants(pa.array([value]))
    except pa.ArrowInvalid:
        return False
    return True
