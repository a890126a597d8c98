"""The number of possible sources, however unlikely."""

from __future__ import annotations

from coinhaze.measures.comparators.registry import COMPARATORS, Comparator

POSSIBLE_SOURCES = COMPARATORS.add(
    Comparator(
        "possible-sources",
        "sources the coin can come from: k-anonymity over the whole graph",
        lambda compared: compared.scores.sources,
        unit="origins",
        about="sources",
    )
)
