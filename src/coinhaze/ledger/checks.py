"""What every ledger must hold, checked on entry, whichever reader it came through."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from numbers import Integral

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import LARGEST, Amounts, Bools, Floats, Ints
from coinhaze.errors import LedgerError
from coinhaze.ledger.text import MAX_TEXT, repeated_row, text_buffers

Place = Callable[[int], str]
TablePlace = Callable[[str, int | None], str]  # a table and a row of it, or the table itself

# Seconds from 1970 to the beginning of the year 1, and to the end of the year 9999.
YEARS = (-62_135_596_800, 253_402_300_800)

_DIGITS = re.compile("[0-9]{1,1000}", re.ASCII)
_CONTROL = re.compile("[\x00-\x1f\x7f]")


def exact_amounts(column: pa.Array | Sequence[object], place: Place, *, field: str) -> Amounts:
    """Turn decimal text or integers into exact amounts, or say which row is not one and why.

    >>> exact_amounts(["12", "-3"], "row {}".format, field="amount")
    Traceback (most recent call last):
    coinhaze.errors.LedgerError: row 1: amount is negative: '-3' (amounts are >= 0)
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.Array) and pa.types.is_string(column.type):
        good = pc.fill_null(pc.match_substring_regex(column, "^[0-9]{1,18}$"), False)
        if pc.all(good, min_count=0).as_py():
            return Amounts.of(pc.cast(column, pa.int64()).to_numpy(zero_copy_only=False))
    if isinstance(column, pa.Array) and pa.types.is_integer(column.type):
        numbers = column.drop_null().to_numpy(zero_copy_only=False)
        if len(numbers) == len(column) and (len(numbers) == 0 or numbers.min() >= 0):
            return Amounts.of(numbers)
    if isinstance(column, pa.Array) and pa.types.is_fixed_size_binary(column.type):
        return Amounts.from_arrow(column)
    try:
        values = column.to_pylist() if isinstance(column, pa.Array) else column
    except UnicodeDecodeError as error:
        raise LedgerError(f"column {field}", "is not UTF-8 text", value=str(error)) from None
    for row, value in enumerate(values):
        if amount_fault(value):
            exact_amount(value, place(row), field=field)
    return Amounts.of([int(v) for v in values])  # type: ignore[arg-type]


def exact_amount(value: object, where: str, *, field: str) -> int:
    """Turn one value into an exact amount, or raise the error that names its fault."""
    fault = amount_fault(value)
    if fault:
        raise LedgerError(where, f"{field} {fault[0]}", value=value, fix=fault[1])
    return int(value)  # type: ignore[call-overload, no-any-return]


def amount_fault(value: object) -> tuple[str, str] | None:
    """Say what keeps a value from being an amount, and what to do; nothing if it is one."""
    digits = "write all digits, in the smallest unit, such as satoshi or wei"
    is_int = isinstance(value, Integral) and not isinstance(value, bool)
    if is_int or (isinstance(value, str) and _DIGITS.fullmatch(value)):
        number = int(value)  # type: ignore[call-overload]
        if number < 0:
            return "is negative", "amounts are >= 0"
        return ("is above 2^256 - 1", "check the unit") if number > LARGEST else None
    text = "" if value is None else str(value)
    if text.strip() in ("", "\\N"):
        return "is missing", digits
    if text.lower().lstrip("+-") in {"nan", "inf", "infinity"}:
        return "is not a number", digits
    if re.fullmatch("-[0-9]+", text):
        return "is negative", "amounts are >= 0"
    if isinstance(value, str) and re.fullmatch("[0-9]+", text):
        return "is above 2^256 - 1", "check the unit"
    if re.fullmatch(r"[+-]?[0-9]*[.,]?[0-9]*([eE][+-]?[0-9]+)?", text):
        return "is not a whole number in plain digits", digits
    return "is not a number", digits


def check_name(name: object, where: str, *, field: str) -> str:
    """Refuse a name that is no text, empty, or holds control characters."""
    if not isinstance(name, str):
        raise LedgerError(where, f"{field} is not text", value=name)
    if not name:
        raise LedgerError(where, f"{field} is missing")
    if _CONTROL.search(name):
        raise LedgerError(where, f"{field} holds a control character", value=name)
    return name


def whole_number(value: object, where: str, *, field: str, most: int = 2**63 - 1) -> int:
    """Refuse what is not a whole number from 0 to `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise LedgerError(
            where, f"{field} out of range: a whole number from 0 to {most}", value=value
        )
    return value


def check_names(column: pa.Array | pa.ChunkedArray, place: Place, *, field: str) -> pa.Array:
    """Refuse names that are missing, empty or hold control characters."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    missing = pc.fill_null(pc.equal(pc.binary_length(column), 0), True)
    row = pc.index(missing, True).as_py()
    if row >= 0:
        check_name(column[row].as_py() or "", place(row), field=field)
    # One look at all letters; the slower search by row only where there is one to find.
    if _any_control(column):
        row = pc.index(pc.match_substring_regex(column, _CONTROL.pattern), True).as_py()
        if row >= 0:
            check_name(column[row].as_py(), place(row), field=field)
    return column


def _any_control(column: pa.Array, at_once: int = 1 << 20) -> bool:
    offsets, letters = text_buffers(column)
    for first in range(int(offsets[0]), int(offsets[-1]), at_once):
        some = letters[first : min(first + at_once, int(offsets[-1]))]
        if np.any((some < 0x20) | (some == 0x7F)):
            return True
    return False


def check_pool(pool: str, where: str, pools: Sequence[str]) -> int:
    """Give the number of a pool, refusing one that is not known."""
    if pool not in pools:
        raise LedgerError(where, "unknown pool", value=pool, fix=f"one of {', '.join(pools)}")
    return pools.index(pool)


def check_pool_values(values: Mapping[str, int], pools: Sequence[str]) -> None:
    """Refuse values of pools that are not known, and values that are no amounts."""
    for pool, value in values.items():
        check_pool(pool, "pool values", pools)
        exact_amount(value, f"pool {pool}", field="value")


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
        wide = pa.large_string() if data.nbytes > MAX_TEXT else pa.string()
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
