"""Which coins are safe to spend together: each coin alone, and all in one payment.

Spending coins together also reveals that one person held them all (the common-input rule): these
figures do not account for that. They describe what happens to doubt and to exposure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from coinhaze.errors import UsageError
from coinhaze.measures.mixture import Mixture, bits_beyond, blend
from coinhaze.observer import AbsorbingChain
from coinhaze.observer.chain import ELSEWHERE
from coinhaze.solve.local.mixing import mix, mix_weights
from coinhaze.solve.structure.structure import Structure
from coinhaze.wallet.holdings import WalletCoin


@dataclass(frozen=True, eq=False)
class Combination:
    """Coins in one payment: bits and exposure of each before, of all together after."""

    coins: tuple[str, ...]
    shares: tuple[float, ...]  # each coin's share of the payment
    bits_before: tuple[float, ...]
    exposure_before: tuple[float, ...] | None
    after: Mixture
    exposure: float | None
    open_before: tuple[float, ...] = ()  # shares not followed to their end, if any: they may be
    open: float = 0.0  # exposed, as far as is known

    @property
    def worst_before(self) -> tuple[float, ...]:
        """The exposure of each coin if everything not followed were exposed."""
        if self.exposure_before is None:
            return ()
        more = self.open_before or (0.0,) * len(self.coins)
        return tuple(min(e + o, 1.0) for e, o in zip(self.exposure_before, more, strict=True))

    @property
    def gain(self) -> float:
        """The bits that mixing adds to the mean of its coins by share; never below 0."""
        pairs = zip(self.shares, self.bits_before, strict=True)
        return self.after.bits - sum(share * bits for share, bits in pairs if share > 0)

    def taints(self, limit: float) -> tuple[str, ...]:
        """Return the coins within a limit of exposure that the payment would, or may, exceed."""
        if self.exposure is None or min(self.exposure + self.open, 1.0) <= limit:
            return ()
        pairs = zip(self.coins, self.worst_before, strict=True)
        return tuple(coin for coin, exposure in pairs if exposure <= limit)

    def is_safe(self, limit: float = 0.0) -> bool:
        """Return whether no coin within the exposure limit is put above it by the others."""
        return not self.taints(limit)


class CoinSet:
    """A wallet's coins on one chain, each row computed once, for any combination.

    >>> import coinhaze
    >>> from coinhaze.wallet.holdings import find_coin
    >>> ledger = coinhaze.CoinLedger.from_transactions([
    ...     {"txid": "a", "outputs": [{"value": 5}]}, {"txid": "b", "outputs": [{"value": 5}]},
    ... ])
    >>> chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    >>> coin_set = CoinSet(chain, [find_coin(chain.graph, name) for name in ("a:0", "b:0")])
    >>> [(pair.coins, pair.after.bits, pair.is_safe()) for pair in coin_set.pairs()]
    [(('a:0', 'b:0'), 1.0, True)]
    """

    def __init__(
        self,
        chain: AbsorbingChain,
        coins: Sequence[WalletCoin],
        *,
        exposed: AbsorbingChain | None = None,
        most_origins: int | None = None,
    ) -> None:
        """Compute the coins' rows; `most_origins` says that the ledger is a part of a chain."""
        if exposed is not None and (exposed.graph is not chain.graph or not exposed.listed):
            raise UsageError("`exposed` is a chain of the same graph, made with `listed`")
        self.chain = chain
        self.exposed = exposed
        self.most_origins = most_origins
        self.coins = {coin.name: coin for coin in coins if coin.node is not None}
        self._rows = _rows(chain, self.coins)
        self._listed = {} if exposed is None else _rows(exposed, self.coins)

    def together(self, names: Sequence[str]) -> Combination:
        """Combine some of the coins."""
        unknown = [name for name in names if name not in self.coins]
        if unknown or len(set(names)) < len(names) or not names:
            raise UsageError(f"name coins of this coin_set, each once, not {list(names)[:5]}")
        shares, after = _blended(self.chain, self._rows, self.coins, names)
        exposure = None
        if self.exposed is not None:
            exposure = _blended(self.exposed, self._listed, self.coins, names)[1].exposure
        return Combination(
            coins=tuple(names),
            shares=shares,
            bits_before=tuple(self._rows[name].bits for name in names),
            exposure_before=None
            if self.exposed is None
            else tuple(self._listed[name].exposure or 0.0 for name in names),
            after=after,
            exposure=exposure,
            open_before=tuple(self._open(self._rows[name]) for name in names),
            open=self._open(after),
        )

    def _open(self, row: Mixture) -> float:
        return 0.0 if self.most_origins is None else bits_beyond(row, self.most_origins).open

    def exposed_through(self, name: str) -> list[tuple[str, float]]:
        """Return the listed nodes a coin's money passed, with its share there, largest first."""
        if self.exposed is None:
            return []
        found = self._listed[name].sources(len(self.exposed.outcomes)).to_pylist()
        rows = [(row["source"], row["probability"]) for row in found]
        return [(source, share) for source, share in rows if source != ELSEWHERE and share > 0]

    def pairs(self) -> list[Combination]:
        """Combine every two coins, in order."""
        return [self.together(pair) for pair in combinations(self.coins, 2)]


def _rows(chain: AbsorbingChain, coins: Mapping[str, WalletCoin]) -> dict[str, Mixture]:
    structure = Structure(chain)
    return {name: mix(structure, [coin.node or 0]) for name, coin in coins.items()}


def _blended(
    chain: AbsorbingChain,
    rows: dict[str, Mixture],
    coins: dict[str, WalletCoin],
    names: Sequence[str],
) -> tuple[tuple[float, ...], Mixture]:
    weights = mix_weights(chain, np.array([coins[name].node for name in names]))
    total = sum(weights)
    shares = tuple(weight / total for weight in weights)
    return shares, blend([rows[name] for name in names], shares)
