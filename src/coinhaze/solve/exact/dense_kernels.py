"""Hot loops of dense cores: elimination with error bounds, the inverse, its product with a tile.

Slow twin in the tests: tests/solve/test_core.py, dense inverses of numpy.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from coinhaze.solve.exact.factor_kernels import FAINT, PRODUCT, SUM, exact_sum
from coinhaze.solve.exact.stream_kernels import WIDTH

# So many rows of a tile stay in the second-level cache while all rows of the result pass.
DEPTH = 256


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nnan"})
def _add_row(ratio, ratio_error, above, row, row_errors):
    """Add a multiple of the row above; every entry's error grows by a rounding."""
    for j in range(len(row)):
        row[j] += ratio * above[j]
        worse = row_errors[j] if row_errors[j] > ratio_error else ratio_error
        row_errors[j] = worse + np.float32(SUM)


@njit(cache=True, nogil=True)
def _least(row):
    """Give the least entry above 0, or 1."""
    least = 1.0
    for value in row:
        if 0.0 < value < least:
            least = value
    return least


@njit(cache=True, nogil=True)
def eliminate_core(moves, errors, out, out_error):
    """Eliminate the states of a core in the order given, in place.

    `moves` holds the probabilities between them, 0 on the diagonal, and `out` those to leave.
    Afterwards the lower triangle holds multipliers and the upper one the moves at elimination.
    Gives pivots and a bound on each row's relative error, in units of 2^-53; pivots of 0 if a
    number is too small for floats.
    """
    c = len(out)
    pivot = np.empty(c)
    row_error = np.empty(c)
    faint = 1.0
    for k in range(c):
        above = moves[k, k + 1 :]
        row_error[k] = out_error[k]
        for j in range(k + 1, c):
            if moves[k, j] > 0.0:
                row_error[k] = max(row_error[k], errors[k, j])
        s = exact_sum(np.append(above, out[k]))
        pivot[k] = s
        least = _least(above)
        if out[k] > 0.0:
            least = min(least, out[k])
        for i in range(k + 1, c):
            if moves[i, k] == 0.0:
                continue
            ratio = moves[i, k] / s
            ratio_error = errors[i, k] + PRODUCT
            moves[i, k] = ratio
            faint = min(faint, ratio * least)
            if out[k] > 0.0:
                out_error[i] = max(out_error[i], ratio_error) + SUM
                out[i] += ratio * out[k]
            _add_row(ratio, np.float32(ratio_error), above, moves[i, k + 1 :], errors[i, k + 1 :])
            moves[i, i] = 0.0
    if faint < FAINT:
        pivot[:] = 0.0
    return pivot, row_error


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _mix(row, weight, other):
    for j in range(len(row)):
        row[j] += weight * other[j]


@njit(cache=True, nogil=True)
def invert_core(moves, pivot):
    """Give the inverse from what elimination left: the solve of every unit vector."""
    c = len(pivot)
    inverse = np.zeros((c, c))
    for i in range(c):
        inverse[i, i] = 1.0
        for k in range(i):
            if moves[i, k] > 0.0:
                _mix(inverse[i, : k + 1], moves[i, k], inverse[k, : k + 1])
    for i in range(c - 1, -1, -1):
        for j in range(i + 1, c):
            if moves[i, j] > 0.0:
                _mix(inverse[i], moves[i, j], inverse[j])
        for t in range(c):
            inverse[i, t] /= pivot[i]
    return inverse


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def multiply_tile(inverse, right, x):
    """Put inverse times right into x, both tiles of columns."""
    n = len(x)
    x[:] = 0.0
    for first in range(0, n, DEPTH):
        last = min(first + DEPTH, n)
        for i in range(n):
            row = x[i]
            weights = inverse[i]
            k = first
            while k + 4 <= last:
                a, b, c, d = right[k], right[k + 1], right[k + 2], right[k + 3]
                v0, v1, v2, v3 = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
                for t in range(WIDTH):
                    row[t] += (v0 * a[t] + v1 * b[t]) + (v2 * c[t] + v3 * d[t])
                k += 4
            while k < last:
                a = right[k]
                v0 = weights[k]
                for t in range(WIDTH):
                    row[t] += v0 * a[t]
                k += 1
