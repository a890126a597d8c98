"""Files -> store: each read a stretch at a time, committed as it goes, and never twice."""

from __future__ import annotations

import glob
import hashlib
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from coinhaze.errors import CoinhazeError, InputError, UsageError
from coinhaze.ledger.batches import Batch, in_chunks
from coinhaze.ledger.readers.packed import UNREADABLE, open_plain
from coinhaze.ledger.store import Source, Store

# Formats by name, and the module that reads each; told apart by what a file begins with, in this
# order. Modules are imported when they are needed.
FORMATS = {
    "blockchair": "blockchair",
    "blockchair-ethereum": "blockchair_ethereum",
    "ethereum-etl": "ethereum_etl",
    "mev-inspect": "mev_inspect",
    "bitcoin-etl": "bitcoin_etl_batches",
    "bitcoin-json": "bitcoin_json",
    "esplora": "esplora",
    "utxo-edges": "utxo_edges",
    "bitcoin-blocks": "bitcoin_blocks",
    "zcash-blocks": "zcash_blocks",
}
PARQUET = b"PAR1"
HEAD = 1 << 16

Progress = Callable[[int, int], None]  # bytes done, bytes in all


@dataclass(frozen=True)
class Ingested:
    """What an ingest did."""

    rows: int  # new in the store
    files: int  # read
    known: int  # left out: their content was in the store already


def ingest(
    sources: Sequence[str | Path],
    store: Store,
    *,
    format: str | None = None,
    progress: Progress = lambda done, whole: None,
) -> Ingested:
    """Read files, folders of files and patterns into a store.

    What was read before (by its content, whatever its name) is left out. Every few hundred
    thousand rows are committed; after an interrupt the same call goes on from there.
    """
    paths = expand(sources)
    whole = sum(path.stat().st_size for path in paths)
    in_store = {source.digest for source in store.sources() if source.done}
    rows = 0
    files, read = _Files(paths, in_store, format), 0
    for piece in ahead(files.pieces()):
        with store.transaction():
            added = store.append(piece.batch)
            read = piece.counted + (0 if piece.begins else read)
            source = Source(piece.digest, piece.path.name, piece.format, read, done=piece.ends)
            store.note_source(source)
        rows += added
        progress(piece.done, whole)
    progress(whole, whole)
    return Ingested(rows, files.read, files.known)


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

    def __init__(self, paths: Sequence[Path], in_store: set[str], format: str | None) -> None:
        self.paths = paths
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
        name = self.format or format_of(path)
        batches = in_chunks(reader_of(name).batches(path))
        batch: Batch | None = next(batches, Batch({}))
        begins = True
        while batch is not None:
            after = next(batches, None)
            done = before + min(batch.read, size)
            yield _Piece(path, digest, name, batch, begins, after is None, done)
            batch, begins = after, False


Thing = TypeVar("Thing")


def ahead(things: Iterator[Thing]) -> Iterator[Thing]:
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
            raise InputError(f"{source}: no such file")
        found |= dict.fromkeys(inside)
    return list(found)


def digest_of(path: Path) -> str:
    """Give the SHA-256 of a file."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def reader_of(format: str) -> Any:
    """Give the module that reads a format."""
    if format not in FORMATS:
        raise UsageError(f"unknown format {format!r}: one of {', '.join(FORMATS)}")
    return import_module(f"coinhaze.ledger.readers.{FORMATS[format]}")


def format_of(path: Path) -> str:
    """Name the format of a file by what it begins with."""
    head = head_of(path)
    name = _recognise_columns(path) if head.startswith(PARQUET) else recognise(head)
    if name is None:
        raise InputError(
            f"{path}: no known format: it begins {head[:60]!r}; --format forces one of "
            f"{', '.join(FORMATS)}"
        )
    return name


def _recognise_columns(path: Path) -> str | None:
    """Name the format of a Parquet file by its columns."""
    try:
        names = pq.read_schema(path).names
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: cannot be read as Parquet: {error}") from None
    for name in FORMATS:
        knows = getattr(reader_of(name), "recognises_columns", None)
        if knows is not None and knows(names):
            return name
    return None


def recognise(head: bytes) -> str | None:
    """Name the format of a file that begins with these bytes, unpacked."""
    return next((name for name in FORMATS if reader_of(name).recognises(head)), None)


def head_of(path: Path) -> bytes:
    """Give what a file begins with, unpacked."""
    try:
        with open_plain(path) as file:
            return bytes(file.read(HEAD))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except CoinhazeError:
        raise
    except UNREADABLE as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
