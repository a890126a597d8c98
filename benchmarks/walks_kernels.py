"""Hot loop of `walks.py`: backward walks, one after another.

Slow twin in the tests: the exact solver, tests/bench/test_walks.py.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from coinhaze.solve.sketch import kernels

mix = kernels.mix.compiled
_WEYL = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, nogil=True)
def _entropy(ends):
    """Estimate the entropy behind sorted draws, unseen outcomes included (Chao & Shen 2003).

    What was seen has only part of the probability, about 1 - (outcomes seen once) / draws; and an
    outcome of probability p stands for 1 / (chance to be seen) = 1 / (1 - (1 - p)^draws) such.
    """
    n = len(ends)
    once = 0
    for w in range(n):
        alone_before = w == 0 or ends[w - 1] != ends[w]
        once += alone_before and (w == n - 1 or ends[w + 1] != ends[w])
    # All seen once says nothing about the rest; the usual remedy is to take one as seen twice.
    coverage = 1.0 - min(once, n - 1) / n
    total = 0.0
    begin = 0
    for w in range(1, n + 1):
        if w == n or ends[w] != ends[begin]:
            p = coverage * (w - begin) / n
            if p < 1.0:
                total -= p * np.log(p) / (1.0 - (1.0 - p) ** n)
            begin = w
    return total


@njit(cache=True, nogil=True, parallel=True)
def walk_back(indptr, indices, reach, own, column, rows, walks, seed, max_steps):
    """Walk from each row until absorbed; `reach` is the running sum of each row's chances.

    Gives the entropy of the outcomes in nats and mean steps, not a number for a row with a walk
    that was not absorbed within `max_steps`.
    """
    nats = np.full(len(rows), np.nan)
    steps = np.full(len(rows), np.nan)
    for r in prange(len(rows)):
        # Each row draws from a stream of its own: the same for any number of threads.
        state = mix(mix(np.uint64(seed) * _WEYL) + np.uint64(rows[r]) * _WEYL)
        ends = np.empty(walks, np.int64)
        taken = 0
        finished = True
        for w in range(walks):
            at = rows[r]
            for k in range(max_steps + 1):
                if k == max_steps:
                    finished = False
                    break
                taken += 1
                state += _WEYL
                chance = np.float64(mix(state) >> np.uint64(11)) * 2.0**-53
                first, last = indptr[at], indptr[at + 1]
                # Chances sum to 1 but for rounding: what lies beyond the last goes to the last.
                if chance < own[at] or (first == last and own[at] > 0):
                    ends[w] = column[at]
                    break
                if first == last:
                    finished = False
                    break
                wanted = chance - own[at]
                lo, hi = first, last - 1
                while lo < hi:
                    mid = (lo + hi) >> 1
                    if reach[mid] > wanted:
                        hi = mid
                    else:
                        lo = mid + 1
                at = indices[lo]
            if not finished:
                break
        if not finished:
            continue
        ends.sort()
        nats[r] = _entropy(ends)
        steps[r] = taken / walks
    return nats, steps
