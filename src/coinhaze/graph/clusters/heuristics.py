"""Inferences beyond what a ledger states: every rule, what it assumes, and its confidence.

A confidence is the share of inferences that were right where the truth is known, (right + 1) /
(inferences + 2), so that a few never give certainty; the tests measure it again. A rule that has
not been measured has confidence `assumed` and is used only if requested by name. `find` returns the
findings of a rule as rows of a table that other commands read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from coinhaze.errors import UsageError
from coinhaze.graph.clusters.change import change_clusters
from coinhaze.graph.clusters.coinjoins import CoinJoin, coinjoin_kinds
from coinhaze.graph.clusters.deposit_pools import (
    address_reuse_links,
    denomination_links,
    gas_price_links,
)
from coinhaze.graph.clusters.merge import Clusters, common_input_clusters
from coinhaze.graph.clusters.services import payout_links
from coinhaze.ledger import AccountLedger, CoinLedger, Ledger
from coinhaze.ledger.links import Link

Rows = list[tuple[object, ...]]


@dataclass(frozen=True)
class Heuristic:
    """A rule: its result, its assumption, its confidence and the source of that."""

    name: str
    gives: Literal["clusters", "links", "kinds"]
    assumes: str
    confidence: float
    origin: Literal["measured", "assumed"]
    source: str
    on: bool = False


HEURISTICS = (
    Heuristic(
        "common-input",
        "clusters",
        "all inputs of a transaction belong to one owner",
        5 / 12,
        "measured",
        "4 of 10 transactions of the Wasabi 2 emulation; the 6 wrong ones are CoinJoins",
    ),
    Heuristic(
        "common-input-no-coinjoins",
        "clusters",
        "the same, unless the transaction looks like a CoinJoin",
        5 / 6,
        "measured",
        "4 of 4 transactions of the Wasabi 2 emulation",
        on=True,
    ),
    Heuristic(
        "change",
        "clusters",
        "the one new address of the inputs' type, or of an uneven amount, is the payer's; "
        "CoinJoins apart",
        108 / 111,
        "measured",
        "107 of 109 payments of Bitcoin 100000-104000 whose change later spending gave away",
        on=True,
    ),
    Heuristic(
        "whirlpool",
        "kinds",
        "5 to 10 equal inputs and outputs of a pool's amount",
        1404 / 1732,
        "measured",
        "all 1403 listed mixes of 03/2024, and 327 more that the lists do not call mixes",
        on=True,
    ),
    Heuristic(
        "wasabi1",
        "kinds",
        "10 or more equal outputs of about 0.1 bitcoin",
        197 / 198,
        "measured",
        "all 196 listed CoinJoins of 08/2021, and no other",
        on=True,
    ),
    Heuristic(
        "wasabi2",
        "kinds",
        "falling order, and amounts the wallet splits money into",
        7 / 8,
        "measured",
        "all 6 CoinJoins of the emulation, and no other",
        on=True,
    ),
    Heuristic(
        "joinmarket",
        "kinds",
        "n equal outputs, change for n or n - 1, and n payers",
        0.5,
        "assumed",
        "the rule is BlockSci's; no listed CoinJoins to measure it on",
    ),
    Heuristic(
        "pay-outs",
        "links",
        "a service pays out what it was just paid, less a fee",
        0.5,
        "assumed",
        "no set with known truth to measure it on",
    ),
    Heuristic(
        "address-reuse",
        "links",
        "who withdraws from a pool to an address that deposited takes his own money",
        0.5,
        "assumed",
        "used by Tutela (arXiv:2201.06811) and arXiv:2510.09433; truth is not known",
    ),
    Heuristic(
        "gas-price",
        "links",
        "a deposit and a withdrawal at the same odd gas price are of one person",
        0.5,
        "assumed",
        "used by Tutela; truth is not known",
    ),
    Heuristic(
        "multi-denomination",
        "links",
        "who takes from several pools as often as one depositor paid in is that one",
        0.5,
        "assumed",
        "used by Tutela; truth is not known",
    ),
)
NAMES = tuple(h.name for h in HEURISTICS)
CLUSTERINGS: dict[str, Callable[[CoinLedger], Clusters]] = {
    "common-input": common_input_clusters,
    "common-input-no-coinjoins": lambda ledger: common_input_clusters(ledger, coinjoins=False),
    "change": change_clusters,
}


def heuristic(name: str) -> Heuristic:
    """Return the rule of a given name.

    >>> heuristic("wasabi1").on
    True
    """
    for found in HEURISTICS:
        if found.name == name:
            return found
    raise UsageError(f"no heuristic {name!r}: one of {', '.join(NAMES)}")


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
