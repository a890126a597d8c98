"""The sweep with lists of tokens, for acyclic chains: exact, or with proven truncation.

Each state's row of B is a list of the tokens it can end in: outcomes, or several that go together
(see lists_kernels.py). A state's list is its predecessors' lists mixed, and is freed at its last
use. Entries below `least` may be dropped. Then a row is b = q + r with q kept and r dropped, and
four numbers travel with each list, phi(x) being -x log2 x:

- the mass m of r;
- `upper`, at least the sum of phi(r_c). Since phi(x + y) <= phi(x) + phi(y), dropped pieces may be
  taken as apart: pieces scaled by w add w upper + phi(w) m. So H <= sum phi(q_c) + upper;
- `lower`, at most m times the entropy of r / m. Entropy is concave, so mixing adds up what the
  parts had. So H >= sum phi(q_c) - phi(1 - m) + lower;
- `most`, at least the largest r_c: largest entries add up at worst. The entropy of r / m is at
  least log2(m / most), which may be the better `lower`.

H is also at least what it would be if all that is missing were on the largest entry; the best of
these bounds is taken. All four numbers are linear in the chain, but for the better `lower`.

Columns may be swept in blocks, since contributions of columns add up. In a block of columns whose
whole mass is q + m the lower bound reads sum phi(q_c) + phi(q + m) - phi(q) + lower, as the same
argument shows for the part of the row in the block; sums of it bound the whole row, more tightly
than one block would.

Dropped pieces seldom meet again, so the truth lies near the upper bound. How near a sketch can
tell (see sketch.py): each list carries k columns y = sum of r_c X_c, and y / m estimates the
entropy of r / m with a standard error of 2.50 / sqrt(k) bits. So the error of the row's entropy is
2.50 m / sqrt(k) bits, plus what a source adds that is in both q and r, or that was dropped both
before and after it went into a token: it is taken for two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coinhaze.amounts import Floats, Ints
from coinhaze.errors import ResourceError, UsageError
from coinhaze.ledger.frozen import release_unused
from coinhaze.measures.intervals import surprise
from coinhaze.observer.chain import NO_COLUMN
from coinhaze.solve.exact.stream_kernels import WIDTH
from coinhaze.solve.planner import thresholds
from coinhaze.solve.pool import UNLIMITED, Budget, open_workers
from coinhaze.solve.pool.limits import in_words, workers_for
from coinhaze.solve.progress import Progress
from coinhaze.solve.query import Query
from coinhaze.solve.structure.columns import Columns
from coinhaze.solve.structure.moves import Moves
from coinhaze.solve.sums import Priors, Sums
from coinhaze.solve.truncated.topological_kernels import sweep_lists

# Columns that follow one another often go together, so up to this many share a block; then it is
# the next block's turn. Many turns make blocks equal: early columns are met by more lists.
TURN, TURNS = 1024, 16


@dataclass(frozen=True, eq=False)
class Swept:
    """What a sweep found, and what it cost."""

    sums: Sums
    weights: Floats  # x^T B
    entries: int  # entries of lists read, over all blocks
    peak: int  # the most entries alive at once in a block
    memory: int  # bytes of the lists of the largest block


class TooManyEntries(ResourceError):
    """A sweep read more entries than it was allowed."""


def list_sums(
    query: Query,
    columns: Columns,
    orders: Floats,
    *,
    least: float = 0.0,
    blocks: int = 1,
    collapse: bool = True,
    memory: int = thresholds.LIST_MEMORY,
    budget: Budget = UNLIMITED,
    progress: Progress,
) -> tuple[Sums, Floats]:
    """Add every scored row up over all columns; also give x^T B."""
    swept = sweep_blocks(
        query,
        columns,
        orders,
        least=np.full(len(query.moves), least),
        blocks=blocks,
        collapse=collapse,
        memory=memory // workers_for(blocks, budget.threads),
        budget=budget,
        progress=progress,
    )
    return swept.sums, swept.weights


def sweep_blocks(
    query: Query,
    columns: Columns,
    orders: Floats,
    *,
    least: Floats,
    blocks: int = 1,
    collapse: bool = True,
    draws: int = 0,
    seed: int = 0,
    weigh: bool = True,
    memory: int = thresholds.LIST_MEMORY,
    entries: float = math.inf,
    budget: Budget = UNLIMITED,
    progress: Progress,
) -> Swept:
    """Sweep the columns in blocks, by several workers; state i drops entries below `least[i]`.

    The lists of each block may take `memory` bytes and read its part of `entries`.

    Blocks change results by rounding where nothing is dropped, workers change nothing. `draws`
    columns of a sketch estimate what dropped mass adds; `weigh` asks for x^T B where it applies.
    """
    if not 0 <= draws <= WIDTH:
        raise UsageError(f"a tail is sketched by up to {WIDTH} draws, not {draws}")
    work = ListWork.of(
        query,
        columns,
        births=block_births(columns, blocks),
        orders=orders,
        least=least,
        collapse=collapse,
        draws=draws,
        seed=seed,
        weigh=weigh,
        memory=memory,
        entries=entries / blocks,
    )
    total = Sums.zeros(len(query.scored), len(orders))
    weights = np.zeros(len(columns))
    read = peak = largest = done = 0
    with open_workers(work, blocks, budget) as workers:
        for part in workers.map(range(blocks)):
            total.add(part.sums)
            weights[: len(part.weights)] += part.weights
            read += part.entries
            peak, largest = max(peak, part.peak), max(largest, part.memory)
            done += 1
            progress(done / blocks)
            del part
            release_unused()  # lists grow and shrink: what one block frees in pieces others need
    # One block's lower bound has phi(q + m) - phi(q) in it, with q + m = 1; see `certify`.
    total.below[:] += surprise(np.clip(1 - total.missing, 0.0, 1.0))
    return Swept(total, weights, read, peak, largest)


@dataclass(frozen=True, eq=False)
class ListWork:
    """The work of sparse lists; a piece is the number of a block of columns."""

    moves: Moves
    column: Ints  # the column each node ends in
    births: Sequence[Ints]  # for each block how many states can end in each of its columns
    scored: Ints  # of each node its row in the sums, -1 if it has none
    rows: int
    excess: Floats  # none where x^T B is not wanted
    priors: Priors
    elsewhere: int
    orders: Floats
    least: Floats
    collapse: bool
    draws: int
    seed: int
    memory: int
    entries: float
    room_bytes: int = 0  # lists grow as they must, up to `memory`
    waiting: int = 1

    @classmethod
    def of(
        cls,
        query: Query,
        columns: Columns,
        *,
        births: Sequence[Ints],
        orders: Floats | None = None,
        least: Floats | None = None,
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
        scored = np.full(n, -1)
        scored[moves.node[query.scored]] = np.arange(len(query.scored))
        excess = np.zeros(n if weigh and query.chain.conserves else 0)
        if len(excess):
            np.add.at(excess, moves.node, query.excess)
        return cls(
            moves=moves,
            column=moves.columns(columns.of_state),
            births=births,
            scored=scored,
            rows=len(query.scored),
            excess=excess,
            priors=columns.priors,
            elsewhere=columns.elsewhere,
            orders=np.zeros(0) if orders is None else orders,
            least=np.zeros(n) if least is None else least,
            collapse=collapse,
            draws=draws,
            seed=seed,
            memory=memory,
            entries=entries,
        )

    def room(self) -> None:
        """Make nothing: a block's lists are made as it goes."""

    def solve(self, block: int, room: None = None) -> Swept:
        """Sweep the columns of one block."""
        moves, priors = self.moves, self.priors
        births = self.births[block]
        sums = Sums.zeros(self.rows, len(self.orders))
        weights = np.zeros(len(births) if len(self.excess) else 0)
        peak, read, size = sweep_lists(
            moves.indptr, moves.indices, moves.data, moves.own, self.column, births, moves.uses,
            self.scored, self.least, self.collapse, self.memory, self.entries, priors.inner,
            priors.bits, priors.top, priors.powers, self.orders, self.elsewhere, self.excess,
            self.draws, self.seed, weights, *sums.arrays(),
        )  # fmt: skip
        if peak < 0 and read > self.entries:
            raise TooManyEntries(f"the lists of outcomes passed {self.entries:.0e} entries")
        if peak < 0:
            raise ResourceError(
                f"the lists of outcomes passed {in_words(self.memory)}: allow more memory, more "
                "blocks, or a wider interval"
            )
        return Swept(sums, weights, int(read), int(peak), int(size))


def births_of(columns: Columns) -> Ints:
    """Count the states that can end in each column."""
    ends = columns.of_state[columns.of_state != NO_COLUMN]
    births: Ints = np.bincount(ends, minlength=len(columns)).astype(np.int32)
    return births


def block_births(columns: Columns, blocks: int) -> list[Ints]:
    """Say for each block how many states can end in each of its columns, 0 for others."""
    births = births_of(columns)
    turn = max(1, min(TURN, len(columns) // (TURNS * blocks)))
    block = np.arange(len(columns)) // turn % blocks
    return [np.where(block == b, births, 0) for b in range(blocks)]
