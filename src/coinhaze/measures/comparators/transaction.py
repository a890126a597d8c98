"""Measures of the transaction that made a coin, taken by itself.

Boltzmann's measure is the entropy of its interpretations; wallet efficiency compares these with
those of a perfect CoinJoin; link entropy says how uncertain it is which inputs paid for a coin;
k-anonymity counts the outputs of the coin's value.
"""

from __future__ import annotations

import math

import numpy as np

from coinhaze.amounts import Floats
from coinhaze.measures.comparators.side_by_side import ComparedScores
from coinhaze.measures.entropy import shannon


def link_bits(compared: ComparedScores) -> Floats:
    """Compute the entropy of each coin's row of the link matrix."""
    bits: dict[int, float] = {}
    for tx, matrix in compared.matrices.items():
        if matrix is not None:
            rows = [shannon(row) for row in matrix.shares.tolist()]
            bits.update(zip(compared.parts.made(tx).tolist(), rows, strict=True))
    return compared.by_coin(lambda coin: bits.get(coin, math.nan))


def equal_outputs(compared: ComparedScores) -> Floats:
    """Count for each coin the outputs of its transaction with its value."""
    ledger, parts = compared.ledger, compared.parts
    equal: dict[int, int] = {}
    for tx in np.unique(ledger.output_tx[compared.coins[compared.coins >= 0]]).tolist():
        coins = parts.made(tx)
        values = np.array(parts.values(coins), dtype=object)
        _, group, count = np.unique(values, return_inverse=True, return_counts=True)
        equal.update(zip(coins.tolist(), count[group].tolist(), strict=True))
    return compared.by_coin(lambda coin: equal.get(coin, math.nan))
