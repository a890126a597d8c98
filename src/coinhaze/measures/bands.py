"""Confidence bands of means over seeds, by Student's t.

Two worlds drawn from the same seeds are compared seed by seed: what the draws have in common
goes out of the differences, and the band of their mean is narrower by it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.special

from coinhaze.amounts import Floats
from coinhaze.errors import UsageError

LEVEL = 0.95


@dataclass(frozen=True)
class Band:
    """A mean and where the true one lies, at some level; bounds are NaN where one seed was run."""

    mean: float
    low: float
    high: float

    @property
    def half(self) -> float:
        """How far the bounds are from the mean."""
        return (self.high - self.low) / 2


def mean_band(values: Floats, *, level: float = LEVEL) -> Band:
    """Give the band of a mean, one value a seed.

    >>> band = mean_band(np.array([1.0, 2.0, 3.0]))
    >>> round(band.low, 3), band.mean, round(band.high, 3)
    (-0.484, 2.0, 4.484)
    """
    _check(level, values)
    n = len(values)
    # Counted from the first: equal values are then their own mean, without spread, to the last bit.
    off = values - values[0]
    mean = float(values[0]) + float(np.mean(off))
    error = float(np.std(off, ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    return _around(mean, error, n - 1, level)


def paired_band(with_: Floats, without: Floats, *, level: float = LEVEL) -> Band:
    """Give the band of a difference between two worlds that share their seeds, in order."""
    if len(with_) != len(without):
        raise UsageError(f"pairs need equal numbers, not {len(with_)} and {len(without)}")
    return mean_band(with_ - without, level=level)


def ratio_band(gains: Floats, costs: Floats, *, level: float = LEVEL) -> Band:
    """Give the band of the mean gain over the mean cost, both by seed; NaN where it cost nothing.

    The ratio estimator of survey sampling: its error is that of gain - ratio x cost, by the mean
    cost (Cochran, Sampling Techniques, 1977, chapter 6).
    """
    _check(level, gains, costs)
    cost = float(np.mean(costs))
    if not cost > 0:
        return Band(math.nan, math.nan, math.nan)
    ratio = float(np.mean(gains)) / cost
    left = mean_band(gains - ratio * costs, level=level)
    return Band(ratio, ratio - left.half / cost, ratio + left.half / cost)


def _around(mean: float, error: float, freedom: float, level: float) -> Band:
    if math.isnan(error):
        return Band(mean, math.nan, math.nan)
    reach = float(scipy.special.stdtrit(freedom, (1 + level) / 2)) * error
    return Band(mean, mean - reach, mean + reach)


def _check(level: float, *columns: Floats) -> None:
    if not 0 < level < 1:
        raise UsageError(f"the level of a band lies between 0 and 1, not {level}")
    if any(len(column) == 0 for column in columns):
        raise UsageError("a mean needs a value or more")
