"""Values over arrays: nobody can change them once they are built, and no memory is kept idle."""

from __future__ import annotations

import contextlib
import ctypes
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_MAXIMUM = 2**31 - 1


def freeze(value: Any) -> None:
    """Make every numpy array among a dataclass's fields read-only, and no wider than it must be."""
    for field in fields(value):
        array = getattr(value, field.name)
        if isinstance(array, np.ndarray):
            object.__setattr__(value, field.name, narrow(array))
            getattr(value, field.name).setflags(write=False)


def narrow(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Give whole numbers in four bytes each where all of them fit.

    Mind that such a column stays in four bytes when it is multiplied by a plain number.

    >>> narrow(np.array([1, 2])).dtype, narrow(np.array([1, 2**40])).dtype
    (dtype('int32'), dtype('int64'))
    """
    if (
        array.dtype != np.int64
        or array.max(initial=0) > _MAXIMUM
        or array.min(initial=0) < -_MAXIMUM
    ):
        return array
    return array.astype(np.int32)


def release_unused() -> None:
    """Hand memory that was freed back to the system, where its allocators allow it.

    Building a large graph or eliminating a large component frees gigabytes of small pieces, which
    the C library would otherwise keep.
    """
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
