"""Hot loop that writes a solve by factors down as moves without cycles.

Slow twin in the tests: tests/solve/test_moves.py, the solve itself.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def unroll(
    lower, lower_at, lower_v, upper, upper_at, upper_v, pivot, first, sizes, cores, at, inverses
):
    """Give moves, and for each place of the factors the node of its row and of its absorber.

    Blocks are taken in the order given by `first`, the place where each begins. The last
    `cores[b]` states of block b are a core, whose inverse begins at `at[b]`.
    """
    n = len(pivot)
    row_node = np.empty(n, np.int64)
    own_node = np.empty(n, np.int64)
    room = len(lower_at) + len(upper_at) + n + len(inverses)
    start = np.zeros(2 * n + 1, np.int64)
    to = np.empty(room, np.int64)
    weight = np.empty(room)
    node = 0
    end = 0
    for b in range(len(first)):
        begin, stop = first[b], first[b] + sizes[b]
        single = sizes[b] == 1 and pivot[begin] == 1.0
        for i in range(begin, stop):
            for e in range(lower[i], lower[i + 1]):
                j = lower_at[e]
                to[end] = own_node[j] if begin <= j < stop else row_node[j]
                weight[end] = lower_v[e]
                end += 1
            own_node[i] = node
            node += 1
            start[node] = end
        core = stop - cores[b]
        for i in range(core, stop):
            for j in range(core, stop):
                w = inverses[at[b] + (i - core) * cores[b] + j - core]
                if w > 0.0:
                    to[end] = own_node[j]
                    weight[end] = w
                    end += 1
            row_node[i] = node
            node += 1
            start[node] = end
        for i in range(core - 1, begin - 1, -1):
            if single:
                row_node[i] = own_node[i]
                continue
            to[end] = own_node[i]
            weight[end] = 1.0 / pivot[i]
            end += 1
            for e in range(upper[i], upper[i + 1]):
                to[end] = row_node[upper_at[e]]
                weight[end] = upper_v[e] / pivot[i]
                end += 1
            row_node[i] = node
            node += 1
            start[node] = end
    return start[: node + 1].copy(), to[:end].copy(), weight[:end].copy(), row_node, own_node
