"""The exact solver for any chain: elimination inside cycles, a sweep between them."""

from __future__ import annotations

from typing import Any

from coinhaze.chain import AbsorbingChain
from coinhaze.ledger.amounts import Ints
from coinhaze.measure import Scores
from coinhaze.solve.exact import score_exactly


def eliminate(chain: AbsorbingChain, rows: Ints, **settings: Any) -> Scores:
    """Score rows of any chain, accurate however rare absorption is."""
    return score_exactly(chain, rows, method="eliminate", **settings)
