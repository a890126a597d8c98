"""Hot loop of `acyclic.py`: the exact row of one node, pushed back through its past.

It shares nothing with the solvers but the chain. Slow twin in the tests: the exact solver,
tests/bench/test_acyclic.py.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def push_back(indptr, indices, data, own, column, node, waiting, mass, past):
    """Give the outcomes of a walk from a node of an acyclic chain, and their probabilities.

    `waiting` and `mass` are zero for all nodes, before and after; `past` has room for all nodes. A
    node is pushed once all that lead to it have been.
    """
    past[0] = node
    size = 1
    waiting[node] = 1
    k = 0
    while k < size:
        v = past[k]
        k += 1
        for e in range(indptr[v], indptr[v + 1]):
            u = indices[e]
            if waiting[u] == 0:
                past[size] = u
                size += 1
            waiting[u] += 1
    outcomes = []
    chances = []
    # What is ready waits at the front of `past`, in the place of nodes already pushed.
    ready = 1
    mass[node] = 1.0
    waiting[node] = 0
    for k in range(size):
        v = past[k]
        if own[v] > 0:
            outcomes.append(column[v])
            chances.append(mass[v] * own[v])
        p = mass[v]
        mass[v] = 0.0
        for e in range(indptr[v], indptr[v + 1]):
            u = indices[e]
            mass[u] += p * data[e]
            waiting[u] -= 1
            if waiting[u] == 0:
                past[ready] = u
                ready += 1
    return np.array(outcomes), np.array(chances)
