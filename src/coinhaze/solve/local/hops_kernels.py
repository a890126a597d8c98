"""Money that stays where it is: followed from an account's snapshot to its earlier ones.

Slow twin in the tests: tests/solve/test_hops.py, one step of one node at a time.
"""

from __future__ import annotations

import heapq

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def carry(indptr, indices, data, party, snapshot, starts, mass):
    """Push mass back inside accounts, newest snapshots first; give every node it comes to.

    `mass` is dense, filled at `starts` and zero elsewhere; it is left as what came to each node.
    """
    # One number orders by snapshot, newest first, and holds the node.
    n = np.int64(len(mass))
    heap = [-np.int64(snapshot[node]) * n - node for node in starts]
    heapq.heapify(heap)
    passed = np.empty(max(16, len(starts)), dtype=np.int64)
    count = 0
    while heap:
        node = -heapq.heappop(heap) % n
        if count == len(passed):
            passed = np.concatenate((passed, np.empty_like(passed)))
        passed[count] = node
        count += 1
        for k in range(indptr[node], indptr[node + 1]):
            before = indices[k]
            # Money never goes back to a later snapshot, so that none is come to after it was left.
            if party[before] == party[node] and before != node:
                if mass[before] == 0:
                    heapq.heappush(heap, -np.int64(snapshot[before]) * n - before)
                mass[before] += mass[node] * data[k]
    return passed[:count]
