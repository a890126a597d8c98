"""What an exact sweep will cost, found by sweeping a small part of the columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coinhaze.chain.chain import NO_COLUMN
from coinhaze.solve.asked import Asked
from coinhaze.solve.columns import Columns
from coinhaze.solve.lists import ENTRY, MEMORY, sweep_births

# Columns of the sample stand together by this many, so that they collapse nearly as they will.
RUN = 64
# Columns in the sample: enough for a good guess, few enough for a second or two.
SAMPLE = 2048


@dataclass(frozen=True)
class SweepCost:
    """Entries an exact sweep reads, and the most that are alive at once if it goes in one block."""

    entries: float
    alive: float

    def blocks(self, *, memory: int = MEMORY, workers: int = 2) -> int:
        """Say how many blocks keep all workers' lists within a memory; at least one a worker.

        Blocks are not equal: the largest may hold twice what a typical one does.
        """
        return max(workers, int(2 * self.alive * ENTRY * workers / memory) + 1)


def sweep_cost(asked: Asked, columns: Columns) -> SweepCost:
    """Sweep evenly spaced runs of columns and scale up."""
    births = np.bincount(columns.of_state[columns.of_state != NO_COLUMN], minlength=len(columns))
    skip = max(1, len(columns) // SAMPLE)
    chosen = np.arange(len(columns)) // RUN % skip == skip // 2
    if not np.any(chosen):
        chosen[:] = True
    swept = sweep_births(asked, columns, np.where(chosen, births, 0).astype(np.int32))
    scale = len(columns) / max(int(chosen.sum()), 1)
    return SweepCost(entries=swept.entries * scale, alive=swept.peak * scale)
