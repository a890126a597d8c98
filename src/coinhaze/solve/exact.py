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
from coinhaze.solve.certify import certified, plain_orders, possible_sources
from coinhaze.solve.columns import Columns, columns_of
from coinhaze.solve.lists import MEMORY, list_sums
from coinhaze.solve.progress import Progress, silent
from coinhaze.solve.stream import live_share, stream_sums
from coinhaze.solve.sums import Sums
from coinhaze.solve.sweep_cost import SweepCost, sweep_cost
from coinhaze.solve.workers import UNLIMITED, Budget

EXACT_WIDTH = 1e-9
# Measured costs in nanoseconds: of an entry of a list, of an entry of a tile mixed, and of one
# scored.
LIST_NS, MIX_NS, SCORE_NS = 12.0, 0.3, 1.2
# Below this many seconds of tiles nothing is gained by looking for something faster.
SOON = 0.5
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
    method: str,
    width: float = EXACT_WIDTH,
    renyi: Sequence[float] = (),
    budget: Budget = UNLIMITED,
    progress: Progress = silent,
    asked: Asked | None = None,
) -> Scores:
    """Score rows over every column of B; raise if the proven interval is wider than asked."""
    asked = asked or Asked.of(chain, rows)
    counts, counted = possible_sources(asked, most_words=MOST_WORDS)
    orders = plain_orders(renyi)
    columns = columns_of(asked, orders)
    cost = cheaper_lists(asked, columns)
    if cost is not None:
        memory = budget.room(MEMORY)
        sums, weights = list_sums(
            asked,
            columns,
            orders,
            blocks=cost.blocks(memory=memory),
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
        by_fours=cost is None,
        method=method,
        width=width,
        renyi=renyi,
        weights=weights if chain.conserves else None,
    )


def add_missing(asked: Asked, sums: Sums, counts: Floats) -> None:
    """Count what sweeps over cores left out: at most it is spread over all sources."""
    if asked.factor.sweeps:
        missing = asked.factor.missing()[asked.scored]
        sums.missing[:] = missing
        sums.above[:] = surprise(missing) + missing * np.log2(counts)


def cheaper_lists(asked: Asked, columns: Columns) -> SweepCost | None:
    """Say what sparse lists would cost, if that is less than dense tiles; None if it is not.

    Both are judged by samples of columns. Which engine runs must not depend on how busy the
    machine is, so entries are counted, not seconds.
    """
    if not asked.reduced.acyclic or asked.chain.listed:
        return None
    moves = len(asked.reduced.indices)
    tiles = len(columns) * 1e-9 * (moves * MIX_NS + len(asked.scored) * SCORE_NS)
    if tiles < SOON:
        return None
    tiles *= live_share(asked, columns)
    if tiles < SOON:
        return None
    cost = sweep_cost(asked, columns)
    return cost if cost.entries * LIST_NS * 1e-9 < tiles else None
