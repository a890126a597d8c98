"""The transaction graph: who paid whom, and with what."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.graph.names import NO_SNAPSHOT as NO_SNAPSHOT
from coinhaze.graph.names import NodeNames as NodeNames
from coinhaze.ledger import Amounts, CoinLedger, Ledger
from coinhaze.ledger.coins import UNKNOWN
from coinhaze.ledger.frames import ArrowTable, optional, shown
from coinhaze.ledger.frozen import freeze

Kinds = npt.NDArray[np.int8]


class Kind(IntEnum):
    """What a node stands for."""

    coin = 0
    transaction = 1
    address = 2
    account = 3
    pool = 4
    ring = 5
    mint = 6
    burn = 7


@dataclass(frozen=True, eq=False)
class TransactionGraph(ArrowTable):
    """Nodes, weighted edges, opening and closing balances; valid once built.

    Edge k moves `amounts[k]` from node `tail[k]` to node `head[k]`; parallel transfers are
    merged. In a ledger that hides amounts, `amounts`, `opening` and `closing` are None.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    >>> coinhaze.transaction_graph(ledger).to_arrow().to_pylist()
    [{'from': 'a', 'to': 'c', 'amount': '1'}, {'from': 'b', 'to': 'c', 'amount': '3'}]
    """

    names: NodeNames
    kinds: Kinds
    tail: Ints
    head: Ints
    amounts: Amounts | None
    weights: Floats | None
    opening: Amounts | None
    sources: Bools
    closing: Amounts | None
    sinks: Bools
    born: Ints | None  # the step at which each node came into being; None where time does not count
    payment_edge: Ints
    payment_amount: Amounts | None
    ledger: Ledger
    settings: dict[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        freeze(self)
        freeze(self.names)

    def __len__(self) -> int:
        return len(self.kinds)

    def __repr__(self) -> str:
        return (
            f"TransactionGraph({len(self)} nodes, {len(self.tail)} edges, "
            f"{int(self.sources.sum())} sources, {int(self.sinks.sum())} sinks)"
        )

    def _repr_html_(self) -> str:
        return shown("graph", self)

    @cached_property
    def unknown_sources(self) -> Ints:
        """The sources that stand for several coins of unknown value that were spent together."""
        if not isinstance(self.ledger, CoinLedger) or not self.ledger.has_unknown:
            return np.zeros(0, dtype=np.int64)
        sources = np.flatnonzero(self.sources)
        lumped = pc.starts_with(self.names.of(sources), UNKNOWN)
        found: Ints = sources[lumped.to_numpy(zero_copy_only=False)]
        return found

    def to_arrow(self) -> pa.Table:
        """Give the edges as a table; `tables` also gives the nodes."""
        return self.tables()["edges"]

    def adjacency(self) -> scipy.sparse.csr_array:
        """Give the matrix whose entry (i, j) is what node i paid node j, as floats.

        Where amounts are hidden, the entry is the number of edges.
        """
        value = np.ones(len(self.tail)) if self.amounts is None else self.amounts.floats()
        n = len(self)
        return scipy.sparse.csr_array((value, (self.tail, self.head)), shape=(n, n))

    def to_networkx(self) -> Any:
        """Give a networkx.DiGraph: nodes by name, with kind, opening and balance; needs networkx.

        Edges have their exact amount in the smallest unit, None where it is hidden.
        """
        graph = optional("networkx", "to_networkx").DiGraph()
        tables = self.tables()
        for row in tables["nodes"].to_pylist():
            graph.add_node(row.pop("node"), **row)
        for row in tables["edges"].to_pylist():
            amount = None if row["amount"] is None else int(row["amount"])
            graph.add_edge(row["from"], row["to"], amount=amount)
        return graph

    def tables(self) -> dict[str, pa.Table]:
        """Give nodes and edges as Arrow tables."""
        every = np.arange(len(self))
        names = self.names.of(every)
        hidden = pa.nulls(len(self), pa.string())
        return {
            "nodes": pa.table(
                {
                    "node": names,
                    "kind": kind_names(self.kinds),
                    "opening": hidden if self.opening is None else self.opening.text(),
                    "balance": hidden if self.closing is None else self.closing.text(),
                    "source": self.sources,
                    "sink": self.sinks,
                }
            ),
            "edges": pa.table(
                {
                    "from": names.take(pa.array(self.tail)),
                    "to": names.take(pa.array(self.head)),
                    "amount": pa.nulls(len(self.tail), pa.string())
                    if self.amounts is None
                    else self.amounts.text(),
                }
            ),
        }


def kind_names(kinds: Kinds) -> pa.StringArray:
    """Return the names of kinds."""
    return pa.array([k.name for k in Kind]).take(pa.array(kinds))


def downstream(nodes: Ints, tail: Ints, head: Ints, n: int) -> Bools:
    """Return which of n nodes can be reached from `nodes`, themselves included.

    >>> downstream(np.array([1]), np.array([0, 1]), np.array([1, 2]), 3)
    array([False,  True,  True])
    """
    from scipy.sparse.csgraph import breadth_first_order

    # One extra node, with an edge to each of these.
    tail, head = np.append(tail, np.full(len(nodes), n)), np.append(head, nodes)
    edges = scipy.sparse.csr_array((np.ones(len(tail)), (tail, head)), shape=(n + 1, n + 1))
    found = np.zeros(n + 1, dtype=np.bool_)
    found[breadth_first_order(edges, n, return_predecessors=False)] = True
    return found[:n]
