"""Scores of all unspent coins by passes over the tape: by draws, or exactly, source by source.

Draws have the law of coinhaze.solve.sketch, and their intervals come from
coinhaze.measures.confidence. A tile is 64 draws, or 64 sources: one pass over the tape, solved by
the workers of coinhaze.solve.pool. Only the rows that unspent coins hang on are scored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coinhaze.amounts import Floats, Ints
from coinhaze.errors import AccuracyError, UsageError, count_words
from coinhaze.formats.money import with_amount_texts
from coinhaze.history.arrays import zeros
from coinhaze.history.index.accounts import accounts_of
from coinhaze.history.scores.live_coins import LiveCoins, coin_names
from coinhaze.history.scores.pass_kernels import HALF, pass_columns, pass_draws
from coinhaze.history.tape import Tape
from coinhaze.measures.confidence import (
    MISS,
    Drawn,
    check_miss,
    draws_for,
    rounding_slack,
    row_ends,
)
from coinhaze.measures.elementary import expm1_at_most, log, log2
from coinhaze.measures.intervals import ROUNDING, slack_from_each
from coinhaze.observer.chain import reading_words
from coinhaze.options import Accuracy
from coinhaze.solve.exact.stream_kernels import WIDTH
from coinhaze.solve.planner import thresholds
from coinhaze.solve.pool import UNLIMITED, Budget, open_workers
from coinhaze.solve.progress import Progress, silent
from coinhaze.solve.sketch.rounding import ABSOLUTE_ERROR, DRAW_ERROR, SINGLE
from coinhaze.solve.sketch.sketch import DRAWS
from coinhaze.units import Unit, unit_named

_LN2 = math.log(2.0)
_MAX_DRAWS = 1 << 24
_LOG_ERROR = 1e-13  # of an entropy, by the logarithms in it


@dataclass(frozen=True, eq=False)
class RowScores:
    """Bits of rows with their intervals; `miss` is 0 where one is proven."""

    rows: Ints  # rising
    bits: Floats
    bits_low: Floats
    bits_high: Floats
    miss: Floats
    about: Mapping[str, Any] = field(default_factory=dict)
    drawn: Drawn | None = None  # what draws tell, where bits are drawn


@dataclass(frozen=True, eq=False)
class TapeDraws:
    """The work of tiles of draws; a piece is a tile's first draw.

    A tile is one pass, or two of half its width, which give the same bits in half the memory.
    """

    tape: Tape
    scored: tuple[Ints, ...]  # in each piece of the tape
    seed: int
    kind: type[np.floating]
    width: int = WIDTH
    seconds: float = math.inf
    waiting: int = 2

    @property
    def room_bytes(self) -> int:
        """The bytes of one worker's rows."""
        return self.tape.manifest.slots * self.width * np.dtype(self.kind).itemsize

    def room(self) -> npt.NDArray[Any]:
        """Make one worker's rows."""
        return zeros((self.tape.manifest.slots, self.width), self.kind)

    def solve(self, first: int, room: npt.NDArray[Any]) -> Floats:
        """Add exp(y) of a tile of draws up for every scored row."""
        found = [self._pass(first, half, room) for half in range(WIDTH // self.width)]
        return found[0] if len(found) == 1 else found[0] + found[1]

    def _pass(self, first: int, half: int, room: npt.NDArray[Any]) -> Floats:
        total = np.zeros(sum(map(len, self.scored)))
        at = 0
        for piece, scored in zip(self.tape.pieces, self.scored, strict=True):
            part = total[at : at + len(scored)]
            at += len(scored)
            tape = (piece.row_slot, piece.row_terms, piece.slot, piece.weight, piece.hashes)
            pass_draws(*tape, self.seed, first, half, room, scored, part)
        return total


@dataclass(frozen=True, eq=False)
class TapeColumns:
    """The work of tiles of sources, exactly; a piece is a tile's first source."""

    tape: Tape
    scored: tuple[Ints, ...]
    seconds: float = math.inf
    waiting: int = 2

    @property
    def room_bytes(self) -> int:
        """The bytes of one worker's rows."""
        return self.tape.manifest.slots * (WIDTH * 8 + 1)

    def room(self) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Make one worker's rows, and which of them hold something."""
        slots = self.tape.manifest.slots
        return zeros((slots, WIDTH), np.float64), np.zeros(slots, dtype=np.bool_)

    def solve(
        self, first: int, room: tuple[Floats, npt.NDArray[np.bool_]]
    ) -> tuple[Floats, Floats]:
        """Add up what a tile of sources gives every scored row: entropy and mass."""
        rows, live = room
        live[:] = False
        entropy, mass = (np.zeros(sum(map(len, self.scored))) for _ in range(2))
        at = 0
        for piece, scored in zip(self.tape.pieces, self.scored, strict=True):
            part = slice(at, at + len(scored))
            at += len(scored)
            if piece.first_source + len(piece.hashes) <= first and not live.any():
                continue  # sources come in the order of rows: none of these is here yet
            tape = (piece.row_slot, piece.row_terms, piece.slot, piece.weight)
            found = entropy[part], mass[part]
            pass_columns(*tape, piece.first_source, first, rows, live, scored, *found)
        return entropy, mass


def score_rows(
    tape: Tape,
    rows: Ints,
    *,
    accuracy: Accuracy = "preview",
    draws: int = DRAWS,
    miss: float | None = None,
    simultaneous: bool = False,
    seed: int = 0,
    budget: Budget = UNLIMITED,
    progress: Progress = silent,
) -> RowScores:
    """Score rows, which rise: exactly, or by draws, as many as a width in bits needs."""
    each = check_miss(MISS if miss is None else miss)
    if accuracy == "exact":
        return _exact(tape, rows, budget, progress)
    sources = tape.fact("sources", rows)
    drawn = int((sources > 1).sum())
    if simultaneous:
        each /= max(drawn, 1)
    if accuracy != "preview":
        draws = _needed(tape, rows, float(accuracy), each)
    if draws < 1 or draws % WIDTH:
        raise UsageError(f"draws come in tiles: a multiple of {WIDTH}, not {draws}")
    kind, error = precision_of(tape, rows, draws, each)
    work = TapeDraws(tape, tuple(tape.scored_in(rows)), seed, kind)
    if budget.memory is not None and work.room_bytes > budget.room():
        work = replace(work, width=HALF)
    total = np.zeros(len(rows))
    firsts = range(0, draws, WIDTH)
    with open_workers(work, len(firsts), budget) as workers:
        for k, part in enumerate(workers.map(firsts)):
            total += part
            progress((k + 1) / len(firsts))
    return row_scores(
        rows,
        total,
        sources,
        error,
        draws=draws,
        miss=each,
        seed=seed,
        kind=kind,
        all_sources=tape.manifest.sources,
    )


def row_scores(
    rows: Ints,
    total: Floats,
    sources: Ints,
    error: Floats,
    *,
    draws: int,
    miss: float,
    seed: int,
    kind: type[np.floating],
    all_sources: int,
) -> RowScores:
    """Turn sums of exp(y) into bits and intervals.

    `sources` is how many each row may have, `error` the relative error of its probabilities.
    """
    alone = sources == 1
    nats = -log(total / draws)
    none = np.zeros(len(rows))
    found = Drawn(
        nats=nats,
        slack=rounding_slack(nats, error) + ABSOLUTE_ERROR,
        missing=none,
        alone=alone,
        known=none,
        known_slack=none,
        maximum=math.log(max(all_sources, 1)) * (1 + 16 * ROUNDING),
    )
    low, high = found.rows(row_ends(draws, miss))
    # No row has more bits than sources it can come from allow.
    maximum = log2(np.maximum(sources, 1)) * (1 + 16 * ROUNDING)
    high = np.minimum(high, maximum)
    low = np.minimum(low, high)
    bits = np.clip((nats - 1.5 / draws) / _LN2, low, high)
    words = "single" if kind is np.float32 else "double"
    about = {"draws": draws, "seed": seed, "precision": words, "method": f"sketch (k={draws})"}
    return RowScores(rows, bits, low, high, np.where(alone, 0.0, miss), about, found)


def stored_error(kind: type[np.floating], depth: npt.NDArray[Any], rounded: Floats) -> Floats:
    """Bound the relative error of the probabilities behind rows that are stored so.

    A row is rounded when it is stored, once for every row on the way; sums and weights are doubles.
    """
    unit = SINGLE if kind is np.float32 else ROUNDING
    stored = (depth.astype(np.float64) + 1.0) * (1 + 1e-6)
    with np.errstate(over="ignore"):
        found: Floats = expm1_at_most(unit * stored + ROUNDING * rounded * (1 + 1e-6) + DRAW_ERROR)
    return found


def precision_of(
    tape: Tape, rows: Ints, draws: int, each: float
) -> tuple[type[np.floating], Floats]:
    """Choose how rows are stored; also bound the relative error of probabilities behind them."""
    behind = tape.fact("depth", rows), tape.fact("rounded", rows)
    maximum = math.log(max(tape.manifest.sources, 1))
    single = stored_error(np.float32, *behind)
    slack = 2 * float(rounding_slack(np.full(len(rows), maximum), single).max(initial=0.0)) / _LN2
    share = thresholds.MAX_HISTORY_SINGLE_SHARE * row_ends(draws, each).bits
    if slack <= max(thresholds.MAX_SINGLE_WIDTH, share):
        return np.float32, single
    return np.float64, stored_error(np.float64, *behind)


def _needed(tape: Tape, rows: Ints, width: float, each: float) -> int:
    """Give the least number of draws whose intervals are at most so wide."""
    if not width > 0:
        raise UsageError(f"accuracy is exact, preview or a number of bits above 0, not {width!r}")
    # What rounding adds is at most this share of it, or of a fixed width.
    left = (width - thresholds.MAX_SINGLE_WIDTH) / (1 + thresholds.MAX_HISTORY_SINGLE_SHARE)
    found = draws_for(left, each, tile=WIDTH, maximum=_MAX_DRAWS) if left > 0 else None
    if found is None:
        raise AccuracyError(f"no number of draws gives intervals of {width:g} bits: ask for exact")
    return found


def _exact(tape: Tape, rows: Ints, budget: Budget, progress: Progress) -> RowScores:
    """Score rows source by source, 64 at a time; all that is left is rounding."""
    work = TapeColumns(tape, tuple(tape.scored_in(rows)))
    entropy, mass = np.zeros(len(rows)), np.zeros(len(rows))
    firsts = range(0, tape.manifest.sources, WIDTH)
    with open_workers(work, len(firsts), budget) as workers:
        for k, (some, found) in enumerate(workers.map(firsts)):
            entropy += some
            mass += found
            progress((k + 1) / len(firsts))
    sources = tape.fact("sources", rows)
    walks = expm1_at_most(ROUNDING * (tape.fact("rounded", rows) + 1.0) * (1 + 1e-6))
    sums = (len(firsts) + WIDTH) * ROUNDING
    off = np.abs(mass - 1.0)
    if len(rows) and not bool(np.all(off <= 2 * (walks + sums) + 1e-300)):
        worst = int(np.argmax(off))
        raise AccuracyError(
            f"row {rows[worst]}: probabilities add up to {mass[worst]!r}, further from 1 than "
            "rounding explains"
        )
    slack = slack_from_each(walks, entropy) + sums * (entropy + 1.0) + _LOG_ERROR
    slack = np.where(sources == 1, 0.0, slack)
    maximum = log2(np.maximum(sources, 1)) * (1 + 16 * ROUNDING)
    low, high = np.maximum(entropy - slack, 0.0), np.minimum(entropy + slack, maximum)
    bits = np.clip(entropy, low, np.maximum(low, high))
    about = {"method": "exact", "sources": tape.manifest.sources}
    return RowScores(rows, bits, low, np.maximum(low, high), np.zeros(len(rows)), about)


@dataclass(frozen=True, eq=False)
class HistoryScores:
    """Scores of the unspent coins of a history.

    `miss` is the probability that a coin's interval misses, 0 where it is proven; rows of one seed
    share their fate. `about` says how they were found.
    """

    tape: Tape
    coins: LiveCoins
    bits: Floats
    bits_low: Floats
    bits_high: Floats
    miss: Floats
    about: Mapping[str, Any]

    @classmethod
    def of(cls, tape: Tape, coins: LiveCoins, rows: RowScores) -> HistoryScores:
        """Give every coin the score of its row."""
        at = np.searchsorted(rows.rows, coins.row)
        return cls(
            tape,
            coins,
            rows.bits[at],
            rows.bits_low[at],
            rows.bits_high[at],
            rows.miss[at],
            rows.about,
        )

    def __len__(self) -> int:
        return len(self.bits)

    def __repr__(self) -> str:
        return f"HistoryScores({len(self):,} unspent coins, {self.about['method']})"

    @property
    def steps(self) -> Floats:
        """Expected steps to the source, exactly."""
        return self.coins.steps

    @cached_property
    def placed(self) -> tuple[Ints, Ints]:
        """The height and the time of every coin, -1 where not known."""
        _, heights, times = self.tape.transactions(self.coins.transaction)
        return heights, times

    def to_arrow(self, first: int = 0, last: int | None = None) -> pa.Table:
        """Give a row for every coin, or for a stretch of them."""
        part = slice(first, last)
        txids, heights, _ = self.tape.transactions(self.coins.transaction[part])
        if self.tape.manifest.accounts:
            nodes = accounts_of(txids)
        else:
            nodes = coin_names(txids, self.coins.vout[part])
        table = pa.table(
            {
                "node": nodes,
                "bits": self.bits[part],
                "bits_low": self.bits_low[part],
                "bits_high": self.bits_high[part],
                "miss": self.miss[part],
                "steps": self.steps[part],
                "balance": self.coins.value[part],
                "height": pa.array(heights, mask=heights < 0),
            }
        )
        return with_amount_texts(table, self.unit, ["balance"])

    @property
    def unit(self) -> Unit:
        """What values are counted in."""
        return unit_named(self.tape.manifest.unit or "smallest")

    def line(self) -> str:
        """Say in one line what was found."""
        n, value = len(self), int(self.coins.value.sum())
        if not n:
            return f"no {self.tape.manifest.scored_words}"
        mean = float(self.bits.mean())
        weighed = float((self.bits * self.coins.value).sum() / value)
        width = float((self.bits_high - self.bits_low).max())

        def mean_words(bits: float) -> str:
            # Rows share their draws, whose errors a mean does not average out.
            return f"about {bits:.1f}" if np.any(self.miss > 0) else f"{bits:.3f}"

        pools = self.coins.pools
        scored = f"{n - pools:,} {self.tape.manifest.scored_words}"
        scored += f" and {count_words(pools, 'pool')}" if pools else ""
        return (
            f"{scored} worth {self.unit.words(value)}: "
            f"{mean_words(mean)} bits on average, {mean_words(weighed)} by value; "
            f"{self.about['method']}, widest interval {width:.3g} bits; "
            f"{reading_words(self.tape.manifest.settings)}"
        )


def stored(scores: HistoryScores) -> pa.Table:
    """Give what a history keeps of its scores."""
    columns = ("bits", "bits_low", "bits_high", "miss")
    return pa.table({name: getattr(scores, name) for name in columns})
