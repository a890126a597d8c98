"""Factors -> sums, B streamed a tile of outcomes at a time and never stored whole.

Tiles are solved by several threads but added up in their order, so the thread count changes no
bit of the result.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from coinhaze.ledger.amounts import Floats
from coinhaze.solve.asked import Asked
from coinhaze.solve.columns import Columns
from coinhaze.solve.progress import Progress
from coinhaze.solve.stream_kernels import WIDTH, start_tile, sum_tile, weigh_tile
from coinhaze.solve.sums import Sums
from coinhaze.solve.workers import tile_workspaces


def stream_sums(
    asked: Asked, columns: Columns, orders: Floats, *, threads: int | None, progress: Progress
) -> tuple[Sums, Floats]:
    """Add every scored row up over all columns; also give x^T B for each column."""
    factor, priors, n = asked.factor, columns.priors, len(asked.scored)
    own, column = asked.reduced.own[factor.back], columns.of_state[factor.back]
    scored, excess = factor.place[asked.scored], asked.excess[factor.back]

    rows = (own, column, factor.lower, factor.lower_at, factor.lower_v, excess)

    def solve(first: int) -> tuple[Sums, Floats]:
        x, live = workspaces.pop()
        start_tile(own, column, first, x, live)
        factor.solve_tile(x, live)
        part = Sums.zeros(n, len(orders))
        weighed = weigh_tile(x, live, excess) if asked.chain.conserves else np.zeros(WIDTH)
        sum_tile(
            x, live, *rows, weighed, first, scored, columns.elsewhere,
            priors.bits, priors.top, priors.powers, orders, *part.arrays()[:7],
        )  # fmt: skip
        workspaces.append((x, live))
        return part, weighed

    starts = range(0, len(columns), WIDTH)
    workspaces = tile_workspaces(factor.inner, len(starts), threads)
    workers = len(workspaces)
    total = Sums.zeros(n, len(orders))
    weights = np.zeros(len(columns))
    with ThreadPoolExecutor(workers) as pool:
        # Tiles are handed out a few at a time: their sums wait in memory to be added in order.
        for batch in range(0, len(starts), 2 * workers):
            some = starts[batch : batch + 2 * workers]
            for first, (part, weighed) in zip(some, pool.map(solve, some), strict=True):
                total.add(part)
                weights[first : first + WIDTH] = weighed[: len(columns) - first]
            progress(min(1.0, (batch + 2 * workers) / max(len(starts), 1)))
    return total, weights
