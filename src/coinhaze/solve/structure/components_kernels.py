"""Hot loops on the shape of a chain: strong components, reachability, counting sources.

Slow twins in the tests: tests/solve/dense.py, used by tests/solve/test_solvers.py.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def strong_components(indptr, indices):
    """Number strong components so that each comes after all it can reach (Tarjan, no recursion)."""
    n = len(indptr) - 1
    number = np.full(n, -1, np.int64)
    low = np.zeros(n, np.int64)
    component = np.full(n, -1, np.int64)
    next_edge = np.zeros(n, np.int64)
    path = np.empty(n, np.int64)
    stack = np.empty(n, np.int64)
    path_top = stack_top = count = components = 0
    for root in range(n):
        if number[root] >= 0:
            continue
        path[path_top] = stack[stack_top] = root
        path_top += 1
        stack_top += 1
        number[root] = low[root] = count
        count += 1
        next_edge[root] = indptr[root]
        while path_top > 0:
            v = path[path_top - 1]
            if next_edge[v] < indptr[v + 1]:
                w = indices[next_edge[v]]
                next_edge[v] += 1
                if number[w] < 0:
                    number[w] = low[w] = count
                    count += 1
                    next_edge[w] = indptr[w]
                    path[path_top] = w
                    path_top += 1
                    stack[stack_top] = w
                    stack_top += 1
                elif component[w] < 0:
                    low[v] = min(low[v], number[w])
            else:
                path_top -= 1
                if path_top > 0:
                    parent = path[path_top - 1]
                    low[parent] = min(low[parent], low[v])
                if low[v] == number[v]:
                    while True:
                        stack_top -= 1
                        w = stack[stack_top]
                        component[w] = components
                        if w == v:
                            break
                    components += 1
    return components, component


@njit(cache=True, nogil=True)
def reachable(indptr, indices, start):
    """Tell which nodes can be reached from any node of `start`, those included."""
    seen = start.copy()
    stack = np.empty(len(seen), np.int64)
    top = 0
    for v in range(len(seen)):
        if seen[v]:
            stack[top] = v
            top += 1
    while top > 0:
        top -= 1
        v = stack[top]
        for e in range(indptr[v], indptr[v + 1]):
            w = indices[e]
            if not seen[w]:
                seen[w] = True
                stack[top] = w
                top += 1
    return seen


@njit(cache=True, nogil=True, inline="always")
def _ones(word):
    """Count the bits of a 64-bit word that are set."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    pairs = np.uint64(0x3333333333333333)
    word = (word & pairs) + ((word >> np.uint64(2)) & pairs)
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@njit(cache=True, nogil=True)
def count_outcomes(indptr, indices, slot, block_start, worth):
    """Add up what the outcomes each state can reach are worth, 512 outcomes at a time.

    Outcome `slot` is a bit of word `slot // 64`, whose outcomes are worth the same; -1 is none.
    States stand in blocks (strong components), each after all it reaches. Counting works on the
    graph, so an outcome of probability 1e-400 counts.
    """
    blocks = len(block_start) - 1
    words = 8
    block_of = np.empty(len(slot), np.int64)
    for b in range(blocks):
        block_of[block_start[b] : block_start[b + 1]] = b
    count = np.zeros(blocks, np.int64)
    sets = np.zeros((blocks, words), np.uint64)
    for first in range(0, 64 * len(worth), 64 * words):
        for b in range(blocks):
            sets[b] = 0
            for v in range(block_start[b], block_start[b + 1]):
                k = slot[v] - first
                if 0 <= k < 64 * words:
                    sets[b, k // 64] |= np.uint64(1) << np.uint64(k % 64)
                for e in range(indptr[v], indptr[v + 1]):
                    d = block_of[indices[e]]
                    if d != b:
                        for w in range(words):
                            sets[b, w] |= sets[d, w]
            for w in range(min(words, len(worth) - first // 64)):
                count[b] += _ones(sets[b, w]) * worth[first // 64 + w]
    return count[block_of]
