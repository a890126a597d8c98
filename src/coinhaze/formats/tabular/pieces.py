"""Pieces of a table in a file: some rows at a time, with how far the file is read."""

from __future__ import annotations

from dataclasses import dataclass

from coinhaze.ledger.columns import CheckedColumns


@dataclass(frozen=True, eq=False)
class Piece:
    """Some rows of a file."""

    columns: CheckedColumns
    first: int  # the number of its first row, counted from 0
    read: int  # bytes of the file, as it lies on the disk, read so far
