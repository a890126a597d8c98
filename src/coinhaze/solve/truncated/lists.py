"""The sweep with lists of tokens, for acyclic chains: exact, or with proven truncation.

Each state's row of B is a list of the tokens it can end in: outcomes, or several that go together
(see lists_kernels.py). A state's list is its predecessors' lists mixed, and is freed at its last
use. Entries below `minimum` may be dropped. Then a row is b = q + r with q kept and r dropped, and
four numbers travel with each list, phi(x) being -x log2 x:

- the mass m of r;
- `upper`, at least the sum of phi(r_c). Since phi(x + y) <= phi(x) + phi(y), dropped pieces may be
  taken as apart: pieces scaled by w add w upper + phi(w) m. So H <= sum phi(q_c) + upper;
- `lower`, at most m times the entropy of r / m. Entropy is concave, so mixing adds up what the
  parts had. So H >= sum phi(q_c) - phi(1 - m) + lower;
- `maximum`, at least the largest r_c: largest entries add up at worst. The entropy of r / m is at
  least log2(m / maximum), which may be the better `lower`.

H is also at least what it would be if all that is missing were on the largest entry; the best of
these bounds is taken. All four numbers are linear in the chain, but for the better `lower`.

Columns are swept in blocks, which workers take: contributions of columns add up. What blocks
dropped at a state is added up too, columns of different blocks being apart, and then followed
through the chain in one pass for all of them.

Dropped pieces seldom meet again, so the truth lies near the upper bound. How near a sketch can
tell (see sketch.py): each list carries k columns y = sum of r_c X_c, and y / m estimates the
entropy of r / m with a standard error of 2.50 / sqrt(k) bits. So the error of the row's entropy is
2.50 m / sqrt(k) bits, plus what a source adds that is in both q and r, or that was dropped both
before and after it went into a token: it is taken for two.
"""

from __future__ import annotations

import math
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.errors import ResourceError, UsageError
from coinhaze.ledger.frozen import narrow, release_unused
from coinhaze.observer.chain import NO_COLUMN
from coinhaze.solve.exact.stream_kernels import WIDTH
from coinhaze.solve.planner import thresholds
from coinhaze.solve.pool import UNLIMITED, Budget, open_workers
from coinhaze.solve.pool.limits import TooManyEntries, in_words, workers_for
from coinhaze.solve.progress import Progress
from coinhaze.solve.query import Query
from coinhaze.solve.structure.columns import Columns
from coinhaze.solve.structure.moves import Moves
from coinhaze.solve.sums import Priors, Sums
from coinhaze.solve.truncated.lists_kernels import (
    BIRTHS,
    DROPS,
    ELSEWHERE,
    FREE,
    LINE,
    MARKS,
    NEXT,
    NO_SLOT,
    OF_LIST,
    PEAK,
    ROWS,
    WORK,
    last_uses,
    unfold,
)
from coinhaze.solve.truncated.topological_kernels import (
    DONE,
    DROPPED,
    FIGURES,
    LISTS,
    MET,
    SCORED,
    TOKENS,
    TOO_MANY,
    TREE,
    add_drops,
    add_rows,
    score_tails,
    sweep_lists,
    sweep_tails,
)
from coinhaze.threads import together

# Columns that follow one another often go together, so up to this many share a block; then it is
# the next block's turn. Many turns make blocks equal: early columns are met by more lists.
TURN, TURNS = 1024, 16
# Blocks are added up by so many threads at most, and each takes so many rows at least.
MAX_ADDERS, MIN_ADDED = 8, 1 << 13


@dataclass(frozen=True, eq=False)
class Swept:
    """What a sweep found, and what it cost."""

    sums: Sums
    weights: Floats  # x^T B
    entries: int  # entries of lists read, over all blocks
    peak: int  # the most entries alive at once in a block
    memory: int  # bytes of the lists of the largest block


class SweptBlock(NamedTuple):
    """What one block found: rows that have any of its columns, states that dropped some of them."""

    rows: Ints
    figures: Floats  # of each of these rows; see `sweep_lists`
    likeliest: Ints
    powers: Floats
    dropping: Ints  # the states that dropped something ...
    dropped: Floats  # ... its mass, the bound on its entropy, its largest part
    sketches: npt.NDArray[np.float32]
    weights: Floats
    entries: int
    peak: int
    memory: int


def list_sums(
    query: Query,
    columns: Columns,
    orders: Floats,
    *,
    minimum: float = 0.0,
    blocks: int = 1,
    collapse: bool = True,
    memory: int | None = None,
    budget: Budget = UNLIMITED,
    progress: Progress,
) -> tuple[Sums, Floats]:
    """Add every scored row up over all columns; also give x^T B."""
    swept = sweep_blocks(
        query,
        columns,
        orders,
        minimum=np.full(len(query.moves), minimum),
        blocks=blocks,
        collapse=collapse,
        memory=memory,
        budget=budget,
        progress=progress,
    )
    return swept.sums, swept.weights


def sweep_blocks(
    query: Query,
    columns: Columns,
    orders: Floats,
    *,
    minimum: Floats,
    blocks: int = 1,
    collapse: bool = True,
    draws: int = 0,
    seed: int = 0,
    weigh: bool = True,
    memory: int | None = None,
    entries: float = math.inf,
    budget: Budget = UNLIMITED,
    progress: Progress,
) -> Swept:
    """Sweep the columns in blocks, by several workers; state i drops entries below `minimum[i]`.

    As many blocks are swept at once as there are workers and memory: what the budget leaves, or
    `memory` bytes. Where their lists do not fit, half as many are tried. Each block may read its
    part of `entries`.

    Blocks change results by rounding where nothing is dropped, workers change nothing. `draws`
    columns of a sketch estimate what dropped mass adds; `weigh` asks for x^T B where it applies.
    """
    if not 0 <= draws <= WIDTH:
        raise UsageError(f"a tail is sketched by up to {WIDTH} draws, not {draws}")
    work = ListWork.of(
        query,
        columns,
        births=births_of(columns),
        block_of=blocks_of(len(columns), blocks),
        blocks=blocks,
        orders=orders,
        minimum=minimum,
        collapse=collapse,
        draws=draws,
        seed=seed,
        weigh=weigh,
        entries=entries / blocks,
    )
    at_once = workers_for(blocks, budget.threads)
    while True:
        room = memory
        if room is None:
            # The largest block may take twice what a typical one does.
            usual = max(thresholds.LIST_MEMORY, at_once * 2 * thresholds.BLOCK_MEMORY)
            beside = Sums.size(work.rows, len(orders)) + Tails.size(len(query.moves), draws)
            room = max(int(thresholds.LIST_SHARE * budget.room(usual)) - beside, 0)
        at_once = max(1, min(at_once, room // work.room_bytes))
        each = replace(work, memory=room // at_once)
        try:
            return _sweep(each, replace(budget, threads=at_once), progress)
        except TooManyEntries:
            raise
        except ResourceError:
            if at_once == 1:
                raise
            at_once //= 2


def _sweep(work: ListWork, budget: Budget, progress: Progress) -> Swept:
    """Sweep all blocks; they are added up in their order, whichever worker swept them."""
    blocks = work.blocks
    total = Sums.zeros(work.rows, len(work.orders))
    weights = np.zeros(len(work.births))
    tails = Tails(work)
    read = peak = largest = done = 0
    with open_workers(work, blocks, budget) as workers, Adder(total, tails, budget) as adder:
        for part in workers.map(range(blocks)):
            adder.add(part)
            weights[: len(part.weights)] += part.weights
            read += part.entries
            peak, largest = max(peak, part.peak), max(largest, part.memory)
            done += 1
            progress(done / blocks)
            del part
        adder.wait()
    tails.bound(total, budget)
    release_unused()  # lists grow and shrink: what blocks freed in pieces others need
    return Swept(total, weights, read, peak, largest)


class Adder:
    """Adds blocks up, in their order: where there are many workers, they would wait for it.

    Rows of one block are apart, and so are states that dropped something: several threads may add
    some each, as long as none begins with the next block before all are done with this one.
    """

    def __init__(self, total: Sums, tails: Tails, budget: Budget) -> None:
        self.total, self.tails = total, tails
        self._count = min(budget.threads or 1, MAX_ADDERS)
        self._executor = ThreadPoolExecutor(self._count)
        self._adding: list[Future[None]] = []

    def __enter__(self) -> Adder:
        return self

    def __exit__(self, *error: object) -> None:
        self._executor.shutdown(cancel_futures=True)

    def add(self, block: SweptBlock) -> None:
        """Begin to add the next block; in the caller's thread where there is only one."""
        self.wait()
        self.tails.reserve(block)
        for add, size in (
            (self._add_rows, len(block.rows)),
            (self._add_drops, len(block.dropping)),
        ):
            step = max(-(-size // self._count), MIN_ADDED)
            for first in range(0, size, step):
                some = slice(first, first + step)
                if self._count == 1:
                    add(block, some)
                else:
                    self._adding.append(self._executor.submit(add, block, some))

    def wait(self) -> None:
        """Wait until all blocks so far are added."""
        for share in self._adding:
            share.result()
        self._adding = []

    def _add_rows(self, block: SweptBlock, some: slice) -> None:
        total = self.total
        add_rows(
            block.rows[some], block.figures[some], block.likeliest[some], block.powers[some],
            total.entropy, total.mass, total.prior, total.top, total.top_column, total.powers,
            total.elsewhere, total.slack,
        )  # fmt: skip

    def _add_drops(self, block: SweptBlock, some: slice) -> None:
        add_drops(
            block.dropping[some], block.dropped[some], block.sketches[some],
            self.tails.lines, self.tails.sketches,
        )  # fmt: skip


class Tails:
    """What lists dropped: added up over blocks, then followed through the chain."""

    def __init__(self, work: ListWork) -> None:
        self.work = work
        self.lines: Floats | None = None  # none as long as nothing was dropped
        self.sketches = np.zeros((0, work.draws), dtype=np.float32)

    @staticmethod
    def size(states: int, draws: int) -> int:
        """Give the bytes this takes once something was dropped."""
        return states * (4 * 8 + 4 * draws)

    def reserve(self, block: SweptBlock) -> None:
        """Make room for what a block dropped, if it is the first that did."""
        if self.lines is None and len(block.dropping):
            n = len(self.work.moves)
            self.lines = np.zeros((n, 4))
            self.sketches = np.zeros((n, self.work.draws), dtype=np.float32)

    def bound(self, sums: Sums, budget: Budget) -> None:
        """Bound what it adds to the entropy of rows; this uses up what was added."""
        if self.lines is None:
            return
        work = self.work
        moves = work.moves.indptr, work.indices, work.moves.data
        sweep_tails(*moves, work.read, self.lines, self.sketches)
        # Rows read what states miss, and nobody reads rows: each thread takes some.
        found = sums.missing, sums.above, sums.below, sums.tail
        step = max(-(-len(work.moves) // (4 * MAX_ADDERS)), MIN_ADDED)
        together(
            [
                partial(
                    score_tails, *moves, work.scored, self.lines, self.sketches, first, step, *found
                )
                for first in range(0, len(work.moves), step)
            ],
            budget.threads,
        )


@dataclass(frozen=True, eq=False)
class ListWork:
    """The work of sparse lists; a piece is the number of a block of columns."""

    moves: Moves
    indices: Ints  # where moves lead, in as few bytes as they need: they are read for every block
    ends: Bools  # which moves are the last to lead to a node
    read: Bools  # which nodes any move leads to
    column: Ints  # the column each node ends in
    births: Ints  # how many states can end in each column ...
    block_of: Ints  # ... and the block it is in
    blocks: int
    scored: Ints  # of each node its row in the sums, -1 if it has none
    rows: int
    excess: Floats  # none where x^T B is not wanted
    priors: Priors
    elsewhere: int
    orders: Floats
    minimum: Floats
    collapse: bool
    draws: int
    seed: int
    memory: int
    entries: float
    seconds: float = math.inf
    waiting: int = 2

    @classmethod
    def of(
        cls,
        query: Query,
        columns: Columns,
        *,
        births: Ints,
        block_of: Ints | None = None,
        blocks: int = 1,
        orders: Floats | None = None,
        minimum: Floats | None = None,
        collapse: bool = True,
        draws: int = 0,
        seed: int = 0,
        weigh: bool = False,
        memory: int = thresholds.LIST_MEMORY,
        entries: float = math.inf,
    ) -> ListWork:
        """Prepare to sweep blocks; `memory` and `entries` are limits of each."""
        moves = query.moves
        n = len(moves)
        scored = np.full(n, -1, dtype=np.int32)
        scored[moves.node[query.scored]] = np.arange(len(query.scored))
        excess = np.zeros(n if weigh and query.chain.conserves else 0)
        if len(excess):
            np.add.at(excess, moves.node, query.excess)
        return cls(
            moves=moves,
            indices=narrow(moves.indices),
            ends=last_uses(moves.indices, n),
            read=moves.uses > 0,
            column=narrow(moves.columns(columns.of_state)),
            births=births,
            block_of=np.zeros(len(births), dtype=np.int16) if block_of is None else block_of,
            blocks=blocks,
            scored=scored,
            rows=len(query.scored),
            excess=excess,
            priors=columns.priors,
            elsewhere=columns.elsewhere,
            orders=np.zeros(0) if orders is None else orders,
            minimum=np.zeros(n) if minimum is None else minimum,
            collapse=collapse,
            draws=draws,
            seed=seed,
            memory=memory,
            entries=entries,
        )

    @property
    def room_bytes(self) -> int:
        """The bytes a worker takes at least; lists grow as they must, up to `memory`."""
        return ListRoom.size(len(self.moves), len(self.births))

    def room(self) -> ListRoom:
        """Make what a worker holds its lists in."""
        return ListRoom(self)

    def solve(self, block: int, room: ListRoom | None = None) -> SweptBlock:
        """Sweep the columns of one block."""
        room = room or self.room()
        room.clear()
        moves, priors = self.moves, self.priors
        births = np.where(self.block_of == block, self.births, 0)
        while True:
            why = sweep_lists(
                moves.indptr, self.indices, moves.data, self.ends, self.read, moves.own,
                self.column, births, self.scored, self.minimum, self.collapse, self.entries,
                priors.inner, priors.bits, priors.top, priors.powers, self.orders, self.elsewhere,
                self.excess, self.seed, *room.arrays(),
            )  # fmt: skip
            if why == DONE:
                return room.found()
            if why == TOO_MANY:
                raise TooManyEntries(f"the lists of outcomes passed {self.entries:.0e} entries")
            room.grow(why)


class ListRoom:
    """What one worker sweeps blocks in, one after the other: arrays that grow, and stay."""

    def __init__(self, work: ListWork) -> None:
        n, columns = len(work.moves), len(work.births)
        orders, draws = len(work.orders), work.draws
        self.work = work
        self.states: tuple[Any, ...] = (
            np.empty(n // 8 + 1, np.uint8),  # which states have a list
            np.empty((n, OF_LIST), np.int32),  # what there is of each state's list
            np.empty(n, np.int32),  # states with a list, in the order these stand in
            np.empty(columns, np.int32),  # each column's token
            np.zeros(3, np.int64),
            np.zeros(MARKS, np.int64),
        )
        self.uniform = np.empty((2, WIDTH))
        # Of these, what a block may need is reserved at once, and grows in place. Memory that was
        # never written is not taken, and the first write to each page of it is what costs: workers
        # of one process wait for each other there.
        self.reserved: dict[int, tuple[npt.NDArray[Any], ...]] = {}
        self.lines: dict[int, tuple[npt.NDArray[Any], ...]] = {
            SCORED: (
                np.empty(1, np.int32),
                np.empty((1, FIGURES)),
                np.empty(1, np.int64),
                np.empty((1, orders)),
            ),
            DROPPED: (
                np.empty(1, np.int32),
                np.empty((1, 3)),
                np.empty((1, draws), np.float32),
            ),
            LISTS: (np.empty(1, np.int32), np.empty(1)),
        }
        self.maximum = {SCORED: work.rows, DROPPED: n, LISTS: n}
        # What grows together, by why a sweep stops; see `sweep_lists`.
        tree = 2 * columns + 16 if len(work.excess) else 0
        small = 1 << 10
        self.growing: dict[int, tuple[Any, ...]] = {
            MET: tuple(np.empty(small, t) for t in (np.int32, np.int32, float, np.int32, float)),
            TREE: (np.empty(tree, np.int64), np.empty(tree), np.empty(tree)),
            TOKENS: (
                np.empty(small),
                np.empty(small, np.int32),
                np.empty((small, LINE)),
                np.empty((small, orders)),
                np.empty((small, draws), np.float32),
                np.empty(small, np.int64),
            ),
            SCORED: self._reserve(SCORED, small),
            DROPPED: self._reserve(DROPPED, small),
            LISTS: self._reserve(LISTS, 4 * small),
        }

    @staticmethod
    def size(states: int, columns: int) -> int:
        """Give the bytes this takes at least."""
        return 4 * (OF_LIST + 1) * states + states // 8 + 4 * columns

    def _reserve(self, what: int, length: int) -> tuple[npt.NDArray[Any], ...]:
        """Reserve what a block may need, within the memory it may take; give so much of it."""
        line = self.lines[what]
        within = self.work.memory // (len(self.lines) * sum(a.nbytes for a in line))
        maximum = max(length, min(self.maximum[what] + 1, within))
        self.reserved[what] = tuple(np.empty((maximum, *a.shape[1:]), a.dtype) for a in line)
        return tuple(a[:length] for a in self.reserved[what])

    @property
    def bytes(self) -> int:
        """The bytes all of it takes now; what is only reserved takes none."""
        return sum(a.nbytes for some in (self.states, *self.growing.values()) for a in some)

    def arrays(self) -> tuple[Any, ...]:
        """Give what the kernel needs, in its order."""
        return (self.uniform, *self.states, *(a for some in self.growing.values() for a in some))

    def clear(self) -> None:
        """Make ready for the next block."""
        self._fit(self.bytes)
        live, _, _, slot_of, count, mark = self.states
        live[:] = 0
        slot_of[:] = NO_SLOT
        count[:] = 0
        count[FREE] = NO_SLOT
        count[BIRTHS] = len(slot_of)
        mark[:] = 0
        mark[ELSEWHERE] = NO_SLOT
        parent, _, weights = self.growing[TREE]
        parent[:] = -1
        weights[:] = 0.0
        self.growing[TOKENS][-1][:] = -1

    def grow(self, what: int) -> None:
        """Make more room for what is full, within the memory a block may take."""
        # One state may give birth to a token for each of its moves.
        states = self.work.moves
        degree = int(states.indptr[self.mark[NEXT] + 1] - states.indptr[self.mark[NEXT]])
        before = self.growing[what]
        length = 2 * len(before[0]) + (degree if what == TREE else 0)
        # While an array grows, its old form may be there too; parts wait to be added, each a copy.
        parts = sum(a.nbytes for some in (SCORED, DROPPED) for a in self.growing[some])
        self._fit(self.bytes + self.work.waiting * parts + sum(2 * a.nbytes for a in before))
        reserved = self.reserved.get(what, before)
        if len(before[0]) < len(reserved[0]):
            self.growing[what] = tuple(a[:length] for a in reserved)
        else:
            self.growing[what] = tuple(_longer(a, length) for a in before)
            self.reserved.pop(what, None)
        if what == TREE:
            self.growing[what][0][len(before[0]) :] = -1
            self.growing[what][2][len(before[0]) :] = 0.0
        if what == TOKENS:
            self.growing[what][-1][len(before[0]) :] = -1

    def _fit(self, size: int) -> None:
        """Refuse to take more than a block may."""
        if size > self.work.memory:
            raise ResourceError(
                f"the lists of outcomes passed {in_words(self.work.memory)}: allow more memory, "
                "more blocks, or a wider interval"
            )

    @property
    def mark(self) -> Ints:
        """How far a sweep has come; see `sweep_lists`."""
        marks: Ints = self.states[-1]
        return marks

    def found(self) -> SweptBlock:
        """Give what a sweep found, apart from this room, which is used again."""
        mark, births = self.mark, self.states[-2][BIRTHS]
        parent, share, weights = self.growing[TREE]
        if len(parent):
            unfold(parent, share, births, weights)
        rows, drops = int(mark[ROWS]), int(mark[DROPS])
        scored, figures, likeliest, powers = (a[:rows].copy() for a in self.growing[SCORED])
        dropping, dropped, sketches = (a[:drops].copy() for a in self.growing[DROPPED])
        return SweptBlock(
            rows=scored,
            figures=figures,
            likeliest=likeliest,
            powers=powers,
            dropping=dropping,
            dropped=dropped,
            sketches=sketches,
            weights=weights[: len(self.work.births)].copy(),
            entries=int(mark[WORK]),
            peak=int(mark[PEAK]),
            memory=self.bytes,
        )


def _longer(old: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    """Give a longer array that begins like another."""
    new = np.empty((length, *old.shape[1:]), old.dtype)
    new[: len(old)] = old
    return new


def births_of(columns: Columns) -> Ints:
    """Count the states that can end in each column."""
    ends = columns.of_state[columns.of_state != NO_COLUMN]
    births: Ints = np.bincount(ends, minlength=len(columns)).astype(np.int32)
    return births


def blocks_of(columns: int, blocks: int) -> Ints:
    """Say in which block each column is."""
    turn = max(1, min(TURN, columns // (TURNS * blocks)))
    return (np.arange(columns) // turn % blocks).astype(np.int16)
