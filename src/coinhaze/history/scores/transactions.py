"""Scores of every transaction of a history, spent or not: a Parquet file for each piece."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from coinhaze.errors import InputError, UsageError
from coinhaze.history import files
from coinhaze.history.files import PieceFiles
from coinhaze.history.index.row_kernels import NO_ROW
from coinhaze.history.scores.score import RowScores
from coinhaze.history.tape import Tape
from coinhaze.report.files import write_whole


def refuse_used(folder: Path) -> None:
    """Refuse a folder that holds something."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: is there already and is not empty; write elsewhere")
    if not folder.absolute().parent.is_dir():
        raise InputError(f"{folder}: cannot be written: there is no folder {folder.parent}")


def write_transactions(tape: Tape, rows: RowScores, folder: Path) -> list[Path]:
    """Write the scores of all rows by transaction; give the files."""
    folder.mkdir(exist_ok=True)
    written = []
    first = 0
    for piece in tape.manifest.pieces:
        table = _table(tape, piece, first, rows)
        path = folder / f"{piece.number:06}.parquet"
        write_whole(path, partial(pa.parquet.write_table, table))
        written.append(path)
        first += piece.transactions
    return written


def _table(tape: Tape, piece: PieceFiles, first: int, rows: RowScores) -> pa.Table:
    transactions = tape.table(piece, "transactions")
    row = files.column(transactions, "row")
    moves = row != NO_ROW
    at = np.where(moves, row, 0).astype(np.int64)
    names, heights, _ = tape.transactions(np.arange(first, first + piece.transactions))
    columns = {"bits": rows.bits, "bits_low": rows.bits_low, "bits_high": rows.bits_high}
    columns |= {"miss": rows.miss}
    empty = np.zeros(len(row))
    return pa.table(
        {"txid": names, "height": pa.array(heights, mask=heights < 0)}
        | {
            name: pa.array(column[at] if len(column) else empty, mask=~moves)
            for name, column in columns.items()
        }
        | {"steps": pa.array(files.column(transactions, "steps") + tape.to_coin, mask=~moves)}
    )
