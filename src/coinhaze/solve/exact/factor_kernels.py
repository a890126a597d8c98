"""Hot loops of elimination in the manner of Grassmann, Taksar and Heyman.

Eliminating a state redirects moves into it to where it leads. The pivot is the sum of the
ways out, never 1 minus the way back, so nothing is ever subtracted and small probabilities keep
all their digits. Every entry carries a bound on its relative rounding error, in units of 2^-53.
Slow twin in the tests: tests/twin.py, rational arithmetic.
"""

from __future__ import annotations

import heapq

import numpy as np

from coinhaze.kernels import kernel
from coinhaze.solve.exact.pairs_kernels import add_exactly, exact_sum
from coinhaze.solve.planner.thresholds import MIN_CORE

# Rounding errors of one product and quotient, and of one addition.
PRODUCT, SUM = 4.0, 1.0
# Entries below this have lost digits at the end of the range of floats.
FAINT = 1e-290


@kernel()
def _find(keys, key):
    """Find the slot of a key, or the free slot where it belongs."""
    mask = len(keys) - 1
    # A Fibonacci hash: consecutive keys spread over the table.
    slot = (np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)
    slot = np.int64(slot & np.uint64(mask))
    while keys[slot] != -1 and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@kernel()
def _grow(keys, values, lost, errors):
    size = 2 * len(keys)
    new_keys = np.full(size, -1, np.int64)
    new_values = np.zeros(size)
    new_lost = np.zeros(size)
    new_errors = np.zeros(size)
    for slot in range(len(keys)):
        if keys[slot] != -1:
            to = _find(new_keys, keys[slot])
            new_keys[to] = keys[slot]
            new_values[to] = values[slot]
            new_lost[to] = lost[slot]
            new_errors[to] = errors[slot]
    return new_keys, new_values, new_lost, new_errors


@kernel()
def _add_link(link_to, link_next, link_first, degree, links, i, j):
    """Note a move from i to j among the successors of i and the predecessors of j."""
    for side in range(2):
        a, b = (i, j) if side == 0 else (j, i)
        link_to[side, links] = b
        link_next[side, links] = link_first[side, a]
        link_first[side, a] = links
        degree[side, a] += 1


@kernel()
def _widen(links):
    """Double the room for links."""
    wide = np.empty((2, 2 * links.shape[1]), np.int64)
    wide[:, : links.shape[1]] = links
    return wide


@kernel()
def _columns(triples):
    """Turn a list of (row, column, value) into three arrays."""
    rows = np.empty(len(triples), np.int64)
    columns = np.empty(len(triples), np.int64)
    values = np.empty(len(triples))
    for e in range(len(triples)):
        rows[e], columns[e], values[e] = triples[e]
    return rows, columns, values


@kernel()
def thin_block(
    indptr, indices, data, data_error, outside, outside_error, dense_share, max_product, max_work
):
    """Eliminate states of one strong component, cheapest first, until the rest is dense.

    The block is given by its inner moves and by `outside`, the probability to leave it, with its
    error. It also ends when the cheapest state has more than `max_product` ways through it, or
    when all ways taken pass `max_work`. Returns how many states are eliminated, and the order:
    those first, then the core; pivots and error bounds of the eliminated; their lower factors
    (row, earlier state, multiplier) and upper rows (row, later state, probability); the core's
    moves and ways out, with errors. A number too small for floats gives pivots of 0.
    """
    m = len(outside)
    size = 64
    while size < 4 * len(indices):
        size *= 2
    keys = np.full(size, -1, np.int64)
    # Sums that many terms go into are kept with what they lose, so that they round once.
    values = np.zeros(size)
    lost = np.zeros(size)
    errors = np.zeros(size)
    used = 0
    out = np.copy(outside)
    out_lost = np.zeros(m)
    out_error = np.copy(outside_error)
    # Successors and predecessors as chained lists; entries of eliminated states are skipped.
    link_to = np.empty((2, 2 * len(indices) + 16), np.int64)
    link_next = np.empty((2, 2 * len(indices) + 16), np.int64)
    link_first = np.full((2, m), -1, np.int64)
    degree = np.zeros((2, m), np.int64)
    for i in range(m):
        for e in range(indptr[i], indptr[i + 1]):
            if i != indices[e]:
                slot = _find(keys, i * m + indices[e])
                keys[slot] = i * m + indices[e]
                values[slot] = data[e]
                errors[slot] = data_error[e]
                _add_link(link_to, link_next, link_first, degree, used, i, indices[e])
                used += 1
    links = inner = used
    alive = np.ones(m, np.bool_)
    left = m
    queue = [(degree[0, i] * degree[1, i], i) for i in range(m)]
    heapq.heapify(queue)
    order = np.empty(m, np.int64)
    pivot = np.empty(m)
    row_error = np.empty(m)
    lower = [(np.int64(0), np.int64(0), 0.0) for _ in range(0)]
    upper = [(np.int64(0), np.int64(0), 0.0) for _ in range(0)]
    succ = np.empty(m, np.int64)
    succ_v = np.empty(m + 1)
    done = 0
    work = 0
    faint = 1.0
    while left > 0 and (left <= MIN_CORE or inner < dense_share * left * left) and work <= max_work:
        cost, k = heapq.heappop(queue)
        now = degree[0, k] * degree[1, k]
        if not alive[k]:
            continue
        if now > cost:
            heapq.heappush(queue, (now, k))
            continue
        if now > max_product:
            break
        work += now
        alive[k] = False
        left -= 1
        n_succ = 0
        worst = out_error[k]
        link = link_first[0, k]
        while link >= 0:
            j = link_to[0, link]
            link = link_next[0, link]
            if alive[j]:
                slot = _find(keys, k * m + j)
                succ[n_succ] = j
                succ_v[n_succ] = values[slot] + lost[slot]
                worst = max(worst, errors[slot])
                upper.append((k, j, succ_v[n_succ]))
                n_succ += 1
                degree[1, j] -= 1
                inner -= 1
        way_out = out[k] + out_lost[k]
        succ_v[n_succ] = way_out
        s = exact_sum(succ_v[: n_succ + 1])
        order[done] = k
        pivot[done] = s
        row_error[done] = worst + SUM
        done += 1
        link = link_first[1, k]
        while link >= 0:
            i = link_to[1, link]
            link = link_next[1, link]
            if not alive[i]:
                continue
            slot = _find(keys, i * m + k)
            ratio = (values[slot] + lost[slot]) / s
            ratio_error = errors[slot] + PRODUCT + 2 * SUM
            lower.append((i, k, ratio))
            degree[0, i] -= 1
            inner -= 1
            if way_out > 0:
                out_error[i] = max(out_error[i], ratio_error)
                out[i], out_lost[i] = add_exactly(out[i], out_lost[i], ratio * way_out)
                faint = min(faint, ratio * way_out)
            for p in range(n_succ):
                j = succ[p]
                if j == i:
                    continue
                slot = _find(keys, i * m + j)
                if keys[slot] != -1:
                    errors[slot] = max(errors[slot], ratio_error)
                    values[slot], lost[slot] = add_exactly(
                        values[slot], lost[slot], ratio * succ_v[p]
                    )
                    continue
                if 3 * used > 2 * len(keys):
                    keys, values, lost, errors = _grow(keys, values, lost, errors)
                    slot = _find(keys, i * m + j)
                keys[slot] = i * m + j
                values[slot] = ratio * succ_v[p]
                faint = min(faint, values[slot])
                errors[slot] = ratio_error
                used += 1
                inner += 1
                if links == link_to.shape[1]:
                    link_to, link_next = _widen(link_to), _widen(link_next)
                _add_link(link_to, link_next, link_first, degree, links, i, j)
                links += 1
            heapq.heappush(queue, (degree[0, i] * degree[1, i], i))
        for p in range(n_succ):
            heapq.heappush(queue, (degree[0, succ[p]] * degree[1, succ[p]], succ[p]))
    core = np.flatnonzero(alive)
    order[done:] = core
    place = np.full(m, -1, np.int64)
    place[core] = np.arange(len(core))
    moves = [(np.int64(0), np.int64(0), 0.0) for _ in range(0)]
    move_errors = [0.0 for _ in range(0)]
    for c in range(len(core)):
        link = link_first[0, core[c]]
        while link >= 0:
            j = link_to[0, link]
            link = link_next[0, link]
            if alive[j]:
                slot = _find(keys, core[c] * m + j)
                moves.append((np.int64(c), place[j], values[slot] + lost[slot]))
                move_errors.append(errors[slot] + SUM)
    if faint < FAINT:
        pivot[:] = 0.0
    return (
        done, order, pivot[:done], row_error[:done], _columns(lower), _columns(upper),
        _columns(moves), np.array(move_errors), (out + out_lost)[core], out_error[core] + SUM,
        work > max_work,
    )  # fmt: skip


@kernel()
def eliminate_small(blocks, block_start, indptr, indices, data, data_error, outside, outside_error):
    """Eliminate components of a few states each, as they stand; pivots and errors in their place.

    Gives the components' pivots and error bounds by state, 1 and 0 elsewhere, and all lower
    factors and upper rows. A number too small for floats gives a pivot of 0.
    """
    pivot = np.ones(len(outside))
    row_error = np.zeros(len(outside))
    lower = [(np.int64(0), np.int64(0), 0.0) for _ in range(0)]
    upper = [(np.int64(0), np.int64(0), 0.0) for _ in range(0)]
    moves = np.zeros((MIN_CORE, MIN_CORE))
    errors = np.zeros((MIN_CORE, MIN_CORE))
    for b in blocks:
        start, end = block_start[b], block_start[b + 1]
        c = end - start
        faint = False
        moves[:c, :c] = 0.0
        errors[:c, :c] = 0.0
        out = outside[start:end].copy()
        out_error = outside_error[start:end].copy()
        for i in range(start, end):
            for e in range(indptr[i], indptr[i + 1]):
                if start <= indices[e] < end and indices[e] != i:
                    moves[i - start, indices[e] - start] = data[e]
                    errors[i - start, indices[e] - start] = data_error[e]
        for k in range(c):
            s = exact_sum(np.append(moves[k, k + 1 : c], out[k]))
            worst = out_error[k]
            for j in range(k + 1, c):
                if moves[k, j] > 0.0:
                    worst = max(worst, errors[k, j])
                    upper.append((start + k, start + j, moves[k, j]))
            row_error[start + k] = worst
            for i in range(k + 1, c):
                if moves[i, k] == 0.0:
                    continue
                ratio = moves[i, k] / s
                ratio_error = errors[i, k] + PRODUCT
                lower.append((start + i, start + k, ratio))
                out_error[i] = max(out_error[i], ratio_error) + SUM
                out[i] += ratio * out[k]
                if out[k] > 0.0 and ratio * out[k] < FAINT:
                    faint = True
                for j in range(k + 1, c):
                    if moves[k, j] > 0.0 and j != i:
                        moves[i, j] += ratio * moves[k, j]
                        errors[i, j] = max(errors[i, j], ratio_error) + SUM
                        if moves[i, j] < FAINT:
                            faint = True
            pivot[start + k] = 0.0 if faint else s
    return pivot, row_error, _columns(lower), _columns(upper)
