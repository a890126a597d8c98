"""One coin: where its money came from, solved on the coin's own past alone."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.sparse.csgraph

from coinhaze.chain import AbsorbingChain
from coinhaze.chain.chain import NO_COLUMN
from coinhaze.errors import InputError, UnknownName
from coinhaze.ledger.amounts import Bools, Ints
from coinhaze.measure import Origins
from coinhaze.solve.asked import Asked
from coinhaze.solve.exact import score_exactly, width_of
from coinhaze.solve.reduce import NO_STATE
from coinhaze.solve.source import Source, chain_of


def origins(
    source: Source,
    node: str | int,
    *,
    accuracy: Literal["exact"] | float = "exact",
    **settings: Any,
) -> Origins:
    """Give the distribution over sources of one node, largest first, and the flow that led there.

    `source` is a chain, or anything `score` takes, with the same settings.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    >>> chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    >>> origins(chain, "c").sources().to_pylist()[0]
    {'source': 'b', 'probability': 0.75}
    """
    chain = chain_of(source, **settings)
    start = chain.graph.names.node(node) if isinstance(node, str) else int(node)
    if not 0 <= start < len(chain):
        raise UnknownName(f"no node {start}: the graph has {len(chain)}")
    rows = np.array([start])
    # Every node of the past is asked about by itself, so none is merged with its predecessor.
    asked = Asked.of(chain, rows, merge=False)
    kept, state = asked.reduced.kept, asked.reduced.state
    if state[start] == NO_STATE:
        name = chain.graph.names.of(rows)[0].as_py()
        why = (
            "no listed money ever reached it" if chain.clean is not None else "its past never ends"
        )
        raise InputError(f"{name} has no answer: {why}")
    score = score_exactly(chain, rows, method="origins", width=width_of(accuracy), asked=asked)
    visits = np.zeros(len(chain))
    visits[kept] = asked.factor.visits(int(state[start]))[state[kept]]
    ends = np.flatnonzero(kept & (chain.column != NO_COLUMN))
    share = np.bincount(
        chain.column[ends], visits[ends] * chain.walk.own[ends], minlength=len(chain.outcomes)
    )
    possible = np.unique(chain.column[ends])
    order = possible[np.argsort(-share[possible], kind="stable")]
    moves = chain.Q[kept].tocoo()
    to = np.flatnonzero(kept)[moves.coords[0]]
    flow = visits[to] * moves.data
    largest = np.argsort(-flow, kind="stable")
    way_next, way_end = _ways(chain, start, kept, ends)
    return Origins(
        chain=chain,
        node=start,
        bits=float(score.bits[0]),
        bits_low=float(score.bits_low[0]),
        bits_high=float(score.bits_high[0]),
        steps=float(score.steps[0]),
        outcomes=order,
        probability=share[order].astype(np.float64),
        flow_from=moves.coords[1][largest].astype(np.int64),
        flow_to=to[largest],
        flow_share=flow[largest],
        way_next=way_next,
        way_end=way_end[order],
    )


def _ways(chain: AbsorbingChain, start: int, kept: Bools, ends: Ints) -> tuple[Ints, Ints]:
    """Find likeliest single ways: from each node the next one towards the start, and where the
    likeliest way to each outcome begins."""
    nodes = np.flatnonzero(kept)
    number = np.full(len(chain) + 1, NO_COLUMN)
    number[nodes] = np.arange(len(nodes))
    q = chain.Q[nodes][:, nodes].tocsr()
    # Shortest paths need positive lengths: a certain move costs next to nothing.
    q.data = np.maximum(-np.log2(q.data), 1e-12)
    length, before = scipy.sparse.csgraph.dijkstra(
        q, indices=int(number[start]), return_predecessors=True
    )
    way_next = np.full(len(chain), NO_COLUMN)
    way_next[nodes] = np.where(before >= 0, nodes[np.maximum(before, 0)], NO_COLUMN)
    with np.errstate(divide="ignore"):
        total = length[number[ends]] - np.log2(chain.walk.own[ends])
    way_end = np.full(len(chain.outcomes), NO_COLUMN)
    by_length = ends[np.argsort(-total, kind="stable")]
    way_end[chain.column[by_length]] = by_length
    return way_next, way_end
