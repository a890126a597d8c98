"""Chain -> the states a solve must visit, in an order where each comes after all it reaches.

Dropped: nodes no requested row leads back to, and nodes whose absorption is not certain (they
have no answer). Merged: a node with one predecessor and no absorber has its predecessor's
distribution, one step further (alias); requested nodes that nothing leads back to and whose moves
are the same have one distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.ledger import Amounts
from coinhaze.observer import AbsorbingChain
from coinhaze.observer.chain import NO_COLUMN
from coinhaze.solve.structure.reduce_kernels import (
    add_moves,
    certain_in_order,
    find_equal,
    follow_aliases,
    is_in_order,
    number_first,
    number_in_order,
    reachable,
    reachable_in_order,
    renumber,
    reorder,
    strong_components,
    turn,
)

NO_STATE = -1
# A move's probability: two amounts rounded to floats, each by up to 2, and one division.
ENTRY_ERROR = 5.0


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
) -> Reduced:
    """Keep what the given rows need; merge aliases unless told not to; order by components.

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
    *moves, cost = add_moves(q.indptr, q.indices, q.data, errors, states, number, extra)
    steps = extra[rows]
    if merge and len(states):
        moved_to = np.zeros(len(states), dtype=np.bool_)
        moved_to[moves[1]] = True
        first = find_equal(*moves, ~moved_to & (chain.column[states] == NO_COLUMN))
        # Rows with the same moves are one; their steps may differ, by what aliases add.
        keep, place = number_first(first)
        moves = list(reorder(*moves, keep, place))
        has_state = requested[rows]
        steps[has_state] += (cost - cost[first])[number[rows[has_state]]]
        renumber(number, place)
        states, cost = states[keep], cost[keep]
    starts = np.arange(len(states) + 1)
    if not is_in_order(*moves[:2]):
        blocks, component = strong_components(*moves[:2])
        order = np.argsort(component, kind="stable")
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        moves = list(reorder(*moves, order, place))
        starts = np.searchsorted(component[order], np.arange(blocks + 1))
        renumber(number, place)
        states, cost = states[order], cost[order]
    indptr, indices, data, error = moves
    return Reduced(
        retained=retained,
        state=number,
        extra_steps=steps,
        indptr=indptr,
        indices=indices,
        data=data,
        entry_error=error,
        own=np.where(chain.column[states] == NO_COLUMN, 0.0, chain.walk.own[states]),
        column=chain.column[states],
        cost=cost,
        block_start=starts,
    )


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
