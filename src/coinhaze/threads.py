"""Several things at once: kernels, Arrow and most of numpy let other threads run meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

Found = TypeVar("Found")

# Work on so many rows takes longer than starting a thread for it.
MANY_ROWS = 1 << 16
_allowed: ContextVar[int | None] = ContextVar("threads", default=None)


def cores() -> int:
    """Give how many threads may run: as many as cores this process may use, or as allowed."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return _allowed.get() or usable or 1


@contextmanager
def at_most(threads: int | None) -> Iterator[None]:
    """Allow only so many threads to all that is given no number of them: reading, building graphs.

    >>> with at_most(1):
    ...     cores()
    1
    """
    before = _allowed.set(threads)
    try:
        yield
    finally:
        _allowed.reset(before)


@contextmanager
def beside(work: Callable[[], Found], threads: int | None) -> Iterator[Callable[[], Found]]:
    """Do something beside what follows, in a thread of its own; gives how to wait for it.

    With one thread it is done when it is waited for.
    """
    if (threads or cores()) == 1:
        yield work
        return
    with ThreadPoolExecutor(1) as other:
        yield other.submit(work).result


def together(works: Sequence[Callable[[], Found]], threads: int | None = None) -> list[Found]:
    """Do several things, as many at once as there are threads; give what they give.

    Of several errors the first in their order is raised, as if they were done one by one.

    >>> together([lambda: 1, lambda: 2], threads=2)
    [1, 2]
    """
    count = min(threads or cores(), len(works))
    if count <= 1:
        return [work() for work in works]
    with ThreadPoolExecutor(count) as workers:
        return list(workers.map(lambda work: work(), works))


def each(rows: int, *works: Callable[[], Any]) -> list[Any]:
    """Do several things at once if they are about many rows, else one by one."""
    return together(works, None if rows >= MANY_ROWS else 1)
