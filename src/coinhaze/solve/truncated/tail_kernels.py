"""Hot loops on what lists dropped: its mass, bounds on its entropy, and a sketch of it.

Proofs in lists.py. Slow twin in the tests: tests/solve/test_sweep.py.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from coinhaze.solve.exact.stream_kernels import WIDTH, surprise
from coinhaze.solve.sketch.kernels import fill_draws, mix
from coinhaze.solve.truncated.tokens_kernels import BITS, BORN, PRIOR, TOP

_LN2 = math.log(2.0)
# What a state's tail holds: the mass missing, bounds on its entropy from above and below, and the
# most that one source has of it.
MISSING, UPPER, LOWER, MOST = 0, 1, 2, 3
# What `count` holds.
USED_SKETCHES, FREE_SKETCHES = 0, 1


@njit(cache=True, nogil=True)
def own_sketch(sketch_of, i, sketches, free, count):
    """Give state i's sketch, an empty one if it has none yet; there is room for one."""
    if sketch_of[i] < 0:
        if count[FREE_SKETCHES] > 0:
            count[FREE_SKETCHES] -= 1
            sketch_of[i] = free[count[FREE_SKETCHES]]
        else:
            sketch_of[i] = count[USED_SKETCHES]
            count[USED_SKETCHES] += 1
        sketches[sketch_of[i]] = 0.0
    return sketches[sketch_of[i]]


@njit(cache=True, nogil=True)
def free_sketch(sketch_of, i, free, count):
    """Let a state's sketch go, if it has one."""
    if len(sketch_of) > 0 and sketch_of[i] >= 0:
        free[count[FREE_SKETCHES]] = sketch_of[i]
        count[FREE_SKETCHES] += 1
        sketch_of[i] = -1


@njit(cache=True, nogil=True, error_model="numpy")
def mix_tail(tails, i, j, w):
    """Add what is missing at j, times w, to what is missing at i: all of it is linear."""
    m = tails[j, MISSING]
    tails[i, MISSING] += w * m
    tails[i, UPPER] += w * tails[j, UPPER] + surprise(w) * m
    tails[i, LOWER] += w * tails[j, LOWER]
    tails[i, MOST] += w * tails[j, MOST]


@njit(cache=True, nogil=True)
def mix_sketch(mine, theirs, w):
    """Add one sketch, times w, to another."""
    v = np.float32(w)
    for d in range(len(mine)):
        mine[d] += v * theirs[d]


@njit(cache=True, nogil=True, error_model="numpy")
def drop(tails, i, tokens, members, values, n):
    """Add n dropped tokens to what is missing at state i."""
    mass = pieces = inner = largest = 0.0
    for k in range(n):
        p = values[k]
        mass += p
        pieces += surprise(p)
        inner += p * (tokens[members[k], BITS] + tokens[members[k], PRIOR])
        largest = max(largest, p * tokens[members[k], TOP])
    tails[i, MISSING] += mass
    tails[i, UPPER] += pieces + inner
    tails[i, LOWER] += pieces - surprise(mass) + inner
    tails[i, MOST] += largest


@njit(cache=True, nogil=True)
def sketch_drops(mine, tokens, members, values, n, draws, drawn_for, seed):
    """Add n dropped tokens to a sketch; one of inner entropy h draws X - h.

    Draws of a token are kept while its slot is its own.
    """
    for k in range(n):
        t = members[k]
        x = draws[t]
        born = int(tokens[t, BORN])
        if drawn_for[t] != born:
            drawn_for[t] = born
            row = np.empty(WIDTH)
            name = mix(np.uint64(born) + np.uint64(0x9E3779B97F4A7C15))
            bits = tokens[t, BITS] + tokens[t, PRIOR]
            fill_draws(name, seed, 0, 1.0, bits * _LN2, row, True)
            for d in range(len(x)):
                x[d] = row[d]
        v = np.float32(values[k])
        for d in range(len(mine)):
            mine[d] += v * x[d]


@njit(cache=True, nogil=True, error_model="numpy")
def raise_lower(tails, i):
    """Raise the lower bound: with at most `most` on one source, entropy is log2(m / most) or more.

    Not near the end of the range of floats, where `most` may have become too small or nothing.
    """
    m, most = tails[i, MISSING], tails[i, MOST]
    if most > 1e-290:
        tails[i, LOWER] = max(tails[i, LOWER], m * math.log2(m / most))


@njit(cache=True, nogil=True, error_model="numpy")
def estimate_tail(m, sketch):
    """Estimate the sum of phi over what is missing, m in all, in bits.

    The sketch over m is that of r / m, r being what is missing, and gives H(r / m); the sum of
    phi(r) is m H(r / m) + phi(m). Taken so, the standard error is 2.50 m / sqrt(draws) bits.
    """
    total = 0.0
    for d in range(len(sketch)):
        total += math.exp(sketch[d] / m)
    nats = -math.log(total / len(sketch)) - 1.5 / len(sketch)
    return m * max(nats, 0.0) / _LN2 + surprise(m)
