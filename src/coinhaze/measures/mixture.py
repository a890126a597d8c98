"""A mixture: what money put together from several coins would be made of.

Its bits over a whole chain, from a part of it: what lies beyond the part is bounded, not guessed.
A row over a part's sources has pieces that are sure, newly made money, and pieces that rest: coins
made before the part, each with a past that nobody looked at. Let q be the sure pieces, S the sum of
their phi(q) = -q log2 q; r_j what rests at transaction j, m the sum of it; n the most origins
there can be (one a block, where only coinbases make money).
- High. What rests at j has at most log2 n bits of its own, and telling pieces apart never lowers
  entropy: U <= S + sum_j phi(r_j) + r_j log2 n. Also U <= log2 n.
- Low. Entropy is concave, so it is least if all that rests falls on one origin; phi'' < 0, so on
  the largest: U >= S - phi(max q) + phi(max q + m).
Coins of one transaction have one past, so they rest as one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Floats, Ints
from coinhaze.errors import UsageError
from coinhaze.measures.intervals import LOG2_E, ROUNDING, phi, surprise
from coinhaze.observer import AbsorbingChain

MADE = "tx:"  # how sources that are transactions, and so make money, are called


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

    def sources(self, limit: int | None = None) -> pa.Table:
        """Give sources and probabilities, largest first."""
        rows = self.outcomes[:limit]
        names = self.chain.outcomes.take(pa.array(rows.astype(np.int64))).to_pylist()
        both = [*zip(names, self.probability[:limit].tolist(), strict=True), *self.others.items()]
        both.sort(key=lambda pair: -pair[1])
        return pa.table(
            {
                "source": pa.array([name for name, _ in both[:limit]], pa.string()),
                "probability": pa.array([share for _, share in both[:limit]], pa.float64()),
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
    """Give the bits and how far off they are at most: bound as at the top of solve/local/row.py."""
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


@dataclass(frozen=True)
class Beyond:
    """An interval over the whole chain, and the share of money that was not followed."""

    bits_low: float
    bits_high: float
    open: float
    resting: dict[str, float]  # by the transaction whose past is not known

    @property
    def width(self) -> float:
        """How wide the interval is."""
        return self.bits_high - self.bits_low


def bits_beyond(row: Mixture, max_origins: int, group: Ints | None = None) -> Beyond:
    """Bound the bits of a coin-view row over a whole chain of at most so many origins.

    With `group`, the group of each outcome, newly made money of one group is one piece.

    >>> import coinhaze
    >>> from coinhaze.solve.local.mixing import mix
    >>> ledger = coinhaze.CoinLedger.from_transactions([
    ...     {"txid": "a", "inputs": [{"txid": "x", "vout": 0, "value": 5}],
    ...      "outputs": [{"value": 5}]},
    ... ])
    >>> chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    >>> beyond = bits_beyond(mix(chain, ["a:0"]), 1024)
    >>> round(beyond.bits_low), round(beyond.bits_high), beyond.open
    (0, 10, 1.0)
    """
    if max_origins < 1:
        raise UsageError(f"a chain has one origin or more, not {max_origins}")
    pieces: dict[int | str, float] = {}
    resting: dict[str, float] = {}
    outcomes = row.outcomes if group is None else group[row.outcomes]
    names = row.chain.outcomes.take(pa.array(row.outcomes.astype(np.int64))).to_pylist()
    known = zip(names, outcomes.tolist(), row.probability.tolist(), strict=True)
    for name, piece, share in (
        *known,
        *((name, name, share) for name, share in row.others.items()),
    ):
        if name.startswith(MADE):
            pieces[piece] = pieces.get(piece, 0.0) + share
        else:
            txid = name.rpartition(":")[0]
            resting[txid] = resting.get(txid, 0.0) + share
    slack = row.bits_high - row.bits
    if not resting:
        return Beyond(row.bits_low, row.bits_high, 0.0, resting)
    sure = list(pieces.values())
    maximum = math.log2(max_origins)
    rest = math.fsum(resting.values())
    found = math.fsum(map(phi, sure))
    high = found + math.fsum(phi(r) + r * maximum for r in resting.values())
    largest = max(sure, default=0.0)
    low = found - phi(largest) + phi(min(largest + rest, 1.0))
    # What rests may have its own roundings: its bits are below `maximum`, its share off by `error`.
    slack += row.error * maximum
    return Beyond(max(low - slack, 0.0), min(high, maximum) + slack, min(rest, 1.0), resting)
