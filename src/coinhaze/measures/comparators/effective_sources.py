"""The effective number of sources: 2^bits."""

from __future__ import annotations

from coinhaze.measures.comparators.registry import COMPARATORS, Comparator

EFFECTIVE_SOURCES = COMPARATORS.add(
    Comparator(
        "effective-sources",
        "equally likely sources that would be as uncertain: 2^bits",
        lambda compared: compared.scores.effective_sources,
        unit="origins",
        about="sources",
    )
)
