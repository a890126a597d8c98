"""Factors -> sums, B streamed a tile of outcomes at a time and never stored whole.

Tiles are grouped into blocks, which depend on the number of columns only. A block's tiles are added
up where they are solved, and blocks in their order, so the number of workers changes no bit of the
result.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.solve.exact.core import SparseCore
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
from coinhaze.solve.planner import thresholds
from coinhaze.solve.pool import Budget, open_workers
from coinhaze.solve.progress import Progress
from coinhaze.solve.query import Query
from coinhaze.solve.structure.columns import Columns
from coinhaze.solve.sums import Priors, Sums

# So many tiles show how much of all is not zero: one bit of a byte each.
LIVE_TILES = 4


def stream_sums(
    query: Query,
    columns: Columns,
    orders: Floats,
    *,
    budget: Budget,
    progress: Progress,
) -> tuple[Sums, Floats]:
    """Add every scored row up over all columns; also give x^T B for each column."""
    tiles, weights = Tiles.of(query, columns, orders)
    blocks = blocks_of(len(columns))
    total = Sums.zeros(len(query.scored), len(orders))
    lost = np.zeros((3, len(query.scored)))
    with open_workers(tiles, len(blocks), budget) as workers:
        for part in workers.map(blocks):
            add_tile(*total.arrays()[:7], *part.sums.arrays()[:7], lost)
            weights[part.columns.start : part.columns.stop] += part.weights
            progress(part.columns.stop / len(columns))
    _add_lost(total, lost)
    return total, weights


def blocks_of(columns: int) -> list[range]:
    """Cut columns into blocks of whole tiles, as many as keep any number of workers busy."""
    tiles = -(-columns // WIDTH)
    step = max(1, tiles // BLOCKS) * WIDTH
    return [range(first, min(first + step, columns)) for first in range(0, columns, step)]


def _add_lost(sums: Sums, lost: Floats) -> None:
    for values, less in zip((sums.entropy, sums.mass, sums.prior), lost, strict=True):
        values += less


class BlockSums(NamedTuple):
    """What a block of columns adds to every scored row, and its part of x^T B."""

    columns: range
    sums: Sums
    weights: Floats


# At least so many blocks, where there are as many tiles.
BLOCKS = 64
TileRoom = tuple[Floats, Bools]  # a tile of every inner state, and which of them are live


def tile_room(states: int, kind: type[np.floating] = np.float64) -> TileRoom:
    """Make room for one tile."""
    return np.zeros((states, WIDTH), dtype=kind), np.zeros(states, dtype=np.bool_)


def tile_bytes(states: int, kind: type[np.floating] = np.float64) -> int:
    """Give the bytes of that room."""
    return np.dtype(kind).itemsize * WIDTH * max(states, 1)


@dataclass(frozen=True, eq=False)
class Tiles:
    """The work of exact tiles, in the order of the factors; a piece is a block of columns."""

    factor: Factor
    own: Floats
    column: Ints
    scored: Ints
    excess: Floats  # by place, that of leaves passed on; none where x^T B is not wanted
    needed: Bools
    priors: Priors
    elsewhere: int
    orders: Floats
    seconds: float
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
            seconds=tile_seconds(query, columns),
        )
        return tiles, weights

    @property
    def room_bytes(self) -> int:
        """The bytes of one worker's tile."""
        return tile_bytes(self.factor.inner)

    def room(self) -> tuple[TileRoom, Sums]:
        """Make one worker's tile, and the sums of one tile."""
        return tile_room(self.factor.inner), Sums.of_tiles(len(self.scored), len(self.orders))

    def solve(self, columns: range, room: tuple[TileRoom, Sums]) -> BlockSums:
        """Solve the tiles of a block one by one and add them up in their order."""
        tile, part = room
        total = Sums.of_tiles(len(self.scored), len(self.orders))
        weights = np.zeros(len(columns))
        weights[:WIDTH] = self._solve_tile(columns.start, tile, total.top, total)[: len(columns)]
        if len(columns) <= WIDTH:
            return BlockSums(columns, total, weights)
        lost = np.zeros((3, len(self.scored)))
        for first in range(columns.start + WIDTH, columns.stop, WIDTH):
            weighed = self._solve_tile(first, tile, total.top, part)
            weights[first - columns.start :][:WIDTH] = weighed[: columns.stop - first]
            add_tile(*total.arrays()[:7], *part.arrays()[:7], lost)
        _add_lost(total, lost)
        return BlockSums(columns, total, weights)

    def _solve_tile(self, first: int, room: TileRoom, highest: Floats, part: Sums) -> Floats:
        """Fill in the sums of one tile, given the largest entries before it; give its x^T B."""
        factor, priors, (x, live) = self.factor, self.priors, room
        start_tile(self.own, self.column, first, x, live)
        factor.solve_tile(x, live, self.needed)
        weighed: Floats = weigh_tile(x, live, self.excess) if len(self.excess) else np.zeros(WIDTH)
        sum_tile(
            x, live, self.own, self.column, factor.lower, factor.lower_at, factor.lower_v,
            first, self.scored, self.elsewhere, highest, priors.inner, priors.bits,
            priors.top, priors.powers, self.orders, *part.arrays()[:7],
        )  # fmt: skip
        return weighed


def tile_seconds(query: Query, columns: Columns) -> float:
    """Count what tiles take if nothing in them is zero, in seconds of one core."""
    reduced = query.reduced
    # Factors of an acyclic chain are the chain: there is no need to make them to count.
    if reduced.acyclic:
        is_inner = np.zeros(len(reduced), dtype=np.bool_)
        is_inner[reduced.indices] = True
        inner, moves, cores = int(is_inner.sum()), len(reduced.indices), {}
    else:
        factor = query.factor
        inner, cores = factor.inner, factor.cores
        moves = len(factor.lower_at) + len(factor.upper_at)
    mix, score = (
        thresholds.TILE_NS_CACHED
        if 8 * WIDTH * inner < thresholds.CACHE_BYTES
        else thresholds.TILE_NS_UNCACHED
    )
    work = moves * mix + len(query.scored) * score
    for core in cores.values():
        if isinstance(core, SparseCore):
            work += core.sweeps * len(core.indices) * mix
        else:
            work += len(core) ** 2 * thresholds.CORE_NS
    return len(columns) * work * 1e-9


def time_tiles(
    query: Query, columns: Columns, orders: Floats, *, budget: Budget, sample: int = 16
) -> float:
    """Estimate the seconds all tiles take, from a few of them spread over the columns."""
    starts, some = _sampled_tiles(columns, sample)
    blocks = [range(first, min(first + WIDTH, len(columns))) for first in some.tolist()]
    tiles, _ = Tiles.of(query, columns, orders)
    with open_workers(tiles, len(starts), budget) as workers:
        # Memory touched for the first time is slow; later tiles find it there.
        list(workers.map(blocks[: workers.count]))
        begin = time.perf_counter()
        list(workers.map(blocks))
        taken = time.perf_counter() - begin
    return taken * len(starts) / max(len(some), 1)


def _sampled_tiles(columns: Columns, sample: int) -> tuple[Ints, Ints]:
    """Give where all tiles begin, and where a few do that stand for as many others each."""
    starts = np.arange(0, len(columns), WIDTH)
    count = min(sample, len(starts))
    return starts, starts[((np.arange(count) + 0.5) * len(starts) / max(count, 1)).astype(np.int64)]


def live_share(query: Query, columns: Columns) -> float:
    """Estimate how much of all tiles is not zero, from where a few tiles of columns lead.

    The chain is acyclic.
    """
    reduced, column = query.reduced, columns.of_state
    _, some = _sampled_tiles(columns, LIVE_TILES)
    live = np.zeros(len(column), dtype=np.uint8)
    for tile, first in enumerate(some.tolist()):
        live[(column >= first) & (column < first + WIDTH)] |= 1 << tile
    spread_live(reduced.indptr, reduced.indices, live)
    total = sum(float(((live >> tile) & 1).mean()) for tile in range(len(some)))
    return total / max(len(some), 1)
