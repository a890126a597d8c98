"""What a process of a cluster does: it opens a work once, and solves pieces of it.

`main` is a process of this machine that ends with the one that started it: its standard input is a
pipe from there, which closes whatever becomes of the other end. Processes of other machines are
dask's own (`dask worker`), and call `solve_piece` as well.
"""

from __future__ import annotations

import logging
import os
import platform
import shutil
import sys
import threading
import uuid
from pathlib import Path
from typing import Any

import numpy as np

from coinhaze.errors import CoinhazeError
from coinhaze.solve.pool.packed import map_packed, unpack, write_packed


class OtherBits(CoinhazeError):
    """This machine, which is named, gives other last digits than the one that asks."""


class _Opened:
    """The work that is being solved here, and the rooms nobody solves in."""

    def __init__(self, name: str, work: Any) -> None:
        self.name, self.work = name, work
        self.rooms: list[Any] = []


_lock = threading.Lock()
_opened: _Opened | None = None


def solve_piece(name: str, packed: Any, piece: Any) -> Any:
    """Solve one piece of the work of that name, opening it if it is not open.

    A part of a work that lies in a file is written to another one beside it, and its path is given.
    """
    part = _solve(_open(name, packed), piece)
    if not isinstance(packed, str):
        return part
    path = Path(packed).with_name(f"{uuid.uuid4().hex}.part")
    write_packed(part, path)
    return path


def _solve(opened: _Opened, piece: Any) -> Any:
    with _lock:
        room = opened.rooms.pop() if opened.rooms else None
    if room is None:
        room = opened.work.room()
    try:
        return opened.work.solve(piece, room)
    finally:
        with _lock:
            opened.rooms.append(room)


def _open(name: str, packed: Any) -> _Opened:
    global _opened
    with _lock:
        if _opened is None or _opened.name != name:
            _opened = None  # frees the one before
            if isinstance(packed, str):
                work = map_packed(Path(packed))
            else:
                work, probe = unpack(memoryview(np.require(packed, requirements="W")))
                if not probe.agrees():
                    raise OtherBits(platform.node())
            _opened = _Opened(name, work)
        return _opened


def close_work(name: str) -> None:
    """Free the work of that name."""
    global _opened
    with _lock:
        if _opened is not None and _opened.name == name:
            _opened = None


def main() -> None:
    """Work for the process at the other end of standard input."""
    address, name, folder, *tls = sys.argv[1:]
    watch = threading.Thread(target=_end_with_parent, args=(Path(folder),), daemon=True)
    watch.start()
    import asyncio

    asyncio.run(_work(address, name, Path(folder), tls))


def _end_with_parent(folder: Path) -> None:
    sys.stdin.buffer.read()
    shutil.rmtree(folder, ignore_errors=True)  # the other end may have had no time for it
    os._exit(0)


async def _work(address: str, name: str, folder: Path, tls: list[str]) -> None:
    import dask.config
    from distributed import Worker

    from coinhaze.solve.pool.cluster import security_of

    dask.config.set(
        {"distributed.worker.http.routes": [], "distributed.worker.profile.enabled": False}
    )
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    worker: Any = Worker(
        address,
        name=name,
        nthreads=1,
        host="127.0.0.1",
        security=security_of(*map(Path, tls)),
        memory_limit=0,  # engines bound what they take; a worker that pauses would wait for ever
        local_directory=str(folder),
    )
    await worker
    await worker.finished()
