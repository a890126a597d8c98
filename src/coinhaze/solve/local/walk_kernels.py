"""The walk back: mass pushed over moves, and where it comes to.

Slow twins in the tests: rows of B in dense and rational arithmetic (tests/solve/test_local.py,
test_past.py and, of several coins, test_mixing.py); one step of one node at a time (test_hops.py).
"""

from __future__ import annotations

import numpy as np

from coinhaze.kernels import intrinsic, kernel

# Marks of a state that mass has reached, and of one that waits in a queue.
SEEN, QUEUED = 1, 2


def _compiled_leading_zeros():
    from llvmlite import ir
    from numba import extending, types

    @extending.intrinsic
    def leading_zeros(typing_context, value):
        def code(context, builder, signature, args):
            return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))

        return types.uint64(types.uint64), code

    return leading_zeros


@intrinsic(_compiled_leading_zeros)
def _leading_zeros(word):
    return 64 - int(word).bit_length()


@kernel(inline="always")
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


@kernel(inline="always")
def _last(word):
    return 63 - np.int64(_leading_zeros(word))


@kernel(inline="always")
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


@kernel(error_model="numpy")
def push(
    first, to, share, rounding, gap, party, ordered, extra, minimum, max_moves,
    mass, visits, state, touched, count, waiting, bits, groups, fields,
):  # fmt: skip
    """Push every state whose mass is worth `minimum`, all of it at once, until none is.

    Where moves lead to lower numbers only (`ordered`), the highest goes first, so that each is
    pushed once; else first come first served. Mass is worth what it weighs times `gap + extra`.
    With parties only moves inside a party are made. Gives the moves made and a bound on their
    roundings in units of 2^-53: one for each partial sum, and for what is pushed those of its row,
    `rounding`.
    """
    states = len(first) - 1
    inside = len(party) > 0
    field = -1
    head = queued = 0
    for t in range(count[0]):
        j = np.int64(touched[t])
        if j < states and mass[j] * (gap[j] + extra) >= minimum:
            if ordered:
                _queue(j, bits, groups, fields)
                field = max(field, j >> 18)
            else:
                waiting[queued] = j
                queued += 1
                state[j] |= QUEUED
    moves = 0
    error = 0.0
    while True:
        if ordered:
            while field >= 0 and fields[field] == 0:
                field -= 1
            if field < 0:
                break
            j = _take(field, bits, groups, fields)
        else:
            if queued == 0:
                break
            j = np.int64(waiting[head])
            head = head + 1 if head + 1 < states else 0
            queued -= 1
            state[j] = SEEN
        # Past the limit the queue is emptied, and what is in it stays where it is.
        if moves > max_moves:
            continue
        m = mass[j]
        mass[j] = 0.0
        visits[j] += m
        moves += first[j + 1] - first[j] + 1
        error += m * rounding[j]
        if visits[j] > m:
            error += visits[j]
        for e in range(first[j], first[j + 1]):
            k = np.int64(to[e])
            if inside and (k == j or party[k] != party[j]):
                continue
            if state[k] == 0:
                state[k] = SEEN
                touched[count[0]] = k
                count[0] += 1
            mass[k] += m * share[e]
            error += mass[k]
            if k < states and mass[k] * (gap[k] + extra) >= minimum:
                if ordered:
                    _queue(k, bits, groups, fields)
                elif state[k] == SEEN:
                    last = head + queued
                    waiting[last if last < states else last - states] = k
                    queued += 1
                    state[k] |= QUEUED
    return moves, error


@kernel()
def reach(first, to, max_moves, state, touched, count):
    """Mark every state that mass can come to; tell whether that took no more than so many moves."""
    done = moves = 0
    while done < count[0] and moves <= max_moves:
        j = touched[done]
        done += 1
        moves += first[j + 1] - first[j] + 1
        for e in range(first[j], first[j + 1]):
            k = to[e]
            if state[k] == 0:
                state[k] = SEEN
                touched[count[0]] = k
                count[0] += 1
    return moves <= max_moves


@kernel()
def clear(mass, visits, state, touched, count):
    """Forget a question: only what it touched."""
    for t in range(count[0]):
        j = touched[t]
        mass[j] = 0.0
        state[j] = 0
        if j < len(visits):
            visits[j] = 0.0
    count[0] = 0
