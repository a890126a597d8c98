"""Hot loops of lumping: the dominator of each state, columns, states that lead to one column only.

Slow twins in the tests: columns that are not lumped (tests/solve/test_lists.py), math.fsum, and
rows of a dense solve (tests/solve/test_lump.py).
"""

from __future__ import annotations

import numpy as np

from coinhaze.kernels import kernel
from coinhaze.solve.exact.pairs_kernels import add_exactly


@kernel()
def find_lumps(block_start, indptr, indices, data, cost, column, columns):
    """Give for each state the first that leads to the same column only, itself if to several.

    Also gives how many steps more it takes than that first one. States stand so that each comes
    after all it reaches; what comes back to itself is not looked into.
    """
    n = len(cost)
    first_of = np.full(columns, -1, np.int64)
    only = np.full(n, -1, np.int64)
    first = np.arange(n)
    steps = np.zeros(n)
    extra = np.zeros(n)
    for b in range(len(block_start) - 1):
        i = block_start[b]
        if block_start[b + 1] - i > 1:
            continue
        c = column[i]
        identical = True
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if j == i or only[j] < 0 or (c >= 0 and only[j] != c):
                identical = False
                break
            c = only[j]
        if not identical or c < 0:
            continue
        only[i] = c
        steps[i] = cost[i]
        for e in range(indptr[i], indptr[i + 1]):
            steps[i] += data[e] * steps[indices[e]]
        if first_of[c] < 0:
            first_of[c] = i
        first[i] = first_of[c]
        extra[i] = steps[i] - steps[first[i]]
    return first, extra


@kernel()
def thin_blocks(block_start, keep):
    """Give where blocks begin among the states that are kept; blocks without any are left out."""
    start = np.zeros(len(block_start), np.int64)
    count = k = 0
    for b in range(1, len(block_start)):
        while k < len(keep) and keep[k] < block_start[b]:
            k += 1
        if k > start[count]:
            count += 1
            start[count] = k
    return start[: count + 1]


@kernel()
def exact_sums(group, values, n):
    """Add up the values, none negative, of each group 0 .. n-1."""
    total = np.zeros(n)
    lost = np.zeros(n)
    for k in range(len(values)):
        g = group[k]
        total[g], lost[g] = add_exactly(total[g], lost[g], values[k])
    return total + lost


@kernel()
def number_groups(group, has, maximum):
    """Number the groups of those that have one, in the order they are met; -1 for others.

    Also gives how many groups there are. Groups are numbers below `maximum`.
    """
    number_of = np.full(maximum, -1, np.int64)
    number = np.full(len(group), -1, np.int64)
    count = 0
    for i in range(len(group)):
        if has[i]:
            g = group[i]
            if number_of[g] < 0:
                number_of[g] = count
                count += 1
            number[i] = number_of[g]
    return number, count


@kernel()
def find_dominators(indptr, indices, data, entry_error, begun, faint):
    """Give each state's dominator, the visits to it for each visit to that, and their error.

    States stand so that each comes after all it reaches; `begun` are those a walk may begin at
    and those on cycles, which dominate themselves. A state whose visitors all have one dominator
    has that one too. Where visits are too rare for a float the state is its own dominator.
    """
    n = len(begun)
    none, several = -1, -2
    dominator = np.full(n, none, np.int64)
    visits = np.zeros(n)
    error = np.zeros(n)
    for i in range(n - 1, -1, -1):
        if begun[i] or dominator[i] == several or dominator[i] == none or visits[i] < faint:
            dominator[i] = i
            visits[i] = 1.0
            error[i] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if begun[j]:
                continue
            if dominator[j] == none:
                dominator[j] = dominator[i]
            elif dominator[j] != dominator[i]:
                dominator[j] = several
            visits[j] += visits[i] * data[e]
            # One product and one sum beside the errors that come with the two factors.
            error[j] = max(error[j], error[i] + entry_error[e]) + 2.0
    return dominator, visits, error
