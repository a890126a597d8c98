"""A mixture: what money put together from several coins would be made of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Floats, Ints
from coinhaze.measures.intervals import LOG2_E, surprise
from coinhaze.observer import AbsorbingChain

ROUNDING = 2.0**-53


@dataclass(frozen=True, eq=False)
class Mixture:
    """The distribution over sources of coins put together, and how uncertain it is.

    Bits and steps are not a number where no listed money reached any of the coins (poison).
    """

    chain: AbsorbingChain
    outcomes: Ints  # largest first
    probability: Floats
    others: Mapping[str, float]  # shares of coins the ledger does not know, sources of their own
    steps: float  # expected, from a coin on
    error: float  # by how much roundings change the probabilities, in all, at most
    bits: float = field(init=False)
    bits_low: float = field(init=False)
    bits_high: float = field(init=False)

    def __post_init__(self) -> None:
        bits, slack = _entropy(self)
        for name, value in (("", 0.0), ("_low", -slack), ("_high", slack)):
            found = bits if math.isnan(bits) else max(bits + value, 0.0)
            object.__setattr__(self, f"bits{name}", found)

    @property
    def exposure(self) -> float | None:
        """The chance to come from a listed source; None where the chain has no list."""
        if not self.chain.listed:
            return None
        listed = self.outcomes != self.chain.elsewhere
        return min(math.fsum(self.probability[listed].tolist()), 1.0)

    @property
    def top_probability(self) -> float:
        """The chance of the likeliest source."""
        return max([*self.probability[:1].tolist(), *self.others.values()], default=math.nan)

    def sources(self, most: int | None = None) -> pa.Table:
        """Give sources and probabilities, largest first."""
        rows = self.outcomes[:most]
        names = self.chain.outcomes.take(pa.array(rows.astype(np.int64))).to_pylist()
        both = [*zip(names, self.probability[:most].tolist(), strict=True), *self.others.items()]
        both.sort(key=lambda pair: -pair[1])
        return pa.table(
            {
                "source": pa.array([name for name, _ in both[:most]], pa.string()),
                "probability": pa.array([share for _, share in both[:most]], pa.float64()),
            }
        )

    def __repr__(self) -> str:
        count = len(self.outcomes) + len(self.others)
        return f"Mixture({self.bits:.4f} bits over {count} sources)"


def blend(mixtures: Sequence[Mixture], weights: Sequence[float]) -> Mixture:
    """Put mixtures of one chain together by weight; weights add up to 1."""
    chain = mixtures[0].chain
    assert all(m.chain is chain for m in mixtures)
    columns = np.concatenate([m.outcomes for m in mixtures])
    shares = [m.probability * w for m, w in zip(mixtures, weights, strict=True)]
    outcomes, row = np.unique(columns, return_inverse=True)
    others: dict[str, float] = {}
    for mixture, weight in zip(mixtures, weights, strict=True):
        for name, share in mixture.others.items():
            others[name] = others.get(name, 0.0) + weight * share
    total = np.bincount(row, np.concatenate(shares), len(outcomes)).astype(np.float64)
    pairs = [(m, w) for m, w in zip(mixtures, weights, strict=True) if w > 0]
    return mixture_of(
        chain,
        outcomes,
        total,
        others=others,
        steps=math.fsum(w * m.steps for m, w in pairs),
        # A weight, a product and as many sums as there are mixtures round once each.
        error=math.fsum(w * m.error for m, w in pairs) + (len(mixtures) + 4) * ROUNDING,
    )


def mixture_of(
    chain: AbsorbingChain,
    outcomes: Ints,
    probability: Floats,
    *,
    others: Mapping[str, float],
    steps: float,
    error: float,
) -> Mixture:
    """Order outcomes by share, largest first."""
    order = np.argsort(-probability, kind="stable")
    return Mixture(chain, outcomes[order], probability[order], dict(others), steps, error)


def _entropy(mixture: Mixture) -> tuple[float, float]:
    """Give the bits and how far off they are at most: bound as at the top of solve/local.py."""
    chain = mixture.chain
    shares = np.concatenate([mixture.probability, np.array(list(mixture.others.values()))])
    if not len(shares):
        return math.nan, math.nan
    bits = math.fsum(surprise(shares).tolist())
    origins = float(len(chain.outcomes) + len(mixture.others))
    for column, inner in chain.history.items():
        at = np.flatnonzero(mixture.outcomes == column)
        bits += float(mixture.probability[at].sum()) * math.fsum(surprise(inner).tolist())
        origins += len(inner)
    total = mixture.error
    slack = total * math.log2(max(origins, 2.0))
    slack += -total * math.log2(total) if 0 < total < 1 / math.e else total * LOG2_E
    return bits, slack + 8 * ROUNDING * (bits + len(shares) ** 0.5 + 2)
