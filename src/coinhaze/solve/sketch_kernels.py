"""Hot loops of the entropy sketch: draws by hash, and their propagation through a chain.

Slow twin in the tests: tests/solve/test_sketch.py.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from coinhaze.solve.stream_kernels import WIDTH


@njit(cache=True, nogil=True)
def hash_names(offsets, data):
    """Give each string of an Arrow array a 64-bit hash (FNV-1a), the same on every machine."""
    hashes = np.empty(len(offsets) - 1, np.uint64)
    for i in range(len(hashes)):
        h = np.uint64(0xCBF29CE484222325)
        for k in range(offsets[i], offsets[i + 1]):
            h = (h ^ np.uint64(data[k])) * np.uint64(0x100000001B3)
        hashes[i] = h
    return hashes


@njit(cache=True, nogil=True)
def mix(value):
    """Scramble a 64-bit number (the finaliser of splitmix64)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@njit(cache=True, nogil=True)
def draw(source, seed, k):
    """Draw number k of a source: the 1-stable law skewed to the left, E exp(cX) = c^c."""
    state = mix(source ^ mix(np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(k)))
    # Uniform numbers strictly between 0 and 1, from the upper 52 bits.
    first = (np.float64(state >> np.uint64(12)) + 0.5) * 2.0**-52
    state = mix(state + np.uint64(0x9E3779B97F4A7C15))
    second = (np.float64(state >> np.uint64(12)) + 0.5) * 2.0**-52
    angle = math.pi * (first - 0.5)
    rest = 0.5 * math.pi - angle
    exponential = -math.log(second)
    return math.tan(angle) * rest + math.log(exponential * math.cos(angle) / rest)


@njit(cache=True, nogil=True)
def start_draws(own, column, source, shift, seed, first, x, live):
    """Begin a tile of draws: what each state would add if it ended the walk at once."""
    for i in range(len(own)):
        live[i] = column[i] >= 0
        if live[i]:
            s = column[i]
            for c in range(WIDTH):
                x[i, c] = own[i] * (draw(source[s], seed, first + c) - shift[s])


@njit(cache=True, nogil=True)
def sum_draws(x, live, scored, total):
    """Add up exp(y) over the draws of a solved tile, for every scored row."""
    for r in range(len(scored)):
        if live[scored[r]]:
            for c in range(WIDTH):
                total[r] += math.exp(x[scored[r], c])
