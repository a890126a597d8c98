"""Hot loops of elimination in the manner of Grassmann, Taksar and Heyman.

Eliminating a state sends whoever would go there on to where it goes. The pivot is the sum of the
ways out, never 1 minus the way back, so nothing is ever subtracted and small probabilities keep
all their digits. Every entry carries a bound on its relative rounding error, in units of 2^-53.
Slow twin in the tests: tests/twin.py, rational arithmetic.
"""

from __future__ import annotations

import heapq

import numpy as np
from numba import njit

# Rounding errors of one product and quotient, and of one addition.
PRODUCT, SUM = 4.0, 1.0


@njit(cache=True, nogil=True)
def _find(keys, key):
    """Find the slot of a key, or the free slot where it belongs."""
    mask = len(keys) - 1
    # A Fibonacci hash: consecutive keys spread over the table.
    slot = (np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)
    slot = np.int64(slot & np.uint64(mask))
    while keys[slot] != -1 and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@njit(cache=True, nogil=True)
def _grow(keys, values, errors):
    size = 2 * len(keys)
    new_keys = np.full(size, -1, np.int64)
    new_values = np.zeros(size)
    new_errors = np.zeros(size, np.float32)
    for slot in range(len(keys)):
        if keys[slot] != -1:
            to = _find(new_keys, keys[slot])
            new_keys[to] = keys[slot]
            new_values[to] = values[slot]
            new_errors[to] = errors[slot]
    return new_keys, new_values, new_errors


@njit(cache=True, nogil=True)
def exact_sum(values):
    """Add up positive numbers with a relative error of about 2^-53 (Neumaier)."""
    total = 0.0
    lost = 0.0
    for value in values:
        new = total + value
        if total >= value:
            lost += (total - new) + value
        else:
            lost += (value - new) + total
        total = new
    return total + lost


@njit(cache=True, nogil=True)
def eliminate_block(indptr, indices, data, outside, outside_error, dense_share):
    """Eliminate the states of one strong component, cheapest first, then a dense core.

    The block is given by its inner moves and by `outside`, the probability to leave it, with its
    error. Returns the order, and in that order the lower factors (row, earlier state,
    multiplier), the upper rows (row, later state, probability), pivots and error bounds.
    """
    m = len(outside)
    size = 64
    while size < 4 * len(indices):
        size *= 2
    keys = np.full(size, -1, np.int64)
    values = np.zeros(size)
    errors = np.zeros(size, np.float32)
    used = 0
    out = np.copy(outside)
    out_error = np.copy(outside_error)
    # Successors and predecessors as chained lists; entries of eliminated states are skipped.
    room = 2 * len(indices) + 16
    link_to = np.empty((2, room), np.int64)
    link_next = np.empty((2, room), np.int64)
    link_first = np.full((2, m), -1, np.int64)
    links = 0
    degree = np.zeros((2, m), np.int64)
    inner = 0
    for i in range(m):
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if i == j:
                continue
            slot = _find(keys, i * m + j)
            keys[slot] = i * m + j
            values[slot] = data[e]
            errors[slot] = 4.0
            used += 1
            inner += 1
            for side in range(2):
                a, b = (i, j) if side == 0 else (j, i)
                link_to[side, links] = b
                link_next[side, links] = link_first[side, a]
                link_first[side, a] = links
                degree[side, a] += 1
            links += 1
    alive = np.ones(m, np.bool_)
    left = m
    queue = [(degree[0, i] * degree[1, i], i) for i in range(m)]
    heapq.heapify(queue)
    order = np.empty(m, np.int64)
    pivot = np.empty(m)
    row_error = np.empty(m)
    lower_i = [np.int64(0) for _ in range(0)]
    lower_k = [np.int64(0) for _ in range(0)]
    lower_v = [0.0 for _ in range(0)]
    upper_k = [np.int64(0) for _ in range(0)]
    upper_j = [np.int64(0) for _ in range(0)]
    upper_v = [0.0 for _ in range(0)]
    done = 0
    succ = np.empty(m, np.int64)
    succ_v = np.empty(m)
    succ_e = np.empty(m, np.float32)
    while left > 0 and inner < dense_share * left * left:
        cost, k = heapq.heappop(queue)
        if not alive[k]:
            continue
        now = degree[0, k] * degree[1, k]
        if now > cost:
            heapq.heappush(queue, (now, k))
            continue
        alive[k] = False
        left -= 1
        order[done] = k
        n_succ = 0
        worst = out_error[k]
        link = link_first[0, k]
        while link >= 0:
            j = link_to[0, link]
            if alive[j]:
                slot = _find(keys, k * m + j)
                succ[n_succ] = j
                succ_v[n_succ] = values[slot]
                succ_e[n_succ] = errors[slot]
                worst = max(worst, errors[slot])
                n_succ += 1
                upper_k.append(k)
                upper_j.append(j)
                upper_v.append(values[slot])
                degree[1, j] -= 1
                inner -= 1
            link = link_next[0, link]
        s = exact_sum(np.append(succ_v[:n_succ], out[k]))
        pivot[done] = s
        row_error[done] = worst
        done += 1
        link = link_first[1, k]
        while link >= 0:
            i = link_to[1, link]
            link = link_next[1, link]
            if not alive[i]:
                continue
            slot = _find(keys, i * m + k)
            ratio = values[slot] / s
            ratio_error = errors[slot] + PRODUCT
            lower_i.append(i)
            lower_k.append(k)
            lower_v.append(ratio)
            degree[0, i] -= 1
            inner -= 1
            if out[k] > 0:
                out_error[i] = max(out_error[i], ratio_error) + SUM
                out[i] += ratio * out[k]
            for p in range(n_succ):
                j = succ[p]
                if j == i:
                    continue
                slot = _find(keys, i * m + j)
                if keys[slot] == -1:
                    if 3 * used > 2 * len(keys):
                        keys, values, errors = _grow(keys, values, errors)
                        slot = _find(keys, i * m + j)
                    keys[slot] = i * m + j
                    used += 1
                    values[slot] = ratio * succ_v[p]
                    errors[slot] = ratio_error
                    inner += 1
                    if links == room:
                        wide_to = np.empty((2, 2 * room), np.int64)
                        wide_next = np.empty((2, 2 * room), np.int64)
                        wide_to[:, :room] = link_to
                        wide_next[:, :room] = link_next
                        link_to, link_next, room = wide_to, wide_next, 2 * room
                    for side in range(2):
                        a, b = (i, j) if side == 0 else (j, i)
                        link_to[side, links] = b
                        link_next[side, links] = link_first[side, a]
                        link_first[side, a] = links
                        degree[side, a] += 1
                    links += 1
                else:
                    errors[slot] = max(errors[slot], ratio_error) + SUM
                    values[slot] += ratio * succ_v[p]
            heapq.heappush(queue, (degree[0, i] * degree[1, i], i))
        for p in range(n_succ):
            j = succ[p]
            heapq.heappush(queue, (degree[0, j] * degree[1, j], j))
    core = np.flatnonzero(alive)
    c = len(core)
    place = np.full(m, -1, np.int64)
    place[core] = np.arange(c)
    dense = np.zeros((c, c))
    dense_error = np.zeros((c, c), np.float32)
    for slot in range(len(keys)):
        if keys[slot] != -1:
            i, j = place[keys[slot] // m], place[keys[slot] % m]
            if i >= 0 and j >= 0:
                dense[i, j] = values[slot]
                dense_error[i, j] = errors[slot]
    for k in range(c):
        worst = out_error[core[k]]
        for j in range(k + 1, c):
            if dense[k, j] > 0:
                worst = max(worst, dense_error[k, j])
                upper_k.append(core[k])
                upper_j.append(core[j])
                upper_v.append(dense[k, j])
        s = exact_sum(np.append(dense[k, k + 1 :], out[core[k]]))
        order[done] = core[k]
        pivot[done] = s
        row_error[done] = worst
        done += 1
        for i in range(k + 1, c):
            if dense[i, k] == 0:
                continue
            ratio = dense[i, k] / s
            ratio_error = dense_error[i, k] + PRODUCT
            lower_i.append(core[i])
            lower_k.append(core[k])
            lower_v.append(ratio)
            if out[core[k]] > 0:
                out_error[core[i]] = max(out_error[core[i]], ratio_error) + SUM
                out[core[i]] += ratio * out[core[k]]
            for j in range(k + 1, c):
                if dense[k, j] > 0 and j != i:
                    dense[i, j] += ratio * dense[k, j]
                    dense_error[i, j] = max(dense_error[i, j], ratio_error) + SUM
    return (
        order,
        pivot,
        row_error,
        np.array(lower_i, dtype=np.int64),
        np.array(lower_k, dtype=np.int64),
        np.array(lower_v, dtype=np.float64),
        np.array(upper_k, dtype=np.int64),
        np.array(upper_j, dtype=np.int64),
        np.array(upper_v, dtype=np.float64),
    )


@njit(cache=True, nogil=True)
def solve_vector(lower, lower_at, lower_v, upper, upper_at, upper_v, pivot, block_start, x):
    """Replace x by N x: forward through each block, then back."""
    for b in range(len(block_start) - 1):
        for i in range(block_start[b], block_start[b + 1]):
            for e in range(lower[i], lower[i + 1]):
                x[i] += lower_v[e] * x[lower_at[e]]
        for i in range(block_start[b + 1] - 1, block_start[b] - 1, -1):
            for e in range(upper[i], upper[i + 1]):
                x[i] += upper_v[e] * x[upper_at[e]]
            x[i] /= pivot[i]


@njit(cache=True, nogil=True)
def solve_transposed(lower, lower_at, lower_v, upper, upper_at, upper_v, pivot, block_start, y):
    """Replace y by y N: the expected visits to each state of walks that start as y says."""
    for b in range(len(block_start) - 2, -1, -1):
        for i in range(block_start[b], block_start[b + 1]):
            y[i] /= pivot[i]
            for e in range(upper[i], upper[i + 1]):
                y[upper_at[e]] += y[i] * upper_v[e]
        for i in range(block_start[b + 1] - 1, block_start[b] - 1, -1):
            for e in range(lower[i], lower[i + 1]):
                y[lower_at[e]] += y[i] * lower_v[e]
