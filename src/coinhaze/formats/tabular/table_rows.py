"""Rows of one table, in CSV, JSON lines, Parquet or Arrow: the columns of a layout by name.

Arrow's files have a table of contents at their end; its streams end with a mark. A stream without
the mark may be cut and is refused. Whatever gives an Arrow stream is read too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from coinhaze.errors import InputError, LedgerError
from coinhaze.formats.compression import BOM, errors_of_reading, numbered_lines, open_plain, packing
from coinhaze.formats.tabular.column_use import Use, in_small_letters, plain_name, use_of
from coinhaze.formats.tabular.delimited import (
    Piece,
    header_names,
    open_file,
    read_names,
    separator_of,
    stream_text,
)
from coinhaze.ledger.columns import CheckedColumns

PARQUET, ARROW, STREAM = b"PAR1", b"ARROW1\0\0", b"\xff\xff\xff\xff"
_END = STREAM + b"\0\0\0\0"
AT_ONCE = 1 << 15  # rows
LONGEST = 64 << 20  # bytes a line of JSON may have

# What damage can raise: pyarrow lets names that are no UTF-8, for one, fail in Python.
DAMAGE = (
    pa.ArrowException, OSError, MemoryError, ValueError, TypeError, ArithmeticError, LookupError,
    RecursionError,
)  # fmt: skip


class ArrowStream(Protocol):
    """Whatever gives an Arrow stream: tables of Arrow, Polars, DuckDB or pandas, and readers."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Give the stream."""


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

    def present(self, names: Sequence[str]) -> tuple[list[str], list[str]]:
        """Give the columns it is known by that are there, and those that are not."""
        has = [name for name in self.needed if name in names]
        return has, [name for name in self.needed if name not in has]

    def fits(self, names: Sequence[str]) -> bool:
        """Tell whether a file with these columns is of this layout."""
        return set(self.needed) <= set(names)


@dataclass(frozen=True, eq=False)
class OpenRows:
    """A table that is open: what errors call it, its columns, and what reads its rows, once."""

    place: str
    names: list[str]
    pieces: Callable[[TableLayout], Iterator[Piece]]
    close: Callable[[], None] = lambda: None


# Chosen columns of a file or stream of Arrow: tables, and bytes read so far.
ArrowTables = Callable[[Sequence[str]], Iterator[tuple[pa.Table, int]]]


def _open_arrow_rows(place: str, names: list[str], tables: ArrowTables) -> OpenRows:
    return OpenRows(place, names, partial(_from_arrow, place, names, tables))


def is_arrow(start: bytes) -> bool:
    """Tell by its first bytes whether a file is Arrow's or Parquet."""
    return start.startswith((PARQUET, ARROW, STREAM))


def names_at_start(head: bytes) -> list[str]:
    """Name the columns of a file or stream of Arrow by what it begins with; none if it is none."""
    if not head.startswith((ARROW, STREAM)):
        return []
    try:
        start = pa.BufferReader(head.removeprefix(ARROW))
        return list(pa.ipc.read_schema(start).names)
    except DAMAGE:
        return []


def open_arrow(path: Path, start: bytes) -> OpenRows:
    """Open a file that begins so."""
    kind = "Parquet" if start.startswith(PARQUET) else "Arrow"
    try:
        if packing(path):
            raise InputError(f"{path}: {kind} inside of packing: unpack it first")
        if kind == "Parquet":
            return _parquet(path)
        return _arrow_file(path) if start.startswith(ARROW) else _arrow_stream(path)
    except DAMAGE as error:
        raise _unreadable(path, kind, error) from None


def open_object(given: ArrowStream, place: str) -> OpenRows:
    """Open an object that gives an Arrow stream; `place` is what errors call it."""
    try:
        reader = pa.RecordBatchReader.from_stream(given)
        names = list(reader.schema.names)
    except DAMAGE as error:
        raise _unreadable(place, "an Arrow stream", error) from None

    def tables(columns: Sequence[str]) -> Iterator[tuple[pa.Table, int]]:
        return _checked(((batch, 0) for batch in reader), columns, place, "an Arrow stream")

    return _open_arrow_rows(place, names, tables)


def _parquet(path: Path) -> OpenRows:
    file, size = pq.ParquetFile(path, pre_buffer=False), path.stat().st_size
    whole = max(file.metadata.num_rows, 1)

    def batches(columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, int]]:
        done = 0
        for batch in file.iter_batches(AT_ONCE, columns=list(columns)):
            done += len(batch)
            yield batch, min(size * done // whole, size)
        # A footer that promises more rows than there are is no error to the library.
        if done != file.metadata.num_rows:
            raise InputError(f"{path}: {done} rows where {file.metadata.num_rows} should be")

    def tables(columns: Sequence[str]) -> Iterator[tuple[pa.Table, int]]:
        return _checked(batches(columns), columns, path, "Parquet")

    return _open_arrow_rows(str(path), list(file.schema_arrow.names), tables)


def _arrow_file(path: Path) -> OpenRows:
    names = list(pa.ipc.open_file(pa.memory_map(str(path))).schema.names)

    def tables(columns: Sequence[str]) -> Iterator[tuple[pa.Table, int]]:
        size = path.stat().st_size
        reader = pa.ipc.open_file(pa.memory_map(str(path)), options=_only(names, columns))
        count = reader.num_record_batches
        batches = ((reader.get_batch(k), size * (k + 1) // count) for k in range(count))
        return _checked(batches, columns, path, "Arrow")

    return _open_arrow_rows(str(path), names, tables)


def _arrow_stream(path: Path) -> OpenRows:
    names = list(pa.ipc.open_stream(pa.memory_map(str(path))).schema.names)
    with open(path, "rb") as file:
        file.seek(-len(_END), 2)
        if file.read() != _END:
            raise InputError(f"{path}: an Arrow stream without its end: it may have been cut")

    def tables(columns: Sequence[str]) -> Iterator[tuple[pa.Table, int]]:
        # Mapped, so that a length of petabytes in a damaged file takes no memory.
        source = pa.memory_map(str(path))
        reader = pa.ipc.open_stream(source, options=_only(names, columns))
        yield from _checked(((b, source.tell()) for b in reader), columns, path, "Arrow")
        if source.tell() != path.stat().st_size:
            raise InputError(f"{path}: something follows the Arrow stream")

    return _open_arrow_rows(str(path), names, tables)


def _only(names: Sequence[str], columns: Sequence[str]) -> pa.ipc.IpcReadOptions:
    chosen = [k for k, name in enumerate(names) if name in columns]
    return pa.ipc.IpcReadOptions(included_fields=chosen, use_threads=False)


def _checked(
    batches: Iterator[tuple[pa.RecordBatch, int]],
    columns: Sequence[str],
    place: Path | str,
    kind: str,
) -> Iterator[tuple[pa.Table, int]]:
    """Give tables of bounded size; nothing makes a file hold UTF-8 in its text but our look."""
    while True:
        try:
            batch, read = next(batches, (None, 0))
            if batch is not None:
                batch = batch.select(list(columns))
                batch.validate(full=True)
        except DAMAGE as error:
            raise _unreadable(place, kind, error) from None
        if batch is None:
            return
        for first in range(0, len(batch), AT_ONCE):
            yield pa.Table.from_batches([batch.slice(first, AT_ONCE)]), read


def _unreadable(place: Path | str, kind: str, error: Any) -> InputError:
    if isinstance(error, FileNotFoundError):
        return InputError(f"{place}: no such file")
    said = (str(error) or type(error).__name__).splitlines()[0]
    return InputError(f"{place}: cannot be read as {kind}: {said}")


def column_names(path: Path, *, any_case: bool = False) -> list[str]:
    """Read what the columns of a file are called: its header, first object or schema."""
    rows = open_rows(path, any_case=any_case)
    rows.close()
    return rows.names


def names_in(head: bytes, *, any_case: bool = False) -> list[str]:
    """Name the columns a file begins with: its header, its first object or Arrow's schema.

    In `any_case` those of tables, not of JSON, are given in small letters.
    """
    if any_case and not head.removeprefix(BOM).lstrip().startswith(b"{"):
        return in_small_letters(names_in(head))
    if is_arrow(head):
        return names_at_start(head)
    line = head.removeprefix(BOM).split(b"\n", 1)[0]
    if line.lstrip().startswith(b"{"):
        try:
            return list(msgspec.json.decode(line, type=dict[str, msgspec.Raw]))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return []
    header = line.decode("utf-8", "replace").rstrip("\r")
    return header_names(header, separator_of(header))


def pieces(path: Path, layout: TableLayout, *, any_case: bool = False) -> Iterator[Piece]:
    """Read the columns of a layout, some ten thousand rows at a time."""
    return open_rows(path, any_case=any_case).pieces(layout)


def open_rows(path: Path, *, any_case: bool = False) -> OpenRows:
    """Open a file of a table; in `any_case` its columns go by their names in small letters."""
    file = open_file(path)
    try:
        with errors_of_reading(path):
            start = bytes(file.peek(64)[:64])  # type: ignore[attr-defined]
            if not is_arrow(start) and not start.removeprefix(BOM).lstrip().startswith(b"{"):
                names, separator = read_names(file, path)
                names = in_small_letters(names) if any_case else names
                return OpenRows(
                    str(path),
                    names,
                    lambda layout: stream_text(
                        path,
                        layout.needed,
                        optional=layout.optional,
                        delimiter=separator,
                        file=file,
                        names=names,
                    ),
                    file.close,
                )
            line = b"" if is_arrow(start) else bytes(file.readline(LONGEST))
    except BaseException:
        file.close()
        raise
    file.close()
    if line:
        return OpenRows(str(path), names_in(line), partial(_from_json, path))
    rows = open_arrow(path, start)
    return _by_small_letters(rows) if any_case else rows


def _by_small_letters(rows: OpenRows) -> OpenRows:
    small = in_small_letters(rows.names)
    spelt = dict(zip(small, rows.names, strict=True))

    def pieces(layout: TableLayout) -> Iterator[Piece]:
        needed, optional = (
            tuple(spelt.get(n, n) for n in part) for part in (layout.needed, layout.optional)
        )
        for piece in rows.pieces(replace(layout, needed=needed, optional=optional)):
            table = piece.columns.table
            table = table.rename_columns(in_small_letters(table.column_names))
            yield replace(piece, columns=CheckedColumns(table, piece.columns.where))

    return rows if small == rows.names else replace(rows, names=small, pieces=pieces)


def _from_arrow(
    place: str, names: list[str], tables: ArrowTables, layout: TableLayout
) -> Iterator[Piece]:
    for name in (*layout.needed, *layout.optional):
        if names.count(name) > 1:
            raise LedgerError(place, f"more than one column {name!r}", value=names)
    first = 0
    chosen = [n for n in (*layout.needed, *layout.optional) if n in names]
    for table, read in tables(chosen):
        yield Piece(CheckedColumns(table, _row_namer(place, first)), first, read)
        first += len(table)


def _row_namer(place: str, first: int) -> Callable[[int], str]:
    return lambda row: f"{place}: row {first + row + 1}"


def _from_json(path: Path, layout: TableLayout) -> Iterator[Piece]:
    names = (*layout.needed, *layout.optional)
    fields = [(name, _Value, None) for name in names]
    decode = msgspec.json.Decoder(msgspec.defstruct(layout.name, fields)).decode
    first = 0
    with errors_of_reading(path), open_plain(path) as file:
        lines = ((n, line) for n, line in numbered_lines(file, path, LONGEST) if line.strip())
        while some := list(itertools.islice(lines, AT_ONCE)):
            rows = [_decoded(decode, line, f"{path}:{number}") for number, line in some]
            table = pa.table({n: _texts([getattr(r, n) for r in rows]) for n in names})
            where = _line_namer(path, [number for number, _ in some])
            read = min(file.tell(), path.stat().st_size)
            yield Piece(CheckedColumns(table, where), first, read)
            first += len(rows)


def _line_namer(path: Path, numbers: list[int]) -> Callable[[int], str]:
    return lambda row: f"{path}:{numbers[row]}"


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
