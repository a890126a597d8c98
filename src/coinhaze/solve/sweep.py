"""The solver for acyclic chains: one sweep from the sources on, exact or to an asked width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coinhaze.chain import AbsorbingChain
from coinhaze.errors import AccuracyError, ResourceError, UsageError
from coinhaze.ledger.amounts import Ints
from coinhaze.measure import Scores
from coinhaze.solve.asked import Asked
from coinhaze.solve.certify import certified, count_sources, plain_orders
from coinhaze.solve.columns import columns_of
from coinhaze.solve.exact import EXACT_WIDTH, score_exactly
from coinhaze.solve.lists import list_sums
from coinhaze.solve.progress import Progress, silent

# Entries below these are dropped, tried in turn until every interval is as narrow as asked.
LEAST = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)


def sweep(
    chain: AbsorbingChain,
    rows: Ints,
    *,
    width: float = EXACT_WIDTH,
    renyi: Sequence[float] = (),
    progress: Progress = silent,
    asked: Asked | None = None,
    **settings: Any,
) -> Scores:
    """Score rows of a chain without cycles: coin views and temporal graphs.

    A width above 1e-6 bits allows small probabilities to be dropped, with a proven interval.
    """
    asked = asked or Asked.of(chain, rows)
    if not asked.reduced.acyclic:
        raise UsageError("this chain has cycles: use eliminate")
    if width > 1e-6 and not renyi and not chain.listed:
        counts = count_sources(asked)[asked.scored]
        none = plain_orders(())
        columns = columns_of(asked, none)
        for least in LEAST:
            try:
                sums, _ = list_sums(asked, columns, none, least=least, threads=1, progress=progress)
                return certified(
                    asked,
                    columns,
                    sums,
                    counts,
                    method=f"sweep (dropping below {least:.0e})",
                    width=width,
                    renyi=(),
                    weights=None,
                )
            except AccuracyError:
                continue
            except ResourceError:
                break
    return score_exactly(
        chain,
        rows,
        method="sweep",
        width=width,
        renyi=renyi,
        progress=progress,
        asked=asked,
        **settings,
    )
