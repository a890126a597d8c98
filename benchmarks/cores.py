"""What more cores gain: a certified bitcoin-week by 1, 2, 4, 8 and 16 threads, part by part.

    python -m benchmarks.cores --size 1

Simulates a week, writes and reads it as a folder, builds graph and chain, then scores the coins to
a mean width for every number of threads and writes the scores once; kernels are compiled before
the clock starts. `solve` begins with the built chain; `sweep` is the sweep over lists by itself,
all tries together, and `serial` the share of the rest of the solve. Factors and expected steps are
found beside the sweep where there is more than one thread, and in `other` where not. `gain` and
`sweep gain` are against one thread. The scores must have the same bytes for every number of
threads. Then follows what every step of the whole way takes with all threads, its share of the wall
time, and what it takes with the first number of threads; and what of the solve is not shared out,
T = serial + (T1 - serial) / threads, with the gain that leaves on 16 cores of the same speed. Needs
numpy, numba, scipy, pyarrow and msgspec, no database.
"""

from __future__ import annotations

import argparse
import hashlib
import platform
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import coinhaze.solve.structure.structure
import coinhaze.solve.truncated.truncate
from coinhaze import AbsorbingChain, Scores, absorbing_chain, transaction_graph
from coinhaze.ledger import read_folder, write_folder
from coinhaze.report.files import write_scores
from coinhaze.simulate import simulate_week
from coinhaze.solve import score
from coinhaze.solve.pool import Budget
from coinhaze.threads import at_most, cores

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


def table(title: str, of: Steps, one: Steps) -> None:
    """Print steps with their share of the wall time, beside the same by fewer threads."""
    whole = sum(of.wall.values())
    print(f"\n{title:<28} {'wall s':>8} {'cpu s':>8} {'share':>6} {'before':>8} {'gain':>6}")
    for step, wall in of.wall.items():
        before = one.wall.get(step, 0.0)
        print(
            f"{step:<28} {wall:>8.2f} {of.cpu[step]:>8.2f} {wall / whole:>6.0%} {before:>8.2f} "
            f"{before / max(wall, 1e-9):>5.2f}x"
        )
    before = sum(one.wall.values())
    print(
        f"{'all':<28} {whole:>8.2f} {sum(of.cpu.values()):>8.2f} {'':>6} {before:>8.2f} "
        f"{before / whole:>5.2f}x"
    )


def not_shared(one: Run, last: Run) -> str:
    """Say how much of the solve does not become shorter with more threads."""
    p = last.threads / one.threads
    serial = max((p * last.wall - one.wall) / (p - 1), 0.0)
    on_16 = one.wall / (serial + (one.wall - serial) / 16)
    return (
        f"not shared out: {serial:.2f} s of {one.wall:.2f} s, {serial / one.wall:.0%}, which "
        f"leaves a gain of {on_16:.1f}x on 16 cores"
    )


class Steps(NamedTuple):
    """Wall and CPU seconds of the steps of the whole way, in their order."""

    wall: dict[str, float]
    cpu: dict[str, float]

    @classmethod
    def of(cls, run: Run, steps: Clock) -> Steps:
        """Put the parts of a solve between what goes before and what follows."""
        found = []
        for solve, around in ((run.clock.wall, steps.wall), (run.clock.cpu, steps.cpu)):
            parts = {part: solve[part] for part in PARTS if part in solve}
            rest = {"other": solve["solve"] - sum(parts.values()), "write": around["write"]}
            found.append({step: around[step] for step in ("read", "graph", "chain")} | parts | rest)
        return cls(*found)


def opened(week: Path, threads: int, steps: Clock) -> AbsorbingChain:
    """Go from a folder to a chain."""
    with at_most(threads):
        graph = steps.run("graph", transaction_graph, steps.run("read", read_folder, week))
        chain: AbsorbingChain = steps.run("chain", absorbing_chain, graph)
    return chain


def main(size: float, threads: tuple[int, ...] = THREADS, width: float = WIDTH) -> list[Run]:
    """Print the tables; give the runs."""
    warm = absorbing_chain(transaction_graph(simulate_week("bitcoin-week", size=0.003)))
    print(f"{platform.processor() or platform.machine()}, {cores()} cores; bitcoin-week, {size:g}")
    steps = {count: Clock() for count in (threads[0], threads[-1])}
    with tempfile.TemporaryDirectory() as home:
        week, to = Path(home) / "week", Path(home) / "scores.parquet"
        write_scores(solve(warm, max(threads), width).scores, to, {})
        begun = time.perf_counter()
        write_folder(simulate_week("bitcoin-week", size=size), week)
        print(
            f"simulated and written in {time.perf_counter() - begun:.1f} s, which is no part of it"
        )
        for count, clock in steps.items():
            chain = opened(week, count, clock)
        sinks = int(chain.graph.sinks.sum())
        print(f"{len(chain):,} nodes, {chain.walk.q.nnz:,} moves, {sinks:,} sinks")
        print(HEAD)
        runs = [solve(chain, threads[0], width)]
        for count in threads:
            if count != threads[0]:
                runs.append(solve(chain, count, width))
            print(runs[-1].line(runs[0]), flush=True)
        last = runs[-1]
        for count, clock in steps.items():
            clock.run("write", write_scores, last.scores, to, {}, budget=Budget(threads=count))
    one, of = Steps.of(runs[0], steps[threads[0]]), Steps.of(last, steps[threads[-1]])
    table(f"with {last.threads} threads, {runs[0].threads} before", of, one)
    same = len({run.digest for run in runs}) == 1
    widths = np.nanmean(last.scores.bits_high - last.scores.bits_low)
    if last.threads != runs[0].threads:
        print(f"\n{not_shared(runs[0], last)}")
    print(f"{last.scores.method}: {np.nanmean(last.scores.bits):.6f} bits, {widths:.4f} wide")
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
