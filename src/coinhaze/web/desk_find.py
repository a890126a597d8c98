"""Nodes found by the names people use, or why there are none; quick however large the ledger."""

from __future__ import annotations

import numpy as np

from coinhaze.errors import UnknownName, shorten
from coinhaze.graph.find import find_node, name_in, other_network
from coinhaze.ledger import CoinLedger
from coinhaze.web.desk_nodes import Nodes
from coinhaze.web.desk_views import Look, Views

HINTED = 200_000  # parties of a graph in which a mistyped name is looked for


def node_named(views: Views, nodes: Nodes, look: Look, name: str) -> tuple[int, tuple[str, ...]]:
    """Find the node a name means under a look, and what to say of it.

    A coin seen by address is its owner.
    """
    graph = nodes.graph
    own = name_in(graph, name)
    found = graph.names.nodes(own)
    if len(found) == 0:
        owner = _owner_of(views, look, name)
        if owner is not None:
            return find_node(graph, owner), (f"{name} is seen as its address, {owner}.",)
        # Looking for what else could be meant takes long in a large ledger.
        if len(graph.names.parties) > HINTED:
            why = other_network(graph, [name])
            raise UnknownName(why or f"no node {shorten(name)} in the ledger")
    return find_node(graph, name), ()


def _owner_of(views: Views, look: Look, name: str) -> str | None:
    """Give whose coin it is, for a look by address at a ledger whose own view is by coin."""
    ledger = views.ledger
    if look.view != "address" or views.default.view != "coin":
        return None
    assert isinstance(ledger, CoinLedger)
    coin = views.chain.graph.names.parties.find(name)
    if not 0 <= coin < len(ledger.output_tx):
        return None
    return str(ledger.owners[int(ledger.output_owner[coin])].as_py())


def coins_of(nodes: Nodes, address: str) -> np.typing.NDArray[np.int64]:
    """Find the nodes of an address's coins in the coin view, in ledger order."""
    own = name_in(nodes.graph, address)
    parties = nodes.graph.names.others.parties(own)
    found = nodes.graph.names.newest[parties]
    return np.sort(found[found >= 0]).astype(np.int64)
