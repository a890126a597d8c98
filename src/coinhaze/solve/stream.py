"""Factors -> sums, B streamed a tile of outcomes at a time and never stored whole.

Tiles are solved by several threads but added up in their order, so the thread count changes no
bit of the result.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from coinhaze.ledger.amounts import Floats, Ints
from coinhaze.solve.asked import Asked
from coinhaze.solve.columns import Columns
from coinhaze.solve.progress import Progress
from coinhaze.solve.stream_kernels import (
    WIDTH,
    spread_live,
    start_tile,
    sum_tile,
    weigh_tile,
)
from coinhaze.solve.sums import Sums
from coinhaze.solve.workers import Budget


def stream_sums(
    asked: Asked,
    columns: Columns,
    orders: Floats,
    *,
    budget: Budget,
    progress: Progress,
) -> tuple[Sums, Floats]:
    """Add every scored row up over all columns; also give x^T B for each column."""
    n = len(asked.scored)
    starts = range(0, len(columns), WIDTH)
    solve, workers = tile_solver(asked, columns, orders, budget=budget)
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


def tile_solver(
    asked: Asked, columns: Columns, orders: Floats, *, budget: Budget
) -> tuple[Callable[[int], tuple[Sums, Floats]], int]:
    """Give what solves the tile that begins at a column, and how many threads may call it."""
    factor, priors, n = asked.factor, columns.priors, len(asked.scored)
    own, column = asked.reduced.own[factor.back], columns.of_state[factor.back]
    scored, excess = factor.place[asked.scored], asked.excess[factor.back]
    rows = (own, column, factor.lower, factor.lower_at, factor.lower_v, excess)
    wanted = excess > 0
    wanted[scored] = True
    needed = factor.needed(wanted)
    workspaces = budget.tiles(factor.inner, -(-len(columns) // WIDTH))

    def solve(first: int) -> tuple[Sums, Floats]:
        x, live = workspaces.pop()
        start_tile(own, column, first, x, live)
        factor.solve_tile(x, live, needed)
        part = Sums.zeros(n, len(orders))
        weighed = weigh_tile(x, live, excess) if asked.chain.conserves else np.zeros(WIDTH)
        sum_tile(
            x, live, *rows, weighed, first, scored, columns.elsewhere,
            priors.inner, priors.bits, priors.top, priors.powers, orders, *part.arrays()[:7],
        )  # fmt: skip
        workspaces.append((x, live))
        return part, weighed

    return solve, len(workspaces)


def time_tiles(
    asked: Asked, columns: Columns, orders: Floats, *, budget: Budget, sample: int = 16
) -> float:
    """Estimate the seconds all tiles take, from a few of them spread over the columns."""
    starts, some = _sampled_tiles(columns, sample)
    solve, workers = tile_solver(asked, columns, orders, budget=budget)
    begin = time.perf_counter()
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(solve, some.tolist()))
    return (time.perf_counter() - begin) * len(starts) / max(len(some), 1)


def _sampled_tiles(columns: Columns, sample: int) -> tuple[Ints, Ints]:
    """Give where all tiles begin, and where a few do that stand for as many others each."""
    starts = np.arange(0, len(columns), WIDTH)
    count = min(sample, len(starts))
    return starts, starts[((np.arange(count) + 0.5) * len(starts) / max(count, 1)).astype(np.int64)]


def live_share(asked: Asked, columns: Columns, *, sample: int = 4) -> float:
    """Estimate how much of all tiles is not zero, from where a few tiles of columns lead."""
    factor = asked.factor
    column = columns.of_state[factor.back]
    _, some = _sampled_tiles(columns, sample)
    total = 0.0
    for first in some.tolist():
        live = (column >= first) & (column < first + WIDTH)
        spread_live(factor.lower, factor.lower_at, live)
        total += float(live.mean())
    return total / max(len(some), 1)
