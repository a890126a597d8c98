"""Hot loop of synthetic names: scrambled counters written as hexadecimal digits.

Slow twin in the tests: tests/simulate/test_coin_weeks.py, the same in Python's integers.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def write_names(text, at, digits, seed, digit):
    """Write `digits` digits from column `at` on into every row: words of splitmix64, high first."""
    n = len(text)
    words = (digits + 15) // 16
    for row in range(n):
        for word in range(words):
            z = (np.uint64(row * words + word) + seed) * np.uint64(0x9E3779B97F4A7C15)
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            z = z ^ (z >> np.uint64(31))
            for k in range(min(16, digits - 16 * word)):
                text[row, at + 16 * word + k] = digit[(z >> np.uint64(60 - 4 * k)) & np.uint64(15)]
