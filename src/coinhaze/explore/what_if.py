"""Coins of a ledger spent together: a what-if, or a pasted wallet with what to spend.

Answers are exact, or in a large ledger by the largest flows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from coinhaze.errors import InputError, UsageError
from coinhaze.explore.cache import progress
from coinhaze.explore.coin.exposure import Met, met, met_together
from coinhaze.explore.describe import OWNERSHIP
from coinhaze.explore.models import (
    Amount,
    Before,
    Group,
    Suggested,
    Together,
    WalletAnswer,
    WhatIfAnswer,
)
from coinhaze.explore.nodes import Nodes
from coinhaze.explore.query import Settings, WalletQuery, WhatIfQuery, thing_link
from coinhaze.explore.views import LARGE, ViewOptions, Views
from coinhaze.formats.lists.coins import parse_coin_list, parse_entry
from coinhaze.observer import AbsorbingChain
from coinhaze.observer.policies import score_policies, weighing_policies
from coinhaze.solve.local.mixing import NearlyMixed, mix_nearly
from coinhaze.solve.local.past import past_of
from coinhaze.wallet.holdings import WalletCoin, exposed_chain, find_coin, find_coins
from coinhaze.wallet.report import IS_NOT, how_sure, would_change
from coinhaze.wallet.suggestion import Suggestion, suggest_coins
from coinhaze.wallet.wallet import CoinSet, Combination, Wallet, weigh_wallet
from coinhaze.wallet.what_if import TO_COINS

# Bits the intervals of a coin, and of coins together, may have. The exact way takes seconds in a
# large ledger: while somebody tries coins out, a wider interval at once says more.
WIDTH, TOGETHER = 0.1, 0.5
MAX_COINS = 500  # of a wallet that is weighed while somebody waits


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


class CoinSets:
    """Coins of one look at a ledger that are to be spent."""

    def __init__(self, views: Views, nodes: Nodes, options: ViewOptions) -> None:
        self.views = views
        self.nodes = nodes
        self.options = options
        if options.ordered:
            others = [policy.column for policy in score_policies() if policy.weigh is not None]
            raise UsageError(
                f"{options.policy} depends on the order of a transaction's inputs, which is not "
                f"known before it is made: ask by {', '.join(others[:-1])} or {others[-1]}"
            )

    def listed_chain(self) -> AbsorbingChain | None:
        """Give the chain that tells exposure; None where nothing is listed, and under poison."""
        found = self.views.listed(self.options)
        if found is None or not found.names or self.options.rule.needs_list:
            return None
        return self.views.session(self.options, listed=True).chain

    def before(
        self, coin: WalletCoin, row: Bounded, exposure: float | None, most: float | None
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

    def together(self, some: Combination, coins: Sequence[WalletCoin], *, limit: float) -> Together:
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

    def lower_bound(self, coins: Sequence[WalletCoin]) -> bool:
        """Tell whether bits of these coins, alone or together, are a lower bound."""
        bounds = self.views.session(self.options).chain.lower_bounds
        return bounds is not None and any(
            coin.node is not None and bool(bounds[coin.node]) for coin in coins
        )

    def amount(self, coins: Sequence[WalletCoin]) -> Amount | None:
        """Add up what coins are worth; None where that is hidden."""
        values = [coin.value for coin in coins]
        if None in values:
            return None
        return self.nodes.index.amount(sum(value or 0 for value in values))

    def what_if(self, ask: WhatIfQuery, settings: Settings, *, large: int = LARGE) -> WhatIfAnswer:
        """Say what spending coins together would do."""
        graph = self.nodes.graph
        coins = [find_coin(graph, name) for name in dict.fromkeys(ask.coins)]
        if len(coins) < len(ask.coins):
            raise InputError("a coin is named twice, and can be spent but once")
        if len(graph) > large and not self.options.rule.needs_list:
            nodes = [int(coin.node or 0) for coin in coins]
            found = mix_nearly(self.views.session(self.options).structure, nodes)
            if found.width <= TOGETHER:
                return self._nearly(coins, nodes, found, settings)
        return self._exactly(coins, settings)

    def _exactly(self, coins: Sequence[WalletCoin], settings: Settings) -> WhatIfAnswer:
        chain, listed = self.views.session(self.options).chain, self.listed_chain()
        coin_set = CoinSet(chain, coins, exposed=listed)
        alone = [coin_set.together([coin.name]) for coin in coins]
        after = coin_set.together([coin.name for coin in coins])
        steps = after.after.steps + TO_COINS
        return WhatIfAnswer(
            ledger=self.nodes.ledger,
            settings=settings,
            before=tuple(
                self.before(coin, one.after, one.exposure, one.exposure)
                for coin, one in zip(coins, alone, strict=True)
            ),
            after=self.together(after, coins, limit=0.0),
            steps=None if math.isnan(steps) else steps,
            ownership=OWNERSHIP,
            notes=chain.notes if listed is None else listed.notes,
        )

    def _nearly(
        self,
        coins: Sequence[WalletCoin],
        nodes: Sequence[int],
        found: NearlyMixed,
        settings: Settings,
    ) -> WhatIfAnswer:
        structure, listed = (
            self.views.session(self.options).structure,
            self.views.listed(self.options),
        )
        solver = structure.local
        parts: list[Met | None] = [
            None
            if listed is None
            else met(self.views, self.options, listed, node, past_of(structure, node))
            for node in nodes
        ]
        before = (
            self.before(
                coin,
                solver.row(node, width=WIDTH),
                None if part is None else part.share,
                None if part is None else part.high,
            )
            for coin, node, part in zip(coins, nodes, parts, strict=True)
        )
        expected = (float(solver.bounded.steps[node]) for node in nodes)
        steps = TO_COINS + math.fsum(s * t for s, t in zip(found.shares, expected, strict=True))
        return WhatIfAnswer(
            ledger=self.nodes.ledger,
            settings=settings,
            before=tuple(before),
            after=self._after(coins, found, [p for p in parts if p is not None]),
            steps=None if math.isnan(steps) else steps,
            ownership=OWNERSHIP,
            notes=self.nodes.graph.notes,
        )

    def _after(
        self, coins: Sequence[WalletCoin], found: NearlyMixed, parts: Sequence[Met]
    ) -> Together:
        exposed = met_together(list(zip(parts, found.shares, strict=True))) if parts else None
        # A coin that is not exposed, for all that is known, is put with one that may be.
        ties = any(p.high <= 0 for p in parts) and any(p.high > 0 for p in parts)
        return Together(
            coins=tuple(coin.name for coin in coins),
            amount=self.amount(coins),
            bits=found.bits,
            bits_low=found.bits_low,
            bits_high=found.bits_high,
            lower_bound=self.lower_bound(coins),
            equal_origins=2.0**found.bits,
            exposure=None if exposed is None else exposed.share,
            exposure_high=None if exposed is None else exposed.high,
            ties=ties if parts else None,
        )

    def wallet(self, ask: WalletQuery, settings: Settings) -> WalletAnswer:
        """Weigh a wallet."""
        if not self.options.rule.shares:
            others = " or ".join(policy.column for policy in weighing_policies())
            raise UsageError(
                f"{self.options.policy} has no shares to weigh a wallet by: ask by {others}"
            )
        graph = self.nodes.graph
        coins = find_coins(graph, parse_coin_list(ask.coins.encode(), where="coins"))
        if len(coins) > MAX_COINS:
            raise UsageError(
                f"{len(coins):,} coins are too many to weigh here, {MAX_COINS} at most: "
                "use coinhaze wallet"
            )
        chain = self.views.session(self.options).chain
        names = _exposed_names(ask.exposed)
        listed = self.listed_chain()
        if names:
            if self.options.list is not None:
                raise UsageError("name exposed addresses or a list, not both")
            listed = exposed_chain(graph, names, policy=str(chain.settings["policy"]))
        progress()(0.3)
        wallet = weigh_wallet(
            chain, coins, exposed=listed, limit=ask.limit, labels=self.nodes.labels
        )
        unit = self.nodes.index.unit
        suggestion = None
        if ask.amount is not None:
            whole = ask.amount.isdigit()
            amount = int(ask.amount) if whole else unit.read(ask.amount)
            suggestion = suggest_coins(wallet, amount, unit=unit)
        return self._weighed(wallet, suggestion, settings)

    def _weighed(
        self, wallet: Wallet, suggestion: Suggestion | None, settings: Settings
    ) -> WalletAnswer:
        coins = [holding.coin for holding in wallet.holdings]
        pairs, exposed, limit = wallet.pairs, wallet.coin_set.exposed, wallet.limit
        groups = (
            Group(kind=kind, **self.together(some, coins, limit=limit).model_dump())  # type: ignore[arg-type]
            for kind, some in wallet.groups
        )
        return WalletAnswer(
            ledger=self.nodes.ledger,
            settings=settings,
            total=None if wallet.total is None else self.nodes.index.amount(wallet.total),
            limit=limit,
            coins=self._coins(wallet),
            groups=tuple(groups),
            pairs=None
            if pairs is None
            else tuple(self.together(pair, coins, limit=limit) for pair in pairs),
            suggestion=None if suggestion is None else self._suggested(suggestion, coins, limit),
            how_sure=" ".join(how_sure(wallet)),
            would_change=tuple(would_change(wallet)),
            is_not=IS_NOT,
            notes=wallet.chain.notes if exposed is None else exposed.notes,
        )

    def _coins(self, wallet: Wallet) -> tuple[Before, ...]:
        return tuple(
            self.before(holding.coin, holding.row, holding.exposure, holding.exposure_high)
            for holding in wallet.holdings
        )

    def _suggested(
        self, suggestion: Suggestion, coins: Sequence[WalletCoin], limit: float
    ) -> Suggested:
        chosen = suggestion.chosen
        return Suggested(
            amount=self.nodes.index.amount(suggestion.amount),
            spend=None if chosen is None else self.together(chosen, coins, limit=limit),
            instead=tuple(self.together(other, coins, limit=limit) for other in suggestion.others),
            why=suggestion.why,
        )


def _exposed_names(text: str) -> list[str]:
    """Read addresses or coins that were pasted, one a line, each once."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    entries = [parse_entry(line, f"exposed:{k + 1}") for k, line in enumerate(lines) if line]
    return list(dict.fromkeys(entry.coin or entry.address or "" for entry in entries))
