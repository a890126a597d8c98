"""How much a sweep may drop: the least it must keep for intervals as narrow as requested.

An entry p dropped at a state widens a row's interval by about p times the visits of a walk from
that row to the state, and saves reading it once for each use of the state's list. So for the mean
over rows a state drops what is below a level times uses / visits, visits being the mean over rows;
for the widest interval all states drop what is below the same level. The level is found by trying:
widths fall as a power of it, which two tries show. Where dropping is no use or not allowed, `sweep`
gives exact scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal, NamedTuple

import numpy as np

from coinhaze.amounts import Floats, Ints
from coinhaze.errors import ResourceError, UsageError
from coinhaze.measures import Scores
from coinhaze.measures.intervals import at_least
from coinhaze.measures.scores import not_reached
from coinhaze.observer import AbsorbingChain
from coinhaze.solve.certify import certified, plain_orders
from coinhaze.solve.exact.engines import EXACT_WIDTH, score_exactly
from coinhaze.solve.exact.rounding import Rounding
from coinhaze.solve.planner import thresholds
from coinhaze.solve.planner.cost import ExactCost
from coinhaze.solve.pool.limits import UNLIMITED, Budget, TooManyEntries
from coinhaze.solve.progress import Progress, silent
from coinhaze.solve.query import Query
from coinhaze.solve.structure.columns import Columns
from coinhaze.solve.structure.lump import LumpedChain
from coinhaze.solve.structure.structure import Structure
from coinhaze.solve.truncated.lists import Swept, sweep_blocks
from coinhaze.solve.truncated.lists_kernels import count_visits
from coinhaze.threads import beside

Over = Literal["worst", "mean"]

# So many blocks keep sixteen cores busy, and take one core a fifth longer than eight would; their
# number is part of the result, so it is fixed.
BLOCKS = 32
DRAWS = 16
# The first level to try, for each bit of width requested.
FIRST: dict[Over, float] = {"worst": 0.01, "mean": 0.003}
REQUESTED: dict[Over, str] = {"worst": "at worst", "mean": "on average"}
# No list is worth more than this: what is below it may go, if nobody needs it.
HIGHEST = 0.5
# Widths fall at first like this power of the level, and the aim is slightly below the request.
SLOPE, AIM = 0.4, 0.9
# A coarser sweep, by this factor, shows what a finer one costs.
COARSE = 30.0


@dataclass(frozen=True, eq=False)
class Widths:
    """How wide intervals came out, in bits, of the rows that have an answer."""

    of_rows: Floats

    @cached_property
    def mean(self) -> float:
        """The mean."""
        return float(self.of_rows.mean()) if len(self.of_rows) else 0.0

    @cached_property
    def maximum(self) -> float:
        """What 99 % are at most."""
        return float(np.quantile(self.of_rows, 0.99)) if len(self.of_rows) else 0.0

    @cached_property
    def worst(self) -> float:
        """The widest."""
        return float(self.of_rows.max(initial=0.0))

    @classmethod
    def of(cls, scores: Scores) -> Widths:
        """Measure scores."""
        return cls(scores.widths)

    def over(self, over: Over) -> float:
        """Give the one that was requested."""
        return self.mean if over == "mean" else self.worst

    def __str__(self) -> str:
        return (
            f"{self.mean:.2e} bits wide on average, {self.maximum:.2e} for 99 % of the rows, "
            f"{self.worst:.2e} at worst"
        )


@dataclass(frozen=True, eq=False)
class Try:
    """One level tried: the scores, and what they cost."""

    level: float
    scores: Scores
    widths: Widths
    swept: Swept


class Foreseen(NamedTuple):
    """What the last try will take: entries of lists, and bytes of one block."""

    entries: float
    memory: float


@dataclass(frozen=True, eq=False)
class Truncation:
    """All that tries of one question share."""

    query: Query
    columns: Columns
    sources: Callable[[], tuple[Floats, bool]]  # of scored states, and whether they were counted
    worth: Floats  # a state drops what is below its worth times the level

    @classmethod
    def of(
        cls,
        lumped: LumpedChain,
        *,
        over: Over,
        count_sources: bool = False,
        budget: Budget = UNLIMITED,
    ) -> Truncation:
        """Prepare to score rows, narrow on average or at worst."""
        query = lumped.query
        # What is dropped of "elsewhere" would be taken for another outcome than what is kept.
        assert not query.chain.listed
        sources = partial(lumped.sources, count=count_sources, budget=budget)
        worth = list_worth(query) if over == "mean" else np.ones(len(query.moves))
        return cls(query, lumped.columns, sources, worth)

    def attempt(
        self,
        level: float,
        *,
        draws: int = DRAWS,
        seed: int = 0,
        entries: float = math.inf,
        budget: Budget = UNLIMITED,
        progress: Progress = silent,
    ) -> Try:
        """Sweep once; bits are the tail sketch's estimate, within the proven interval."""
        query = self.query
        minimum = np.minimum(level * self.worth, HIGHEST)
        if budget.memory is not None:
            self._apart()  # so that it is there when what lists may take is measured
        with beside(self._apart, budget.threads) as apart:
            swept = sweep_blocks(
                query,
                self.columns,
                np.zeros(0),
                minimum=minimum,
                blocks=min(BLOCKS, len(self.columns)),
                draws=draws,
                seed=seed,
                weigh=False,
                entries=entries,
                budget=budget,
                progress=progress,
            )
            rounding = apart()
        counts, counted = self.sources()
        # Tails are sketched in single precision: where that ends, the upper bound stands in.
        sums = swept.sums
        tail = np.where(np.isfinite(sums.tail), sums.tail, sums.above)
        scores = certified(
            query,
            self.columns,
            sums,
            counts,
            counted=counted,
            rounding=rounding,
            estimate=sums.entropy + sums.prior + tail,
            method=f"sweep (dropping below {level:.0e})",
            width=math.inf,
            renyi=(),
            weights=None,
            budget=budget,
        )
        return Try(level, scores, Widths.of(scores), swept)

    def _apart(self) -> Rounding:
        """Work out what certifying needs beside sums: expected steps, sources, roundings."""
        _ = self.query.steps_by_state, self.sources()
        return self._rounding

    @cached_property
    def _rounding(self) -> Rounding:
        return Rounding.of_factor(self.query, by_fours=False)

    def foresee(
        self, width: float, *, over: Over, maximum: float, budget: Budget
    ) -> Foreseen | None:
        """Sweep once, dropping much more, and scale up; None beyond `maximum` entries."""
        try:
            tried = self.attempt(COARSE * first_level(width, over), entries=maximum, budget=budget)
        except TooManyEntries:
            return None
        finer = max(1.0, tried.widths.over(over) / width) ** (1 / SLOPE)
        grown = finer**thresholds.DROP_GROWTH
        entries = tried.swept.entries * grown
        return None if entries > maximum else Foreseen(entries, tried.swept.memory * grown)


def truncated(
    lumped: LumpedChain,
    *,
    width: float,
    over: Over = "worst",
    exact: ExactCost | None = None,
    count_sources: bool = False,
    budget: Budget = UNLIMITED,
    progress: Progress = silent,
) -> Scores | None:
    """Score rows by dropping what is small; None if that is no use.

    It is none where as good as nothing may be dropped, or where one try would take longer than
    `exact` scores.
    """
    question = Truncation.of(lumped, over=over, count_sources=count_sources, budget=budget)
    for now in narrowing(
        question, width=width, over=over, exact=exact, budget=budget, progress=progress
    ):
        if now.widths.over(over) <= width:
            return now.scores
    return None


def narrowing(
    question: Truncation,
    *,
    width: float,
    over: Over,
    exact: ExactCost | None = None,
    budget: Budget = UNLIMITED,
    progress: Progress = silent,
) -> Iterator[Try]:
    """Try ever lower levels, until intervals are as narrow as requested.

    It ends before that if the level is as good as 0, or a try would take longer than `exact`
    scores. Where lists do not fit the memory an error says what was reached.
    """
    level, slope = first_level(width, over), SLOPE
    # One try often is enough; what exact scores take by lists is counted only after it.
    entries = math.inf if exact is None else exact.tiles / (thresholds.DROP_NS * 1e-9)
    before: Try | None = None
    while level >= thresholds.MIN_LEVEL:
        try:
            now = question.attempt(level, entries=entries, budget=budget, progress=progress)
        except TooManyEntries:
            return
        except ResourceError as error:
            if before is None:
                raise
            reached = before.widths.over(over)
            raise not_reached(
                before.scores,
                f"intervals are {before.widths}; {width:.0e} bits {REQUESTED[over]} take more "
                f"memory than there is ({error}): ask for accuracy={at_least(reached)} or wider, "
                "exact, or a preview",
            ) from None
        yield now
        reached = now.widths.over(over)
        if reached <= width:
            return
        if before is not None and before.widths.over(over) > reached:
            fell = math.log(before.widths.over(over) / reached)
            slope = min(max(fell / math.log(before.level / level), 0.2), 1.0)
        before = now
        if exact is not None:
            entries = exact.seconds / (thresholds.DROP_NS * 1e-9)
        step = min(max((AIM * width / reached) ** (1 / slope), 0.01), 0.7)
        if now.swept.entries / step**thresholds.DROP_GROWTH > entries:
            return
        level *= step


def first_level(width: float, over: Over) -> float:
    """Give the level to begin with."""
    return FIRST[over] * min(width, 1.0)


def list_worth(query: Query) -> Floats:
    """Give uses / visits of every node's list, 1 being the typical one."""
    moves = query.moves
    visits = np.zeros(len(moves))
    rows = np.bincount(query.row_of, minlength=len(query.scored))
    visits[moves.node[query.scored]] = rows / max(len(query.row_of), 1)
    count_visits(moves.indptr, moves.indices, moves.data, visits)
    uses = moves.uses
    used = (uses > 0) & (visits > 0)
    worth = np.ones(len(moves))
    worth[used] = uses[used] / visits[used]
    typical = math.exp(float(np.log(worth[used]).mean())) if np.any(used) else 1.0
    return worth / typical


def sweep(
    chain: AbsorbingChain,
    rows: Ints,
    *,
    width: float = EXACT_WIDTH,
    over: Over = "worst",
    renyi: Sequence[float] = (),
    count_sources: bool = False,
    budget: Budget = UNLIMITED,
    progress: Progress = silent,
    lumped: LumpedChain | None = None,
) -> Scores:
    """Score rows in one sweep: of coin views and temporal graphs, or of a chain unrolled.

    A width above 1e-6 bits allows small probabilities to be dropped, with a proven interval: of
    every row, or with `over="mean"` on average over the rows; as long as that takes less than
    exact scores would.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    >>> chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    >>> sweep(chain, chain.graph.sinks.nonzero()[0]).bits.round(4)
    array([0.8113])
    """
    lumped = lumped or Structure(chain).lump(rows, plain_orders(renyi))
    if over not in ("worst", "mean"):
        raise UsageError(f"over is worst or mean, not {over!r}")
    if may_drop(lumped.query, width, renyi):
        scores = truncated(
            lumped,
            width=width,
            over=over,
            exact=lumped.cost,
            count_sources=count_sources,
            budget=budget,
            progress=progress,
        )
        if scores is not None:
            return scores
    return score_exactly(
        chain,
        rows,
        width=width,
        renyi=renyi,
        count_sources=count_sources,
        budget=budget,
        progress=progress,
        lumped=lumped,
    )


def may_drop(query: Query, width: float, renyi: Sequence[float]) -> bool:
    """Tell whether the question lets small probabilities be dropped."""
    chain = query.chain
    can = query.reduced.acyclic or not query.factor.sweeps
    return width > thresholds.MIN_DROPPING_WIDTH and not renyi and not chain.listed and can
