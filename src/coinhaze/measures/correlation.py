"""How measures of the same coins go together: Pearson's and Spearman's correlation."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Floats
from coinhaze.measures.scores import Scores


def correlations(scores: Scores) -> pa.Table:
    """Compare bits and the measures beside them, pair by pair, on rows where both have an answer.

    `n` rows have both, `nulls` lack one. Null where fewer than two rows are left or one of the
    measures is the same everywhere.

    >>> import coinhaze
    >>> from coinhaze.measures.comparators.side_by_side import compare_measures
    >>> ledger = coinhaze.AccountLedger.from_transfers(
    ...     [("a", "c", 1), ("b", "c", 1), ("a", "d", 1)])
    >>> compared = compare_measures(coinhaze.score(ledger), ["possible-sources"])
    >>> correlations(compared).to_pylist()[0]["spearman"]
    1.0
    """
    columns: dict[str, Floats] = {"bits": scores.bits, **scores.comparators}
    rows = []
    for one, other in combinations(columns, 2):
        x, y = columns[one], columns[other]
        both = ~(np.isnan(x) | np.isnan(y))
        rows.append(
            {
                "measure": one,
                "with": other,
                "n": int(both.sum()),
                "nulls": int((~both).sum()),
                "pearson": pearson(x[both], y[both]),
                "spearman": spearman(x[both], y[both]),
            }
        )
    return pa.Table.from_pylist(rows)


def pearson(x: Floats, y: Floats) -> float | None:
    """Give the linear correlation of two columns; None where one does not vary.

    >>> pearson(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0]))
    1.0
    """
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    # Scaled before squares are taken: counts may differ by many powers of ten.
    dx, dy = (x - x.mean()) / np.ptp(x), (y - y.mean()) / np.ptp(y)
    found = float(dx @ dy) / math.sqrt(float(dx @ dx) * float(dy @ dy))
    return min(1.0, max(-1.0, found))


def spearman(x: Floats, y: Floats) -> float | None:
    """Give the correlation of ranks, ties sharing their mean rank.

    Values that differ by less than a billionth of the largest are one rank: solvers round.
    """
    return pearson(_ranks(x), _ranks(y))


def _ranks(x: Floats) -> Floats:
    if len(x) == 0:
        return x
    scale = float(np.abs(x).max()) or 1.0
    _, group, count = np.unique(np.round(x / scale, 9), return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(count) - (count - 1) / 2)[group]
    return ranks
