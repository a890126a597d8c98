"""k-anonymity of an output: how many outputs of its transaction have the same value."""

from __future__ import annotations

import math

import numpy as np

from coinhaze.amounts import Floats
from coinhaze.measures.comparators.registry import COMPARATORS, Comparator
from coinhaze.measures.comparators.side_by_side import ComparedScores


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


K_ANONYMITY = COMPARATORS.add(
    Comparator(
        "k-anonymity",
        "outputs of the transaction with the coin's value, itself among them",
        equal_outputs,
        unit="outputs",
        about="transaction",
    )
)
