"""How cost grows: a sketch and a proven interval of the coin view at 1, 10 and 100 % of a week.

Prints CPU microseconds a transaction, peak memory and bits, so that a cost that grows faster than
the ledger shows.
"""

from __future__ import annotations

import argparse

import numpy as np

import coinhaze
from benchmarks.apart import run_apart
from coinhaze import absorbing_chain, transaction_graph
from coinhaze.simulate import simulate_week

SIZES = (0.01, 0.1, 1.0)
SETTINGS = {
    "sketch k=256": {"accuracy": "preview", "seed": 0},
    "mean within 0.1": {"accuracy": 0.1, "over": "mean"},
}


def main(sizes: tuple[float, ...] = SIZES) -> list[tuple[float, str, float]]:
    """Print the table; give size, method and microseconds of CPU a transaction."""
    print(f"{'size':>6} {'transactions':>12} {'method':<16} {'cpu s':>8} {'wall s':>8} ", end="")
    print(f"{'us/tx':>7} {'peak MB':>8} {'bits':>6} {'width':>7}")
    rows = []
    warm = absorbing_chain(transaction_graph(simulate_week("bitcoin-week", size=0.002)))
    for options in SETTINGS.values():
        coinhaze.score(warm, **options)  # type: ignore[arg-type]
    for size in sizes:
        ledger = simulate_week("bitcoin-week", size=size)
        chain = absorbing_chain(transaction_graph(ledger))
        for method, options in SETTINGS.items():

            def work(options: object = options) -> tuple[float, float]:
                scores = coinhaze.score(chain, **options)  # type: ignore[arg-type] # noqa: B023
                widths = scores.bits_high - scores.bits_low
                return float(np.nanmean(scores.bits)), float(np.nanmean(widths))

            run = run_apart(work)
            each = run.cpu / len(ledger) * 1e6
            bits, width = run.value
            print(
                f"{size:>6g} {len(ledger):>12} {method:<16} {run.cpu:>8.2f} {run.wall:>8.2f} "
                f"{each:>7.2f} {run.peak_mb:>8.0f} {bits:>6.2f} {width:>7.3f}",
                flush=True,
            )
            rows.append((size, method, each))
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=float, default=1.0, help="the largest size")
    largest = parser.parse_args().size
    main(tuple(s * largest for s in SIZES))
