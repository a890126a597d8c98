"""Logarithms and powers of arrays with the same bits on every CPU.

Those of numpy use other code where a CPU has wider vectors, and differ in the last digit. Here are
only sums, products and quotients, each rounded once, in a fixed order.
"""

from __future__ import annotations

import math

import numpy as np

from coinhaze.amounts import Floats

_LN2 = math.log(2.0)
_SQRT_HALF = math.sqrt(0.5)
_BLOCK = 1 << 13  # so many stay in the cache from one operation to the next
# log2(m) = 2/ln 2 (t + t^3/3 + t^5/5 + ...), t = (m-1)/(m+1), |t| < 0.172: 11 terms reach 2^-54.
_LOG_SERIES = tuple(2.0 / _LN2 / (2 * k + 1) for k in range(11))
# e^u = 1 + u + u^2/2! + ..., |u| < 0.347: 13 powers reach 2^-54.
_EXP_SERIES = tuple(1.0 / math.factorial(k) for k in range(14))


def log2(x: Floats) -> Floats:
    """Give log2, right to a few units in the last place; exactly for powers of 2.

    >>> log2(np.array([0.0, 0.125, 1.0, 10.0])).tolist()
    [-inf, -3.0, 0.0, 3.321928094887362]
    """
    x = np.asarray(x, dtype=np.float64)
    found = np.empty_like(x)
    given, taken = x.reshape(-1), found.reshape(-1)
    for first in range(0, len(given), _BLOCK):
        taken[first : first + _BLOCK] = _log2(given[first : first + _BLOCK])
    return found


def _log2(x: Floats) -> Floats:
    usual = (x > 0) & (x < np.inf)
    m, exponent = np.frexp(np.where(usual, x, 1.0))
    # The mantissa lands in [sqrt 1/2, sqrt 2), so that digits are not lost near 1.
    low = m < _SQRT_HALF
    m = np.where(low, 2.0 * m, m)
    t = (m - 1.0) / (m + 1.0)
    found: Floats = (exponent - low) + t * _polynomial(_LOG_SERIES, t * t)
    if not np.all(usual):
        found[~usual] = np.where(x == 0, -np.inf, np.where(x > 0, np.inf, np.nan))[~usual]
    return found


def log(x: Floats) -> Floats:
    """Give the natural logarithm.

    >>> log(np.array([1.0, 10.0])).tolist()
    [0.0, 2.3025850929940455]
    """
    return log2(x) * _LN2


def exp2(x: Floats) -> Floats:
    """Give 2^x; exactly for whole x.

    >>> exp2(np.array([-1.0, 0.0, 0.5, 10.0])).tolist()
    [0.5, 1.0, 1.414213562373095, 1024.0]
    """
    x = np.clip(np.asarray(x, dtype=np.float64), -1100.0, 1100.0)
    whole = np.floor(np.where(np.isnan(x), 0.0, x) + 0.5)
    with np.errstate(over="ignore"):
        found: Floats = np.ldexp(
            _polynomial(_EXP_SERIES, (x - whole) * _LN2), whole.astype(np.int32)
        )
    return found


def expm1_at_most(x: Floats | float) -> Floats:
    """Bound e^x - 1 from above for x >= 0: by x + x^2 up to 1, and by infinity beyond."""
    with np.errstate(over="ignore"):
        return np.where(x <= 1.0, x + x * x, np.inf)


def _polynomial(coefficients: tuple[float, ...], x: Floats) -> Floats:
    total = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total *= x
        total += coefficient
    return total
