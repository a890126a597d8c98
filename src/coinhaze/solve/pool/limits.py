"""What a solve may use: threads, memory, time."""

from __future__ import annotations

import re
import resource
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coinhaze.errors import ResourceError, UsageError
from coinhaze.ledger.frozen import release_unused
from coinhaze.solve.planner import thresholds
from coinhaze.threads import cores

THREADS, GPU = "threads", "gpu"  # the backends of this package; see backend.py
# One part of 2^this of the memory allowed is left for what nobody estimates: objects of Python, and
# pages that the system counts late, some dozens for every thread.
SPARED = 7
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class TooManyEntries(ResourceError):
    """A sweep read more entries than it was allowed."""


@dataclass(frozen=True)
class Budget:
    """Limits the user gives; None is no limit beyond what is usual."""

    threads: int | None = None
    memory: int | None = None  # bytes, of the whole process
    seconds: float | None = None
    backend: str | Callable[..., Any] = THREADS  # by name, or open already: see backend.py

    def room(self, usual: int = thresholds.WORKSPACE_MEMORY) -> int:
        """Say how many bytes new arrays may take; refuse if none are left."""
        if self.memory is None:
            return usual
        release_unused()
        usable = self.memory - (self.memory >> SPARED)
        left = usable - memory_now()
        if left <= 0:
            spared = f" less a {1 << SPARED}th" if memory_now() <= self.memory else ""
            raise ResourceError(
                f"ledger, graph and chain take {in_words(memory_now())} already, above the "
                f"{in_words(self.memory)} allowed{spared}: allow more memory, or take a shorter "
                "window"
            )
        return left

    def fits(self, size: int, what: str) -> None:
        """Refuse arrays that would pass the limit."""
        if self.memory is not None and size > self.room():
            raise ResourceError(
                f"{what} would take {in_words(size)} beside the {in_words(memory_now())} in use, "
                f"above the {in_words(self.memory)} allowed: allow more memory"
            )

    def workers(self, pieces: int, *, room_bytes: int, what: str) -> int:
        """Say how many workers of this machine may have room each; refuse if not even one may."""
        if not room_bytes:
            return workers_for(pieces, self.threads)
        self.fits(room_bytes, what)
        return workers_for(pieces, self.threads, bytes_each=room_bytes, room=self.room())


UNLIMITED = Budget()


def workers_for(
    tasks: int, threads: int | None, *, bytes_each: int = 0, room: int = thresholds.WORKSPACE_MEMORY
) -> int:
    """Say how many threads to use: as requested, or the cores this process may use."""
    fits = room // bytes_each if bytes_each else tasks
    return max(1, min(threads or cores(), tasks, fits))


def memory_now() -> int:
    """Give the bytes this process holds in memory; at most, where the system does not say."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize()
    return memory_peak()


def memory_peak() -> int:
    """Give the most bytes this process ever held."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not what getrusage says there: that counts what the process was before it ran Python,
        # a copy of its parent.
        held = re.search(r"VmHWM:\s*(\d+) kB", status.read_text())
        if held:
            return int(held[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def bytes_of(text: str | int) -> int:
    """Read an amount of memory.

    >>> bytes_of("4GB"), bytes_of("512M"), bytes_of(1000)
    (4294967296, 536870912, 1000)
    """
    if isinstance(text, int):
        return text
    plain = text.strip().upper().removesuffix("IB").removesuffix("B")
    unit = plain[-1:] if plain[-1:] in _UNITS and not plain[-1:].isdigit() else ""
    try:
        size = float(plain.removesuffix(unit)) * _UNITS[unit]
    except ValueError:
        size = -1.0
    if not 0 < size < float("inf"):
        raise UsageError(f"memory is a size such as 4GB or 512MB, not {text!r}")
    return int(size)


def in_words(size: float) -> str:
    """Say a size so that people can read it."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} GB"
