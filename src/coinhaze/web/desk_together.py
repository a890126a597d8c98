"""Coins one by one and put together, as models: what what-ifs and wallets have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from coinhaze.errors import UsageError
from coinhaze.observer import AbsorbingChain
from coinhaze.wallet.combine import Combination
from coinhaze.wallet.holdings import Coin
from coinhaze.web.desk_nodes import Nodes
from coinhaze.web.desk_views import Look, Views
from coinhaze.web.links import thing_link
from coinhaze.web.models import Amount, Before, Together


class Bounded(Protocol):
    """Anything that tells bits and where they lie."""

    @property
    def bits(self) -> float:
        """The bits."""

    @property
    def bits_low(self) -> float:
        """Their lower bound."""

    @property
    def bits_high(self) -> float:
        """Their upper bound."""


class Purses:
    """Coins of one look at a ledger that are to be spent."""

    def __init__(self, views: Views, nodes: Nodes, look: Look) -> None:
        self.views = views
        self.nodes = nodes
        self.look = look
        if look.ordered:
            raise UsageError(
                f"{look.policy} depends on the order of a transaction's inputs, which is not known "
                "before it is made: ask by haircut, uniform or poison"
            )

    def listed_chain(self) -> AbsorbingChain | None:
        """Give the chain that tells exposure; None where nothing is listed, and under poison."""
        found = self.views.listed(self.look)
        if found is None or not found.names or self.look.policy == "poison":
            return None
        belief = self.views.belief(self.look, listed=True)
        assert isinstance(belief, AbsorbingChain)
        return belief

    def before(
        self, coin: Coin, row: Bounded, exposure: float | None, most: float | None
    ) -> Before:
        """Tell a coin as it is; `most` is the most its exposure can be."""
        return Before(
            name=coin.name,
            amount=self.amount([coin]),
            label=coin.label,
            bits=row.bits,
            bits_low=row.bits_low,
            bits_high=row.bits_high,
            lower_bound=self.lower_bound([coin]),
            exposure=exposure,
            exposure_high=most,
            href=thing_link(self.nodes.ledger, "coin", coin.name),
        )

    def together(self, some: Combination, coins: Sequence[Coin], *, limit: float) -> Together:
        """Tell coins put together."""
        row, exposure = some.after, some.exposure
        chosen = [coin for coin in coins if coin.name in set(some.coins)]
        return Together(
            coins=some.coins,
            amount=self.amount(chosen),
            bits=row.bits,
            bits_low=row.bits_low,
            bits_high=row.bits_high,
            lower_bound=self.lower_bound(chosen),
            equal_origins=None if math.isnan(row.bits) else 2.0**row.bits,
            exposure=exposure,
            exposure_high=None if exposure is None else min(exposure + some.open, 1.0),
            ties=None if exposure is None else not some.is_safe(limit),
        )

    def lower_bound(self, coins: Sequence[Coin]) -> bool:
        """Tell whether bits of these coins, alone or together, are a lower bound."""
        bounds = self.views.walk(self.look).lower_bounds
        return bounds is not None and any(
            coin.node is not None and bool(bounds[coin.node]) for coin in coins
        )

    def amount(self, coins: Sequence[Coin]) -> Amount | None:
        """Add up what coins are worth; None where that is hidden."""
        values = [coin.value for coin in coins]
        if None in values:
            return None
        return self.nodes.book.amount(sum(value or 0 for value in values))
