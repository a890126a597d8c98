"""Times of rows: seconds since 1970 (or thousandths), ISO 8601 or timestamps, to the nanosecond."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Ints
from coinhaze.errors import LedgerError
from coinhaze.formats.tabular.arrow_columns import YEAR_10000, CheckedColumns
from coinhaze.ledger.batches import NUMBER

_SECONDS, _MILLISECONDS = "^[0-9]{1,11}$", "^[0-9]{13}$"
_ZONE = r"(?: ?UTC|[zZ]|[+-][0-9]{2}(?::?[0-9]{2})?)$"
_FIX = "all rows alike: seconds since 1970, or ISO 8601"
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@dataclass(frozen=True, eq=False)
class Instants:
    """Moments by row: whole seconds since 1970, null where not told, and nanoseconds beyond."""

    seconds: pa.Array
    nanos: Ints

    def key(self) -> Ints:
        """Give numbers that sort as the moments do; what is not told is 0."""
        seconds = np.asarray(pc.fill_null(self.seconds, 0), dtype=np.int64)
        if not self.nanos.any():
            return seconds
        if np.abs(seconds).max(initial=0) < 9 * 10**9:
            return seconds * 10**9 + self.nanos
        # Beyond the year 2255 nanoseconds do not fit: their ranks do.
        by_time = np.lexsort((self.nanos, seconds))
        rises = (np.diff(seconds[by_time]) != 0) | (np.diff(self.nanos[by_time]) != 0)
        rank = np.empty(len(seconds), dtype=np.int64)
        rank[by_time] = np.concatenate(([0], np.cumsum(rises)))
        return rank

    def take(self, rows: Ints) -> Instants:
        """Choose some rows."""
        return Instants(self.seconds.take(pa.array(rows)), self.nanos[rows])

    @classmethod
    def joined(cls, parts: list[Instants]) -> Instants:
        """Put the moments of several pieces one after the other."""
        seconds = pa.concat_arrays([pa.array([], NUMBER), *(p.seconds for p in parts)])
        return cls(seconds, np.concatenate([np.zeros(0, np.int64), *(p.nanos for p in parts)]))


def instants(columns: CheckedColumns, name: str | None) -> Instants:
    """Read the times in a column; null where there are none."""
    n = len(columns)
    if name is None:
        return Instants(pa.nulls(n, NUMBER), np.zeros(n, np.int64))
    column = columns.plain(name)
    if pa.types.is_date(column.type):
        column = pc.cast(column, pa.timestamp("s"))
    if pa.types.is_string(column.type):
        return _of_text(columns, name, column)
    if pa.types.is_timestamp(column.type):
        per = _PER_SECOND[column.type.unit]
        ticks = pc.cast(column, NUMBER)
        wrong = pc.or_(pc.less(ticks, 0), pc.greater_equal(pc.divide(ticks, per), YEAR_10000))
        columns.refuse(name, wrong, "is not a time from 1970 to 9999")
        return _split(ticks, per)
    if pa.types.is_integer(column.type):
        low, high = pc.min_max(column).as_py().values()
        if low is not None and low >= 10**12 and high < 10**13:
            return _split(pc.cast(column, NUMBER), 1000)
    return Instants(columns.numbers(name, YEAR_10000 - 1, optional=True), np.zeros(n, np.int64))


def _split(ticks: pa.Array, per: int) -> Instants:
    """Part ticks into seconds, rounded down, and nanoseconds."""
    if per == 1:
        return Instants(ticks, np.zeros(len(ticks), np.int64))
    known = np.asarray(pc.fill_null(ticks, 0), dtype=np.int64)
    seconds, rest = np.divmod(known, per)
    unknown = None if not ticks.null_count else np.asarray(ticks.is_null())
    return Instants(pa.array(seconds, NUMBER, mask=unknown), rest * (10**9 // per))


def _of_text(columns: CheckedColumns, name: str, text: pa.Array) -> Instants:
    in_seconds = pc.match_substring_regex(text, _SECONDS)
    if pc.all(in_seconds).as_py() is not False:
        return _split(pc.cast(text, NUMBER), 1)
    if pc.all(pc.match_substring_regex(text, _MILLISECONDS)).as_py():
        return _split(pc.cast(text, NUMBER), 1000)
    iso = _iso(text)
    # Arrow rounds nothing: more digits than its unit has are an error.
    for unit in ("us", "ns"):
        try:
            return _split(
                pc.cast(pc.cast(iso, pa.timestamp(unit, "UTC")), NUMBER), _PER_SECOND[unit]
            )
        except pa.ArrowInvalid:
            continue
    raise _fault(columns, name, text)


def _iso(text: pa.Array) -> pa.Array:
    """Write ISO 8601 as Arrow reads it; what names no zone is UTC, a date alone its beginning."""
    dates = pc.match_substring_regex(text, "^[0-9]{4}-[0-9]{2}-[0-9]{2}$")
    zoned = pc.and_not(pc.match_substring_regex(text, _ZONE), dates)
    text = pc.if_else(dates, pc.binary_join_element_wise(text, "T00:00:00Z", ""), text)
    local = pc.and_not(pc.invert(zoned), dates)
    text = pc.if_else(local, pc.binary_join_element_wise(text, "Z", ""), text)
    text = pc.replace_substring_regex(text, " ?UTC$", "Z")
    text = pc.replace_substring_regex(text, "([0-9]) ?([+-][0-9]{2})$", r"\1\2:00")
    return pc.replace_substring_regex(text, "([0-9]) ([+-][0-9]{2}:?[0-9]{2})$", r"\1\2")


def _fault(columns: CheckedColumns, name: str, text: pa.Array) -> LedgerError:
    """Find the first row that is no time, or is written in another way than the first."""
    values = text.to_pylist()
    first = next(v for v in values if v is not None)
    for length, rule in ((range(1, 12), "seconds"), ((13,), "thousandths of seconds")):
        if first.isascii() and first.isdigit() and len(first) in length:
            for row, value in enumerate(values):
                if value is not None and not (value.isdigit() and len(value) in length):
                    what = f"{name} is not {rule} since 1970"
                    return LedgerError(columns.where(row), what, value=value, fix=_FIX)
    for row, value in enumerate(values):
        if value is not None and not _is_iso(value):
            what = f"{name} is not like 2021-02-01T12:00:00Z"
            return LedgerError(columns.where(row), what, value=value, fix=_FIX)
    what = f"{name}: nanoseconds beside years that they cannot count"
    return LedgerError(columns.where(0), what, value=first, fix=_FIX)


def _is_iso(value: str) -> bool:
    for unit in ("us", "ns"):
        try:
            pc.cast(_iso(pa.array([value])), pa.timestamp(unit, "UTC"))
        except pa.ArrowInvalid:
            continue
        return True
    return False
