"""Exact amounts of money in columns, to 2^256 - 1 and sums of them.

An amount is split into digits of base 2^32, lowest first, one int64 column a digit. Digits add up
column by column without overflow for up to 2^31 rows, and one pass of carries brings them back to
normal form: all but the last in [0, 2^32), the last one signed. So sums, differences and
comparisons are exact for satoshi and for uint256 tokens alike, with the same few numpy calls;
only the number of columns differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

LARGEST = 2**256 - 1
DIGIT_BITS = 32
_MASK = (1 << DIGIT_BITS) - 1

Ints = npt.NDArray[np.int64]
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
        digits = np.empty((len(values), width), dtype=np.int64)
        for row, value in enumerate(values):
            for k in range(width - 1):
                digits[row, k] = value & _MASK
                value >>= DIGIT_BITS
            digits[row, width - 1] = value
        return cls(digits)

    @classmethod
    def _from_int64(cls, values: Ints) -> Amounts:
        if len(values) == 0 or (values.max() <= _MASK and values.min() >= -_MASK):
            return cls(values.reshape(-1, 1).copy())
        return cls(np.stack([values & _MASK, values >> DIGIT_BITS], axis=1))

    @classmethod
    def zeros(cls, n: int) -> Amounts:
        """Build a column of n zeros."""
        return cls(np.zeros((n, 1), dtype=np.int64))

    @classmethod
    def concat(cls, parts: Sequence[Amounts]) -> Amounts:
        """Put columns below one another."""
        width = max((p.digits.shape[1] for p in parts), default=1)
        empty = np.zeros((0, width), dtype=np.int64)
        return cls(np.concatenate([empty, *(p._wide(width) for p in parts)]))

    def __len__(self) -> int:
        return len(self.digits)

    def __getitem__(self, row: int) -> int:
        return sum(int(d) << (DIGIT_BITS * k) for k, d in enumerate(self.digits[row]))

    def take(self, rows: Ints | Bools) -> Amounts:
        """Select rows by index or mask."""
        return Amounts(self.digits[rows])

    def __add__(self, other: Amounts) -> Amounts:
        width = max(self.digits.shape[1], other.digits.shape[1])
        return _carried(self._wide(width) + other._wide(width))

    def __neg__(self) -> Amounts:
        return _carried(-self.digits)

    def __sub__(self, other: Amounts) -> Amounts:
        return self + -other

    def positive(self) -> Bools:
        """Tell which amounts are above zero."""
        return self.signs() > 0

    def signs(self) -> Ints:
        """Give -1, 0 or 1 for each amount."""
        top = self.digits[:, -1]
        anything = np.any(self.digits != 0, axis=1)
        return np.where(top < 0, -1, anything.astype(np.int64))

    def where_positive(self) -> Amounts:
        """Replace negative amounts by zero."""
        return Amounts(np.where((self.digits[:, -1] < 0)[:, None], 0, self.digits))

    def maximum(self, other: Amounts) -> Amounts:
        """Give the larger of two amounts, row by row."""
        return self + (other - self).where_positive()

    def total_by(self, group: Ints, n: int) -> Amounts:
        """Add up the amounts of each group 0 .. n-1."""
        sums = np.zeros((n, self.digits.shape[1]), dtype=np.int64)
        for k in range(self.digits.shape[1]):
            np.add.at(sums[:, k], group, self.digits[:, k])
        return _carried(sums)

    def running(self, starts: Ints) -> Amounts:
        """Add up along the column, beginning anew at each index in `starts` (rising, first 0)."""
        sums = np.cumsum(self.digits, axis=0)
        if len(sums):
            base = np.where((starts > 0)[:, None], sums[np.maximum(starts, 1) - 1], 0)
            sums -= np.repeat(base, np.diff(np.append(starts, len(sums))), axis=0)
        return _carried(sums)

    def least_by(self, group: Ints, n: int) -> Amounts:
        """Give the least amount of each group 0 .. n-1, or zero if that is lower."""
        rows = np.lexsort((*self.digits.T, group))
        group = group[rows]
        first = rows[np.flatnonzero(np.diff(group, prepend=-1))]
        least = np.zeros((n, self.digits.shape[1]), dtype=np.int64)
        least[np.unique(group)] = self.digits[first]
        return -(-Amounts(least)).where_positive()

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
        return pa.array([str(v) for v in self.ints()], pa.string())

    def to_arrow(self) -> pa.Array:
        """Give int64 where every amount fits, decimal text otherwise."""
        narrow = self._int64()
        return self.text() if narrow is None else pa.array(narrow)

    @classmethod
    def from_arrow(cls, column: pa.Array | pa.ChunkedArray) -> Amounts:
        """Read what `to_arrow` gives: integers or decimal digits, without nulls."""
        if pa.types.is_integer(column.type):
            return cls.of(np.asarray(column))
        return cls.of([int(v) for v in column.to_pylist()])

    def _int64(self) -> Ints | None:
        if self.digits.shape[1] == 1:
            return self.digits[:, 0]
        top = self.digits[:, 1]
        if np.any(self.digits[:, 2:]) or np.any((top >= 1 << 31) | (top < -(1 << 31))):
            return None
        return self.digits[:, 0] + (self.digits[:, 1] << DIGIT_BITS)

    def _wide(self, width: int) -> Ints:
        have = self.digits.shape[1]
        if have == width:
            return self.digits
        wide = np.zeros((len(self), width), dtype=np.int64)
        wide[:, :have] = self.digits
        # The last digit is signed and unbounded: bring it to normal form before others follow it.
        return _carry(wide)


def _carry(digits: Ints) -> Ints:
    for k in range(digits.shape[1] - 1):
        digits[:, k + 1] += digits[:, k] >> DIGIT_BITS
        digits[:, k] &= _MASK
    return digits


def _carried(digits: Ints) -> Amounts:
    digits = _carry(digits)
    # The top digit of a sum may pass 32 bits; keep room so that the next sum cannot overflow.
    if len(digits) and int(np.abs(digits[:, -1]).max()) > _MASK:
        wide = np.zeros((len(digits), digits.shape[1] + 1), dtype=np.int64)
        wide[:, :-1] = digits
        return Amounts(_carry(wide))
    return Amounts(digits)
