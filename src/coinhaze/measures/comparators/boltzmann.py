"""Boltzmann's measure: the entropy of a transaction's interpretations."""

from __future__ import annotations

from coinhaze.measures.comparators.registry import COMPARATORS, Comparator

BOLTZMANN = COMPARATORS.add(
    Comparator(
        "boltzmann",
        "log2 of the interpretations of the transaction that made the coin",
        lambda compared: compared.by_transaction(lambda matrix: matrix.bits),
        unit="bits",
        about="transaction",
    )
)
