"""Coins put together, without a new ledger: one row that is a mix of rows of B.

A transaction takes its money from its coins by value, so what it pays has the row sum_i w_i B_i.
Mass w_i starts at coin i and is pushed back to the ends, all of it, touching only the coins' past.

On large chains, where that takes seconds, `mix_nearly` pushes the largest shares only. What rests
is then bounded by the bounds of the nodes it rests at, as in a row (`row.PartialSums`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from coinhaze.amounts import Floats, Ints
from coinhaze.errors import InputError, UsageError
from coinhaze.measures.intervals import ROUNDING, surprise
from coinhaze.measures.mixture import Mixture, mixture_of
from coinhaze.observer import AbsorbingChain
from coinhaze.observer.chain import NO_COLUMN
from coinhaze.observer.policies import POLICIES
from coinhaze.solve.certify import CERTIFICATE
from coinhaze.solve.local.past import follow_largest
from coinhaze.solve.local.row import PartialSums, no_answer
from coinhaze.solve.local.walk import Trace
from coinhaze.solve.planner import thresholds
from coinhaze.solve.structure.structure import Structure

# Roundings of the shares mass starts with, and of their sum, in units of 2^-53.
STARTS = 8.0


def mix(
    chain: AbsorbingChain | Structure,
    coins: Sequence[str | int],
    weights: Sequence[int] | Sequence[float] | None = None,
    *,
    others: Mapping[str, float] | None = None,
) -> Mixture:
    """Give what coins put together are made of: bits with an interval, sources, exposure.

    `coins` are nodes by name or number; weights default to what the chain's policy gives them
    (see `mix_weights`). `others` are the weights of coins the ledger does not know by name: each a
    source of its own, or, where the chain has a list, the entry of that name or elsewhere. Only
    for chains whose walks never meet a loop, as the coin view's.

    >>> import coinhaze
    >>> ledger = coinhaze.CoinLedger.from_transactions([
    ...     {"txid": "a", "outputs": [{"value": 1}]}, {"txid": "b", "outputs": [{"value": 3}]},
    ... ])
    >>> chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    >>> mix(chain, ["a:0", "b:0"]).sources().to_pylist()[0]
    {'source': 'tx:b', 'probability': 0.75}
    """
    structure = Structure.of(chain)
    chain = structure.chain
    names = chain.graph.names
    nodes = np.array([names.node(c) if isinstance(c, str) else int(c) for c in coins], np.int64)
    given = mix_weights(chain, nodes) if weights is None else list(weights)
    shares, extra = _shares(given, others or {}, len(nodes))
    _check(structure, nodes)
    # A coin that poison never reached says nothing; with none reached there is no answer.
    if chain.clean is not None and np.all(chain.clean[nodes[shares > 0]]):
        none = np.zeros(0, dtype=np.int64)
        return Mixture(chain, none, np.zeros(0), {}, math.nan, 0.0)
    return _mixed(structure, nodes[shares > 0], shares[shares > 0], extra)


def mix_weights(chain: AbsorbingChain, nodes: Ints) -> list[int]:
    """Weigh unspent coins as the policy would weigh the inputs of a transaction that spends them.

    Proportional: by value. Uniform: equally. Poison: tainted ones equally, clean ones not at all.
    """
    policy = POLICIES.get(chain.settings.get("policy"))
    if policy is None or policy.weigh is None:
        raise UsageError("a policy of your own does not say how coins mix: give their weights")
    return policy.weigh(chain, nodes)


def _mixed(
    structure: Structure, nodes: Ints, shares: Floats, extra: Mapping[str, float]
) -> Mixture:
    """Push all mass to its ends."""
    chain, walk = structure.chain, structure.walk
    with walk.begun(nodes, shares):
        walk.push(0.0)
        found, roundings = walk.found(), walk.roundings
    ended, added = _ended(chain, found)
    outside = math.fsum(extra.values())
    if chain.listed:
        _end_listed(chain, ended, extra)
        extra = {}
    outcomes = np.flatnonzero(ended > 0)
    if not abs(1 - ended[outcomes].sum() - sum(extra.values())) <= CERTIFICATE:
        raise no_answer(chain, int(nodes[0]))
    return mixture_of(
        chain,
        outcomes,
        ended[outcomes],
        others=extra,
        steps=float(found.visits.sum()) + outside,
        error=1.01 * (roundings + added + STARTS) * ROUNDING,
    )


def _ended(chain: AbsorbingChain, found: Trace) -> tuple[Floats, float]:
    """Add up what ended by outcome; also bound the roundings of these sums in units of 2^-53."""
    own = chain.walk.own[found.nodes]
    ends = np.flatnonzero((chain.column[found.nodes] != NO_COLUMN) & (own > 0))
    column, share = chain.column[found.nodes[ends]], found.visits[ends] * own[ends]
    ended = np.bincount(column, share, len(chain.outcomes)).astype(np.float64)
    # Every summand is in the partial sum it is added to, and in all that follow in its column.
    order = np.argsort(column, kind="stable")
    last = np.cumsum(np.bincount(column, minlength=len(ended)))
    return ended, float((share[order] * (last[column[order]] - np.arange(len(order)))).sum())


def _end_listed(chain: AbsorbingChain, ended: Floats, extra: Mapping[str, float]) -> None:
    """Count coins the ledger does not know as what a chain with a list has for them."""
    if extra and chain.elsewhere == NO_COLUMN:
        raise UsageError("coins the ledger does not know have no taint to weigh under poison")
    columns = {name: k for k, name in enumerate(listed_names(chain))} if extra else {}
    for name, share in extra.items():
        ended[columns.get(name, chain.elsewhere)] += share


def _shares(
    given: Sequence[int] | Sequence[float], others: Mapping[str, float], count: int
) -> tuple[Floats, dict[str, float]]:
    """Make weights add up to 1; whole numbers exactly, before they are divided."""
    weights = [*given, *others.values()]
    if len(given) != count or not weights:
        raise UsageError(f"{len(given)} weights for {count} coins: one each, and one coin or more")
    if not all(0 <= w < math.inf for w in weights) or not sum(weights) > 0:
        raise InputError(f"weights of coins are not below 0, and not all 0: {weights[:5]}")
    total = sum(weights)
    shares = np.array([w / total for w in given])
    return shares, {name: w / total for name, w in others.items() if w > 0}


def _check(structure: Structure, nodes: Ints) -> None:
    n = len(structure.chain)
    if len(nodes) and not 0 <= nodes.min() <= nodes.max() < n:
        raise InputError(f"no node {nodes.max()}: the graph has {n}")
    if len(np.unique(nodes)) < len(nodes):
        raise InputError("a coin is named twice, and can be spent but once")
    if not structure.is_ordered:
        raise UsageError("coins are mixed in the coin view, where money never runs in a circle")


def listed_names(chain: AbsorbingChain) -> list[str]:
    """Give the entries of a chain's list that its ledger knows; none where it has no list."""
    if not chain.listed:
        return []
    labels: list[str] = chain.outcomes.to_pylist()
    return labels if chain.elsewhere == NO_COLUMN else labels[: chain.elsewhere]


@dataclass(frozen=True, eq=False)
class NearlyMixed:
    """What is proven of the bits of coins put together, and each coin's share."""

    bits: float  # the middle of the interval
    bits_low: float
    bits_high: float
    shares: tuple[float, ...]

    @property
    def width(self) -> float:
        """How wide the interval is."""
        return self.bits_high - self.bits_low


def mix_nearly(
    chain: AbsorbingChain | Structure,
    nodes: Sequence[int],
    *,
    whole: int = thresholds.MAX_WHOLE_PAST,
) -> NearlyMixed:
    """Bound the bits of coins put together, by the weights of `mix`.

    All of a past of up to `whole` moves is followed, and the largest flows of a longer one.

    >>> import coinhaze
    >>> ledger = coinhaze.CoinLedger.from_transactions([
    ...     {"txid": "a", "outputs": [{"value": 5}]}, {"txid": "b", "outputs": [{"value": 5}]},
    ... ])
    >>> chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    >>> nodes = [chain.graph.names.node(name) for name in ("a:0", "b:0")]
    >>> round(mix_nearly(chain, nodes).bits, 6)
    1.0
    """
    structure = Structure.of(chain)
    chain = structure.chain
    if chain.history or chain.clean is not None:
        raise UsageError("mixing nearly is for rows over plain sources: no history, no poison")
    coins = np.array(nodes, dtype=np.int64)
    shares, _ = _shares(mix_weights(chain, coins), {}, len(coins))
    _check(structure, coins)
    walk = structure.walk
    with walk.begun(coins, shares):
        if walk.push(0.0, max_moves=whole) > whole:
            follow_largest(walk, finest=thresholds.MIN_FLOW, moves=thresholds.MAX_PAST_MOVES)
        found, roundings = walk.found(), walk.roundings
    ended, added = _ended(chain, found)
    at = np.flatnonzero(found.mass > 0)
    rest, node = found.mass[at], found.nodes[at]
    pieces = float(surprise(ended).sum())
    bounded = structure.bounded
    sums = PartialSums(
        sure=float(ended.sum()),
        sure_low=pieces,
        sure_high=pieces,
        largest=float(ended.max(initial=0.0)),
        rest=float(rest.sum()),
        below=float((rest * bounded.node_low[node]).sum()),
        above=float((surprise(rest) + rest * bounded.node_high[node]).sum()),
        terms=2 * len(found.nodes),
    )
    if not abs(1 - sums.sure - sums.rest) <= CERTIFICATE:
        raise no_answer(chain, nodes[0])
    low, high = sums.interval(roundings + added + STARTS, bounded.max_bits)
    low = max(low, 0.0)
    return NearlyMixed((low + high) / 2, low, high, tuple(shares.tolist()))
