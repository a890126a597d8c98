"""Hot loops that stream B, a tile of columns at a time, into sums over each row.

Slow twin in the tests: the dense product N R of tests/solve/dense.py.
"""

from __future__ import annotations

import math

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

WIDTH = 64

_LN2 = math.log(2.0)
# log2(m) = 2/ln 2 (t + t^3/3 + t^5/5 + ...), t = (m-1)/(m+1), |t| < 0.172: 11 terms reach 2^-54.
_SERIES = tuple(2.0 / _LN2 / (2 * k + 1) for k in range(11))
_S0, _S1, _S2, _S3, _S4, _S5, _S6, _S7, _S8, _S9, _S10 = _SERIES
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
_MANTISSA = 0x000FFFFFFFFFFFFF


@intrinsic
def _bits_of(typing_context, value):
    def code(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), code


@intrinsic
def _float_of(typing_context, value):
    def code(context, builder, signature, args):
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), code


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def log2(p):
    """Give log2 of a normal float above 0, right to a few units in the last place."""
    bits = _bits_of(p)
    # The mantissa lands in [sqrt 1/2, sqrt 2), so that log2 keeps its digits near p = 1.
    shifted = bits - _SQRT_HALF_BITS
    exponent = shifted >> 52
    m = _float_of(bits - (exponent << 52))
    t = (m - 1.0) / (m + 1.0)
    u = t * t
    series = _S10
    series = series * u + _S9
    series = series * u + _S8
    series = series * u + _S7
    series = series * u + _S6
    series = series * u + _S5
    series = series * u + _S4
    series = series * u + _S3
    series = series * u + _S2
    series = series * u + _S1
    series = series * u + _S0
    return exponent + t * series


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def surprise(p):
    """Give -p log2 p; 0 for p = 0."""
    # Below the normal range the exponent trick fails, and p log2 p is nothing anyway.
    return -p * log2(p) if p > 2.3e-308 else 0.0


# Sums may be reordered here, so that they run on vector units; the order is fixed once compiled.
@njit(
    cache=True,
    nogil=True,
    error_model="numpy",
    fastmath={"reassoc", "contract", "nnan", "nsz"},
)
def row_sums(row, prior_bits, prior_top, width):
    """Add up entropy, mass and prior entropy of one row of a tile; also its largest entry."""
    h = 0.0
    m = 0.0
    q = 0.0
    best = 0.0
    for c in range(width):
        p = row[c]
        h += surprise(p)
        m += p
        q += p * prior_bits[c]
        t = p * prior_top[c]
        best = t if t > best else best
    return h, m, q, best


@njit(cache=True, nogil=True)
def start_tile(own, column, first, x, live):
    """Begin a tile: each state's probability to end at once in outcomes first, first + 1, ..."""
    for i in range(len(x)):
        k = column[i] - first
        live[i] = 0 <= k < WIDTH
        if live[i]:
            x[i] = 0.0
            x[i, k] = own[i]


@njit(cache=True, nogil=True, inline="always", error_model="numpy", fastmath={"contract"})
def _gather(row, fresh, begin, end, at, values, x, live):
    """Add up rows with their weights; `fresh` tells that the row holds nothing yet.

    Four rows at a time, so that the sum is read and written a quarter as often.
    """
    held = 0
    j0 = j1 = j2 = np.int64(0)
    v0 = v1 = v2 = values[0] if len(values) else row[0]
    for e in range(begin, end):
        j = at[e]
        if not live[j]:
            continue
        v = values[e]
        if held == 0:
            j0, v0 = j, v
        elif held == 1:
            j1, v1 = j, v
        elif held == 2:
            j2, v2 = j, v
        else:
            a, b, c, d = x[j0], x[j1], x[j2], x[j]
            if fresh:
                for k in range(WIDTH):
                    row[k] = (v0 * a[k] + v1 * b[k]) + (v2 * c[k] + v * d[k])
                fresh = False
            else:
                for k in range(WIDTH):
                    row[k] += (v0 * a[k] + v1 * b[k]) + (v2 * c[k] + v * d[k])
            held = -1
        held += 1
    if held > 0 and fresh:
        a = x[j0]
        for k in range(WIDTH):
            row[k] = v0 * a[k]
        fresh = False
    elif held > 0:
        a = x[j0]
        for k in range(WIDTH):
            row[k] += v0 * a[k]
    if held > 1:
        b = x[j1]
        for k in range(WIDTH):
            row[k] += v1 * b[k]
    if held > 2:
        c = x[j2]
        for k in range(WIDTH):
            row[k] += v2 * c[k]
    return fresh


@njit(cache=True, nogil=True, error_model="numpy")
def _tile_back(upper, upper_at, upper_v, pivot, start, end, needed, x, live):
    for i in range(end - 1, start - 1, -1):
        if not needed[i]:
            live[i] = False
            continue
        live[i] = not _gather(x[i], not live[i], upper[i], upper[i + 1], upper_at, upper_v, x, live)
        if live[i] and pivot[i] != 1.0:
            for c in range(WIDTH):
                x[i, c] /= pivot[i]


@njit(cache=True, nogil=True, error_model="numpy")
def solve_tile(
    lower, lower_at, lower_v, upper, upper_at, upper_v, pivot, block_start, first, last, needed,
    x, live,
):  # fmt: skip
    """Go forward and back through the blocks first .. last - 1, and forward through `last`.

    Rows that are not live are zero; those not needed are left out on the way back. Blocks end
    where x does: leaves have no row.
    """
    for b in range(first, min(last + 1, len(block_start) - 1)):
        start, end = block_start[b], block_start[b + 1]
        if end > len(x):
            break
        for i in range(start, end):
            live[i] = not _gather(
                x[i], not live[i], lower[i], lower[i + 1], lower_at, lower_v, x, live
            )
        if b < last:
            _tile_back(upper, upper_at, upper_v, pivot, start, end, needed, x, live)


@njit(cache=True, nogil=True, error_model="numpy")
def solve_tile_back(
    lower, lower_at, lower_v, upper, upper_at, upper_v, pivot, block_start, block, needed, x, live
):
    """Go back through one block."""
    start, end = block_start[block], block_start[block + 1]
    _tile_back(upper, upper_at, upper_v, pivot, start, end, needed, x, live)


@njit(cache=True, nogil=True, error_model="numpy")
def leaf_row(place, own, column, first, lower, lower_at, lower_v, x, live, row):
    """Put the row of a leaf together from those it moves to; tell whether anything is in it."""
    fresh = _gather(row, True, lower[place], lower[place + 1], lower_at, lower_v, x, live)
    k = column[place] - first
    if 0 <= k < WIDTH:
        if fresh:
            row[:] = 0.0
            fresh = False
        row[k] += own[place]
    return not fresh


@njit(cache=True, nogil=True, error_model="numpy")
def sum_tile(
    x, live, own, column, lower, lower_at, lower_v, excess, weighed, first, scored, elsewhere,
    prior_bits, prior_top, prior_powers, orders,
    entropy, mass, prior, top, top_column, powers, at_elsewhere,
):  # fmt: skip
    """Add each scored row of a solved tile up over its outcomes; `elsewhere` is kept apart.

    Leaves are put together here, in cache. `weighed` takes their part of x^T B.
    """
    width = min(WIDTH, len(prior_bits) - first)
    skip = elsewhere - first if first <= elsewhere < first + width else -1
    buffer = np.zeros(WIDTH)
    for r in range(len(scored)):
        entropy[r] = mass[r] = prior[r] = top[r] = at_elsewhere[r] = 0.0
        top_column[r] = -1
        powers[r] = 0.0
        row = buffer
        i = scored[r]
        if i >= len(x):
            if not leaf_row(i, own, column, first, lower, lower_at, lower_v, x, live, row):
                continue
            for c in range(width):
                weighed[c] += excess[i] * row[c]
        elif live[i]:
            row = x[i]
        else:
            continue
        for o in range(len(orders)):
            for c in range(width):
                if row[c] > 0:
                    powers[r, o] += row[c] ** orders[o] * prior_powers[o, first + c]
        if skip >= 0:
            at_elsewhere[r] = row[skip]
            row[skip] = 0.0
        entropy[r], mass[r], prior[r], best = row_sums(
            row, prior_bits[first:], prior_top[first:], width
        )
        if skip >= 0:
            row[skip] = at_elsewhere[r]
            best = max(best, row[skip] * prior_top[first + skip])
        if best > top[r]:
            for c in range(width):
                if row[c] * prior_top[first + c] == best:
                    top[r] = best
                    top_column[r] = first + c
                    break


@njit(cache=True, nogil=True)
def weigh_tile(x, live, excess):
    """Give x^T B for the outcomes of a solved tile, leaves left out."""
    total = np.zeros(WIDTH)
    for i in range(len(x)):
        if live[i] and excess[i] > 0:
            for c in range(WIDTH):
                total[c] += excess[i] * x[i, c]
    return total
