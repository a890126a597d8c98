"""The backend of one process: threads, each with room of its own; kernels release the GIL."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Generic

from coinhaze.solve.planner import thresholds
from coinhaze.solve.pool.backend import Part, Piece, Room, Work, register_backend
from coinhaze.solve.pool.limits import THREADS, Budget


class ThreadWorkers(Generic[Piece, Room, Part]):
    """Threads that take the next piece as they become free."""

    def __init__(
        self, work: Work[Piece, Room, Part], count: int, executor: ThreadPoolExecutor
    ) -> None:
        self.work = work
        self.count = count
        self._executor = executor
        self._rooms = [work.room() for _ in range(count)]

    def map(self, pieces: Iterable[Piece]) -> Iterator[Part]:
        """Give the parts in the order of their pieces, few of them begun ahead of the first.

        Parts are large, and wait in memory to be added in order. A single worker is the caller's
        own thread: handing small pieces over takes longer than solving them.
        """
        if self.count == 1:
            yield from map(self._solve, pieces)
            return
        begun: deque[Future[Part]] = deque()
        for piece in pieces:
            if len(begun) == self.count * self.work.waiting:
                yield begun.popleft().result()
            begun.append(self._executor.submit(self._solve, piece))
        while begun:
            yield begun.popleft().result()

    def _solve(self, piece: Piece) -> Part:
        room = self._rooms.pop()
        try:
            return self.work.solve(piece, room)
        finally:
            self._rooms.append(room)


@contextmanager
def open_threads(work: Any, pieces: int, budget: Budget) -> Iterator[ThreadWorkers[Any, Any, Any]]:
    """Open as many threads as the budget and the memory of their rooms allow, and are worth it."""
    pieces = int(min(pieces, 1 + work.seconds / thresholds.THREAD_SECONDS))
    count = budget.workers(pieces, room_bytes=work.room_bytes, what="a tile of columns")
    executor = ThreadPoolExecutor(count)
    try:
        yield ThreadWorkers(work, count, executor)
    finally:
        executor.shutdown(cancel_futures=True)


register_backend(THREADS, open_threads)
