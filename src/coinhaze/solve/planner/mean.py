"""Scores whose mean can be trusted, by the least work: exact, proven on average, or by draws.

Tables are about means over many rows. Where exact scores are soon had they are taken; else, on a
chain without cycles, intervals as wide on average as the mean may err; else as many draws as it
takes. Which of them does not depend on how busy the machine is: work is counted, not timed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from coinhaze.amounts import Ints
from coinhaze.errors import AccuracyError, ResourceError
from coinhaze.measures import Scores
from coinhaze.observer import AbsorbingChain
from coinhaze.solve.exact.engines import score_exactly
from coinhaze.solve.planner import thresholds
from coinhaze.solve.pool.limits import UNLIMITED, Budget
from coinhaze.solve.progress import Progress, silent
from coinhaze.solve.sketch.sketch import sketch
from coinhaze.solve.structure.lump import LumpedChain
from coinhaze.solve.structure.structure import Structure
from coinhaze.solve.truncated.truncate import Truncation, Widths, may_drop, truncated

MEAN_ERROR = 0.05


def score_for_mean(
    chain: AbsorbingChain,
    rows: Ints,
    *,
    mean_error: float = MEAN_ERROR,
    seconds: float = thresholds.MAX_MEAN_SECONDS,
    seed: int = 0,
    budget: Budget = UNLIMITED,
    progress: Progress = silent,
) -> Scores:
    """Score rows so that their mean is right to `mean_error` bits.

    It is exact, or in a proven interval no wider, or an estimate with that standard error, which
    is measured over independent draws: the first of these that takes at most `seconds` of one
    core, draws however long they take.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 1)])
    >>> chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    >>> score_for_mean(chain, np.array([chain.graph.names.node("c")])).bits
    array([1.])
    """
    lumped = Structure(chain).lump(rows, np.zeros(0), missing=thresholds.PREVIEW_MISSING)
    settings: dict[str, Any] = {"budget": budget, "progress": progress}
    if chain.listed or lumped.cost.within(seconds):
        # Cores that are swept were swept for draws only.
        exact = None if lumped.query.factor.sweeps else lumped
        try:
            found = score_exactly(chain, rows, width=math.inf, lumped=exact, **settings)
        except AccuracyError:
            # Absorption too rare for floats; draws do not mind.
            if chain.listed:
                raise
        else:
            # Walks may be too long for the rounding to be bounded well.
            if chain.listed or Widths.of(found).mean <= mean_error:
                return found
    scores = _soon_proven(lumped, mean_error, seconds, budget, progress)
    if scores is not None:
        return scores
    return sketch(chain, rows, mean_error=mean_error, seed=seed, lumped=lumped, **settings)


def _soon_proven(
    lumped: LumpedChain, width: float, seconds: float, budget: Budget, progress: Progress
) -> Scores | None:
    """Give intervals of that mean width, if they are had within some seconds of one core."""
    query = lumped.query
    # With a history the score without it is given too, and dropping does not give that.
    if query.chain.history or not query.reduced.acyclic or not may_drop(query, width, ()):
        return None
    maximum = seconds / (thresholds.DROP_NS * 1e-9)
    try:
        question = Truncation.of(lumped, over="mean")
        if question.foresee(width, over="mean", maximum=maximum, budget=budget) is None:
            return None
        return truncated(lumped, width=width, over="mean", budget=budget, progress=progress)
    except (AccuracyError, ResourceError):
        # Lists do not fit the memory: draws do.
        return None
