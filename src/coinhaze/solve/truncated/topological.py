"""The solver that goes through a chain once, exact or to an asked width."""

from __future__ import annotations

from collections.abc import Sequence

from coinhaze.amounts import Ints
from coinhaze.errors import UsageError
from coinhaze.measures import Scores
from coinhaze.observer import AbsorbingChain
from coinhaze.solve.certify import plain_orders
from coinhaze.solve.exact.engines import EXACT_WIDTH, score_exactly
from coinhaze.solve.planner import thresholds
from coinhaze.solve.pool.limits import UNLIMITED, Budget
from coinhaze.solve.progress import Progress, silent
from coinhaze.solve.query import Query
from coinhaze.solve.structure.lump import LumpedChain
from coinhaze.solve.structure.structure import Structure
from coinhaze.solve.truncated.truncate import Over, truncated


def sweep(
    chain: AbsorbingChain,
    rows: Ints,
    *,
    width: float = EXACT_WIDTH,
    over: Over = "worst",
    renyi: Sequence[float] = (),
    budget: Budget = UNLIMITED,
    progress: Progress = silent,
    lumped: LumpedChain | None = None,
) -> Scores:
    """Score rows in one sweep: of coin views and temporal graphs, or of a chain unrolled.

    A width above 1e-6 bits allows small probabilities to be dropped, with a proven interval: of
    every row, or with `over="mean"` on average over the rows; as long as that takes less than
    exact scores would.
    """
    lumped = lumped or Structure(chain).lump(rows, plain_orders(renyi))
    if over not in ("worst", "mean"):
        raise UsageError(f"over is worst or mean, not {over!r}")
    if may_drop(lumped.query, width, renyi):
        scores = truncated(
            lumped, width=width, over=over, exact=lumped.cost, budget=budget, progress=progress
        )
        if scores is not None:
            return scores
    return score_exactly(
        chain,
        rows,
        width=width,
        renyi=renyi,
        budget=budget,
        progress=progress,
        lumped=lumped,
    )


def may_drop(query: Query, width: float, renyi: Sequence[float]) -> bool:
    """Tell whether the question lets small probabilities be dropped."""
    chain = query.chain
    can = query.reduced.acyclic or not query.factor.sweeps
    return width > thresholds.MIN_DROPPING_WIDTH and not renyi and not chain.listed and can
