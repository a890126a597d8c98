r"""Rows of Blockchair's dumps, whatever the chain: which table it is, and what is in a block.

Fields are separated by tabs and never quoted, unless a program wrote them again with commas or
semicolons; `\N` is null. A block number of -1 is the mempool's:
such rows are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.errors import LedgerError
from coinhaze.formats.tabular.column_use import in_small_letters
from coinhaze.formats.tabular.delimited import Piece, open_text, stream_text
from coinhaze.formats.tabular.table_rows import TableLayout, names_in
from coinhaze.ledger.batches import Batch, table_of
from coinhaze.ledger.columns import HIGHEST_BLOCK, CheckedColumns

MEMPOOL = "-1"


@dataclass(frozen=True, eq=False)
class Mined:
    """The rows of a piece that are in a block."""

    columns: CheckedColumns
    row: pa.Array  # numbers of the rows in the file
    read: int

    def repeat(self, value: object) -> pa.Array:
        """Give a column of one value."""
        return pa.repeat(pa.scalar(value), len(self.columns))


def is_one_of(layouts: Sequence[TableLayout], head: bytes) -> bool:
    """Tell whether a file that begins so has a header of one of these tables."""
    return _layout(layouts, names_in(head, any_case=True)) is not None


def needs_of(
    layouts: Sequence[TableLayout], names: Sequence[str]
) -> list[tuple[list[str], list[str]]]:
    """Give for each table the columns it needs that are there, and those that are not."""
    return [layout.present(in_small_letters(names)) for layout in layouts]


def read_dump(
    path: Path, layouts: Sequence[TableLayout], *, what: str
) -> tuple[TableLayout, list[str], Iterator[Mined]]:
    """Tell which table a file is, and give its columns' names and its rows.

    `what` says what the file is not if it is none of the tables.
    """
    file, names, delimiter = open_text(path)
    layout = _layout(layouts, names)
    if layout is None:
        file.close()
        raise LedgerError(f"{path}:1", f"no {what}", value=names[:40])
    pieces = stream_text(
        path, layout.needed, optional=layout.optional, delimiter=delimiter, null="\\N",
        quoted=delimiter != "\t", file=file, names=names,
    )  # fmt: skip
    return layout, names, (_mined(piece, layout.needed[0]) for piece in pieces)


def blocks_batch(mined: Mined, hashes: pa.Array) -> Batch:
    """Make a batch of a table of blocks; it tells no block before."""
    columns = mined.columns
    time = columns.moments("time")
    columns.require("time", time)
    height = columns.numbers("id", HIGHEST_BLOCK)
    table = table_of("blocks", {"height": height, "hash": hashes, "time": time})
    return Batch({"blocks": table}, lambda _, row: columns.where(row), mined.read)


def _layout(layouts: Sequence[TableLayout], names: Sequence[str]) -> TableLayout | None:
    return next((layout for layout in layouts if layout.fits(names)), None)


def _mined(piece: Piece, block: str) -> Mined:
    columns = piece.columns
    kept = pc.fill_null(pc.not_equal(columns.table[block], MEMPOOL), True)
    at = np.flatnonzero(np.asarray(kept))
    row = pa.array(at + piece.first)
    if len(at) == len(kept):
        return Mined(columns, row, piece.read)
    table = columns.table.take(pa.array(at))
    return Mined(CheckedColumns(table, lambda r: columns.where(int(at[r]))), row, piece.read)
