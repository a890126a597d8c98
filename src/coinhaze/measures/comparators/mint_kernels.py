"""Hot loop of mint centrality. Slow twin in the tests: tests/measures/test_mint.py."""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True)
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
