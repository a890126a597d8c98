"""Rows of one table, in CSV, JSON lines, Parquet or Arrow: the asked columns by name."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa

from coinhaze.errors import InputError, LedgerError
from coinhaze.formats.compression import UNREADABLE, open_plain
from coinhaze.formats.tabular.arrow_columns import CheckedColumns
from coinhaze.formats.tabular.arrow_rows import (
    AT_ONCE,
    OpenedTable,
    is_arrow,
    names_at_start,
    open_arrow,
)
from coinhaze.formats.tabular.column_use import Use, plain_name, use_of
from coinhaze.formats.tabular.delimited import header_names, open_file, read_header, stream_text

BOM = b"\xef\xbb\xbf"
LONGEST = 64 << 20  # bytes a line of JSON may have


@dataclass(frozen=True, eq=False)
class TableLayout:
    """The columns of a table: those it is known by, and those it may have."""

    name: str
    needed: tuple[str, ...]
    optional: tuple[str, ...] = ()

    def use(self, names: Sequence[str], unneeded: Iterable[str] = ()) -> Use:
        """Say what becomes of the columns of a file; `unneeded` are those that are only known."""
        known = {plain_name(name) for name in unneeded}
        dollars = [name for name in names if known and name.endswith("_usd")]
        return use_of(names, (*self.needed, *self.optional), known, dollars)

    def fits(self, names: Sequence[str]) -> bool:
        """Tell whether a file with these columns is of this layout."""
        return set(self.needed) <= set(names)


@dataclass(frozen=True, eq=False)
class Piece:
    """Some rows of a file."""

    columns: CheckedColumns
    first: int  # the number of its first row
    read: int  # bytes of the file read so far


def column_names(path: Path) -> list[str]:
    """Read what the columns of a file are called: its header, first object or schema."""
    rows = open_rows(path)
    rows.close()
    return rows.names


def names_in(head: bytes) -> list[str]:
    """Name the columns a file begins with: its header, its first object or Arrow's schema."""
    if is_arrow(head):
        return names_at_start(head)
    line = head.removeprefix(BOM).split(b"\n", 1)[0]
    if line.lstrip().startswith(b"{"):
        try:
            return list(msgspec.json.decode(line, type=dict[str, msgspec.Raw]))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return []
    return header_names(line.decode("utf-8", "replace").rstrip("\r"))


def pieces(path: Path, layout: TableLayout) -> Iterator[Piece]:
    """Read the columns of a layout, some ten thousand rows at a time."""
    return open_rows(path).pieces(layout)


@dataclass(frozen=True, eq=False)
class OpenRows:
    """A file that is open: the names of its columns, and what reads its rows, once."""

    names: list[str]
    pieces: Callable[[TableLayout], Iterator[Piece]]
    close: Callable[[], None] = lambda: None


def open_rows(path: Path) -> OpenRows:
    """Open a file of a table."""
    file = open_file(path)
    try:
        start = bytes(file.peek(64)[:64])  # type: ignore[attr-defined]
        if not is_arrow(start) and not start.removeprefix(BOM).lstrip().startswith(b"{"):
            names = read_header(file, path, ",")
            read = partial(_from_text, path, file, names)
            return OpenRows(names, read, file.close)
        line = b"" if is_arrow(start) else bytes(file.readline(LONGEST))
    except BaseException as error:
        file.close()
        if isinstance(error, UNREADABLE):
            raise InputError(f"{path}: cannot be read: {error}") from None
        raise
    file.close()
    if line:
        return OpenRows(names_in(line), partial(_from_json, path))
    opened = open_arrow(path, start)
    return OpenRows(opened.names, lambda layout: pieces_of(opened, layout, str(path)))


def _from_text(
    path: Path, file: BinaryIO, names: list[str], layout: TableLayout
) -> Iterator[Piece]:
    needed, optional = layout.needed, layout.optional
    for chunk in stream_text(path, needed, optional=optional, file=file, names=names):
        yield Piece(CheckedColumns(chunk.table, chunk.where), chunk.first, chunk.read)


def pieces_of(opened: OpenedTable, layout: TableLayout, place: str) -> Iterator[Piece]:
    """Read the columns of a layout out of what is open."""
    names = opened.names
    for name in (*layout.needed, *layout.optional):
        if names.count(name) > 1:
            raise LedgerError(place, f"more than one column {name!r}", value=names)
    first = 0
    chosen = [n for n in (*layout.needed, *layout.optional) if n in names]
    for table, read in opened.tables(chosen):
        yield Piece(CheckedColumns(table, _row_namer(place, first)), first, read)
        first += len(table)


def _row_namer(place: str, first: int) -> Callable[[int], str]:
    return lambda row: f"{place}: row {first + row + 1}"


def _from_json(path: Path, layout: TableLayout) -> Iterator[Piece]:
    names = (*layout.needed, *layout.optional)
    fields = [(name, _Value, None) for name in names]
    decode = msgspec.json.Decoder(msgspec.defstruct(layout.name, fields)).decode
    first = 0
    try:
        with open_plain(path) as file:
            lines = _lines(file, path)
            while some := list(itertools.islice(lines, AT_ONCE)):
                rows = [_decoded(decode, line, f"{path}:{number}") for number, line in some]
                table = pa.table({n: _texts([getattr(r, n) for r in rows]) for n in names})
                where = _line_namer(path, [number for number, _ in some])
                yield Piece(
                    CheckedColumns(table, where), first, min(file.tell(), path.stat().st_size)
                )
                first += len(rows)
    except UNREADABLE as error:
        raise InputError(f"{path}: cannot be read: {error}") from None


def _line_namer(path: Path, numbers: list[int]) -> Callable[[int], str]:
    return lambda row: f"{path}:{numbers[row]}"


def _lines(file: Any, path: Path) -> Iterator[tuple[int, bytes]]:
    """Give the lines that hold something, with their numbers."""
    for number in itertools.count(1):
        line = file.readline(LONGEST)
        if not line:
            return
        if len(line) == LONGEST:
            raise LedgerError(f"{path}:{number}", f"a line above {LONGEST} bytes")
        line = line.removeprefix(BOM) if number == 1 else line
        if line.strip():
            yield number, line


class Withdrawal(msgspec.Struct):
    """Money that came back from staking, in a block."""

    index: int | str | None = None
    address: str | None = None
    amount: int | str | None = None


# BigQuery writes whole numbers as text.
_Value = int | str | list[int | Withdrawal] | None


def _decoded(decode: Callable[[bytes], Any], line: bytes, where: str) -> Any:
    try:
        return decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise LedgerError(where, f"no row in JSON: {error}", value=line[:80]) from None


def _texts(values: list[Any]) -> pa.Array:
    return pa.array([None if v is None else _text(v) for v in values], pa.string())


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        if any(isinstance(v, Withdrawal) for v in value):
            return msgspec.json.encode(value).decode()
        return ",".join(map(str, value))
    return str(value)
