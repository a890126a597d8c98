"""Columns of B: sources that reach every requested row in fixed proportions are one.

If every walk from any requested row to a state passes through another one, its dominator, the
state is visited in a fixed proportion to its dominator. So the sources behind one dominator reach
every requested row in fixed proportions: they are one column, with an inner entropy h, and a
row's entropy is that of its columns plus the sum of p h (chain rule, exact by the strong Markov
property). Where several sources are one outcome, as origins grouped by owner are, this holds of
those outcomes whose sources are all behind one dominator; any other is a column by itself. The
dominators are the children of the root in the dominator tree of "requested rows
first"; states on cycles count as requested too, so that one pass against the order of the states
finds all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.graph.order_kernels import merge_pairs
from coinhaze.measures.intervals import surprise
from coinhaze.observer.chain import NO_COLUMN
from coinhaze.solve.exact.fine import exact_moves
from coinhaze.solve.exact.fine_kernels import dominated_visits
from coinhaze.solve.planner import thresholds
from coinhaze.solve.query import Query
from coinhaze.solve.structure.lump_kernels import exact_sums, find_dominators, number_groups
from coinhaze.solve.structure.reduce import Reduced
from coinhaze.solve.sums import Priors

# A source visited less often than this for each visit to its dominator stays a column by itself.
FAINT = 1e-280


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of B, what they stand for, and which one each state's absorber counts as."""

    of_state: Ints
    likeliest: Ints  # for each column the outcome that holds most of it
    priors: Priors
    elsewhere: int
    inner_error: float  # bound on the relative error of shares inside a column, times 2^53

    def __len__(self) -> int:
        return len(self.likeliest)


class Numbered(NamedTuple):
    """Columns that have numbers, and how to find what they stand for."""

    of_state: Ints
    width: int
    stand_for: Callable[[], Columns]


class Dominators(NamedTuple):
    """The dominator of each state, and how often the state is visited for each visit to it.

    Outcomes do not matter to them: observers who merge outcomes share them.
    """

    of_state: Ints
    visits: Floats
    error: Floats  # of the visits, relative, times 2^53

    @classmethod
    def none(cls, states: int) -> Dominators:
        """Let every state be its own."""
        return cls(np.arange(states), np.ones(states), np.zeros(states))

    @classmethod
    def of(cls, query: Query) -> Dominators:
        """Find the dominators of a query's states."""
        reduced = query.reduced
        begun = cycling(reduced)
        begun[query.scored] = True
        dominator, visits, error = find_dominators(
            reduced.indptr, reduced.indices, reduced.data, reduced.entry_error, begun, FAINT
        )
        if error.max(initial=0.0) > thresholds.MAX_SHARE_ROUNDINGS:
            exact = exact_moves(query.chain, reduced)
            if exact is not None:
                moves = reduced.indptr, reduced.indices, exact.value, exact.low
                visits = dominated_visits(*moves, begun, dominator)
                # Pairs err by nothing; moves of leaves that are none are made at most once.
                error = np.full(len(reduced), float(exact.error.max(initial=0.0)) + 2.0)
        return cls(dominator, visits, error)


def columns_of(
    query: Query, orders: Floats, *, lump: bool = True, dominators: Dominators | None = None
) -> Columns:
    """Number the columns in the order a sweep meets them; lump them unless `lump` is false.

    `dominators` are those of the query's states, where they are known already.
    """
    return number_columns(query, orders, lump=lump, dominators=dominators).stand_for()


def number_columns(
    query: Query, orders: Floats, *, lump: bool, dominators: Dominators | None = None
) -> Numbered:
    """Number the columns as `columns_of` does; what they stand for may be worked out later."""
    chain, reduced = query.chain, query.reduced
    outcome = reduced.column
    source = outcome != NO_COLUMN
    n = len(reduced)
    if not lump or chain.listed:
        dominators = Dominators.none(n)
    elif dominators is None:
        dominators = Dominators.of(query)
    dominator, visits, error = dominators
    if lump and chain.history and not chain.listed:
        # A source that stands for many origins stays a column by itself.
        many = np.isin(outcome, list(chain.history))
        dominator = np.where(many, n + np.arange(n), dominator)
    weight = np.where(source, visits * reduced.own, 0.0)
    # With a list several states share an outcome; without one, those of one dominator a column.
    group, groups = outcome if chain.listed else dominator, max(2 * n, len(chain.outcomes))
    if chain.shares_outcomes and not chain.listed:
        spread = _spread(outcome, dominator, source, len(chain.outcomes))
        group, groups = np.where(spread, 2 * n + outcome, dominator), 2 * n + len(chain.outcomes)
    # States are numbered in the order of the sweep, so that is the order groups are met in.
    of_state, width = number_groups(group, source, groups)
    column = of_state[source]
    if chain.listed:
        outcomes: Ints = np.empty(width, dtype=np.int64)
        outcomes[column] = outcome[source]
        elsewhere = outcomes.tolist().index(chain.elsewhere) if chain.elsewhere in outcomes else -1
        priors = Priors.of(chain, orders).take(outcomes)
        listed = Columns(of_state, outcomes, priors, elsewhere, 0.0)
        return Numbered(of_state, width, lambda: listed)
    ends, weights, roundings = outcome[source], weight[source], float(error.max(initial=0.0))
    if chain.shares_outcomes:
        column, ends, weights = _by_outcome(column, ends, weights)
        roundings += 1.0

    def stand_for() -> Columns:
        likeliest, priors = _inner(column, weights, ends, width, orders)
        priors = priors.expanded(chain, orders, likeliest)
        return Columns(of_state, likeliest, priors, NO_COLUMN, roundings)

    return Numbered(of_state, width, stand_for)


def _spread(outcome: Ints, dominator: Ints, source: Bools, outcomes: int) -> Bools:
    """Tell which states share their outcome with states behind another dominator.

    Such an outcome reaches rows in no fixed proportion to either, so it is a column by itself.
    """
    low = np.full(outcomes, np.iinfo(np.int64).max)
    high = np.full(outcomes, -1)
    np.minimum.at(low, outcome[source], dominator[source])
    np.maximum.at(high, outcome[source], dominator[source])
    spread: Bools = source & (low[outcome] != high[outcome])
    return spread


def _by_outcome(column: Ints, outcome: Ints, weight: Floats) -> tuple[Ints, Ints, Floats]:
    """Add up the weights of sources that are one outcome of one column, in the order first met."""
    n = 1 + max(int(column.max(initial=0)), int(outcome.max(initial=0)))
    pair, pairs, _ = merge_pairs(column, outcome, n)
    first = np.empty(len(pairs), dtype=np.int64)
    first[pair[::-1]] = np.arange(len(pair))[::-1]
    place = np.empty(len(first), dtype=np.int64)
    in_order = np.argsort(first)
    place[in_order] = np.arange(len(first))
    first = first[in_order]
    return column[first], outcome[first], exact_sums(place[pair], weight, len(first))


def cycling(reduced: Reduced) -> Bools:
    """Tell which states can come back to themselves."""
    if reduced.acyclic:
        return np.zeros(len(reduced), dtype=np.bool_)
    sizes = np.diff(reduced.block_start)
    found: Bools = np.repeat(sizes > 1, sizes)
    rows = np.repeat(np.arange(len(reduced)), np.diff(reduced.indptr))
    found[rows[rows == reduced.indices]] = True
    return found


def _inner(
    column: Ints, weight: Floats, outcome: Ints, width: int, orders: Floats
) -> tuple[Ints, Priors]:
    """Give each column's likeliest outcome and its inner distribution's figures."""

    def total_of(values: Floats) -> Floats:
        total: Floats = exact_sums(column, values, width)
        return total

    share = weight / total_of(weight)[column]
    top = np.zeros(width)
    np.maximum.at(top, column, share)
    likeliest = np.full(width, NO_COLUMN)
    # Of equal shares the first met stays: written last to first.
    best = np.flatnonzero(share >= top[column])[::-1]
    likeliest[column[best]] = outcome[best]
    return likeliest, Priors(
        bits=np.zeros(width),
        inner=total_of(surprise(share)),
        top=top,
        powers=np.array([total_of(share**o) for o in orders]).reshape(len(orders), width),
        count=np.bincount(column, minlength=width).astype(np.float64),
    )
