"""Look up names given by users in a graph; errors explain why one is not there."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import numpy as np

from coinhaze.amounts import Ints
from coinhaze.errors import UnknownName
from coinhaze.formats.bitcoin_raw.networks import LOOKED_AT, foreign_words, networks_of_owners
from coinhaze.formats.lists.labels import normal_address
from coinhaze.graph import TransactionGraph
from coinhaze.ledger import CoinLedger


def name_in(graph: TransactionGraph, name: str) -> str:
    """Return a name as the ledger writes it: Ethereum addresses may differ in case."""
    return name if len(graph.names.nodes(name)) else normal_address(name)


def find_node(graph: TransactionGraph, name: str) -> int:
    """Find one node by name; the error for a missing one names the network of an address.

    >>> import coinhaze
    >>> graph = coinhaze.transaction_graph(coinhaze.AccountLedger.from_transfers([("a", "b", 1)]))
    >>> find_node(graph, "b")
    1
    """
    try:
        return graph.names.node(name_in(graph, name))
    except UnknownName:
        foreign = other_network(graph, [name])
        if foreign is None:
            raise
        raise UnknownName(foreign) from None


def find_holdings(graph: TransactionGraph, names: Iterable[str]) -> Ints:
    """Find what names stand for, each once: an address for its unspent coins, or else for all.

    An account stands for its newest snapshot.
    """
    found: dict[int, None] = {}
    for name in names:
        nodes = graph.names.nodes(name_in(graph, name))
        owned = nodes[graph.names.newest[graph.names.party[nodes]] == nodes]
        unspent = owned[graph.sinks[owned]]
        if len(owned) < 2:
            found[find_node(graph, name)] = None
        else:
            found |= dict.fromkeys((unspent if len(unspent) else owned).tolist())
    return np.array(list(found), dtype=np.int64)


def other_network(graph: TransactionGraph, names: Iterable[str]) -> str | None:
    """Return a message if one of some names is an address of another network than the ledger's.

    None if there is no such name among the first thousand.
    """
    ledger = graph.ledger
    ours = networks_of_owners(ledger.owners if isinstance(ledger, CoinLedger) else ledger.accounts)
    return next(
        filter(None, (foreign_words(name, ours) for name in islice(names, LOOKED_AT))), None
    )
