"""A transaction graph with time turned round, so that a walk back follows money forward."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coinhaze.errors import UsageError
from coinhaze.graph.graph import TransactionGraph

FORWARD = "forward"


def reversed_graph(graph: TransactionGraph) -> TransactionGraph:
    """Turn every edge round, and let what a node was left with be what it begins with.

    A node's money was its opening and what came in; it went out again or stayed. So what stayed,
    opening + in - out, is where a walk forward ends: in unspent coins and balances, in
    transactions (fees) and in what can never be spent. Both graphs have the same sums at every
    node, to the last unit.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "b", 3), ("b", "c", 1)])
    >>> reversed_graph(coinhaze.transaction_graph(ledger)).to_arrow().to_pylist()
    [{'from': 'b', 'to': 'a', 'amount': '3'}, {'from': 'c', 'to': 'b', 'amount': '1'}]
    """
    if graph.amounts is None or graph.opening is None:
        raise UsageError("money is followed forward by its amounts, which this ledger hides")
    n = len(graph)
    incoming, outgoing = (graph.amounts.total_by(ends, n) for ends in (graph.head, graph.tail))
    stayed = graph.opening + incoming - outgoing
    order = np.lexsort((graph.tail, graph.head))
    place = np.empty(len(order) + 1, dtype=np.int64)
    place[order] = np.arange(len(order))
    place[-1] = -1
    return replace(
        graph,
        tail=graph.head[order],
        head=graph.tail[order],
        amounts=graph.amounts.take(order),
        opening=stayed,
        sources=stayed.positive(),
        closing=graph.opening,
        sinks=graph.sources & outgoing.positive(),
        born=None if graph.born is None else graph.born.max(initial=0) - graph.born,
        payment_edge=place[graph.payment_edge],
        settings=graph.settings | {"direction": FORWARD},
    )
