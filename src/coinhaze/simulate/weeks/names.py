"""Synthetic names by the million: fixed-width hexadecimal, identical for the same seed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from coinhaze.simulate.weeks.names_kernels import write_names

_DIGITS = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)


def hex_names(n: int, *, seed: int, prefix: str = "", digits: int = 40) -> pa.StringArray:
    """Return n different names of `digits` hexadecimal digits after a prefix.

    The first 16 digits are a scrambled counter, so no two names of one call are equal.

    >>> hex_names(2, seed=1, prefix="0x", digits=16).to_pylist()
    ['0xa5535d75dd6e7a02', '0x5695f1cad247f5f5']
    """
    assert digits >= 16
    text = np.empty((n, len(prefix) + digits), dtype=np.uint8)
    text[:, : len(prefix)] = np.frombuffer(prefix.encode(), dtype=np.uint8)
    write_names(text, len(prefix), digits, np.uint64(seed * 0x10001), _DIGITS)
    return text_column(text)


def text_column(text: np.typing.NDArray[np.uint8]) -> pa.StringArray:
    """Convert rows of letters of one width to an Arrow column without creating Python strings."""
    n, width = text.shape
    small = (n + 1) * width < 2**31
    kind, offset = (pa.string(), np.int32) if small else (pa.large_string(), np.int64)
    offsets = np.arange(0, (n + 1) * width, width, dtype=offset)[: n + 1]
    return pa.Array.from_buffers(kind, n, [None, pa.py_buffer(offsets), pa.py_buffer(text)])
