"""Files -> store: each read a chunk at a time, committed as it goes, and never twice."""

from __future__ import annotations

import glob
import os
import queue
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pyarrow.compute as pc

from coinhaze.errors import InputError
from coinhaze.formats.registry import digest_of, format_named, format_of, formats, head_of, not_for
from coinhaze.formats.tabular.column_use import Use, joined_use
from coinhaze.formats.transfers.columns import ColumnChoice
from coinhaze.ledger.batches import Batch, in_chunks
from coinhaze.store.store import Find, Source, Store

Progress = Callable[[int, int], None]  # bytes done, bytes in all


@dataclass(frozen=True)
class Ingested:
    """What an ingest did."""

    rows: int  # new in the store
    files: int  # read
    known: int  # left out: their content was in the store already
    notes: tuple[str, ...] = ()  # what was put in order or is not known, file by file
    columns: Use = field(default_factory=dict)  # what became of the columns of the files read


def ingest(
    sources: Sequence[str | Path],
    store: Store,
    *,
    format: str | None = None,
    columns: str | None = None,
    decimals: int | None = None,
    progress: Progress = lambda done, whole: None,
) -> Ingested:
    """Read files, folders of files and patterns into a store.

    What was read before (by its content, whatever its name) is left out. Every few hundred
    thousand rows are committed; after an interrupt the same call goes on from there. `columns` and
    `decimals` describe tables of transfers, as in `coinhaze.read`; the store remembers them.
    """
    return ingest_described(
        sources, store, ColumnChoice.of(columns, decimals), format=format, progress=progress
    )


def ingest_described(
    sources: Sequence[str | Path],
    store: Store,
    choice: ColumnChoice,
    *,
    format: str | None = None,
    progress: Progress = lambda done, whole: None,
) -> Ingested:
    """Do what `ingest` does, with columns and decimals as they were read of what a user wrote."""
    paths = expand(sources)
    whole = sum(path.stat().st_size for path in paths)
    # Snapshots come last, and again whenever they are named: other files may spend other coins.
    snapshots = [path for path in paths if _is_snapshot(path, format)]
    paths = [path for path in paths if path not in snapshots]
    sources_before = [] if store.is_untouched else store.sources()
    in_store = {source.digest for source in sources_before if source.done}
    rows = 0
    notes: list[str] = []
    uses: list[Use] = []
    files, read = _Files(paths, in_store, format, choice), 0
    for piece in ahead(files.pieces()):
        with store.transaction():
            added = store.append(piece.batch)
            read = piece.counted + (0 if piece.begins else read)
            source = Source(piece.digest, _shown(piece.path), piece.format, read, done=piece.ends)
            store.note_source(source)
        rows += added
        notes += [f"{piece.path.name}: {note}" for note in piece.batch.notes]
        uses.append(piece.batch.columns)
        progress(piece.done, whole)
    before = whole - sum(path.stat().st_size for path in snapshots)
    for path in snapshots:
        notes.append(f"{path.name}: {_fill(store, path, before, whole, progress)}")
        before += path.stat().st_size
    progress(whole, whole)
    read_files = files.read + len(snapshots)
    return Ingested(rows, read_files, files.known, tuple(notes), joined_use(uses))


def _is_snapshot(path: Path, format: str | None) -> bool:
    """Tell whether a file has no rows of its own, but values of coins that others spend."""
    if format is not None:
        return format_named(format).is_snapshot
    entries = [entry for entry in formats().values() if entry.is_snapshot]
    head = head_of(path)
    return any(entry.recognises(head) for entry in entries)


def _fill(store: Store, path: Path, before: int, whole: int, progress: Progress) -> str:
    from coinhaze.store.snapshot import fill_values

    def done(read: int) -> None:
        progress(before + read, whole)

    return fill_values(store, path, digest_of(path), _shown(path), done).note


@dataclass(frozen=True, eq=False)
class _Piece:
    """A batch of a file, and where it stands in it."""

    path: Path
    digest: str
    format: str
    batch: Batch
    begins: bool
    ends: bool
    done: int  # bytes of all files up to here

    @property
    def counted(self) -> int:
        return sum(len(t) for t in self.batch.tables.values())


class _Files:
    """Files read one after the other, those left out that are known."""

    def __init__(
        self,
        paths: Sequence[Path],
        in_store: set[str],
        format: str | None,
        choice: ColumnChoice,
    ) -> None:
        self.paths = paths
        self.choice = choice
        self.in_store = in_store
        self.format = format
        self.read = self.known = 0

    def pieces(self) -> Iterator[_Piece]:
        """Read all files; the last piece of each says so."""
        before = 0
        for path in self.paths:
            digest, size = digest_of(path), path.stat().st_size
            if digest in self.in_store:
                self.known += 1
            else:
                yield from self._pieces_of(path, digest, before, size)
                self.in_store.add(digest)
                self.read += 1
            before += size

    def _pieces_of(self, path: Path, digest: str, before: int, size: int) -> Iterator[_Piece]:
        name = self.format or ("transfers" if self.choice.columns else format_of(path))
        if self.choice and name == "plain":
            name = "transfers"  # separated by semicolons or tabs
        entry, given = format_named(name), {"choice": self.choice} if self.choice else {}
        if given and not entry.takes_choice:
            raise not_for(self.choice, name, [path], forced=self.format is not None)
        name = f"{name}, {self.choice}" if given else name
        batches = in_chunks(entry.batches(path, **given))
        batch: Batch | None = next(batches, Batch({}))
        begins = True
        while batch is not None:
            after = next(batches, None)
            done = before + min(batch.read, size)
            _ = batch.without_repeats  # looked for here, while the batch before is being stored
            yield _Piece(path, digest, name, batch, begins, after is None, done)
            batch, begins = after, False


def _shown(path: Path) -> str:
    """Name a file in text, whatever bytes its name has."""
    return os.fsencode(path.name).decode("utf-8", "backslashreplace")


def finder(sources: Sequence[str | Path], format: str | None) -> Find:
    """Make the function that looks through files again for a transaction, and says where it is."""

    def find(height: int | None, txid: str) -> str | None:
        for path in expand(sources):
            for batch in format_named(format or format_of(path)).batches(path):
                found = batch.tables.get("transactions")
                if found is None:
                    continue
                same = pc.equal(found["txid"], txid)
                if height is not None:
                    same = pc.and_(same, pc.equal(found["height"], height))
                row = pc.index(same, True).as_py()
                if row >= 0:
                    return batch.where("transactions", row)
        return None

    return find


Thing = TypeVar("Thing")


def ahead(things: Iterator[Thing]) -> Generator[Thing]:
    """Read one thing ahead in a thread of its own, while the one before is being stored."""
    waiting: queue.Queue[Thing | BaseException | None] = queue.Queue(maxsize=1)
    stop = threading.Event()

    def put(thing: Thing | BaseException | None) -> bool:
        while not stop.is_set():
            try:
                waiting.put(thing, timeout=0.2)
                return True
            except queue.Full:
                continue
        return False

    def run() -> None:
        try:
            for thing in things:
                if not put(thing):
                    return
            put(None)
        except BaseException as error:
            put(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while (thing := waiting.get()) is not None:
            if isinstance(thing, BaseException):
                raise thing
            yield thing
    finally:
        stop.set()
        thread.join()


def expand(sources: Sequence[str | Path]) -> list[Path]:
    """List the files that are meant: files, all files in folders, and patterns; each once."""
    found: dict[Path, None] = {}
    for source in sources:
        path = Path(source)
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.is_file() and p.name[0] != ".")
        elif path.exists():
            inside = [path]
        else:
            inside = sorted(Path(p) for p in glob.glob(str(source), recursive=True))
            inside = [p for p in inside if p.is_file()]
        if not inside:
            what = "no files in this folder" if path.is_dir() else "no such file"
            raise InputError(f"{source}: {what}")
        found |= dict.fromkeys(inside)
    return list(found)
