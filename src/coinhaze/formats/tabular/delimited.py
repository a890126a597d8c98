"""Delimited text streamed strictly: by column name, every field as text, faults with place."""

from __future__ import annotations

import contextlib
import csv
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from coinhaze.errors import InputError, LedgerError
from coinhaze.formats.compression import (
    GZIP,
    UNREADABLE,
    XZ,
    ZLIB,
    ZSTD,
    capped,
    open_plain,
    packing,
)
from coinhaze.formats.tabular.csv_table import line_of

# Bytes read at a time: large enough for vector units, small enough for memory.
BLOCK = 8 << 20


@dataclass(frozen=True, eq=False)
class Stretch:
    """Some rows of a file: the asked columns as text."""

    path: Path
    table: pa.Table
    first: int  # the number of its first row, counted from 0 after the header
    read: int  # bytes of the file, as it lies on the disk, read so far
    quoted: bool

    def where(self, row: int) -> str:
        """Say on which line of the file a row of this stretch stands."""
        line = line_of(self.path, self.first + row) if self.quoted else self.first + row + 2
        return f"{self.path}:{line}"


def stream_text(
    path: Path,
    columns: Sequence[str],
    *,
    optional: Sequence[str] = (),
    delimiter: str = ",",
    null: str | None = None,
    quoted: bool = True,
    names: Sequence[str] | None = None,
) -> Iterator[Stretch]:
    """Read the named columns of a file with a header, the optional ones if it has them.

    `null` is the text that stands for nothing. Where fields are not `quoted`, quotes are letters.
    `names` are those in the header, if it was read already.
    """
    names = header_of(path, delimiter) if names is None else names
    for column in (*columns, *optional):
        if names.count(column) != 1 and (column in columns or column in names):
            fault = "no column" if column not in names else "more than one column"
            raise LedgerError(f"{path}:1", f"{fault} {column!r}", value=list(names))
    chosen = [*columns, *(c for c in optional if c in names)]
    first = 0
    try:
        raw = pa.OSFile(os.fsencode(path))
        for batch in _reader(path, raw, chosen, delimiter, null, quoted):
            yield Stretch(path, pa.Table.from_batches([batch]), first, raw.tell(), quoted)
            first += len(batch)
    except pa.ArrowException as error:
        if not _has_rows(path):
            return
        raise _explained(path, first, error) from None
    except (UnicodeDecodeError, *UNREADABLE) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None


def _reader(
    path: Path,
    raw: pa.OSFile,
    columns: Sequence[str],
    delimiter: str,
    null: str | None,
    quoted: bool,
) -> pa.csv.CSVStreamingReader:
    how = packing(path)
    source: object = raw
    if how in (GZIP, ZSTD):
        source = capped(pa.CompressedInputStream(raw, "gzip" if how == GZIP else "zstd"), path)
    elif how in (XZ, *ZLIB):
        source = open_plain(path)
    return pa.csv.open_csv(
        source,
        read_options=pa.csv.ReadOptions(block_size=BLOCK),
        parse_options=pa.csv.ParseOptions(
            delimiter=delimiter,
            quote_char='"' if quoted else False,
            double_quote=quoted,
            newlines_in_values=quoted,
            ignore_empty_lines=False,
        ),
        convert_options=pa.csv.ConvertOptions(
            include_columns=list(columns),
            column_types=dict.fromkeys(columns, pa.string()),
            null_values=[] if null is None else [null],
            strings_can_be_null=null is not None,
            quoted_strings_can_be_null=False,
        ),
    )


def header_of(path: Path, delimiter: str) -> list[str]:
    """Give the names in the first line of a file."""
    try:
        with open_plain(path) as file:
            line = bytes(file.readline(1 << 16))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except UNREADABLE as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise LedgerError(f"{path}:1", "text that is not UTF-8", value=line) from None
    return header_names(text.rstrip("\r\n"), delimiter)


def header_names(line: str, delimiter: str = ",") -> list[str]:
    """Part the names in a header, some of which may be quoted.

    >>> header_names('"from","value, wei"')
    ['from', 'value, wei']
    """
    if f'"{delimiter}' in line or f'{delimiter}"' in line:
        with contextlib.suppress(csv.Error):
            return next(csv.reader([line], delimiter=delimiter), [])
    return [name.strip('"') for name in line.split(delimiter)]


def _has_rows(path: Path) -> bool:
    """Tell whether anything stands below the header: a day without rows is a valid file."""
    try:
        with open_plain(path) as file:
            file.readline()
            return bool(file.read(1))
    except UNREADABLE:
        return True


def _explained(path: Path, first: int, error: Exception) -> InputError:
    """Say what is wrong; Arrow counts rows from the beginning of a block, so only about where."""
    what = str(error).splitlines()[0]
    return InputError(f"{path}: cannot be read, at or after line {first + 2}: {what}")
