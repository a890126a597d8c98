"""How near simulated weeks come to the paper's: `python -m benchmarks.calibration [NAME...]`.

Paper: the published stationary row (a week of February 2021). Ours: the simulated week under the
paper's graph conventions (zero address an account, sinks took in more than they paid), solved
right; the deviation is in percent. Own: the same ledger under our own conventions. Figures are
exact where scoring ends in seconds; else they come from walks from a sample of sinks, with the
standard error of the mean in brackets, and "max" is the sample's.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.walks import estimate
from coinhaze import AbsorbingChain, absorbing_chain, score, transaction_graph
from coinhaze.amounts import Floats
from coinhaze.ledger import CoinLedger, Ledger
from coinhaze.simulate import simulate_week

FIGURES = (
    "nodes", "edges", "sinks", "bits mean", "bits median", "bits variance", "bits max",
    "steps mean", "steps median", "steps variance",
)  # fmt: skip
SIZES = ("nodes", "edges", "sinks")
# The published stationary rows: MODEL section 6.
PAPER: dict[str, tuple[float, ...]] = {
    "bitcoin-week": (8.598e6, 12.801e6, 4_237_925, 3.96, 4.07, 10.12, 11.82, 25.23, 23.56, 615.32),
    "zcash-week": (170e3, 748e3, 94_100, 1.40, 0.68, 1.99, np.nan, 52.66, 56.61, 1755.94),
    "ethereum-week": (3.031e6, 5.863e6, 1_768_192, 3.45, 3.94, 5.97, 10.86, 7.27, 2.0, 80.51),
    "dai-week": (46e3, 70e3, 18_494, 2.60, 3.30, 1.98, 5.14, 26.39, 33.69, 414.49),
    "usdc-week": (146e3, 234e3, 47_888, 3.32, 4.10, 2.91, 8.12, 16.40, 18.35, 74.13),
}
# What must come near the paper, and how near, in percent.
ALLOWED = dict.fromkeys(SIZES, 15.0) | {"bits mean": 25.0, "steps mean": 25.0}
SMALL = 300_000  # chains of more nodes are walked, not solved
PAPER_GRAPH: dict[str, Any] = {"mint": "one", "sinks": "paper"}


@dataclass(frozen=True)
class Measured:
    """One ledger's figures under one set of conventions."""

    figures: dict[str, float]
    errors: dict[str, float]  # standard errors of means that come from a sample
    how: str


def measure(chain: AbsorbingChain, *, sample: int, walks: int, seed: int) -> Measured:
    """Find a chain's figures, exactly where that is quick."""
    graph = chain.graph
    sinks = np.flatnonzero(graph.sinks)
    sizes = dict(zip(SIZES, (len(graph), len(graph.tail), len(sinks)), strict=True))
    if len(graph) <= SMALL:
        scores = score(chain)
        known = ~np.isnan(scores.bits)
        return Measured(sizes | _spread(scores.bits[known], scores.steps[known]), {}, "exact")
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(sinks, min(sample, len(sinks)), replace=False))
    bits, steps = estimate(chain, rows, walks=walks, seed=seed)
    known = ~np.isnan(bits)
    bits, steps = bits[known], steps[known]
    errors = {
        "bits mean": float(bits.std() / len(bits) ** 0.5),
        "steps mean": float(steps.std() / len(steps) ** 0.5),
    }
    how = f"{walks} walks from each of {len(bits)} sinks"
    return Measured(sizes | _spread(bits, steps), errors, how)


def _spread(bits: Floats, steps: Floats) -> dict[str, float]:
    values = [bits.mean(), np.median(bits), bits.var(), bits.max()]
    values += [steps.mean(), np.median(steps), steps.var()]
    return dict(zip(FIGURES[len(SIZES) :], map(float, values), strict=True))


def conventions(ledger: Ledger) -> tuple[dict[str, Any], dict[str, Any]]:
    """Give the paper's settings for a ledger's stationary graph, and our own."""
    if isinstance(ledger, CoinLedger):
        return {"view": "address", "sinks": "paper"}, {"view": "address"}
    return PAPER_GRAPH, {}


def calibrate(
    name: str,
    *,
    size: float = 1.0,
    seed: int = 1,
    sample: int = 1000,
    walks: int = 2048,
    published: bool = False,
) -> tuple[Measured, Measured]:
    """Simulate one week, measure it under both conventions, and print the table."""
    began = time.process_time()
    ledger = simulate_week(name, size=size, seed=seed)
    took = time.process_time() - began
    ours, own = (
        measure(
            absorbing_chain(transaction_graph(ledger, **settings)),
            sample=sample,
            walks=walks,
            seed=seed,
        )
        for settings in conventions(ledger)
    )
    print(f"\n{name}, size {size:g}, seed {seed}: {len(ledger):,} rows in {took:.1f} CPU s")
    print(f"ours: {ours.how}; own: {own.how}")
    print(f"{'':<15}{'paper':>12}{'ours':>18}{'deviation':>11}{'own':>18}")
    for figure, paper in zip(FIGURES, PAPER[name], strict=True):
        print(_line(figure, paper * (size if figure in SIZES else 1), ours, own))
    if published:
        print(published_rule(absorbing_chain(transaction_graph(ledger, **conventions(ledger)[0]))))
    return ours, own


def published_rule(chain: AbsorbingChain) -> str:
    """Say what the paper's stopping rule makes of the same chain, and what it loses."""
    began = time.process_time()
    scores = score(chain, method="published")
    took = time.process_time() - began
    lost = float(np.nanmean(1 - scores.mass))
    figures = _spread(scores.bits, scores.steps)
    return (
        f"published rule (0.001): bits mean {figures['bits mean']:.2f}, median "
        f"{figures['bits median']:.2f}; {lost:.0%} of the probability lost; {took:.0f} CPU s"
    )


def _line(figure: str, paper: float, ours: Measured, own: Measured) -> str:
    off = 100 * (ours.figures[figure] / paper - 1)
    allowed = ALLOWED.get(figure)
    mark = "" if allowed is None else " ok" if abs(off) <= allowed else " MISS"
    known = "-" if np.isnan(paper) else f"{paper:,.0f}" if figure in SIZES else f"{paper:.2f}"
    deviation = "-" if np.isnan(paper) else f"{off:+.0f} %"
    shown = (_figure(m, figure) for m in (ours, own))
    return f"{figure:<15}{known:>12}{next(shown):>18}{deviation:>11}{next(shown):>18}{mark}"


def _figure(measured: Measured, figure: str) -> str:
    value = measured.figures[figure]
    if figure in SIZES:
        return f"{value:,.0f}"
    error = measured.errors.get(figure)
    return f"{value:.2f}" + ("" if error is None else f" ({error:.2f})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="Weeks; all five if none.")
    parser.add_argument("--size", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sample", type=int, default=1000, help="Sinks to walk from.")
    parser.add_argument("--walks", type=int, default=2048, help="Walks from each.")
    parser.add_argument("--published", action="store_true", help="Run the 0.001 rule beside.")
    given = parser.parse_args()
    for week in given.names or PAPER:
        calibrate(
            week,
            size=given.size,
            seed=given.seed,
            sample=given.sample,
            walks=given.walks,
            published=given.published,
        )
