"""The link matrix of a transaction as a heat map: outputs down, inputs across, equal amounts once.

It is a table, so that it can be read without colour, by any reader and without script.
"""

from __future__ import annotations

from dataclasses import dataclass

from coinhaze.explore.describe import share_words
from coinhaze.explore.models import EqualCoins, TransactionLinks

SHADES = 8


@dataclass(frozen=True)
class HeatRow:
    """Outputs of one amount: what they are, and how often they go with each input."""

    words: str
    cells: list[tuple[str, int]]  # the share in words, and its shade


def shade(share: float) -> int:
    """Give the shade of a share.

    >>> [shade(s) for s in (0.0, 0.01, 0.5, 1.0)]
    [0, 1, 4, 8]
    """
    return 0 if share <= 0 else max(1, min(round(share * SHADES), SHADES))


def heat_rows(links: TransactionLinks) -> list[HeatRow]:
    """Give a row for each different amount of outputs."""
    return [
        HeatRow(side_words(output), [(share_words(share), shade(share)) for share in row])
        for output, row in zip(links.outputs, links.probabilities, strict=True)
    ]


def side_words(coins: EqualCoins) -> str:
    """Name coins of one amount by it, and by how many they are."""
    return coins.amount.shown if coins.count == 1 else f"{coins.count:,} of {coins.amount.shown}"
