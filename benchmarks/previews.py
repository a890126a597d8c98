"""What more draws bring and cost: previews of the coin view of a simulated Bitcoin week.

Prints, for k draws, the widest interval, that of the mean, the time of the solve after the chain is
built, as a ratio to the first, and the seconds of one core that the planner counts. The check is
that 4 096 draws leave no interval wider than 0.52 bit at 1 - 1e-9, in at most 12 times the time of
256.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np

import coinhaze
from benchmarks.apart import run_apart
from coinhaze import absorbing_chain, transaction_graph
from coinhaze.simulate import simulate_week
from coinhaze.solve.sketch.foresight import seconds_of_a_draw
from coinhaze.solve.structure.structure import Structure

DRAWS = (256, 1024, 4096)
MAX_WIDTH, MAX_TIMES = 0.52, 12.0


class Preview(NamedTuple):
    """One preview: its draws, widths in bits, and seconds of the processor."""

    draws: int
    width: float
    mean_width: float
    cpu: float


def main(size: float = 1.0, draws: tuple[int, ...] = DRAWS, miss: float = 1e-9) -> list[Preview]:
    """Print the table, and whether the check holds."""
    coinhaze.score(simulate_week("bitcoin-week", size=0.002), accuracy="preview", seed=1)
    chain = absorbing_chain(transaction_graph(simulate_week("bitcoin-week", size=size)))
    rows = np.flatnonzero(chain.graph.sinks)
    counted = seconds_of_a_draw(Structure(chain).lump(rows, np.zeros(0)))
    print(f"bitcoin-week, coins, size {size:g}: {len(rows):,} sinks, miss {miss:g}")
    print(f"{'draws':>6} {'width':>7} {'of mean':>8} {'cpu s':>8} {'wall s':>8} ", end="")
    print(f"{'times':>6} {'counted s':>10}")
    found: list[Preview] = []
    for k in draws:

        def work(k: int = k) -> tuple[float, float]:
            scores = coinhaze.score(chain, accuracy="preview", draws=k, miss=miss, seed=1)
            stated = scores.summary()
            return scores.width, stated.bits_mean_high - stated.bits_mean_low

        run = run_apart(work)
        width, mean_width = run.value
        found.append(Preview(k, width, mean_width, run.cpu))
        times = run.cpu / found[0].cpu
        print(
            f"{k:>6} {found[-1].width:>7.4f} {found[-1].mean_width:>8.4f} {run.cpu:>8.2f} "
            f"{run.wall:>8.2f} {times:>6.1f} {k * counted:>10.2f}",
            flush=True,
        )
    maximum, times = found[-1].width, found[-1].cpu / found[0].cpu
    holds = maximum <= MAX_WIDTH and times <= MAX_TIMES
    print(
        f"{draws[-1]} draws: {maximum:.4f} bit wide (at most {MAX_WIDTH}), {times:.1f} times the "
        f"time of {draws[0]} (at most {MAX_TIMES:g}): {'holds' if holds else 'DOES NOT HOLD'}"
    )
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=float, default=1.0, help="a part of the week")
    main(parser.parse_args().size)
