"""Ordered policies: what it takes to follow every coin of a week, and listed ones forward.

    python -m benchmarks.lots --size 0.1           a part of a made-up week of Bitcoin
    python -m benchmarks.lots FOLDER               a ledger on disk

Kernels are compiled before the clock starts, which begins with the built graph. Each policy runs in
a process of its own: memory is its peak, ledger and graph included. `lots` is the most there
ever were, `bound` sources plus payments. Forward, one source in a thousand is listed; every policy
must place each listed unit, or the run stops.
"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

import coinhaze
from benchmarks.apart import run_apart
from coinhaze import TransactionGraph, transaction_graph
from coinhaze.simulate import simulate_town, simulate_week
from coinhaze.solve.lots.lots_kernels import MADE

FORWARD = ("fifo", "lifo", "tiho", "haircut")
ONE_IN = 1000


@dataclass(frozen=True)
class Row:
    """What one policy took, and what it said."""

    name: str
    wall: float
    cpu: float
    peak_mb: float
    said: str

    def line(self) -> str:
        """Show it in columns."""
        return (
            f"{self.name:<16} {self.wall:>7.1f} {self.cpu:>7.1f} {self.peak_mb:>8.0f}  {self.said}"
        )


HEAD = f"{'policy':<16} {'wall s':>7} {'cpu s':>7} {'peak MB':>8}"


def backward(graph: TransactionGraph, order: str) -> str:
    """Score every sink by its lots."""
    held = coinhaze.lots(graph, order=order)  # type: ignore[arg-type]
    scores = coinhaze.score(held)
    bound = len(held.payments.openers) + held.payments.cuts()
    return (
        f"{len(scores)} sinks, mean {np.nanmean(scores.bits):.4f} bits, widest interval "
        f"{scores.width:.1e}; lots {held.queues.count[MADE]}, bound {bound}"
    )


def forward(graph: TransactionGraph, policy: str) -> str:
    """Follow one source in a thousand to where its money is now."""
    sources = np.flatnonzero(graph.sources)[::ONE_IN]
    listed = graph.names.of_sources(sources).to_pylist()
    taint = coinhaze.taint(graph, listed, policies=[policy])
    held = taint.haircut if policy == "haircut" else taint.amounts(policy).floats()
    assert held is not None
    return f"{len(listed)} listed, {int(np.sum(held > 0))} sinks hold {float(np.sum(held)):.6e}"


def main(graph: TransactionGraph) -> list[Row]:
    """Print the table."""
    small = transaction_graph(simulate_town(transactions=50))
    for order in ("fifo", "lifo"):
        backward(small, order)
    for policy in FORWARD:
        forward(small, policy)
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores")
    print(f"{graph}\n{HEAD}")
    tasks: list[tuple[str, Callable[[TransactionGraph, str], str], str]] = [
        (f"score, {order}", backward, order) for order in ("fifo", "lifo")
    ]
    tasks += [(f"taint, {policy}", forward, policy) for policy in FORWARD]
    rows = []
    for name, work, policy in tasks:
        run = run_apart(partial(work, graph, policy))
        rows.append(Row(name, run.wall, run.cpu, run.peak_mb, run.error or run.value))
        print(rows[-1].line(), flush=True)
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--size", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    ledger = (
        coinhaze.read(given.folder)
        if given.folder
        else simulate_week("bitcoin-week", size=given.size, seed=given.seed)
    )
    main(transaction_graph(ledger))
