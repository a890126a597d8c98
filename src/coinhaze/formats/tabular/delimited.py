"""Delimited text read strictly: by column name, every field as text, faults with file and line."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa
import pyarrow.csv

from coinhaze.errors import InputError, LedgerError
from coinhaze.formats.compression import UNREADABLE, bytes_read, errors_of_reading, open_plain
from coinhaze.formats.tabular.column_use import in_small_letters
from coinhaze.ledger.checks import Place
from coinhaze.ledger.columns import CheckedColumns

if TYPE_CHECKING:
    from _csv import Reader as _CsvRows

# Bytes read at a time: large enough for vector units, small enough for memory.
BLOCK = 8 << 20
LONGEST_HEADER = 1 << 16
WHOLE_ROW = "the line is cut, or has a separator too many: export or download the file again"
AS_UTF_8 = "export the table again, or save it as UTF-8"
SEPARATORS = (",", ";", "\t")


def fields(count: int) -> str:
    """Count the fields of a row, in words.

    >>> fields(1), fields(5)
    ('1 field', '5 fields')
    """
    return f"{count} field{'' if count == 1 else 's'}"


def stream_text(
    path: Path,
    columns: Sequence[str],
    *,
    optional: Sequence[str] = (),
    delimiter: str = ",",
    null: str | None = None,
    quoted: bool = True,
    file: BinaryIO | None = None,
    names: Sequence[str] | None = None,
) -> Iterator[Piece]:
    """Read the named columns of a file with a header, the optional ones if it has them.

    Blank lines are no rows: they hold nothing, not even separators.
    `null` is the text that stands for nothing. Where fields are not `quoted`, quotes are letters.
    `names` are those in the header, if `file` is open and the header was read from it.
    """
    with errors_of_reading(path), open_file(path) if file is None else file as text:
        if file is None or names is None:
            names = read_header(text, path, delimiter)
        chosen = _chosen(path, names, columns, optional)
        first = 0
        try:
            for batch in _rows(text, names, chosen, delimiter, null, quoted):
                rows = CheckedColumns(
                    pa.Table.from_batches([batch]), _line_namer(path, first, quoted, delimiter)
                )
                yield Piece(rows, first, bytes_read(text, path))
                first += len(batch)
        except (pa.ArrowException, UnicodeDecodeError) as error:
            raise _explained(path, first, names, delimiter, quoted, error) from None


def _line_namer(path: Path, first: int, quoted: bool, delimiter: str) -> Place:
    """Say on which line of the file rows stand, the first of which has this number."""
    return lambda row: f"{path}:{line_of(path, first + row, delimiter, quoted=quoted)}"


def read_text(path: Path, columns: Sequence[str], *, optional: Sequence[str] = ()) -> pa.Table:
    """Read the named columns of a whole file, whatever the letter case of its header."""
    file, names, delimiter = open_text(path)
    chosen = [*columns, *(name for name in optional if name in names)]
    none = pa.table({name: pa.array([], pa.string()) for name in chosen})
    pieces = stream_text(
        path, columns, optional=optional, delimiter=delimiter, file=file, names=names
    )
    return pa.concat_tables([none, *(piece.columns.table for piece in pieces)])


def open_text(path: Path) -> tuple[BinaryIO, list[str], str]:
    """Open a file, give the names in its first line in small letters, and tell what parts them.

    What follows in the file are its rows.
    """
    file = open_file(path)
    try:
        names, delimiter = read_names(file, path)
        return file, in_small_letters(names), delimiter
    except BaseException:
        file.close()
        raise


def header_of(path: Path) -> list[str]:
    """Give the names in the first line of a file, in small letters."""
    file, names, _ = open_text(path)
    file.close()
    return names


def open_file(path: Path) -> BinaryIO:
    """Open a file of text, unpacked."""
    with errors_of_reading(path):
        return open_plain(path, arrow=True)


def read_header(file: BinaryIO, path: Path, delimiter: str) -> list[str]:
    """Read the names in the first line of an open file."""
    return header_names(_first_line(file, path), delimiter)


def read_names(file: BinaryIO, path: Path) -> tuple[list[str], str]:
    """Read the names in the first line of an open file, and tell what parts them."""
    line = _first_line(file, path)
    delimiter = separator_of(line)
    return header_names(line, delimiter), delimiter


def _first_line(file: BinaryIO, path: Path) -> str:
    with errors_of_reading(path):
        line = bytes(file.readline(LONGEST_HEADER))
    try:
        return line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        raise LedgerError(f"{path}:1", "text that is not UTF-8", value=line, fix=AS_UTF_8) from None


def separator_of(line: str) -> str:
    """Tell what parts the names of a header: what gives the most of them, a comma if in doubt.

    >>> separator_of("from;to;amount"), separator_of("from"), separator_of('a\\tb,c\\td')
    (';', ',', '\\t')
    """
    return max(SEPARATORS, key=lambda separator: len(header_names(line, separator)))


def _chosen(
    path: Path, names: Sequence[str], columns: Sequence[str], optional: Sequence[str]
) -> list[str]:
    for column in (*columns, *optional):
        if names.count(column) != 1 and (column in columns or column in names):
            fault = "no column" if column not in names else "more than one column"
            fix = f"the header is {','.join(columns)}"
            raise LedgerError(f"{path}:1", f"{fault} {column!r}", value=list(names), fix=fix)
    return [*columns, *(c for c in optional if c in names)]


def _rows(
    text: BinaryIO,
    names: Sequence[str],
    columns: Sequence[str],
    delimiter: str,
    null: str | None,
    quoted: bool,
) -> Iterator[pa.RecordBatch]:
    # Columns that are not chosen may share a name.
    numbered = [name if name in columns else f"{name} {k}" for k, name in enumerate(names)]
    head = text.read(BLOCK)
    if not head:
        return  # a day without rows is a valid file
    # Arrow reads ahead in threads of its own. One that is about to enter Python, be it to release
    # memory of Python's, when the process ends after an error, aborts it: what fits in a block is
    # copied to memory of Arrow's, and what does not is read to its end before an error goes on.
    rest = None
    if len(head) < BLOCK:
        text.close()  # not when somebody collects a reader that an error left behind
        native = pa.BufferOutputStream()
        native.write(head)
        source: Any = pa.BufferReader(native.getvalue())
    else:
        rest = _Joined(head, text)
        source = io.BufferedReader(rest, BLOCK)
    reader = pa.csv.open_csv(
        source,
        read_options=pa.csv.ReadOptions(block_size=BLOCK, column_names=numbered),
        parse_options=pa.csv.ParseOptions(
            delimiter=delimiter,
            quote_char='"' if quoted else False,
            double_quote=quoted,
            newlines_in_values=quoted,
            ignore_empty_lines=True,
        ),
        convert_options=pa.csv.ConvertOptions(
            include_columns=list(columns),
            column_types=dict.fromkeys(columns, pa.string()),
            null_values=[] if null is None else [null],
            strings_can_be_null=null is not None,
            quoted_strings_can_be_null=False,
        ),
    )
    try:
        yield from reader
    finally:
        if rest is not None:
            rest.end()
            with contextlib.suppress(*UNREADABLE, UnicodeDecodeError):
                for _ in reader:
                    pass


class _Joined(io.RawIOBase):
    """What was read of a file already, and the rest of it."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head, self._rest = memoryview(head), rest
        self._ended = False

    def end(self) -> None:
        """Give nothing from now on."""
        self._ended = True

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._ended:
            return 0
        room = memoryview(buffer).cast("B")
        part = self._head[: len(room)] if self._head else memoryview(self._rest.read(len(room)))
        self._head = self._head[len(part) :]
        room[: len(part)] = part
        return len(part)


def header_names(line: str, delimiter: str = ",") -> list[str]:
    """Part the names in a header, some of which may be quoted.

    >>> header_names('"from","value, wei"')
    ['from', 'value, wei']
    """
    if f'"{delimiter}' in line or f'{delimiter}"' in line:
        with contextlib.suppress(csv.Error):
            return next(csv.reader([line], delimiter=delimiter), [])
    return [name.strip('"') for name in line.split(delimiter)]


def line_of(path: Path, row: int, delimiter: str = ",", *, quoted: bool = True) -> int:
    """Find the line on which a row stands, counted from 1; rows from 0, after the header.

    Rows and lines part where a quoted field holds a line break, and after blank lines.
    """
    with open_plain(path) as file:
        text = io.TextIOWrapper(file, "utf-8-sig", errors="replace", newline="")
        before, number = 0, -2  # the header is before the first row
        lines = _csv_rows(text, delimiter, quoted)
        for fields_of_row in lines:
            number += bool(fields_of_row)
            if number == row and fields_of_row:
                return before + 1
            before = lines.line_num
    return row + 2


def _csv_rows(lines: Iterable[str], delimiter: str, quoted: bool) -> _CsvRows:
    """Part lines into rows as Arrow does; a blank line is an empty one."""
    if quoted:
        return csv.reader(lines, delimiter=delimiter)
    return csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)


def _explained(
    path: Path,
    first: int,
    names: Sequence[str],
    delimiter: str,
    quoted: bool,
    error: Exception,
) -> InputError:
    """Say what is wrong and where; Arrow counts rows from the beginning of a block."""
    what = str(error).splitlines()[0]
    if "columns, got" in what or "UTF8" in what or "utf-8" in what:
        with contextlib.suppress(csv.Error, *UNREADABLE), open_plain(path) as file:
            fault = _first_fault(file, path, len(names), delimiter, quoted)
            if fault is not None:
                return fault
    return InputError(f"{path}: cannot be read, at or after line {first + 2}: {what}")


def _first_fault(
    file: BinaryIO, path: Path, width: int, delimiter: str, quoted: bool
) -> LedgerError | None:
    """Find the first row that is not UTF-8, or has another number of fields than the header."""

    def lines() -> Iterator[str]:
        for number, line in enumerate(file, 1):
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError:
                where = f"{path}:{number}"
                raise LedgerError(
                    where, "text that is not UTF-8", value=line, fix=AS_UTF_8
                ) from None

    rows = _csv_rows(lines(), delimiter, quoted)
    before = 0
    try:
        for row in rows:
            if row and len(row) != width:
                what = f"{fields(len(row))} where the header has {width}"
                return LedgerError(
                    f"{path}:{before + 1}", what, value=delimiter.join(row), fix=WHOLE_ROW
                )
            before = rows.line_num
    except LedgerError as fault:
        return fault
    return None


@dataclass(frozen=True, eq=False)
class Piece:
    """Some rows of a file."""

    columns: CheckedColumns
    first: int  # the number of its first row, counted from 0
    read: int  # bytes of the file, as it lies on the disk, read so far
