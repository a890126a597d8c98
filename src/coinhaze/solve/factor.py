"""A reduced chain as factors that any number of right-hand sides can be solved with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coinhaze.errors import AccuracyError, ResourceError
from coinhaze.ledger.amounts import Floats, Ints
from coinhaze.solve.factor_kernels import eliminate_block, solve_transposed, solve_vector
from coinhaze.solve.reduce import ENTRY_ERROR, Reduced

ROUNDING = 2.0**-53
MOST_CORE = 12_000
# Beyond this share of possible moves a block is eliminated as a dense matrix.
DENSE_SHARE = 0.25


@dataclass(frozen=True, eq=False)
class Factor:
    """N = (I - Q)^-1 as two sparse triangles, in an order of their own.

    `place` maps states to that order. Vectors go in and out by state. In an acyclic chain every
    block is one state: the lower triangle is Q itself, the upper one is empty.
    """

    place: Ints
    back: Ints  # the state at each place
    lower: Ints
    lower_at: Ints
    lower_v: Floats
    upper: Ints
    upper_at: Ints
    upper_v: Floats
    pivot: Floats
    block_start: Ints
    row_error: Floats  # bound on each row's relative rounding error, times 2^53

    def __len__(self) -> int:
        return len(self.pivot)

    def arrays(self) -> tuple[Ints | Floats, ...]:
        """Give what the kernels need, in their order."""
        return (
            self.lower,
            self.lower_at,
            self.lower_v,
            self.upper,
            self.upper_at,
            self.upper_v,
            self.pivot,
            self.block_start,
        )

    def solve(self, x: Floats) -> Floats:
        """Give N x."""
        result = x[self.back]
        solve_vector(*self.arrays(), result)
        return result[self.place]

    def visits(self, start: int) -> Floats:
        """Give the expected visits to every state of a walk from one state."""
        result = np.zeros(len(self))
        result[self.place[start]] = 1.0
        solve_transposed(*self.arrays(), result)
        return result[self.place]

    def roundings(self) -> Floats:
        """Bound the relative error each state's moves bring into a solve, times 2^53."""
        degree = np.diff(self.lower) + np.diff(self.upper)
        roundings: Floats = 2 * self.row_error + degree + 10
        return roundings[self.place]


def factorise(reduced: Reduced) -> Factor:
    """Eliminate inside every strong component; between components nothing needs to be done."""
    n = len(reduced)
    rows = np.repeat(np.arange(n), np.diff(reduced.indptr))
    sizes = np.diff(reduced.block_start)
    block = np.repeat(np.arange(len(sizes)), sizes)
    inner = block[rows] == block[reduced.indices]
    place = np.arange(n)
    pivot = np.ones(n)
    # Every row errs by its worst entry; its own absorption is one of them.
    row_error = np.full(n, ENTRY_ERROR)
    np.maximum.at(row_error, rows, reduced.entry_error)
    outside = reduced.own + np.bincount(rows[~inner], reduced.data[~inner], minlength=n)
    # A plain sum of k terms errs by at most k roundings beside its terms' own.
    outside_error = np.full(n, ENTRY_ERROR)
    np.maximum.at(outside_error, rows[~inner], reduced.entry_error[~inner])
    outside_error += np.bincount(rows[~inner], minlength=n)
    lowers = [(rows[~inner], reduced.indices[~inner], reduced.data[~inner])]
    uppers: list[tuple[Ints, Ints, Floats]] = []
    looping = np.unique(rows[inner])
    for b in np.unique(block[looping]):
        start, end = int(reduced.block_start[b]), int(reduced.block_start[b + 1])
        part = slice(reduced.indptr[start], reduced.indptr[end])
        within = inner[part]
        local_rows = rows[part][within] - start
        order, s, errors, low, up = eliminate_block(
            np.searchsorted(local_rows, np.arange(end - start + 1)),
            reduced.indices[part][within] - start,
            reduced.data[part][within],
            reduced.entry_error[part][within],
            outside[start:end],
            outside_error[start:end],
            DENSE_SHARE,
            MOST_CORE,
        )
        if len(order) and order[0] < 0:
            raise ResourceError(
                f"a core of more than {MOST_CORE} states is left after elimination, too many for "
                "a dense matrix: use a temporal view or a shorter window"
            )
        if s.min() <= 0:
            raise AccuracyError(
                "absorption is rarer than floats can hold (below 1e-290): no score is given"
            )
        place[start + order] = start + np.arange(end - start)
        pivot[start:end] = s
        row_error[start:end] = errors
        lowers.append((start + low[0], start + low[1], low[2]))
        uppers.append((start + up[0], start + up[1], up[2]))
    lower, lower_at, lower_v = _rows(lowers, place)
    upper, upper_at, upper_v = _rows(uppers, place)
    back = np.empty(n, dtype=np.int64)
    back[place] = np.arange(n)
    return Factor(
        place=place,
        back=back,
        lower=lower,
        lower_at=lower_at,
        lower_v=lower_v,
        upper=upper,
        upper_at=upper_at,
        upper_v=upper_v,
        pivot=pivot,
        block_start=reduced.block_start,
        row_error=row_error,
    )


def _rows(parts: list[tuple[Ints, Ints, Floats]], place: Ints) -> tuple[Ints, Ints, Floats]:
    """Gather triples into rows, in the order the states are solved."""
    if not parts:
        empty = np.zeros(0, dtype=np.int64)
        return np.zeros(len(place) + 1, dtype=np.int64), empty, np.zeros(0)
    i, j, v = (np.concatenate(column) for column in zip(*parts, strict=True))
    i, j = place[i], place[j]
    order = np.lexsort((j, i))
    i, j, v = i[order], j[order], v[order]
    return np.searchsorted(i, np.arange(len(place) + 1)), j, v
