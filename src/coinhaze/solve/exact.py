"""Exact scores by whichever engine needs less work; proven intervals for acyclic chains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coinhaze.chain import AbsorbingChain
from coinhaze.errors import UsageError
from coinhaze.ledger.amounts import Floats, Ints
from coinhaze.measure import Scores
from coinhaze.measure.intervals import surprise
from coinhaze.solve.asked import Asked
from coinhaze.solve.certify import certified, count_sources, plain_orders
from coinhaze.solve.columns import Columns, columns_of
from coinhaze.solve.lists import ENTRY, MEMORY, list_sums
from coinhaze.solve.progress import Progress, silent
from coinhaze.solve.stream import stream_sums
from coinhaze.solve.stream_kernels import WIDTH
from coinhaze.solve.sums import Sums
from coinhaze.solve.workers import Budget

EXACT_WIDTH = 1e-9
# Measured costs of one entry: added to a list, and added in a tile.
LIST_NS, TILE_NS = 12.0, 1.5


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
    threads: int | None = None,
    progress: Progress = silent,
    asked: Asked | None = None,
) -> Scores:
    """Score rows over every column of B; raise if the proven interval is wider than asked."""
    asked = asked or Asked.of(chain, rows)
    counts = count_sources(asked)
    orders = plain_orders(renyi)
    columns = columns_of(asked, orders)
    blocks = list_blocks(asked, columns, counts)
    if blocks:
        sums, weights = list_sums(
            asked, columns, orders, blocks=blocks, threads=threads, progress=progress
        )
    else:
        sums, weights = stream_sums(
            asked, columns, orders, budget=Budget(threads=threads), progress=progress
        )
        add_missing(asked, sums, counts)
    return certified(
        asked,
        columns,
        sums,
        counts[asked.scored],
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
        sums.above[:] = surprise(missing) + missing * np.log2(counts[asked.scored])


def list_blocks(asked: Asked, columns: Columns, counts: Floats) -> int:
    """Say in how many blocks sparse lists beat dense tiles, 0 if they do not.

    How many entries all lists hold is known beforehand: the number of sources each state reaches.
    """
    if not asked.reduced.acyclic:
        return 0
    indices = asked.reduced.indices
    entries = float(counts[indices].sum())
    tiles = -(-len(columns) // WIDTH) * WIDTH
    if entries * LIST_NS > len(indices) * tiles * TILE_NS:
        return 0
    # Two blocks keep two cores busy; more where all lists at once might not fit.
    return max(2, int(float(counts.sum()) * ENTRY / MEMORY) + 1) if len(columns) > 1 else 1
