"""Columns of Ethereum-like files, checked and brought to one form, whatever types they came in.

Text, integers, decimals, doubles and timestamps are all met for one and the same column: a CSV
file has text only, Parquet has what its writer thought fit. Nothing and empty text are missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.errors import LedgerError
from coinhaze.ledger.amounts import LARGEST
from coinhaze.ledger.checks import exact_amount

ADDRESS_DIGITS, HASH_DIGITS = 40, 64
HIGHEST_BLOCK = 2**31 - 1
# A double holds every whole number below, and only some above.
DOUBLE_LIMIT = 2**53
YEAR_10000 = 253_402_300_800
_LARGEST_DIGITS = str(LARGEST)
_ISO = (
    r"^([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2}:[0-9]{2})"
    r"(?:\.[0-9]{1,9})?(?: ?UTC|Z|\+00:?00)?$"
)


@dataclass(frozen=True, eq=False)
class Columns:
    """Some rows of a file; each method gives one column, or says which row is wrong and why."""

    table: pa.Table
    where: Callable[[int], str]

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def has(self, name: str) -> bool:
        """Tell whether the file has the column."""
        return name in self.table.column_names

    def _plain(self, name: str) -> pa.Array:
        """Give a column in one piece, text as `string`, null where the text is empty."""
        if not self.has(name):
            return pa.nulls(len(self), pa.string())
        column = self.table[name].combine_chunks()
        kind = column.type
        if pa.types.is_dictionary(kind):
            column = column.dictionary_decode()
            kind = column.type
        if pa.types.is_null(kind) or pa.types.is_large_string(kind):
            return pc.cast(column, pa.string())
        if pa.types.is_string(kind) and pc.any(pc.equal(column, "")).as_py():
            return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
        return column

    def _refuse(self, name: str, wrong: pa.Array, rule: str, fix: str = "") -> None:
        """Raise for the first row that is wrong; rows of which that is not known are right."""
        row = pc.index(wrong, True).as_py()
        if row >= 0:
            value = self.table[name][row]
            # Python's own times end in the year 9999.
            shown = value.value if pa.types.is_timestamp(value.type) else value.as_py()
            raise LedgerError(self.where(row), f"{name} {rule}", value=shown, fix=fix)

    def _refuse_missing(self, name: str, column: pa.Array, needed: pa.Array | None) -> None:
        gone = pc.is_null(column)
        row = pc.index(gone if needed is None else pc.and_(gone, needed), True).as_py()
        if row >= 0:
            raise LedgerError(self.where(row), f"{name} is missing")

    def _refuse_type(self, name: str, column: pa.Array, wanted: str) -> LedgerError:
        what = f"column {name} holds {column.type}, not {wanted}"
        return LedgerError(self.where(0), what)

    def require(self, name: str, column: pa.Array, needed: pa.Array) -> None:
        """Refuse a row that needs a value and has none."""
        self._refuse_missing(name, column, needed)

    def refuse(self, name: str, wrong: pa.Array, rule: str, fix: str = "") -> None:
        """Refuse the first row that is wrong."""
        self._refuse(name, wrong, rule, fix)

    def texts(self, name: str) -> pa.Array:
        """Give words such as types, in lower case; null where missing."""
        column = self._plain(name)
        if not pa.types.is_string(column.type):
            raise self._refuse_type(name, column, "text")
        return pc.ascii_lower(column)

    def numbers(self, name: str, most: int, *, optional: bool = False) -> pa.Array:
        """Give whole numbers from 0 to `most`; null where missing, if that is allowed."""
        column, kind = self._plain(name), self._plain(name).type
        rule = f"is not a whole number from 0 to {most}"
        if pa.types.is_string(kind):
            self._refuse(name, pc.invert(pc.match_substring_regex(column, "^[0-9]{1,18}$")), rule)
        elif pa.types.is_floating(kind):
            # pandas makes doubles of whole numbers where one of them is missing.
            whole = pc.and_(pc.equal(pc.floor(column), column), pc.less(column, DOUBLE_LIMIT))
            self._refuse(name, pc.invert(pc.and_(whole, pc.greater_equal(column, 0))), rule)
        elif pa.types.is_integer(kind):
            if kind == pa.uint64():
                self._refuse(name, pc.greater(column, pa.scalar(2**63 - 1, pa.uint64())), rule)
        else:
            raise self._refuse_type(name, column, "whole numbers")
        numbers = pc.cast(column, pa.int64())
        self._refuse(name, pc.or_(pc.less(numbers, 0), pc.greater(numbers, most)), rule)
        if not optional:
            self._refuse_missing(name, numbers, None)
        return numbers

    def hashes(self, name: str, *, optional: bool = False) -> pa.Array:
        """Give hashes of transactions or blocks, in lower case and with 0x."""
        return self._hex(name, HASH_DIGITS, optional)

    def addresses(self, name: str, *, optional: bool = False) -> pa.Array:
        """Give addresses, in lower case (whatever their checksum) and with 0x."""
        return self._hex(name, ADDRESS_DIGITS, optional)

    def _hex(self, name: str, digits: int, optional: bool) -> pa.Array:
        column = self._plain(name)
        if not pa.types.is_string(column.type):
            raise self._refuse_type(name, column, "hexadecimal text")
        text = pc.ascii_lower(column)
        right = pc.match_substring_regex(text, f"^(0x)?[0-9a-f]{{{digits}}}$")
        self._refuse(name, pc.invert(right), f"is not {digits} hexadecimal digits")
        if not optional:
            self._refuse_missing(name, text, None)
        bare = pc.equal(pc.binary_length(text), digits)
        if not pc.any(bare).as_py():
            return text
        return pc.if_else(bare, pc.binary_join_element_wise("0x", text, ""), text)

    def amounts(self, name: str, *, optional: bool = False) -> pa.Array:
        """Give exact amounts as decimal digits without leading zeros."""
        column = self._plain(name)
        kind = column.type
        if pa.types.is_string(kind):
            digits = self._digits(name, column)
        elif pa.types.is_integer(kind):
            self._refuse(name, pc.less(column, 0), "is negative", "amounts are >= 0")
            digits = pc.cast(column, pa.string())
        elif pa.types.is_decimal(kind):
            digits = self._decimals(name, column)
        elif pa.types.is_floating(kind):
            digits = self._doubles(name, column)
        else:
            raise self._refuse_type(name, column, "amounts")
        if not optional:
            self._refuse_missing(name, digits, None)
        return digits

    def _digits(self, name: str, column: pa.Array) -> pa.Array:
        right = pc.match_substring_regex(column, "^[0-9]+$")
        row = pc.index(right, False).as_py()
        if row >= 0:
            exact_amount(column[row].as_py(), self.where(row), field=name)
        if pc.any(pc.starts_with(column, "0")).as_py():
            column = pc.utf8_ltrim(column, "0")
            column = pc.if_else(pc.equal(column, ""), "0", column)
        length = pc.binary_length(column)
        long = pc.and_(pc.equal(length, 78), pc.greater(column, _LARGEST_DIGITS))
        too_large = pc.or_(pc.greater(length, 78), long)
        self._refuse(name, too_large, "is above 2^256 - 1", "check the unit")
        return column

    def _decimals(self, name: str, column: pa.Array) -> pa.Array:
        """BigQuery's NUMERIC and BIGNUMERIC have places after the point, all of them 0 here."""
        try:
            whole = pc.cast(column, pa.decimal256(76, 0))
        except pa.ArrowInvalid:
            for row, value in enumerate(column.to_pylist()):
                if value is not None and value != value.to_integral_value():
                    fix = "amounts are whole numbers of the smallest unit"
                    raise LedgerError(
                        self.where(row), f"{name} is not whole", value=str(value), fix=fix
                    ) from None
            raise self._refuse_type(name, column, "amounts of at most 76 digits") from None
        negative = pc.less(whole, pa.scalar(Decimal(0), whole.type))
        self._refuse(name, negative, "is negative", "amounts are >= 0")
        return pc.cast(whole, pa.string())

    def _doubles(self, name: str, column: pa.Array) -> pa.Array:
        column = pc.cast(column, pa.float64())
        whole = pc.equal(pc.floor(column), column)
        right = pc.and_(
            whole, pc.and_(pc.greater_equal(column, 0.0), pc.less(column, float(DOUBLE_LIMIT)))
        )
        self._refuse(
            name,
            pc.invert(right),
            "is a double that is no whole number from 0 to 2^53 - 1: its last digits are lost",
            "AWS keeps wei as doubles; take exact amounts from ethereum-etl or BigQuery",
        )
        return pc.cast(pc.cast(column, pa.int64()), pa.string())

    def moments(self, name: str) -> pa.Array:
        """Give seconds since 1970 of seconds, timestamps or text in UTC; null where missing."""
        column = self._plain(name)
        kind = column.type
        if pa.types.is_timestamp(kind):
            per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
            ticks = pc.cast(column, pa.int64())
            seconds = pc.divide(ticks, per_second)  # towards 0: before 1970 is refused below
            wrong = pc.or_(pc.less(ticks, 0), pc.greater_equal(seconds, YEAR_10000))
            self._refuse(name, wrong, "is not a time from 1970 to 9999")
            return seconds
        if not pa.types.is_string(kind):
            return self.numbers(name, YEAR_10000 - 1, optional=True)
        plain = pc.match_substring_regex(column, "^[0-9]{1,12}$")
        if pc.all(plain).as_py() is not False:
            return self.numbers(name, YEAR_10000 - 1, optional=True)
        return self._calendar(name, column, plain)

    def _calendar(self, name: str, column: pa.Array, plain: pa.Array) -> pa.Array:
        rule = "is no time: seconds since 1970, or like 2021-04-01 12:00:00 UTC"
        right = pc.or_(plain, pc.match_substring_regex(column, _ISO))
        self._refuse(name, pc.invert(right), rule)
        iso = pc.replace_substring_regex(column, _ISO, r"\1 \2")
        iso = pc.if_else(plain, pa.scalar(None, pa.string()), iso)
        seconds = pc.cast(self._parsed(name, iso, rule), pa.int64())
        numbers = pc.cast(pc.if_else(plain, column, pa.scalar(None, pa.string())), pa.int64())
        seconds = pc.coalesce(seconds, numbers)
        wrong = pc.or_(pc.less(seconds, 0), pc.greater_equal(seconds, YEAR_10000))
        self._refuse(name, wrong, "is not a time from 1970 to 9999")
        return seconds

    def _parsed(self, name: str, iso: pa.Array, rule: str) -> pa.Array:
        try:
            return pc.cast(iso, pa.timestamp("s"))
        except pa.ArrowInvalid:
            # A 31st of February: halve the rows until it is alone.
            first, count = 0, len(iso)
            while count > 1:
                half = count // 2
                try:
                    pc.cast(iso.slice(first, half), pa.timestamp("s"))
                except pa.ArrowInvalid:
                    count = half
                else:
                    first, count = first + half, count - half
            value = self.table[name][first].as_py()
            raise LedgerError(self.where(first), f"{name} {rule}", value=value) from None

    def places(self, name: str, separator: str, deepest: int) -> pa.Array:
        """Give places in a tree, as text such as 0,8,1 or as lists, in bytes that sort as they do.

        Four bytes a step, the highest first; the root has none. Text would put 10 before 2.
        """
        column = self._plain(name)
        kind = column.type
        if pa.types.is_list(kind) or pa.types.is_large_list(kind):
            steps, lengths = self._listed(name, column)
        elif pa.types.is_string(kind):
            steps, lengths = self._split(name, column, separator)
        else:
            raise self._refuse_type(name, column, "places in a tree")
        deep = np.flatnonzero(lengths > deepest)
        if len(deep):
            what = f"{name} is deeper than the {deepest} calls that are possible"
            raise LedgerError(self.where(int(deep[0])), what, value=int(lengths[deep[0]]))
        return _as_binary(steps, lengths)

    def _listed(self, name: str, column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
        steps = column.flatten()
        owners = np.repeat(np.arange(len(column)), lengths)
        if not pa.types.is_integer(steps.type):
            raise self._refuse_type(name, column, "lists of whole numbers")
        right = pc.and_(pc.greater_equal(steps, 0), pc.less(steps, 2**31))
        row = pc.index(pc.fill_null(right, False), False).as_py()
        if row >= 0:
            raise self._no_place(name, int(owners[row]))
        return steps.to_numpy(zero_copy_only=False), lengths.astype(np.int64)

    def _split(self, name: str, column: pa.Array, separator: str) -> tuple[np.ndarray, np.ndarray]:
        # Most traces stand at few places: look at each once.
        codes = pc.fill_null(column, "").dictionary_encode()
        texts = codes.dictionary.to_pylist()
        code = codes.indices.to_numpy(zero_copy_only=False)
        parted = [text.split(separator) if text else [] for text in texts]
        for number, steps in enumerate(parted):
            if not all(s.isascii() and s.isdigit() and len(s) < 10 for s in steps):
                raise self._no_place(name, int(np.flatnonzero(code == number)[0]))
        lengths = np.array([len(steps) for steps in parted], dtype=np.int64)
        flat = np.array([int(s) for steps in parted for s in steps], dtype=np.int64)
        starts = np.cumsum(lengths) - lengths
        taken = lengths[code]
        before = np.cumsum(taken) - taken
        index = np.arange(int(taken.sum())) - np.repeat(before - starts[code], taken)
        return flat[index], taken

    def _no_place(self, name: str, row: int) -> LedgerError:
        value = self.table[name][row].as_py()
        return LedgerError(self.where(row), f"{name} is no place in a tree of calls", value=value)


def _as_binary(steps: np.ndarray, lengths: np.ndarray) -> pa.Array:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(4 * lengths, out=offsets[1:])
    letters = pa.py_buffer(steps.astype(">u4").tobytes())
    return pa.Array.from_buffers(
        pa.binary(), len(lengths), [None, pa.py_buffer(offsets.tobytes()), letters]
    )
