"""Hot loops over rows and edges: sorted by counting, by group or by two ends; marks handed along.

Keys are below n, so counting them takes linear time. All sorts are stable. Slow twins in the tests:
tests/graph/test_order.py and tests/measures/test_mint.py.
"""

from __future__ import annotations

import numpy as np

from coinhaze.kernels import kernel


@kernel()
def add_groups(key, start):
    """Find where each group begins among rows sorted by group; `start` is all 0, and one longer."""
    for k in key:
        start[k + 1] += 1
    for k in range(len(start) - 1):
        start[k + 1] += start[k]


@kernel()
def group_rows(key, n):
    """Sort rows by group 0 .. n-1; return where each group begins, and the rows in order.

    Results have the type of `key`, which must be enough for the number of rows.
    """
    start = np.zeros(n + 1, key.dtype)
    add_groups(key, start)
    place = start.copy()
    order = np.empty(len(key), key.dtype)
    for row in range(len(key)):
        k = key[row]
        order[place[k]] = row
        place[k] += 1
    return start, order


@kernel()
def merge_pairs(tail, head, n):
    """Number distinct pairs by tail, then head; return each row's pair number, and the pairs.

    Results have the type of `tail`, which must be enough for the number of rows.
    """
    m = len(tail)
    # By head, then by tail, both sorts stable; what the next pass needs moves with the rows.
    place = np.zeros(n + 1, tail.dtype)
    add_groups(head, place)
    row_by_head, tail_by_head = np.empty(m, tail.dtype), np.empty(m, tail.dtype)
    for row in range(m):
        at = place[head[row]]
        place[head[row]] += 1
        row_by_head[at] = row
        tail_by_head[at] = tail[row]
    start = np.zeros(n + 1, tail.dtype)
    add_groups(tail, start)
    place[:] = start
    row_by_tail = np.empty(m, tail.dtype)
    for k in range(m):
        t = tail_by_head[k]
        row_by_tail[place[t]] = row_by_head[k]
        place[t] += 1
    pair, pair_tail, pair_head = row_by_head, tail_by_head, np.empty(m, tail.dtype)  # memory reused
    count = 0
    for t in range(n):
        for k in range(start[t], start[t + 1]):
            row = row_by_tail[k]
            if k == start[t] or head[row] != pair_head[count - 1]:
                pair_tail[count] = t
                pair_head[count] = head[row]
                count += 1
            pair[row] = count - 1
    return pair, pair_tail[:count].copy(), pair_head[:count].copy()


@kernel()
def sparse_rows(row, column, value, n, indices, data):
    """Sort entries by row, stably, into the arrays of a CSR matrix."""
    start = np.zeros(n + 1, np.int64)
    add_groups(row, start)
    place = start.copy()
    for k in range(len(row)):
        at = place[row[k]]
        place[row[k]] += 1
        indices[at] = column[k]
        data[at] = value[k]
    return start


@kernel()
def spread(tail, head, marks):
    """Hand each node's marks on along the edges, in their order, until nothing changes."""
    changed = True
    while changed:
        changed = False
        for e in range(len(tail)):
            more = marks[tail[e]] & ~marks[head[e]]
            if more:
                marks[head[e]] |= more
                changed = True
