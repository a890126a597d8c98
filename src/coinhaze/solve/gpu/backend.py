"""The backend of one GPU: exact tiles and tiles of draws; all other work is left to threads.

Sums are added up on the GPU in the order of tiles, however many run at once, so that the same
device gives the same bytes again. Products and sums are fused there, which rounds less often than
the CPU does: the bounds of `exact.rounding` hold for both, and so both answers lie in one interval.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from coinhaze.amounts import Floats
from coinhaze.solve.exact.stream import BlockSums, Tiles
from coinhaze.solve.exact.stream_kernels import WIDTH
from coinhaze.solve.gpu.device import DeviceTiles, Law, cupy, free_memory
from coinhaze.solve.gpu.schedule import Schedule, can_schedule
from coinhaze.solve.pool.limits import Budget
from coinhaze.solve.pool.threads import open_threads
from coinhaze.solve.sketch.sketch import Draws
from coinhaze.solve.sums import Sums

LOG = logging.getLogger(__name__)
PARTS = 16  # so many times at most sums are brought here, for progress ...
MIN_TILES = 2048  # ... each time those of so many tiles at least: the GPU waits meanwhile


def schedule_of(work: Tiles | Draws) -> Schedule:
    """Make the schedule of exact tiles or of tiles of draws."""
    excess = work.excess if isinstance(work, Tiles) else np.zeros(0)
    return Schedule.of(work.factor, work.own, work.column, work.scored, excess, work.needed)


class TileWorkers:
    """The GPU, solving exact tiles."""

    count = 1

    def __init__(
        self, work: Tiles, *, at_once: int | None = None, threads: int | None = None
    ) -> None:
        priors = work.priors
        self._work = work
        law = Law(priors.inner, priors.bits, priors.top, elsewhere=work.elsewhere)
        tiles = -(-len(priors.inner) // WIDTH)
        maximum = tiles if at_once is None else min(tiles, at_once)
        schedule, weigh = schedule_of(work), len(work.excess) > 0
        self._device = DeviceTiles(schedule, law, maximum=maximum, weigh=weigh, threads=threads)

    @property
    def threads(self) -> int:
        """How many threads solve one tile."""
        return self._device.threads

    @property
    def at_once(self) -> int:
        """How many tiles run side by side."""
        return self._device.at_once

    def compile(self) -> None:
        """Compile the kernels now and not with the first tile."""
        self._device.compile()

    def map(self, pieces: Iterable[range]) -> Iterator[BlockSums]:
        """Give the sums of neighbouring blocks, a sixteenth of all columns or more at a time."""
        for columns in _neighbours(list(pieces)):
            tiles = -(-len(columns) // WIDTH)
            step = max(-(-tiles // PARTS), MIN_TILES) * WIDTH
            yield from self._parts(columns, step)

    def _parts(self, columns: range, step: int) -> Iterator[BlockSums]:
        device, weighs = self._device, len(self._work.excess) > 0
        ends = [*range(columns.start + step, columns.stop, step), columns.stop]
        weights = np.zeros(-(-len(columns) // WIDTH) * WIDTH)
        begun = columns.start
        for first in range(columns.start, columns.stop, device.at_once * WIDTH):
            last = min(first + device.at_once * WIDTH, columns.stop)
            tiles = -(-(last - first) // WIDTH)
            device.run(first, tiles)
            if weighs:
                weights[first - columns.start :][: tiles * WIDTH] = device.weighed(tiles)
            added = first
            # Parts end at the same columns however many tiles run at once.
            while added < last:
                upto = min(ends[0], last)
                device.add(first, (added - first) // WIDTH, -(-(upto - first) // WIDTH))
                added = upto
                if upto == ends[0]:
                    of_part = weights[begun - columns.start : upto - columns.start]
                    yield self._part(range(begun, upto), of_part)
                    begun = ends.pop(0)

    def _part(self, columns: range, weights: Floats) -> BlockSums:
        sums = Sums.zeros(len(self._work.scored), 0)
        given = (sums.entropy, sums.mass, sums.prior, sums.top, sums.top_column, sums.elsewhere)
        for values, found in zip(given, self._device.take_totals(), strict=True):
            values[:] = found
        return BlockSums(columns, sums, weights)


class DrawWorkers:
    """The GPU, taking draws."""

    count = 1

    def __init__(self, work: Draws, pieces: int) -> None:
        law = Law(work.nats, source=work.source, seed=work.seed, mass=work.mass)
        self._device = DeviceTiles(schedule_of(work), law, maximum=pieces, weigh=False)

    def map(self, pieces: Iterable[int]) -> Iterator[Any]:
        """Give the sums of each tile of draws."""
        for run in _neighbours([range(first, first + WIDTH) for first in pieces]):
            for first in range(run.start, run.stop, self._device.at_once * WIDTH):
                last = min(first + self._device.at_once * WIDTH, run.stop)
                self._device.run(first, (last - first) // WIDTH)
                yield from self._device.drawn((last - first) // WIDTH)


def _neighbours(pieces: Sequence[range]) -> Iterator[range]:
    """Join pieces that follow on each other."""
    begun: range | None = None
    for piece in pieces:
        if begun is not None and begun.stop == piece.start:
            begun = range(begun.start, piece.stop)
            continue
        if begun is not None:
            yield begun
        begun = piece
    if begun is not None:
        yield begun


@contextmanager
def open_gpu(work: Any, pieces: int, budget: Budget) -> Iterator[Any]:
    """Open the GPU for work it can do, else threads."""
    cupy()
    try:
        if isinstance(work, Tiles | Draws) and not can_schedule(work.factor):
            LOG.warning("a core too large to be inverted is solved by sweeps, on the CPU")
        elif isinstance(work, Tiles) and not len(work.orders):
            yield TileWorkers(work)
            return
        elif isinstance(work, Draws):
            yield DrawWorkers(work, pieces)
            return
        with open_threads(work, pieces, budget) as workers:
            yield workers
    finally:
        free_memory()
