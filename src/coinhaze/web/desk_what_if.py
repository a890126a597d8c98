"""What if these coins were spent together: exactly, or in a large ledger by the largest flows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from coinhaze.errors import InputError
from coinhaze.solve.local.mixing_nearly import NearlyMixed, mix_nearly
from coinhaze.wallet.combine import Purse
from coinhaze.wallet.holdings import Coin, find_coin
from coinhaze.wallet.what_if import TO_COINS
from coinhaze.web.asks import Settings, WhatIfAsk
from coinhaze.web.desk_exposure import Met, met, met_together
from coinhaze.web.desk_together import Purses
from coinhaze.web.desk_views import LARGE
from coinhaze.web.models import Together, WhatIfAnswer
from coinhaze.web.words import OWNERSHIP

# Bits the intervals of a coin, and of coins together, may have. The exact way takes seconds in a
# large ledger: while somebody tries coins out, a wider interval at once says more.
WIDTH, TOGETHER = 0.1, 0.5


class WhatIfs(Purses):
    """What-ifs of one look at a ledger."""

    def answer(self, ask: WhatIfAsk, settings: Settings, *, large: int = LARGE) -> WhatIfAnswer:
        """Say what spending coins together would do."""
        graph = self.nodes.graph
        coins = [find_coin(graph, name) for name in dict.fromkeys(ask.coins)]
        if len(coins) < len(ask.coins):
            raise InputError("a coin is named twice, and can be spent but once")
        if len(graph) > large and self.look.policy != "poison":
            nodes = [int(coin.node or 0) for coin in coins]
            found = mix_nearly(self.views.walk(self.look), nodes)
            if found.width <= TOGETHER:
                return self._nearly(coins, nodes, found, settings)
        return self._exactly(coins, settings)

    def _exactly(self, coins: Sequence[Coin], settings: Settings) -> WhatIfAnswer:
        chain, listed = self.views.walk(self.look), self.listed_chain()
        purse = Purse(chain, coins, exposed=listed)
        alone = [purse.together([coin.name]) for coin in coins]
        after = purse.together([coin.name for coin in coins])
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
        self, coins: Sequence[Coin], nodes: Sequence[int], found: NearlyMixed, settings: Settings
    ) -> WhatIfAnswer:
        solver, listed = self.views.solver(self.look), self.views.listed(self.look)
        parts: list[Met | None] = [
            None if listed is None else met(self.views, self.look, listed, node, past)
            for node, past in zip(nodes, found.pasts, strict=True)
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
        expected = (float(solver.condensed.steps[node]) for node in nodes)
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

    def _after(self, coins: Sequence[Coin], found: NearlyMixed, parts: Sequence[Met]) -> Together:
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
