"""The part of a balance that is assumed: money taken to have been there before the window."""

from __future__ import annotations

import numpy as np

from coinhaze.amounts import Ints
from coinhaze.graph.graph import Kind, TransactionGraph
from coinhaze.ledger import Amounts

# Kinds of holder whose opening balance no ledger or table states, by the rule that found it.
_ASSUMED = {
    "surplus": (Kind.address, Kind.account, Kind.pool),
    "observed": (Kind.pool,),
}


def assumed_openings(graph: TransactionGraph, nodes: Ints) -> Amounts | None:
    """Return the opening balance assumed for the holder of each node; None where hidden.

    By `surplus` an account opens with the lowest balance that allows what it paid. Its closing
    balance contains that; a table of balances is known, and so are the values of coins.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "b", 5), ("c", "a", 7)])
    >>> graph = coinhaze.transaction_graph(ledger, time="temporal")
    >>> a = graph.names.node("a")
    >>> graph.closing[a], assumed_openings(graph, np.array([a]))[0]
    (7, 5)
    """
    if graph.opening is None:
        return None
    kinds = _ASSUMED.get(str(graph.settings.get("opening")), ())
    party = graph.names.party
    opened = np.flatnonzero(graph.sources & np.isin(graph.kinds, kinds))
    by_party = graph.opening.take(opened).total_by(party[opened], len(graph.names.parties))
    return by_party.take(party[nodes])


def assumed_words(holds: int, assumed: int, shown: str) -> str:
    """Describe the assumed part of a holding, as a suffix; `shown` is the formatted amount.

    >>> assumed_words(7, 5, "5")
    ', of which 5 assumed to have been there before the window'
    """
    if not assumed:
        return ""
    how = "of which" if assumed <= holds else "reckoned with"
    return f", {how} {shown} assumed to have been there before the window"
