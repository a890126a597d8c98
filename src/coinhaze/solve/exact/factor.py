"""A reduced chain as factors that any number of right-hand sides can be solved with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.ledger.frozen import release_unused
from coinhaze.solve.exact.core import (
    Core,
    DenseCore,
    SparseCore,
    dense_core,
    refuse_faint,
    sparse_core,
)
from coinhaze.solve.exact.factor_kernels import eliminate_small, thin_block
from coinhaze.solve.exact.stream_kernels import solve_tile, solve_tile_back
from coinhaze.solve.exact.triangles_kernels import (
    gather_rows,
    mark_needed,
    place_rows,
    solve_vector,
    solve_vector_back,
    visits_back,
    visits_forward,
    visits_of,
)
from coinhaze.solve.planner import thresholds
from coinhaze.solve.structure.reduce import ENTRY_ERROR, Reduced


@dataclass(frozen=True, eq=False)
class Factor:
    """N = (I - Q)^-1 as two sparse triangles, in an order of their own.

    `place` maps states to that order. Vectors go in and out by state. In an acyclic chain every
    block is one state: the lower triangle is Q itself, the upper one is empty. Blocks that end in
    a core name it; the core's rows have no entry in the upper triangle. Leaves, to which no state
    moves, come last, so that tiles need not hold them.
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
    inner: int  # how many states are no leaves
    inner_blocks: int
    row_error: Floats  # bound on each row's relative rounding error, times 2^53
    cores: dict[int, Core]  # by block
    # Of places in chains that carry what sums lose: the one before, and the chain's number.
    before: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    chain: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

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
        """Give N x, or what sweeps over cores reach of it."""
        result = x[self.back]
        for part_range in self._ranges(len(self.block_start) - 1):
            solve_vector(*self.arrays(), *part_range.blocks, result)
            if part_range.core is not None:
                part_range.core.solve_vector(result[part_range.part])
                solve_vector_back(*self.arrays(), part_range.blocks[1], result)
        return result[self.place]

    def missing(self) -> Floats:
        """Give what sweeps leave out of each state's row."""
        result = np.zeros(len(self))
        for part_range in self._ranges(len(self.block_start) - 1):
            solve_vector(*self.arrays(), *part_range.blocks, result)
            if part_range.core is not None:
                # What earlier components miss goes through the core like any right-hand side.
                part_range.core.solve_vector(result[part_range.part])
                result[part_range.part] += part_range.core.missing
                solve_vector_back(*self.arrays(), part_range.blocks[1], result)
        return result[self.place]

    def needed(self, wanted: Bools) -> Bools:
        """Tell which places a solve must finish, given those wanted."""
        marked = mark_needed(
            self.lower, self.lower_at, self.upper, self.upper_at, self.block_start, wanted
        )
        for block, core in self.cores.items():
            end = self.block_start[block + 1]
            marked[end - len(core) : end] = True
        return np.asarray(marked, dtype=np.bool_)

    def solve_tile(self, x: Floats, live: Bools, needed: Bools) -> None:
        """Replace the needed rows of x, in the order of the factors, without leaves, by N x."""
        values = [
            a if a.dtype.kind == "i" else a.astype(x.dtype, copy=False) for a in self.arrays()
        ]
        lost = np.zeros((int(self.chain.max(initial=-1)) + 1, x.shape[1]), dtype=x.dtype)
        carried = (self.before, self.chain, lost)
        for part_range in self._ranges(self.inner_blocks):
            solve_tile(*values, *part_range.blocks, needed, x, live, *carried)
            core = part_range.core
            if core is not None and np.any(live[part_range.part]):
                x[part_range.part][~live[part_range.part]] = 0.0
                live[part_range.part] = True
                core.solve(x[part_range.part])
            if core is not None:
                solve_tile_back(*values, part_range.blocks[1], needed, x, live)

    def carrying(self, before: Ints, chain: Ints) -> Factor:
        """Give the factors of an acyclic chain with chains of states that carry what sums lose."""
        before, chain = before[self.back], chain[self.back]
        return replace(self, before=np.where(before < 0, -1, self.place[before]), chain=chain)

    def visits(self, start: int) -> Floats:
        """Give the expected visits to every state of a walk from one state."""
        result = np.zeros(len(self))
        result[self.place[start]] = 1.0
        for part_range in reversed(list(self._ranges(len(self.block_start) - 1))):
            first, last = part_range.blocks
            if part_range.core is not None:
                bounds = self.block_start[last], self.block_start[last + 1]
                visits_back(self.upper, self.upper_at, self.upper_v, self.pivot, *bounds, result)
                part_range.core.visits(result[part_range.part])
                visits_forward(self.lower, self.lower_at, self.lower_v, *bounds, result)
            visits_of(*self.arrays(), first, last, result)
        return result[self.place]

    def roundings(self, *, by_fours: bool, walks: bool = False) -> Floats:
        """Bound the relative error each state's moves bring into a solve, times 2^53.

        Tiles add rows up four at a time, lists one by one. `walks` asks for a bound on where walks
        end in total, for each visit; else it holds for every single probability.
        """
        degree = np.diff(self.lower) + np.diff(self.upper)
        row_error = self.row_error.copy()
        for block, core in self.cores.items():
            end = self.block_start[block + 1]
            part = slice(end - len(core), end)
            if walks and isinstance(core, DenseCore):
                row_error[part] = core.checked / 2
                degree[part] += len(core) + 32
            else:
                degree[part] += 4 * core.degree
        # One product for each move, the sums, the own opening and the pivot.
        sums = np.minimum(degree, degree // 4 + 3) if by_fours else degree
        roundings: Floats = 2 * row_error + sums + 4
        return roundings[self.place]

    @property
    def sweeps(self) -> bool:
        """Tell whether some core is solved by sweeps, which leave out a little."""
        return any(isinstance(core, SparseCore) for core in self.cores.values())

    def _ranges(self, blocks: int) -> Iterator[_Range]:
        """Cut the blocks where cores end."""
        first = 0
        for block in sorted(self.cores):
            core = self.cores[block]
            end = int(self.block_start[block + 1])
            yield _Range((first, block), slice(end - len(core), end), core)
            first = block + 1
        yield _Range((first, blocks), slice(0, 0), None)


class _Range(NamedTuple):
    """Blocks to be solved one after the other, the last one (if it has a core) only forward."""

    blocks: tuple[int, int]
    part: slice
    core: Core | None


class _Block(NamedTuple):
    """One strong component eliminated: its order, and what is known of it in that order."""

    order: Ints
    pivot: Floats
    row_error: Floats
    lower: tuple[Ints, Ints, Floats]
    upper: tuple[Ints, Ints, Floats]
    core: Core | None


def factorise(reduced: Reduced, *, missing: float = thresholds.EXACT_MISSING) -> Factor:
    """Eliminate inside every strong component; between components nothing needs to be done.

    Components too dense to be eliminated keep a core, of whose rows sweeps may miss `missing`.
    """
    n = len(reduced)
    if reduced.acyclic:
        row_error = np.full(n, ENTRY_ERROR)
        _raise_rows(row_error, reduced.indptr, reduced.entry_error)
        return _ordered(reduced, np.arange(n), np.ones(n), row_error, None, [], {})
    rows = np.repeat(np.arange(n), np.diff(reduced.indptr))
    block = np.repeat(np.arange(len(reduced.block_start) - 1), np.diff(reduced.block_start))
    inner = block[rows] == block[reduced.indices]
    place = np.arange(n)
    pivot = np.ones(n)
    # Every row errs by its worst entry; its own absorption is one of them.
    row_error = np.full(n, ENTRY_ERROR)
    _raise_rows(row_error, reduced.indptr, reduced.entry_error)
    outside, outside_error = _ways_out(reduced, rows, inner)
    lowers = [(rows[~inner], reduced.indices[~inner], reduced.data[~inner])]
    uppers: list[tuple[Ints, Ints, Floats]] = []
    cores: dict[int, Core] = {}
    sizes = np.diff(reduced.block_start)
    looping = np.unique(block[rows[inner]])
    small = looping[sizes[looping] <= thresholds.MIN_CORE]
    few_pivots, few_errors, low, up = eliminate_small(
        small, reduced.block_start, reduced.indptr, reduced.indices, reduced.data,
        reduced.entry_error, outside, outside_error,
    )  # fmt: skip
    refuse_faint(few_pivots)
    lowers.append(low)
    uppers.append(up)
    is_small = np.zeros(len(sizes), dtype=np.bool_)
    is_small[small] = True
    of_small = is_small[block]
    pivot[of_small], row_error[of_small] = few_pivots[of_small], few_errors[of_small]
    for b in looping[sizes[looping] > thresholds.MIN_CORE].tolist():
        start, end = int(reduced.block_start[b]), int(reduced.block_start[b + 1])
        done = _eliminate(reduced, rows, inner, start, end, outside, outside_error, missing=missing)
        place[start + done.order] = start + np.arange(end - start)
        pivot[start:end] = done.pivot
        row_error[start:end] = done.row_error
        lowers.append((start + done.lower[0], start + done.lower[1], done.lower[2]))
        uppers.append((start + done.upper[0], start + done.upper[1], done.upper[2]))
        if done.core is not None:
            cores[b] = done.core
    factor = _ordered(reduced, place, pivot, row_error, lowers, uppers, cores)
    release_unused()
    return factor


def _ways_out(reduced: Reduced, rows: Ints, inner: Bools) -> tuple[Floats, Floats]:
    """Give each state's probability to leave its component in one move, and its error."""
    n = len(reduced)
    outside = reduced.own + np.bincount(rows[~inner], reduced.data[~inner], minlength=n)
    # A plain sum of k terms errs by at most k roundings beside its terms' own.
    error = np.full(n, ENTRY_ERROR)
    _raise_rows(error, reduced.indptr, np.where(inner, 0.0, reduced.entry_error))
    error += np.bincount(rows[~inner], minlength=n)
    return outside, error


def _raise_rows(minimum: Floats, indptr: Ints, values: Floats) -> None:
    """Raise what stands for each row to the largest value in it."""
    has = np.flatnonzero(np.diff(indptr))
    if len(has):
        minimum[has] = np.maximum(minimum[has], np.maximum.reduceat(values, indptr[has]))


def _eliminate(
    reduced: Reduced,
    rows: Ints,
    inner: Bools,
    start: int,
    end: int,
    outside: Floats,
    outside_error: Floats,
    *,
    missing: float,
) -> _Block:
    """Eliminate one component, all of it or down to a core."""
    part = slice(reduced.indptr[start], reduced.indptr[end])
    within = inner[part]
    local = rows[part][within] - start
    given = (
        np.searchsorted(local, np.arange(end - start + 1)),
        reduced.indices[part][within] - start,
        reduced.data[part][within],
        reduced.entry_error[part][within],
        outside[start:end],
        outside_error[start:end],
        thresholds.DENSE_SHARE,
    )
    *thin, gave_up = thin_block(*given, 1 << 60, thresholds.MAX_ELIMINATION_WORK)
    if gave_up or len(thin[8]) > thresholds.MAX_DENSE_CORE:
        *thin, gave_up = thin_block(*given, thresholds.THIN_DEGREE, 1 << 60)
    _, order, pivot, row_error, lower, upper, moves, errors, out, out_error = thin
    refuse_faint(pivot)
    core: Core | None = None
    if len(out) > thresholds.MAX_DENSE_CORE:
        core = sparse_core(moves, errors, out, out_error, tolerance=missing)
    elif len(out):
        core = dense_core(moves, errors, out, out_error)
    if core is not None:
        # A core's rows are solved apart: on the way back there is nothing left to do for them.
        pivot = np.concatenate([pivot, np.ones(len(core))])
        row_error = np.concatenate([row_error, core.row_error])
    return _Block(order, pivot, row_error, lower, upper, core)


def _ordered(
    reduced: Reduced,
    place: Ints,
    pivot: Floats,
    row_error: Floats,
    lowers: list[tuple[Ints, Ints, Floats]] | None,
    uppers: list[tuple[Ints, Ints, Floats]],
    cores: dict[int, Core],
) -> Factor:
    """Gather the triangles, leaves last; without triples the lower one is the chain itself."""
    n = len(reduced)
    is_inner = np.zeros(n, dtype=np.bool_)
    is_inner[reduced.indices] = True
    sizes = np.diff(reduced.block_start)
    # A block of several states is no leaf, and all of it is moved to.
    inner_block = is_inner[reduced.block_start[:-1]]
    at_inner = np.repeat(inner_block, sizes)
    inner = int(at_inner.sum())
    shift = np.where(at_inner, np.cumsum(at_inner) - 1, inner + np.cumsum(~at_inner) - 1)
    place = shift[place]
    back = np.empty(n, dtype=np.int64)
    back[place] = np.arange(n)
    old = np.empty(n, dtype=np.int64)
    old[shift] = np.arange(n)
    number = np.cumsum(inner_block) - 1
    if lowers is None:
        lower, lower_at, lower_v = place_rows(
            reduced.indptr, reduced.indices, reduced.data, place, back
        )
    else:
        lower, lower_at, lower_v = _rows(lowers, place)
    upper, upper_at, upper_v = _rows(uppers, place)
    ends = np.cumsum(np.concatenate([sizes[inner_block], sizes[~inner_block]]))
    return Factor(
        place=place,
        back=back,
        lower=lower,
        lower_at=lower_at,
        lower_v=lower_v,
        upper=upper,
        upper_at=upper_at,
        upper_v=upper_v,
        pivot=pivot[old],
        block_start=np.concatenate([[0], ends]).astype(np.int64),
        inner=inner,
        inner_blocks=int(inner_block.sum()),
        row_error=row_error[old],
        cores={int(number[b]): core for b, core in cores.items()},
    )


def _rows(parts: list[tuple[Ints, Ints, Floats]], place: Ints) -> tuple[Ints, Ints, Floats]:
    """Gather triples into rows, in the order the states are solved."""
    if not parts:
        empty = np.zeros(0, dtype=np.int64)
        return np.zeros(len(place) + 1, dtype=np.int64), empty, np.zeros(0)
    i, j, v = (np.concatenate(column) for column in zip(*parts, strict=True))
    indptr, at, values = gather_rows(place[i], place[j], v, len(place))
    return indptr, at, values
