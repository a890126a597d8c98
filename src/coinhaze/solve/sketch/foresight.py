"""What draws will reach and cost, before any is taken."""

from __future__ import annotations

import math

import numpy as np

from coinhaze.measures.confidence import (
    ConfidenceEnds,
    draws_for,
    mean_ends,
    missing_bits,
    rounding_slack,
    row_ends,
)
from coinhaze.solve.exact.core import SparseCore
from coinhaze.solve.exact.stream_kernels import WIDTH
from coinhaze.solve.planner import thresholds
from coinhaze.solve.sketch.rounding import ABSOLUTE_ERROR
from coinhaze.solve.sketch.sketch import alone_states, log_sources, precision
from coinhaze.solve.structure.lump import LumpedChain

# Nobody waits for more draws than this.
MAX_DRAWS = 1 << 32


def needed_draws(
    lumped: LumpedChain,
    width: float,
    miss: float,
    *,
    simultaneous: bool,
    of_mean: bool,
) -> int | None:
    """Give the least number of draws whose intervals are at most so wide; None if none is."""
    left = width - _beside(lumped)
    if left <= 0:
        return None
    each = _each(lumped, miss, simultaneous=simultaneous and not of_mean)
    return draws_for(left, each, of_mean=of_mean, tile=WIDTH, maximum=MAX_DRAWS)


def widest(
    lumped: LumpedChain,
    draws: int,
    miss: float,
    *,
    simultaneous: bool,
    of_mean: bool,
) -> float:
    """Bound the widest interval that so many draws give, or that of the mean, in bits."""
    each = _each(lumped, miss, simultaneous=simultaneous and not of_mean)
    ends: ConfidenceEnds = mean_ends(draws, each) if of_mean else row_ends(draws, each)
    maximum = log_sources(lumped.columns) / math.log(2)
    return min(ends.bits + _beside(lumped), maximum)


def seconds_of_a_draw(lumped: LumpedChain) -> float:
    """Count what one draw of every source takes, in seconds of one core."""
    query = lumped.query
    factor = query.factor
    take, move, score = thresholds.DRAW_NS
    work = take * float((lumped.columns.of_state >= 0).sum()) + score * len(query.scored)
    work += move * (len(factor.lower_at) + len(factor.upper_at))
    for core in factor.cores.values():
        if isinstance(core, SparseCore):
            work += move * core.sweeps * len(core.indices)
        else:
            work += thresholds.CORE_NS * len(core) ** 2
    return work * 1e-9


def _each(lumped: LumpedChain, miss: float, *, simultaneous: bool) -> float:
    """Give the probability that one row may miss with."""
    drawn = int((~alone_states(lumped.query)).sum())
    return miss / max(drawn, 1) if simultaneous else miss


def _beside(lumped: LumpedChain) -> float:
    """Bound what rounding and missing mass add to any interval, in bits."""
    query = lumped.query
    maximum = log_sources(lumped.columns)
    _, error = precision(query, lumped.columns)
    slack = rounding_slack(np.full(len(error), maximum), error)
    missing = query.factor.missing()[query.scored]
    unfound = missing_bits(missing, maximum) + missing * maximum / math.log(2)
    return float((2 * (slack + 2 * ABSOLUTE_ERROR) / math.log(2) + unfound).max(initial=0.0))
