"""Columns of names: found by hash instead of by a dictionary of millions of Python strings."""

from __future__ import annotations

from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Ints
from coinhaze.ledger.frozen import narrow

Kind = TypeVar("Kind", bound=np.generic)
Hashes = npt.NDArray[np.uint64]
Octets = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int32]

MAX_TEXT = 2**31 - 1  # bytes that Arrow's narrow offsets reach
_ROOM = 1 << 10


def text_buffers(column: pa.Array) -> tuple[npt.NDArray[Any], Octets]:
    """Give the offsets and the letters of a column of text, without copying."""
    _, offsets, data = column.buffers()
    kind = np.dtype(np.int64 if pa.types.is_large_string(column.type) else np.int32)
    offsets = offsets or b""
    # Bytes may follow the last offset, in a file that somebody made.
    at = np.frombuffer(offsets, kind, count=len(offsets) // kind.itemsize)
    at = at[column.offset : column.offset + len(column) + 1]
    if len(at) == 0:  # Arrow lets an empty column go without offsets
        at = np.zeros(1, dtype=kind)
    return at, np.frombuffer(data or b"", dtype=np.uint8)


def text_hashes(column: pa.Array) -> Hashes:
    """Hash every text of a column."""
    from coinhaze.ledger.text_kernels import hash_texts

    hashes: Hashes = hash_texts(*text_buffers(column))
    return hashes


def repeated_row(column: pa.Array) -> int:
    """Find the first row whose text stands above it already, -1 if all differ."""
    hashes = text_hashes(column)
    ordered = np.sort(hashes)
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    # Only texts of one hash can be equal; they are few, unless somebody made them so.
    rows = np.flatnonzero(np.isin(hashes, twice)) if len(twice) else np.zeros(0, dtype=np.int64)
    code = column.take(pa.array(rows)).dictionary_encode().indices.to_numpy(zero_copy_only=False)
    # Codes are given in the order met: one that is not above all before it is a repeat.
    again = np.flatnonzero(code[1:] <= np.maximum.accumulate(code[:-1]))
    return int(rows[again[0] + 1]) if len(again) else -1


class TextIndex:
    """The rows of a column by their text, sorted by hash at the first question.

    >>> TextIndex(pa.array(["a", "b", "a"])).rows("a").tolist()
    [0, 2]
    """

    def __init__(self, column: pa.StringArray) -> None:
        self.column = column

    def __len__(self) -> int:
        return len(self.column)

    def rows(self, text: str) -> Ints:
        """Find all rows that hold a text, in their order."""
        try:
            wanted = text_hashes(pa.array([text], pa.string()))[0]
        except UnicodeEncodeError:  # half a surrogate pair is in no Arrow column
            return np.zeros(0, dtype=np.int64)
        hashes, order = self._sorted
        first, last = np.searchsorted(hashes, wanted), np.searchsorted(hashes, wanted, side="right")
        found = order[first:last].astype(np.int64)
        same = pc.equal(self.column.take(pa.array(found)), text).to_numpy(zero_copy_only=False)
        rows: Ints = found[same.astype(np.bool_)]
        return rows

    def row(self, text: str) -> int:
        """Find the first row that holds a text, -1 if none does."""
        rows = self.rows(text)
        return int(rows[0]) if len(rows) else -1

    @cached_property
    def _sorted(self) -> tuple[Hashes, Ints]:
        hashes = text_hashes(self.column)
        order = np.argsort(hashes, kind="stable")
        return hashes[order], narrow(order)


class Names:
    """Distinct texts, numbered from 0 in the order they were met, without a Python string each.

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
        wide = bool(ends[-1] > MAX_TEXT)
        ends = ends if wide else ends.astype(np.int32)
        letters = self._letters[: int(ends[-1])]
        kind = pa.large_string() if wide else pa.string()
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(letters)]
        return pa.Array.from_buffers(kind, self._count, buffers)

    def release(self, order: pa.Array) -> pa.Array:
        """Give texts by number, in the order requested, and forget all: the memory is needed."""
        texts = self.texts().take(order)
        self._forget()
        return texts

    def _numbers(self, column: pa.Array, *, adds: bool) -> Numbers:
        from coinhaze.ledger.text_kernels import number_texts

        numbers: Numbers = np.full(len(column), -1, dtype=np.int32)
        present = slice(None) if not column.null_count else np.asarray(column.is_valid())
        texts = column.drop_null() if column.null_count else column
        offsets, data = text_buffers(texts)
        if adds:
            self._make_room(len(texts), int(offsets[-1] - offsets[0]))
        numbers[present], self._count = number_texts(
            offsets, data, self._slots, self._ends, self._letters, self._count, adds
        )
        return numbers

    def _make_room(self, texts: int, letters: int) -> None:
        """Double at least, so that what is there is copied seldom."""
        from coinhaze.ledger.text_kernels import spread_slots

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
