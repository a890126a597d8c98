"""Hot loops of the entropy sketch: draws by hash, and their propagation through a chain.

Slow twin in the tests: tests/solve/test_sketch.py.
"""

from __future__ import annotations

import math

import numpy as np

from coinhaze.kernels import kernel
from coinhaze.solve.exact.stream_kernels import QUARTER, WIDTH, add_up, exp, fma, gather, log2


@kernel()
def mix(value):
    """Scramble a 64-bit number (the finaliser of splitmix64)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


# sin(pi t) / (pi t) and cos(pi t) as powers of (pi t)^2, to 1e-11 for t up to 1/2.
_SIN = tuple((-1.0) ** k / math.factorial(2 * k + 1) for k in range(8))
_COS = tuple((-1.0) ** k / math.factorial(2 * k) for k in range(9))
_N0, _N1, _N2, _N3, _N4, _N5, _N6, _N7 = _SIN
_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8 = _COS
_LN2 = math.log(2.0)


@kernel(error_model="numpy")
def fill_draws(source, seed, first, factor, shift, row, fresh):
    """Do what `draw_into` does, in room of its own."""
    draw_into(source, seed, first, factor, shift, row, fresh, np.empty(WIDTH), np.empty(WIDTH))


@kernel(error_model="numpy", _nrt=False)
def draw_into(source, seed, first, factor, shift, row, fresh, one, two):
    """Add `factor` times (X - shift) to a row, X the draws first, first + 1, ... of a source.

    A row has up to WIDTH draws, each the same however many there are. X follows the 1-stable law
    skewed to the left, E exp(cX) = c^c. With v uniform, z = pi v and E exponential,
    X = z cot z + ln(E sin z / z). No branches, so that it runs on vector units; `one` and `two`
    are room for numbers on the way.
    """
    width = len(row)
    for c in range(width):
        k = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(first + c)
        state = mix(source ^ mix(k))
        # Uniform numbers strictly between 0 and 1, from the upper 52 bits.
        one[c] = (np.float64(state >> np.uint64(12)) + 0.5) * 2.0**-52
        state = mix(state + np.uint64(0x9E3779B97F4A7C15))
        two[c] = (np.float64(state >> np.uint64(12)) + 0.5) * 2.0**-52
    for c in range(width):
        v = one[c]
        near = v if v < 0.5 else 1.0 - v
        x = math.pi * near
        u = x * x
        sine = _N7
        sine = fma(sine, u, _N6)
        sine = fma(sine, u, _N5)
        sine = fma(sine, u, _N4)
        sine = fma(sine, u, _N3)
        sine = fma(sine, u, _N2)
        sine = fma(sine, u, _N1)
        sine = fma(sine, u, _N0) * x
        cosine = _C8
        cosine = fma(cosine, u, _C7)
        cosine = fma(cosine, u, _C6)
        cosine = fma(cosine, u, _C5)
        cosine = fma(cosine, u, _C4)
        cosine = fma(cosine, u, _C3)
        cosine = fma(cosine, u, _C2)
        cosine = fma(cosine, u, _C1)
        cosine = fma(cosine, u, _C0)
        cosine = cosine if v < 0.5 else -cosine
        z = math.pi * v
        exponential = -_LN2 * log2(two[c])
        one[c] = fma(_LN2, log2(exponential * sine / z), z * cosine / sine) - shift
    if fresh:
        for c in range(width):
            row[c] = factor * one[c]
    else:
        for c in range(width):
            row[c] = fma(factor, one[c], np.float64(row[c]))


@kernel()
def start_draws(own, column, source, shift, seed, first, x, live):
    """Begin a tile of draws: what each state would add if it ended the walk at once."""
    for i in range(len(x)):
        s = column[i]
        live[i] = s >= 0
        if live[i]:
            fill_draws(source[s], seed, first, own[i], shift[s], x[i], True)


@kernel(error_model="numpy")
def _sum_exp(row, scale, terms):
    """Add up exp(scale y) over a row."""
    for c in range(QUARTER):
        terms[c] = (exp(scale * row[c]) + exp(scale * row[c + 32])) + (
            exp(scale * row[c + 16]) + exp(scale * row[c + 48])
        )
    return add_up(terms)


@kernel()
def sum_draws(
    x, live, own, column, lower, lower_at, lower_v, source, shift, seed, first, scored, mass, total
):
    """Add up exp(y) over the draws of a solved tile, for every scored row.

    Rows that miss some of their mass are taken for what they are without it.
    """
    buffer, terms = np.zeros((1, WIDTH), x.dtype), np.zeros(QUARTER)
    for r in range(len(scored)):
        i = scored[r]
        row = buffer[0]
        if i < len(x):
            row = x[i]
        else:
            fresh = gather(buffer, 0, True, lower[i], lower[i + 1], lower_at, lower_v, x, live)
            if column[i] >= 0:
                s = column[i]
                fill_draws(source[s], seed, first, own[i], shift[s], row, fresh)
        total[r] += _sum_exp(row, 1.0 / mass[r], terms)


@kernel()
def max_back(upper, upper_at, back, start, end, maximum):
    """Count them on the way back through one block."""
    for i in range(end - 1, start - 1, -1):
        worst = maximum[i]
        for e in range(upper[i], upper[i + 1]):
            worst = max(worst, maximum[upper_at[e]])
        maximum[i] = worst + back[i]


@kernel()
def max_through(
    lower, lower_at, upper, upper_at, pivot, block_start, forward, back, first, last, maximum
):
    """Count the most roundings of any walk through blocks first .. last - 1, and into `last`.

    `forward` and `back` are what a row of each triangle costs; goes where `solve_tile` goes.
    """
    for b in range(first, min(last + 1, len(block_start) - 1)):
        start, end = block_start[b], block_start[b + 1]
        for i in range(start, end):
            if lower[i] == lower[i + 1]:
                continue
            worst = maximum[i]
            for e in range(lower[i], lower[i + 1]):
                worst = max(worst, maximum[lower_at[e]])
            maximum[i] = worst + forward[i]
        if b < last and (end - start > 1 or pivot[start] != 1.0):
            max_back(upper, upper_at, back, start, end, maximum)


@kernel()
def max_in_sweep(indptr, indices, cost, right, maximum, forward):
    """Count them through one sweep over a core, each state with the newest counts."""
    n = len(right)
    for k in range(n):
        i = k if forward else n - 1 - k
        worst = right[i]
        for e in range(indptr[i], indptr[i + 1]):
            worst = max(worst, maximum[indices[e]])
        maximum[i] = worst + cost[i]
