"""What exact scores will cost, by dense tiles or by sparse lists, counted on samples of columns.

Which engine runs must not depend on how busy the machine is, so entries are counted and multiplied
by what one takes, not timed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coinhaze.errors import ResourceError
from coinhaze.solve.exact.stream import live_share, tile_seconds
from coinhaze.solve.planner import thresholds
from coinhaze.solve.query import Query
from coinhaze.solve.structure.columns import Columns
from coinhaze.solve.truncated.lists import ListWork, births_of


@dataclass(frozen=True)
class SweepCost:
    """Entries an exact sweep reads, and the most that are alive at once if it goes in one block."""

    entries: float
    alive: float

    @property
    def seconds(self) -> float:
        """Give the seconds of one core."""
        return self.entries * thresholds.LIST_NS * 1e-9

    @property
    def blocks(self) -> int:
        """Say how many blocks keep the lists of each small: part of the result, so it is fixed.

        Blocks are not equal: the largest may hold twice what a typical one does.
        """
        size = 2 * self.alive * thresholds.LIST_ENTRY_BYTES
        return max(thresholds.MIN_LIST_BLOCKS, int(size / thresholds.BLOCK_MEMORY) + 1)


@dataclass(frozen=True, eq=False)
class ExactCost:
    """What exact scores take, in seconds of one core; counted when first needed."""

    query: Query
    columns: Columns

    @cached_property
    def tiles(self) -> float:
        """What dense tiles take."""
        full = tile_seconds(self.query, self.columns)
        if full < thresholds.MIN_SECONDS_FOR_LISTS or not self.query.reduced.acyclic:
            return full
        return full * live_share(self.query, self.columns)

    @cached_property
    def lists(self) -> SweepCost | None:
        """What lists take, if that is less."""
        if (
            self.tiles < thresholds.MIN_SECONDS_FOR_LISTS
            or not self.query.reduced.acyclic
            or self.query.chain.listed
        ):
            return None
        try:
            maximum = self.tiles / (thresholds.LIST_NS * 1e-9)
            found = sweep_cost(self.query, self.columns, maximum=maximum)
        except ResourceError:
            return None
        return found if found.seconds < self.tiles else None

    @property
    def seconds(self) -> float:
        """What the cheaper of the two takes."""
        return self.tiles if self.lists is None else self.lists.seconds

    def within(self, seconds: float) -> bool:
        """Tell whether exact scores take at most so long; counting stops there."""
        full = tile_seconds(self.query, self.columns)
        if full <= seconds:
            return True
        if not self.query.reduced.acyclic or self.query.chain.listed:
            return False
        if full * live_share(self.query, self.columns) <= seconds:
            return True
        try:
            sweep_cost(self.query, self.columns, maximum=seconds / (thresholds.LIST_NS * 1e-9))
        except ResourceError:
            return False
        return True


def sweep_cost(query: Query, columns: Columns, *, maximum: float = np.inf) -> SweepCost:
    """Sweep evenly spaced runs of columns and scale up; give up beyond `maximum` entries in all."""
    skip = max(1, len(columns) // thresholds.SAMPLED_COLUMNS)
    chosen = np.arange(len(columns)) // thresholds.SAMPLED_RUN % skip == skip // 2
    if not np.any(chosen):
        chosen[:] = True
    scale = len(columns) / max(int(chosen.sum()), 1)
    births = np.where(chosen, births_of(columns), 0)
    swept = ListWork.of(query, columns, births=births, entries=maximum / scale).solve(0)
    return SweepCost(entries=swept.entries * scale, alive=swept.peak * scale)
