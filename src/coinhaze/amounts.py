"""Exact amounts of money in columns, to 2^256 - 1 and sums of them.

An amount is split into digits of base 2^32, lowest first, one int64 column a digit. Digits add up
column by column without overflow for up to 2^31 rows, and one pass of carries brings them back to
normal form: all but the last in [0, 2^32), the last one signed. So sums, differences and
comparisons are exact both for satoshi and for uint256 tokens, with the same few numpy calls;
only the number of columns differs. A column whose amounts, signs left out, add up to less than
2^61 needs no splitting: no sum over some of its rows, nor one of two such columns, overflows. Each
column lies in one piece of memory (Fortran order), so that numpy runs down it at full speed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coinhaze.amounts_kernels import add_by_group, move_by_group, take_rows

LARGEST = 2**256 - 1
DIGIT_BITS = 32
_MASK = (1 << DIGIT_BITS) - 1
_PACKED_DIGITS = 8  # 256 bits
_AT_ONCE = 1 << 15  # rows
_MAX_UNSPLIT = 2.0**61

Ints = npt.NDArray[np.signedinteger[Any]]  # int64, or int32 in values that are frozen
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Amounts:
    """A column of exact integers.

    >>> a = Amounts.of([5, 2**200, 0])
    >>> (a - Amounts.of([7, 1, 0])).ints()
    [-2, 1606938044258990275541962092341162602522202993782792835301375, 0]
    """

    digits: Ints

    def __post_init__(self) -> None:
        self.digits.setflags(write=False)

    @classmethod
    def of(cls, values: Iterable[int] | Ints) -> Amounts:
        """Build from Python integers or an integer array; negative ones are allowed."""
        if isinstance(values, np.ndarray) and values.dtype != np.uint64:
            return cls._from_int64(values.astype(np.int64, copy=False))
        values = [int(v) for v in values]
        if all(-(2**62) < v < 2**62 for v in values):
            return cls._from_int64(np.array(values, dtype=np.int64))
        width = max(-(-max(v.bit_length() for v in values) // DIGIT_BITS), 1)
        digits = np.empty((len(values), width), dtype=np.int64, order="F")
        for row, value in enumerate(values):
            for k in range(width - 1):
                digits[row, k] = value & _MASK
                value >>= DIGIT_BITS
            digits[row, width - 1] = value
        return cls(digits)

    @classmethod
    def _from_int64(cls, values: Ints) -> Amounts:
        return cls(_settled(values.reshape(-1, 1).copy()))

    @classmethod
    def zeros(cls, n: int) -> Amounts:
        """Build a column of n zeros."""
        return cls(np.zeros((n, 1), dtype=np.int64))

    @classmethod
    def concat(cls, parts: Sequence[Amounts]) -> Amounts:
        """Put columns below one another."""
        width = max((p.digits.shape[1] for p in parts), default=1)
        digits = np.empty((sum(len(p) for p in parts), width), dtype=np.int64, order="F")
        first = 0
        for part in parts:
            digits[first : first + len(part)] = part.widened(width)
            first += len(part)
        return cls(_settled(digits))

    def __len__(self) -> int:
        return len(self.digits)

    def __getitem__(self, row: int) -> int:
        return sum(int(d) << (DIGIT_BITS * k) for k, d in enumerate(self.digits[row]))

    def take(self, rows: Ints | Bools) -> Amounts:
        """Select rows by index or mask."""
        if rows.dtype == np.bool_ and rows.all():
            return self
        if rows.dtype == np.bool_:
            columns = [column[rows] for column in self.digits.T]
            one = len(columns) == 1
            return Amounts(columns[0].reshape(-1, 1) if one else _columns(columns))
        if rows.max(initial=-1) >= len(self) or rows.min(initial=0) < 0:
            raise IndexError(f"rows {rows.min()} to {rows.max()}, of {len(self)}")
        taken = np.empty((len(rows), self.digits.shape[1]), dtype=np.int64, order="F")
        for k in range(self.digits.shape[1]):
            take_rows(self.digits[:, k], rows, taken[:, k])
        return Amounts(_settled(taken))

    def __add__(self, other: Amounts) -> Amounts:
        width = max(self.digits.shape[1], other.digits.shape[1])
        return _carried(self.widened(width) + other.widened(width))

    def __neg__(self) -> Amounts:
        return _carried(-self.digits)

    def __sub__(self, other: Amounts) -> Amounts:
        width = max(self.digits.shape[1], other.digits.shape[1])
        return _carried(self.widened(width) - other.widened(width))

    def positive(self) -> Bools:
        """Tell which amounts are above zero."""
        anything = self._anything()
        anything &= self.digits[:, -1] >= 0
        return anything

    def _anything(self) -> Bools:
        anything: Bools = self.digits[:, 0] != 0
        for column in self.digits.T[1:]:
            anything |= column != 0
        return anything

    def signs(self) -> Ints:
        """Give -1, 0 or 1 for each amount."""
        return np.where(self.digits[:, -1] < 0, -1, self._anything())

    def carried(self) -> Amounts:
        """Bring digits that were added up elsewhere to normal form."""
        return _carried(self.digits.copy(order="F"))

    def where_positive(self) -> Amounts:
        """Replace negative amounts by zero."""
        return self.where(self.digits[:, -1] >= 0)

    def where(self, retained: Bools) -> Amounts:
        """Replace amounts that are not kept by zero."""
        if retained.all():
            return self
        digits = np.empty(self.digits.shape, dtype=np.int64, order="F")
        for k, column in enumerate(self.digits.T):
            np.multiply(column, retained, out=digits[:, k])
        return Amounts(digits)

    def maximum(self, other: Amounts) -> Amounts:
        """Give the larger of two amounts, row by row."""
        return self + (other - self).where_positive()

    def total_by(self, group: Ints, n: int) -> Amounts:
        """Add up the amounts of each group 0 .. n-1."""
        sums = np.zeros((n, self.digits.shape[1]), dtype=np.int64, order="F")
        for k in range(self.digits.shape[1]):
            add_by_group(group, self.digits[:, k], sums[:, k])
        return _carried(sums)

    def net_by(self, tail: Ints, head: Ints, n: int) -> Amounts:
        """Move each amount from one of n groups to another: what leaves each less what it meets.

        >>> Amounts.of([5, 3]).net_by(np.array([0, 1]), np.array([1, 2]), 3).ints()
        [5, -2, -3]
        """
        sums = np.zeros((n, self.digits.shape[1]), dtype=np.int64, order="F")
        for k in range(self.digits.shape[1]):
            move_by_group(tail, head, self.digits[:, k], sums[:, k])
        return _carried(sums)

    def floats(self) -> Floats:
        """Round amounts that are not negative to float64, relative error at most 2^-52."""
        # Low digits first: each partial sum is tiny beside the next digit, so its rounding is too.
        value = self.digits[:, 0].astype(np.float64)
        for k in range(1, self.digits.shape[1]):
            value += self.digits[:, k].astype(np.float64) * 2.0 ** (DIGIT_BITS * k)
        return value

    def ints(self) -> list[int]:
        """Give Python integers."""
        narrow = self._int64()
        if narrow is not None:
            return [int(v) for v in narrow]
        return [self[row] for row in range(len(self))]

    def text(self) -> pa.Array:
        """Give decimal digits as an Arrow string column."""
        narrow = self._int64()
        if narrow is not None:
            return pa.array(narrow).cast(pa.string())
        return pa.array([str(v) for v in self.ints()], pa.string())

    def to_arrow(self) -> pa.Array:
        """Give int64 where every amount fits, decimal text otherwise."""
        narrow = self._int64()
        return self.text() if narrow is None else pa.array(narrow)

    def packed(self) -> pa.Array:
        """Give int64 where every amount fits, else 32 bytes each, the highest first.

        >>> len(Amounts.of([2**200]).packed()[0].as_py())
        32
        """
        narrow = self._int64()
        if narrow is not None:
            return pa.array(narrow)
        digits = self.widened(max(self.digits.shape[1], _PACKED_DIGITS))
        if np.any(digits[:, _PACKED_DIGITS:]) or np.any(digits < 0):
            return self.text()
        words = np.empty((len(self), _PACKED_DIGITS), dtype=">u4")
        words[:, ::-1] = digits[:, :_PACKED_DIGITS]
        return pa.Array.from_buffers(
            pa.binary(4 * _PACKED_DIGITS), len(self), [None, pa.py_buffer(words)]
        )

    @classmethod
    def from_arrow(cls, column: pa.Array | pa.ChunkedArray) -> Amounts:
        """Read what `to_arrow` or `packed` gives: integers, digits or bytes, without nulls."""
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if pa.types.is_integer(column.type):
            return cls.of(np.asarray(column))
        if pa.types.is_fixed_size_binary(column.type):
            return cls._unpacked(column)
        return cls.of([int(v) for v in column.to_pylist()])

    @classmethod
    def _unpacked(cls, column: pa.Array) -> Amounts:
        assert column.type.byte_width == 4 * _PACKED_DIGITS
        first = column.offset * _PACKED_DIGITS
        words = np.frombuffer(column.buffers()[1] or b"", dtype=">u4")
        words = words[first : first + len(column) * _PACKED_DIGITS].reshape(-1, _PACKED_DIGITS)
        width = max((k + 1 for k in range(_PACKED_DIGITS) if words[:, -1 - k].any()), default=1)
        return cls(_columns([words[:, -1 - k] for k in range(width)]))

    def _int64(self) -> Ints | None:
        if self.digits.shape[1] == 1:
            return self.digits[:, 0]
        top = self.digits[:, 1]
        if np.any(self.digits[:, 2:]) or np.any((top >= 1 << 31) | (top < -(1 << 31))):
            return None
        return self.digits[:, 0] + (self.digits[:, 1] << DIGIT_BITS)

    def widened(self, width: int) -> Ints:
        """Give the digits in at least `width` columns, in normal form if there are new ones."""
        have = self.digits.shape[1]
        if have >= width:
            return self.digits
        wide = np.zeros((len(self), width), dtype=np.int64, order="F")
        wide[:, :have] = self.digits
        # The last digit is signed and unbounded: bring it to normal form before others follow it.
        return _carry(wide)


def _columns(digits: Sequence[Ints]) -> Ints:
    """Put digits side by side, each digit's column in one piece of memory."""
    side_by_side = np.empty((len(digits[0]), len(digits)), dtype=np.int64, order="F")
    for k, column in enumerate(digits):
        side_by_side[:, k] = column
    return side_by_side


def _carry(digits: Ints) -> Ints:
    # Some rows at a time, so that what numpy makes on the way stays in the processor's cache.
    for first in range(0, len(digits), _AT_ONCE):
        some = digits[first : first + _AT_ONCE]
        for k in range(digits.shape[1] - 1):
            some[:, k + 1] += some[:, k] >> DIGIT_BITS
            some[:, k] &= _MASK
    return digits


def _carried(digits: Ints) -> Amounts:
    return Amounts(_settled(_carry(digits)))


def _settled(digits: Ints) -> Ints:
    """Add a column where sums of the top one could overflow."""
    top = digits[:, -1]
    if not len(top) or (top.max() <= _MASK and top.min() >= -_MASK):
        return digits
    if digits.shape[1] == 1 and _sum_of_sizes(top) < _MAX_UNSPLIT:
        return digits
    wide = np.zeros((len(digits), digits.shape[1] + 1), dtype=np.int64, order="F")
    wide[:, :-1] = digits
    return _carry(wide)


def _sum_of_sizes(column: Ints) -> float:
    # As floats: their rounding is nothing beside the room that is left.
    parts = range(0, len(column), _AT_ONCE)
    return float(sum(np.abs(column[k : k + _AT_ONCE].astype(np.float64)).sum() for k in parts))
