"""Hot loop over the letters of names. Slow twin in the tests: tests/explore/test_search.py."""

from __future__ import annotations

import numpy as np

from coinhaze.kernels import kernel

LETTERS = 8


@kernel()
def first_letters(offsets, data):
    """Give the first eight bytes of each text as one number that sorts as they do."""
    keys = np.zeros(len(offsets) - 1, np.uint64)
    for i in range(len(keys)):
        first = offsets[i]
        length = min(offsets[i + 1] - first, LETTERS)
        key = np.uint64(0)
        for k in range(LETTERS):
            letter = np.uint64(data[first + k]) if k < length else np.uint64(0)
            key = (key << np.uint64(8)) | letter
        keys[i] = key
    return keys
