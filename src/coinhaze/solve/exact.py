"""Exact scores by whichever engine needs less work: tiles of columns, or sparse lists."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coinhaze.chain import AbsorbingChain
from coinhaze.errors import UsageError
from coinhaze.ledger.amounts import Floats, Ints
from coinhaze.measure import Scores
from coinhaze.measure.intervals import surprise
from coinhaze.solve.asked import Asked
from coinhaze.solve.certify import certified, plain_orders
from coinhaze.solve.fold import Folded, fold
from coinhaze.solve.lists import MEMORY, list_sums
from coinhaze.solve.progress import Progress, silent
from coinhaze.solve.stream import stream_sums
from coinhaze.solve.sums import Sums
from coinhaze.solve.workers import UNLIMITED, Budget

EXACT_WIDTH = 1e-9
# Counting sources may take this many words of bit sets: a minute or so.
MOST_WORDS = 1e11


def width_of(accuracy: object) -> float:
    """Turn an asked accuracy into the widest interval allowed, in bits."""
    if accuracy == "exact":
        return EXACT_WIDTH
    if not (isinstance(accuracy, int | float) and accuracy > 0):
        raise UsageError(f"accuracy is exact, preview or a width in bits, not {accuracy!r}")
    return float(accuracy)


def score_exactly(
    chain: AbsorbingChain,
    rows: Ints,
    *,
    method: str | None = None,
    width: float = EXACT_WIDTH,
    renyi: Sequence[float] = (),
    budget: Budget = UNLIMITED,
    progress: Progress = silent,
    folded: Folded | None = None,
) -> Scores:
    """Score rows over every column of B; raise if the proven interval is wider than asked.

    Lists or tiles are taken, whichever cost less.
    """
    orders = plain_orders(renyi)
    folded = folded or fold(Asked.of(chain, rows), orders)
    asked, columns = folded.asked, folded.columns
    counts, counted = folded.sources(most_words=MOST_WORDS)
    lists = folded.cost.lists
    if lists is not None:
        memory = budget.room(MEMORY)
        sums, weights = list_sums(
            asked,
            columns,
            orders,
            blocks=lists.blocks(memory=memory),
            memory=memory,
            threads=budget.threads,
            progress=progress,
        )
    else:
        sums, weights = stream_sums(asked, columns, orders, budget=budget, progress=progress)
        add_missing(asked, sums, counts)
    return certified(
        asked,
        columns,
        sums,
        counts,
        counted=counted,
        by_fours=lists is None,
        method=method or exact_method(asked),
        width=width,
        renyi=renyi,
        weights=weights if chain.conserves else None,
    )


def exact_method(asked: Asked) -> str:
    """Say how exact scores are found."""
    return "sweep" if asked.reduced.acyclic else "eliminate"


def add_missing(asked: Asked, sums: Sums, counts: Floats) -> None:
    """Count what sweeps over cores left out: at most it is spread over all sources."""
    if asked.factor.sweeps:
        missing = asked.factor.missing()[asked.scored]
        sums.missing[:] = missing
        sums.above[:] = surprise(missing) + missing * np.log2(counts)
