"""Proven intervals: what is known about an entropy when the distribution is known roughly."""

from __future__ import annotations

import math

import numpy as np

from coinhaze.amounts import Floats
from coinhaze.measures.elementary import log2

LOG2_E = 1.4426950408889634
ROUNDING = 2.0**-53  # the largest relative error of one operation on floats


def at_least(width: float) -> str:
    """Write a width with two digits, rounded up: one that can be requested.

    >>> at_least(0.0421), at_least(2.0), at_least(3.14159e-9)
    ('0.043', '2.1', '3.2e-09')
    """
    digit = 10.0 ** (math.floor(math.log10(width)) - 1)
    return f"{(math.floor(width / digit) + 1) * digit:.2g}"


def phi(p: float) -> float:
    """Give -p log2 p of one probability, 0 at 0."""
    return -p * math.log2(p) if p > 0 else 0.0


def surprise(p: Floats) -> Floats:
    """Give -p log2 p of each, 0 at 0."""
    return np.where(p > 0, -p * log2(np.where(p > 0, p, 1.0)), 0.0)


def slack_from_total(error: Floats, sources: Floats) -> Floats:
    """Bound the change of entropy when probabilities change by `error` in total (Audenaert).

    Two distributions over n outcomes whose probabilities differ by 2T in all differ by at most T
    log2(n-1) + h(T) bits.
    """
    n = np.maximum(sources, 2)
    t = error / 2
    small = np.minimum(t, 0.5)
    other = -(1 - small) * np.log1p(-small) * LOG2_E
    slack = small * log2(n - 1) + surprise(small) + other
    return np.where(t < 0.5, slack, log2(n))


def slack_from_walks(expected: Floats, maximum: Floats, sources: Floats) -> Floats:
    """Bound the change of entropy when the chances of walks change by relative errors.

    `expected` is the mean error of a walk, `maximum` that of the worst one. Probabilities change
    by at most `expected` in all, and where the walks end that bring it is not far from where all
    walks end: see docs/accuracy.md.
    """
    some = np.where(expected > 0, expected, 1.0)
    apart = log2(np.maximum(maximum / some, 1.0))
    n = np.maximum(sources, 1)
    slack = 1.01 * expected * (log2(n) + apart + LOG2_E + 0.02)
    return np.where(maximum <= 0.01, slack, log2(np.maximum(n, 2)))


def slack_from_each(error: Floats | float, bits: Floats) -> Floats:
    """Bound the change of entropy when each probability changes by at most this relative error.

    The derivative of -p log2 p is -(log2 p + log2 e), so p times it adds up to at most H + log2 e.
    """
    grown = error / np.maximum(1.0 - error, 0.5)
    return grown * (bits + LOG2_E) * (1 + grown)


def from_missing_mass(
    entropy: Floats, missing: Floats, largest: Floats, sources: Floats
) -> tuple[Floats, Floats]:
    """Bound the entropy of a row of which only part of the probability was found.

    `entropy` is the sum of -p log2 p over what was found, `largest` its largest entry, `sources`
    how many sources (each history counted in full) the row can reach at all. Least: all that is
    missing belongs to the largest entry. Most: it is spread over all sources, none of it where
    anything was found.
    """
    m = np.clip(missing, 0.0, 1.0)
    low = entropy - surprise(largest) + surprise(np.minimum(largest + m, 1.0))
    high = entropy + surprise(m) + m * log2(np.maximum(sources, 1))
    return low, high
