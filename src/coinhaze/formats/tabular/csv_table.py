"""CSV read strictly: by column name, every field as text, every fault with its line."""

from __future__ import annotations

import contextlib
import csv
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from coinhaze.errors import InputError, LedgerError
from coinhaze.formats.compression import UNREADABLE, capped, open_plain, packing

_OTHERS = (".bz2", ".lz4", ".br")


def read_columns(path: Path, columns: Sequence[str], *, optional: Sequence[str] = ()) -> pa.Table:
    """Read the named columns of a CSV file with a header; the optional ones if it has them."""
    try:
        with _opened(path) as stream:
            table = pa.csv.read_csv(
                stream,
                read_options=pa.csv.ReadOptions(use_threads=False),
                parse_options=pa.csv.ParseOptions(ignore_empty_lines=False),
                convert_options=pa.csv.ConvertOptions(
                    column_types=dict.fromkeys([*columns, *optional], pa.string()),
                    strings_can_be_null=False,
                ),
            )
        names = table.column_names
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (pa.ArrowInvalid, UnicodeDecodeError, *UNREADABLE) as error:
        table = _explain(path, error)
        names = table.column_names
    for column in (*columns, *optional):
        if names.count(column) != 1 and (column in columns or column in names):
            fault = "no column" if column not in names else "more than one column"
            fix = f"the header is {','.join(columns)}"
            raise LedgerError(f"{path}:1", f"{fault} {column!r}", value=names, fix=fix)
    return table.select([*columns, *(c for c in optional if c in names)])


def _opened(path: Path) -> Any:
    """Open a file, unpacking it also by ways that only its name tells (bz2, lz4, brotli)."""
    if packing(path):
        return open_plain(path)
    if path.suffix in _OTHERS:
        return capped(pa.input_stream(str(path), compression="detect"), path)
    return pa.OSFile(os.fsencode(path))


def line_of(path: Path, row: int) -> int:
    """Find the line on which a row stands, counted from 1; rows from 0, after the header.

    Rows and lines part where a quoted field holds a line break.
    """
    with open_plain(path) as file:
        lines = csv.reader(io.TextIOWrapper(file, "utf-8-sig", errors="replace", newline=""))
        for number, _ in enumerate(lines, -1):
            if number == row - 1:
                return lines.line_num + 1
    return row + 2


def _until_fault(rows: Iterable[list[str]]) -> Iterator[list[str]]:
    """Give rows as far as Python's own CSV reader can follow."""
    with contextlib.suppress(csv.Error):
        yield from rows


def _explain(path: Path, error: Exception) -> pa.Table:
    """Say where a file breaks the rules of CSV; a header alone is a table without rows."""
    try:
        with open_plain(path) as file:
            text = file.read()
    except UNREADABLE as unreadable:
        raise InputError(f"{path}: cannot be read: {unreadable}") from None
    for number, line in enumerate(text.splitlines(), 1):
        try:
            line.decode("utf-8")
        except UnicodeDecodeError:
            where = f"{path}:{number}"
            raise LedgerError(where, "text that is not UTF-8", value=line) from None
    rows = csv.reader(io.StringIO(text.decode("utf-8-sig"), newline=""))
    header: list[str] = []
    before = 0
    for row in _until_fault(rows):
        header = header or row
        if len(row) != len(header):
            raise LedgerError(
                f"{path}:{before + 1}",
                f"a row of {len(row)} fields where the header has {len(header)}",
                value=",".join(row),
            )
        before = rows.line_num
    if header and len(text.splitlines()) == 1:
        return pa.table([pa.array([], pa.string())] * len(header), names=header)
    raise InputError(f"{path}: cannot be read as CSV: {error}") from None
