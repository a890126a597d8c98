"""The exact solver for any chain: elimination inside cycles, a sweep between them."""

from __future__ import annotations

from collections.abc import Sequence

from coinhaze.amounts import Ints
from coinhaze.measures import Scores
from coinhaze.observer import AbsorbingChain
from coinhaze.solve.exact.engines import EXACT_WIDTH, score_exactly
from coinhaze.solve.pool.limits import UNLIMITED, Budget
from coinhaze.solve.progress import Progress, silent
from coinhaze.solve.structure.lump import LumpedChain


def eliminate(
    chain: AbsorbingChain,
    rows: Ints,
    *,
    width: float = EXACT_WIDTH,
    renyi: Sequence[float] = (),
    budget: Budget = UNLIMITED,
    progress: Progress = silent,
    lumped: LumpedChain | None = None,
) -> Scores:
    """Score rows of any chain, accurate however rare absorption is."""
    return score_exactly(
        chain,
        rows,
        method="eliminate",
        width=width,
        renyi=renyi,
        budget=budget,
        progress=progress,
        lumped=lumped,
    )
