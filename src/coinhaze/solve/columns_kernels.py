"""Hot loop of column folding: sums by group that round once, however many terms they have.

Slow twin in the tests: math.fsum.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def exact_sums(group, values, n):
    """Add up the values, none negative, of each group 0 .. n-1 (Neumaier)."""
    total = np.zeros(n)
    lost = np.zeros(n)
    for k in range(len(values)):
        g = group[k]
        new = total[g] + values[k]
        if total[g] >= values[k]:
            lost[g] += (total[g] - new) + values[k]
        else:
            lost[g] += (values[k] - new) + total[g]
        total[g] = new
    return total + lost
