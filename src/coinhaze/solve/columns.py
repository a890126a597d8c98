"""The columns of B to solve for: outcomes in the order met, folded where they go together.

A state that no asked row begins at and that only one other state moves to is visited in a fixed
proportion to that one. Following such moves up gives trees; sources of one tree reach every asked
row in fixed proportions, so they are one column, with an inner entropy h: a row's entropy is that
of its columns plus the sum of p h (chain rule, exact by the strong Markov property). This is the
dominator fold for dominators that are the only way in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coinhaze.chain.chain import NO_COLUMN
from coinhaze.ledger.amounts import Bools, Floats, Ints
from coinhaze.measure.intervals import surprise
from coinhaze.solve.asked import Asked
from coinhaze.solve.columns_kernels import exact_sums
from coinhaze.solve.priors import Priors

# A source visited less often than this for each visit to its tree's root stays a column by itself.
FAINT = 1e-280


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of B, what they stand for, and which one each state's absorber counts as."""

    of_state: Ints  # in the order of the factors
    likeliest: Ints  # for each column the outcome that holds most of it
    priors: Priors
    elsewhere: int
    depth: int  # how many moves the longest tree has, for the bound on rounding

    def __len__(self) -> int:
        return len(self.likeliest)


def columns_of(asked: Asked, orders: Floats, *, fold: bool = True) -> Columns:
    """Number the columns in the order a sweep meets them; fold them unless told not to."""
    chain, reduced, place = asked.chain, asked.reduced, asked.factor.place
    outcome = reduced.column
    source = outcome != NO_COLUMN
    n = len(reduced)
    root, visits, depth = np.arange(n), np.ones(n), 0
    if fold and not chain.listed and not chain.history:
        root, visits, depth = _trees(asked)
    weight = np.where(source, visits * reduced.own, 0.0)
    # With a list several states share an outcome; without one, states of one root share a column.
    group = outcome if chain.listed else root
    group = np.where(source, group, NO_COLUMN)
    # States are numbered in the order of the sweep, so the first of a group is where it is met.
    kinds, first, column = np.unique(group[source], return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first, kind="stable"), kind="stable")
    column = rank[column]
    of_state = np.full(n, NO_COLUMN)
    of_state[place[source]] = column
    width = len(kinds)
    if chain.listed or chain.history:
        outcomes = np.empty(width, dtype=np.int64)
        outcomes[column] = outcome[source]
        elsewhere = outcomes.tolist().index(chain.elsewhere) if chain.elsewhere in outcomes else -1
        priors = Priors.of(chain, orders).take(outcomes)
        return Columns(of_state, outcomes, priors, elsewhere, 0)
    likeliest, priors = _inner(column, weight[source], outcome[source], width, orders)
    return Columns(of_state, likeliest, priors, NO_COLUMN, depth)


def _trees(asked: Asked) -> tuple[Ints, Floats, int]:
    """Give each state's root, its visits for each visit to the root, and the greatest depth."""
    reduced = asked.reduced
    n = len(reduced)
    rows = np.repeat(np.arange(n), np.diff(reduced.indptr))
    loops = np.zeros(n, dtype=np.bool_)
    loops[rows[rows == reduced.indices]] = True
    entered = np.bincount(reduced.indices, minlength=n) == 1
    begun = np.zeros(n, dtype=np.bool_)
    begun[np.argsort(asked.factor.place)[asked.scored]] = True
    inside: Bools = entered & ~begun & ~loops
    root, visits = np.arange(n), np.ones(n)
    only = inside[reduced.indices]
    root[reduced.indices[only]] = rows[only]
    visits[reduced.indices[only]] = reduced.data[only]
    depth = 0
    while np.any(inside[root]):
        visits, root = visits * visits[root], root[root]
        depth = 2 * depth + 1
    faint = visits < FAINT
    root[faint], visits[faint] = np.flatnonzero(faint), 1.0
    return root, visits, depth + 1


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
        bits=total_of(surprise(share)),
        top=top,
        powers=np.array([total_of(share**o) for o in orders]).reshape(len(orders), width),
        count=np.bincount(column, minlength=width).astype(np.float64),
    )
