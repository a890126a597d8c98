"""Hot loops that stream B, a tile of columns at a time, into sums over each row.

Slow twin in the tests: the dense product N R of tests/solve/dense.py.
"""

from __future__ import annotations

import ctypes
import math
import struct

import numpy as np

from coinhaze.kernels import intrinsic, kernel
from coinhaze.solve.exact.pairs_kernels import two_sum

WIDTH = 64

_LN2 = math.log(2.0)
# log2(m) = 2/ln 2 (t + t^3/3 + t^5/5 + ...), t = (m-1)/(m+1), |t| < 0.172: 11 terms reach 2^-54.
_SERIES = tuple(2.0 / _LN2 / (2 * k + 1) for k in range(11))
_S0, _S1, _S2, _S3, _S4, _S5, _S6, _S7, _S8, _S9, _S10 = _SERIES
# e^u = 1 + u + u^2/2! + ..., |u| < 0.347: 11 powers reach 1e-14.
_E2, _E3, _E4, _E5, _E6, _E7, _E8, _E9, _E10, _E11 = (1 / math.factorial(k) for k in range(2, 12))
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD


def _cast(before, after):
    """Make the intrinsic that takes the bits of one type for those of another."""

    def make():
        from numba import extending, types

        @extending.intrinsic
        def cast(typing_context, value):
            def code(context, builder, signature, args):
                return builder.bitcast(args[0], context.get_value_type(signature.return_type))

            return getattr(types, after)(getattr(types, before)), code

        return cast

    return make


@intrinsic(_cast("float64", "int64"))
def _bits_of(value):
    return _INTEGER.unpack(_FLOAT.pack(value))[0]


@intrinsic(_cast("int64", "float64"))
def _float_of(bits):
    return _FLOAT.unpack(_INTEGER.pack(bits))[0]


_FLOAT, _INTEGER = struct.Struct("=d"), struct.Struct("=q")


def _compiled_fma():
    from numba import extending
    from numba.core.typing import signature as signature_of

    @extending.intrinsic
    def fma(typing_context, a, b, c):
        def code(context, builder, signature, args):
            return builder.fma(*args)

        return signature_of(a, a, a, a), code

    return fma


@intrinsic(_compiled_fma)
def fma(a, b, c):
    """Give a b + c, rounded once.

    Written out, so that the same operations are fused whatever the CPU: a compiler that may choose
    fuses where the CPU can, and last digits then depend on its kind.
    """
    if isinstance(a, np.float32):
        return np.float32(_SINGLE_FMA(a, b, c))
    return _DOUBLE_FMA(a, b, c)


def _c_fma(name, kind):
    """Find the function of the C library."""
    found = getattr(ctypes.CDLL(None), name)
    found.restype, found.argtypes = kind, (kind,) * 3
    return found


_DOUBLE_FMA, _SINGLE_FMA = _c_fma("fma", ctypes.c_double), _c_fma("fmaf", ctypes.c_float)


@kernel(inline="always", error_model="numpy")
def _split(p):
    """Give e and t with log2 p = e + 2 artanh(t) / ln 2, for a normal float above 0."""
    bits = _bits_of(p)
    # The mantissa lands in [sqrt 1/2, sqrt 2), so that log2 keeps its digits near p = 1.
    shifted = bits - _SQRT_HALF_BITS
    exponent = shifted >> 52
    m = _float_of(bits - (exponent << 52))
    return exponent, (m - 1.0) / (m + 1.0)


@kernel(inline="always", error_model="numpy")
def log2(p):
    """Give log2 of a normal float above 0, right to a few units in the last place."""
    exponent, t = _split(p)
    u = t * t
    series = _S10
    series = fma(series, u, _S9)
    series = fma(series, u, _S8)
    series = fma(series, u, _S7)
    series = fma(series, u, _S6)
    series = fma(series, u, _S5)
    series = fma(series, u, _S4)
    series = fma(series, u, _S3)
    series = fma(series, u, _S2)
    series = fma(series, u, _S1)
    series = fma(series, u, _S0)
    return exponent + t * series


@kernel(inline="always", error_model="numpy")
def exp(x):
    """Give e^x, right to 1e-13; 2^-1022 for what is smaller and 2^1023 for what is larger."""
    bits = x / _LN2
    bits = -1022.0 if bits < -1022.0 else bits
    bits = 1023.0 if bits > 1023.0 else bits
    whole = np.floor(bits + 0.5)
    u = (bits - whole) * _LN2
    series = _E11
    series = fma(series, u, _E10)
    series = fma(series, u, _E9)
    series = fma(series, u, _E8)
    series = fma(series, u, _E7)
    series = fma(series, u, _E6)
    series = fma(series, u, _E5)
    series = fma(series, u, _E4)
    series = fma(series, u, _E3)
    series = fma(series, u, _E2)
    series = fma(series, u, 1.0)
    series = fma(series, u, 1.0)
    return series * _float_of((np.int64(whole) + 1023) << 52)


@kernel(inline="always", error_model="numpy")
def surprise(p):
    """Give -p log2 p; 0 for p = 0."""
    # Below the normal range the exponent trick fails, and p log2 p is nothing anyway.
    return -p * log2(p) if p > 2.3e-308 else 0.0


@kernel(inline="always", error_model="numpy")
def _quick_surprise(p):
    """Give -p log2 p as `surprise` does, with log2 to 2e-14: eight terms instead of eleven."""
    exponent, t = _split(p)
    u = t * t
    series = _S7
    series = fma(series, u, _S6)
    series = fma(series, u, _S5)
    series = fma(series, u, _S4)
    series = fma(series, u, _S3)
    series = fma(series, u, _S2)
    series = fma(series, u, _S1)
    series = fma(series, u, _S0)
    return -p * (exponent + t * series) if p > 2.3e-308 else 0.0


QUARTER = WIDTH // 4


@kernel(inline="always", error_model="numpy")
def add_up(terms):
    """Add 16 terms up by twos, always in this order, whatever the CPU.

    Each holds the sum of four of a tile's 64, found in a loop that runs on vector units.
    """
    zero = (terms[0] + terms[8]) + (terms[4] + terms[12])
    one = (terms[1] + terms[9]) + (terms[5] + terms[13])
    two = (terms[2] + terms[10]) + (terms[6] + terms[14])
    three = (terms[3] + terms[11]) + (terms[7] + terms[15])
    return (zero + two) + (one + three)


@kernel(inline="always", error_model="numpy")
def _term(p, inner):
    return fma(p, inner, _quick_surprise(p))


def _few_sums(rows, i, inner, prior_bits, has_priors, terms):
    """Add row i up as `row_sums` does, taking logarithms only where it is not 0."""
    row = rows[i]
    found = np.zeros(WIDTH)
    for c in np.flatnonzero(row).tolist():
        found[c] = _term(float(row[c]), float(inner[c]))
    entropy, mass = _by_fours(found), _by_fours(row)
    prior = _by_fours(row * prior_bits) if has_priors else 0.0
    return entropy, mass, prior


@kernel()
def _by_fours(found):
    four = found.reshape(4, QUARTER)
    return add_up(((four[0] + four[2]) + (four[1] + four[3])).tolist())


@kernel(inline="always", error_model="numpy", plain=_few_sums)
def row_sums(rows, i, inner, prior_bits, has_priors, terms):
    """Add up entropy, mass and prior entropy of row i of a tile."""
    for c in range(QUARTER):
        p0, p1, p2, p3 = rows[i, c], rows[i, c + 16], rows[i, c + 32], rows[i, c + 48]
        terms[c] = (_term(p0, inner[c]) + _term(p2, inner[c + 32])) + (
            _term(p1, inner[c + 16]) + _term(p3, inner[c + 48])
        )
        terms[c + QUARTER] = (p0 + p2) + (p1 + p3)
    entropy = add_up(terms)
    mass = add_up(terms[QUARTER:])
    prior = 0.0
    if has_priors:
        for c in range(QUARTER):
            terms[c] = (rows[i, c] * prior_bits[c] + rows[i, c + 32] * prior_bits[c + 32]) + (
                rows[i, c + 16] * prior_bits[c + 16] + rows[i, c + 48] * prior_bits[c + 48]
            )
        prior = add_up(terms)
    return entropy, mass, prior


@kernel(inline="always", error_model="numpy")
def _larger(a, b):
    return a if a > b else b


def _largest_product(rows, i, prior_top, terms):
    return max(0.0, float((rows[i] * prior_top).max()))


@kernel(error_model="numpy", plain=_largest_product)
def _largest(rows, i, prior_top, terms):
    """Give the largest entry of row i of a tile."""
    for c in range(QUARTER):
        terms[c] = _larger(
            _larger(rows[i, c] * prior_top[c], rows[i, c + 16] * prior_top[c + 16]),
            _larger(rows[i, c + 32] * prior_top[c + 32], rows[i, c + 48] * prior_top[c + 48]),
        )
    best = 0.0
    for c in range(QUARTER):
        best = _larger(best, terms[c])
    return best


@kernel()
def start_tile(own, column, first, x, live):
    """Begin a tile: each state's probability to end at once in outcomes first, first + 1, ..."""
    for i in range(len(x)):
        k = column[i] - first
        live[i] = 0 <= k < WIDTH
        if live[i]:
            x[i] = 0.0
            x[i, k] = own[i]


@kernel(error_model="numpy")
def gather(rows, i, fresh, begin, end, at, values, x, live):
    """Add rows of x with their weights up into row i; `fresh` tells that it holds nothing yet.

    Four rows at a time, so that the sum is read and written a quarter as often. Entries are
    indexed, never sliced: a slice of an array costs more than a short row.
    """
    held = 0
    j0 = j1 = j2 = np.int64(0)
    v0 = v1 = v2 = rows[i, 0]
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
        elif fresh:
            for k in range(WIDTH):
                rows[i, k] = fma(v0, x[j0, k], v1 * x[j1, k]) + fma(v2, x[j2, k], v * x[j, k])
        else:
            for k in range(WIDTH):
                rows[i, k] += fma(v0, x[j0, k], v1 * x[j1, k]) + fma(v2, x[j2, k], v * x[j, k])
        if held == 3:
            fresh = False
        held = (held + 1) % 4
    if held > 0 and fresh:
        for k in range(WIDTH):
            rows[i, k] = v0 * x[j0, k]
    elif held > 0:
        for k in range(WIDTH):
            rows[i, k] = fma(v0, x[j0, k], rows[i, k])
    if held > 1:
        for k in range(WIDTH):
            rows[i, k] = fma(v1, x[j1, k], rows[i, k])
    if held > 2:
        for k in range(WIDTH):
            rows[i, k] = fma(v2, x[j2, k], rows[i, k])
    return fresh and held == 0


@kernel(error_model="numpy")
def _gather_carrying(i, begin, end, at, values, x, live, before, lost):
    """Add rows of x up as `gather` does, `lost` taking what the sums since its chain began lose.

    The move to the state before is a power of two, so that its product loses nothing.
    """
    if not live[i]:
        x[i, :] = 0.0
    for e in range(begin, end):
        if at[e] == before and live[before]:
            for k in range(WIDTH):
                total, less = two_sum(values[e] * x[before, k], x[i, k])
                x[i, k] = total
                lost[k] = values[e] * lost[k] + less
    for e in range(begin, end):
        j = at[e]
        if j != before and live[j]:
            for k in range(WIDTH):
                total, less = two_sum(x[i, k], values[e] * x[j, k])
                x[i, k] = total
                lost[k] += less
    for k in range(WIDTH):
        total = x[i, k] + lost[k]
        lost[k] += x[i, k] - total
        x[i, k] = total


@kernel(inline="always")
def _any_live(begin, end, at, live):
    found = False
    for e in range(begin, end):
        found = found or live[at[e]]
    return found


@kernel(error_model="numpy")
def _tile_back(upper, upper_at, upper_v, pivot, start, end, needed, x, live):
    for i in range(end - 1, start - 1, -1):
        if not needed[i]:
            live[i] = False
            continue
        if _any_live(upper[i], upper[i + 1], upper_at, live):
            gather(x, i, not live[i], upper[i], upper[i + 1], upper_at, upper_v, x, live)
            live[i] = True
        if live[i] and pivot[i] != 1.0:
            for c in range(WIDTH):
                x[i, c] /= pivot[i]


@kernel(error_model="numpy")
def solve_tile(
    lower, lower_at, lower_v, upper, upper_at, upper_v, pivot, block_start, first, last, needed,
    x, live, before, chain, lost,
):  # fmt: skip
    """Go forward and back through the blocks first .. last - 1, and forward through `last`.

    Rows that are not live are zero; those not needed are left out on the way back. Blocks end
    where x does: leaves have no row. States of a `chain` carry along what their sums lose; without
    any, `before` and `chain` are empty.
    """
    for b in range(first, min(last + 1, len(block_start) - 1)):
        start, end = block_start[b], block_start[b + 1]
        if end > len(x):
            break
        for i in range(start, end):
            if _any_live(lower[i], lower[i + 1], lower_at, live):
                if i < len(before) and before[i] >= 0:
                    _gather_carrying(
                        i, lower[i], lower[i + 1], lower_at, lower_v, x, live, before[i],
                        lost[chain[i]],
                    )  # fmt: skip
                else:
                    gather(x, i, not live[i], lower[i], lower[i + 1], lower_at, lower_v, x, live)
                live[i] = True
        if b < last and (end - start > 1 or pivot[start] != 1.0):
            _tile_back(upper, upper_at, upper_v, pivot, start, end, needed, x, live)


@kernel(error_model="numpy")
def solve_tile_back(
    lower, lower_at, lower_v, upper, upper_at, upper_v, pivot, block_start, block, needed, x, live
):
    """Go back through one block."""
    start, end = block_start[block], block_start[block + 1]
    _tile_back(upper, upper_at, upper_v, pivot, start, end, needed, x, live)


@kernel(error_model="numpy")
def leaf_row(place, own, column, first, lower, lower_at, lower_v, x, live, rows):
    """Put the row of a leaf together from those it moves to; tell whether anything is in it."""
    fresh = gather(rows, 0, True, lower[place], lower[place + 1], lower_at, lower_v, x, live)
    k = column[place] - first
    if 0 <= k < WIDTH:
        if fresh:
            rows[0, :] = 0.0
            fresh = False
        rows[0, k] += own[place]
    return not fresh


@kernel(inline="always", error_model="numpy")
def _score(rows, i, skip, inner, prior_bits, has_priors, terms):
    """Add row i up; what lies in column `skip` is given apart."""
    if skip < 0:
        h, m, q = row_sums(rows, i, inner, prior_bits, has_priors, terms)
        return h, m, q, 0.0
    apart = rows[i, skip]
    rows[i, skip] = 0.0
    h, m, q = row_sums(rows, i, inner, prior_bits, has_priors, terms)
    rows[i, skip] = apart
    return h, m, q, apart


@kernel()
def _where(rows, i, prior_top, best):
    """Find the first entry of row i that is the largest."""
    for c in range(len(prior_top)):
        if rows[i, c] * prior_top[c] == best:
            return c
    return 0


@kernel(error_model="numpy")
def sum_tile(
    x, live, own, column, lower, lower_at, lower_v, first, scored, elsewhere, highest,
    inner, prior_bits, prior_top, prior_powers, orders,
    entropy, mass, prior, top, top_column, powers, at_elsewhere,
):  # fmt: skip
    """Add each scored row of a solved tile up over its outcomes; `elsewhere` is kept apart.

    Leaves are put together here, in cache. `highest` is what some tiles have found for `top`:
    what is below it need not be located.
    """
    width = min(WIDTH, len(prior_bits) - first)
    skip = elsewhere - first if first <= elsewhere < first + width else -1
    # Past the last column there is nothing in any row, and nothing to add.
    folded, bits, tops = np.zeros(WIDTH), np.zeros(WIDTH), np.zeros(WIDTH)
    folded[:width] = inner[first : first + width]
    bits[:width] = prior_bits[first : first + width]
    tops[:width] = prior_top[first : first + width]
    buffer, terms = np.zeros((1, WIDTH)), np.zeros(2 * QUARTER)
    has_priors = np.any(bits > 0.0)
    # Most rows of a tile are empty, and a call costs more than finding that out.
    for r in range(len(scored)):
        entropy[r] = mass[r] = prior[r] = top[r] = at_elsewhere[r] = 0.0
        top_column[r] = -1
        for o in range(len(orders)):
            powers[r, o] = 0.0
        place = scored[r]
        if place < len(x):
            found = live[place]
        else:
            found = 0 <= column[place] - first < WIDTH
            for e in range(lower[place], lower[place + 1]):
                found = found or live[lower_at[e]]
        if not found:
            continue
        if place < len(x):
            h, m, q, apart = _score(x, place, skip, folded, bits, has_priors, terms)
        else:
            leaf_row(place, own, column, first, lower, lower_at, lower_v, x, live, buffer)
            h, m, q, apart = _score(buffer, 0, skip, folded, bits, has_priors, terms)
        entropy[r], mass[r], prior[r], at_elsewhere[r] = h, m, q, apart
        # No entry is above the row's mass, and most rows have their largest in another tile.
        if m + apart >= highest[r]:
            rows, i = (x, place) if place < len(x) else (buffer, 0)
            best = _largest(rows, i, tops, terms)
            if best > 0.0 and best >= highest[r]:
                top[r] = best
                top_column[r] = first + _where(rows, i, tops, best)
        if len(orders):
            rows, i = (x, place) if place < len(x) else (buffer, 0)
            for o in range(len(orders)):
                for c in range(width):
                    if rows[i, c] > 0:
                        powers[r, o] += rows[i, c] ** orders[o] * prior_powers[o, first + c]


@kernel()
def weigh_tile(x, live, excess):
    """Give x^T B for the outcomes of a solved tile; `excess` has that of leaves passed on."""
    total = np.zeros(WIDTH)
    for i in range(len(x)):
        if live[i] and excess[i] > 0:
            for c in range(WIDTH):
                total[c] += excess[i] * x[i, c]
    return total


@kernel()
def spread_live(lower, lower_at, live):
    """Give every row of an acyclic chain the marks, bits, of all it leads to."""
    for i in range(len(live)):
        for e in range(lower[i], lower[i + 1]):
            live[i] |= live[lower_at[e]]


@kernel()
def pass_leaves_on(lower, lower_at, lower_v, own, column, inner, excess, weights):
    """Pass the excess of leaves on to the rows they are made of, and to their own columns.

    x^T B is linear in x: a leaf's row times its excess is the same sum over what it moves to.
    """
    for i in range(inner, len(excess)):
        for e in range(lower[i], lower[i + 1]):
            excess[lower_at[e]] += excess[i] * lower_v[e]
        if column[i] >= 0:
            weights[column[i]] += excess[i] * own[i]


@kernel()
def add_tile(
    entropy, mass, prior, top, top_column, powers, at_elsewhere,
    e, m, q, t, c, w, a, lost,
):  # fmt: skip
    """Add one tile's sums to all; of equal largest entries the earlier tile's stays.

    `lost` takes what the sums of entropy, mass and prior lose.
    """
    for r in range(len(entropy)):
        if m[r] == 0.0 and a[r] == 0.0:
            continue
        entropy[r], less = two_sum(entropy[r], e[r])
        lost[0, r] += less
        mass[r], less = two_sum(mass[r], m[r])
        lost[1, r] += less
        prior[r], less = two_sum(prior[r], q[r])
        lost[2, r] += less
        at_elsewhere[r] += a[r]
        if t[r] > top[r]:
            top[r] = t[r]
            top_column[r] = c[r]
        for o in range(powers.shape[1]):
            powers[r, o] += w[r, o]
