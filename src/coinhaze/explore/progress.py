"""Work under way in a thread: how far it is, and whether anybody still wants it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from coinhaze.errors import ResourceError
from coinhaze.solve.progress import Progress, silent

_PROGRESS: ContextVar[Progress] = ContextVar("progress", default=silent)


class Cancelled(ResourceError):
    """Work that nobody wants any more; raised from inside a progress call."""


def progress() -> Progress:
    """Give what to tell of the work this thread does; telling raises `Cancelled` if cancelled.

    >>> progress()(0.5)
    """
    return _PROGRESS.get()


@contextmanager
def telling(note: Progress) -> Iterator[None]:
    """Let `note` hear of the work done inside."""
    token = _PROGRESS.set(note)
    try:
        yield
    finally:
        _PROGRESS.reset(token)
