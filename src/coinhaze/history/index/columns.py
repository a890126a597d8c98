"""The columns of a piece of a history while it is made."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coinhaze.history import files
from coinhaze.history.arrays import grow, zeros
from coinhaze.ledger.coin_blocks import HASH


class PieceColumns:
    """Columns of the piece that is being made, which are used again for the next."""

    kinds: Mapping[str, Mapping[str, npt.DTypeLike]] = {
        "rows": {"slot": np.uint32, "terms": np.uint32},
        "terms": {"slot": np.uint32, "weight": np.float64},
        "facts": {
            "rounded": np.float64,
            "sources": np.uint32,
            "depth": np.uint32,
            "transaction": np.uint32,
        },
        "transactions": {"id": np.dtype((np.void, HASH)), "row": np.uint32, "steps": np.float64},
        # Coins and value that a row has won or lost in a month.
        "changes": {"row": np.uint32, "coins": np.int32, "value": np.int64, "month": np.int16},
    }

    def __init__(self) -> None:
        self.arrays: dict[tuple[str, str], npt.NDArray[Any]] = {
            (table, name): zeros((0,), kind)
            for table, kinds in self.kinds.items()
            for name, kind in kinds.items()
        }

    def room(self, rows: int, terms: int, transactions: int, changes: int) -> None:
        """Make room for so many in all."""
        sizes = {"rows": rows, "facts": rows, "terms": terms, "transactions": transactions}
        sizes["changes"] = changes
        for table, name in self.arrays:
            grow(self.arrays, (table, name), sizes[table])

    @property
    def changes(self) -> tuple[npt.NDArray[Any], ...]:
        """The columns of changes."""
        return tuple(self.arrays["changes", name] for name in self.kinds["changes"])

    def table(self, table: str, length: int) -> dict[str, Any]:
        """Give the columns of a table, so long."""
        return {name: self.arrays[table, name][:length] for name in self.kinds[table]}


def write_transactions(
    file: Path, made: dict[str, npt.NDArray[Any]], names: pa.Array | None
) -> tuple[int, str]:
    """Write the table of a piece's transactions; `names` are given where ids are hashes of them."""
    octets = made.pop("id")
    hashes = pa.Array.from_buffers(pa.binary(HASH), len(octets), [None, pa.py_buffer(octets)])
    # A coin's maker is found by the first two bytes of its id: these are soon looked through.
    marks = np.ascontiguousarray(octets.view(np.uint16).reshape(-1, HASH // 2)[:, 0])
    named = {"id": hashes} if names is None else {"id": names, "hash": hashes}
    return files.write_table(file, pa.table({**named, "mark": marks, **made}))
