"""What more cores gain: a certified bitcoin-week by 1, 2, 4, 8 and 16 threads, part by part.

    python -m benchmarks.cores --size 1

Simulates a week, writes and reads it as a folder, builds graph and chain, then scores the coins to
a mean width for every number of threads and writes the scores once; kernels are compiled before
the clock starts. `solve` begins with the built chain; `sweep` is the sweep over lists by itself,
all tries together, and `serial` the share of the rest of the solve. Factors and expected steps are
found beside the sweep where there is more than one thread, and in `other` where not. `gain` and
`sweep gain` are against one thread. The scores must have the same bytes for every number of
threads. Then follows what every step of the whole way takes and its share of the wall time, with
all threads. Needs numpy, numba, scipy, pyarrow and msgspec, no database.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import coinhaze.solve.structure.structure
import coinhaze.solve.truncated.truncate
from coinhaze import AbsorbingChain, Scores, absorbing_chain, transaction_graph
from coinhaze.ledger import read_folder, write_folder
from coinhaze.report.files import write_scores
from coinhaze.simulate import simulate_week
from coinhaze.solve import score

WIDTH = 0.1
THREADS = (1, 2, 4, 8, 16)
# The parts of a solve, by the names under which solvers call them.
PARTS = {
    "certain": (coinhaze.solve.structure.structure, "certain_nodes"),
    "reduce": (coinhaze.solve.structure.structure, "reduce_chain"),
    "lump": (coinhaze.solve.structure.structure, "lump"),
    "levels": (coinhaze.solve.truncated.truncate, "list_worth"),
    "sweep": (coinhaze.solve.truncated.truncate, "sweep_blocks"),
    "certify": (coinhaze.solve.truncated.truncate, "certified"),
}
HEAD = (
    f"{'threads':>7} {'solve s':>8} {'cpu s':>8} {'gain':>6} {'sweep s':>8} {'sweep gain':>10} "
    f"{'serial':>7}"
)


@dataclass
class Clock:
    """Wall and CPU seconds of named steps, each added up over all calls."""

    wall: dict[str, float] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)

    def run(self, step: str, work: Callable[..., Any], *given: Any, **settings: Any) -> Any:
        """Call something and add up what it took."""
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            return work(*given, **settings)
        finally:
            self.wall[step] = self.wall.get(step, 0.0) + time.perf_counter() - wall
            self.cpu[step] = self.cpu.get(step, 0.0) + time.process_time() - cpu


@contextmanager
def clocked(clock: Clock) -> Iterator[None]:
    """Let a clock run whenever a part of a solve is called."""
    before = {part: getattr(*place) for part, place in PARTS.items()}

    def timed(part: str) -> Callable[..., Any]:
        return lambda *given, **settings: clock.run(part, before[part], *given, **settings)

    for part, (module, name) in PARTS.items():
        setattr(module, name, timed(part))
    try:
        yield
    finally:
        for part, (module, name) in PARTS.items():
            setattr(module, name, before[part])


@dataclass(frozen=True)
class Run:
    """One solve: its scores, and what it took."""

    threads: int
    clock: Clock
    scores: Scores

    @property
    def wall(self) -> float:
        """Seconds of the whole solve."""
        return self.clock.wall["solve"]

    @property
    def sweep(self) -> float:
        """Seconds of the sweeps by themselves; 0 where exact scores cost less than one."""
        return self.clock.wall.get("sweep", 0.0)

    @property
    def digest(self) -> str:
        """A digest of the scores: the same bytes have the same."""
        found = hashlib.sha256()
        for values in (self.scores.bits, self.scores.bits_low, self.scores.bits_high):
            found.update(values.tobytes())
        return found.hexdigest()

    def line(self, one: Run) -> str:
        """Show it in columns, beside the run of one thread."""
        gain = f"{one.sweep / self.sweep:>9.2f}x" if self.sweep else f"{'-':>10}"
        return (
            f"{self.threads:>7} {self.wall:>8.2f} {self.clock.cpu['solve']:>8.2f} "
            f"{one.wall / self.wall:>5.2f}x {self.sweep:>8.2f} {gain} "
            f"{1 - self.sweep / self.wall:>6.0%}"
        )


def solve(chain: AbsorbingChain, threads: int, width: float) -> Run:
    """Score all coins to a mean width."""
    clock = Clock()
    with clocked(clock):
        scores = clock.run("solve", score, chain, accuracy=width, over="mean", threads=threads)
    return Run(threads, clock, scores)


def table(title: str, steps: dict[str, float], cpu: dict[str, float]) -> None:
    """Print steps with their share of the wall time."""
    whole = sum(steps.values())
    print(f"\n{title:<28} {'wall s':>8} {'cpu s':>8} {'share':>6}")
    for step, wall in steps.items():
        print(f"{step:<28} {wall:>8.2f} {cpu[step]:>8.2f} {wall / whole:>6.0%}")


def parts_of(run: Run) -> tuple[dict[str, float], dict[str, float]]:
    """Give the parts of a solve, and what is left of it."""
    wall, cpu = dict(run.clock.wall), dict(run.clock.cpu)
    whole, whole_cpu = wall.pop("solve"), cpu.pop("solve")
    wall["other"], cpu["other"] = whole - sum(wall.values()), whole_cpu - sum(cpu.values())
    return wall, cpu


def main(size: float, threads: tuple[int, ...] = THREADS, width: float = WIDTH) -> list[Run]:
    """Print the tables; give the runs."""
    warm = absorbing_chain(transaction_graph(simulate_week("bitcoin-week", size=0.003)))
    solve(warm, max(threads), width)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"{platform.processor() or platform.machine()}, {cores} cores; bitcoin-week, {size:g}")
    steps = Clock()
    with tempfile.TemporaryDirectory() as home:
        week = Path(home) / "week"
        write_folder(steps.run("simulate", simulate_week, "bitcoin-week", size=size), week)
        ledger = steps.run("read", read_folder, week)
        graph = steps.run("graph", transaction_graph, ledger)
        chain = steps.run("chain", absorbing_chain, graph)
        print(f"{len(chain):,} nodes, {chain.walk.q.nnz:,} moves, {int(graph.sinks.sum()):,} sinks")
        print(HEAD)
        runs = [solve(chain, threads[0], width)]
        for count in threads:
            if count != threads[0]:
                runs.append(solve(chain, count, width))
            print(runs[-1].line(runs[0]), flush=True)
        last = runs[-1]
        steps.run("write", write_scores, last.scores, Path(home) / "scores.parquet", {})
    wall, cpu = parts_of(last)
    for name in ("simulate", "read", "graph", "chain"):
        wall[name], cpu[name] = steps.wall[name], steps.cpu[name]
    wall["write"], cpu["write"] = steps.wall["write"], steps.cpu["write"]
    order = ("simulate", "read", "graph", "chain", *PARTS, "other", "write")
    shown = {step: wall[step] for step in order if step in wall and step != "simulate"}
    table(f"with {last.threads} threads", shown, cpu)
    print(f"simulated in {wall['simulate']:.1f} s, which is no part of it")
    same = len({run.digest for run in runs}) == 1
    widths = np.nanmean(last.scores.bits_high - last.scores.bits_low)
    print(f"\n{last.scores.method}: {np.nanmean(last.scores.bits):.6f} bits, {widths:.4f} wide")
    print(f"same bytes for all numbers of threads: {'yes' if same else 'NO'}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"peak memory {peak:.2f} GB")
    return runs


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=float, default=0.1)
    parser.add_argument("--threads", type=int, nargs="+", default=THREADS)
    parser.add_argument("--width", type=float, default=WIDTH)
    given = parser.parse_args()
    main(given.size, tuple(given.threads), given.width)
