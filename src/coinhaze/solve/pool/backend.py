"""The seam between engines and what runs them: threads of this process, a cluster, a GPU.

An engine cuts its work into independent pieces (tiles of columns, tiles of draws, blocks of
lists), says in a `Work` how one piece is solved, and adds the parts up in the order of the pieces.
A backend only decides where and when pieces are solved, so it changes no bit of a result. Pieces
are cut by the engine, never by the backend: how sums are grouped is part of the result.

A new backend is one file that ends in `register_backend("name", open_it)`; a session or a budget
then chooses it by that name. One that has something open, such as a connection, is given to the
budget as it is. A backend for other hardware may look at the class of the `Work` and
solve those it knows in its own way, within the intervals that engines prove, leaving the rest to
`open_threads`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any, Protocol, TypeVar

from coinhaze.errors import ResourceError, UsageError
from coinhaze.solve.pool.limits import GPU, THREADS, Budget

Piece = TypeVar("Piece", contravariant=True)
Part = TypeVar("Part", covariant=True)
Room = TypeVar("Room")


class Work(Protocol[Piece, Room, Part]):
    """All that is needed to solve any piece: arrays and numbers, so that it can be pickled."""

    @property
    def room_bytes(self) -> int:
        """The bytes of one worker's room; 0 where it needs none."""

    @property
    def seconds(self) -> float:
        """About what all pieces take one core; infinite where that is not known."""

    @property
    def waiting(self) -> int:
        """How many parts of each worker may wait in memory to be added in order."""

    def room(self) -> Room:
        """Make the room one worker solves its pieces in, one after the other."""

    def solve(self, piece: Piece, room: Room) -> Part:
        """Solve one piece; the part must not refer to the room, which is used again."""


class Workers(Protocol[Piece, Part]):
    """Workers that are ready to solve pieces of one `Work`."""

    @property
    def count(self) -> int:
        """How many there are."""

    def map(self, pieces: Iterable[Piece]) -> Iterator[Part]:
        """Give the parts in the order of their pieces.

        Where the parts of neighbouring pieces were added up before they were brought here, they
        come as one.
        """


# Opens workers for a work of so many pieces, within a budget, and closes them at the end.
Backend = Callable[[Any, int, Budget], AbstractContextManager[Workers[Any, Any]]]

_BACKENDS: dict[str, Backend] = {}


def register_backend(name: str, backend: Backend) -> None:
    """Let budgets and sessions choose a backend by its name."""
    _BACKENDS[name] = backend


def backend_for(device: str) -> str:
    """Name the backend of a device; auto is a GPU where one can be used, else threads."""
    if device == "cpu":
        return THREADS
    if device not in ("gpu", "auto"):
        raise UsageError(f"device is cpu, gpu or auto, not {device!r}")
    try:
        import_module("coinhaze.solve.gpu.device").cupy()
    except (UsageError, ResourceError):
        if device == "gpu":
            raise
        return THREADS
    return GPU


def open_workers(
    work: Work[Piece, Room, Part], pieces: int, budget: Budget
) -> AbstractContextManager[Workers[Piece, Part]]:
    """Open workers of the backend that a budget names."""
    if budget.backend == GPU and GPU not in _BACKENDS:
        register_backend(GPU, import_module("coinhaze.solve.gpu.backend").open_gpu)
    if callable(budget.backend):
        opened: AbstractContextManager[Workers[Piece, Part]] = budget.backend(work, pieces, budget)
        return opened
    backend = _BACKENDS.get(budget.backend)
    if backend is None:
        raise UsageError(f"unknown backend {budget.backend!r}: one of {', '.join(_BACKENDS)}")
    return backend(work, pieces, budget)
