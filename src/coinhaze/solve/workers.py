"""How many threads work at once, and on how much memory."""

from __future__ import annotations

import os

import numpy as np

from coinhaze.ledger.amounts import Bools, Floats
from coinhaze.solve.stream_kernels import WIDTH

# Workspaces of all threads together stay below this.
MEMORY = 2 << 30


def workers_for(tasks: int, threads: int | None, *, bytes_each: int = 0) -> int:
    """Say how many threads to use: as asked, or the cores this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    fits = MEMORY // bytes_each if bytes_each else tasks
    return max(1, min(threads or cores or 1, tasks, fits))


def tile_workspaces(
    states: int, tiles: int, threads: int | None, *, kind: type[np.floating] = np.float64
) -> list[tuple[Floats, Bools]]:
    """Make a workspace for each thread: a tile of every state, and which of them are live."""
    size = np.dtype(kind).itemsize * WIDTH * max(states, 1)
    count = workers_for(tiles, threads, bytes_each=size)
    return [
        (np.zeros((states, WIDTH), dtype=kind), np.zeros(states, dtype=np.bool_))
        for _ in range(count)
    ]
