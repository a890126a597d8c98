"""The exact solver for any chain: elimination inside cycles, a sweep between them."""

from __future__ import annotations

from typing import Any

from coinhaze.amounts import Ints
from coinhaze.measures import Scores
from coinhaze.observer import AbsorbingChain
from coinhaze.solve.exact.engines import score_exactly


def eliminate(chain: AbsorbingChain, rows: Ints, **settings: Any) -> Scores:
    """Score rows of any chain, accurate however rare absorption is."""
    return score_exactly(chain, rows, method="eliminate", **settings)
