"""Possible sources: how many outcomes each state can reach, counted on the graph with bit sets.

Counting takes far longer than all else where there are many sources, and narrows no interval, so
unless requested they are only bounded where counting is not quick. It works on the graph: an
outcome of probability 1e-400 counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from coinhaze.amounts import Floats, Ints
from coinhaze.observer.chain import NO_COLUMN
from coinhaze.solve.planner import thresholds
from coinhaze.solve.pool import UNLIMITED, Budget, open_threads
from coinhaze.solve.query import Query
from coinhaze.solve.structure.reduce import Reduced
from coinhaze.solve.structure.reduce_kernels import bound_sources, count_outcomes

WORD, WORDS = 64, 8  # bits of a word, and words of a set; a set is a line of a processor's cache


@dataclass(frozen=True, eq=False)
class Counting:
    """The work of counting; a piece is the number of a set of columns.

    A row that reaches a column's dominator reaches every source behind it, and none but through
    it: a column counts as many as it stands for.
    """

    reduced: Reduced
    own: Floats  # how many sources each state's own column stands for, 0 where it has none
    slot: Ints  # the bit of each state's own column, NO_COLUMN where it has none
    worth: Ints  # for each word how many sources each of its columns stands for
    maximum: float  # how many there are in all
    waiting: int = 2

    @classmethod
    def of(cls, reduced: Reduced, column: Ints, count: Floats) -> Counting:
        """Prepare to count what the columns each state can reach stand for, each of them once.

        `column` is each state's own, `count` what each column stands for.
        """
        none = column == NO_COLUMN
        slot, worth = _words(count)
        return cls(
            reduced,
            np.where(none, 0.0, np.append(count, 0.0)[column]),
            np.where(none, NO_COLUMN, np.append(slot, NO_COLUMN)[column]),
            worth,
            float(count.sum()),
        )

    @property
    def pieces(self) -> int:
        """How many sets there are."""
        return -(-len(self.worth) // WORDS)

    @property
    def words(self) -> float:
        """How many words are read."""
        return float(len(self.worth)) * len(self.reduced.indices)

    @property
    def seconds(self) -> float:
        """What counting takes, in seconds of one core."""
        return self.words * thresholds.COUNT_NS * 1e-9

    @property
    def room_bytes(self) -> int:
        """The bytes of one worker's sets."""
        return 8 * (WORDS + 1) * len(self.reduced)

    def room(self) -> npt.NDArray[np.uint64]:
        """Make one worker's sets."""
        return np.empty((len(self.reduced.block_start) - 1, WORDS), dtype=np.uint64)

    def solve(self, piece: int, room: npt.NDArray[np.uint64]) -> Ints:
        """Count what the columns of one set stand for."""
        reduced, first = self.reduced, piece * WORDS
        found: Ints = count_outcomes(
            reduced.indptr, reduced.indices, self.slot, reduced.block_start,
            self.worth[first : first + WORDS], first, room,
        )  # fmt: skip
        return found

    def count(self, budget: Budget = UNLIMITED) -> Floats:
        """Count the possible sources of each state."""
        total = np.zeros(len(self.reduced), dtype=np.int64)
        # Here, whatever solves the rows: it is part of preparing them.
        with open_threads(self, self.pieces, budget) as workers:
            for part in workers.map(range(self.pieces)):
                total += part
        return total.astype(np.float64)

    def bound(self) -> Floats:
        """Bound the possible sources of each state from above."""
        reduced = self.reduced
        if not reduced.acyclic:
            return np.full(len(reduced), self.maximum)
        bound = bound_sources(reduced.indptr, reduced.indices, self.own, self.maximum)
        return np.asarray(bound, dtype=np.float64)


def possible_sources(
    query: Query, counting: Counting, *, count: bool = False, budget: Budget = UNLIMITED
) -> tuple[Floats, bool]:
    """Count the sources each scored state can reach, or bound them; also tell which.

    Unless requested they are counted only where that is quick.
    """
    if count or counting.words <= thresholds.QUICK_WORDS:
        return counting.count(budget)[query.scored], True
    return counting.bound()[query.scored], False


def _words(count: Floats) -> tuple[Ints, Ints]:
    """Give each column a bit of a word, so that all columns of a word count for the same."""
    worth, kind, sizes = np.unique(count, return_inverse=True, return_counts=True)
    words = -(-sizes // WORD)
    order = np.argsort(kind, kind="stable")
    rank = np.empty(len(kind), dtype=np.int64)
    rank[order] = np.arange(len(kind)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    slot = WORD * (np.cumsum(words) - words)[kind] + rank
    return slot, np.repeat(worth, words).astype(np.int64)
