"""Hot loops over one node's past: its nodes, what passes them, and what of it arrives where.

Slow twins in the tests: whole chains in dense arithmetic (tests/solve/test_past.py and, for the
largest shares, test_local.py); one step of one node at a time (tests/solve/test_hops.py).
"""

from __future__ import annotations

import heapq

import numpy as np

from coinhaze.kernels import kernel

NO_SLOT = -1


@kernel()
def _total(values):
    """Add up from the first to the last, as numpy's own sum does not."""
    found = 0.0
    for value in values:
        found += value
    return found


@kernel()
def ancestors(indptr, indices, begin, most_moves, slot):
    """Find every node a walk back can come to; an empty array where that takes too many moves.

    `slot` is NO_SLOT everywhere, before and after.
    """
    nodes = np.empty(64, np.int64)
    nodes[0] = begin
    slot[begin] = 0
    used, done, moves = 1, 0, 0
    while done < used and moves <= most_moves:
        node = nodes[done]
        done += 1
        moves += indptr[node + 1] - indptr[node] + 1
        for e in range(indptr[node], indptr[node + 1]):
            before = np.int64(indices[e])
            if slot[before] == NO_SLOT:
                if used == len(nodes):
                    nodes = np.concatenate((nodes, np.empty_like(nodes)))
                nodes[used] = before
                slot[before] = used
                used += 1
    for k in range(used):
        slot[nodes[k]] = NO_SLOT
    return nodes[: 0 if moves > most_moves else used]


@kernel()
def visit(first, to, chance, begin, ordered, least, most_sweeps):
    """Push mass 1 back from a node: how often a walk comes by each, and what was left on the way.

    Where moves lead to lower numbers only, one sweep from above does it; else sweeps go on until
    less than `least` is left.
    """
    n = len(first) - 1
    mass, visits = np.zeros(n), np.zeros(n)
    mass[begin] = 1.0
    left = 1.0
    for _ in range(1 if ordered else most_sweeps):
        left = 0.0
        for i in range(n - 1, -1, -1):
            m = mass[i]
            if m == 0.0:
                continue
            mass[i] = 0.0
            visits[i] += m
            for e in range(first[i], first[i + 1]):
                if to[e] >= 0:
                    mass[to[e]] += m * chance[e]
                    if to[e] >= i:
                        left += m * chance[e]
        if left <= least:
            break
    for i in range(n):
        if first[i] == first[i + 1]:  # nothing follows: what came here has been here
            visits[i] += mass[i]
            mass[i] = 0.0
    return visits, _total(mass)


@kernel()
def arrive(first, to, chance, value, fixed, ordered, least, most_sweeps):
    """Add to each node's values those of where it moves to, by chance; fixed nodes keep theirs.

    `value` (nodes x columns) is changed in place. With loops every sweep comes nearer from below.
    """
    n, columns = value.shape
    own = value if ordered else value.copy()
    total = np.empty(columns)
    for _ in range(1 if ordered else most_sweeps):
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
        if change <= least:
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


@kernel()
def stay(first, to, chance, party, listed, box, mass):
    """Push mass (nodes x columns) back inside parties, from above, leaving it where it came by.

    Nodes it comes to get the box of those it came from; past a listed node the last column stops.
    """
    n, columns = mass.shape
    for i in range(n - 1, -1, -1):
        if mass[i, 0] == 0.0:
            continue
        for e in range(first[i], first[i + 1]):
            k = to[e]
            if k >= 0 and k != i and party[k] == party[i]:
                box[k] = box[i]
                for c in range(columns - (1 if listed[i] else 0)):
                    mass[k, c] += mass[i, c] * chance[e]


@kernel()
def _longer(values, used):
    """Double the room of an array."""
    longer = np.zeros(2 * len(values), values.dtype)
    longer[:used] = values[:used]
    return longer


@kernel(error_model="numpy")
def trace_back(indptr, indices, data, begin, ordered, finest, enough, few_moves, most_moves, slot):
    """Push mass back from a node while shares are large, then smaller ones, down to `finest`.

    After a few moves it ends once all but `enough` was followed, and after most in any case.
    `slot` is NO_SLOT everywhere, before and after. Where nodes are `ordered` by time the highest
    goes first, so that it is pushed once in a round; else the largest share. Gives the nodes
    reached, how often the walk was followed through each, and the mass left there.
    """
    nodes = np.empty(64, np.int64)
    visits, mass = np.zeros(64), np.zeros(64)
    waiting = np.zeros(64, np.bool_)
    nodes[0], mass[0], slot[begin] = begin, 1.0, 0
    used = 1
    moves = 0
    least = 1.0
    while least > finest and moves < most_moves:
        if moves >= few_moves and _total(mass[:used]) <= enough:
            break
        least *= 0.1
        heap = [(0.0, np.int64(0)) for _ in range(0)]
        for s in range(used):
            if mass[s] >= least:
                waiting[s] = True
                heapq.heappush(heap, (-np.float64(nodes[s]) if ordered else -mass[s], s))
        while len(heap) > 0:
            s = heapq.heappop(heap)[1]
            waiting[s] = False
            if moves >= most_moves:
                continue
            j, m = nodes[s], mass[s]
            mass[s] = 0.0
            visits[s] += m
            moves += indptr[j + 1] - indptr[j] + 1
            for e in range(indptr[j], indptr[j + 1]):
                k = np.int64(indices[e])
                t = np.int64(slot[k])
                if t == NO_SLOT:
                    if used == len(nodes):
                        nodes, visits = _longer(nodes, used), _longer(visits, used)
                        mass, waiting = _longer(mass, used), _longer(waiting, used)
                    t = np.int64(used)
                    slot[k], nodes[t] = t, k
                    used += 1
                mass[t] += m * data[e]
                if mass[t] >= least and not waiting[t]:
                    waiting[t] = True
                    heapq.heappush(heap, (-np.float64(k) if ordered else -mass[t], t))
    for s in range(used):
        slot[nodes[s]] = NO_SLOT
        # A source without a past needs no pushing.
        if indptr[nodes[s]] == indptr[nodes[s] + 1]:
            visits[s] += mass[s]
            mass[s] = 0.0
    return nodes[:used], visits[:used], mass[:used]


@kernel()
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
