"""Chain -> the states a solve must visit, in an order where each comes after all it reaches.

Dropped: nodes no requested row leads back to, and nodes whose absorption is not certain (they
have no answer). Merged: a node with one predecessor and no absorber has its predecessor's
distribution, one step further (alias); requested nodes that nothing leads back to and whose moves
are the same have one distribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.ledger import Amounts
from coinhaze.observer import AbsorbingChain
from coinhaze.observer.chain import NO_COLUMN
from coinhaze.solve.pool.limits import UNLIMITED, Budget, workers_for
from coinhaze.solve.structure.reduce_kernels import (
    add_moves,
    add_steps,
    beginning,
    certain_in_order,
    find_equal,
    follow_aliases,
    is_in_order,
    leaves,
    number_first,
    number_in_order,
    reachable,
    reachable_in_order,
    renumber,
    reorder,
    row_starts,
    strong_components,
    turn,
)
from coinhaze.threads import beside, together

NO_STATE = -1
# A move's probability: two amounts rounded to floats, each by up to 2, and one division.
ENTRY_ERROR = 5.0
# A thread takes at least so many rows.
MIN_ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class Reduced:
    """A chain cut down to what the requested rows need.

    States are numbered so that moves between blocks (strong components) lead to lower numbers.
    """

    retained: Bools  # the nodes that any requested row leads back to and that have an answer
    state: Ints  # for each node its state, NO_STATE if it has none
    extra_steps: Floats  # for each requested row the steps to its state
    indptr: Ints
    indices: Ints
    data: Floats
    entry_error: Floats  # bound on each move's relative rounding error, times 2^53
    own: Floats
    column: Ints
    cost: Floats  # expected steps of one move
    block_start: Ints

    def __len__(self) -> int:
        return len(self.own)

    @cached_property
    def acyclic(self) -> bool:
        """Tell whether no state can come back to itself."""
        single = len(self.block_start) - 1 == len(self)
        return single and bool(is_in_order(self.indptr, self.indices))


def certain_nodes(chain: AbsorbingChain, *, ordered: bool | None = None) -> Bools:
    """Tell which nodes are absorbed with certainty: all they can reach can reach an absorber."""
    q = chain.Q
    ends = (chain.column != NO_COLUMN) & (chain.walk.own > 0)
    if is_in_order(q.indptr, q.indices) if ordered is None else ordered:
        return np.asarray(certain_in_order(q.indptr, q.indices, ends), dtype=np.bool_)
    back = turn(q.indptr, q.indices, len(chain))
    can_end = reachable(*back, ends)
    return ~np.asarray(reachable(*back, ~can_end), dtype=np.bool_)


def reduce_chain(
    chain: AbsorbingChain,
    rows: Ints,
    *,
    merge: bool = True,
    ordered: bool | None = None,
    certain: Bools | None = None,
    budget: Budget = UNLIMITED,
) -> Reduced:
    """Keep what the given rows need; merge aliases unless `merge` is false; order by components.

    `ordered` and `certain` say what is known already: whether moves lead to lower numbers only, and
    what `certain_nodes` gives.
    """
    n = len(chain)
    q = chain.Q
    requested = np.zeros(n, dtype=np.bool_)
    requested[rows] = True
    ordered = is_in_order(q.indptr, q.indices) if ordered is None else ordered
    requested &= certain_nodes(chain, ordered=ordered) if certain is None else certain
    reach = reachable_in_order if ordered else reachable
    retained = np.asarray(reach(q.indptr, q.indices, requested), dtype=np.bool_)
    if ordered:
        number, extra, states = number_in_order(q.indptr, q.indices, chain.column, retained, merge)
    else:
        number, extra, states = _number(chain, retained, merge=merge)
    errors = np.broadcast_to(ENTRY_ERROR, len(q.data))
    given = q.indptr, q.indices, q.data, errors
    *moves, cost = moves_between(*given, states, number, extra, budget=budget)
    steps = extra[rows]
    if merge and len(states):
        first = find_equal(*moves, leaves(moves[1], chain.column[states]))
        # Rows with the same moves are one; their steps may differ, by what aliases add.
        keep, place = number_first(first)

        def put() -> tuple[Ints, Floats]:
            add_steps(steps, rows, requested, number, cost, first)
            renumber(number, place)
            return states[keep], cost[keep]

        with beside(put, budget.threads) as nodes:
            moves = reordered(moves, keep, place, budget=budget)
            states, cost = nodes()
    starts = np.arange(len(states) + 1)
    if not (ordered or is_in_order(*moves[:2])):
        blocks, component = strong_components(*moves[:2])
        order = np.argsort(component, kind="stable")
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        moves = reordered(moves, order, place, budget=budget)
        starts = np.searchsorted(component[order], np.arange(blocks + 1))
        renumber(number, place)
        states, cost = states[order], cost[order]
    indptr, indices, data, error = moves
    column = chain.column[states]
    return Reduced(
        retained=retained,
        state=number,
        extra_steps=steps,
        indptr=indptr,
        indices=indices,
        data=data,
        entry_error=error,
        own=np.where(column == NO_COLUMN, 0.0, chain.walk.own[states]),
        column=column,
        cost=cost,
        block_start=starts,
    )


def moves_between(
    indptr: Ints,
    indices: Ints,
    data: Floats,
    error: Floats,
    states: Ints,
    number: Ints,
    extra: Floats,
    *,
    budget: Budget = UNLIMITED,
) -> list[Any]:
    """Give the moves between states and the steps of one move, as `add_moves` does.

    Several threads take some states each, if there are many, and write to the same arrays: where
    moves of one are fewer than it had room for, those of the next are moved up.
    """
    start = row_starts(indptr, states)
    moves = _room(start)
    cost = np.empty(len(states))
    add = partial(add_moves, indptr, indices, data, error)
    shares = _shares(len(states), budget)
    starts = [start[some.start : some.stop + 1].copy() for some in shares]
    given = number, extra, len(states)
    together(
        [
            partial(add, states[some], *given, own, *moves, cost[some])
            for some, own in zip(shares, starts, strict=True)
        ],
        budget.threads,
    )
    ends = [(int(own[0]), int(own[-1])) for own in starts]
    end = ends[0][0]
    for some, own, (first, last) in zip(shares, starts, ends, strict=True):
        start[some.start : some.stop + 1] = own + (end - first)
        end += last - first
    return [start, *together([partial(_moved_up, a, ends) for a in moves], budget.threads), cost]


def _moved_up(array: Any, ends: Sequence[tuple[int, int]]) -> Any:
    """Give parts of an array without the gaps between them; the array is used up."""
    end = ends[0][1]
    for first, last in ends[1:]:
        if first > end:
            array[end : end + last - first] = array[first:last]
        end += last - first
    return beginning(array, end)


def reordered(moves: Sequence[Any], order: Ints, place: Ints, *, budget: Budget) -> list[Any]:
    """Put states into another order, leaving out those not in it: several threads take some each.

    `moves` are those of `moves_between`, and `place` is where each state comes to stand.
    """
    start = row_starts(moves[0], order)
    room = _room(start)
    put = partial(reorder, *moves)
    together(
        [
            partial(put, order[some], place, start[some], *room)
            for some in _shares(len(order), budget)
        ],
        budget.threads,
    )
    return [start, *room]


def _room(start: Ints) -> list[Any]:
    """Make room for so many moves: where they lead, their probability, its error."""
    return [np.empty(int(start[-1]), dtype=kind) for kind in (np.int64, np.float64, np.float64)]


def _shares(rows: int, budget: Budget) -> list[slice]:
    """Share rows out among threads, if they are many."""
    count = workers_for(max(1, rows // MIN_ROWS), budget.threads)
    ends = np.linspace(0, rows, count + 1).astype(np.int64).tolist()
    return [slice(first, last) for first, last in pairwise(ends)]


def _number(chain: AbsorbingChain, retained: Bools, *, merge: bool) -> tuple[Ints, Floats, Ints]:
    """Number the states of any chain, as `number_in_order` does where moves have an order."""
    q = chain.Q
    alias = retained & (np.diff(q.indptr) == 1) & (chain.column == NO_COLUMN) & merge
    target, extra = follow_aliases(q.indptr, q.indices, alias)
    states = np.flatnonzero(retained & ~alias)
    number = np.full(len(chain), NO_STATE, dtype=q.indices.dtype)
    number[states] = np.arange(len(states))
    # The state of a node is that of its alias; of a node that is not kept there is none.
    number = number[target]
    number[~retained] = NO_STATE
    return number, extra, states


def retained_excess(chain: AbsorbingChain, retained: Bools) -> Floats:
    """Give x of the law x^T B = b: what each kept node took in and did not pass to kept nodes."""
    graph = chain.graph
    assert graph.amounts is not None
    assert graph.opening is not None
    n = len(graph)
    flow = retained[graph.head]
    out = graph.amounts.take(flow).total_by(graph.tail[flow], n)
    excess: Amounts = graph.opening + graph.amounts.total_by(graph.head, n) - out
    return np.where(retained, excess.where_positive().floats(), 0.0)
