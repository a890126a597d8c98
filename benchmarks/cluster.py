"""Processes of this machine against as many threads: time, bytes, and a worker that is killed.

`python -m benchmarks.cluster` scores a part of the temporal ethereum-week (`--size`) exactly, and a
preview of it, by two threads and by two processes in turn. Printed are the wall time of each run,
the CPU seconds of all processes, and what starting takes; then a process is killed midway. It fails
if any byte differs, or if processes take more than 1.3 times the wall time of threads, the least of
each: other programs can only make a run longer.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from coinhaze import absorbing_chain, transaction_graph
from coinhaze.measures import Scores
from coinhaze.simulate import simulate_week
from coinhaze.solve.exact.engines import eliminate
from coinhaze.solve.pool import Budget, WorkerCluster
from coinhaze.solve.progress import Progress, silent
from coinhaze.solve.sketch.sketch import sketch
from coinhaze.solve.structure.structure import Structure

ALLOWED = 1.3  # times the wall time of threads
COMPARED = ("bits", "bits_low", "bits_high", "steps", "mass", "top", "top_probability")


class Taken(NamedTuple):
    """Seconds of one run."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:6.2f} s wall, {self.cpu:6.2f} s CPU"


def show(*words: object) -> None:
    print(*words, flush=True)


def cpu_of(process: int) -> float:
    """Give the CPU seconds of a process so far, 0 where the system does not say."""
    try:
        with open(f"/proc/{process}/stat") as file:
            after = file.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(after[11]) + int(after[12])) / os.sysconf("SC_CLK_TCK")


def cpu_now(cluster: WorkerCluster | None) -> float:
    """Give the CPU seconds of this process and of the workers."""
    others = [] if cluster is None else [process.pid for process in cluster._processes]
    return time.process_time() + sum(map(cpu_of, others))


def timed(
    solve: Callable[[], Scores], cluster: WorkerCluster | None = None
) -> tuple[Scores, Taken]:
    wall, cpu = time.perf_counter(), cpu_now(cluster)
    found = solve()
    return found, Taken(time.perf_counter() - wall, cpu_now(cluster) - cpu)


def is_same(one: Scores, other: Scores) -> bool:
    return all(getattr(one, n).tobytes() == getattr(other, n).tobytes() for n in COMPARED)


def killing(cluster: WorkerCluster) -> Progress:
    """Kill a worker once a third of the work is done."""
    victim = cluster._processes[0]

    def note(share: float, /) -> None:
        if share > 1 / 3 and victim.poll() is None:
            victim.send_signal(signal.SIGKILL)
            victim.wait()

    return note


def compare(
    name: str, solve: Callable[[Budget, Progress], Scores], cluster: WorkerCluster, turns: int
) -> bool:
    """Print one comparison; tell whether it holds."""
    threads, workers = Budget(threads=cluster.count), Budget(backend=cluster.open)
    show(f"\n{name}")
    solve(threads, silent)  # compiled, and memory touched, by both before either is timed
    solve(workers, silent)
    walls: dict[str, list[float]] = {"threads": [], "workers": []}
    good = True
    for _ in range(turns):
        expected, taken = timed(lambda: solve(threads, silent))
        show(f"  {cluster.count} threads    {taken}")
        walls["threads"].append(taken.wall)
        found, taken = timed(lambda: solve(workers, silent), cluster)
        good &= is_same(expected, found)
        show(f"  {cluster.count} processes  {taken}, {'same' if good else 'OTHER'} bytes")
        walls["workers"].append(taken.wall)
    ratio = min(walls["workers"]) / min(walls["threads"])
    show(f"  processes take {ratio:.2f} times the wall time of threads, at most {ALLOWED} allowed")
    found, taken = timed(lambda: solve(workers, killing(cluster)))
    same = is_same(expected, found)
    show(f"  one killed   {taken.wall:6.2f} s wall, {'same' if same else 'OTHER'} bytes")
    return good and same and ratio <= ALLOWED


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=float, default=0.1, help="part of the week")
    parser.add_argument("--turns", type=int, default=3, help="how often each is timed")
    parser.add_argument("--draws", type=int, default=4096, help="of the preview")
    given = parser.parse_args()
    week = simulate_week("ethereum-week", size=given.size)
    chain = absorbing_chain(transaction_graph(week, time="temporal"))
    rows = np.flatnonzero(chain.graph.sinks)
    lumped = Structure(chain).lump(rows, np.zeros(0))
    columns = len(lumped.columns)
    show(f"ethereum-week, {given.size:.0%}, temporal: {len(rows):,} rows, {columns:,} columns")
    begin = time.perf_counter()
    with WorkerCluster(2) as cluster:
        opened = time.perf_counter() - begin
        sketch(chain, rows, draws=128, budget=Budget(backend=cluster.open))
        ready = time.perf_counter() - begin
        show(f"start: scheduler {opened:.2f} s, processes ready and compiled {ready:.2f} s")

        def exactly(budget: Budget, progress: Progress) -> Scores:
            settings: Any = {"width": np.inf, "lumped": lumped, "progress": progress}
            return eliminate(chain, rows, budget=budget, **settings)

        def drawn(budget: Budget, progress: Progress) -> Scores:
            return sketch(chain, rows, draws=given.draws, budget=budget, progress=progress)

        good = compare("exact", exactly, cluster, given.turns)
        good &= compare(f"preview, {given.draws} draws", drawn, cluster, given.turns)
    if not good:
        sys.exit("a byte differs, or processes are too slow")


if __name__ == "__main__":
    main()
