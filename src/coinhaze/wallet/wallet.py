"""A wallet's coins, individually and together: bits, exposure, origins, and combinations.

A coin is *exposed* if its exposure is above a limit. Coins within the limit stay within it in any
combination, since the exposure of a payment is a mean of its coins' (by value, or unweighted); so
two groups, exposed and not, say what is safe to spend together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coinhaze.errors import UsageError
from coinhaze.measures.mixture import Beyond, Mixture, bits_beyond
from coinhaze.observer import AbsorbingChain
from coinhaze.wallet.combine import CoinSet, Combination
from coinhaze.wallet.holdings import WalletCoin, coin_ledger
from coinhaze.wallet.origin_words import NO_LABELS, NamedOrigin, origin_words

MAX_PAIRED = 40  # number of coins up to which all pairs are examined
NOT_EXPOSED, EXPOSED, ALL = "not exposed", "exposed", "all coins"


@dataclass(frozen=True, eq=False)
class HeldCoin:
    """One coin of a wallet as an observer sees it."""

    coin: WalletCoin
    row: Mixture
    exposure: float | None  # None where nothing is listed
    origins: tuple[NamedOrigin, ...]  # the largest, largest first
    beyond: Beyond | None = None  # over a whole chain, where the ledger is only a part of it

    @property
    def interval(self) -> tuple[float, float]:
        """The proven interval of the bits, over the whole chain where that was computed."""
        found = self.row if self.beyond is None else self.beyond
        return found.bits_low, found.bits_high

    @property
    def exposure_high(self) -> float | None:
        """The exposure if everything not followed were exposed."""
        if self.exposure is None:
            return None
        return min(self.exposure + (0.0 if self.beyond is None else self.beyond.open), 1.0)

    def may_pass(self, limit: float) -> bool:
        """Return whether the exposure is, or as far as is known may be, above a limit."""
        return (self.exposure_high or 0.0) > limit

    @property
    def equal_origins(self) -> float:
        """The number of equally likely origins that would leave the same doubt."""
        return float(2.0**self.row.bits)


@dataclass(frozen=True, eq=False)
class Wallet:
    """Coins in the order of their list, all of them together, and every pair of them."""

    coin_set: CoinSet
    holdings: tuple[HeldCoin, ...]
    limit: float
    groups: tuple[tuple[str, Combination], ...]  # a group's name, and its coins in one payment
    pairs: tuple[Combination, ...] | None  # None: too many to examine

    @property
    def chain(self) -> AbsorbingChain:
        """What the observer believes."""
        return self.coin_set.chain

    @property
    def total(self) -> int | None:
        """The coins' value in the smallest unit; None where amounts are hidden."""
        values = [h.coin.value for h in self.holdings]
        return None if None in values else sum(value or 0 for value in values)

    @property
    def open(self) -> float:
        """The largest share of a coin's money that was not followed to its origin."""
        return max(0.0 if h.beyond is None else h.beyond.open for h in self.holdings)

    def is_exposed(self, holding: HeldCoin) -> bool:
        """Return whether a coin's exposure is, or as far as is known may be, above the limit."""
        return holding.may_pass(self.limit)

    def named(self, name: str) -> HeldCoin | None:
        """Return the wallet's coin of a given name."""
        return next((h for h in self.holdings if h.coin.name == name), None)


def weigh_wallet(
    chain: AbsorbingChain,
    coins: Sequence[WalletCoin],
    *,
    exposed: AbsorbingChain | None = None,
    limit: float = 0.0,
    labels: Mapping[str, str] = NO_LABELS,
    top: int = 3,
    most_origins: int | None = None,
) -> Wallet:
    """Evaluate every coin of a wallet, its groups and pairs; name `top` origins of each.

    `exposed` is a chain of the same graph and policy with a list; `limit` is the exposure up to
    which a coin counts as not exposed. `most_origins` says that the ledger is a part of a chain
    with at most that many origins: intervals are then over all of it.

    >>> import coinhaze
    >>> from coinhaze.wallet.holdings import find_coin
    >>> ledger = coinhaze.CoinLedger.from_transactions([
    ...     {"txid": "a", "outputs": [{"value": 5}]}, {"txid": "b", "outputs": [{"value": 5}]},
    ... ])
    >>> chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    >>> mine = weigh_wallet(chain, [find_coin(chain.graph, name) for name in ("a:0", "b:0")])
    >>> mine.total, mine.holdings[0].origins[0].words
    (10, 'newly mined: tx:a')
    """
    coin_ledger(chain.graph)
    if not 0 <= limit < 1:
        raise UsageError(f"a limit of exposure is from 0 to below 1, not {limit}")
    coin_set = CoinSet(chain, coins, exposed=exposed, most_origins=most_origins)
    holdings = tuple(
        _holding(coin_set, coin, labels, top, most_origins) for coin in coin_set.coins.values()
    )
    pairs = tuple(coin_set.pairs()) if len(holdings) <= MAX_PAIRED else None
    return Wallet(coin_set, holdings, limit, _groups(coin_set, holdings, limit), pairs)


def _holding(
    coin_set: CoinSet,
    coin: WalletCoin,
    labels: Mapping[str, str],
    top: int,
    most_origins: int | None,
) -> HeldCoin:
    alone = coin_set.together([coin.name])
    graph = coin_set.chain.graph
    origins = tuple(
        NamedOrigin(row["source"], origin_words(graph, row["source"], labels), row["probability"])
        for row in alone.after.sources(top).to_pylist()
    )
    assert not math.isnan(alone.after.bits)  # the walks of a coin view always end
    beyond = None if most_origins is None else bits_beyond(alone.after, most_origins)
    return HeldCoin(coin, alone.after, alone.exposure, origins, beyond)


def _groups(
    coin_set: CoinSet, holdings: Sequence[HeldCoin], limit: float
) -> tuple[tuple[str, Combination], ...]:
    """Combine the coins that may go together, and all of them."""
    groups: dict[str, list[str]] = {NOT_EXPOSED: [], EXPOSED: []}
    for holding in holdings:
        if holding.exposure is not None:
            kind = EXPOSED if holding.may_pass(limit) else NOT_EXPOSED
            groups[kind].append(holding.coin.name)
    groups[ALL] = [holding.coin.name for holding in holdings]
    return tuple((kind, coin_set.together(some)) for kind, some in groups.items() if some)
