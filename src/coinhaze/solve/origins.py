"""One coin: where its money came from, solved on the coin's own past alone."""

from __future__ import annotations

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

from coinhaze.chain import AbsorbingChain
from coinhaze.chain.chain import NO_COLUMN
from coinhaze.errors import InputError
from coinhaze.ledger.amounts import Floats, Ints
from coinhaze.measure import Origins
from coinhaze.solve.asked import Asked
from coinhaze.solve.exact import score_exactly
from coinhaze.solve.reduce import NO_STATE

WAYS = 100


def origins(chain: AbsorbingChain, node: str | int) -> Origins:
    """Give the distribution over sources of one node, largest first, and the flow that led there.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    >>> chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    >>> origins(chain, "c").sources().to_pylist()[0]
    {'source': 'b', 'probability': 0.75}
    """
    start = chain.graph.names.node(node) if isinstance(node, str) else int(node)
    rows = np.array([start])
    asked = Asked.of(chain, rows)
    reduced = asked.reduced
    if reduced.state[start] == NO_STATE:
        name = chain.graph.names.of(rows)[0].as_py()
        raise InputError(
            f"{name} has no answer: "
            + (
                "no listed money ever reached it"
                if chain.clean is not None
                else "its past never ends"
            )
        )
    score = score_exactly(chain, rows, method="origins", asked=asked)
    visits = _visits(asked, start)
    column = np.where(visits > 0, chain.column, NO_COLUMN)
    absorbed = np.flatnonzero(column != NO_COLUMN)
    share = np.bincount(
        column[absorbed], visits[absorbed] * chain.walk.own[absorbed], len(chain.outcomes)
    )
    possible = np.unique(chain.column[reduced.kept & (chain.column != NO_COLUMN)])
    order = possible[np.argsort(-share[possible], kind="stable")]
    moves = chain.Q[reduced.kept].tocoo()
    to = np.flatnonzero(reduced.kept)[moves.coords[0]]
    flow = visits[to] * moves.data
    largest = np.argsort(-flow, kind="stable")
    return Origins(
        chain=chain,
        node=start,
        bits=float(score.bits[0]),
        bits_low=float(score.bits_low[0]),
        bits_high=float(score.bits_high[0]),
        steps=float(score.steps[0]),
        outcomes=order,
        probability=share[order],
        flow_from=moves.coords[1][largest].astype(np.int64),
        flow_to=to[largest],
        flow_share=flow[largest],
        ways=_ways(chain, start, reduced.kept, order[:WAYS]),
    )


def _visits(asked: Asked, start: int) -> Floats:
    """Give the expected visits of a walk from one node to every node of its past."""
    reduced, factor = asked.reduced, asked.factor
    by_state = factor.visits(int(factor.place[reduced.state[start]]))
    visits = np.zeros(len(asked.chain))
    kept = np.flatnonzero(reduced.kept)
    is_state = reduced.extra_steps[kept] == 0
    states = kept[is_state]
    visits[states] = by_state[factor.place[reduced.state[states]]]
    return _alias_visits(asked.chain.Q, visits, kept[~is_state], start)


def _alias_visits(q: scipy.sparse.csr_array, visits: Floats, aliases: Ints, start: int) -> Floats:
    """Fill in visits of nodes with one predecessor: what moves to them from all others."""
    if len(aliases) == 0:
        return visits
    n = len(visits)
    is_alias = np.zeros(n, dtype=np.bool_)
    is_alias[aliases] = True
    visits[start] = max(visits[start], 1.0) if is_alias[start] else visits[start]
    back = scipy.sparse.csr_array(q.T)[aliases]
    number = np.full(n, -1)
    number[aliases] = np.arange(len(aliases))
    coo = back.tocoo()
    from_alias = is_alias[coo.coords[1]]
    inflow = np.zeros(len(aliases))
    np.add.at(inflow, coo.coords[0], np.where(from_alias, 0.0, coo.data * visits[coo.coords[1]]))
    if is_alias[start]:
        inflow[number[start]] += 1.0
    among = scipy.sparse.csr_array(
        (coo.data[from_alias], (coo.coords[0][from_alias], number[coo.coords[1][from_alias]])),
        shape=(len(aliases), len(aliases)),
    )
    # Aliases form chains without loops, so the sum ends after the longest of them.
    total, step = inflow.copy(), inflow
    while np.any(step > 0):
        step = among @ step
        total += step
    visits[aliases] = total
    return visits


def _ways(
    chain: AbsorbingChain, start: int, kept: np.typing.NDArray[np.bool_], outcomes: Ints
) -> tuple[tuple[int, ...], ...]:
    """Find the likeliest single way from the node back to each outcome."""
    nodes = np.flatnonzero(kept)
    number = np.full(len(chain), -1)
    number[nodes] = np.arange(len(nodes))
    q = chain.Q[nodes][:, nodes].tocsr()
    with np.errstate(divide="ignore"):
        # Shortest paths need positive lengths: a certain move costs next to nothing.
        q.data = np.maximum(-np.log2(q.data), 1e-12)
    length, before = scipy.sparse.csgraph.dijkstra(
        q, indices=int(number[start]), return_predecessors=True
    )
    ends = nodes[chain.column[nodes] != NO_COLUMN]
    with np.errstate(divide="ignore"):
        total = length[number[ends]] - np.log2(chain.walk.own[ends])
    ways = []
    for outcome in outcomes:
        candidates = np.flatnonzero(chain.column[ends] == outcome)
        at = int(number[ends[candidates[np.argmin(total[candidates])]]])
        way = [at]
        while way[-1] != number[start]:
            way.append(int(before[way[-1]]))
        ways.append(tuple(int(nodes[k]) for k in reversed(way)))
    return tuple(ways)
