"""Lumping: states whose walks all end in one column have one row, so they are one state.

Coins that a payment spends together are such states, and whole trees of payments behind a
dominator.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from coinhaze.amounts import Floats, Ints
from coinhaze.ledger.frozen import release_unused
from coinhaze.solve.planner.cost import ExactCost
from coinhaze.solve.pool import UNLIMITED, Budget
from coinhaze.solve.query import Query
from coinhaze.solve.structure.columns import Columns, columns_of, number_columns
from coinhaze.solve.structure.counting import Counting, possible_sources
from coinhaze.solve.structure.lump_kernels import find_lumps, thin_blocks
from coinhaze.solve.structure.reduce import moves_between
from coinhaze.solve.structure.reduce_kernels import number_first, renumber
from coinhaze.threads import beside


@dataclass(frozen=True, eq=False)
class LumpedChain:
    """Rows with their columns, and the chain lumped by these."""

    query: Query
    columns: Columns

    @cached_property
    def cost(self) -> ExactCost:
        """What exact scores take; estimates and solves count it once."""
        return ExactCost(self.query, self.columns)

    @cached_property
    def counting(self) -> Counting:
        """The work of counting the possible sources of each state."""
        return Counting.of(self.query.reduced, self.columns.of_state, self.columns.priors.count)

    def sources(self, *, count: bool = False, budget: Budget = UNLIMITED) -> tuple[Floats, bool]:
        """Give the sources of each scored state, counted if wanted or quick: `possible_sources`."""
        known = self._sources
        if True not in known and (count or False not in known):
            found = possible_sources(self.query, self.counting, count=count, budget=budget)
            known[found[1]] = found
        return known[True] if True in known else known[False]

    @cached_property
    def _sources(self) -> dict[bool, tuple[Floats, bool]]:
        """Sources of each scored state, by whether they were counted."""
        return {}


def lump(
    query: Query, orders: Floats, *, merge: bool = True, budget: Budget = UNLIMITED
) -> LumpedChain:
    """Find the columns, and lump states of one column unless `lump` is false."""
    if not merge:
        return LumpedChain(query, columns_of(query, orders, lump=False))
    numbered = number_columns(query, orders, lump=True)
    with beside(numbered.stand_for, budget.threads) as stand_for:
        merged, keep = lump_states(query, numbered.of_state, numbered.width, budget=budget)
        columns = stand_for()
    release_unused()
    return LumpedChain(merged, replace(columns, of_state=columns.of_state[keep]))


def lump_states(
    query: Query, column: Ints, columns: int, *, budget: Budget = UNLIMITED
) -> tuple[Query, Ints]:
    """Lump the states whose walks all end in one column; also give which states are kept.

    `column` is that of each state's absorber, of so many.
    """
    reduced = query.reduced
    first, extra = find_lumps(
        reduced.block_start,
        reduced.indptr,
        reduced.indices,
        reduced.data,
        reduced.cost,
        column,
        columns,
    )
    keep, number = number_first(first)

    def others() -> dict[str, Any]:
        """Make all but the moves, which take as long."""
        state, extra_steps = reduced.state.copy(), reduced.extra_steps.copy()
        extra_steps[query.answered] += extra[state[query.rows[query.answered]]]
        renumber(state, number)
        return {
            "state": state,
            "extra_steps": extra_steps,
            "own": reduced.own[keep],
            "column": reduced.column[keep],
            "block_start": thin_blocks(reduced.block_start, keep),
        }

    # A move to a lumped state is one to the first of its column, and takes that many steps more.
    moves = reduced.indptr, reduced.indices, reduced.data, reduced.entry_error
    with beside(others, budget.threads) as rest:
        indptr, indices, data, error, cost = moves_between(
            *moves, keep, number, extra, budget=budget
        )
        made = rest()
    small = replace(
        reduced,
        indptr=indptr,
        indices=indices,
        data=data,
        entry_error=error,
        cost=cost + reduced.cost[keep] - 1.0,
        **made,
    )
    return Query.by(query.chain, query.rows, small, missing=query.missing), keep
