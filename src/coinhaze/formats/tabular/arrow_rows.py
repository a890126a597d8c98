"""Rows of Parquet files, of Arrow's own files and streams, and of whatever gives an Arrow stream.

Arrow's files have a table of contents at their end; its streams end with a mark. A stream without
the mark may be cut and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from coinhaze.errors import InputError
from coinhaze.formats.compression import packing

PARQUET, ARROW, STREAM = b"PAR1", b"ARROW1\0\0", b"\xff\xff\xff\xff"
_END = STREAM + b"\0\0\0\0"
AT_ONCE = 1 << 15  # rows

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
class OpenedTable:
    """The names of the columns, and what gives chosen ones: tables, and bytes read so far."""

    names: list[str]
    tables: Callable[[Sequence[str]], Iterator[tuple[pa.Table, int]]]


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


def open_arrow(path: Path, start: bytes) -> OpenedTable:
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


def open_object(given: ArrowStream, place: str) -> OpenedTable:
    """Open an object that gives an Arrow stream; `place` is what errors call it."""
    try:
        reader = pa.RecordBatchReader.from_stream(given)
        names = list(reader.schema.names)
    except DAMAGE as error:
        raise _unreadable(place, "an Arrow stream", error) from None

    def tables(columns: Sequence[str]) -> Iterator[tuple[pa.Table, int]]:
        return _checked(((batch, 0) for batch in reader), columns, place, "an Arrow stream")

    return OpenedTable(names, tables)


def _parquet(path: Path) -> OpenedTable:
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

    return OpenedTable(list(file.schema_arrow.names), tables)


def _arrow_file(path: Path) -> OpenedTable:
    names = list(pa.ipc.open_file(pa.memory_map(str(path))).schema.names)

    def tables(columns: Sequence[str]) -> Iterator[tuple[pa.Table, int]]:
        size = path.stat().st_size
        reader = pa.ipc.open_file(pa.memory_map(str(path)), options=_only(names, columns))
        count = reader.num_record_batches
        batches = ((reader.get_batch(k), size * (k + 1) // count) for k in range(count))
        return _checked(batches, columns, path, "Arrow")

    return OpenedTable(names, tables)


def _arrow_stream(path: Path) -> OpenedTable:
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

    return OpenedTable(names, tables)


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
