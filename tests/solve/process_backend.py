"""A backend from outside the package, in one file: another process solves the pieces."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

from coinhaze.solve.pool import Budget, Work, register_backend


def _solve(work: Work[Any, Any, Any], piece: Any) -> tuple[int, Any]:
    return os.getpid(), work.solve(piece, work.room())


class ProcessWorkers:
    """One other process, and whether it was this one after all."""

    count = 1

    def __init__(self, executor: ProcessPoolExecutor) -> None:
        self.executor = executor
        self.work: Any = None
        self.solved: list[int] = []

    def map(self, pieces: Iterable[Any]) -> Iterator[Any]:
        for piece in pieces:
            process, part = self.executor.submit(_solve, self.work, piece).result()
            self.solved.append(process)
            yield part

    @contextmanager
    def open(self, work: Any, pieces: int, budget: Budget) -> Iterator[ProcessWorkers]:
        self.work = work
        yield self


@contextmanager
def processes() -> Iterator[ProcessWorkers]:
    """Start the process and register it as a backend."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        workers = ProcessWorkers(executor)
        register_backend("process", workers.open)
        yield workers
