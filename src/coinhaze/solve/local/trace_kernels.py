"""Hot loop that follows one coin's money back, the largest shares first.

Slow twin in the tests: tests/solve/test_local.py, visits and rows of B in dense arithmetic.
"""

from __future__ import annotations

import heapq

import numpy as np
from numba import njit

NO_SLOT = -1


@njit(cache=True, nogil=True)
def _longer(values, used):
    """Double the room of an array."""
    longer = np.zeros(2 * len(values), values.dtype)
    longer[:used] = values[:used]
    return longer


@njit(cache=True, nogil=True, error_model="numpy")
def trace_back(indptr, indices, data, begin, ordered, finest, enough, few_moves, most_moves, slot):
    """Push mass back from a node while shares are large, then smaller ones, down to `finest`.

    After a few moves it ends once all but `enough` was followed, and after most in any case.
    `slot` is NO_SLOT everywhere, before and after. Where nodes are `ordered` by time the highest
    goes first, so that it is pushed once in a round; else the largest share. Gives the nodes
    reached, how often the walk was followed through each, and the mass left there.
    """
    nodes = np.empty(64, np.int64)
    visits, mass = np.zeros(64), np.zeros(64)
    waiting = np.zeros(64, np.bool_)
    nodes[0], mass[0], slot[begin] = begin, 1.0, 0
    used = 1
    moves = 0
    least = 1.0
    while least > finest and moves < most_moves:
        if moves >= few_moves and np.sum(mass[:used]) <= enough:
            break
        least *= 0.1
        heap = [(0.0, np.int64(0)) for _ in range(0)]
        for s in range(used):
            if mass[s] >= least:
                waiting[s] = True
                heapq.heappush(heap, (-np.float64(nodes[s]) if ordered else -mass[s], s))
        while len(heap) > 0:
            s = heapq.heappop(heap)[1]
            waiting[s] = False
            if moves >= most_moves:
                continue
            j, m = nodes[s], mass[s]
            mass[s] = 0.0
            visits[s] += m
            moves += indptr[j + 1] - indptr[j] + 1
            for e in range(indptr[j], indptr[j + 1]):
                k = np.int64(indices[e])
                t = np.int64(slot[k])
                if t == NO_SLOT:
                    if used == len(nodes):
                        nodes, visits = _longer(nodes, used), _longer(visits, used)
                        mass, waiting = _longer(mass, used), _longer(waiting, used)
                    t = np.int64(used)
                    slot[k], nodes[t] = t, k
                    used += 1
                mass[t] += m * data[e]
                if mass[t] >= least and not waiting[t]:
                    waiting[t] = True
                    heapq.heappush(heap, (-np.float64(k) if ordered else -mass[t], t))
    for s in range(used):
        slot[nodes[s]] = NO_SLOT
        # A source without a past needs no pushing.
        if indptr[nodes[s]] == indptr[nodes[s] + 1]:
            visits[s] += mass[s]
            mass[s] = 0.0
    return nodes[:used], visits[:used], mass[:used]
