"""Hot loop of column folding: sums by group that round once, however many terms they have.

Slow twin in the tests: math.fsum.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from coinhaze.solve.factor_kernels import add_exactly


@njit(cache=True, nogil=True)
def exact_sums(group, values, n):
    """Add up the values, none negative, of each group 0 .. n-1."""
    total = np.zeros(n)
    lost = np.zeros(n)
    for k in range(len(values)):
        g = group[k]
        total[g], lost[g] = add_exactly(total[g], lost[g], values[k])
    return total + lost
