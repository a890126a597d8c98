"""A wallet's coins, individually and together: bits, exposure, origins, and who knows them.

A coin is *exposed* if its exposure is above a limit. Coins within the limit stay within it in any
combination, since the exposure of a payment is a mean of its coins' (by value, or unweighted).

Spending coins together shows that one person held them all, whatever the bits: merging them is safe
only if no party learns of a coin it did not know (who_learns.py), and no coin becomes exposed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from coinhaze.errors import UsageError
from coinhaze.measures.by_owner import Groupings, OwnerOrigins, groupings, owners_of_row
from coinhaze.measures.mixture import Beyond, Mixture, bits_beyond, blend
from coinhaze.observer import AbsorbingChain
from coinhaze.observer.chain import ELSEWHERE, SourceNames
from coinhaze.observer.owners import Observer, inferences, ladder
from coinhaze.solve.local.mixing import mix, mix_weights
from coinhaze.solve.structure.structure import Structure
from coinhaze.wallet.holdings import NO_LABELS, NamedOrigin, WalletCoin, coin_ledger, origin_words
from coinhaze.wallet.parties import NO_TABLE, Parties, parties_of
from coinhaze.wallet.who_learns import Disclosure

MAX_PAIRED = 40  # number of coins up to which all pairs are examined
NOT_EXPOSED, EXPOSED, ALL = "not exposed", "exposed", "all coins"


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


class CoinSet:
    """A wallet's coins on one chain, each row computed once, for any combination.

    >>> import coinhaze
    >>> from coinhaze.wallet.holdings import find_coin
    >>> ledger = coinhaze.CoinLedger.from_transactions([
    ...     {"txid": "a", "outputs": [{"value": 5}]}, {"txid": "b", "outputs": [{"value": 5}]},
    ... ])
    >>> chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    >>> coin_set = CoinSet(chain, [find_coin(chain.graph, name) for name in ("a:0", "b:0")])
    >>> [(pair.coins, pair.after.bits, pair.taints(0.0)) for pair in coin_set.pairs()]
    [(('a:0', 'b:0'), 1.0, ())]
    """

    def __init__(
        self,
        chain: AbsorbingChain,
        coins: Sequence[WalletCoin],
        *,
        exposed: AbsorbingChain | None = None,
        max_origins: int | None = None,
    ) -> None:
        """Compute the coins' rows; `max_origins` says that the ledger is a part of a chain."""
        if exposed is not None and (exposed.graph is not chain.graph or not exposed.listed):
            raise UsageError("`exposed` is a chain of the same graph, made with `listed`")
        self.chain = chain
        self.exposed = exposed
        self.max_origins = max_origins
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
        return 0.0 if self.max_origins is None else bits_beyond(row, self.max_origins).open

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


@dataclass(frozen=True, eq=False)
class HeldCoin:
    """One coin of a wallet as an observer sees it."""

    coin: WalletCoin
    row: Mixture
    exposure: float | None  # None where nothing is listed
    origins: tuple[NamedOrigin, ...]  # the largest, largest first
    beyond: Beyond | None = None  # over a whole chain, where the ledger is only a part of it
    informed: tuple[OwnerOrigins, ...] = ()  # to each observer of the ladder
    last_origin: NamedOrigin | None = None  # the one that is not among the largest, if it is one

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
    parties: Parties  # who knows which coins
    observers: tuple[Observer, ...] = ()  # none where nothing is inferred about owners

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

    def merging(self, some: Combination) -> Disclosure:
        """Return who learns what if these coins were merged, and nobody were paid."""
        return self.parties.knowledge.spend(some.coins)

    def is_safe(self, some: Combination) -> bool:
        """Return whether merging coins tells nobody anything, and puts none above the limit."""
        return not self.merging(some).learns and not some.taints(self.limit)

    def safe_pairs(self) -> int:
        """Count the pairs of coins that can be merged without telling anybody anything."""
        return sum(self.is_safe(pair) for pair in self.pairs or ())

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
    max_origins: int | None = None,
    known: Mapping[str, Sequence[str]] = NO_TABLE,
    observers: Sequence[Observer] | None = None,
) -> Wallet:
    """Evaluate every coin of a wallet, its groups and pairs; name `top` origins of each.

    `exposed` is a chain of the same graph and policy with a list; `limit` is the exposure up to
    which a coin counts as not exposed. `max_origins` says that the ledger is a part of a chain
    with at most that many origins: intervals are then over all of it. `known` adds parties to those
    of the ledger, with the coins and addresses they know to be yours (parties.py). `observers` are
    a ladder that is there already, in the place of the ledger's own.

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
    ledger = coin_ledger(chain.graph)
    if not 0 <= limit < 1:
        raise UsageError(f"a limit of exposure is from 0 to below 1, not {limit}")
    coin_set = CoinSet(chain, coins, exposed=exposed, max_origins=max_origins)
    inferred = inferences(ledger)
    if type(chain.outcomes) is not SourceNames:
        observers = ()
    elif observers is None:
        observers = ladder(ledger, labels=labels, inferred=inferred)
    grouped = groupings(chain, observers)
    holdings = tuple(
        _holding(coin_set, coin, labels, top, max_origins, grouped)
        for coin in coin_set.coins.values()
    )
    pairs = tuple(coin_set.pairs()) if len(holdings) <= MAX_PAIRED else None
    found = [holding.coin for holding in holdings]
    parties = parties_of(chain.graph, found, labels=labels, table=known, inferred=inferred)
    groups = _groups(coin_set, holdings, limit)
    return Wallet(coin_set, holdings, limit, groups, pairs, parties, tuple(observers))


def _holding(
    coin_set: CoinSet,
    coin: WalletCoin,
    labels: Mapping[str, str],
    top: int,
    max_origins: int | None,
    grouped: Groupings,
) -> HeldCoin:
    alone = coin_set.together([coin.name])
    graph = coin_set.chain.graph
    origins = tuple(
        NamedOrigin(row["source"], origin_words(graph, row["source"], labels), row["probability"])
        for row in alone.after.sources(top + 1).to_pylist()
    )
    assert not math.isnan(alone.after.bits)  # the walks of a coin view always end
    beyond = None if max_origins is None else bits_beyond(alone.after, max_origins)
    informed = _informed(alone.after, grouped, beyond, max_origins)
    count = len(alone.after.outcomes) + len(alone.after.others)
    last = origins[top] if count == top + 1 else None
    return HeldCoin(coin, alone.after, alone.exposure, origins[:top], beyond, informed, last)


def _informed(
    row: Mixture, grouped: Groupings, beyond: Beyond | None, max_origins: int | None
) -> tuple[OwnerOrigins, ...]:
    """Group a coin's origins as each observer does; what was not followed may be anybody's."""
    found = owners_of_row(
        row.chain,
        row.outcomes,
        row.probability,
        grouped,
        missing=0.0,
        slack=row.bits_high - row.bits_low,
        maximum=row.bits_high,
    )
    if max_origins is None or beyond is None or beyond.open == 0:
        return found
    high, bounded = beyond.bits_high, []
    for each, (_, groups) in zip(found, grouped, strict=True):
        over = bits_beyond(row, max_origins, groups.of_outcome)
        high = min(high, over.bits_high)
        low = min(over.bits_low, high)
        bits = min(max(each.bits, low), high)
        bounded.append(replace(each, bits=bits, bits_low=low, bits_high=high))
    return tuple(bounded)


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
