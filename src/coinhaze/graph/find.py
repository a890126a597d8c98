"""Look up names given by users in a graph; errors explain why one is not there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Ints
from coinhaze.errors import UnknownName, first_few
from coinhaze.formats.bitcoin_raw.networks import LOOKED_AT, foreign_words, networks_of_owners
from coinhaze.formats.lists.labels import normal_address
from coinhaze.graph import TransactionGraph
from coinhaze.ledger import CoinLedger

_HASH = re.compile("(0[xX])?[0-9a-fA-F]{64}")


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


def find_nodes(graph: TransactionGraph, names: Sequence[str]) -> Ints:
    """Find nodes by name; the error for a missing one says which others are missing.

    >>> import coinhaze
    >>> graph = coinhaze.transaction_graph(coinhaze.AccountLedger.from_transfers([("a", "b", 1)]))
    >>> find_nodes(graph, ["b", "a"]).tolist()
    [1, 0]
    """
    found: list[int] = []
    for place, name in enumerate(names):
        try:
            found.append(find_node(graph, name))
        except UnknownName as error:
            rest = names[place + 1 :]
            others = [other for other in rest if not len(graph.names.nodes(name_in(graph, other)))]
            if not others:
                raise
            raise UnknownName(
                f"{error}; {len(others):,} more of the {len(names):,} names are not there: "
                f"{first_few(others)} (take them out of the list)"
            ) from None
    return np.array(found, dtype=np.int64)


def find_holdings(graph: TransactionGraph, names: Iterable[str]) -> Ints:
    """Find what names stand for, each once: an address for its unspent coins, or else for all.

    An account stands for its newest snapshot. The hash of a transaction stands for what it moved:
    the coins it made, or the balances that its transfers were paid from, as they were then.
    """
    found: dict[int, None] = {}
    for name in names:
        if len(moved := moved_by(graph, name)):
            found |= dict.fromkeys(moved.tolist())
            continue
        nodes = graph.names.nodes(name_in(graph, name))
        owned = nodes[graph.names.newest[graph.names.party[nodes]] == nodes]
        unspent = owned[graph.sinks[owned]]
        if len(owned) < 2:
            found[find_node(graph, name)] = None
        else:
            found |= dict.fromkeys((unspent if len(unspent) else owned).tolist())
    return np.array(list(found), dtype=np.int64)


def moved_by(graph: TransactionGraph, name: str) -> Ints:
    """Return the nodes that a transaction's money was in, none if no transaction has that hash.

    >>> import coinhaze
    >>> ledger = coinhaze.CoinLedger.from_transactions([{"txid": "t", "outputs": [{"value": 5}]}])
    >>> graph = coinhaze.transaction_graph(ledger)
    >>> graph.names.of(moved_by(graph, "t")).to_pylist()
    ['t:0']
    """
    nothing = np.zeros(0, dtype=np.int64)
    if len(graph.names.nodes(name_in(graph, name))) or graph.payment_edge is None:
        return nothing
    ledger = graph.ledger
    hashed = normal_hash(name.removeprefix("tx:"))
    if isinstance(ledger, CoinLedger):
        tx = pc.index(ledger.txids, pa.scalar(hashed, pa.string())).as_py()
        payments = np.flatnonzero(ledger.output_tx == tx) if tx >= 0 else nothing
    elif ledger.ids is None:
        return nothing
    else:
        ids = pc.utf8_lower(ledger.ids)
        same = pc.or_(pc.equal(ids, hashed), pc.starts_with(ids, f"{hashed}:"))
        payments = np.flatnonzero(same.to_numpy(zero_copy_only=False))
    edges = graph.payment_edge[payments]
    ends = graph.head if isinstance(ledger, CoinLedger) else graph.tail
    return np.unique(ends[edges[edges >= 0]].astype(np.int64))


def normal_hash(name: str) -> str:
    """Write a transaction's hash as ledgers do, in lower case; other ids stay as they are."""
    return name.lower() if _HASH.fullmatch(name) else name


def other_network(graph: TransactionGraph, names: Iterable[str]) -> str | None:
    """Return a message if one of some names is an address of another network than the ledger's.

    None if there is no such name among the first thousand.
    """
    ledger = graph.ledger
    ours = networks_of_owners(ledger.owners if isinstance(ledger, CoinLedger) else ledger.accounts)
    found = (foreign_words(name, ours) for name in islice(names, LOOKED_AT))
    return next(filter(None, found), None)
