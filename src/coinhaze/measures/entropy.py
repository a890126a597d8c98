"""The entropy family: how uncertain a distribution over sources is, in bits."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from coinhaze.amounts import Floats
from coinhaze.measures.elementary import exp2, log2


def shannon(p: Iterable[float]) -> float:
    """Give the Shannon entropy in bits: the paper's U.

    >>> shannon([0.2, 0.2, 0.4, 0.2])
    1.9219280948873623
    """
    return math.fsum(-x * math.log2(x) for x in p if x > 0)


def renyi(p: Iterable[float], order: float) -> float:
    """Give the Renyi entropy of an order: 0 Hartley, 1 Shannon, inf min-entropy.

    >>> renyi([0.5, 0.25, 0.25], 2)
    1.415037499278844
    """
    p = [x for x in p if x > 0]
    if order < 0:
        raise ValueError(f"order of a Renyi entropy is >= 0, not {order}")
    if order == 1:
        return shannon(p)
    if math.isinf(order):
        return -math.log2(max(p))
    return math.log2(math.fsum(x**order for x in p)) / (1 - order)


def renyi_from_power(power: Floats, order: float) -> Floats:
    """Turn sums of p^order into Renyi entropies of that order."""
    with np.errstate(divide="ignore"):
        return log2(power) / (1 - order)


def conditional(entropy: Floats, mass: Floats) -> Floats:
    """Give the entropy of part of a distribution, given that part; NaN where it has no mass.

    `entropy` is the sum of -p log2 p over the part, `mass` the sum of p.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(mass > 0, entropy / mass + log2(mass), np.nan)


def effective_number(bits: Floats) -> Floats:
    """Give the number of equally likely sources that would be as uncertain."""
    return exp2(bits)


def degree_of_anonymity(bits: Floats, sources: Floats) -> Floats:
    """Give bits as a share of what that many equally likely sources would have; NaN for one."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sources > 1, bits / log2(sources), np.nan)
