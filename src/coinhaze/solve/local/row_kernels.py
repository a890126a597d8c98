"""Hot loops of one coin's row: bounds of all nodes, and what pushed mass adds up to.

Slow twins in the tests: exact scores, ways found by plain search, and rows of B in dense and
rational arithmetic (tests/solve/test_local.py).
"""

from __future__ import annotations

import math

import numpy as np

from coinhaze.kernels import kernel
from coinhaze.measures.intervals import LOG2_E, ROUNDING
from coinhaze.solve.exact.stream_kernels import surprise

BINS = 256
# What becomes of mass that arrives at a node: it waits to be pushed, passes on to the only
# predecessor at once, or rests in a tree state. A walk from a node that is LOST may never end.
PLAIN, ALIAS, TREE_STATE, LOST = 0, 1, 2, 3


@kernel(error_model="numpy")
def tally(
    mass, visits, state, touched, count, low, high, private, private_low, private_high, narrows
):
    """Add up what is sure and what rests; `narrows` gets the widths left, by quarter powers of 2.

    Gives the sums over what is sure (mass, entropy from below and above, largest piece at most),
    over what rests (mass, entropy from below and above) and how many terms were added.
    """
    states = len(private)
    sure = sure_low = sure_high = largest = 0.0
    rest = below = above = 0.0
    narrows[:] = 0.0
    for t in range(count[0]):
        j = touched[t]
        p = mass[j]
        if j >= states:
            sure += p
            largest = max(largest, p)
            sure_low += surprise(p) + p * low[j]
            sure_high += surprise(p) + p * high[j]
            continue
        v = visits[j]
        if v > 0.0:
            # Pieces v q: sum phi(v q) + v q h = phi(v) sum q + v sum (phi(q) + q h).
            sure += v * private[j]
            largest = max(largest, v * private[j])
            sure_low += surprise(v) * private[j] + v * private_low[j]
            sure_high += surprise(v) * private[j] + v * private_high[j]
        if p > 0.0:
            rest += p
            below += p * low[j]
            above += surprise(p) + p * high[j]
            left = surprise(p) + p * (high[j] - low[j] + LOG2_E)
            narrows[min(max(int(-4 * math.log2(left)), 0), BINS - 1)] += left
    return sure, sure_low, sure_high, largest, rest, below, above, 2 * count[0]


@kernel()
def count_in_degree(indptr, indices):
    """Count for each node the successors a walk may come from on its way from anywhere.

    A node that nothing follows is entered by no walk, only begun at; with one predecessor it
    then has no second way to the same place. Such nodes do not count.
    """
    n = len(indptr) - 1
    followed = np.zeros(n, np.bool_)
    for e in range(len(indices)):
        followed[indices[e]] = True
    in_degree = np.zeros(n, np.int32)
    for i in range(n):
        if followed[i] or indptr[i + 1] - indptr[i] > 1:
            for e in range(indptr[i], indptr[i + 1]):
                in_degree[indices[e]] += 1
    return in_degree


@kernel(error_model="numpy")
def bound_nodes(
    indptr, indices, data, own, column, single, prior, order, looped, in_degree,
    kind, low, high, steps,
):  # fmt: skip
    """Bound the entropy of every node's row in one pass; also give kinds and expected steps.

    `order` takes each node after all it reaches, but for those in loops (`looped`), of which
    `kind` says beforehand whether they are lost. The proofs are at the top of row.py.
    """
    n = len(own)
    met = np.zeros(len(single), np.bool_)
    maximum = 0.0  # how many origins the outcomes met so far stand for
    everything = 0.0
    for c in range(len(single)):
        everything += math.exp2(prior[c])
    # Sums of so many terms may be off by a billionth.
    everything = math.log2(everything) + 1e-9 if everything > 1 else 0.0
    for t in range(n):
        i = order[t]
        first, last = indptr[i], indptr[i + 1]
        c = column[i]
        ends = c >= 0 and own[i] > 0
        if ends and not met[c]:
            met[c] = True
            maximum += math.exp2(prior[c])
        lost = kind[i] == LOST or not (ends or last > first)
        closed = not looped[i] and (not ends or single[c])
        upper = lower = walk = 0.0
        apart = meets = 0.0  # what private pieces add; the rest, which may meet again
        if ends:
            upper += surprise(own[i]) + own[i] * prior[c]
            lower += own[i] * prior[c]
            if single[c]:
                apart += surprise(own[i])
            else:
                meets += own[i]
        for e in range(first, last):
            k, p = indices[e], data[e]
            upper += surprise(p) + p * high[k]
            lower += p * low[k]
            walk += p * steps[k]
            lost = lost or kind[k] == LOST
            if kind[k] == TREE_STATE and in_degree[k] <= 1:
                apart += surprise(p)
            else:
                closed = False
                meets += p
        if not looped[i]:
            lower += apart + surprise(meets)
        # Roundings: of each sum, of the moves themselves (5 units), and of their logarithms.
        error = (last - first + 16) * ROUNDING
        lower = lower * (1 - error) - 8 * ROUNDING
        upper = upper * (1 + error) + 8 * ROUNDING
        if looped[i]:
            upper = everything
            steps[i] = np.nan
        else:
            steps[i] = 1 + walk
        if lost:
            kind[i] = LOST
        elif closed:
            kind[i] = TREE_STATE
        else:
            limit = math.log2(maximum) + 1e-9 if maximum > 1 else 0.0
            if not looped[i]:
                upper = min(upper, limit)
            # A ring of nodes that only pass on is lost, so following them comes to an end.
            passes = last - first == 1 and not ends and data[first] == 1.0
            kind[i] = ALIAS if passes else PLAIN
        high[i] = upper
        low[i] = max(min(lower, upper), 0.0)


@kernel()
def number_states(kind, number):
    """Number the nodes that are pushed; the others have none yet. Gives how many there are."""
    count = 0
    for i in range(len(kind)):
        number[i] = -1
        if kind[i] == PLAIN:
            number[i] = count
            count += 1
    return count


@kernel(inline="always")
def follow(k, kind, indptr, indices):
    """Go on from a node that only passes mass on to where it comes to rest."""
    while kind[k] == ALIAS:
        k = indices[indptr[k]]
    return k


@kernel(error_model="numpy")
def condense(
    indptr, indices, data, own, column, single, prior, kind, in_degree, low, high, number, states,
    start, to, share, size, private, private_low, private_high, ends, column_end,
):  # fmt: skip
    """Write the moves of pushed nodes among each other and to shared ends.

    What is private to a node, tree states that lead to it alone and its own outcome, gets mass from
    nowhere else: it stays with the node as one sum. A way straight back to the node itself is
    gone round at once: the other moves grow, scaled by their sum (never by 1 minus the way back).
    Ends are tree states (their node) and shared outcomes (-1 - column). Gives how many there are.
    """
    n_ends = 0
    place = np.full(states + len(ends), -1, np.int64)  # where this row holds a target
    end = 0
    for i in range(len(own)):
        if kind[i] != PLAIN:
            continue
        s = number[i]
        start[s] = end
        size[s] = indptr[i + 1] - indptr[i] + 1
        back = 0.0
        total = 0.0
        for e in range(indptr[i], indptr[i + 1] + 1):
            if e == indptr[i + 1]:
                c = column[i]
                p = own[i] if c >= 0 else 0.0
                if p == 0.0:
                    continue
                total += p
                if single[c]:
                    private[s] += p
                    private_low[s] += surprise(p) + p * prior[c]
                    private_high[s] += surprise(p) + p * prior[c]
                    continue
                if column_end[c] < 0:
                    column_end[c] = states + n_ends
                    ends[n_ends] = -1 - c
                    n_ends += 1
                target = np.int64(column_end[c])
            else:
                k = indices[e]
                p = data[e]
                if kind[k] == TREE_STATE and in_degree[k] <= 1:
                    total += p
                    private[s] += p
                    private_low[s] += surprise(p) + p * low[k]
                    private_high[s] += surprise(p) + p * high[k]
                    continue
                k = follow(k, kind, indptr, indices)
                if k == i:
                    back += p
                    continue
                total += p
                if kind[k] == TREE_STATE and number[k] < 0:
                    number[k] = states + n_ends
                    ends[n_ends] = k
                    n_ends += 1
                target = np.int64(number[k])
            if place[target] >= start[s]:
                share[place[target]] += p
            else:
                place[target] = end
                to[end] = target
                share[end] = p
                end += 1
        lift = 0.0
        if back > 0.0:
            for e in range(start[s], end):
                share[e] /= total
            # Pieces q scaled by 1/w: sum phi(q/w) = (sum phi(q) + log2 w sum q) / w.
            lift = math.log2(total)
            private_low[s] = (private_low[s] + lift * private[s]) / total
            private_high[s] = (private_high[s] + lift * private[s]) / total
            private[s] /= total
        # Roundings, as in bound_nodes; the lift is subtracted, which keeps its absolute error.
        error = (size[s] + 16) * ROUNDING
        private_low[s] = max(private_low[s] * (1 - error) - error * (1 - lift), 0.0)
        private_high[s] = private_high[s] * (1 + error) + error * (1 - lift)
    start[states] = end
    return n_ends
