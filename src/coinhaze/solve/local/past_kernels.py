"""Hot loops over one node's past: its nodes, what passes them, and what of it arrives where.

Slow twins in the tests: tests/solve/test_past.py, whole chains in dense arithmetic.
"""

from __future__ import annotations

import numpy as np
from numba import njit

NO_SLOT = -1


@njit(cache=True, nogil=True)
def ancestors(indptr, indices, begin, most_moves, slot):
    """Find every node a walk back can come to; an empty array where that takes too many moves.

    `slot` is NO_SLOT everywhere, before and after.
    """
    nodes = np.empty(64, np.int64)
    nodes[0] = begin
    slot[begin] = 0
    used, done, moves = 1, 0, 0
    while done < used and moves <= most_moves:
        node = nodes[done]
        done += 1
        moves += indptr[node + 1] - indptr[node] + 1
        for e in range(indptr[node], indptr[node + 1]):
            before = np.int64(indices[e])
            if slot[before] == NO_SLOT:
                if used == len(nodes):
                    nodes = np.concatenate((nodes, np.empty_like(nodes)))
                nodes[used] = before
                slot[before] = used
                used += 1
    for k in range(used):
        slot[nodes[k]] = NO_SLOT
    return nodes[: 0 if moves > most_moves else used]


@njit(cache=True, nogil=True)
def visit(first, to, chance, begin, ordered, least, most_sweeps):
    """Push mass 1 back from a node: how often a walk comes by each, and what was left on the way.

    Where moves lead to lower numbers only, one sweep from above does it; else sweeps go on until
    less than `least` is left.
    """
    n = len(first) - 1
    mass, visits = np.zeros(n), np.zeros(n)
    mass[begin] = 1.0
    left = 1.0
    for _ in range(1 if ordered else most_sweeps):
        left = 0.0
        for i in range(n - 1, -1, -1):
            m = mass[i]
            if m == 0.0:
                continue
            mass[i] = 0.0
            visits[i] += m
            for e in range(first[i], first[i + 1]):
                if to[e] >= 0:
                    mass[to[e]] += m * chance[e]
                    if to[e] >= i:
                        left += m * chance[e]
        if left <= least:
            break
    for i in range(n):
        if first[i] == first[i + 1]:  # nothing follows: what came here has been here
            visits[i] += mass[i]
            mass[i] = 0.0
    return visits, mass.sum()


@njit(cache=True, nogil=True)
def arrive(first, to, chance, value, fixed, ordered, least, most_sweeps):
    """Add to each node's values those of where it moves to, by chance; fixed nodes keep theirs.

    `value` (nodes x columns) is changed in place. With loops every sweep comes nearer from below.
    """
    n, columns = value.shape
    own = value if ordered else value.copy()
    total = np.empty(columns)
    for _ in range(1 if ordered else most_sweeps):
        change = 0.0
        for i in range(n):
            if fixed[i]:
                continue
            for c in range(columns):
                total[c] = own[i, c]
            for e in range(first[i], first[i + 1]):
                if to[e] >= 0:
                    for c in range(columns):
                        total[c] += chance[e] * value[to[e], c]
            for c in range(columns):
                change = max(change, total[c] - value[i, c])
                value[i, c] = total[c]
        if change <= least:
            break


@njit(cache=True, nogil=True)
def nearest(first, to, ends, begin):
    """Count the moves to the nearest node where a walk can end, -1 if there is none."""
    n = len(first) - 1
    steps = np.full(n, -1, np.int64)
    queue = np.empty(n, np.int64)
    queue[0], steps[begin] = begin, 0
    used, done = 1, 0
    while done < used:
        i = queue[done]
        done += 1
        if ends[i]:
            return steps[i]
        for e in range(first[i], first[i + 1]):
            k = to[e]
            if k >= 0 and steps[k] < 0:
                steps[k] = steps[i] + 1
                queue[used] = k
                used += 1
    return np.int64(-1)


@njit(cache=True, nogil=True)
def stay(first, to, chance, party, listed, box, mass):
    """Push mass (nodes x columns) back inside parties, from above, leaving it where it came by.

    Nodes it comes to get the box of those it came from; past a listed node the last column stops.
    """
    n, columns = mass.shape
    for i in range(n - 1, -1, -1):
        if mass[i, 0] == 0.0:
            continue
        for e in range(first[i], first[i + 1]):
            k = to[e]
            if k >= 0 and k != i and party[k] == party[i]:
                box[k] = box[i]
                for c in range(columns - (1 if listed[i] else 0)):
                    mass[k, c] += mass[i, c] * chance[e]
