"""The user's own exposed addresses as a set of sources."""

from __future__ import annotations

from collections.abc import Sequence

from coinhaze.errors import InputError
from coinhaze.graph import TransactionGraph
from coinhaze.ledger.links import Links
from coinhaze.observer import AbsorbingChain, absorbing_chain
from coinhaze.options import PolicyLike
from coinhaze.wallet.holdings import coin_ledger, unknown_address


def exposed_chain(
    graph: TransactionGraph,
    names: Sequence[str],
    *,
    policy: PolicyLike | None = None,
    links: Links | None = None,
) -> AbsorbingChain:
    """Return a chain in which walks end at these addresses or coins.

    An empty list raises an error, and so does one of which nothing is in the ledger; then the error
    explains the first name.

    >>> import coinhaze
    >>> ledger = coinhaze.CoinLedger.from_transactions([{"txid": "a", "outputs": [{"value": 5}]}])
    >>> exposed_chain(coinhaze.transaction_graph(ledger), [])
    Traceback (most recent call last):
    coinhaze.errors.InputError: the list of exposed addresses is empty
    """
    if not names:
        raise InputError("the list of exposed addresses is empty")
    if not any(len(graph.names.nodes(name)) for name in names):
        raise InputError(f"nothing listed as exposed is found: {_why(graph, names[0])}")
    return absorbing_chain(graph, policy=policy, listed=names, links=links)


def _why(graph: TransactionGraph, name: str) -> str:
    return str(unknown_address(coin_ledger(graph), name))
