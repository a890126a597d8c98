"""Wallet efficiency: a transaction's interpretations beside those of a perfect CoinJoin."""

from __future__ import annotations

from coinhaze.measures.comparators.registry import COMPARATORS, Comparator

EFFICIENCY = COMPARATORS.add(
    Comparator(
        "efficiency",
        "interpretations of the transaction as a share of the closest perfect CoinJoin's",
        lambda compared: compared.by_transaction(lambda matrix: matrix.efficiency),
        unit="of 1",
        about="transaction",
    )
)
