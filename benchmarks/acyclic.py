"""Chains without cycles: what certified intervals and the tail sketch cost, and how far they err.

    python -m benchmarks.acyclic --size 0.01          a part of a made-up week of Bitcoin
    python -m benchmarks.acyclic FOLDER               a ledger on disk

Kernels are compiled before the clock starts. Wall and CPU seconds begin with the built chain;
memory is the peak of the whole process, beside what it was before. `entries/n` is the number of
list entries read for each node of the chain. `error` is the mean absolute difference in bits from
the exact rows of random sinks, each pushed back through its past by a loop that shares nothing
with the solvers; `outside` counts those that lie outside their proven interval. Nothing is
extrapolated but where it says so.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import time
from dataclasses import dataclass

import numpy as np

import coinhaze
from benchmarks.acyclic_kernels import push_back
from coinhaze import AbsorbingChain, absorbing_chain, transaction_graph
from coinhaze.amounts import Floats, Ints
from coinhaze.simulate import simulate_week
from coinhaze.solve.planner.cost import sweep_cost
from coinhaze.solve.query import Query
from coinhaze.solve.structure.lump import LumpedChain, lump
from coinhaze.solve.truncated.truncate import Over, Truncation, Try, narrowing, truncated

NS_AN_ENTRY = 10.0  # measured: an entry of a list read, mixed and written


@dataclass(frozen=True)
class Row:
    """One sweep."""

    name: str
    wall: float
    cpu: float
    per_state: float
    mean: float
    maximum: float
    worst: float
    error: float
    outside: int

    def line(self) -> str:
        """Show it in columns."""
        return (
            f"{self.name:<34} {self.wall:>7.1f} {self.cpu:>7.1f} {self.per_state:>9.1f} "
            f"{self.mean:>8.4f} {self.maximum:>8.4f} {self.worst:>8.4f} {self.error:>8.4f} "
            f"{self.outside:>7}"
        )


HEAD = (
    f"{'sweep':<34} {'wall s':>7} {'cpu s':>7} {'entries/n':>9} {'mean':>8} {'99 %':>8} "
    f"{'worst':>8} {'error':>8} {'outside':>7}"
)


def exact_bits(chain: AbsorbingChain, nodes: Ints) -> Floats:
    """Give the exact bits of a few nodes by pushing each back through its past."""
    waiting, mass = np.zeros(len(chain), dtype=np.int32), np.zeros(len(chain))
    past, bits = np.empty(len(chain), dtype=np.int64), np.empty(len(nodes))
    for k, node in enumerate(nodes):
        outcomes, chances = push_back(
            chain.Q.indptr, chain.Q.indices, chain.Q.data, chain.walk.own, chain.column,
            int(node), waiting, mass, past,
        )  # fmt: skip
        _, which = np.unique(outcomes, return_inverse=True)
        p = np.bincount(which, chances)
        p = p[p > 0]
        bits[k] = -float((p * np.log2(p)).sum())
    return bits


def measured(tried: Try, *, wall: float, cpu: float, some: Ints, truth: Floats) -> Row:
    """Hold one sweep against the exact rows."""
    scores, widths = tried.scores, tried.widths
    outside = (truth < scores.bits_low[some] - 1e-9) | (truth > scores.bits_high[some] + 1e-9)
    return Row(
        name=scores.method,
        wall=wall,
        cpu=cpu,
        per_state=tried.swept.entries / len(tried.scores.chain),
        mean=widths.mean,
        maximum=widths.maximum,
        worst=widths.worst,
        error=float(np.abs(scores.bits[some] - truth).mean()),
        outside=int(outside.sum()),
    )


def memory() -> float:
    """Give the most memory this process ever held, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def clock() -> tuple[float, float]:
    """Give wall and CPU seconds."""
    return time.perf_counter(), time.process_time()


def run(chain: AbsorbingChain, *, width: float, over: Over, sinks: int, seed: int) -> list[Row]:
    """Print what a certified run does, try by try, and what an exact run would take."""
    rows = np.flatnonzero(chain.graph.sinks)
    before = memory()
    begun = clock()
    lumped = all_sinks(chain)
    query, question = lumped.query, Truncation.of(lumped, over=over)
    ready = clock()
    print(
        f"{len(query.reduced)} states, {len(query.reduced.indices)} moves, "
        f"{len(question.columns)} columns, {len(rows)} sinks on {len(query.scored)} states"
    )
    print(f"prepared in {ready[0] - begun[0]:.1f} s wall, {ready[1] - begun[1]:.1f} s CPU")
    tries = []
    last = ready
    for tried in narrowing(question, width=width, over=over):
        now = clock()
        tries.append((tried, now[0] - last[0], now[1] - last[1]))
        print(f"{tried.scores.method}: intervals {tried.widths}", flush=True)
        last = now
    peak = memory()
    rng = np.random.default_rng(seed)
    some = np.sort(rng.choice(len(rows), size=min(sinks, len(rows)), replace=False))
    begun_rows = time.process_time()
    truth = exact_bits(chain, rows[some])
    pushed = time.process_time() - begun_rows
    print(HEAD)
    table = [measured(t, wall=w, cpu=c, some=some, truth=truth) for t, w, c in tries]
    for row in table:
        print(row.line())
    print(
        f"in all {last[0] - begun[0]:.1f} s wall, {last[1] - begun[1]:.1f} s CPU from the built "
        f"chain; peak memory {peak:.2f} GB, {before:.2f} GB before"
    )
    print(
        f"error: mean over {len(some)} random sinks (seed {seed}), whose mean is "
        f"{truth.mean():.3f} bits; their exact rows took {pushed:.0f} s CPU"
    )
    cost = sweep_cost(query, question.columns)
    print(
        f"exact (extrapolated from a sample of columns): {cost.entries:.1e} entries, "
        f"{cost.entries * NS_AN_ENTRY * 1e-9:.0f} s CPU, {cost.blocks} blocks"
    )
    return table


def main(
    folder: str | None, *, size: float, seed: int, width: float, over: Over, sinks: int
) -> list[Row]:
    """Print the table."""
    small = simulate_week("bitcoin-week", size=0.001)
    truncated(all_sinks(absorbing_chain(transaction_graph(small))), width=width, over=over)
    ledger = coinhaze.read(folder) if folder else simulate_week("bitcoin-week", size=size)
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores")
    chain = absorbing_chain(transaction_graph(ledger))
    print(f"{folder or f'bitcoin-week, size {size:g}'}: {chain}")
    return run(chain, width=width, over=over, sinks=sinks, seed=seed)


def all_sinks(chain: AbsorbingChain) -> LumpedChain:
    """Ask about all sinks."""
    return lump(Query.of(chain, np.flatnonzero(chain.graph.sinks)), np.zeros(0))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--size", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--width", type=float, default=0.1)
    parser.add_argument("--over", choices=("mean", "worst"), default="mean")
    parser.add_argument("--sinks", type=int, default=200)
    given = vars(parser.parse_args())
    main(given.pop("folder"), **given)
