"""Run a piece of work in a process of its own: its time and its peak memory."""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Run:
    """What a piece of work gave and took; `error` says why it gave nothing."""

    value: Any
    cpu: float
    wall: float
    peak_mb: float
    error: str = ""


def run_apart(work: Callable[[], Any]) -> Run:
    """Fork, so that what is built is shared, and measure the child alone.

    Peak memory is that of the whole child: ledger, graph and chain count.
    """
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(work, send))
    child.start()
    send.close()
    try:
        run: Run = receive.recv()
    except EOFError:
        child.join()
        return Run(None, 0.0, 0.0, 0.0, f"ended with code {child.exitcode}")
    child.join()
    return run


def _child(work: Callable[[], Any], send: Any) -> None:
    from coinhaze.errors import CoinhazeError

    cpu, wall = time.process_time(), time.perf_counter()
    value, error = None, ""
    try:
        value = work()
    except CoinhazeError as refusal:
        error = str(refusal)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    send.send(Run(value, cpu, wall, peak, error))
