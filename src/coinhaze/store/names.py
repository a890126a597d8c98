"""Names numbered as they stream by: millions of texts without a Python string each."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coinhaze.ledger.text import text_buffers
from coinhaze.store.kernels import number_texts, spread_slots

Kind = TypeVar("Kind", bound=np.generic)
Numbers = npt.NDArray[np.int32]

MOST_TEXT = 2**31 - 1  # bytes that Arrow's narrow offsets reach
_ROOM = 1 << 10


class Names:
    """Distinct texts, numbered from 0 in the order they were met.

    >>> names = Names()
    >>> names.add(pa.array(["carol", "alice", None, "carol"])).tolist()
    [0, 1, -1, 0]
    >>> names.find(pa.array(["bob", "alice"])).tolist()
    [-1, 1]
    >>> names.texts().to_pylist()
    ['carol', 'alice']
    """

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._count = 0
        self._slots: npt.NDArray[np.uint64] = np.zeros(2 * _ROOM, dtype=np.uint64)
        self._ends: npt.NDArray[np.int64] = np.zeros(_ROOM, dtype=np.int64)
        self._letters: npt.NDArray[np.uint8] = np.empty(_ROOM, dtype=np.uint8)

    def __len__(self) -> int:
        return self._count

    def add(self, column: pa.Array) -> Numbers:
        """Number texts, those not met before by the next numbers; nulls are -1."""
        return self._numbers(column, adds=True)

    def find(self, column: pa.Array) -> Numbers:
        """Give the numbers of texts, -1 for those never met and for nulls."""
        return self._numbers(column, adds=False)

    def texts(self) -> pa.Array:
        """Give all texts in the order of their numbers, without copying their letters."""
        ends = self._ends[: self._count + 1]
        wide = bool(ends[-1] > MOST_TEXT)
        ends = ends if wide else ends.astype(np.int32)
        letters = self._letters[: int(ends[-1])]
        kind = pa.large_string() if wide else pa.string()
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(letters)]
        return pa.Array.from_buffers(kind, self._count, buffers)

    def release(self, order: pa.Array) -> pa.Array:
        """Give texts by number, in the order asked for, and forget all: the memory is needed."""
        texts = self.texts().take(order)
        self._forget()
        return texts

    def _numbers(self, column: pa.Array, *, adds: bool) -> Numbers:
        numbers: Numbers = np.full(len(column), -1, dtype=np.int32)
        told = slice(None) if not column.null_count else np.asarray(column.is_valid())
        texts = column.drop_null() if column.null_count else column
        offsets, data = text_buffers(texts)
        if adds:
            self._make_room(len(texts), int(offsets[-1] - offsets[0]))
        numbers[told], self._count = number_texts(
            offsets, data, self._slots, self._ends, self._letters, self._count, adds
        )
        return numbers

    def _make_room(self, texts: int, letters: int) -> None:
        """Double at least, so that what is there is copied seldom."""
        count = self._count + texts
        if count >= len(self._ends):
            self._ends = _grown(self._ends, self._count + 1, count + 1)
        if self._ends[self._count] + letters > len(self._letters):
            used = int(self._ends[self._count])
            self._letters = _grown(self._letters, used, used + letters)
        if 2 * count > len(self._slots):
            slots = np.zeros(1 << (2 * count).bit_length(), dtype=np.uint64)
            spread_slots(self._slots, slots)
            self._slots = slots


def _grown(array: npt.NDArray[Kind], used: int, needed: int) -> npt.NDArray[Kind]:
    larger = np.empty(max(needed, 2 * len(array)), dtype=array.dtype)
    larger[:used] = array[:used]
    return larger
