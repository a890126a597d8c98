"""Labels of nodes: a user's own names for the addresses and accounts of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Ints
from coinhaze.graph import TransactionGraph
from coinhaze.graph.graph import Kind
from coinhaze.observer.chain import Belief, SourceNames

UNLABELLED = -1


class Labelled:
    """The labels of a graph's nodes: a coin has its address's, a coinbase its owner's.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("0xa", "0xb", 1)])
    >>> Labelled(coinhaze.transaction_graph(ledger), {"0xa": "a shop"}).of(np.array([0, 1]))
    ['a shop', None]
    """

    def __init__(self, graph: TransactionGraph, labels: Mapping[str, str]) -> None:
        self.graph = graph
        self.labels = labels
        self.texts = sorted(set(labels.values()))

    @cached_property
    def number(self) -> Ints:
        """The number of each node's label text, -1 if it has none."""
        graph = self.graph
        number = np.full(len(graph), UNLABELLED)
        if not self.labels:
            return number
        place = {text: k for k, text in enumerate(self.texts)}
        for address, text in self.labels.items():
            number[graph.names.nodes(address)] = place[text]
        mined = (graph.kinds[graph.tail] == Kind.transaction) & graph.sources[graph.tail]
        mined &= (number[graph.head] != UNLABELLED) & (number[graph.tail] == UNLABELLED)
        # Of several owners the first output's counts: it is written last.
        edges = np.flatnonzero(mined)[::-1]
        number[graph.tail[edges]] = number[graph.head[edges]]
        return number

    def of(self, nodes: Ints) -> list[str | None]:
        """Return the labels of some nodes."""
        texts = [*self.texts, None]
        return [texts[k] for k in self.number[nodes].tolist()]

    def of_outcomes(self, belief: Belief, outcomes: Ints) -> list[str | None]:
        """Return the labels of some outcomes: sources, or entries of a list."""
        names = belief.outcomes
        if isinstance(names, SourceNames):
            return self.of(names.nodes[outcomes])
        rows = pa.array(outcomes.astype(np.int64))
        return [self.labels.get(name) for name in names.take(rows).to_pylist()]
