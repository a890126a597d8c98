"""Heuristics by name, and their findings as rows of a table that other commands read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from coinhaze.errors import UsageError
from coinhaze.graph.clusters.coinjoins import CoinJoin, coinjoin_kinds
from coinhaze.graph.clusters.deposit_pools import (
    address_reuse_links,
    denomination_links,
    gas_price_links,
)
from coinhaze.graph.clusters.heuristics import CLUSTERINGS, heuristic
from coinhaze.graph.clusters.services import payout_links
from coinhaze.ledger import AccountLedger, CoinLedger, Ledger
from coinhaze.ledger.links import Link

Rows = list[tuple[object, ...]]


def find(
    ledger: Ledger,
    name: str,
    *,
    services: Sequence[str] | None = None,
    gas_prices: Mapping[str, int] | None = None,
    last: int = 5,
    fee: float = 0.02,
    confidence: float | None = None,
) -> Rows:
    """Return the findings of a heuristic: a header, then rows of clusters, links or kinds.

    >>> from coinhaze.ledger import AccountLedger
    >>> game = AccountLedger.from_transfers([("a", "dice", 5), ("dice", "c", 5)])
    >>> find(game, "pay-outs", services=["dice"])
    [('payment', 'node', 'probability', 'confidence'), ('1', 'a', 1.0, 0.5)]
    """
    rule = heuristic(name)
    if rule.gives == "links":
        sure = rule.confidence if confidence is None else confidence
        if name == "pay-outs":
            links = payout_links(ledger, services, last=last, fee=fee, confidence=sure)
        else:
            links = _pool_links(ledger, name, services, gas_prices, sure)
        return _link_rows(links)
    if not isinstance(ledger, CoinLedger):
        raise UsageError(f"{name} is for ledgers of coins")
    if rule.gives == "clusters":
        return [("address", "cluster"), *sorted(CLUSTERINGS[name](ledger).items())]
    kinds = coinjoin_kinds(ledger)
    found = np.flatnonzero(kinds == CoinJoin[name])
    return [("transaction", "kind"), *((ledger.txids[k].as_py(), name) for k in found.tolist())]


def _pool_links(
    ledger: Ledger,
    name: str,
    pools: Sequence[str] | None,
    gas_prices: Mapping[str, int] | None,
    confidence: float,
) -> dict[str, Link]:
    if not isinstance(ledger, AccountLedger):
        raise UsageError(f"{name} is for ledgers of accounts")
    if name == "address-reuse":
        return address_reuse_links(ledger, pools, confidence=confidence)
    if name == "multi-denomination":
        return denomination_links(ledger, pools, confidence=confidence)
    if gas_prices is None:
        raise UsageError("gas-price needs gas prices: a table of payments and prices")
    return gas_price_links(ledger, gas_prices, pools, confidence=confidence)


def _link_rows(links: Mapping[str, Link]) -> Rows:
    rows: Rows = [("payment", "node", "probability", "confidence")]
    for payment, link in links.items():
        rows += [(payment, node, p, link.confidence) for node, p in link.origins.items()]
    return rows
