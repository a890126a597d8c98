"""How far rounding can change the draws that a tile propagates, in single or double precision.

A tile holds signed numbers, but each of them is a sum over walks through the factors: a positive
weight times a draw, off by a relative rounding for every operation on the way. The factors are
triangles, so a walk goes through each state's rows once forward and once back, and the most
roundings of any walk take one pass. What the factors themselves err by changes every probability
by at most twice that, added up over all states (docs/accuracy.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coinhaze.amounts import Floats
from coinhaze.measures.elementary import expm1_at_most
from coinhaze.measures.intervals import ROUNDING
from coinhaze.solve.exact.core import DenseCore, SparseCore
from coinhaze.solve.exact.factor import Factor
from coinhaze.solve.planner import thresholds
from coinhaze.solve.query import Query
from coinhaze.solve.sketch.kernels import max_back, max_in_sweep, max_through

SINGLE = 2.0**-24
# Draws are found to 1e-11 relative and absolute, exp to 1e-12, and sums of them to 64 roundings.
DRAW_ERROR = 2e-11
ABSOLUTE_ERROR = 2e-11
# A term of a row: its value brought to the tile's precision, the product, the own draw's sum.
_TERM = 3.0


@dataclass(frozen=True, eq=False)
class TileRounding:
    """Bounds on the relative error of the probabilities behind each scored row's draws."""

    single: Floats
    double: Floats
    fits_single: bool  # whether the range of single precision is enough

    @classmethod
    def of(cls, query: Query) -> TileRounding:
        """Bound the errors of both precisions."""
        factor = query.factor
        scored = factor.place[query.scored]
        made = ROUNDING * float(factor.roundings(by_fours=False).sum())
        # Rows without the mass that sweeps leave out are divided by what is left.
        times = 2.0 if factor.sweeps else 1.0

        def error(unit: float) -> Floats:
            along = unit * max_roundings(factor, unit)[scored]
            found: Floats = expm1_at_most(times * (along + made) * (1 + 1e-6) + DRAW_ERROR)
            return found

        with np.errstate(over="ignore"):
            return cls(error(SINGLE), error(ROUNDING), _fits_single(factor))


def _fits_single(factor: Factor) -> bool:
    """Tell whether nothing in the factors is near the ends of single precision's range."""
    minimum = float(factor.pivot.min(initial=1.0))
    for core in factor.cores.values():
        if isinstance(core, DenseCore):
            minimum = min(minimum, 1.0 / float(core.inverse.max(initial=1.0)))
        else:
            minimum = min(minimum, float(core.scale.min(initial=1.0)))
    return minimum > thresholds.MIN_SINGLE_PIVOT


def max_roundings(factor: Factor, unit: float) -> Floats:
    """Give, for every place, the most roundings of size `unit` on any walk through the factors."""
    forward = _row_cost(np.diff(factor.lower))
    back = _row_cost(np.diff(factor.upper)) + 2.0  # the pivot, and the division by it
    maximum = np.full(len(factor), _TERM)
    triangles = (factor.lower, factor.lower_at, factor.upper, factor.upper_at, factor.pivot)
    walk = (*triangles, factor.block_start, forward, back)
    first = 0
    for block in sorted(factor.cores):
        core = factor.cores[block]
        end = int(factor.block_start[block + 1])
        part = maximum[end - len(core) : end]
        max_through(*walk, first, block, maximum)
        part[:] = _max_in_core(core, part, unit)
        bounds = int(factor.block_start[block]), end
        max_back(factor.upper, factor.upper_at, back, *bounds, maximum)
        first = block + 1
    max_through(*walk, first, len(factor.block_start) - 1, maximum)
    return maximum


def _row_cost(terms: np.ndarray) -> Floats:
    """Count the roundings of adding a row up, four terms at a time, onto what is there."""
    cost: Floats = np.minimum(terms, terms // 4 + 3) + _TERM
    return cost


def _max_in_core(core: DenseCore | SparseCore, maximum: Floats, unit: float) -> Floats:
    """Give the most roundings of walks that have passed a core."""
    highest = float(maximum.max(initial=0.0))
    if isinstance(core, DenseCore):
        return np.full(len(core), highest + len(core) + _TERM)
    # Every visit meets the error of the core's own rows: sweeps do not keep their sums at 1.
    own = ROUNDING / unit * core.row_error
    size = sum(float(np.diff(c.start).max(initial=0)) + 2.0 for c in core.clusters)
    right = np.full(len(core), highest + 2.0 + size + len(core.clusters) * float(own.max()))
    cost = np.diff(core.indptr) + 2.0 + own
    after = right.copy()
    for sweep in range(core.sweeps):
        max_in_sweep(core.indptr, core.indices, cost, right, after, sweep % 2 == 0)
    return after
