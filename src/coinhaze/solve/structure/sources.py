"""How many sources a row can come from: counted on the graph, or bounded where that takes long."""

from __future__ import annotations

import numpy as np

from coinhaze.amounts import Floats, Ints
from coinhaze.observer.chain import NO_COLUMN
from coinhaze.solve.planner import thresholds
from coinhaze.solve.query import Query
from coinhaze.solve.structure.columns import Columns
from coinhaze.solve.structure.components_kernels import count_outcomes
from coinhaze.solve.structure.reduce import Reduced
from coinhaze.solve.truncated.lists_kernels import bound_sources

WORD = 64  # bits of a word of the sets that are counted


def possible_sources(
    query: Query, columns: Columns, *, most_words: float = thresholds.FEW_COUNTED_WORDS
) -> tuple[Floats, bool]:
    """Count the sources each scored state can reach, or bound them if counting takes long.

    A row that reaches a column's dominator reaches every source behind it, and none but through
    it: a column counts as many as it stands for. Also tell whether they were counted.
    """
    reduced, count = query.reduced, columns.priors.count
    words = len(_words(count)[1])
    if float(words) * len(reduced.indices) <= most_words:
        return reached(reduced, columns.of_state, count)[query.scored], True
    most = float(count.sum())
    if not reduced.acyclic:
        return np.full(len(query.scored), most), False
    own = np.where(columns.of_state == NO_COLUMN, 0.0, count[columns.of_state])
    bound = bound_sources(reduced.indptr, reduced.indices, own, most)
    return np.asarray(bound, dtype=np.float64)[query.scored], False


def reached(reduced: Reduced, column: Ints, count: Floats) -> Floats:
    """Add up what the columns each state can reach count for, each of them once."""
    slot, worth = _words(count)
    at = np.where(column == NO_COLUMN, NO_COLUMN, np.append(slot, NO_COLUMN)[column])
    total = count_outcomes(reduced.indptr, reduced.indices, at, reduced.block_start, worth)
    return np.asarray(total, dtype=np.float64)


def _words(count: Floats) -> tuple[Ints, Ints]:
    """Give each column a bit of a word, so that all columns of a word count for the same."""
    worth, kind, sizes = np.unique(count, return_inverse=True, return_counts=True)
    words = -(-sizes // WORD)
    order = np.argsort(kind, kind="stable")
    rank = np.empty(len(kind), dtype=np.int64)
    rank[order] = np.arange(len(kind)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    slot = WORD * (np.cumsum(words) - words)[kind] + rank
    return slot, np.repeat(worth, words).astype(np.int64)
