"""Factors -> sums, B streamed a tile of outcomes at a time and never stored whole.

Tiles are solved by several threads but added up in their order, so the thread count changes no
bit of the result.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from coinhaze.chain.chain import NO_COLUMN
from coinhaze.ledger.amounts import Floats, Ints
from coinhaze.solve.asked import Asked
from coinhaze.solve.priors import Priors
from coinhaze.solve.progress import Progress
from coinhaze.solve.stream_kernels import WIDTH, solve_tile, start_tile, sum_tile, weigh_tile
from coinhaze.solve.sums import Sums


def stream_sums(
    asked: Asked, orders: Floats, *, threads: int | None, progress: Progress
) -> tuple[Sums, Floats]:
    """Add every scored row up over all outcomes; also give x^T B for each outcome."""
    chain, factor = asked.chain, asked.factor
    columns, number = columns_met(factor.column, len(chain.outcomes))
    column_at = number[factor.column]
    elsewhere = number[chain.elsewhere] if chain.elsewhere >= 0 else NO_COLUMN
    priors = Priors.of(chain, orders).take(columns)
    n = len(asked.scored)

    def solve(first: int) -> tuple[Sums, Floats]:
        x, live = workspaces.pop()
        start_tile(factor.own, column_at, first, x, live)
        solve_tile(*factor.arrays(), x, live)
        part = Sums.zeros(n, len(orders))
        sum_tile(
            x, live, first, asked.scored, elsewhere,
            priors.bits, priors.top, priors.powers, orders, *part.arrays()[:7],
        )  # fmt: skip
        weighed = weigh_tile(x, live, asked.excess) if chain.conserves else np.zeros(WIDTH)
        workspaces.append((x, live))
        return part, weighed

    workers = max(1, threads or os.cpu_count() or 1)
    workspaces = [
        (np.zeros((len(factor), WIDTH)), np.zeros(len(factor), dtype=np.bool_))
        for _ in range(workers)
    ]
    total = Sums.zeros(n, len(orders))
    weights = np.zeros(len(chain.outcomes))
    starts = range(0, len(columns), WIDTH)
    with ThreadPoolExecutor(workers) as pool:
        # Tiles are handed out a few at a time: their sums wait in memory to be added in order.
        for batch in range(0, len(starts), 2 * workers):
            some = starts[batch : batch + 2 * workers]
            for first, (part, weighed) in zip(some, pool.map(solve, some), strict=True):
                total.add(part)
                here = columns[first : first + WIDTH]
                weights[here] = weighed[: len(here)]
            progress(min(1.0, (batch + 2 * workers) / max(len(starts), 1)))
    found = total.top_column >= 0
    total.top_column[found] = columns[total.top_column[found]]
    return total, weights


def columns_met(column: Ints, n_columns: int) -> tuple[Ints, Ints]:
    """Number outcomes in the order the sweep meets them; also give each outcome's number.

    Outcomes of one tile are then near each other, and most states need not be touched for it.
    """
    met = column[column != NO_COLUMN]
    _, first = np.unique(met, return_index=True)
    columns = met[np.sort(first)]
    number = np.full(n_columns + 1, NO_COLUMN)
    number[columns] = np.arange(len(columns))
    return columns, number
