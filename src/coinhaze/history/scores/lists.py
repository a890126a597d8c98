"""Proven intervals of rows from lists: of every row its largest sources, and bounds on the rest.

One pass over the tape. Lists win where coins mix little, draws where they mix much: intervals are
intersected.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coinhaze.amounts import Floats, Ints
from coinhaze.errors import UsageError
from coinhaze.history.scores.list_kernels import pass_lists
from coinhaze.history.scores.score import RowScores
from coinhaze.history.tape import Tape
from coinhaze.measures.elementary import expm1_at_most, log2
from coinhaze.measures.intervals import ROUNDING
from coinhaze.solve.pool import UNLIMITED, Budget


def list_bytes(slots: int, sources: int, maximum: int) -> int:
    """Give the bytes that lists of at most so many sources take."""
    return slots * (12 * maximum + 40) + 24 * sources


def bounds_by_lists(
    tape: Tape, rows: Ints, maximum: int, budget: Budget = UNLIMITED
) -> tuple[Floats, Floats]:
    """Bound the bits of rows, which rise, by lists of at most so many sources."""
    if maximum < 1:
        raise UsageError(f"lists have one source or more, not {maximum}")
    slots, sources = tape.manifest.slots, tape.manifest.sources
    maximum = min(maximum, max(sources, 1))
    budget.fits(list_bytes(slots, sources, maximum), f"lists of {maximum} sources")
    listed = np.zeros((slots, maximum), np.uint32)
    share, length, rest = (
        np.zeros((slots, maximum)),
        np.zeros(slots, np.int64),
        np.zeros((slots, 4)),
    )
    dense, met, values = np.zeros(sources), np.zeros(sources, np.int64), np.zeros(sources)
    found: list[list[Floats]] = []
    source = 0
    for piece, chosen in zip(tape.pieces, tape.scored_in(rows), strict=True):
        ends = [np.empty(len(piece)) for _ in range(3)]
        source = pass_lists(
            piece.row_slot, piece.row_terms, piece.slot, piece.weight, source, listed, share,
            length, rest, dense, met, values, *ends,
        )  # fmt: skip
        found.append([end[chosen] for end in ends])
    low, high, above = (np.concatenate([part[k] for part in found]) for k in range(3))
    known = tape.fact("sources", rows)
    largest = log2(np.maximum(known, 1)) * (1 + 16 * ROUNDING)
    # Every probability, and every sum above, is off by this share of it at most; where -p log2 p
    # is taken, by as much of p besides, once for every row on the way.
    depth = tape.fact("depth", rows).astype(np.float64)
    error = expm1_at_most(ROUNDING * (4 * tape.fact("rounded", rows) + 16 * depth + 64))
    slack = np.where(known == 1, 0.0, 2 * error * (above + 2 * (depth + 2)))
    high = np.minimum(high + slack, largest)
    return np.clip(low - slack, 0.0, high), high


def narrowed(tape: Tape, scores: RowScores, maximum: int, budget: Budget = UNLIMITED) -> RowScores:
    """Intersect drawn intervals with those of lists, which are proven.

    Where the latter lies within the former, or the former has missed it, no chance is left.
    """
    low, high = bounds_by_lists(tape, scores.rows, maximum, budget)
    apart = (low > scores.bits_high) | (high < scores.bits_low)
    proven = apart | ((low >= scores.bits_low) & (high <= scores.bits_high))
    low = np.where(proven, low, np.maximum(low, scores.bits_low))
    high = np.where(proven, high, np.minimum(high, scores.bits_high))
    about = {**scores.about, "top_sources": maximum}
    about["method"] = f"{scores.about['method']} and lists of {maximum} sources"
    return replace(
        scores,
        bits=np.clip(scores.bits, low, high),
        bits_low=low,
        bits_high=high,
        miss=np.where(proven, 0.0, scores.miss),
        about=about,
    )
