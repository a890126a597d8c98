"""Hot loop of lumping: which states lead to one column only.

Slow twin in the tests: tests/solve/test_lump.py, rows of a dense solve.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def find_lumps(block_start, indptr, indices, data, cost, column, columns):
    """Give for each state the first that leads to the same column only, itself if to several.

    Also gives the expected steps of states that lead to one column, 0 for others. States stand so
    that each comes after all it reaches; what comes back to itself is not looked into.
    """
    n = len(cost)
    first_of = np.full(columns, -1, np.int64)
    only = np.full(n, -1, np.int64)
    first = np.arange(n)
    steps = np.zeros(n)
    for b in range(len(block_start) - 1):
        i = block_start[b]
        if block_start[b + 1] - i > 1:
            continue
        c = column[i]
        identical = True
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if j == i or only[j] < 0 or (c >= 0 and only[j] != c):
                identical = False
                break
            c = only[j]
        if not identical or c < 0:
            continue
        only[i] = c
        steps[i] = cost[i]
        for e in range(indptr[i], indptr[i + 1]):
            steps[i] += data[e] * steps[indices[e]]
        if first_of[c] < 0:
            first_of[c] = i
        first[i] = first_of[c]
    return first, steps
