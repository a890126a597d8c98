"""Hot loops that cut a chain down: order, aliases, moves added up, equal states.

Slow twins in the tests: tests/solve/test_reduce.py.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def is_in_order(indptr, indices):
    """Tell whether every move leads to a lower number."""
    for i in range(len(indptr) - 1):
        for e in range(indptr[i], indptr[i + 1]):
            if indices[e] >= i:
                return False
    return True


@njit(cache=True, nogil=True)
def turn(indptr, indices, n):
    """Turn moves round: for each node where moves to it come from, in rising order."""
    start = np.zeros(n + 1, np.int64)
    for e in range(len(indices)):
        start[indices[e] + 1] += 1
    for i in range(n):
        start[i + 1] += start[i]
    fill = start[:-1].copy()
    back = np.empty(len(indices), np.int32)
    for i in range(len(indptr) - 1):
        for e in range(indptr[i], indptr[i + 1]):
            back[fill[indices[e]]] = i
            fill[indices[e]] += 1
    return start, back


@njit(cache=True, nogil=True)
def certain_in_order(indptr, indices, ends):
    """Tell which nodes are surely absorbed, where every move leads to a lower number."""
    n = len(indptr) - 1
    certain = np.zeros(n, np.bool_)
    for i in range(n):
        fine = ends[i] or indptr[i + 1] > indptr[i]
        for e in range(indptr[i], indptr[i + 1]):
            fine = fine and certain[indices[e]]
        certain[i] = fine
    return certain


@njit(cache=True, nogil=True)
def follow_aliases(indptr, indices, alias):
    """Give the node that each alias stands for in the end, and the steps to it."""
    n = len(alias)
    target = np.arange(n)
    extra = np.zeros(n)
    settled = ~alias
    path = np.empty(n, np.int64)
    for i in range(n):
        top = 0
        v = i
        while not settled[v]:
            path[top] = v
            top += 1
            v = indices[indptr[v]]
        for k in range(top - 1, -1, -1):
            u = path[k]
            before = indices[indptr[u]]
            target[u] = target[before]
            extra[u] = extra[before] + 1.0
            settled[u] = True
    return target, extra


@njit(cache=True, nogil=True)
def add_moves(indptr, indices, data, states, number, extra):
    """Give the moves between states: those to one state added up, with how many they were.

    `number` is the state each node stands for. Also gives the expected steps of one move.
    """
    n = len(states)
    room = 0
    for s in range(n):
        room += indptr[states[s] + 1] - indptr[states[s]]
    start = np.zeros(n + 1, np.int64)
    to = np.empty(room, np.int64)
    value = np.empty(room)
    parts = np.empty(room)
    cost = np.ones(n)
    seen = np.full(n, -1, np.int64)
    end = 0
    for s in range(n):
        begin = end
        for e in range(indptr[states[s]], indptr[states[s] + 1]):
            t = number[indices[e]]
            cost[s] += data[e] * extra[indices[e]]
            if seen[t] >= begin:
                value[seen[t]] += data[e]
                parts[seen[t]] += 1.0
            else:
                seen[t] = end
                to[end] = t
                value[end] = data[e]
                parts[end] = 1.0
                end += 1
        start[s + 1] = end
    return start, to[:end].copy(), value[:end].copy(), parts[:end].copy(), cost


@njit(cache=True, nogil=True)
def reorder(indptr, indices, data, parts, order, place):
    """Put states into another order."""
    start = np.zeros(len(indptr), np.int64)
    to = np.empty(len(indices), np.int64)
    value = np.empty(len(indices))
    number = np.empty(len(indices))
    end = 0
    for s in range(len(order)):
        for e in range(indptr[order[s]], indptr[order[s] + 1]):
            to[end] = place[indices[e]]
            value[end] = data[e]
            number[end] = parts[e]
            end += 1
        start[s + 1] = end
    return start, to, value, number
