"""Who paid whom: ledgers become weighted transaction graphs."""

from coinhaze.graph.build import transaction_graph
from coinhaze.graph.graph import Kind, TransactionGraph

__all__ = ["Kind", "TransactionGraph", "transaction_graph"]
