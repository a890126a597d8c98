"""Columns of tables, checked and brought to one form, whatever types they came in.

Text, integers, decimals, doubles and timestamps are all met for one and the same column: a CSV
file has text only, Parquet has what its writer thought fit. Nothing and empty text are missing.
Files of every format and a ledger's own tables are checked here.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import LARGEST, Amounts, Bools, Floats, Ints
from coinhaze.errors import LedgerError
from coinhaze.ledger.batches import NUMBER
from coinhaze.ledger.checks import (
    EXPONENT,
    EXPORT_AGAIN,
    check_names,
    exact_amount,
    exact_amounts,
)
from coinhaze.ledger.text import MAX_TEXT, repeated_row, text_buffers

ADDRESS_DIGITS, HASH_DIGITS = 40, 64
PACKED = 32  # bytes of an amount
HIGHEST_BLOCK = 2**31 - 1
# A double holds every whole number below, and only some above.
DOUBLE_LIMIT = 2**53
# Seconds from 1970 to the beginning of the year 1, and to the end of the year 9999.
YEAR_1, YEAR_10000 = -62_135_596_800, 253_402_300_800
# Days from 2009, when ledgers began, to 2100: written as 20240301, and as spreadsheets number them.
_CALENDAR, _SPREADSHEET = (20_090_101, 21_001_231), (39_814, 73_415)
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_TRUE, _FALSE = ("1", "true"), ("0", "false")
_HEX = b"0123456789abcdef"
_LARGEST_DIGITS = str(LARGEST)
# What mends a row that an export gives otherwise.
_NEEDED = "every such row needs one: fill it in, or export the table again with it"
_PLAIN = "write plain digits; a spreadsheet may have changed them: export the table again"
_WHOLE_HEX = "cut short, padded or changed: export the table again, and give it unchanged"
# What mends a file that was joined from two.
HEADER_AGAIN = "remove this line, if the rows after it do not repeat those before"
_ISO = (
    r"^([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2}:[0-9]{2})"
    r"(?:\.[0-9]{1,9})?(?: ?UTC|Z|\+00:?00)?$"
)


@dataclass(frozen=True, eq=False)
class CheckedColumns:
    """Rows of one table; each method gives one column, or says which row is wrong and why."""

    table: pa.Table
    where: Callable[[int], str]

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def has(self, name: str) -> bool:
        """Tell whether the table has the column."""
        return name in self.table.column_names

    def plain(self, name: str) -> pa.Array:
        """Give a column in one piece, text as `string`, null where the text is empty."""
        if not self.has(name):
            return pa.nulls(len(self), pa.string())
        column = _one_piece(self.table[name])
        kind = column.type
        if pa.types.is_dictionary(kind):
            column = column.dictionary_decode()
            kind = column.type
        text = (pa.types.is_null, pa.types.is_large_string, pa.types.is_string_view)
        if any(is_kind(kind) for is_kind in text):
            column = pc.cast(column, pa.large_string() if _is_wide(column) else pa.string())
        if is_text(column.type) and pc.min(pc.binary_length(column)).as_py() == 0:
            return pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)
        return column

    def refuse(self, name: str, wrong: pa.Array, rule: str, fix: str = "") -> None:
        """Raise for the first row that is wrong; rows of which that is not known are right."""
        row = pc.index(wrong, True).as_py()
        if row >= 0:
            value = self.table[name][row]
            # Python's own times end in the year 9999.
            shown = value.value if pa.types.is_timestamp(value.type) else value.as_py()
            if isinstance(shown, bytes):
                shown = "0x" + shown[:HASH_DIGITS].hex()
            if isinstance(shown, str) and shown.strip().lower() == name.lower():
                raise LedgerError(self.where(row), "header repeated", fix=HEADER_AGAIN)
            raise LedgerError(self.where(row), f"{name} {rule}", value=shown, fix=fix)

    def refused_type(self, name: str, column: pa.Array, wanted: str) -> LedgerError:
        """Make the error that says what a column holds instead."""
        what = f"column {name} holds {column.type}, not {wanted}"
        return LedgerError(self.where(0), what)

    def require(self, name: str, column: pa.Array, needed: pa.Array | None = None) -> None:
        """Refuse a row that needs a value, as all do if none are named, and has none."""
        if not column.null_count:
            return
        gone = pc.is_null(column)
        row = pc.index(gone if needed is None else pc.and_(gone, needed), True).as_py()
        if row >= 0:
            raise LedgerError(self.where(row), f"{name} is missing", fix=_NEEDED)

    def texts(self, name: str) -> pa.Array:
        """Give words such as types, in lower case; null where missing."""
        column = self.plain(name)
        if not is_text(column.type):
            raise self.refused_type(name, column, "text")
        return pc.ascii_lower(column)

    def names(self, name: str, *, optional: bool = False, unique: bool = False) -> pa.Array:
        """Give names as they are written, without control characters; null where missing.

        Bytes, as some writers of Parquet keep addresses and hashes, are written as 0x and digits.
        """
        column = self._with_digits(name, self.plain(name))
        if not is_text(column.type):
            raise self.refused_type(name, column, "text")
        if not optional:
            self.require(name, column)
        if unique:
            self._refuse_repeats(name, column)
        if not column.null_count:
            return check_names(column, self.where, field=name)
        rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        check_names(column.drop_null(), lambda row: self.where(int(rows[row])), field=name)
        return column

    def _refuse_repeats(self, name: str, column: pa.Array) -> None:
        row = repeated_row(column)
        if row >= 0:
            value = column[row]
            fix = f"see row {pc.index(column, value).as_py()}"
            raise LedgerError(
                self.where(row), f"{name} is there twice", value=value.as_py(), fix=fix
            )

    def numbers(
        self, name: str, maximum: int, *, optional: bool = False, rule: str = ""
    ) -> pa.Int64Array:
        """Give whole numbers from 0 to `maximum`; null where missing, if that is allowed."""
        column = self.plain(name)
        kind = column.type
        rule = rule or f"is not a whole number from 0 to {maximum}"
        if is_text(kind):
            # A cast alone would take 0x1f for 31; regular expressions are slow.
            digits = pc.and_(
                pc.ascii_is_decimal(column), pc.less_equal(pc.binary_length(column), 18)
            )
            self.refuse(name, pc.invert(digits), rule, _PLAIN)
        elif pa.types.is_floating(kind):
            # pandas makes doubles of whole numbers where one of them is missing.
            column = pc.cast(column, pa.float64())
            whole = pc.and_(pc.equal(pc.floor(column), column), pc.less(column, DOUBLE_LIMIT))
            self.refuse(name, pc.invert(pc.and_(whole, pc.greater_equal(column, 0))), rule)
        elif pa.types.is_integer(kind):
            if kind == pa.uint64():
                self.refuse(name, pc.greater(column, pa.scalar(2**63 - 1, pa.uint64())), rule)
        else:
            raise self.refused_type(name, column, "whole numbers")
        numbers = pc.cast(column, pa.int64())
        low, high = pc.min_max(numbers).as_py().values()
        if low is not None and (low < 0 or high > maximum):
            self.refuse(name, pc.or_(pc.less(numbers, 0), pc.greater(numbers, maximum)), rule)
        if not optional:
            self.require(name, numbers)
        return numbers

    def whole(self, name: str, maximum: int, *, rule: str = "") -> Ints:
        """Give whole numbers from 0 to `maximum`, none missing; in four bytes where they stand so.

        These are not copied: a ledger's columns take as much memory as all that is built of them.
        """
        column = self.plain(name)
        if column.type == pa.int32() and not column.null_count:
            numbers: Ints = np.asarray(column)
            if numbers.min(initial=0) >= 0 and numbers.max(initial=0) <= maximum:
                return numbers
        return np.asarray(self.numbers(name, maximum, rule=rule))

    def signed(self, name: str) -> pa.Array:
        """Give whole numbers of 64 bits, below 0 too."""
        column = self.plain(name)
        if is_text(column.type):
            right = pc.match_substring_regex(column, "^-?[0-9]{1,18}$")
            rule = "is not a whole number of at most 18 digits"
            self.refuse(name, pc.invert(right), rule, _PLAIN)
        elif not pa.types.is_signed_integer(column.type):
            raise self.refused_type(name, column, "whole numbers")
        self.require(name, column)
        return pc.cast(column, pa.int64())

    def flags(self, name: str) -> pa.Array:
        """Give true and false, written so or as 1 and 0."""
        column = self.plain(name)
        self.require(name, column)
        if is_text(column.type):
            words = pc.ascii_lower(column)
            known = pc.is_in(words, value_set=pa.array([*_TRUE, *_FALSE]))
            self.refuse(name, pc.invert(known), "is neither 1 nor 0, true nor false")
            column = pc.is_in(words, value_set=pa.array(_TRUE))
        elif not pa.types.is_boolean(column.type):
            column = pc.equal(self.numbers(name, 1), 1)
        return column

    def hashes(self, name: str, *, optional: bool = False, start: str = "0x") -> pa.Array:
        """Give hashes of transactions or blocks, in lower case, with 0x or another `start`."""
        return self._hex(name, HASH_DIGITS, optional, start)

    def addresses(self, name: str, *, optional: bool = False) -> pa.Array:
        """Give addresses, in lower case (whatever their checksum) and with 0x."""
        return self._hex(name, ADDRESS_DIGITS, optional, "0x")

    def _with_digits(self, name: str, column: pa.Array) -> pa.Array:
        """Write bytes of addresses and hashes as text; other columns stay as they are."""
        if not _is_bytes(column.type):
            return column
        lengths = pa.array([ADDRESS_DIGITS // 2, HASH_DIGITS // 2], pa.int64())
        odd = pc.invert(pc.is_in(pc.cast(pc.binary_length(column), pa.int64()), lengths))
        rule = f"is neither an address of {lengths[0]} bytes nor a hash of {lengths[1]}"
        self.refuse(name, pc.and_(odd, pc.is_valid(column)), rule, _WHOLE_HEX)
        return _hexadecimal(column)

    def _hex(self, name: str, digits: int, optional: bool, start: str) -> pa.Array:
        column = self._with_digits(name, self.plain(name))
        if not is_text(column.type):
            raise self.refused_type(name, column, "hexadecimal text")
        if not optional:
            self.require(name, column)
        if _is_hex(column.drop_null() if column.null_count else column, digits, start):
            return column
        text = pc.ascii_lower(column)
        right = pc.match_substring_regex(text, f"^(0x)?[0-9a-f]{{{digits}}}$")
        self.refuse(name, pc.invert(right), f"is not {digits} hexadecimal digits", _WHOLE_HEX)
        bare = pc.utf8_slice_codeunits(text, -digits)
        return pc.binary_join_element_wise(start, bare, "") if start else bare

    def amounts(self, name: str, *, optional: bool = False) -> pa.Array:
        """Give exact amounts as decimal digits without leading zeros."""
        column = self.plain(name)
        kind = column.type
        if is_text(kind):
            digits = self._digits(name, column)
        elif pa.types.is_integer(kind):
            self.refuse(name, pc.less(column, 0), "is negative", "amounts are >= 0")
            digits = pc.cast(column, pa.string())
        elif pa.types.is_decimal(kind):
            digits = self._decimals(name, column)
        elif pa.types.is_floating(kind):
            digits = self._doubles(name, column)
        elif _is_bytes(kind):
            digits = _unpacked(self._packed(name, column))
        else:
            raise self.refused_type(name, column, "amounts")
        if not optional:
            self.require(name, digits)
        return digits

    def packed_amounts(self, name: str) -> pa.Array:
        """Give amounts of 32 bytes, the highest first, or 64 digits after 0x, as decimal digits."""
        column = self.plain(name)
        if is_text(column.type):
            digits = self._hex(name, 2 * PACKED, False, "")
            whole = pa.py_buffer(bytes.fromhex("".join(digits.to_pylist())))
            column = pa.Array.from_buffers(pa.binary(PACKED), len(digits), [None, whole])
        if not _is_bytes(column.type):
            raise self.refused_type(name, column, f"amounts of {PACKED} bytes")
        self.require(name, column)
        return _unpacked(self._packed(name, column))

    def _packed(self, name: str, column: pa.Array) -> pa.Array:
        wrong = pc.not_equal(pc.binary_length(column), PACKED)
        fix = "export or collect the table again, and give it unchanged"
        self.refuse(name, wrong, f"is not {PACKED} bytes, the highest first", fix)
        return pc.cast(column, pa.binary(PACKED))

    def scaled(self, name: str, places: int) -> pa.Array:
        """Give amounts written with a point as digits of the smallest unit, which has `places`.

        Nothing is rounded: a digit beyond the last place is refused.
        """
        column = self.plain(name)
        if pa.types.is_integer(column.type) or pa.types.is_decimal(column.type):
            column = pc.cast(column, pa.string())
        if not is_text(column.type):
            raise self.refused_type(name, column, "decimal numbers as text")
        self.require(name, column)
        right = pc.match_substring_regex(column, r"^([0-9]+\.?[0-9]*|\.[0-9]+)$")
        rule = "is not a decimal number >= 0"
        self.refuse(name, pc.match_substring_regex(column, EXPONENT), rule, EXPORT_AGAIN)
        fix = "write all digits, a point before decimals, and nothing between thousands"
        self.refuse(name, pc.invert(right), rule, fix)
        parts = pc.extract_regex(column, r"^(?P<whole>[0-9]*)\.?(?P<part>[0-9]*)$")
        part = pc.utf8_rtrim(pc.struct_field(parts, "part"), "0")
        long = pc.greater(pc.binary_length(part), places)
        fix = "give this currency's --decimals; an amount is never rounded"
        self.refuse(name, long, f"has more than {places} places after the point", fix)
        whole = pc.struct_field(parts, "whole")
        return self._digits(
            name, pc.binary_join_element_wise(whole, pc.utf8_rpad(part, places, "0"), "")
        )

    def exact(self, name: str) -> Amounts:
        """Give exact amounts of integers, digits or 32 bytes as numbers, none of them missing."""
        column = self.plain(name)
        kinds = (pa.types.is_integer, is_text, _is_packed)
        if len(column) and not any(is_kind(column.type) for is_kind in kinds):
            raise self.refused_type(
                name, column, "amounts: integers, decimal digits or 32 bytes, the highest first"
            )
        self.require(name, column)
        return exact_amounts(column, self.where, field=name)

    def probabilities(self, name: str) -> Floats:
        """Give probabilities, each from 0 to 1."""
        column = self.plain(name)
        if not pa.types.is_floating(column.type):
            raise self.refused_type(name, column, "probabilities")
        self.require(name, column)
        right = pc.and_(pc.greater_equal(column, 0.0), pc.less_equal(column, 1.0))
        self.refuse(name, pc.invert(right), "is no probability")
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)

    def times(self, name: str) -> pa.Array:
        """Give times as they are stored, whole numbers or timestamps; null where missing."""
        column = self.plain(name)
        if not pa.types.is_timestamp(column.type):
            return self.numbers(name, 2**63 - 1, optional=True)
        # Parquet has no whole seconds: they come back as thousands of milliseconds.
        with suppress(pa.ArrowInvalid):
            column = column.cast(pa.timestamp("s", column.type.tz))
        # Calendars of libraries wrap round for moments far away: compare plain counts.
        per_second, counts = _PER_SECOND[column.type.unit], column.cast(pa.int64())
        first, last = (
            min(max(year * per_second, -(2**63)), 2**63 - 1) for year in (YEAR_1, YEAR_10000)
        )
        wrong = pc.or_(pc.less(counts, first), pc.greater_equal(counts, last))
        row = pc.index(wrong, True).as_py()
        if row >= 0:
            what = f"{name} lies outside the years 1 to 9999"
            raise LedgerError(self.where(row), what, fix="check the unit")
        return column

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
        self.refuse(name, too_large, "is above 2^256 - 1", "check the unit")
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
            raise self.refused_type(name, column, "amounts of at most 76 digits") from None
        negative = pc.less(whole, pa.scalar(Decimal(0), whole.type))
        self.refuse(name, negative, "is negative", "amounts are >= 0")
        return pc.cast(whole, pa.string())

    def _doubles(self, name: str, column: pa.Array) -> pa.Array:
        column = pc.cast(column, pa.float64())
        whole = pc.equal(pc.floor(column), column)
        right = pc.and_(
            whole, pc.and_(pc.greater_equal(column, 0.0), pc.less(column, float(DOUBLE_LIMIT)))
        )
        self.refuse(
            name,
            pc.invert(right),
            "is a double that is no whole number from 0 to 2^53 - 1: its last digits are lost",
            "AWS keeps wei as doubles; take exact amounts from ethereum-etl or BigQuery",
        )
        return pc.cast(pc.cast(column, pa.int64()), pa.string())

    def moments(self, name: str) -> pa.Array:
        """Give seconds since 1970 of seconds, timestamps or text in UTC; null where missing."""
        column = self.plain(name)
        kind = column.type
        if pa.types.is_timestamp(kind):
            per_second = _PER_SECOND[kind.unit]
            ticks = pc.cast(column, pa.int64())
            seconds = pc.divide(ticks, per_second)  # towards 0: before 1970 is refused below
            wrong = pc.or_(pc.less(ticks, 0), pc.greater_equal(seconds, YEAR_10000))
            self.refuse(name, wrong, "is not a time from 1970 to 9999")
            return seconds
        if not is_text(kind):
            return self.unix_seconds(name)
        if pc.all(pc.equal(pc.binary_length(column), len("2021-04-01 12:00:00"))).as_py():
            # What most files have; anything odd is looked at more closely below.
            with suppress(pa.ArrowInvalid):
                return self._in_our_time(name, pc.cast(pc.cast(column, pa.timestamp("s")), NUMBER))
        plain = pc.match_substring_regex(column, "^[0-9]{1,12}$")
        if pc.all(plain).as_py() is not False:
            return self.unix_seconds(name)
        return self._calendar(name, column, plain)

    def unix_seconds(self, name: str) -> pa.Array:
        """Give whole numbers as seconds since 1970; refuse them if all are dates of another kind.

        There was no ledger in 1970, when all that looks like one of these would have been.
        """
        seconds = self.numbers(name, YEAR_10000 - 1, optional=True)
        known = np.asarray(seconds.drop_null())
        if not len(known):
            return seconds
        first, last = int(known.min()), int(known.max())
        kind = ""
        if first >= _SPREADSHEET[0] and last <= _SPREADSHEET[1]:
            kind = "a day as spreadsheets number it"
        elif first >= _CALENDAR[0] and last <= _CALENDAR[1]:
            month, day = known // 100 % 100, known % 100
            if np.all((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)):
                kind = "a date without signs between year, month and day"
        fix = "write times like 2024-03-01 12:00:00"
        self.refuse(name, pc.and_(pc.is_valid(seconds), bool(kind)), f"is {kind}", fix)
        return seconds

    def _calendar(self, name: str, column: pa.Array, plain: pa.Array) -> pa.Array:
        rule = "is no time: seconds since 1970, or like 2021-04-01 12:00:00 UTC"
        right = pc.or_(plain, pc.match_substring_regex(column, _ISO))
        self.refuse(name, pc.invert(right), rule)
        iso = pc.replace_substring_regex(column, _ISO, r"\1 \2")
        iso = pc.if_else(plain, pa.scalar(None, pa.string()), iso)
        seconds = pc.cast(self._parsed(name, iso, rule), pa.int64())
        numbers = pc.cast(pc.if_else(plain, column, pa.scalar(None, pa.string())), pa.int64())
        return self._in_our_time(name, pc.coalesce(seconds, numbers))

    def _in_our_time(self, name: str, seconds: pa.Array) -> pa.Array:
        wrong = pc.or_(pc.less(seconds, 0), pc.greater_equal(seconds, YEAR_10000))
        self.refuse(name, wrong, "is not a time from 1970 to 9999")
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


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a column holds text, be its offsets narrow or wide."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def flags_of(column: pa.Array) -> Bools:
    """Give true and false as an array.

    >>> flags_of(pa.array([True, False])).tolist()
    [True, False]
    """
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _is_packed(kind: pa.DataType) -> bool:
    """Tell whether a column holds amounts as 32 bytes each."""
    return bool(pa.types.is_fixed_size_binary(kind) and kind.byte_width == PACKED)


def _is_bytes(kind: pa.DataType) -> bool:
    kinds = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    return any(is_kind(kind) for is_kind in kinds)


def _hexadecimal(column: pa.Array) -> pa.Array:
    """Write bytes as 0x and digits, two a byte; null stays null.

    >>> _hexadecimal(pa.array([b"\\x01\\xfe", None])).to_pylist()
    ['0x01fe', None]
    """
    lengths = np.asarray(pc.fill_null(pc.binary_length(column), -1), np.int64)
    ends = np.cumsum(2 * lengths + 2)  # a null has no letters, not even 0x
    letters = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    begins = (ends - 2 * lengths - 2)[lengths >= 0]
    digits = np.ones(len(letters), np.bool_)
    digits[begins] = digits[begins + 1] = False
    letters[begins], letters[begins + 1] = ord("0"), ord("x")
    whole = b"".join(column.drop_null().to_pylist())
    letters[digits] = np.frombuffer(whole.hex().encode(), np.uint8)
    offsets = np.concatenate([[0], ends]).astype(np.int64)
    made = pa.LargeStringArray.from_buffers(
        len(column), pa.py_buffer(offsets), pa.py_buffer(letters)
    )
    made = made if len(letters) > MAX_TEXT else pc.cast(made, pa.string())
    gone = pc.is_null(column)
    return pc.if_else(gone, pa.scalar(None, made.type), made) if column.null_count else made


def _is_wide(column: pa.Array) -> bool:
    return bool(column.nbytes > MAX_TEXT)


def _one_piece(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)  # combining would copy it
    whole = column.combine_chunks()
    return whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole


def _is_hex(column: pa.Array, digits: int, start: str) -> bool:
    """Tell whether all texts are so many digits in lower case after `start`; null is none.

    Ten times faster than a regular expression, on what most columns of a dump are.
    """
    offsets, letters = text_buffers(column)
    width = len(start) + digits
    if np.any(np.diff(offsets) != width):
        return False
    rows = letters[int(offsets[0]) : int(offsets[-1])].reshape(-1, width)
    begins = rows[:, : len(start)] == np.frombuffer(start.encode(), np.uint8)
    return bool(begins.all()) and not rows[:, len(start) :].tobytes().translate(None, _HEX)


def _unpacked(column: pa.Array) -> pa.Array:
    """Write amounts of 32 bytes as digits; null stays null."""
    digits = Amounts.from_arrow(column.drop_null()).text()
    if not column.null_count:
        return digits
    rows = np.cumsum(column.is_valid().to_numpy(zero_copy_only=False)) - 1
    return digits.take(pa.array(rows, mask=column.is_null().to_numpy(zero_copy_only=False)))
