"""Hot loops that keep rounding from adding up along long walks through an acyclic chain.

Slow twins in the tests: fractions (tests/solve/test_fine.py).
"""

from __future__ import annotations

import math

import numpy as np

from coinhaze.kernels import kernel
from coinhaze.solve.exact.pairs_kernels import add_pairs, divide_pairs, multiply_pairs


@kernel(error_model="numpy")
def divide_moves(
    start, edge, tail, amount, amount_low, sigma, sigma_low, node_of, state, indptr, indices,
    data, error,
):  # fmt: skip
    """Give every move of the states that have a node as a pair: its amount over all that came in.

    `start` and `edge` list each node's incoming edges. Moves of other states stay as they are.
    Also tells whether the pairs are what the moves were rounded from.
    """
    value, low = data.copy(), np.zeros(len(data))
    where = np.full(len(indptr) - 1, -1, np.int64)
    for i in range(len(indptr) - 1):
        v = node_of[i]
        if v < 0 or indptr[i] == indptr[i + 1]:
            continue
        for p in range(indptr[i], indptr[i + 1]):
            where[indices[p]] = p
            value[p] = 0.0
        for k in range(start[v], start[v + 1]):
            e = edge[k]
            t = state[tail[e]]
            p = where[t] if t >= 0 else -1
            if p < indptr[i] or p >= indptr[i + 1]:
                return value, low, False
            part, part_low = divide_pairs(amount[e], amount_low[e], sigma[v], sigma_low[v])
            value[p], low[p] = add_pairs(value[p], low[p], part, part_low)
        for p in range(indptr[i], indptr[i + 1]):
            if not abs(value[p] - data[p]) <= 2.0**-52 * error[p] * data[p]:
                return value, low, False
    return value, low, True


@kernel(error_model="numpy")
def dominated_visits(indptr, indices, value, low, begun, dominator):
    """Give the visits to each state for each visit to its dominator, as pairs rounded at the end.

    The twin of `find_dominators`, which finds the dominators.
    """
    n = len(begun)
    visits, rest = np.zeros(n), np.zeros(n)
    for i in range(n - 1, -1, -1):
        if dominator[i] == i:
            visits[i], rest[i] = 1.0, 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if begun[j] or dominator[j] == j:
                continue
            part, part_low = multiply_pairs(visits[i], rest[i], value[e], low[e])
            visits[j], rest[j] = add_pairs(visits[j], rest[j], part, part_low)
    return visits


@kernel(error_model="numpy")
def main_moves(indptr, data, error, moved_to):
    """Give the likeliest move of each state that others move to, -1 for other states.

    Also -1 where moves are not exact.
    """
    main = np.full(len(indptr) - 1, -1, np.int64)
    for i in range(len(main)):
        if moved_to[i] and indptr[i] < indptr[i + 1] and error[indptr[i]] == 0.0:
            for e in range(indptr[i], indptr[i + 1]):
                if main[i] < 0 or data[e] > data[main[i]]:
                    main[i] = e
    return main


@kernel(error_model="numpy")
def scale_moves(indptr, indices, value, low, own, main):
    """Measure each state's row in a unit of its own, so that main moves are powers of two.

    Gives the scaled moves, the scaled own absorption and the units, between 1 and 2. States
    stand so that each comes after all it reaches.
    """
    n = len(main)
    data, scaled_own = np.empty(len(value)), own.copy()
    unit, unit_low = np.ones(n), np.zeros(n)
    for i in range(n):
        m = main[i]
        if m >= 0:
            j = indices[m]
            mine, mine_low = multiply_pairs(value[m], low[m], unit[j], unit_low[j])
            fraction, exponent = math.frexp(mine)
            power = math.ldexp(1.0, exponent - 1)
            unit[i], unit_low[i] = 2.0 * fraction, mine_low / power
            scaled_own[i] = own[i] / unit[i]
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if e == m:
                data[e] = power
                continue
            part, part_low = multiply_pairs(value[e], low[e], unit[j], unit_low[j])
            data[e], _ = divide_pairs(part, part_low, unit[i], unit_low[i])
    return data, scaled_own, unit


@kernel()
def long_chains(indptr, indices, main, long):
    """Mark the longest chains of main moves: give each state's predecessor in one, and its number.

    Both are -1 for states of chains shorter than `long`; the predecessor also for the first.
    """
    n = len(main)
    above, follower = np.zeros(n, np.int64), np.full(n, -1, np.int64)
    for i in range(n - 1, -1, -1):
        if main[i] >= 0:
            j = indices[main[i]]
            if above[i] + 1 > above[j]:
                above[j] = above[i] + 1
                follower[j] = i
    before, chain = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    count = 0
    for i in range(n):
        j = indices[main[i]] if main[i] >= 0 else -1
        if j >= 0 and follower[j] == i:
            if chain[j] >= 0:
                before[i], chain[i] = j, chain[j]
        elif above[i] >= long:
            chain[i] = count
            count += 1
    return before, chain


# What a step along a chain that carries its losses costs for each move, in roundings: d moves lose
# (d + 1)^2 2^-53, less than d times this for any d below 2^32.
_CARRIED = 2.0**-20


@kernel(error_model="numpy")
def count_roundings(
    indptr, indices, data, error, own, own_error, column, states_of, moved_by, main, before, chain
):
    """Bound the roundings of a tile along walks: expected, and the most along any walk.

    A walk that makes a move meets the error of the move, one rounding of its product and those of
    the sums after it; main moves (-1: none) are powers of two, and meet the sums alone. Nothing is
    rounded where every column comes from one term: where all terms but one are the own absorption,
    or end at once, in a column that nothing else leads to. `states_of` tells how many states a
    column has, `moved_by` how many moves lead to a state. States with a predecessor in a chain
    (`before`) sum without loss; who comes to a chain otherwise finds its rows rounded once.
    """
    n = len(own)
    expected, maximum = np.zeros(n), np.zeros(n)
    for i in range(n):
        first, last = indptr[i], indptr[i + 1]
        degree = last - first
        if degree == 0:
            continue  # it ends here with certainty
        has_own = column[i] >= 0
        mixed = 1 if has_own and states_of[column[i]] > 1 else 0
        for e in range(first, last):
            j = indices[e]
            alone = indptr[j] == indptr[j + 1] and moved_by[j] == 1 and column[j] >= 0
            mixed += not (alone and states_of[column[j]] == 1)
        # Groups of four are added up by twos, then onto the sum; up to three are left over.
        sums = 0.0
        if before[i] >= 0:
            sums = _CARRIED * degree
        elif mixed > 1:
            sums = float(min(degree - 1, degree // 4 + 4) + has_own)
        for e in range(first, last):
            j = indices[e]
            here = sums if e == main[i] else sums + error[e] + 1.0
            if chain[j] >= 0 and before[i] != j:
                here += 1.0
            expected[i] += data[e] * (here + expected[j])
            maximum[i] = max(maximum[i], here + maximum[j])
        if has_own:
            here = own_error + sums
            expected[i] += own[i] * here
            maximum[i] = max(maximum[i], here)
    return expected, maximum
