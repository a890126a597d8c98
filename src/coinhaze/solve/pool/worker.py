"""What a process of a cluster does: it opens a work once, and solves pieces of it.

`python -m coinhaze.solve.pool.worker` is a process of this machine that ends with the one that
started it: its standard input is a pipe from there, which closes whatever becomes of the other
end. Processes of other machines are dask's own (`dask worker`), and call `solve_piece` as well.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import sys
import threading
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from coinhaze.errors import CoinhazeError
from coinhaze.solve.pool.packed import map_packed, unpack


class OtherBits(CoinhazeError):
    """This process gives other last digits than the one that asks."""


class _Opened:
    """The work that is being solved here, and the rooms nobody solves in."""

    def __init__(self, name: str, work: Any) -> None:
        self.name, self.work = name, work
        self.rooms: list[Any] = []


_lock = threading.Lock()
_opened: _Opened | None = None


def solve_piece(name: str, packed: Any, expected: str | None, piece: Any) -> Any:
    """Solve one piece of the work of that name, opening it if it is not open."""
    if expected is not None and expected != probe():
        raise OtherBits(f"this machine's code gives {probe()[:12]}, not {expected[:12]}")
    opened = _open(name, packed)
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
                work = unpack(memoryview(np.require(packed, requirements="W")))
            _opened = _Opened(name, work)
        return _opened


def close_work(name: str) -> None:
    """Free the work of that name."""
    global _opened
    with _lock:
        if _opened is not None and _opened.name == name:
            _opened = None


@cache
def probe() -> str:
    """Solve a small ledger by each engine; give the digest of all bits.

    >>> len(probe())
    64
    """
    from coinhaze.ledger import AccountLedger
    from coinhaze.solve.score import score

    random = np.random.default_rng(1)
    rows = random.integers(0, 40, (400, 2)).tolist()
    amounts = random.integers(1, 1_000_000, 400).tolist()
    paid = [(f"a{a}", f"a{b}", v) for (a, b), v in zip(rows, amounts, strict=True) if a != b]
    ledger = AccountLedger.from_transfers(paid)
    digest = hashlib.sha256()
    asked: list[dict[str, Any]] = [
        {"time": "stationary"},
        {"time": "temporal", "method": "eliminate"},
        {"time": "temporal", "accuracy": 0.1, "over": "mean"},
        {"time": "stationary", "accuracy": "preview", "seed": 1},
    ]
    for settings in asked:
        scores = score(ledger, threads=1, **settings)
        for values in (scores.bits, scores.bits_low, scores.bits_high):
            digest.update(values.tobytes())
    return digest.hexdigest()


def main() -> None:
    """Work for the process at the other end of standard input."""
    address, name, folder, *tls = sys.argv[1:]
    watch = threading.Thread(target=_end_with_parent, args=(Path(folder),), daemon=True)
    watch.start()
    asyncio.run(_work(address, name, Path(folder), tls))


def _end_with_parent(folder: Path) -> None:
    sys.stdin.buffer.read()
    shutil.rmtree(folder, ignore_errors=True)  # the other end may have had no time for it
    os._exit(0)


async def _work(address: str, name: str, folder: Path, tls: list[str]) -> None:
    import dask.config
    from distributed import Worker

    from coinhaze.solve.pool.cluster import security_of

    dask.config.set({"distributed.worker.http.routes": []})
    worker = Worker(
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


if __name__ == "__main__":
    main()
