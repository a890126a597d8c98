"""Names found by how they begin: a column of millions sorted by its first letters, once."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Ints
from coinhaze.ledger.text import text_buffers
from coinhaze.web.desk_prefixes_kernels import LETTERS, first_letters


class Prefixes:
    """Rows of a column by the beginning of their text.

    >>> Prefixes(pa.array(["apple", "apricot", "pear"])).rows("ap", most=5).tolist()
    [0, 1]
    """

    def __init__(self, column: pa.StringArray) -> None:
        self.column = column

    def rows(self, prefix: str, *, most: int) -> Ints:
        """Give the first rows, by name, that begin so; `most` at most."""
        octets = prefix.encode()
        low = octets[:LETTERS].ljust(LETTERS, b"\0")
        high = octets[:LETTERS].ljust(LETTERS, b"\xff")
        keys, order = self._sorted
        first = int(np.searchsorted(keys, np.uint64(int.from_bytes(low, "big"))))
        last = int(np.searchsorted(keys, np.uint64(int.from_bytes(high, "big")), side="right"))
        found = order[first:last]
        if len(octets) > LETTERS:
            begins = pc.starts_with(self.column.take(pa.array(found)), prefix)
            found = found[begins.to_numpy(zero_copy_only=False)]
        found = found[: max(most, 1)]
        return found[np.argsort(np.array(self.column.take(pa.array(found)).to_pylist()))]

    @cached_property
    def _sorted(self) -> tuple[npt.NDArray[np.uint64], Ints]:
        keys = first_letters(*text_buffers(self.column))
        order = np.argsort(keys, kind="stable")
        return keys[order], order.astype(np.int32 if len(order) < 2**31 else np.int64)
