"""The paper's method: B as the sum of Q^k R, in slices of columns.

`published` stops a slice when no entry of Q^k R exceeds a threshold, as the paper does: mass is
lost, and how much depends on the slicing. `mass` stops when the worst row's missing mass is below
a tolerance: what is missing from a row of B is known, since every row sums to 1, and bounds the
error. Both report an interval that counts what is missing.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy.sparse

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.errors import AccuracyError, UsageError
from coinhaze.measures import Scores
from coinhaze.measures.entropy import conditional
from coinhaze.measures.intervals import ROUNDING, from_missing_mass, slack_from_total, surprise
from coinhaze.measures.scores import not_reached
from coinhaze.observer import AbsorbingChain
from coinhaze.observer.chain import NO_COLUMN
from coinhaze.solve.exact.engines import EXACT_WIDTH
from coinhaze.solve.progress import Progress, silent
from coinhaze.solve.structure.counting import Counting
from coinhaze.solve.structure.reduce import ENTRY_ERROR, NO_STATE, certain_nodes, reduce_chain

THRESHOLD = 0.001
SLICE = 16


def series(
    chain: AbsorbingChain,
    rows: Ints,
    *,
    rule: Literal["published", "mass"] = "mass",
    threshold: float = THRESHOLD,
    columns: int = SLICE,
    width: float = EXACT_WIDTH,
    max_steps: int = 100_000,
    progress: Progress = silent,
) -> Scores:
    """Score rows by the series, as published, or until every interval is as narrow as requested.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    >>> chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    >>> series(chain, chain.graph.sinks.nonzero()[0], rule="published").bits.round(4)
    array([0.8113])
    """
    if chain.history:
        raise UsageError("the series is the paper's baseline and takes no history")
    certain = certain_nodes(chain)
    q, r = chain.Q, chain.R
    tolerance = width / 1000 if rule == "mass" else 0.0
    steps, needed = _alive(q, certain, rows, tolerance, max_steps)
    n = len(rows)
    entropy, mass, top, elsewhere = (np.zeros(n) for _ in range(4))
    top_column = np.full(n, NO_COLUMN)
    for first in range(0, len(chain.outcomes), columns):
        part = r[:, first : first + columns].toarray()
        b = _sum_slice(q, part, needed if rule == "mass" else None, threshold, max_steps)[rows]
        k = chain.elsewhere - first
        if 0 <= k < b.shape[1]:
            elsewhere += b[:, k]
        best = b.max(axis=1)
        top_column = np.where(best > top, first + b.argmax(axis=1), top_column)
        top = np.maximum(top, best)
        entropy += surprise(b).sum(axis=1)
        mass += b.sum(axis=1)
        progress((first + columns) / len(chain.outcomes))
    sources = _count(chain, rows)
    low, high = from_missing_mass(entropy, 1 - mass, top, sources)
    # A walk of k moves passes k sums of at most `longest` terms, and is added up once a product.
    longest = int(np.diff(q.indptr).max(initial=0)) + ENTRY_ERROR + 3
    walked = np.where(np.isnan(steps[rows]), needed, steps[rows])
    roundings = longest * walked + needed + len(chain.outcomes)
    slack = slack_from_total(roundings * ROUNDING, sources) + 8 * ROUNDING * (entropy + 2)
    null = np.where(certain[rows], 0.0, np.nan)
    listed = mass - elsewhere
    inside = entropy - surprise(elsewhere)
    exposure = listed + null
    if chain.clean is not None:
        exposure = np.where(chain.clean[rows], 0.0, exposure)
    scores = Scores(
        chain=chain,
        nodes=rows,
        bits=entropy + null,
        bits_low=np.maximum(low - slack, 0.0) + null,
        bits_high=high + slack + null,
        steps=steps[rows] + null,
        mass=mass + null,
        sources=sources,
        top=np.where(certain[rows], top_column, NO_COLUMN),
        top_probability=top + null,
        method=f"series ({rule})",
        exposure=exposure if chain.listed else None,
        conditional_bits=conditional(inside, listed) + null if chain.listed else None,
    )
    if rule == "mass" and not scores.width <= width:
        raise not_reached(
            scores,
            f"the proven interval is {scores.width:.2e} bits wide after {needed} products, above "
            f"the requested {width:.0e}: use the exact solvers, or a wider interval",
        )
    return scores


def _alive(
    q: scipy.sparse.csr_array,
    certain: Bools,
    rows: Ints,
    tolerance: float,
    max_steps: int,
) -> tuple[Floats, int]:
    """Follow the mass not yet absorbed: expected steps, and the products needed.

    Steps are null where the published rule, which asks for no tolerance, ends before they settle.
    """
    requested = rows[certain[rows]]
    alive = certain.astype(np.float64)
    steps = np.zeros(len(alive))
    for k in range(max_steps):
        steps += alive
        alive = q @ alive
        worst = float(alive[requested].max(initial=0.0))
        if worst <= max(tolerance, 1e-14):
            return steps, k + 1
    if tolerance == 0.0:
        return np.where(alive > 1e-14, np.nan, steps), max_steps
    raise AccuracyError(
        f"after {max_steps} steps the worst row still misses {worst:.2e} of its mass, "
        f"above {tolerance:.0e}: use the exact solvers, or a wider interval"
    )


def _sum_slice(
    q: scipy.sparse.csr_array, part: Floats, products: int | None, threshold: float, maximum: int
) -> Floats:
    total = part.copy()
    for _ in range(maximum if products is None else products):
        if products is None and part.max(initial=0.0) <= threshold:
            break
        part = q @ part
        total += part
    return total


def _count(chain: AbsorbingChain, rows: Ints) -> Floats:
    """Count the sources each row can reach, null where it has no answer."""
    reduced = reduce_chain(chain, rows, merge=False)
    counts = Counting.of(reduced, reduced.column, np.ones(len(chain.outcomes))).count()
    state = reduced.state[rows]
    return np.where(state == NO_STATE, np.nan, np.append(counts, np.nan)[state])
