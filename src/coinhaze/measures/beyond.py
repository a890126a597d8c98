"""Bits over a whole chain, from a part of it: what lies beyond the part is bounded, not guessed.

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
from dataclasses import dataclass

from coinhaze.errors import UsageError
from coinhaze.measures.mixture import Mixture

MADE = "tx:"  # how sources that are transactions, and so make money, are called


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


def bits_beyond(row: Mixture, most_origins: int) -> Beyond:
    """Bound the bits of a coin-view row over a whole chain of at most so many origins.

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
    if most_origins < 1:
        raise UsageError(f"a chain has one origin or more, not {most_origins}")
    sure: list[float] = []
    resting: dict[str, float] = {}
    for source in row.sources().to_pylist():
        name, share = source["source"], source["probability"]
        if name.startswith(MADE):
            sure.append(share)
        else:
            txid = name.rpartition(":")[0]
            resting[txid] = resting.get(txid, 0.0) + share
    slack = row.bits_high - row.bits
    if not resting:
        return Beyond(row.bits_low, row.bits_high, 0.0, resting)
    most = math.log2(most_origins)
    rest = math.fsum(resting.values())
    known = math.fsum(map(_phi, sure))
    high = known + math.fsum(_phi(r) + r * most for r in resting.values())
    largest = max(sure, default=0.0)
    low = known - _phi(largest) + _phi(min(largest + rest, 1.0))
    # What rests may have its own roundings: its bits are below `most`, its share is off by `error`.
    slack += row.error * most
    return Beyond(max(low - slack, 0.0), min(high, most) + slack, min(rest, 1.0), resting)


def _phi(p: float) -> float:
    return -p * math.log2(p) if p > 0 else 0.0
