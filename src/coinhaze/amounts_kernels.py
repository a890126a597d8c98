"""Hot loops over exact amounts: rows of digits of base 2^32, lowest first, as in `Amounts`.

The last digit is signed and may pass 32 bits. So one column of digits is plain int64 arithmetic,
and the same code serves amounts that fit 64 bits and amounts that do not.
Slow twins in the tests: Python's integers, wherever a caller is compared with them.
"""

from __future__ import annotations

import numpy as np

from coinhaze.kernels import kernel

DIGIT_BITS = 32
MASK = (1 << DIGIT_BITS) - 1


@kernel(inline="always")
def add(a, i, b, j, sign):
    """Add row j of b to row i of a, or take it away, and carry."""
    top = b.shape[1] - 1
    carry = 0
    for k in range(top):
        total = a[i, k] + sign * b[j, k] + carry
        a[i, k] = total & MASK
        carry = total >> DIGIT_BITS
    a[i, top] += sign * b[j, top] + carry


@kernel(inline="always")
def below(a, i, b, j):
    """Tell whether row i of a is less than row j of b."""
    for k in range(a.shape[1] - 1, -1, -1):
        if a[i, k] != b[j, k]:
            return a[i, k] < b[j, k]
    return False


@kernel(inline="always")
def copy(a, i, b, j):
    """Write row j of b over row i of a."""
    for k in range(a.shape[1]):
        a[i, k] = b[j, k]


@kernel(inline="always")
def is_zero(a, i):
    """Tell whether row i of a is zero."""
    anything = False
    for k in range(a.shape[1]):
        anything = anything or a[i, k] != 0
    return not anything


@kernel(inline="always")
def rounded(a, i):
    """Round row i of a, not negative, to float64: relative error at most 2^-52."""
    # Low digits first: each partial sum is tiny beside the next digit, so its rounding is too.
    value = 0.0
    scale = 1.0
    for k in range(a.shape[1]):
        value += a[i, k] * scale
        scale *= 2.0**DIGIT_BITS
    return value


def _add_at(group, values, sums):
    np.add.at(sums, group, values)


def _move_at(tail, head, values, sums):
    np.add.at(sums, tail, values)
    np.subtract.at(sums, head, values)


def _take(values, rows, found):
    np.take(values, rows, out=found)


@kernel(plain=_add_at)
def add_by_group(group, values, sums):
    """Add each value to the sum of its group."""
    for k in range(len(group)):
        sums[group[k]] += values[k]


@kernel(plain=_move_at)
def move_by_group(tail, head, values, sums):
    """Add each value to the sum of one group, and take it from that of another."""
    for k in range(len(tail)):
        sums[tail[k]] += values[k]
        sums[head[k]] -= values[k]


@kernel(plain=_take)
def take_rows(values, rows, found):
    """Copy the values of some rows, which must all be there."""
    for k in range(len(rows)):
        found[k] = values[rows[k]]
