"""The entropy sketch: any chain at linear cost, bits with confidence intervals.

Every source gets k independent draws X of the 1-stable law skewed to the left, for which E
exp(cX) = c^c (Clifford and Cosma, AISTATS 2013). Propagated like amounts they give y = B X, and
since the draws are independent, E exp(y) = prod p^p = exp(-H). So H is -ln of the mean of exp(y),
with relative variance 3/k whatever the number of sources: a standard error of 2.50/sqrt(k) bits,
and a bias of 3/(2k) nats that is taken off. A source that stands for a history q has the sum of
q_j X_j, which is X - H(q) in distribution. In fact y + H has the law of X for every row, which
gives intervals that miss with a stated probability: see coinhaze.measures.confidence.

Draws are a hash of the source's name and a seed, so that any part of the work can be done anywhere.
Errors are shared by rows with common ancestors, so the mean over rows errs nearly as much as one
row does: `mean_error` is its standard error, measured over independent tiles of draws. Each tile of
draws is as good as a seed of its own. Intervals rest on a hash that looks random, and on names
that were chosen without knowledge of the seed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.errors import UsageError
from coinhaze.graph.graph import Kind
from coinhaze.ledger.text import text_hashes
from coinhaze.measures import Scores
from coinhaze.measures.confidence import (
    MISS,
    ConfidenceEnds,
    Drawn,
    check_miss,
    mean_ends,
    rounding_slack,
    row_ends,
)
from coinhaze.measures.elementary import log
from coinhaze.measures.intervals import ROUNDING
from coinhaze.measures.scores import not_reached
from coinhaze.observer import AbsorbingChain
from coinhaze.observer.chain import NO_COLUMN
from coinhaze.solve.exact.factor import Factor
from coinhaze.solve.exact.stream import TileRoom, tile_bytes, tile_room
from coinhaze.solve.exact.stream_kernels import WIDTH
from coinhaze.solve.planner import thresholds
from coinhaze.solve.pool import UNLIMITED, Budget, open_workers
from coinhaze.solve.progress import Progress, silent
from coinhaze.solve.query import Query
from coinhaze.solve.sketch.kernels import start_draws, sum_draws
from coinhaze.solve.sketch.rounding import ABSOLUTE_ERROR, TileRounding
from coinhaze.solve.structure.columns import Columns
from coinhaze.solve.structure.lump import LumpedChain
from coinhaze.solve.structure.reduce import ENTRY_ERROR
from coinhaze.solve.structure.structure import Structure

DRAWS = 256
# Where a standard error of the mean is requested, this many draws come first: it is measured over
# sixteen tiles at least, and not stopped at by a lucky four.
FIRST = 1024
# Standard deviation of the estimate times sqrt(k), in bits: sqrt(3) nats.
SPREAD = math.sqrt(3) / math.log(2)


def sketch(
    chain: AbsorbingChain,
    rows: Ints,
    *,
    draws: int = DRAWS,
    seed: int = 0,
    miss: float = MISS,
    simultaneous: bool = False,
    mean_error: float | None = None,
    budget: Budget = UNLIMITED,
    progress: Progress = silent,
    lumped: LumpedChain | None = None,
) -> Scores:
    """Estimate bits of rows from `draws` columns; each interval misses with probability `miss`.

    `simultaneous` asks that all rows together miss with that probability. `bits_error` is the
    standard error. With `mean_error` there are at least 1024 draws, and more until the measured
    standard error of the mean over rows is at most that; intervals then hold for every number of
    draws it could have come to.
    """
    if draws < 1 or draws % WIDTH:
        raise UsageError(f"draws come in tiles: a multiple of {WIDTH}, not {draws}")
    if chain.listed:
        raise UsageError("a list has few outcomes, which are cheap to score exactly")
    check_miss(miss)
    if lumped is None:
        lumped = Structure(chain).lump(rows, np.zeros(0), missing=thresholds.PREVIEW_MISSING)
    query, columns = lumped.query, lumped.columns
    work = Draws.of(query, columns, seed)
    taken = _Taken.none(query, columns)
    first = draws if mean_error is None else max(draws, FIRST)
    _take(taken, work, first, budget, progress)
    while mean_error is not None and (more := _more(taken, mean_error)) > taken.draws:
        _take(taken, work, more, budget, progress)
    stops = 1 if mean_error is None else _stops(first, mean_error)
    each = miss / max(taken.distinct, 1) if simultaneous else miss
    drawn = taken.drawn(work)
    low, high = drawn.rows(row_ends(taken.draws, each / stops))
    # The upper end has room for the rounding of a logarithm, which bits need not show.
    maximum = math.log2(max(1.0, float(columns.priors.count.sum())))
    low = np.minimum(low, maximum)
    bits = np.minimum(np.clip(taken.nats() / math.log(2), low, high), maximum)
    ends = mean_ends(taken.draws, miss / stops)
    mean_low, mean_high = _mean_interval(drawn, taken.rows_of, ends)
    by_value_low, by_value_high = _mean_interval(drawn, held_value(query), ends)
    error = np.where(taken.alone, 0.0, SPREAD / math.sqrt(taken.draws))
    null = np.where(query.answered, 0.0, np.nan)
    scores = Scores(
        chain=chain,
        nodes=rows,
        bits=query.spread(bits),
        bits_low=query.spread(low),
        bits_high=query.spread(high),
        miss=query.spread(np.where(taken.alone, 0.0, each)),
        joint_miss=miss if simultaneous else None,
        bits_mean_low=mean_low,
        bits_mean_high=mean_high,
        bits_weighted_mean_low=by_value_low,
        bits_weighted_mean_high=by_value_high,
        mean_miss=None if mean_low is None else miss,
        bits_unmodified=_unmodified(query, columns, bits) if chain.history else None,
        bits_error=query.spread(error),
        mean_error=taken.mean_error,
        draw_means=np.array(taken.means),
        steps=query.steps(),
        mass=1.0 + null,
        sources=np.full(len(rows), np.nan),
        top=np.full(len(rows), NO_COLUMN),
        top_probability=np.full(len(rows), np.nan),
        method=f"sketch (k={taken.draws}, seed {seed})",
    )
    if mean_error is not None and (taken.mean_error or 0.0) > mean_error:
        raise not_reached(
            scores,
            f"{taken.draws} draws leave a standard error of {taken.mean_error:.2g} bits of the "
            f"mean, above the requested {mean_error:g}: ask for a larger one",
        )
    return scores


def _unmodified(query: Query, columns: Columns, bits: Floats) -> Floats:
    """Take what histories add, sum_s B_is H(q_s), off again: one solve."""
    reduced = query.reduced
    ends = columns.of_state >= 0
    inner = np.zeros(len(reduced))
    inner[ends] = reduced.own[ends] * columns.priors.bits[columns.of_state[ends]]
    added = query.factor.solve(inner)[query.scored]
    return query.spread(np.maximum(bits - added, 0.0))


@dataclass
class _Taken:
    """Draws taken so far: the sum of exp(y) for every scored state, tiles added in order.

    `means` are the mean bits of all rows by each tile alone: tiles are independent, so these show
    how far the mean can be trusted, however much rows have in common.
    """

    query: Query
    columns: Columns
    total: Floats
    alone: Bools  # which scored states have one column only, ...
    known: Floats  # ... and the nats of those
    rows_of: Floats  # how many rows each state stands for; burnt money is in no mean
    draws: int = 0
    means: list[float] = field(default_factory=list)

    @classmethod
    def none(cls, query: Query, columns: Columns) -> _Taken:
        alone = alone_states(query)
        known = columns.priors.total[columns.of_state[query.scored]] * math.log(2)
        n = len(query.scored)
        rows_of: Floats = np.zeros(n)
        np.add.at(rows_of, query.row_of, _not_burnt(query))
        return cls(query, columns, np.zeros(n), alone, known, rows_of)

    @property
    def distinct(self) -> int:
        """How many scored states are not known exactly."""
        return int((~self.alone).sum())

    def drawn(self, work: Draws) -> Drawn:
        """Say what the draws tell of every scored state."""
        nats = -log(self.total / self.draws)
        slack = rounding_slack(nats, work.error) + ABSOLUTE_ERROR
        # Inner entropies of columns err by the moves behind their gates, and by their own sums.
        inner = 4 * (self.columns.inner_error + 64 + ENTRY_ERROR) * ROUNDING
        shifts = inner * (work.nats + 2.0) * (work.nats > 0.0)
        return Drawn(
            nats=nats,
            slack=slack + float(shifts.max(initial=0.0)),
            missing=1.0 - work.mass,
            alone=self.alone,
            known=self.known,
            known_slack=inner * (self.known + 2.0) * (self.known > 0.0),
            maximum=log_sources(self.columns),
        )

    @property
    def mean_error(self) -> float | None:
        """The standard error of the mean, measured over tiles."""
        if len(self.means) < 2:
            return None
        return float(np.std(self.means, ddof=1)) / math.sqrt(len(self.means))

    def add(self, part: Floats) -> None:
        """Add one tile."""
        self.total += part
        self.draws += WIDTH
        if np.any(self.rows_of):
            nats = np.where(self.alone, self.known, _nats(part, WIDTH))
            self.means.append(float(np.average(nats, weights=self.rows_of)) / math.log(2))

    def nats(self) -> Floats:
        """Estimate the entropy of every scored state."""
        return np.where(self.alone, self.known, _nats(self.total, self.draws))


def _more(taken: _Taken, mean_error: float) -> int:
    """Say how many draws should bring the standard error of the mean down to what is requested.

    The mean of rows spreads no more than one row does, so that is enough beforehand; four times
    that without success means that the law does not hold, and there are no more.
    """
    enough = (SPREAD / mean_error) ** 2
    if taken.mean_error is None or taken.mean_error <= mean_error or taken.draws > 4 * enough:
        return taken.draws
    grown = taken.draws * min((taken.mean_error / mean_error) ** 2, 4.0)
    return (math.ceil(grown / WIDTH) + 1) * WIDTH


def _stops(first: int, mean_error: float) -> int:
    """Count the numbers of draws at which `_more` may stop.

    When it stops depends on the draws, so an interval has to hold for all of these.
    """
    last = max(first, 16 * (SPREAD / mean_error) ** 2 + 2 * WIDTH)
    return int(last - first) // WIDTH + 2


def held_value(query: Query) -> Floats:
    """Add up what is held by the rows that each scored state stands for; 0 if nobody knows."""
    closing, n = query.chain.graph.closing, len(query.scored)
    if closing is None:
        return np.zeros(n)
    rows = query.rows[query.answered]
    # Added as whole numbers: a state may stand for millions of rows.
    return closing.take(rows).where(_not_burnt(query)).total_by(query.row_of, n).floats()


def _not_burnt(query: Query) -> Bools:
    """Tell which rows that have an answer somebody holds: burnt money is in no mean."""
    held: Bools = query.chain.graph.kinds[query.rows[query.answered]] != Kind.burn
    return held


def _mean_interval(
    drawn: Drawn, weights: Floats, ends: ConfidenceEnds
) -> tuple[float | None, float | None]:
    """Give the interval of a mean over rows; none where all weights are 0."""
    return drawn.mean(weights, ends) if np.any(weights) else (None, None)


def alone_states(query: Query) -> Bools:
    """Tell which scored states have one column only: their bits are known."""
    alone: Bools = (np.diff(query.reduced.indptr) == 0)[query.scored]
    return alone


def log_sources(columns: Columns) -> float:
    """Give ln of how many sources there are, rounded up: no entropy is larger, in nats."""
    return math.log(max(1.0, float(columns.priors.count.sum()))) * (1 + 16 * ROUNDING)


def _nats(total: Floats, draws: int) -> Floats:
    """Turn sums of exp(y) over draws into estimates of entropy, their bias taken off."""
    nats: Floats = -log(total / draws) - 1.5 / draws
    return nats


def _take(taken: _Taken, work: Draws, draws: int, budget: Budget, progress: Progress) -> None:
    """Take more draws, until there are so many."""
    firsts = range(taken.draws, draws, WIDTH)
    with open_workers(work, len(firsts), budget) as workers:
        for part in workers.map(firsts):
            taken.add(part)
            progress(taken.draws / draws)


def precision(query: Query, columns: Columns) -> tuple[type[np.floating], Floats]:
    """Choose the precision of tiles; also bound the relative error of probabilities with it.

    Single where that widens no interval by much, else double: bits do not depend on how much memory
    there is.
    """
    rounding = TileRounding.of(query)
    maximum = np.full(len(query.scored), log_sources(columns))
    wide = 2 * float(rounding_slack(maximum, rounding.single).max(initial=0.0)) / math.log(2)
    if rounding.fits_single and wide <= thresholds.MAX_SINGLE_WIDTH:
        return np.float32, rounding.single
    return np.float64, rounding.double


@dataclass(frozen=True, eq=False)
class Draws:
    """The work of tiles of draws, in the order of the factors; a piece is a tile's first draw."""

    factor: Factor
    own: Floats
    column: Ints
    source: npt.NDArray[np.uint64]  # for each column the hash of a source's name ...
    nats: Floats  # ... and its inner entropy
    seed: int
    scored: Ints
    needed: Bools
    mass: Floats  # of each scored row, but for what iterated cores leave out
    lower_v: Floats  # of the factors, in the precision of tiles
    error: Floats  # of each scored row: bounds the relative error of the probabilities behind it
    seconds: float = math.inf
    waiting: int = 2

    @classmethod
    def of(cls, query: Query, columns: Columns, seed: int) -> Draws:
        """Prepare to take draws."""
        factor = query.factor
        scored = factor.place[query.scored]
        wanted = np.zeros(len(factor), dtype=np.bool_)
        wanted[scored] = True
        kind, error = precision(query, columns)
        return cls(
            factor=factor,
            own=query.reduced.own[factor.back],
            column=columns.of_state[factor.back],
            source=text_hashes(query.chain.outcomes.take(pa.array(columns.likeliest))),
            nats=columns.priors.total * math.log(2),
            seed=seed,
            scored=scored,
            needed=factor.needed(wanted),
            mass=1.0 - factor.missing()[query.scored],
            lower_v=factor.lower_v.astype(kind),
            error=error,
        )

    @property
    def kind(self) -> type[np.floating]:
        """The precision tiles have."""
        return self.lower_v.dtype.type

    @property
    def room_bytes(self) -> int:
        """The bytes of one worker's tile."""
        return tile_bytes(self.factor.inner, self.kind)

    def room(self) -> TileRoom:
        """Make one worker's tile."""
        return tile_room(self.factor.inner, self.kind)

    def solve(self, first: int, room: TileRoom) -> Floats:
        """Add exp(y) of a tile of draws up for every scored row."""
        factor, (x, live) = self.factor, room
        law = (self.source, self.nats, self.seed, first)
        start_draws(self.own, self.column, *law, x, live)
        factor.solve_tile(x, live, self.needed)
        part = np.zeros(len(self.scored))
        rows = (self.own, self.column, factor.lower, factor.lower_at, self.lower_v)
        sum_draws(x, live, *rows, *law, self.scored, self.mass, part)
        return part
