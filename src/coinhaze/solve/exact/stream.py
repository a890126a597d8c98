"""Factors -> sums, B streamed a tile of outcomes at a time and never stored whole.

Tiles are solved by several threads but added up in their order, so the thread count changes no
bit of the result.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.solve.exact.stream_kernels import (
    WIDTH,
    add_tile,
    pass_leaves_on,
    spread_live,
    start_tile,
    sum_tile,
    weigh_tile,
)
from coinhaze.solve.pool.limits import Budget
from coinhaze.solve.progress import Progress
from coinhaze.solve.query import Asked
from coinhaze.solve.structure.columns import Columns
from coinhaze.solve.sums import Sums


def stream_sums(
    asked: Asked,
    columns: Columns,
    orders: Floats,
    *,
    budget: Budget,
    progress: Progress,
) -> tuple[Sums, Floats]:
    """Add every scored row up over all columns; also give x^T B for each column."""
    starts = range(0, len(columns), WIDTH)
    tiles = Tiles.of(asked, columns, orders, budget=budget)
    total, workers = tiles.total, len(tiles.workspaces)
    lost = np.zeros((3, len(asked.scored)))
    with ThreadPoolExecutor(workers) as pool:
        # Tiles are handed out a few at a time: their sums wait in memory to be added in order.
        for batch in range(0, len(starts), 2 * workers):
            some = starts[batch : batch + 2 * workers]
            for first, (part, weighed) in zip(some, pool.map(tiles.solve, some), strict=True):
                add_tile(*total.arrays()[:7], *part.arrays()[:7], lost)
                tiles.parts.append(part)
                tiles.weights[first : first + WIDTH] += weighed[: len(columns) - first]
            progress(min(1.0, (batch + 2 * workers) / max(len(starts), 1)))
    for values, less in zip((total.entropy, total.mass, total.prior), lost, strict=True):
        values += less
    return total, tiles.weights


@dataclass(frozen=True, eq=False)
class Tiles:
    """What solves tiles: arrays in the order of the factors, and room to work in."""

    asked: Asked
    columns: Columns
    orders: Floats
    own: Floats
    column: Ints
    scored: Ints
    excess: Floats  # by place, that of leaves passed on
    needed: Bools
    total: Sums
    weights: Floats
    workspaces: list[tuple[Floats, Bools]]
    parts: list[Sums]

    @classmethod
    def of(cls, asked: Asked, columns: Columns, orders: Floats, *, budget: Budget) -> Tiles:
        """Prepare to solve tiles by as many threads as the budget allows."""
        factor = asked.factor
        own, column = asked.reduced.own[factor.back], columns.of_state[factor.back]
        scored, excess = factor.place[asked.scored], asked.excess[factor.back]
        weights = np.zeros(len(columns))
        pass_leaves_on(
            factor.lower,
            factor.lower_at,
            factor.lower_v,
            own,
            column,
            factor.inner,
            excess,
            weights,
        )
        wanted = excess > 0
        wanted[scored] = True
        return cls(
            asked,
            columns,
            orders,
            own,
            column,
            scored,
            excess,
            factor.needed(wanted),
            Sums.zeros(len(scored), len(orders)),
            weights,
            budget.tiles(factor.inner, -(-len(columns) // WIDTH)),
            [],
        )

    def solve(self, first: int) -> tuple[Sums, Floats]:
        """Solve the tile that begins at a column; give its sums and its part of x^T B."""
        factor, priors = self.asked.factor, self.columns.priors
        x, live = self.workspaces.pop()
        part = self.parts.pop() if self.parts else Sums.zeros(len(self.scored), len(self.orders))
        start_tile(self.own, self.column, first, x, live)
        factor.solve_tile(x, live, self.needed)
        weighed = np.zeros(WIDTH)
        if self.asked.chain.conserves:
            weighed = weigh_tile(x, live, self.excess)
        sum_tile(
            x, live, self.own, self.column, factor.lower, factor.lower_at, factor.lower_v,
            first, self.scored, self.columns.elsewhere, self.total.top, priors.inner, priors.bits,
            priors.top, priors.powers, self.orders, *part.arrays()[:7],
        )  # fmt: skip
        self.workspaces.append((x, live))
        return part, weighed


def time_tiles(
    asked: Asked, columns: Columns, orders: Floats, *, budget: Budget, sample: int = 16
) -> float:
    """Estimate the seconds all tiles take, from a few of them spread over the columns."""
    starts, some = _sampled_tiles(columns, sample)
    tiles = Tiles.of(asked, columns, orders, budget=budget)
    with ThreadPoolExecutor(len(tiles.workspaces)) as pool:
        # Memory touched for the first time is slow; later tiles find it there.
        list(pool.map(tiles.solve, some[: len(tiles.workspaces)].tolist()))
        begin = time.perf_counter()
        list(pool.map(tiles.solve, some.tolist()))
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
