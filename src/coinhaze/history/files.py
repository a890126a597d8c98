"""The folder of a history: pieces of the tape, the live coins, and a manifest that binds them.

Every file but the manifest is written once and never changed. The manifest names those that count,
with their size and digest, and is replaced in one step: whenever writing stops, the folder is as it
was at the last commit. Files are uncompressed Arrow, read by mapping them into memory.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from coinhaze import __version__
from coinhaze.errors import InputError, LedgerError, ResourceError, UsageError
from coinhaze.formats.registry import digest_of
from coinhaze.observer.policies import PROPORTIONAL
from coinhaze.report.files import write_whole

MANIFEST = "history.json"
LOCK = "lock"
JOURNAL = "journal"  # blocks after the last commit, of a history that follows a node
VERSION = 5
# Tables of a piece. The tape itself is rows and terms: all that a pass reads.
TABLES = ("rows", "terms", "facts", "sources", "transactions", "blocks", "changes")
LIVE = ("coins", "free", "pools")
_AT_ONCE = 1 << 18  # bytes that are written and hashed at a time


@dataclass(frozen=True)
class PieceFiles:
    """A stretch of the tape: what it holds, and its files with their sizes and digests."""

    number: int
    transactions: int
    rows: int
    terms: int
    sources: int
    first_height: int
    last_height: int
    files: Mapping[str, tuple[int, str]]

    def file(self, table: str) -> str:
        """Name the file of a table."""
        return f"{self.number:06}.{table}.arrow"


@dataclass(frozen=True)
class Manifest:
    """What a history holds."""

    version: int = VERSION
    software: str = f"coinhaze {__version__}"
    names: str = "hash"  # what ids are: hashes, or text
    accounts: bool = False  # whether coins are what accounts hold
    complete: bool = True  # whether it begins with the chain, so that only coinbases are sources
    transactions: int = 0
    rows: int = 0
    terms: int = 0
    sources: int = 0
    slots: int = 0
    coins: int = 0  # unspent
    first_height: int = -1
    last_height: int = -1
    last_time: int = -1
    month: int = -1  # the latest of any block, counted from 1970
    tip: str = ""  # the id of the last transaction
    first_id: str = ""
    pieces: tuple[PieceFiles, ...] = ()
    live: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    seed: int | None = None  # of the draws of a history that follows a node
    scores: tuple[int, str] | None = None
    scored: Mapping[str, Any] = field(default_factory=dict)  # how the scores were found
    # What was unspent at the end of each month (coinhaze.history.scores.over_time).
    months: tuple[Mapping[str, Any], ...] = ()
    completeness: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    unit: str = ""  # what values are counted in, such as BTC:8; empty where it is not known

    @property
    def scored_words(self) -> str:
        """What is scored, in words."""
        return "accounts" if self.accounts else "unspent coins"

    @property
    def settings(self) -> dict[str, object]:
        """The view, the time and the policy that scores are of."""
        view = {"view": "account", "time": "temporal"} if self.accounts else {"view": "coin"}
        return {**view, "policy": PROPORTIONAL.name}

    def live_file(self, table: str) -> str:
        """Name the file of a table of what is live."""
        return f"live.{len(self.pieces):06}.{table}.arrow"

    def text(self) -> str:
        """Write it as JSON."""
        return json.dumps({"coinhaze_history": self.version, **asdict(self)}, indent=1) + "\n"


def is_history(path: Path) -> bool:
    """Tell whether a path is the folder of a history."""
    return (path / MANIFEST).is_file()


def read_manifest(path: Path) -> Manifest:
    """Read what a history holds, and check that its files are there."""
    where = str(path / MANIFEST)
    try:
        stated = json.loads((path / MANIFEST).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        what = "is no history: make one with `coinhaze history index`"
        raise InputError(f"{path}: {what}") from None
    except OSError as error:
        raise InputError(f"{where}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise LedgerError(where, f"not JSON: {error}") from None
    if not isinstance(stated, dict) or "coinhaze_history" not in stated:
        raise LedgerError(where, "does not describe a history")
    version = stated.pop("coinhaze_history")
    if version != VERSION:
        what = f"a history of version {version}; this version reads {VERSION}"
        raise LedgerError(where, what, fix="index the chain again, into another folder")
    try:
        stated["pieces"] = tuple(
            PieceFiles(**(piece | {"files": {t: _mark(f) for t, f in piece["files"].items()}}))
            for piece in stated["pieces"]
        )
        stated["live"] = {table: _mark(mark) for table, mark in stated["live"].items()}
        stated["scores"] = None if stated["scores"] is None else _mark(stated["scores"])
        stated["notes"] = tuple(stated["notes"])
        stated["months"] = tuple(stated["months"])
        manifest = Manifest(**stated)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise LedgerError(where, f"not the manifest of a history: {error!r}") from None
    for name, (size, _) in all_files(manifest):
        _check_size(path / name, size)
    return manifest


def _mark(stated: Any) -> tuple[int, str]:
    size, digest = stated
    return int(size), str(digest)


def all_files(manifest: Manifest, *, scores: bool = True) -> Iterator[tuple[str, tuple[int, str]]]:
    """List the files that a manifest names, with size and digest."""
    for piece in manifest.pieces:
        for table, mark in piece.files.items():
            yield piece.file(table), mark
    for table, mark in manifest.live.items():
        yield manifest.live_file(table), mark
    if scores and manifest.scores is not None:
        yield scores_file(manifest.scores), manifest.scores


def scores_file(mark: tuple[int, str]) -> str:
    """Name the file of scores by its digest: those that replace it have another name."""
    return f"scores.{mark[1][:16]}.arrow"


def write_scores(path: Path, table: pa.Table) -> tuple[int, str]:
    """Write scores to a file of their own; give its size and digest."""
    written = path / ".scores.arrow"
    mark = write_table(written, table)
    written.replace(path / scores_file(mark))
    return mark


def _check_size(file: Path, size: int) -> None:
    try:
        there = file.stat().st_size
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from None
    if there != size:
        what = f"is damaged: {there:,} bytes, not {size:,}"
        raise LedgerError(str(file), what, fix="index the chain again")


def verify(path: Path, manifest: Manifest, *, scores: bool = False) -> None:
    """Compare every file with its digest."""
    for name, (size, digest) in all_files(manifest, scores=scores):
        _check_size(path / name, size)
        found = digest_of(path / name)
        if found != digest:
            what = "is damaged: its SHA-256 is not that of when it was written"
            raise LedgerError(str(path / name), what, value=found, fix="index the chain again")


class _Hashed(io.RawIOBase):
    """A file that is hashed while it is written, so that it need not be read again."""

    def __init__(self, out: io.FileIO) -> None:
        self.out, self.size, self.digest = out, 0, hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        """Write all of it."""
        rest = memoryview(content).cast("B")
        whole = len(rest)
        self.size += whole
        while len(rest):
            # What was just written is in the caches when it is hashed.
            part = rest[: self.out.write(rest[:_AT_ONCE])]
            self.digest.update(part)
            rest = rest[len(part) :]
        return whole


def write_table(file: Path, table: pa.Table) -> tuple[int, str]:
    """Write a table to a new file; give its size and digest."""
    try:
        with open(file, "wb", buffering=0) as out:
            hashed = _Hashed(out)
            with pa.ipc.new_file(hashed, table.schema) as writer:
                writer.write_table(table.combine_chunks())
            os.fsync(out.fileno())
        return hashed.size, hashed.digest.hexdigest()
    except OSError as error:
        kind = ResourceError if error.errno in (errno.ENOSPC, errno.EDQUOT) else InputError
        said = f"cannot be written: {error.strerror}; the history is as it was at its last commit"
        raise kind(f"{file}: {said}") from None


def read_table(file: Path) -> pa.Table:
    """Map a table into memory."""
    try:
        return pa.ipc.open_file(pa.memory_map(str(file))).read_all()
    except (OSError, pa.ArrowInvalid) as error:
        raise LedgerError(str(file), f"is damaged: {error}", fix="index the chain again") from None


def column(table: pa.Table, name: str) -> np.ndarray:
    """Give a column as an array over the mapped file."""
    chunks = table[name].chunks
    if not chunks:
        return np.zeros(0, dtype=table.schema.field(name).type.to_pandas_dtype())
    array: np.ndarray = chunks[0].to_numpy()
    return array


def octets_of(chunk: pa.Array) -> np.ndarray:
    """Give a column of 32 bytes each as rows."""
    data = np.frombuffer(chunk.buffers()[1] or b"", dtype=np.uint8)
    return data[32 * chunk.offset : 32 * (chunk.offset + len(chunk))].reshape(-1, 32)


def commit(path: Path, manifest: Manifest) -> None:
    """Let a manifest count from now on, and take away files that do not."""
    _sync(path)
    write_whole(path / MANIFEST, lambda place: place.write_text(manifest.text(), encoding="utf-8"))
    _sync(path)
    sweep(path, manifest)


def sweep(path: Path, manifest: Manifest) -> None:
    """Take away files that no commit counts: those of one that was cut short, or replaced."""
    counted = {MANIFEST, LOCK, *(name for name, _ in all_files(manifest))}
    for file in path.iterdir():
        if file.name not in counted and (file.suffix == ".arrow" or file.name.startswith(".")):
            file.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def only_writer(path: Path) -> Iterator[None]:
    """Hold the lock of a history; refuse where another process has it."""
    with open(path / LOCK, "wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            what = "another process is writing to this history; wait until it has ended"
            raise UsageError(f"{path}: {what}") from None
        yield


def new_folder(path: Path) -> None:
    """Make the folder of a history; one that is there must be a history, or empty."""
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path}: cannot be written: there is no folder {path.parent}")
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise UsageError(f"{path}: is there already and is no history; write elsewhere")
    if path.is_dir() and not is_history(path):
        strange = sorted(p.name for p in path.iterdir() if not _ours(p))
        if strange:
            raise UsageError(f"{path}: holds {strange[0]!r} and is no history; write elsewhere")
    path.mkdir(exist_ok=True)


def _ours(file: Path) -> bool:
    """Tell whether a file may be one of a history that was cut short before its first commit."""
    begun = file.name[:6].isdigit() or file.name.startswith(("live.", f".{MANIFEST}"))
    return file.name == LOCK or begun


def without_scores(manifest: Manifest) -> Manifest:
    """Give a manifest of a history that has grown: its scores are not of all of it."""
    return replace(manifest, scores=None, scored={}, months=())
