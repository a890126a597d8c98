"""A wallet that was pasted, weighed: its coins, what goes with what, what to spend."""

from __future__ import annotations

from collections.abc import Sequence

from coinhaze.errors import UsageError
from coinhaze.explore.models import (
    Before,
    Group,
    Suggested,
    WalletAnswer,
)
from coinhaze.explore.progress import progress
from coinhaze.explore.query import Settings, WalletAsk
from coinhaze.explore.what_if import CoinSets
from coinhaze.formats.lists.coins import parse_coin_list, parse_entry
from coinhaze.observer.policies import weighing_policies
from coinhaze.wallet.holdings import WalletCoin, exposed_chain, find_coins
from coinhaze.wallet.report import IS_NOT, how_sure, would_change
from coinhaze.wallet.suggestion import Suggestion, suggest_coins
from coinhaze.wallet.wallet import Wallet, weigh_wallet

MOST_COINS = 500  # of a wallet that is weighed while somebody waits


class Wallets(CoinSets):
    """Wallets of one look at a ledger."""

    def answer(self, ask: WalletAsk, settings: Settings) -> WalletAnswer:
        """Weigh a wallet."""
        if not self.options.rule.shares:
            others = " or ".join(policy.column for policy in weighing_policies())
            raise UsageError(
                f"{self.options.policy} has no shares to weigh a wallet by: ask by {others}"
            )
        graph = self.nodes.graph
        coins = find_coins(graph, parse_coin_list(ask.coins.encode(), where="coins"))
        if len(coins) > MOST_COINS:
            raise UsageError(
                f"{len(coins):,} coins are too many to weigh here, {MOST_COINS} at most: "
                "use coinhaze wallet"
            )
        chain = self.views.walk(self.options)
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
        suggestion = None if ask.amount is None else suggest_coins(wallet, int(ask.amount))
        return self._told(wallet, suggestion, settings)

    def _told(
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

    def _suggested(self, told: Suggestion, coins: Sequence[WalletCoin], limit: float) -> Suggested:
        chosen = told.chosen
        return Suggested(
            amount=self.nodes.index.amount(told.amount),
            spend=None if chosen is None else self.together(chosen, coins, limit=limit),
            instead=tuple(self.together(other, coins, limit=limit) for other in told.others),
            why=told.why,
        )


def _exposed_names(text: str) -> list[str]:
    """Read addresses or coins that were pasted, one a line, each once."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    entries = [parse_entry(line, f"exposed:{k + 1}") for k, line in enumerate(lines) if line]
    return list(dict.fromkeys(entry.coin or entry.address or "" for entry in entries))
