"""Factors -> sums, B streamed a tile of outcomes at a time and never stored whole.

Tiles are solved by several workers but added up in their order, so their number changes no bit of
the result.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.solve.exact.factor import Factor
from coinhaze.solve.exact.stream_kernels import (
    WIDTH,
    add_tile,
    pass_leaves_on,
    spread_live,
    start_tile,
    sum_tile,
    weigh_tile,
)
from coinhaze.solve.pool import Budget, open_workers
from coinhaze.solve.progress import Progress
from coinhaze.solve.query import Query
from coinhaze.solve.structure.columns import Columns
from coinhaze.solve.sums import Priors, Sums


def stream_sums(
    query: Query,
    columns: Columns,
    orders: Floats,
    *,
    budget: Budget,
    progress: Progress,
) -> tuple[Sums, Floats]:
    """Add every scored row up over all columns; also give x^T B for each column."""
    starts = range(0, len(columns), WIDTH)
    tiles, weights = Tiles.of(query, columns, orders)
    total = tiles.total
    lost = np.zeros((3, len(query.scored)))
    with open_workers(tiles, len(starts), budget) as workers:
        for first, (part, weighed) in zip(starts, workers.map(starts), strict=True):
            add_tile(*total.arrays()[:7], *part.arrays()[:7], lost)
            tiles.spare.append(part)
            weights[first : first + WIDTH] += weighed[: len(columns) - first]
            progress(min(1.0, (first + WIDTH) / len(columns)))
    for values, less in zip((total.entropy, total.mass, total.prior), lost, strict=True):
        values += less
    return total, weights


TileRoom = tuple[Floats, Bools]  # a tile of every inner state, and which of them are live


def tile_room(states: int, kind: type[np.floating] = np.float64) -> TileRoom:
    """Make room for one tile."""
    return np.zeros((states, WIDTH), dtype=kind), np.zeros(states, dtype=np.bool_)


def tile_bytes(states: int, kind: type[np.floating] = np.float64) -> int:
    """Give the bytes of that room."""
    return np.dtype(kind).itemsize * WIDTH * max(states, 1)


@dataclass(frozen=True, eq=False)
class Tiles:
    """The work of exact tiles, in the order of the factors; a piece is a tile's first column."""

    factor: Factor
    own: Floats
    column: Ints
    scored: Ints
    excess: Floats  # by place, that of leaves passed on; none where x^T B is not wanted
    needed: Bools
    priors: Priors
    elsewhere: int
    orders: Floats
    # Largest entries found so far: what is below need not be located. A worker that cannot see
    # them as they grow locates more, to the same end.
    total: Sums
    spare: list[Sums] = field(default_factory=list)  # parts that were added, to be used again
    waiting: int = 2

    @classmethod
    def of(cls, query: Query, columns: Columns, orders: Floats) -> tuple[Tiles, Floats]:
        """Prepare to solve tiles; also give what leaves add to x^T B."""
        factor = query.factor
        own, column = query.reduced.own[factor.back], columns.of_state[factor.back]
        scored, excess = factor.place[query.scored], query.excess[factor.back]
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
        tiles = cls(
            factor=factor,
            own=own,
            column=column,
            scored=scored,
            excess=excess if query.chain.conserves else np.zeros(0),
            needed=factor.needed(wanted),
            priors=columns.priors,
            elsewhere=columns.elsewhere,
            orders=orders,
            total=Sums.zeros(len(scored), len(orders)),
        )
        return tiles, weights

    @property
    def room_bytes(self) -> int:
        """The bytes of one worker's tile."""
        return tile_bytes(self.factor.inner)

    def room(self) -> TileRoom:
        """Make one worker's tile."""
        return tile_room(self.factor.inner)

    def solve(self, first: int, room: TileRoom) -> tuple[Sums, Floats]:
        """Solve the tile that begins at a column; give its sums and its part of x^T B."""
        factor, priors = self.factor, self.priors
        x, live = room
        try:
            part = self.spare.pop()
        except IndexError:
            part = Sums.zeros(len(self.scored), len(self.orders))
        start_tile(self.own, self.column, first, x, live)
        factor.solve_tile(x, live, self.needed)
        weighed = weigh_tile(x, live, self.excess) if len(self.excess) else np.zeros(WIDTH)
        sum_tile(
            x, live, self.own, self.column, factor.lower, factor.lower_at, factor.lower_v,
            first, self.scored, self.elsewhere, self.total.top, priors.inner, priors.bits,
            priors.top, priors.powers, self.orders, *part.arrays()[:7],
        )  # fmt: skip
        return part, weighed


def time_tiles(
    query: Query, columns: Columns, orders: Floats, *, budget: Budget, sample: int = 16
) -> float:
    """Estimate the seconds all tiles take, from a few of them spread over the columns."""
    starts, some = _sampled_tiles(columns, sample)
    tiles, _ = Tiles.of(query, columns, orders)
    with open_workers(tiles, len(starts), budget) as workers:
        # Memory touched for the first time is slow; later tiles find it there.
        list(workers.map(some[: workers.count].tolist()))
        begin = time.perf_counter()
        list(workers.map(some.tolist()))
        taken = time.perf_counter() - begin
    return taken * len(starts) / max(len(some), 1)


def _sampled_tiles(columns: Columns, sample: int) -> tuple[Ints, Ints]:
    """Give where all tiles begin, and where a few do that stand for as many others each."""
    starts = np.arange(0, len(columns), WIDTH)
    count = min(sample, len(starts))
    return starts, starts[((np.arange(count) + 0.5) * len(starts) / max(count, 1)).astype(np.int64)]


def live_share(query: Query, columns: Columns, *, sample: int = 4) -> float:
    """Estimate how much of all tiles is not zero, from where a few tiles of columns lead."""
    factor = query.factor
    column = columns.of_state[factor.back]
    _, some = _sampled_tiles(columns, sample)
    total = 0.0
    for first in some.tolist():
        live = (column >= first) & (column < first + WIDTH)
        spread_live(factor.lower, factor.lower_at, live)
        total += float(live.mean())
    return total / max(len(some), 1)
