"""Typed columns out of Arrow tables that somebody else may have written.

Each function gives one column in the form ledgers hold it, or raises the error that names the
table, the row and the value.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Amounts, Bools, Floats, Ints
from coinhaze.errors import LedgerError
from coinhaze.ledger.checks import check_names, exact_amounts
from coinhaze.ledger.text import repeated_row

# Seconds from 1970 to the beginning of the year 1, and to the end of the year 9999.
YEARS = (-62_135_596_800, 253_402_300_800)

TablePlace = Callable[[str, int | None], str]  # a table and a row of it, or the table itself

_MOST_TEXT = 2**31 - 1  # bytes an Arrow string column can address


def default_place(table: str, row: int | None) -> str:
    """Say where a row stands in tables that are no files."""
    return table if row is None else f"{table} row {row}"


class TableColumns:
    """The columns of one table, taken out one by one and checked on the way."""

    def __init__(self, name: str, table: pa.Table, place: TablePlace = default_place) -> None:
        self.name = name
        self.table = table
        self.place = place

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def where(self, row: int | None = None) -> str:
        """Say where a row stands, or the table itself."""
        return self.place(self.name, row)

    def has(self, column: str) -> bool:
        """Tell whether an optional column is there."""
        return column in self.table.column_names

    def integers(self, column: str, *, most: int) -> Ints:
        """Take whole numbers from 0 to `most`."""
        return self._between(column, most, f"out of range: a whole number from 0 to {most}")

    def rows(self, column: str, other: TableColumns) -> Ints:
        """Take rows of another table by number."""
        return self._between(column, len(other) - 1, f"not one of the {len(other)} {other.name}")

    def _between(self, column: str, most: int, what: str) -> Ints:
        numbers = _numbers(self._whole(column, pa.types.is_integer, "whole numbers"))
        wrong = (numbers < 0) | (numbers > most)
        if wrong.any():
            row = int(wrong.argmax())
            raise LedgerError(self.where(row), f"{column} is {what}", value=int(numbers[row]))
        return numbers.astype(np.int64, copy=False)

    def signed_integers(self, column: str) -> Ints:
        """Take whole numbers that may be negative."""
        return _numbers(self._whole(column, pa.types.is_signed_integer, "whole numbers"))

    def optional_integers(self, column: str) -> pa.Int64Array:
        """Take whole numbers >= 0, null where unknown."""
        data = self._typed(column, pa.types.is_integer, "whole numbers")
        try:
            data = data.cast(pa.int64())
        except pa.ArrowInvalid:
            raise LedgerError(self.where(), f"{column} holds numbers above 2^63 - 1") from None
        row = pc.index(pc.less(data, 0), True).as_py()
        if row >= 0:
            raise LedgerError(self.where(row), f"{column} is negative", value=data[row].as_py())
        return data

    def times(self, column: str) -> pa.Array:
        """Take moments in time, null where unknown."""
        data = self._column(column)
        if not pa.types.is_timestamp(data.type):
            return self.optional_integers(column)
        # Parquet has no whole seconds: they come back as thousands of milliseconds.
        with suppress(pa.ArrowInvalid):
            data = data.cast(pa.timestamp("s", data.type.tz))
        # Calendars of libraries wrap round for moments far away: compare plain counts.
        a_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[data.type.unit]
        counts = data.cast(pa.int64())
        first, last = (min(max(y * a_second, -(2**63)), 2**63 - 1) for y in YEARS)
        wrong = pc.or_(pc.less(counts, first), pc.greater_equal(counts, last))
        row = pc.index(wrong, True).as_py()
        if row >= 0:
            raise LedgerError(
                self.where(row), f"{column} lies outside the years 1 to 9999", fix="check the unit"
            )
        return _one_array(data)

    def flags(self, column: str) -> Bools:
        """Take true and false."""
        data = self._whole(column, pa.types.is_boolean, "true or false")
        return np.asarray(data.to_numpy(zero_copy_only=False), dtype=np.bool_)

    def chances(self, column: str) -> Floats:
        """Take probabilities, each from 0 to 1."""
        data = self._whole(column, pa.types.is_floating, "probabilities")
        numbers = np.asarray(data.to_numpy(zero_copy_only=False), dtype=np.float64)
        wrong = ~((numbers >= 0) & (numbers <= 1))
        if wrong.any():
            row = int(wrong.argmax())
            raise LedgerError(
                self.where(row), f"{column} is no probability", value=float(numbers[row])
            )
        return numbers

    def names(self, column: str, *, unique: bool) -> pa.StringArray:
        """Take names: not empty, no control characters, each once if `unique`."""
        data = self.text(column)
        check_names(data, self.where, field=column)
        row = repeated_row(data) if unique else -1
        if row >= 0:
            first = pc.index(data, data[row]).as_py()
            raise LedgerError(
                self.where(row),
                f"{column} is there twice",
                value=data[row].as_py(),
                fix=f"see row {first}",
            )
        return data

    def text(self, column: str) -> pa.StringArray:
        """Take text as one Arrow array, null where missing."""
        data = self._column(column)
        if not _is_text(data.type):
            raise LedgerError(self.where(), f"{column} is not text", value=str(data.type))
        # Views of bytes that are no UTF-8 would only be found when somebody prints them.
        try:
            data.validate(full=True)
        except pa.ArrowInvalid as error:
            raise LedgerError(self.where(), f"{column} is damaged", value=str(error)) from None
        wide = pa.large_string() if data.nbytes > _MOST_TEXT else pa.string()
        return _one_array(data.cast(wide))

    def amounts(self, column: str) -> Amounts:
        """Take exact amounts: integers, decimal text or 32 bytes."""
        data = _one_array(self._column(column))
        kinds = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, is_packed)
        if not any(is_kind(data.type) for is_kind in kinds) and len(data):
            raise LedgerError(
                self.where(),
                f"{column} holds no amounts",
                value=str(data.type),
                fix="integers, decimal text or 32 bytes, the highest first",
            )
        if data.null_count:
            row = pc.index(data.is_null(), True).as_py()
            raise LedgerError(self.where(row), f"{column} is missing")
        return exact_amounts(data, self.where, field=column)

    def _column(self, column: str) -> pa.ChunkedArray:
        if not self.has(column):
            raise LedgerError(
                self.where(), f"no column {column!r}", value=self.table.column_names[:10]
            )
        data = self.table[column]
        return data.cast(data.type.value_type) if pa.types.is_dictionary(data.type) else data

    def _typed(self, column: str, is_kind: Callable[[pa.DataType], bool], what: str) -> pa.Array:
        data = self._column(column)
        if not is_kind(data.type):
            raise LedgerError(self.where(), f"{column} are not {what}", value=str(data.type))
        return _one_array(data)

    def _whole(self, column: str, is_kind: Callable[[pa.DataType], bool], what: str) -> pa.Array:
        data = self._typed(column, is_kind, what)
        if data.null_count:
            row = pc.index(data.is_null(), True).as_py()
            raise LedgerError(self.where(row), f"{column} is missing")
        return data


def is_packed(kind: pa.DataType) -> bool:
    """Tell whether a column holds amounts as 32 bytes each."""
    return bool(pa.types.is_fixed_size_binary(kind) and kind.byte_width == 32)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)  # combining would copy it
    whole = column.combine_chunks()
    return whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole


def _numbers(column: pa.Array) -> Ints:
    numbers: Ints = column.to_numpy(zero_copy_only=False)
    return numbers
