"""Coins put together before they are spent, and a wallet weighed, as models."""

from __future__ import annotations

import math
from collections.abc import Sequence

from coinhaze.apps.combine import Combination, Purse
from coinhaze.apps.exposed import exposed_chain
from coinhaze.apps.holdings import Coin, find_coin, find_coins
from coinhaze.apps.suggestion import Suggestion, suggest_coins
from coinhaze.apps.wallet import Holding, Wallet, weigh_wallet
from coinhaze.apps.wallet_words import IS_NOT, how_sure, would_change
from coinhaze.chain import AbsorbingChain
from coinhaze.errors import InputError, UsageError
from coinhaze.ledger.readers.coin_list import parse_coin_list, parse_entry
from coinhaze.web.asks import Settings, WalletAsk, WhatIfAsk
from coinhaze.web.desk_nodes import Nodes
from coinhaze.web.desk_views import Look, Views
from coinhaze.web.links import thing_link
from coinhaze.web.models import (
    Amount,
    Before,
    Group,
    Suggested,
    Together,
    WalletAnswer,
    WhatIfAnswer,
)
from coinhaze.web.words import OWNERSHIP
from coinhaze.web.working import progress

TO_COINS = 2.0  # steps from a payment to the coins that made it
MOST_COINS = 500  # of a wallet that is weighed while somebody waits


class Weighing:
    """What-ifs and wallets of one look at a ledger."""

    def __init__(self, views: Views, nodes: Nodes, look: Look) -> None:
        self.views = views
        self.nodes = nodes
        self.look = look
        if look.ordered:
            raise UsageError(
                f"{look.policy} depends on the order of a transaction's inputs, which is not known "
                "before it is made: ask by haircut, uniform or poison"
            )

    def what_if(self, ask: WhatIfAsk, settings: Settings) -> WhatIfAnswer:
        """Say what spending coins together would do."""
        graph = self.nodes.graph
        coins = [find_coin(graph, name) for name in dict.fromkeys(ask.coins)]
        if len(coins) < len(ask.coins):
            raise InputError("a coin is named twice, and can be spent but once")
        chain = self.views.walk(self.look)
        listed = self._listed_chain()
        purse = Purse(chain, coins, exposed=listed)
        alone = [purse.together([coin.name]) for coin in coins]
        together = purse.together([coin.name for coin in coins])
        steps = together.after.steps + TO_COINS
        return WhatIfAnswer(
            ledger=self.nodes.ledger,
            settings=settings,
            before=tuple(self._before(coin, one) for coin, one in zip(coins, alone, strict=True)),
            after=self._together(together, coins, limit=0.0),
            steps=None if math.isnan(steps) else steps,
            ownership=OWNERSHIP,
            notes=chain.notes if listed is None else listed.notes,
        )

    def _listed_chain(self) -> AbsorbingChain | None:
        """Give the chain that tells exposure; None where nothing is listed, and under poison."""
        if self.look.list is None or self.look.policy == "poison":
            return None
        found = self.views.listed(self.look)
        if found is None or not found.names:
            return None
        belief = self.views.belief(self.look, listed=True)
        assert isinstance(belief, AbsorbingChain)
        return belief

    def wallet(self, ask: WalletAsk, settings: Settings) -> WalletAnswer:
        """Weigh a wallet that was pasted."""
        if self.look.policy == "poison":
            raise UsageError("poison has no shares to weigh a wallet by: ask by haircut or uniform")
        graph = self.nodes.graph
        coins = find_coins(graph, parse_coin_list(ask.coins.encode(), where="coins"))
        if len(coins) > MOST_COINS:
            raise UsageError(
                f"{len(coins):,} coins are too many to weigh here, {MOST_COINS} at most: "
                "use coinhaze wallet"
            )
        chain = self.views.walk(self.look)
        names = _exposed_names(ask.exposed)
        listed = self._listed_chain()
        if names:
            if self.look.list is not None:
                raise UsageError("name exposed addresses or a list, not both")
            policy = str(chain.settings["policy"])
            listed = exposed_chain(graph, names, policy=policy)
        progress()(0.3)
        wallet = weigh_wallet(
            chain, coins, exposed=listed, limit=ask.limit, labels=self.nodes.labels
        )
        suggestion = None if ask.amount is None else suggest_coins(wallet, int(ask.amount))
        return self._wallet(wallet, suggestion, settings)

    def _wallet(
        self, wallet: Wallet, suggestion: Suggestion | None, settings: Settings
    ) -> WalletAnswer:
        coins = [holding.coin for holding in wallet.holdings]
        pairs = wallet.pairs
        exposed = wallet.purse.exposed
        return WalletAnswer(
            ledger=self.nodes.ledger,
            settings=settings,
            total=None if wallet.total is None else self.nodes.book.amount(wallet.total),
            limit=wallet.limit,
            coins=tuple(self._holding(holding) for holding in wallet.holdings),
            groups=tuple(
                Group(kind=kind, **self._together(some, coins, limit=wallet.limit).model_dump())  # type: ignore[arg-type]
                for kind, some in wallet.groups
            ),
            pairs=None
            if pairs is None
            else tuple(self._together(pair, coins, limit=wallet.limit) for pair in pairs),
            suggestion=None
            if suggestion is None
            else self._suggested(suggestion, coins, wallet.limit),
            how_sure=" ".join(how_sure(wallet)),
            would_change=tuple(would_change(wallet)),
            is_not=IS_NOT,
            notes=wallet.chain.notes if exposed is None else exposed.notes,
        )

    def _holding(self, holding: Holding) -> Before:
        low, high = holding.interval
        coin = holding.coin
        return Before(
            name=coin.name, amount=self._amount([coin]), label=coin.label,
            bits=holding.row.bits, bits_low=low, bits_high=high, exposure=holding.exposure,
            exposure_high=holding.exposure_high, href=self._link(coin),
        )  # fmt: skip

    def _before(self, coin: Coin, alone: Combination) -> Before:
        row, exposure = alone.after, alone.exposure
        return Before(
            name=coin.name, amount=self._amount([coin]), label=coin.label, bits=row.bits,
            bits_low=row.bits_low, bits_high=row.bits_high, exposure=exposure,
            exposure_high=exposure, href=self._link(coin),
        )  # fmt: skip

    def _link(self, coin: Coin) -> str:
        return thing_link(self.nodes.ledger, "coin", coin.name)

    def _together(self, some: Combination, coins: Sequence[Coin], *, limit: float) -> Together:
        row = some.after
        chosen = [coin for coin in coins if coin.name in set(some.coins)]
        return Together(
            coins=some.coins,
            amount=self._amount(chosen),
            bits=row.bits,
            bits_low=row.bits_low,
            bits_high=row.bits_high,
            equal_origins=None if math.isnan(row.bits) else 2.0**row.bits,
            exposure=some.exposure,
            exposure_high=None if some.exposure is None else min(some.exposure + some.open, 1.0),
            ties=None if some.exposure is None else not some.is_safe(limit),
        )

    def _suggested(self, told: Suggestion, coins: Sequence[Coin], limit: float) -> Suggested:
        chosen = told.chosen
        return Suggested(
            amount=self.nodes.book.amount(told.amount),
            spend=None if chosen is None else self._together(chosen, coins, limit=limit),
            instead=tuple(self._together(other, coins, limit=limit) for other in told.others),
            why=told.why,
        )

    def _amount(self, coins: Sequence[Coin]) -> Amount | None:
        values = [coin.value for coin in coins]
        if None in values:
            return None
        return self.nodes.book.amount(sum(value or 0 for value in values))


def _exposed_names(text: str) -> list[str]:
    """Read addresses or coins that were pasted, one a line, each once."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    entries = [parse_entry(line, f"exposed:{k + 1}") for k, line in enumerate(lines) if line]
    return list(dict.fromkeys(entry.coin or entry.address or "" for entry in entries))
