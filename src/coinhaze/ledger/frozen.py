"""Values over arrays: nobody can change them once they are built, and no memory is kept idle."""

from __future__ import annotations

import contextlib
import ctypes
from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa


def freeze(value: Any) -> None:
    """Make every numpy array among a dataclass's fields read-only."""
    for field in fields(value):
        array = getattr(value, field.name)
        if isinstance(array, np.ndarray):
            array.setflags(write=False)


def release_unused() -> None:
    """Hand memory that was freed back to the system, where its allocators can be told to.

    Building a large graph or eliminating a large component frees gigabytes of small pieces, which
    the C library would otherwise keep.
    """
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
