"""Link entropy: how uncertain it is which inputs of its transaction paid for a coin."""

from __future__ import annotations

import math

from coinhaze.amounts import Floats
from coinhaze.measures.comparators.registry import COMPARATORS, Comparator
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


LINK_BITS = COMPARATORS.add(
    Comparator(
        "link-bits",
        "bits of the coin's shares over the inputs of its transaction",
        link_bits,
        unit="bits",
        about="transaction",
    )
)
