"""The degree of anonymity (Diaz et al., Serjantov and Danezis): bits as a share of the maximum."""

from __future__ import annotations

from coinhaze.measures.comparators.registry import COMPARATORS, Comparator

DEGREE = COMPARATORS.add(
    Comparator(
        "degree",
        "bits as a share of what as many equally likely sources would have",
        lambda compared: compared.scores.degree,
        unit="of 1",
        about="sources",
    )
)
