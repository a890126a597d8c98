"""Made-up names by the million: fixed-width hexadecimal, the same for the same seed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from coinhaze.ledger.amounts import Ints

_DIGITS = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_MULTIPLIERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def hex_names(n: int, *, seed: int, prefix: str = "", digits: int = 40) -> pa.StringArray:
    """Make n different names of `digits` hexadecimal digits after a prefix.

    The first 16 digits are a scrambled count, so no two names of one call are equal.

    >>> hex_names(2, seed=1, prefix="0x", digits=16).to_pylist()
    ['0xa5535d75dd6e7a02', '0x5695f1cad247f5f5']
    """
    assert digits >= 16
    words = [_scramble(np.arange(n), seed * 0x10001 + k) for k in range(-(-digits // 16))]
    text = np.empty((n, len(prefix) + 16 * len(words)), dtype=np.uint8)
    text[:, : len(prefix)] = np.frombuffer(prefix.encode(), dtype=np.uint8)
    for k, word in enumerate(words):
        octets = word[:, None].view(np.uint8)[:, ::-1]
        at = len(prefix) + 16 * k
        text[:, at : at + 16 : 2] = _DIGITS[octets >> 4]
        text[:, at + 1 : at + 16 : 2] = _DIGITS[octets & 15]
    width = len(prefix) + digits
    return text_column(np.ascontiguousarray(text[:, :width]))


def text_column(text: np.typing.NDArray[np.uint8]) -> pa.StringArray:
    """Turn rows of letters of one width into an Arrow column without making Python strings."""
    n, width = text.shape
    offsets = np.arange(n + 1, dtype=np.int64) * width
    column = pa.Array.from_buffers(
        pa.large_string(), n, [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    )
    return column.cast(pa.string()) if n * width < 2**31 else column


def _scramble(count: Ints, seed: int) -> np.typing.NDArray[np.uint64]:
    """Scramble numbers into others, one to one (splitmix64)."""
    with np.errstate(over="ignore"):
        z = (count.astype(np.uint64) + np.uint64(seed)) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in zip((30, 27), _MULTIPLIERS, strict=True):
            z = (z ^ (z >> np.uint64(shift))) * factor
        return z ^ (z >> np.uint64(31))
