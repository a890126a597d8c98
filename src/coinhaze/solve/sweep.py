"""The solver for acyclic chains: one sweep from the sources on, exact or to an asked width."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from coinhaze.chain import AbsorbingChain
from coinhaze.errors import ResourceError, UsageError
from coinhaze.ledger.amounts import Ints
from coinhaze.measure import Scores
from coinhaze.solve.asked import Asked
from coinhaze.solve.exact import EXACT_WIDTH, score_exactly
from coinhaze.solve.progress import Progress, silent
from coinhaze.solve.truncate import Over, truncated


def sweep(
    chain: AbsorbingChain,
    rows: Ints,
    *,
    width: float = EXACT_WIDTH,
    over: Over = "worst",
    renyi: Sequence[float] = (),
    entries: float = math.inf,
    threads: int | None = None,
    progress: Progress = silent,
    asked: Asked | None = None,
    **settings: Any,
) -> Scores:
    """Score rows of a chain without cycles: coin views and temporal graphs.

    A width above 1e-6 bits allows small probabilities to be dropped, with a proven interval: of
    every row, or with `over="mean"` on average over the rows. `entries` limits the work.
    """
    asked = asked or Asked.of(chain, rows)
    if not asked.reduced.acyclic:
        raise UsageError("this chain has cycles: use eliminate")
    if over not in ("worst", "mean"):
        raise UsageError(f"over is worst or mean, not {over!r}")
    if width > 1e-6 and not renyi and not chain.listed:
        try:
            scores = truncated(
                asked, width=width, over=over, entries=entries, threads=threads, progress=progress
            )
        except ResourceError:
            scores = None
        if scores is not None:
            return scores
    return score_exactly(
        chain,
        rows,
        method="sweep",
        width=width,
        renyi=renyi,
        threads=threads,
        progress=progress,
        asked=asked,
        **settings,
    )
