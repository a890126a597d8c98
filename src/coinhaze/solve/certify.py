"""Sums -> scores, with proven intervals and the laws checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from coinhaze.amounts import Floats, Ints
from coinhaze.errors import AccuracyError, UsageError
from coinhaze.measures import Scores
from coinhaze.measures.elementary import log2
from coinhaze.measures.entropy import conditional, renyi_from_power
from coinhaze.measures.intervals import ROUNDING, at_least, surprise
from coinhaze.measures.scores import not_reached
from coinhaze.observer.chain import NO_COLUMN
from coinhaze.solve.exact.rounding import Rounding, summing, terms_of
from coinhaze.solve.pool import UNLIMITED, Budget
from coinhaze.solve.query import Query
from coinhaze.solve.structure.columns import Columns
from coinhaze.solve.sums import Sums
from coinhaze.threads import together

CERTIFICATE = 1e-9
# A row that lacks no more than this is whole: it moves bits by less than 1e-7.
NOTHING = 1e-9
# So many rows are bounded at a time.
PART = 1 << 14


def certified(
    query: Query,
    columns: Columns,
    sums: Sums,
    counts: Floats,
    *,
    counted: bool = True,
    by_fours: bool = False,
    rounding: Rounding | None = None,
    estimate: Floats | None = None,
    method: str,
    width: float,
    renyi: Sequence[float],
    weights: Floats | None,
    budget: Budget = UNLIMITED,
) -> Scores:
    """Turn sums into scores; raise if a law is broken or an interval wider than requested.

    A broken law leaves nothing to trust; the error of a wide interval carries the scores.

    `counts` are the sources of each scored state, or at least as many if they are not `counted`;
    `by_fours` tells that rows were added up four at a time, in tiles; `rounding` how far the
    solve can have rounded, if that is not what a factor's solve does. Bits are the `estimate` as
    far as the interval allows, or else taken from the sums.
    """
    chain = query.chain
    found = sums.mass + sums.elsewhere
    check_mass(found + sums.missing)
    conservation = None if weights is None else check_conservation(query, columns, weights)
    if rounding is None:
        rounding = Rounding.of_factor(query, by_fours=by_fours)
    terms = terms_of(columns, counts, by_fours=by_fours)
    bits, low, high, middle = (np.empty(len(counts)) for _ in range(4))
    # What was dropped lies nearer its upper bound: dropped pieces seldom meet again.
    dropped = bool(np.any(sums.missing))

    def bound(part: slice) -> None:
        some = sums.part(part)
        bits[part] = some.entropy + surprise(some.elsewhere) + some.prior
        low[part], high[part] = intervals(
            some, bits[part], counts[part], rounding.part(part), terms[part]
        )
        between = bits[part] + some.above if dropped else bits[part]
        middle[part] = np.clip(
            between if estimate is None else estimate[part], low[part], high[part]
        )

    # A few rows at a time stay in a cache from one operation to the next.
    parts = [slice(first, first + PART) for first in range(0, len(counts), PART)]
    together([partial(bound, part) for part in parts], budget.threads)
    spread = query.spread
    exposure = low_exposure = high_exposure = None
    if chain.listed:
        bounds = exposure_interval(sums, rounding, terms)
        clean = False if chain.clean is None else chain.clean[query.rows]
        exposure, low_exposure, high_exposure = (
            np.where(clean, 0.0, spread(v)) for v in (np.minimum(sums.mass, 1.0), *bounds)
        )
    unknown = np.full(len(counts), np.nan)
    found_by_state = (middle, low, high, found, counts if counted else unknown, sums.top)
    columns_by_row: list[Callable[[], Any]] = [partial(spread, v) for v in found_by_state]
    columns_by_row += [query.steps, lambda: _outcomes_by_row(query, columns, sums)]
    has_parts = len(query.rows) // PART  # small columns start no threads
    by_row = together(columns_by_row, budget.threads if has_parts else 1)
    scores = Scores(
        chain=chain,
        nodes=query.rows,
        bits=by_row[0],
        bits_low=by_row[1],
        bits_high=by_row[2],
        steps=by_row[6],
        mass=by_row[3],
        sources=by_row[4],
        top=by_row[7],
        top_probability=by_row[5],
        method=method,
        exposure=exposure,
        exposure_low=low_exposure,
        exposure_high=high_exposure,
        conditional_bits=spread(np.maximum(conditional(sums.entropy, sums.mass), 0.0))
        if chain.listed
        else None,
        bits_unmodified=spread(_unmodified(sums)) if chain.history else None,
        renyi={o: spread(np.maximum(_renyi(sums, bits, counts, renyi, o), 0.0)) for o in renyi},
        conservation=conservation,
    )
    reached = float((high - low).max(initial=0.0))
    if not reached <= width:
        raise not_reached(
            scores,
            f"the proven interval is {reached:.2e} bits wide at its widest, above the requested "
            f"{width:.0e}: ask for accuracy={at_least(reached)} or wider",
        )
    return scores


def _unmodified(sums: Sums) -> Floats:
    """Give bits without the histories of sources; no answer where some of the row was dropped."""
    known = sums.missing <= NOTHING
    return np.where(known, np.maximum(sums.entropy, 0.0), np.nan)


def plain_orders(renyi: Sequence[float]) -> Floats:
    """Give the orders that need sums of powers: all but 0, 1 and infinity."""
    for order in renyi:
        if not order >= 0 or 0 < abs(order - 1) < 1e-6:
            raise UsageError(f"order of a Renyi entropy is >= 0 and not all but 1: {order}")
    return np.array([o for o in renyi if o not in (0, 1) and np.isfinite(o)])


def _renyi(
    sums: Sums, bits: Floats, counts: Floats, orders: Sequence[float], order: float
) -> Floats:
    if order == 0:
        return log2(counts)
    if order == 1:
        return bits
    if np.isinf(order):
        return 0.0 - log2(sums.top)
    power = sums.powers[:, list(plain_orders(orders)).index(order)]
    if order > 1 and np.any(power < 1e-290):
        raise AccuracyError(
            f"powers of order {order} are too small for floats: ask for a lower one"
        )
    return renyi_from_power(power, order)


def _outcomes_by_row(query: Query, columns: Columns, sums: Sums) -> Ints:
    likeliest = query.spread(_outcomes(columns, sums.top_column), NO_COLUMN)
    return likeliest.astype(np.int64)


def _outcomes(columns: Columns, column: Ints) -> Ints:
    """Name columns by the outcome that holds most of each."""
    return np.where(column >= 0, np.append(columns.likeliest, NO_COLUMN)[column], NO_COLUMN)


def check_mass(mass: Floats) -> None:
    """Refuse rows of B that do not sum to 1."""
    worst = float(np.abs(mass - 1).max(initial=0.0))
    if not worst <= CERTIFICATE:
        raise AccuracyError(f"a row of B sums to 1 {worst:+.2e}: mass was lost; no score is given")


def check_conservation(query: Query, columns: Columns, weights: Floats) -> float:
    """Give the largest relative error of x^T B = b over the columns; refuse a large one."""
    chain, reduced = query.chain, query.reduced
    assert chain.graph.opening is not None
    source = reduced.retained & (chain.column != NO_COLUMN)
    column = columns.of_state[reduced.state[source]]
    opening = np.bincount(column, chain.graph.opening.take(source).floats(), minlength=len(columns))
    error = float(np.abs(weights / opening - 1).max(initial=0.0))
    if not error <= CERTIFICATE:
        raise AccuracyError(f"x^T B differs from b by {error:.2e}; no score is given")
    return error


def exposure_interval(sums: Sums, rounding: Rounding, terms: Floats) -> tuple[Floats, Floats]:
    """Bound how much of each row ends in listed outcomes.

    Both proofs of `intervals` bound a sum of probabilities as they are: a row changes by so much
    in total, and each of its probabilities by so much of itself.
    """
    slack = rounding.of_share(sums.mass) + 4 * terms * ROUNDING * sums.mass
    low = np.clip(sums.mass - slack, 0.0, 1.0)
    return low, np.clip(sums.mass + sums.missing * (1 + 1e-9) + slack, 0.0, 1.0)


def intervals(
    sums: Sums, bits: Floats, sources: Floats, rounding: Rounding, terms: Floats
) -> tuple[Floats, Floats]:
    """Bound the entropy of each row: what was dropped, and rounding."""
    slack = rounding.of_bits(bits, sources) + summing(terms, bits)
    # What was dropped is itself known to a relative 1e-9 at least: it is a sum like any other.
    slack = slack + sums.slack + 1e-9 * (sums.missing + sums.above)
    missing = np.clip(sums.missing, 0.0, 1.0)
    largest = np.maximum(sums.top, sums.elsewhere)
    on_top = surprise(np.minimum(largest + missing, 1.0)) - surprise(largest)
    apart = sums.below - surprise(1 - missing)
    low = np.maximum(bits + np.maximum(on_top, apart) - slack, 0.0)
    # The most the sources allow, with room for the rounding of log2 itself.
    maximum = log2(np.maximum(sources, 1)) * (1 + 16 * ROUNDING)
    high = np.minimum(bits + sums.above + slack, maximum)
    return np.minimum(low, high), high
