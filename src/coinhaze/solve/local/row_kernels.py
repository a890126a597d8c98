"""Hot loops of one coin's row: mass pushed back from the coin, and what it adds up to.

Slow twins in the tests: tests/solve/test_local.py, rows of B in dense and rational arithmetic.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from coinhaze.solve.exact.stream_kernels import surprise

# Marks of a state that mass has reached, and of one that waits in a queue.
SEEN, QUEUED = 1, 2
BINS = 256
_LOG2_E = 1.4426950408889634


@intrinsic
def _leading_zeros(typing_context, value):
    def code(context, builder, signature, args):
        return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), code


@njit(cache=True, nogil=True, inline="always")
def _queue(j, bits, groups, fields):
    """Put a node into the queue in order of number: a set of bits, and bits on what is not 0."""
    one = np.uint64(1)
    w = j >> 6
    v = w >> 6
    if bits[w] == 0:
        if groups[v] == 0:
            fields[v >> 6] |= one << np.uint64(v & 63)
        groups[v] |= one << np.uint64(w & 63)
    bits[w] |= one << np.uint64(j & 63)


@njit(cache=True, nogil=True, inline="always")
def _last(word):
    return 63 - np.int64(_leading_zeros(word))


@njit(cache=True, nogil=True, inline="always")
def _take(field, bits, groups, fields):
    """Take the highest node out of a field that is not empty."""
    one = np.uint64(1)
    v = (field << 6) + _last(fields[field])
    w = (v << 6) + _last(groups[v])
    j = (w << 6) + _last(bits[w])
    bits[w] &= ~(one << np.uint64(j & 63))
    if bits[w] == 0:
        groups[v] &= ~(one << np.uint64(w & 63))
        if groups[v] == 0:
            fields[field] &= ~(one << np.uint64(v & 63))
    return j


@njit(cache=True, nogil=True, error_model="numpy")
def push_in_order(
    start, to, share, size, gap, extra, least, most_moves,
    mass, visits, state, touched, count, bits, groups, fields,
):  # fmt: skip
    """Push every state worth `least` bits of width, highest number first, all its mass at once.

    Gives the moves made and a bound on their roundings in units of 2^-53: one for each partial
    sum, and for what is pushed those of its row.
    """
    states = len(size)
    field = -1
    for t in range(count[0]):
        j = np.int64(touched[t])
        if j < states and mass[j] * (gap[j] + extra) >= least:
            _queue(j, bits, groups, fields)
            field = max(field, j >> 18)
    moves = 0
    error = 0.0
    while field >= 0:
        if fields[field] == 0:
            field -= 1
            continue
        j = _take(field, bits, groups, fields)
        # Past the limit the queue is emptied, and what is in it stays where it is.
        if moves > most_moves:
            continue
        m = mass[j]
        mass[j] = 0.0
        visits[j] += m
        moves += start[j + 1] - start[j] + 1
        error += m * (size[j] + 16.0) + visits[j]
        for e in range(start[j], start[j + 1]):
            k = np.int64(to[e])
            if state[k] == 0:
                state[k] = SEEN
                touched[count[0]] = k
                count[0] += 1
            mass[k] += m * share[e]
            error += mass[k]
            if k < states and mass[k] * (gap[k] + extra) >= least:
                _queue(k, bits, groups, fields)
    return moves, error


@njit(cache=True, nogil=True, error_model="numpy")
def push_in_rounds(
    start, to, share, size, gap, extra, least, most_moves,
    mass, visits, state, touched, count, queue,
):  # fmt: skip
    """Push every state worth it, first come first served, until none is: for chains with loops."""
    states = len(size)
    head = waiting = 0
    for t in range(count[0]):
        j = np.int64(touched[t])
        if j < states and mass[j] * (gap[j] + extra) >= least:
            queue[waiting] = j
            waiting += 1
            state[j] |= QUEUED
    moves = 0
    error = 0.0
    while waiting > 0:
        j = np.int64(queue[head])
        head = head + 1 if head + 1 < states else 0
        waiting -= 1
        state[j] = SEEN
        if moves > most_moves:
            continue
        m = mass[j]
        mass[j] = 0.0
        visits[j] += m
        moves += start[j + 1] - start[j] + 1
        error += m * (size[j] + 16.0) + visits[j]
        for e in range(start[j], start[j + 1]):
            k = np.int64(to[e])
            if state[k] == 0:
                state[k] = SEEN
                touched[count[0]] = k
                count[0] += 1
            mass[k] += m * share[e]
            error += mass[k]
            if k < states and state[k] == SEEN and mass[k] * (gap[k] + extra) >= least:
                last = head + waiting
                queue[last if last < states else last - states] = k
                waiting += 1
                state[k] |= QUEUED
    return moves, error


@njit(cache=True, nogil=True, error_model="numpy")
def tally(
    mass, visits, state, touched, count, low, high, private, private_low, private_high, narrows
):
    """Add up what is sure and what rests; `narrows` gets the widths left, by quarter powers of 2.

    Gives the sums over what is sure (mass, entropy from below and above, largest piece at most),
    over what rests (mass, entropy from below and above) and how many terms were added.
    """
    states = len(private)
    sure = sure_low = sure_high = largest = 0.0
    rest = below = above = 0.0
    narrows[:] = 0.0
    for t in range(count[0]):
        j = touched[t]
        p = mass[j]
        if j >= states:
            sure += p
            largest = max(largest, p)
            sure_low += surprise(p) + p * low[j]
            sure_high += surprise(p) + p * high[j]
            continue
        v = visits[j]
        if v > 0.0:
            # Pieces v q: sum phi(v q) + v q h = phi(v) sum q + v sum (phi(q) + q h).
            sure += v * private[j]
            largest = max(largest, v * private[j])
            sure_low += surprise(v) * private[j] + v * private_low[j]
            sure_high += surprise(v) * private[j] + v * private_high[j]
        if p > 0.0:
            rest += p
            below += p * low[j]
            above += surprise(p) + p * high[j]
            left = surprise(p) + p * (high[j] - low[j] + _LOG2_E)
            narrows[min(max(int(-4 * np.log2(left)), 0), BINS - 1)] += left
    return sure, sure_low, sure_high, largest, rest, below, above, 2 * count[0]


@njit(cache=True, nogil=True)
def clear(mass, visits, state, touched, count):
    """Forget a question: only what it touched."""
    for t in range(count[0]):
        j = touched[t]
        mass[j] = 0.0
        state[j] = 0
        if j < len(visits):
            visits[j] = 0.0
    count[0] = 0
