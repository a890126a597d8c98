"""Churn: how many bits a coin gains when its owner repeatedly sends it on through rings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Unpack

import numpy as np
import pyarrow as pa

from coinhaze.errors import UsageError
from coinhaze.options import NamedScoreKeywords
from coinhaze.solve import score_or_reached
from coinhaze.solve.source import Source


def churn(source: Source, coins: Sequence[str], **settings: Unpack[NamedScoreKeywords]) -> pa.Table:
    """Return the bits of a coin before and after each hop; `coins` are its names in order.

    `source` and settings are those of `score`.

    >>> import coinhaze
    >>> ledger = coinhaze.CoinLedger.from_transactions([
    ...     {"txid": "a", "rings": [["w:0", "x:0"]], "outputs": 1},
    ...     {"txid": "b", "rings": [["a:0", "y:0"]], "outputs": 1},
    ... ])
    >>> churn(ledger, ["a:0", "b:0"])["bits"].to_pylist()
    [1.0, 1.5]
    """
    if isinstance(coins, str) or not coins:
        raise UsageError("churn follows one coin: name it as it was and after each hop, in order")
    scores = score_or_reached(source, nodes=coins, **settings)
    return pa.table(
        {
            "hop": np.arange(len(coins)),
            "coin": pa.array(list(coins), pa.string()),
            "bits": scores.bits,
            "bits_low": scores.bits_low,
            "bits_high": scores.bits_high,
            "effective_sources": scores.effective_sources,
            "possible_sources": scores.sources,
        }
    )


def churn_apart(ring: int, hops: int, *, start: float = 0.0, decoys: float = 0.0) -> list[float]:
    """Return the bits after 0 to `hops` hops through rings whose members share no past.

    With n members the chain rule gives U' = log2 n + (U + (n - 1) D) / n, where D is the bits of a
    decoy. With decoys of a single origin each (D = 0) no number of hops exceeds log2(n) n / (n -
    1): what a hop adds is the worth of its decoys' own pasts.

    >>> [round(bits, 4) for bits in churn_apart(16, 3)]
    [0.0, 4.0, 4.25, 4.2656]
    """
    if ring < 1 or hops < 0 or not (start >= 0 and decoys >= 0):
        raise UsageError("rings have a member or more; hops and bits are not below 0")
    bits = [float(start)]
    for _ in range(hops):
        bits.append(math.log2(ring) + (bits[-1] + (ring - 1) * decoys) / ring)
    return bits
