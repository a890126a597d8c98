"""Coins put together, nearly: each followed along its largest flows, what is missing bounded.

A mix of rows is known up to the mix of what is missing of each; its entropy then lies between two
bounds (`measure.intervals.from_missing_mass`). For large chains, where `mix` takes seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coinhaze.amounts import Floats, Ints
from coinhaze.errors import UsageError
from coinhaze.measures.intervals import from_missing_mass, surprise
from coinhaze.observer import AbsorbingChain
from coinhaze.solve.local.mixing import mix_weights
from coinhaze.solve.local.past import Past, past_of
from coinhaze.solve.planner import thresholds
from coinhaze.solve.structure.structure import Structure

# Sums of so many roundings change bits by less than this.
ROUNDINGS = 1e-9


@dataclass(frozen=True, eq=False)
class NearlyMixed:
    """What is proven of the bits of coins put together, and each coin's share and past."""

    bits: float  # the middle of the interval
    bits_low: float
    bits_high: float
    shares: tuple[float, ...]
    pasts: tuple[Past, ...]

    @property
    def width(self) -> float:
        """How wide the interval is."""
        return self.bits_high - self.bits_low


def mix_nearly(
    chain: AbsorbingChain | Structure,
    nodes: Sequence[int],
    *,
    pasts: Sequence[Past] | None = None,
    whole: int = thresholds.MAX_WHOLE_PAST,
) -> NearlyMixed:
    """Bound the bits of coins put together, by the weights of `mix`.

    `pasts` are the coins' own, if they are known already.

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
    weights = mix_weights(chain, np.array(nodes, dtype=np.int64))
    shares = tuple(weight / sum(weights) for weight in weights)
    found = [past_of(structure, n, whole=whole) for n in nodes] if pasts is None else list(pasts)
    probability = _mixed(found, shares)
    # What roundings lost of a past that is whole is no missing origin.
    missing = max(1.0 - float(probability.sum()), 0.0)
    if all(past.whole and past.ordered for past in found):
        missing = 0.0
    low, high = from_missing_mass(
        np.array([surprise(probability).sum()]),
        np.array([missing]),
        np.array([probability.max(initial=0.0)]),
        np.array([float(len(chain.outcomes))]),
    )
    least, most = max(float(low[0]) - ROUNDINGS, 0.0), max(float(high[0]) + ROUNDINGS, 0.0)
    return NearlyMixed((least + most) / 2, least, most, shares, tuple(found))


def _mixed(pasts: Sequence[Past], shares: Sequence[float]) -> Floats:
    """Add the found shares of all outcomes up, by weight."""
    columns: list[Ints] = []
    parts: list[Floats] = []
    for past, share in zip(pasts, shares, strict=True):
        outcomes, probability = past.outcomes()
        columns.append(outcomes)
        parts.append(share * probability)
    _, row = np.unique(np.concatenate(columns), return_inverse=True)
    return np.bincount(row, np.concatenate(parts)).astype(np.float64)
