"""Cores: what is left of a strong component when the states that cost little are eliminated.

A small core is inverted. A large one, x = right + Q x, is solved by Gauss-Seidel sweeps from below.
Walks that linger in small sets of states (the hot wallets of one exchange) would make that slow, so
heavy moves are solved first: the rows of a cluster C become (I - Q_CC)^-1 times what leaves it,
which changes no solution, adds few moves, and lets a walk leave the cluster in one step.

How many sweeps are needed is known beforehand: rows of B sum to 1, so the missing part of a row
after t sweeps is what t sweeps leave of a vector of ones. Sweeps stop on the worst row's missing
mass, and the same number of them gives every column.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coinhaze.amounts import Floats, Ints
from coinhaze.errors import AccuracyError, ResourceError
from coinhaze.measures.intervals import ROUNDING
from coinhaze.solve.exact.core_kernels import (
    apply_inverses,
    eliminate_core,
    heavy_components,
    invert_core,
    multiply,
    multiply_tile,
    multiply_vector,
    solve_clusters,
    sweep_tile,
    sweep_vector,
)
from coinhaze.solve.planner import thresholds

# Triples at least this likely hold a cluster together, tried in turn.
HEAVY = (0.1, 0.07, 0.05)
# An inverse is multiplied back by blocks of so many states.
BACK = 128


@dataclass(frozen=True, eq=False)
class Clusters:
    """Sets of states and the inverses their right-hand sides are multiplied by."""

    start: Ints
    members: Ints
    at: Ints
    inverses: Floats

    def apply(self, x: Floats) -> None:
        """Multiply the rows of each cluster by its inverse, in place."""
        apply_inverses(
            self.start, self.members, self.at, self.inverses.astype(x.dtype, copy=False), x
        )


@dataclass(frozen=True, eq=False)
class DenseCore:
    """A core as its inverse."""

    inverse: Floats
    row_error: Floats  # bound on each row's relative rounding error, times 2^53
    checked: Floats  # the same for walks, found by multiplying back: see `multiplied_back`

    def __len__(self) -> int:
        return len(self.inverse)

    @property
    def degree(self) -> Ints:
        """How many terms each row adds up: all of them once for the inverse, then by fours."""
        return np.full(len(self), len(self) + len(self) // 4 + 8)

    @property
    def missing(self) -> Floats:
        """Nothing is left out."""
        return np.zeros(len(self))

    def solve(self, x: Floats) -> None:
        """Replace a tile of right-hand sides by solutions."""
        multiply_tile(self.inverse.astype(x.dtype, copy=False), x.copy(), x)

    def solve_vector(self, x: Floats) -> None:
        """Replace one right-hand side by its solution."""
        x[:] = multiply_vector(self.inverse, x)

    def visits(self, y: Floats) -> None:
        """Replace y by y times the inverse."""
        y[:] = multiply(y[None, :], self.inverse, len(y))[0]


@dataclass(frozen=True, eq=False)
class SparseCore:
    """Triples between the states of a core, none to itself, each row with `out` summing to 1."""

    indptr: Ints
    indices: Ints
    data: Floats
    out: Floats
    scale: Floats  # what right-hand sides are divided by
    clusters: tuple[Clusters, ...]
    row_error: Floats  # bound on each row's relative rounding error, times 2^53
    missing: Floats  # what the sweeps leave out of each row
    sweeps: int

    def __len__(self) -> int:
        return len(self.out)

    @property
    def degree(self) -> Ints:
        """How many terms each row adds up."""
        return np.diff(self.indptr)

    def visits(self, y: Floats) -> None:
        """Refuse what takes the inverse."""
        raise ResourceError(
            f"the flow to one node needs the inverse of a core of {len(self)} states: "
            "give an accuracy in bits, such as 0.01, for a local answer"
        )

    def prepare(self, x: Floats) -> Floats:
        """Turn right-hand sides into those of the clustered rows."""
        right: Floats = x / self.scale.astype(x.dtype, copy=False)[:, None]
        for clusters in self.clusters:
            clusters.apply(right)
        return right

    def solve(self, x: Floats) -> None:
        """Replace a tile of right-hand sides by solutions."""
        right = self.prepare(x)
        x[:] = right
        data = self.data.astype(x.dtype, copy=False)
        for k in range(self.sweeps):
            sweep_tile(self.indptr, self.indices, data, right, x, k % 2 == 0)

    def solve_vector(self, x: Floats) -> None:
        """Replace one right-hand side by its solution."""
        right = self.prepare(x[:, None])[:, 0]
        x[:] = right
        for k in range(self.sweeps):
            sweep_vector(self.indptr, self.indices, self.data, right, x, k % 2 == 0)


Core = DenseCore | SparseCore
Triples = tuple[Ints, Ints, Floats]


def dense_core(moves: Triples, errors: Floats, out: Floats, out_error: Floats) -> DenseCore:
    """Invert a core given by its moves and ways out."""
    rows, to, values = moves
    n = len(out)
    matrix, error = np.zeros((n, n)), np.zeros((n, n), dtype=np.float32)
    matrix[rows, to] = values
    error[rows, to] = errors
    given = np.maximum(error.max(axis=1, initial=0.0), out_error)
    before = matrix.copy()
    pivot, row_error = eliminate_core(matrix, error, out.copy(), out_error.copy())
    refuse_faint(pivot)
    inverse = invert_core(matrix, pivot)
    # Moves as given may be off by a relative error, which counts twice; see docs/accuracy.md.
    checked = 2 * given + multiplied_back(before, out, inverse)
    return DenseCore(inverse, row_error, checked)


def multiplied_back(moves: Floats, out: Floats, inverse: Floats) -> Floats:
    """Bound what a computed inverse X leaves of the identity, for every row, times 2^53.

    With D the sums of ways out and M the moves let E = I - (D - M) X. Then (D - M)^-1 - X =
    (D - M)^-1 E, so a walk errs, in total over where it ends, by at most |E| out for each visit:
    out is what each state leaves by, and (D - M)^-1 out = 1. Rounding of this very product is
    bounded along: sums go by blocks, so that few terms meet.
    """
    n = len(out)
    scale = out + moves.sum(axis=1)
    product = multiply(moves, inverse, BACK)
    whole = scale[:, None] * inverse
    left = whole - product
    left[np.diag_indices(n)] -= 1.0
    # Terms of a block, blocks, the sums of ways out (added up in pairs), and what comes last.
    roundings = BACK + n / BACK + 2 * np.log2(n + 2) + 16
    bound = np.abs(left) / ROUNDING + roundings * (whole + product + np.eye(n))
    checked: Floats = 1.01 * multiply_vector(bound, out)
    return checked


def refuse_faint(pivot: Floats) -> None:
    """Refuse pivots that elimination marks as beyond the range of floats."""
    if len(pivot) and pivot.min() <= 0:
        raise AccuracyError(
            "absorption is rarer than floats can hold (below 1e-290): no score is given"
        )


def sparse_core(
    moves: Triples, errors: Floats, out: Floats, out_error: Floats, *, tolerance: float
) -> SparseCore:
    """Make a core of moves and ways out; `tolerance` is the mass a row may miss."""
    rows, to, values = moves
    n = len(out)
    scale = out + np.bincount(rows, values, minlength=n)
    row_error = out_error.copy()
    np.maximum.at(row_error, rows, errors)
    row_error += np.bincount(rows, minlength=n) + 4
    indptr = np.searchsorted(rows, np.arange(n + 1))
    indices, data, out = to, values / scale[rows], out / scale
    done: list[Clusters] = []
    for threshold in HEAVY:
        indptr, indices, data, out, clusters = _cluster(indptr, indices, data, out, threshold)
        sizes = np.diff(clusters.start)
        if len(sizes) == 0:
            continue
        # An inverse of c rows passes c eliminations and c mixtures, a few roundings each.
        worst = np.maximum.reduceat(row_error[clusters.members], clusters.start[:-1])
        row_error[clusters.members] = np.repeat(worst + 12.0 * sizes + 20, sizes)
        done.append(clusters)
    sweeps, missing = _count_sweeps(indptr, indices, data, out, tolerance)
    return SparseCore(indptr, indices, data, out, scale, tuple(done), row_error, missing, sweeps)


def _cluster(
    indptr: Ints, indices: Ints, data: Floats, out: Floats, threshold: float
) -> tuple[Ints, Ints, Floats, Floats, Clusters]:
    """Solve the clusters that moves of at least `threshold` make."""
    n = len(out)
    root = heavy_components(indptr, indices, data, threshold)
    size = np.bincount(root, minlength=n)
    fits = (size >= 2) & (size <= thresholds.MAX_CLUSTER)
    members = np.flatnonzero(fits[root])
    members = members[np.argsort(root[members], kind="stable")]
    start = np.concatenate([[0], np.cumsum(size[fits])]).astype(np.int64)
    done, inverses, row, to, value, out = solve_clusters(
        start, members, indptr, indices, data, out, thresholds.MAX_CLUSTER_GROWTH
    )
    old = np.repeat(np.arange(n), np.diff(indptr))
    replaced = np.zeros(n, dtype=np.bool_)
    replaced[members[np.repeat(done, np.diff(start))]] = True
    keep = ~replaced[old]
    i, j, v = (
        np.concatenate(pair)
        for pair in ((old[keep], row), (indices[keep], to), (data[keep], value))
    )
    order = np.argsort(i, kind="stable")
    sizes = np.diff(start)[done]
    kept = Clusters(
        start=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        members=members[np.repeat(done, np.diff(start))],
        at=np.concatenate([[0], np.cumsum(sizes**2)]).astype(np.int64),
        inverses=np.concatenate([np.zeros(0), *(inverse.ravel() for inverse in inverses)]),
    )
    indptr = np.searchsorted(i[order], np.arange(n + 1))
    return indptr, j[order].astype(np.int64), v[order], out, kept


def _count_sweeps(
    indptr: Ints, indices: Ints, data: Floats, out: Floats, tolerance: float
) -> tuple[int, Floats]:
    """Count the sweeps until no row misses more than the tolerance; give what each misses."""
    nothing = np.zeros(len(out))
    # Sweeps begin with the right-hand side itself: what it misses is the chance to move on.
    rows = np.repeat(np.arange(len(out)), np.diff(indptr))
    missing = np.asarray(np.bincount(rows, data, minlength=len(out)), dtype=np.float64)
    for sweeps in range(thresholds.MAX_PASSES):
        worst = float(missing.max(initial=0.0))
        if worst <= tolerance:
            return sweeps, missing
        sweep_vector(indptr, indices, data, nothing, missing, sweeps % 2 == 0)
    raise AccuracyError(
        f"after {thresholds.MAX_PASSES} sweeps over a core of {len(out)} states the worst row "
        f"still misses {worst:.1e} of its mass, above {tolerance:.0e}: use a temporal view or a "
        "shorter window"
    )
