"""Hot loops that cut a chain down: order, aliases, moves added up, equal states.

Also its shape: strong components, reachability, the outcomes each state can reach. Slow twins in
the tests: tests/solve/test_reduce.py; tests/solve/dense.py, used by tests/solve/test_solvers.py.
"""

from __future__ import annotations

import numpy as np

from coinhaze.kernels import kernel
from coinhaze.observer.chain import NO_COLUMN

SHORT_ROW = 16


@kernel()
def is_in_order(indptr, indices):
    """Tell whether every move leads to a lower number."""
    for i in range(len(indptr) - 1):
        for e in range(indptr[i], indptr[i + 1]):
            if indices[e] >= i:
                return False
    return True


@kernel()
def turn(indptr, indices, n):
    """Turn moves round: for each node where moves to it come from, in rising order."""
    start = np.zeros(n + 1, np.int64)
    for e in range(len(indices)):
        start[indices[e] + 1] += 1
    for i in range(n):
        start[i + 1] += start[i]
    fill = start[:-1].copy()
    back = np.empty(len(indices), np.int32)
    for i in range(len(indptr) - 1):
        for e in range(indptr[i], indptr[i + 1]):
            back[fill[indices[e]]] = i
            fill[indices[e]] += 1
    return start, back


@kernel()
def certain_in_order(indptr, indices, ends):
    """Tell which nodes are surely absorbed, where every move leads to a lower number."""
    n = len(indptr) - 1
    certain = np.zeros(n, np.bool_)
    every = True  # as long as all before are certain, moves need not be followed
    for i in range(n):
        fine = ends[i] or indptr[i + 1] > indptr[i]
        if not every:
            for e in range(indptr[i], indptr[i + 1]):
                fine = fine and certain[indices[e]]
        every = every and fine
        certain[i] = fine
    return certain


@kernel()
def reachable_in_order(indptr, indices, start):
    """Tell which nodes can be reached from `start`, where every move leads to a lower number."""
    seen = start.copy()
    for i in range(len(seen) - 1, -1, -1):
        if seen[i]:
            for e in range(indptr[i], indptr[i + 1]):
                seen[indices[e]] = True
    return seen


@kernel()
def renumber(state, number):
    """Give nodes the new number of their state, if they have one."""
    for v in range(len(state)):
        if state[v] >= 0:
            state[v] = number[state[v]]


@kernel()
def follow_aliases(indptr, indices, alias):
    """Give the node that each alias stands for in the end, and the steps to it."""
    n = len(alias)
    target = np.arange(n)
    extra = np.zeros(n)
    settled = ~alias
    path = np.empty(n, np.int64)
    for i in range(n):
        top = 0
        v = i
        while not settled[v]:
            path[top] = v
            top += 1
            v = indices[indptr[v]]
        for k in range(top - 1, -1, -1):
            u = path[k]
            before = indices[indptr[u]]
            target[u] = target[before]
            extra[u] = extra[before] + 1.0
            settled[u] = True
    return target, extra


@kernel()
def beginning(array, end):
    """Give what an array begins with: a copy only where much memory would be kept idle."""
    if 8 * end < 7 * len(array):
        return array[:end].copy()
    return array[:end]


@kernel()
def number_in_order(indptr, indices, column, retained, merge):
    """Number the states where every move leads to a lower number, aliases as what they stand for.

    Gives each node's number, -1 where it is not kept, the steps from aliases to what they stand
    for, and the nodes that are states.
    """
    n = len(retained)
    number = np.full(n, -1, indices.dtype)
    extra = np.zeros(n)
    states = np.empty(n, np.int64)
    count = 0
    for i in range(n):
        if not retained[i]:
            continue
        if merge and column[i] == NO_COLUMN and indptr[i + 1] - indptr[i] == 1:
            before = indices[indptr[i]]
            number[i] = number[before]
            extra[i] = extra[before] + 1.0
        else:
            number[i] = count
            states[count] = i
            count += 1
    return number, extra, beginning(states, count)


@kernel()
def row_starts(indptr, states):
    """Give where the moves of each of these states begin, one state's after the other's."""
    start = np.zeros(len(states) + 1, np.int64)
    for s in range(len(states)):
        start[s + 1] = start[s] + indptr[states[s] + 1] - indptr[states[s]]
    return start


@kernel()
def add_moves(
    indptr, indices, data, error, states, number, extra, maximum, start, to, value, worst, cost
):  # fmt: skip
    """Write the moves of states: those to one state added up, with their relative error.

    `number` is the state each node stands for, of so many at most. Moves are written from where
    the first begins by `start`, which then says where all others do; there must be room for as
    many as there were. Also written are the expected steps of one move. A sum errs as its worst
    part does, and by one rounding for each part but the first.
    """
    long = 0
    for s in range(len(states)):
        long = max(long, indptr[states[s] + 1] - indptr[states[s]])
    # A short row is looked through; of a long one it is noted where each state stands.
    seen = np.full(maximum if long > SHORT_ROW else 0, -1, np.int64)
    end = start[0]
    for s in range(len(states)):
        begin = end
        steps = 1.0
        short = indptr[states[s] + 1] - indptr[states[s]] <= SHORT_ROW
        for e in range(indptr[states[s]], indptr[states[s] + 1]):
            t = number[indices[e]]
            steps += data[e] * extra[indices[e]]
            if short:
                at = begin
                while at < end and to[at] != t:
                    at += 1
            else:
                at = seen[t] if seen[t] >= begin else end
                seen[t] = at
            if at < end:
                value[at] += data[e]
                worst[at] = max(worst[at], error[e]) + 1.0
            else:
                to[end] = t
                value[end] = data[e]
                worst[end] = error[e]
                end += 1
        cost[s] = steps
        start[s + 1] = end


@kernel()
def reorder(indptr, indices, data, error, order, place, start, to, value, worst):
    """Write the moves of states in another order, each from where `start` says."""
    for s in range(len(order)):
        end = start[s]
        for e in range(indptr[order[s]], indptr[order[s] + 1]):
            to[end] = place[indices[e]]
            value[end] = data[e]
            worst[end] = error[e]
            end += 1


@kernel()
def _sort_row(begin, end, to, value, error):
    """Sort the moves of one row by where they lead."""
    if end - begin > 32:
        order = np.argsort(to[begin:end]) + begin
        to[begin:end] = to[order]
        value[begin:end] = value[order]
        error[begin:end] = error[order]
        return
    for e in range(begin + 1, end):
        t, v, p = to[e], value[e], error[e]
        k = e
        while k > begin and to[k - 1] > t:
            to[k], value[k], error[k] = to[k - 1], value[k - 1], error[k - 1]
            k -= 1
        to[k], value[k], error[k] = t, v, p


@kernel()
def find_equal(start, to, value, error, can):
    """Give for each state the first of those whose moves are the same, among those that `can`.

    Rows are sorted on the way. The first takes the largest error any of its equals has.
    """
    n = len(start) - 1
    first = np.arange(n)
    size = 16
    maximum = 2 * can.sum()
    while size < maximum:
        size *= 2
    table = np.full(size, -1, np.int32)
    for i in range(n):
        if not can[i]:
            continue
        _sort_row(start[i], start[i + 1], to, value, error)
        key = np.uint64(start[i + 1] - start[i])
        for e in range(start[i], start[i + 1]):
            # The probability enters by 52 bits of it; equal rows have equal keys, others seldom.
            part = np.uint64(to[e]) ^ (np.uint64(value[e] * 2.0**52) << np.uint64(11))
            key = (key ^ part) * np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(29)
        slot = np.int64(key & np.uint64(size - 1))
        while table[slot] >= 0:
            j = table[slot]
            length = start[i + 1] - start[i]
            equal = start[j + 1] - start[j] == length
            for k in range(length):
                if not equal:
                    break
                equal = to[start[i] + k] == to[start[j] + k] and (
                    value[start[i] + k] == value[start[j] + k]
                )
            if equal:
                first[i] = j
                for k in range(length):
                    error[start[j] + k] = max(error[start[j] + k], error[start[i] + k])
                break
            slot = (slot + 1) & (size - 1)
        if table[slot] < 0:
            table[slot] = i
    return first


@kernel()
def number_first(first):
    """Number those that are the first of their equals; give them, and the number of every first."""
    count = 0
    for i in range(len(first)):
        count += first[i] == i
    keep = np.empty(count, np.int64)
    number = np.empty(len(first), np.int64)
    count = 0
    for i in range(len(first)):
        if first[i] == i:
            keep[count] = i
            number[i] = count
            count += 1
        else:
            number[i] = number[first[i]]
    return keep, number


@kernel()
def add_steps(steps, rows, requested, number, cost, first):
    """Add to the steps of requested rows what a move costs more there than at its equal."""
    for k in range(len(rows)):
        if requested[rows[k]]:
            s = number[rows[k]]
            steps[k] += cost[s] - cost[first[s]]


@kernel()
def leaves(indices, column):
    """Tell which states end in no column themselves and nothing moves to."""
    found = column == NO_COLUMN
    for e in range(len(indices)):
        found[indices[e]] = False
    return found


@kernel()
def number_scored(state, rows, states):
    """Give which rows have a state, these states in rising order, and which each such row has."""
    scored = np.zeros(states, np.bool_)
    answered = np.zeros(len(rows), np.bool_)
    have = 0
    for k in range(len(rows)):
        s = state[rows[k]]
        if s >= 0:
            answered[k] = True
            scored[s] = True
            have += 1
    at = np.full(states, -1, np.int32)
    found = np.empty(states, np.int64)
    count = 0
    for s in range(states):
        if scored[s]:
            at[s] = count
            found[count] = s
            count += 1
    row_of = np.empty(have, np.int32)
    have = 0
    for k in range(len(rows)):
        if answered[k]:
            row_of[have] = at[state[rows[k]]]
            have += 1
    return answered, beginning(found, count), row_of


@kernel()
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


@kernel()
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


@kernel(inline="always")
def _ones(word):
    """Count the bits of a 64-bit word that are set."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    pairs = np.uint64(0x3333333333333333)
    word = (word & pairs) + ((word >> np.uint64(2)) & pairs)
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@kernel()
def count_outcomes(indptr, indices, slot, block_start, worth, first, sets):
    """Add up what the outcomes of some words that each state can reach are worth.

    Outcome `slot` is a bit of word `slot // 64`, whose outcomes are worth the same; -1 is none.
    The words are those from `first` on, as many as `worth` tells of and a row of `sets` has room
    for. States stand in blocks (strong components), each after all it reaches.
    """
    blocks = len(block_start) - 1
    words = sets.shape[1]
    count = np.zeros(len(slot), np.int64)
    block_of = np.empty(len(slot), np.int32)
    for b in range(blocks):
        block_of[block_start[b] : block_start[b + 1]] = b
        for w in range(words):
            sets[b, w] = 0
        for v in range(block_start[b], block_start[b + 1]):
            k = slot[v] - 64 * first
            if 0 <= k < 64 * words:
                sets[b, k // 64] |= np.uint64(1) << np.uint64(k % 64)
            for e in range(indptr[v], indptr[v + 1]):
                d = block_of[indices[e]]
                if d != b:
                    for w in range(words):
                        sets[b, w] |= sets[d, w]
        total = 0
        for w in range(len(worth)):
            total += np.int64(_ones(sets[b, w])) * worth[w]
        for v in range(block_start[b], block_start[b + 1]):
            count[v] = total
    return count


@kernel()
def bound_sources(indptr, indices, own, maximum):
    """Bound the sources each state reaches by sums over moves, which lead to lower numbers."""
    bound = own.copy()
    for i in range(len(own)):
        for e in range(indptr[i], indptr[i + 1]):
            bound[i] += bound[indices[e]]
        bound[i] = min(bound[i], maximum)
    return bound
