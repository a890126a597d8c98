"""Hot loops over the letters of Arrow text: hashes of names, and names that end in a number.

Slow twins in the tests: tests/ledger/test_text.py.
"""

from __future__ import annotations

import numpy as np
from numba import njit

COLON, ZERO, NINE = 58, 48, 57


@njit(cache=True, nogil=True)
def hash_texts(offsets, data):
    """Give each text a 64-bit hash (FNV-1a), the same on every machine."""
    hashes = np.empty(len(offsets) - 1, np.uint64)
    for i in range(len(hashes)):
        h = np.uint64(0xCBF29CE484222325)
        for k in range(offsets[i], offsets[i + 1]):
            h = (h ^ np.uint64(data[k])) * np.uint64(0x100000001B3)
        hashes[i] = h
    return hashes


@njit(cache=True, nogil=True)
def number_lengths(offsets, data):
    """Count the digits each text ends in after a colon; -1 if it is digits only, 0 if neither."""
    lengths = np.zeros(len(offsets) - 1, np.int64)
    for i in range(len(lengths)):
        first, last = offsets[i], offsets[i + 1]
        k = last
        while k > first and ZERO <= data[k - 1] <= NINE:
            k -= 1
        if k == last:
            continue
        if k == first:
            lengths[i] = -1
        elif data[k - 1] == COLON:
            lengths[i] = last - k
    return lengths
