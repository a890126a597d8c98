"""Hot loops over one node's past: what of each node's money arrives at some ends, and how near.

Slow twins in the tests: whole chains in dense arithmetic (tests/solve/test_past.py).
"""

from __future__ import annotations

import numpy as np

from coinhaze.kernels import kernel


@kernel()
def arrive(first, to, chance, value, fixed, ordered, minimum, max_sweeps):
    """Add to each node's values those of where it moves to, by chance; fixed nodes keep theirs.

    `value` (nodes x columns) is changed in place. With loops every sweep comes nearer from below.
    """
    n, columns = value.shape
    own = value if ordered else value.copy()
    total = np.empty(columns)
    for _ in range(1 if ordered else max_sweeps):
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
        if change <= minimum:
            break


@kernel()
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
