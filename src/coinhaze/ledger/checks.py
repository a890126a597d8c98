"""What every ledger must hold, checked on entry, whichever reader it came through."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.errors import LedgerError
from coinhaze.ledger.amounts import LARGEST, Amounts

Place = Callable[[int], str]

_DIGITS = re.compile("[0-9]{1,100}", re.ASCII)
_CONTROL = "[\\x00-\\x1f\\x7f]"


def exact_amounts(column: pa.Array | Sequence[object], place: Place, *, field: str) -> Amounts:
    """Turn decimal text or integers into exact amounts, or say which row is not one and why.

    >>> exact_amounts(["12", "1e3"], "row {}".format, field="amount")
    Traceback (most recent call last):
    coinhaze.errors.LedgerError: row 1: amount is not a whole number: '1e3' (write all digits, ...
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.Array) and pa.types.is_string(column.type):
        good = pc.fill_null(pc.match_substring_regex(column, "^[0-9]{1,18}$"), False)
        if pc.all(good, min_count=0).as_py():
            return Amounts.of(pc.cast(column, pa.int64()).to_numpy(zero_copy_only=False))
    values = column.to_pylist() if isinstance(column, pa.Array) else column
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
    is_int = isinstance(value, int) and not isinstance(value, bool)
    text = "" if value is None else str(value).strip() if isinstance(value, str) else str(value)
    if is_int or (isinstance(value, str) and _DIGITS.fullmatch(value)):
        number = int(value)  # type: ignore[call-overload]
        if number < 0:
            return "is negative", "amounts are >= 0"
        return ("is above 2^256 - 1", "check the unit") if number > LARGEST else None
    if text in ("", "\\N"):
        return "is missing", digits
    if text.lower().lstrip("+-") in {"nan", "inf", "infinity"}:
        return "is not a number", digits
    if re.fullmatch("-[0-9]+", text):
        return "is negative", "amounts are >= 0"
    if re.fullmatch("[0-9]+", text):
        return "is above 2^256 - 1", "check the unit"
    if re.fullmatch(r"[+-]?[0-9]*[.,]?[0-9]*([eE][+-]?[0-9]+)?", text):
        return "is not a whole number", digits
    return "is not a number", digits


def check_names(column: pa.Array | pa.ChunkedArray, place: Place, *, field: str) -> pa.Array:
    """Refuse names that are missing, empty or hold control characters."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    missing = pc.fill_null(pc.equal(column, ""), True)
    row = pc.index(missing, True).as_py()
    if row >= 0:
        raise LedgerError(place(row), f"{field} is missing", fix="every row names both accounts")
    row = pc.index(pc.match_substring_regex(column, _CONTROL), True).as_py()
    if row >= 0:
        value = column[row].as_py()
        raise LedgerError(place(row), f"{field} holds a control character", value=value)
    return column


def rows_of(count: int, what: str = "row") -> Place:
    """Name rows by number where no file stands behind them."""
    return lambda row: f"{what} {row}" if row < count else f"{what} {row} (past the end)"
