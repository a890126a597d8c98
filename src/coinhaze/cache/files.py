"""Layers on disk: folders with a sealed description, and bytes that are mapped, not read.

```
LEDGER.kept/KEY/about.json   what it is, the tree of its value, a SHA-256 of every piece of data
                data         all arrays, each at a multiple of 64 bytes
                seal         HMAC-SHA256 of about.json under a key of this user's own
```

Anybody who can write to a shared folder could put in numbers that lead loops out of their arrays,
so what was not sealed by this user is not opened. The description has the data's size, number and
times as they were when it had been written and synced. The system sets the time of change, so where
all are the same nobody has written to it since, and a week opens at once; where they are not, every
piece is compared with its digest, 1.5 GB a second. What fails is as good as absent.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import mmap
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from coinhaze.cache.tree import Packer, Place, Unpacker
from coinhaze.errors import InputError
from coinhaze.ledger.atomic import private_file, private_folder, put_in_place
from coinhaze.solve.pool.limits import workers_for

FORMAT = 2
ABOUT, DATA, SEAL = "about.json", "data", "seal"
_ALIGNED = 64
_PIECE = 32 << 20
_MAGIC = b"coinhaze kept".ljust(_ALIGNED, b"\0")
_MAX_ABOUT = 256 << 20
_A_MOMENT = 60.0


class Unusable(Exception):
    """A layer that is not there, or not as it was written; never leaves `coinhaze.solve`."""


class Outdated(Unusable):
    """A layer that an earlier version wrote."""


@dataclass(frozen=True, eq=False)
class Layer:
    """A value with the objects it is made of, in the order they were written."""

    key: str
    value: Any
    objects: Sequence[object]
    facts: Mapping[str, Any]
    below: tuple[Layer, ...] = ()


def cache_folder() -> Path:
    """Give the user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "coinhaze"


def write_layer(
    home: Path,
    key: str,
    value: Any,
    *,
    ledger: str,
    below: Sequence[Layer],
    facts: Mapping[str, Any],
) -> Layer:
    """Write a layer whole or not at all, and give it; raises what `put_in_place` does.

    `ledger` says which files it was made from, and as they were when.
    """
    objects: list[object] = []
    secret = _secret()

    def write(folder: Path) -> None:
        folder.chmod(0o700)
        with open(folder / DATA, "wb", opener=private_file) as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # somebody is writing this: see `is_abandoned`
            run = _Run(file)
            packer = Packer(run.put, [layer.objects for layer in below])
            tree = packer.pack(value)
            file.flush()
            os.fsync(file.fileno())
        objects.extend(packer.objects)
        about: dict[str, Any] = {"coinhaze_cache": FORMAT, "key": key, "ledger": ledger}
        about |= {"rests_on": [layer.key for layer in below], "facts": dict(facts)}
        about |= {"stamp": _stamp(folder / DATA), "pieces": run.pieces(), "tree": tree}
        text = json.dumps(about).encode()
        for name, content in ((ABOUT, text), (SEAL, _seal(secret, text))):
            with open(folder / name, "wb", opener=private_file) as file:
                file.write(content)

    put_in_place(home / key, write)
    return Layer(key, value, objects, facts, tuple(below))


def read_layer(home: Path, key: str, *, below: Sequence[Layer], compare: bool = False) -> Layer:
    """Open a layer: its arrays are views of the file, shared by all processes that open it.

    A process that writes to a writable array gets its own copy of the pages. `compare` compares
    every piece of data with its digest also where the file was not written to.
    """
    about = read_about(home, key)
    try:
        path = home / key / DATA
        data = _mapped(path, about["stamp"][0])
        if compare or _stamp(path) != about["stamp"]:
            _compare(data, about["pieces"])
        unpacker = Unpacker(data, [layer.objects for layer in below])
        value = unpacker.unpack(about["tree"])
    except (OSError, ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise Unusable(f"{home / key}: {error!r}") from None
    return Layer(key, value, unpacker.objects, about["facts"], tuple(below))


def check_layer(home: Path, key: str) -> int:
    """Compare all of a layer with its digests; give its bytes. Raises `Unusable`."""
    about = read_about(home, key)
    try:
        data = _mapped(home / key / DATA, about["stamp"][0])
        _compare(data, about["pieces"])
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise Unusable(f"{home / key}: {error!r}") from None
    return len(data)


def read_about(home: Path, key: str) -> dict[str, Any]:
    """Read what a layer says of itself, if this user wrote it and it is of this format."""
    try:
        with open(home / key / ABOUT, "rb") as file:
            text = file.read(_MAX_ABOUT)
        with open(home / key / SEAL, "rb") as file:
            seal = file.read(len(_seal(b"", b"")) + 1)
        if not hmac.compare_digest(seal, _seal(_secret(), text)):
            raise Unusable(f"{home / key}: not written by this user, or damaged")
        about: dict[str, Any] = json.loads(text)
        earlier = about.get("coinhaze_kept")
        if earlier is not None:
            raise Outdated(
                f"{home / key}: cached by an earlier version, in format {earlier}, which is not "
                f"read any more: it is built again in format {FORMAT}"
            )
        if about["coinhaze_cache"] != FORMAT or about["key"] != key:
            raise Unusable(f"{home / key}: another format or place")
    except (OSError, ValueError, KeyError, TypeError, RecursionError, InputError) as error:
        raise Unusable(f"{home / key}: {error!r}") from None
    return about


def is_abandoned(folder: Path) -> bool:
    """Tell whether a folder that was being written was left by a process that has ended."""
    try:
        with open(folder / "new" / DATA, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # Not begun, or all but removed; a moment later one of the two will show.
        return time.time() - folder.stat().st_mtime > _A_MOMENT
    return True


class _Run:
    """Bytes written one after the other, with a digest of every piece."""

    def __init__(self, file: BinaryIO) -> None:
        self.size = 0
        self._file = file
        self._digests = [hashlib.sha256()]
        self._write(memoryview(_MAGIC))

    def put(self, data: Any) -> Place:
        """Write an array or buffer; say where it begins and how long it is."""
        view = memoryview(data).cast("B")
        first = self.size
        self._write(view)
        self._write(memoryview(bytes(-self.size % _ALIGNED)))
        return [first, len(view)]

    def pieces(self) -> list[str]:
        """Give the digests of all pieces."""
        return [digest.hexdigest() for digest in self._digests]

    def _write(self, view: memoryview) -> None:
        while len(view):
            room = _PIECE * len(self._digests) - self.size
            if room == 0:
                self._digests.append(hashlib.sha256())
                continue
            some, view = view[:room], view[room:]
            self._file.write(some)
            self._digests[-1].update(some)
            self.size += len(some)


def _stamp(path: Path) -> list[int]:
    """Give a file's size, number, and times: the last one only the system can set."""
    seen = path.stat()
    return [seen.st_size, seen.st_ino, seen.st_mtime_ns, seen.st_ctime_ns]


def _mapped(path: Path, size: int) -> memoryview:
    with open(path, "rb") as file:
        found = os.fstat(file.fileno()).st_size
        if found != size or not size:
            raise ValueError(f"{found} bytes, not {size}")
        # Loops are compiled for arrays that may be written to and for such that may not: a
        # private mapping gives both, and nothing is ever written to the file.
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))


def _compare(data: memoryview, pieces: Sequence[str]) -> None:
    def digest(first: int) -> str:
        return hashlib.sha256(data[first : first + _PIECE]).hexdigest()

    with ThreadPoolExecutor(workers_for(len(pieces), None)) as pool:
        if list(pool.map(digest, range(0, len(data), _PIECE))) != list(pieces):
            raise ValueError("the data is damaged")


def _seal(secret: bytes, text: bytes) -> bytes:
    return hmac.new(secret, text, "sha256").hexdigest().encode()


def _secret() -> bytes:
    """Give this user's key, made at the first need; nobody else may read it."""
    path = cache_folder() / "kept.key"
    try:
        private_folder(path.parent)
        if not path.exists():
            fresh = path.with_name(f".kept.key.{secrets.token_hex(8)}")
            try:
                with open(fresh, "xb", opener=private_file) as file:
                    file.write(secrets.token_bytes(32))
                with suppress(FileExistsError):  # another process was first: its key counts
                    os.link(fresh, path)
            finally:
                fresh.unlink(missing_ok=True)
        found = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: the key of the cache: {error.strerror}") from None
    if len(found) != 32:
        raise InputError(f"{path}: not a key: remove it, and the cache is made again")
    return found
