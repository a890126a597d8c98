"""Measures of a coin's sources: how many, how many in effect, how near to the maximum, which mints.

The degree of anonymity is that of Diaz et al. and of Serjantov and Danezis; mint centrality, that
of Pontiveros et al., counts the coinbases that a coin can be traced back to.
"""

from __future__ import annotations

import numpy as np

from coinhaze.amounts import Floats
from coinhaze.graph import TransactionGraph
from coinhaze.graph.graph import Kind
from coinhaze.graph.order_kernels import spread
from coinhaze.measures.comparators.side_by_side import ComparedScores

AT_ONCE = 64  # sources that share one pass, a bit each


def mint_centrality(graph: TransactionGraph) -> Floats:
    """Count for every node the coinbases or mints it can come from, on the graph.

    Money that was there before the window came from coinbases too, which nobody can see in it:
    such sources are not counted.

    >>> import coinhaze
    >>> zero = "0x" + "0" * 40
    >>> ledger = coinhaze.AccountLedger.from_transfers(
    ...     [(zero, "a", 1), (zero, "a", 1), ("b", "a", 1), ("a", "c", 3)])
    >>> graph = coinhaze.transaction_graph(ledger)
    >>> mint_centrality(graph)[graph.names.node("c")]
    np.float64(2.0)
    """
    made = np.flatnonzero(graph.sources & np.isin(graph.kinds, (Kind.transaction, Kind.mint)))
    # Edges in order of time carry a mark all the way in one pass; without time it takes several.
    order = (
        np.arange(len(graph.tail))
        if graph.born is None
        else np.argsort(graph.born[graph.tail], kind="stable")
    )
    tail, head = graph.tail[order], graph.head[order]
    count = np.zeros(len(graph))
    for first in range(0, len(made), AT_ONCE):
        some = made[first : first + AT_ONCE]
        marks = np.zeros(len(graph), dtype=np.uint64)
        marks[some] = np.uint64(1) << np.arange(len(some), dtype=np.uint64)
        spread(tail, head, marks)
        count += np.bitwise_count(marks)
    return count


def mints_behind(compared: ComparedScores) -> Floats:
    """Count the coinbases that each scored coin can come from."""
    return mint_centrality(compared.scores.chain.graph)[compared.scores.nodes]
