"""What every ledger must hold, checked on entry, whichever reader it came through."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import LARGEST, Amounts
from coinhaze.errors import LedgerError
from coinhaze.ledger.text import text_buffers

Place = Callable[[int], str]
# A number that a spreadsheet has written, and what mends it.
EXPONENT = "[0-9.,][eE][+-]?[0-9]+$"
EXPORT_AGAIN = "export it again, as CSV and past any spreadsheet: they round long numbers"
TablePlace = Callable[[str, int | None], str]  # a table and a row of it, or the table itself

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
        if re.search(EXPONENT, text):
            return "is not a whole number in plain digits", EXPORT_AGAIN
        if re.fullmatch("[0-9]*,([0-9]{0,2}|[0-9]{4,})", text):
            fix = f"a decimal comma: write {text.replace(',', '.')}, and --decimals 2 for cents"
            return "is not a whole number in plain digits", fix
        how = (
            "; without commas, if they separate thousands"
            if "," in text
            else "; for tables of transfers --decimals N reads N places after a point (8 for "
            "bitcoin, 18 for ether)"
        )
        return "is not a whole number in plain digits", f"{digits}{how}"
    return "is not a number", digits


def check_name(name: object, where: str, *, field: str) -> str:
    """Refuse a name that is no text, empty, or holds control characters."""
    if not isinstance(name, str):
        raise LedgerError(where, f"{field} is not text", value=name)
    if not name:
        fix = "fill it in, or export it again; delete the line if it is empty or a total"
        raise LedgerError(where, f"{field} is missing", fix=fix)
    if _CONTROL.search(name):
        raise LedgerError(where, f"{field} holds a control character", value=name)
    return name


def whole_number(
    value: object, where: str, *, field: str, maximum: int = 2**63 - 1, fix: str = ""
) -> int:
    """Refuse what is not a whole number from 0 to `maximum`."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= maximum:
        what = f"{field} out of range: a whole number from 0 to {maximum}"
        raise LedgerError(where, what, value=value, fix=fix)
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
