"""Columns of names: found by hash instead of by a dictionary of millions of Python strings."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Ints
from coinhaze.ledger.frozen import narrow

Hashes = npt.NDArray[np.uint64]
Octets = npt.NDArray[np.uint8]


def text_buffers(column: pa.Array) -> tuple[npt.NDArray[Any], Octets]:
    """Give the offsets and the letters of a column of text, without copying."""
    _, offsets, data = column.buffers()
    kind = np.int64 if pa.types.is_large_string(column.type) else np.int32
    at = np.frombuffer(offsets or b"", dtype=kind)[column.offset : column.offset + len(column) + 1]
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
            asked = text_hashes(pa.array([text], pa.string()))[0]
        except UnicodeEncodeError:  # half a surrogate pair is in no Arrow column
            return np.zeros(0, dtype=np.int64)
        hashes, order = self._sorted
        first, last = np.searchsorted(hashes, asked), np.searchsorted(hashes, asked, side="right")
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
