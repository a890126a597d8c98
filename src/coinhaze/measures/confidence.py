"""Confidence intervals of the entropy sketch: where an entropy lies, and how often that is wrong.

The draws X of the sketch have E exp(tX) = t^t. For a row p with entropy H (in nats) y = sum p X has
E exp(ty) = t^t exp(-tH), so W = exp(y + H) has one law, that of exp(X), whatever p is: E W^t = t^t.
Its moments give E exp(lW) = sum (ln)^n / n! = 1 / (1 - T), T exp(-T) = l, and Chernoff's bound for
the mean of k draws is in closed form: at x = exp(T) / (1 - T)^2 each tail is at most exp(-kI),
I = T / (1 - T)^2 + ln(1 - T), the upper one for 0 < T < 1 and the lower one for T < 0. Since
H = -ln(mean exp(y)) + ln(mean W), that is an interval for H. The mean over rows, which share draws,
has a proof of its own: see `mean_ends`, and docs/accuracy.md.

Everything here is rounded outward, so that the bounds stay proven.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from coinhaze.amounts import Bools, Floats
from coinhaze.errors import UsageError
from coinhaze.measures.intervals import surprise

MISS = 1e-9  # the probability that an interval misses, unless another one is given
_LN2 = math.log(2.0)
# Far more than libm errs by, relative to terms of size 1.
_CARE = 1e-15
# No draw is above this: z cot z <= 1, sin z <= z, and an exponential is at most -ln 2^-53.
LARGEST_DRAW = 1.0 + math.log(53 * _LN2) + 1e-6


class ConfidenceEnds(NamedTuple):
    """How far an entropy lies below and above -ln(mean exp(y)), in nats: both are positive."""

    below: float
    above: float

    @property
    def bits(self) -> float:
        """How wide the interval is, in bits."""
        return (self.below + self.above) / _LN2


def check_miss(miss: float) -> float:
    """Refuse what is no probability to miss."""
    if not 0.0 < miss < 1.0:
        raise UsageError(f"miss is a probability above 0 and below 1, such as 1e-9, not {miss!r}")
    return float(miss)


@cache
def row_ends(draws: int, miss: float) -> ConfidenceEnds:
    """Bound the entropy of one row: each end misses with probability at most miss / 2.

    >>> ends = row_ends(256, 0.05)
    >>> round(ends.below, 3), round(ends.above, 3)
    (0.311, 0.279)
    """
    goal = _goal(draws, miss)
    t = _minimum(_rate_above, goal, 1.0)
    u = _minimum(_rate_below, goal, math.inf)
    above = t - 2 * math.log1p(-t)
    return ConfidenceEnds(_nats_below(u) * (1 + _CARE), above * (1 + 4 * _CARE))


@cache
def mean_ends(draws: int, miss: float) -> ConfidenceEnds:
    """Bound the weighted mean of the entropies of any rows, which may share their draws.

    With z = -ln(mean W) of each row, the mean of -z is at most ln of the mean of all W, whose
    transform is no larger than that of one row: the upper end is a row's. For the lower end,
    P(mean of z >= t) <= E (z - c)_+ / (t - c) for every c < t, because (z - c)_+ is convex, and E
    (z - c)_+ is the integral of P(z >= s) <= exp(-k I(s)) over s above c. The best c is the end of
    a single row, where exp(-k I(c)) = miss / 2.
    """
    below, above = row_ends(draws, miss)
    goal = _goal(draws, miss)
    return ConfidenceEnds((below + _beyond(draws, goal)) * (1 + _CARE), above)


def draws_for(
    width: float, miss: float, *, of_mean: bool = False, tile: int, maximum: int = 1 << 40
) -> int | None:
    """Give the least multiple of `tile` whose interval is at most so wide, in bits; None if none.

    >>> draws_for(0.52, 1e-9, tile=64)
    3968
    """
    ends = mean_ends if of_mean else row_ends

    def enough(tiles: int) -> bool:
        return ends(tiles * tile, miss).bits <= width

    high = 1
    while not enough(high):
        high *= 2
        if high * tile > maximum:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high * tile


def rounding_slack(nats: Floats, error: Floats) -> Floats:
    """Bound how far -ln(mean exp(y)) is from what was computed, in nats.

    `error` bounds the relative error e of each probability behind the y's that were computed, so
    each of these is off by at most e times sum p |X| <= |y| + 2M, M being the largest draw. Then
    exp(y) is at most exp(4Me') times the power 1 - e' of what was computed, e' = e / (1 - e), the
    mean of which is at most that power of the mean (Jensen); and likewise the other way round.
    """
    maximum = np.minimum(error, 0.5) / (1.0 - np.minimum(error, 0.5))
    slack = maximum * (nats + 4 * LARGEST_DRAW * (1.0 + maximum))
    return np.where(error < 0.5, slack, np.inf)


class Drawn(NamedTuple):
    """What draws tell of some rows, before anything is said about chance; in nats.

    `nats` is -ln(mean exp(y)) of what was found of each row, `slack` how far it may be off by
    rounding, `missing` the mass that was not found. Rows with one column are `alone`, and known.
    """

    nats: Floats
    slack: Floats
    missing: Floats
    alone: Bools
    known: Floats  # of those alone
    known_slack: Floats
    maximum: float  # ln of how many sources there are

    def rows(self, ends: ConfidenceEnds) -> tuple[Floats, Floats]:
        """Give the ends of each row's interval, in bits."""
        found = 1.0 - self.missing
        low = found * (self.nats - self.slack - ends.below)
        high = found * (self.nats + self.slack + ends.above) + self._unfound()
        minimum, largest = self._exact()
        low = np.clip(np.where(self.alone, minimum, low), 0.0, self.maximum)
        high = np.clip(np.where(self.alone, largest, high), low, self.maximum)
        return low / _LN2, high / _LN2

    def mean(self, weights: Floats, ends: ConfidenceEnds) -> tuple[float, float]:
        """Give the ends of the interval of the rows' weighted mean, in bits; `ends` of a mean."""
        share = weights / weights.sum()
        by_draws = ~self.alone & np.isfinite(self.slack)
        known, drawn = ~by_draws & (share > 0), by_draws & (share > 0)
        found = (share * (1.0 - self.missing))[drawn]
        nats, slack = self.nats[drawn], self.slack[drawn]
        minimum, largest = self._exact()
        low, high = float(share[known] @ minimum[known]), float(share[known] @ largest[known])
        # What is proven of every row bounds the mean too.
        proven = low, high + self.maximum * float(share[drawn].sum())
        low += float((found * (nats - slack - ends.below)).sum())
        high += float((found * (nats + slack + ends.above)).sum())
        high += float((share * self._unfound())[drawn].sum())
        care = 1e-12 * (1.0 + self.maximum)  # sums over many rows round
        low, high = max(low, proven[0], care) - care, min(high, proven[1]) + care
        return low / _LN2, max(low, high) / _LN2

    def _unfound(self) -> Floats:
        return missing_bits(self.missing, self.maximum) * _LN2

    def _exact(self) -> tuple[Floats, Floats]:
        """Give what is proven of each row: where it is alone, nearly all."""
        minimum = np.where(self.alone, self.known - self.known_slack, 0.0)
        return minimum, np.where(self.alone, self.known + self.known_slack, self.maximum)


def missing_bits(missing: Floats, maximum: float) -> Floats:
    """Give the most bits that mass which was not found can add; `maximum` is ln of all sources."""
    whole: Floats = surprise(missing) + surprise(1.0 - missing) + missing * maximum / _LN2
    return whole


def _goal(draws: int, miss: float) -> float:
    """Give the rate at which a tail of so many draws is at most miss / 2."""
    return (_LN2 - math.log(check_miss(miss))) / draws * (1 + _CARE)


def _rate_above(t: float) -> float:
    return t / (1 - t) ** 2 + math.log1p(-t)


def _rate_below(u: float) -> float:
    """Give the rate at T = -u."""
    return math.log1p(u) - u / (1 + u) ** 2


def _nats_below(u: float) -> float:
    """Give -ln x at T = -u."""
    return u + 2 * math.log1p(u)


def _minimum(rate: Callable[[float], float], goal: float, limit: float) -> float:
    """Find where a growing rate reaches a goal, from above; below `limit`, where it is infinite."""
    goal = goal * (1 + 10 * _CARE) + _CARE
    low = 0.0
    high = 0.5
    while rate(high) < goal:
        low, high = high, (2 * high if limit == math.inf else (high + limit) / 2)
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return high
        if rate(middle) < goal:
            low = middle
        else:
            high = middle


def _beyond(draws: int, goal: float) -> float:
    """Bound the integral of exp(-k (I(z) - goal)) over z from where I is the goal.

    An upper sum, since I grows with z; beyond the last point u / (1 + u)^2 is at most 1 / (1 + u),
    and the rest is a power of 1 + u.
    """
    k = float(draws)
    first = _minimum(_rate_below, goal, math.inf)
    slope = k * first * (first + 3) / (1 + first) ** 3
    last = 1000.0 * (1.0 + first)
    near = np.linspace(0.0, 60.0 / slope, 60_001)
    far = np.geomspace(60.0 / slope, last, 20_001)[1:] if 60.0 / slope < last else np.zeros(0)
    u = first + np.concatenate([near, far])
    rate = np.log1p(u) - u / (1 + u) ** 2
    z = u + 2 * np.log1p(u)
    total = float((np.exp(-k * (rate[:-1] - goal)) * np.diff(z)).sum())
    end = float(u[-1])
    rest = k * goal + k / (1 + end) - (k - 1) * math.log1p(end) + math.log(3.0 / (k - 1))
    # Rates are computed to 1e-15, times k in the exponent.
    return (total + math.exp(min(rest, 700.0))) * math.exp(4 * _CARE * k) * (1 + 1e-9)
