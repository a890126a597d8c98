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
from coinhaze.measures.comparators.registry import COMPARATORS, Comparator

POSSIBLE_SOURCES = COMPARATORS.add(
    Comparator(
        "possible-sources",
        "sources the coin can come from: k-anonymity over the whole graph",
        lambda compared: compared.scores.sources,
        unit="origins",
        about="sources",
    )
)


EFFECTIVE_SOURCES = COMPARATORS.add(
    Comparator(
        "effective-sources",
        "equally likely sources that would be as uncertain: 2^bits",
        lambda compared: compared.scores.effective_sources,
        unit="origins",
        about="sources",
    )
)


DEGREE = COMPARATORS.add(
    Comparator(
        "degree",
        "bits as a share of what as many equally likely sources would have",
        lambda compared: compared.scores.degree,
        unit="of 1",
        about="sources",
    )
)


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


MINT_CENTRALITY = COMPARATORS.add(
    Comparator(
        "mint-centrality",
        "coinbases the coin can be traced back to",
        lambda compared: mint_centrality(compared.scores.chain.graph)[compared.scores.nodes],
        unit="coinbases",
        about="sources",
    )
)
