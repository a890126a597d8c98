"""A backend is one file: engines hand it their pieces, and no bit of a score changes."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import coinhaze
from coinhaze import absorbing_chain, transaction_graph
from coinhaze.errors import UsageError
from coinhaze.simulate import simulate_week
from coinhaze.solve.pool import Budget, register_backend
from coinhaze.solve.pool.threads import open_threads
from coinhaze.solve.sketch.sketch import sketch
from solve import process_backend
from solve.process_backend import ProcessWorkers

FOUND = ("bits", "bits_low", "bits_high", "steps", "mass", "top", "top_probability")


class SerialWorkers:
    """The least a backend can be: one piece after the other, here and now."""

    count = 1

    def __init__(self, work: Any) -> None:
        self.work, self.room = work, work.room()

    def map(self, pieces: Iterable[Any]) -> Iterator[Any]:
        return (self.work.solve(piece, self.room) for piece in pieces)


@contextmanager
def open_serial(work: Any, pieces: int, budget: Budget) -> Iterator[SerialWorkers]:
    yield SerialWorkers(work)


register_backend("serial", open_serial)


def same(one: coinhaze.Scores, other: coinhaze.Scores) -> None:
    for name in FOUND:
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name


def solves(chain: coinhaze.AbsorbingChain, budget: Budget) -> list[coinhaze.Scores]:
    """Score by tiles, by lists and by draws."""
    rows = np.flatnonzero(chain.graph.sinks)
    return [
        coinhaze.solve.eliminate(chain, rows, budget=budget),
        coinhaze.solve.sweep(chain, rows, width=0.1, over="mean", budget=budget),
        sketch(chain, rows, budget=budget),
    ]


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessWorkers]:
    with process_backend.processes() as workers:
        yield workers


@pytest.mark.parametrize(("week", "size"), [("bitcoin-week", 0.0003), ("dai-week", 0.002)])
def test_a_backend_from_outside_gives_the_same_bits(
    week: str, size: float, processes: ProcessWorkers
) -> None:
    chain = absorbing_chain(transaction_graph(simulate_week(week, size=size)))
    threads = solves(chain, Budget())
    for backend in ("serial", "process"):
        for one, other in zip(threads, solves(chain, Budget(backend=backend)), strict=True):
            same(one, other)
    assert len(set(processes.solved)) == 1
    assert os.getpid() not in processes.solved


def test_an_unknown_backend_is_refused() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    chain = absorbing_chain(transaction_graph(ledger))
    with pytest.raises(UsageError, match=r"unknown backend 'moon': one of threads"):
        sketch(chain, np.array([2]), budget=Budget(backend="moon"))


def test_short_work_starts_no_thread() -> None:
    """A tile of microseconds is solved sooner than it is handed over."""

    @dataclass(frozen=True)
    class Count:
        seconds: float
        room_bytes: int = 0
        waiting: int = 2

        def room(self) -> None:
            return None

        def solve(self, piece: int, room: None) -> tuple[int, str]:
            return piece, threading.current_thread().name

    here = threading.current_thread().name
    for seconds, maximum in ((0.0, 1), (0.019, 1), (0.05, 3), (math.inf, 4)):
        with open_threads(Count(seconds), 40, Budget(threads=4)) as workers:
            found = list(workers.map(range(40)))
        assert workers.count == maximum
        assert [piece for piece, _ in found] == list(range(40))
        assert (here in {name for _, name in found}) == (maximum == 1)
