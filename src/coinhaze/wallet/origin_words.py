"""Descriptions of sources: newly mined money, a coin from before the window, a pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from coinhaze.graph import TransactionGraph
from coinhaze.ledger import CoinLedger
from coinhaze.ledger.coins import UNKNOWN
from coinhaze.observer.chain import ELSEWHERE
from coinhaze.wallet.holdings import address_of, coin_ledger

NO_LABELS: Mapping[str, str] = {}


@dataclass(frozen=True)
class NamedOrigin:
    """A source of a coin's money: its name in the graph, its description, and its share."""

    source: str
    words: str
    share: float


def origin_words(graph: TransactionGraph, source: str, labels: Mapping[str, str]) -> str:
    """Describe a source of a coin view, with a label where its address has one.

    >>> import coinhaze
    >>> ledger = coinhaze.CoinLedger.from_transactions([
    ...     {"txid": "a", "outputs": [{"value": 5, "address": "m"}]},
    ... ])
    >>> origin_words(coinhaze.transaction_graph(ledger), "tx:a", {"m": "the old mine"})
    'newly mined by the old mine: tx:a'
    """
    if source == ELSEWHERE:
        return "anywhere not listed"
    if source in labels:
        return f"{labels[source]}: {source}"
    if source.startswith("pool:"):
        return f"the shielded {source}"
    ledger = coin_ledger(graph)
    party = graph.names.parties.find(source)
    outputs = len(ledger.output_tx)
    if 0 <= party < outputs:
        return _coin_words(ledger, party, source, labels)
    if outputs <= party < outputs + len(ledger.txids):
        return _mined_words(ledger, party - outputs, source, labels)
    return source


def _coin_words(ledger: CoinLedger, output: int, source: str, labels: Mapping[str, str]) -> str:
    if source.startswith(UNKNOWN):
        return f"coins of unknown value, spent by {source[len(UNKNOWN) :].rpartition(':')[0]}"
    owner = address_of(ledger, output)
    whose = "" if owner is None else f" of {labels.get(owner, owner)}"
    return f"a coin{whose} from before this ledger: {source}"


def _mined_words(ledger: CoinLedger, tx: int, source: str, labels: Mapping[str, str]) -> str:
    paid = [address_of(ledger, int(k)) for k in np.flatnonzero(ledger.output_tx == tx)]
    known = [labels[owner] for owner in paid if owner is not None and owner in labels]
    by = f" by {known[0]}" if known else ""
    height = ledger.heights[tx].as_py()
    block = "" if height is None else f" in block {height}"
    return f"newly mined{by}{block}: {source}"
