"""Large arrays: aligned, zero at first, and grown without touching what they hold."""

from __future__ import annotations

import mmap
from collections.abc import MutableMapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from coinhaze.errors import ResourceError

_HUGE = 1 << 22  # bytes of an array that is worth huge pages
# Arrays of more than few entries have room for many at once: what is not used takes no memory.
_FEW, _MANY = 1 << 16, 1 << 22

Array = npt.NDArray[Any]
Key = TypeVar("Key")


def zeros(shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Give an array of zeros that begins with a page: its rows straddle no cache lines needlessly.

    >>> zeros((3, 2), np.int64).sum(), zeros((0, 2), np.int64).shape
    (np.int64(0), (0, 2))
    """
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    try:
        memory = mmap.mmap(-1, max(size, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError):
        raise _too_large(shape, dtype) from None
    return _over(memory, shape, dtype)


def grow(held: MutableMapping[Key, Any], key: Key, needed: int) -> None:
    """Give an array of `zeros` room for so many entries; new ones are zero.

    Its pages are moved, not copied, unless something else refers to it.

    >>> some = {"some": zeros((1, 2), np.int64)}
    >>> some["some"][0] = 1, 2
    >>> grow(some, "some", 3)
    >>> some["some"].tolist()
    [[1, 2], [0, 0], [0, 0]]
    """
    array = held[key]
    if needed <= len(array):
        return
    size = max(needed, 3 * len(array))
    if needed > _FEW:
        size = max(size, _MANY)
    shape, kind, before = (size, *array.shape[1:]), array.dtype, len(array)
    memory: Any = array
    while isinstance(memory, np.ndarray):
        memory = memory.base
    memory = memory.obj
    held[key] = array = None  # memory that an array lies over is not moved
    try:
        memory.resize(int(np.prod(shape)) * kind.itemsize)
        held[key] = _over(memory, shape, kind)
    except (BufferError, SystemError):  # in use, or a system that cannot move pages
        held[key] = zeros(shape, kind)
        held[key][:before] = _over(memory, (before, *shape[1:]), kind)
    except (OSError, OverflowError):
        held[key] = _over(memory, (before, *shape[1:]), kind)
        raise _too_large(shape, kind) from None


def _over(memory: mmap.mmap, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    if len(memory) >= _HUGE and hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, dtype, int(np.prod(shape))).reshape(shape)


def _too_large(shape: tuple[int, ...], dtype: npt.DTypeLike) -> ResourceError:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return ResourceError(f"not enough memory: an array of {shape[0]:,} entries, {size:,} bytes")
