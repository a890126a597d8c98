"""Exact scores by whichever engine needs less work: tiles of columns, or sparse lists."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from coinhaze.amounts import Floats, Ints
from coinhaze.errors import UsageError
from coinhaze.measures import Scores
from coinhaze.measures.elementary import log2
from coinhaze.measures.intervals import surprise
from coinhaze.observer import AbsorbingChain
from coinhaze.solve.certify import certified, plain_orders
from coinhaze.solve.exact.fine import Fine, exact_moves, fine, plain_roundings
from coinhaze.solve.exact.rounding import Rounding, foreseen_width
from coinhaze.solve.exact.stream import stream_sums
from coinhaze.solve.planner import thresholds
from coinhaze.solve.planner.cost import SweepCost
from coinhaze.solve.pool.limits import GPU, UNLIMITED, Budget
from coinhaze.solve.progress import Progress, silent
from coinhaze.solve.query import Query
from coinhaze.solve.structure.lump import LumpedChain
from coinhaze.solve.structure.structure import Structure
from coinhaze.solve.sums import Sums
from coinhaze.solve.truncated.lists import list_sums

LOG = logging.getLogger(__name__)
EXACT_WIDTH = 1e-9
CARE = (False, True)  # in units; and with long chains that carry along what their sums lose


def width_of(accuracy: object) -> float:
    """Turn a requested accuracy into the widest interval allowed, in bits."""
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
    count_sources: bool = False,
    budget: Budget = UNLIMITED,
    progress: Progress = silent,
    lumped: LumpedChain | None = None,
) -> Scores:
    """Score rows over every column of B; raise if the proven interval is wider than requested.

    Lists or tiles are taken, whichever cost less.
    """
    orders = plain_orders(renyi)
    lumped = lumped or Structure(chain).lump(rows, orders)
    query, columns = lumped.query, lumped.columns
    # The entropy of order 0 is the number of possible sources.
    counts, counted = lumped.sources(count=count_sources or 0 in renyi, budget=budget)
    lists = lists_for(lumped, budget)
    rounding, scaled = rounding_of(lumped, counts, by_fours=lists is None)
    expected = foreseen_width(rounding, columns, counts, by_fours=lists is None)
    if expected > width:
        LOG.warning(
            "rounding may leave intervals up to %.1e bits wide, above the requested %.0e",
            expected,
            width,
        )
    if lists is not None:
        sums, weights = list_sums(
            query,
            columns,
            orders,
            blocks=lists.blocks,
            budget=budget,
            progress=progress,
        )
    else:
        if scaled is None:
            sums, weights = stream_sums(query, columns, orders, budget=budget, progress=progress)
            add_missing(query, sums, counts)
        else:
            sums, weights = stream_sums(
                scaled.query, columns, orders, budget=budget, progress=progress
            )
            scaled.restore(sums, orders)
    return certified(
        query,
        columns,
        sums,
        counts,
        counted=counted,
        by_fours=lists is None,
        rounding=rounding,
        method=method or exact_method(query),
        width=width,
        renyi=renyi,
        weights=weights if chain.conserves else None,
    )


def lists_for(lumped: LumpedChain, budget: Budget) -> SweepCost | None:
    """Give what lists cost where they are taken, being cheaper than tiles; a GPU solves tiles."""
    return None if budget.backend == GPU else lumped.cost.lists


def foreseen(lumped: LumpedChain, budget: Budget = UNLIMITED) -> float:
    """Bound the widest interval of exact scores before they are solved for."""
    counts, _ = lumped.sources()
    by_fours = lists_for(lumped, budget) is None
    rounding, _ = rounding_of(lumped, counts, by_fours=by_fours)
    return foreseen_width(rounding, lumped.columns, counts, by_fours=by_fours)


def rounding_of(
    lumped: LumpedChain, counts: Floats, *, by_fours: bool
) -> tuple[Rounding, Fine | None]:
    """Bound the rounding of a solve; where tiles would be wide, with rows in units of their own.

    Each way takes more care than the one before: as it is, scaled, and with long chains that
    carry along what their sums lose.
    """
    query, columns = lumped.query, lumped.columns
    if not (query.reduced.acyclic and by_fours):
        return Rounding.of_factor(query, by_fours=by_fours), None
    rounding, scaled = Rounding.of_walks(*plain_roundings(query, columns)), None

    def narrow() -> bool:
        return (
            foreseen_width(rounding, columns, counts, by_fours=True)
            <= thresholds.MAX_ROUNDING_WIDTH
        )

    exact = None if narrow() else exact_moves(query.chain, query.reduced)
    for carry in CARE:
        if exact is not None and not narrow():
            scaled = fine(query, columns, exact, carry=carry)
            rounding = Rounding.of_walks(scaled.expected, scaled.maximum)
    return rounding, scaled


def exact_method(query: Query) -> str:
    """Say how exact scores are found."""
    return "sweep" if query.reduced.acyclic else "eliminate"


def add_missing(query: Query, sums: Sums, counts: Floats) -> None:
    """Count what sweeps over cores left out: at most it is spread over all sources."""
    if query.factor.sweeps:
        missing = query.factor.missing()[query.scored]
        sums.missing[:] = missing
        sums.above[:] = surprise(missing) + missing * log2(counts)


def eliminate(
    chain: AbsorbingChain,
    rows: Ints,
    *,
    width: float = EXACT_WIDTH,
    renyi: Sequence[float] = (),
    count_sources: bool = False,
    budget: Budget = UNLIMITED,
    progress: Progress = silent,
    lumped: LumpedChain | None = None,
) -> Scores:
    """Score rows of any chain, accurate however rare absorption is.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    >>> chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    >>> eliminate(chain, chain.graph.sinks.nonzero()[0]).bits.round(4)
    array([0.8113])
    """
    return score_exactly(
        chain,
        rows,
        method="eliminate",
        width=width,
        renyi=renyi,
        count_sources=count_sources,
        budget=budget,
        progress=progress,
        lumped=lumped,
    )
