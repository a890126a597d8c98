"""The paper's method and ours on the same simulated weeks, in one run: `make bench`.

Every method runs in a process of its own that shares the built chain. Times are CPU seconds (all
threads) and wall seconds, kernels compiled before; peak memory is of the whole process, ledger and
graph included. `error` is the mean and the largest difference in bits from the exact answer, or
from exact rows of 200 random sinks where the whole is not solved exactly. `ratio` is the CPU time
of the published rule divided by the method's. A `*` marks what is scaled up from a sample of the
series' slices; nothing else is extrapolated.

The rule as published: Q^k R is added up for 16 columns at a time until no entry of a slice exceeds
0.001. Slices run in as many threads as ours use, with scipy's sparse times dense product, whose
cost for one entry is measured beside a bare product, so that the baseline is no straw man.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

import coinhaze
from benchmarks.apart import Run, run_apart
from coinhaze import AbsorbingChain, Scores, absorbing_chain, transaction_graph
from coinhaze.amounts import Floats, Ints
from coinhaze.simulate import simulate_week
from coinhaze.simulate.weeks.zcash import zcash_history
from coinhaze.solve.query import Query

SLICE = 16
THRESHOLD = 0.001


@dataclass(frozen=True)
class Cost:
    """Time of the series on one chain; scaled up where only some slices were run."""

    cpu: float
    wall: float
    slices: int
    run: int
    products: float  # of each slice, on average
    entry_ns: float  # CPU time for each entry of a product, in nanoseconds
    bare_ns: float  # the same of a bare product
    scaled: bool  # whether some slices or products were left out


def cost_of_series(
    chain: AbsorbingChain, *, tolerance: float | None, seconds: float, threads: int, seed: int = 1
) -> Cost:
    """Run slices in a random order until all are done or the time is up, and scale up.

    `tolerance` None is the published rule; a number is the mass the worst row may miss, so that
    every slice needs as many products as that takes.
    """
    q, r = chain.Q, scipy.sparse.csc_array(chain.R)
    slices = -(-r.shape[1] // SLICE)
    order = np.random.default_rng(seed).permutation(slices)
    fixed = None if tolerance is None else products_for(chain, tolerance, seconds)

    wall = time.perf_counter()

    def run(k: int) -> int:
        part = r[:, k * SLICE : (k + 1) * SLICE].toarray()
        total = part.copy()
        products = 0
        while products < fixed if fixed is not None else part.max() > THRESHOLD:
            part = q @ part
            total += part
            products += 1
            # With a fixed number of products each costs the same: some of them tell.
            if fixed is not None and time.perf_counter() - wall > seconds:
                break
        return products

    bare = _bare(q)
    cpu, wall = time.process_time(), time.perf_counter()
    done, products = 0, 0
    with ThreadPoolExecutor(threads) as pool:
        while done < slices and time.perf_counter() - wall < seconds:
            some = order[done : done + 2 * threads].tolist()
            products += sum(pool.map(run, some))
            done += len(some)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    entries = max(products, 1) * q.nnz * SLICE
    whole = slices / done if fixed is None else slices * fixed / max(products, 1)
    return Cost(
        cpu * whole,
        wall * whole,
        slices,
        done,
        products / done if fixed is None else fixed,
        cpu / entries * 1e9,
        bare,
        whole > 1,
    )


def products_for(chain: AbsorbingChain, tolerance: float, seconds: float) -> int:
    """Count the products until no sink misses more than the tolerance of its mass."""
    alive = np.ones(len(chain))
    sinks = chain.graph.sinks
    begin = time.perf_counter()
    for k in range(1_000_000):
        worst = float(alive[sinks].max())
        if worst <= tolerance:
            return k
        if time.perf_counter() - begin > seconds:
            # A lower bound is fair to the series: it would need at least this many.
            return k
        alive = chain.Q @ alive
    return k


def _bare(q: scipy.sparse.csr_array) -> float:
    """Time a product of Q with a dense slice and nothing else."""
    x: npt.NDArray[np.float64] = np.random.default_rng(1).random((q.shape[1], SLICE))
    best = float("inf")
    for _ in range(3):
        begin = time.process_time()
        q @ x
        best = min(best, time.process_time() - begin)
    return best / (int(q.nnz) * SLICE) * 1e9


SAMPLE = 200


@dataclass(frozen=True)
class Case:
    """One view of one week, and the accuracies to compare on it."""

    week: str
    settings: dict[str, Any]
    methods: dict[str, dict[str, Any]]
    size: float = 1.0
    long: bool = False  # takes many minutes: run only when requested

    @property
    def name(self) -> str:
        """Say which week and view."""
        view = " ".join(str(v) for v in self.settings.values()) or "stationary"
        size = "" if self.size == 1.0 else f" {self.size:.0%}"
        return f"{self.week}{size}, {view}"


EXACT: dict[str, Any] = {"accuracy": "exact"}
PREVIEW: dict[str, Any] = {"accuracy": "preview", "seed": 0}


def within(bits: float, *, over: str = "worst") -> dict[str, Any]:
    """Ask for a proven interval."""
    return {"accuracy": bits, "over": over}


CASES = (
    Case("dai-week", {}, {"exact": EXACT, "preview": PREVIEW}),
    Case("usdc-week", {}, {"exact": EXACT, "preview": PREVIEW}),
    Case("ethereum-week", {}, {"exact": EXACT, "preview": PREVIEW}, size=0.1),
    Case("ethereum-week", {}, {"preview": PREVIEW}),
    Case("ethereum-week", {}, {"exact": EXACT | {"memory": "4GB"}}, long=True),
    Case("dai-week", {"time": "temporal"}, {"exact": EXACT, "within 0.01": within(0.01)}),
    Case("usdc-week", {"time": "temporal"}, {"exact": EXACT, "within 0.01": within(0.01)}),
    Case("ethereum-week", {"time": "temporal"}, {"within 0.1": within(0.1, over="mean")}),
    Case("zcash-week", {}, {"exact": EXACT, "preview": PREVIEW}),
    Case("zcash-week", {"view": "address"}, {"exact": EXACT, "preview": PREVIEW}),
    Case("bitcoin-week", {}, {"preview": PREVIEW, "mean within 0.1": within(0.1, over="mean")}),
    Case(
        "bitcoin-week",
        {"view": "address"},
        {"preview": PREVIEW | {"memory": "4GB"}, "mean within 2": within(2.0, over="mean")},
    ),
)


@dataclass(frozen=True)
class Row:
    """One method on one ledger."""

    case: str
    method: str
    run: Run
    ratio: float
    mean_error: float = np.nan
    worst_error: float = np.nan
    remark: str = ""
    scaled: bool = False  # the times were scaled up ...
    ratio_scaled: bool = False  # ... or those they are compared with

    def line(self) -> str:
        """Show it in columns."""
        if self.run.error:
            return f"  {self.method:<22} {self.run.error}"
        star = "*" if self.scaled else " "
        against = "*" if self.scaled or self.ratio_scaled else " "
        return (
            f"  {self.method:<22} {self.run.cpu:>10.2f}{star} {self.run.wall:>9.2f}{star} "
            f"{self.run.peak_mb:>7.0f} {_bits(self.mean_error)} {_bits(self.worst_error)} "
            f"{self.ratio:>9.1f}{against} {self.remark}"
        )


HEAD = (
    f"  {'method':<22} {'cpu s':>10}  {'wall s':>9}  {'peak MB':>7} {'mean err':>8} "
    f"{'max err':>8} {'ratio':>9}"
)


def _bits(value: float) -> str:
    return f"{'':>8}" if np.isnan(value) else f"{value:>8.1e}"


@dataclass
class Comparison:
    """Runs every method of a case and keeps the rows."""

    case: Case
    chain: AbsorbingChain
    seconds: float
    threads: int
    rows: list[Row] = field(default_factory=list)

    def all(self) -> Iterator[Row]:
        """Run the series, then ours, and compare."""
        published = self._series("published rule", None)
        yield published
        yield self._series("series to 1e-9", 1e-12, published.run.cpu)
        exact: dict[str, Any] | None = None
        for method, options in self.case.methods.items():
            run = run_apart(partial(self._slim_score, options))
            found = run.value
            if found is None:
                yield Row(self.case.name, method, run, np.nan)
                continue
            if options["accuracy"] == "exact":
                exact = found
            truth = exact or self._sampled
            errors = np.abs(found["bits"] - truth["bits"])[~np.isnan(truth["bits"])]
            yield Row(
                self.case.name,
                method,
                run,
                published.run.cpu / max(run.cpu, 1e-9),
                float(errors.mean()) if len(errors) else np.nan,
                float(errors.max()) if len(errors) else np.nan,
                found["remark"],
                ratio_scaled=published.scaled,
            )

    def _slim_score(self, options: dict[str, Any]) -> dict[str, Any]:
        return _slim(coinhaze.score(self.chain, threads=self.threads, **options))

    @cached_property
    def _sampled(self) -> dict[str, Any]:
        """Give exact bits of a few random sinks, null elsewhere."""
        sinks = np.flatnonzero(self.chain.graph.sinks)
        chosen = np.sort(np.random.default_rng(7).permutation(len(sinks))[:SAMPLE])
        bits = np.full(len(sinks), np.nan)
        bits[chosen] = run_apart(partial(exact_rows, self.chain, sinks[chosen])).value
        return {"bits": bits}

    def _series(self, name: str, tolerance: float | None, against: float | None = None) -> Row:
        run = run_apart(
            lambda: cost_of_series(
                self.chain, tolerance=tolerance, seconds=self.seconds, threads=self.threads
            )
        )
        cost = run.value
        shown = Run(None, cost.cpu, cost.wall, run.peak_mb)
        remark = (
            f"{cost.products:.0f} products a slice, {cost.entry_ns:.1f} ns an entry "
            f"(bare product {cost.bare_ns:.1f}), {cost.run} of {cost.slices} slices"
        )
        ratio = (against or cost.cpu) / cost.cpu
        return Row(self.case.name, name, shown, ratio, remark=remark, scaled=cost.scaled)


def exact_rows(chain: AbsorbingChain, rows: Ints) -> Floats:
    """Give the bits of a few rows by the transposed solve: expected visits to every state."""
    options = Query.of(chain, rows)
    ends = np.flatnonzero(options.reduced.column >= 0)
    bits = np.empty(len(rows))
    for k, state in enumerate(options.reduced.state[rows].tolist()):
        p = (options.factor.visits(state) * options.reduced.own)[ends]
        p = p[p > 0]
        bits[k] = -(p * np.log2(p)).sum()
    return bits


def _slim(scores: Scores) -> dict[str, Any]:
    """Keep what is compared."""
    widths = (scores.bits_high - scores.bits_low)[~np.isnan(scores.bits)]
    at = ", ".join(f"{np.quantile(widths, q):.2g}" for q in (0.5, 0.9, 0.99, 1.0))
    width = f"width mean {widths.mean():.2g}, quantiles .5 .9 .99 1: {at}"
    if scores.bits_error is not None:
        error = np.nanmax(scores.bits_error)
        width = f"standard error {error:.2f}, of the mean {scores.mean_error:.2f}"
    return {
        "bits": scores.bits,
        "remark": f"mean {np.nanmean(scores.bits):.3f} bits; {width}; {scores.method}",
    }


def warm() -> None:
    """Compile every kernel on small weeks."""
    for case in CASES:
        chain = chain_of(case, 0.002)
        for options in case.methods.values():
            coinhaze.score(chain, **options)


def chain_of(case: Case, size: float) -> AbsorbingChain:
    """Simulate a week and build the chain of one view."""
    ledger = simulate_week(case.week, size=size)
    history = None
    if case.week == "zcash-week":
        entered = zcash_history(size=size, seed=1)
        # A small week may leave a pool alone.
        history = {p: v for p, v in entered.items() if p in ledger.facts()["pools"]}  # type: ignore[operator]
    return absorbing_chain(transaction_graph(ledger, **case.settings), history=history)


def main(
    *, size: float, only: str = "", long: bool = False, seconds: float = 60.0, threads: int = 2
) -> list[Row]:
    """Print the table, for weeks of a fraction of their size."""
    warm()
    cores = os.cpu_count()
    print(f"{platform.processor() or platform.machine()}, {cores} cores, {threads} threads")
    print(f"Python {platform.python_version()}, size {size:g}, scaled up after {seconds:g} s")
    rows = []
    for case in CASES:
        if only not in case.name or case.long != long:
            continue
        chain = chain_of(case, size * case.size)
        print(f"\n{case.name}: {chain.graph}\n{HEAD}")
        if case.long:
            plan = coinhaze.plan(chain, **next(iter(case.methods.values())))
            print(f"  estimate beforehand: {plan.seconds:.0f} s, {plan.memory / 2**20:.0f} MB")
        for row in Comparison(case, chain, seconds, threads).all():
            print(row.line(), flush=True)
            rows.append(row)
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=float, default=1.0, help="fraction of a week")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each run of the series")
    parser.add_argument("--long", action="store_true", help="the cases of many minutes instead")
    given = parser.parse_args()
    main(size=given.size, only=given.only, long=given.long, seconds=given.seconds)
