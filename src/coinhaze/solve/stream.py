"""Factors -> scores: B is streamed, a tile of outcomes at a time, and never stored whole.

Tiles are solved by several threads but added up in their order, so the thread count changes no
bit of the result.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from coinhaze.chain import AbsorbingChain
from coinhaze.chain.chain import NO_COLUMN
from coinhaze.errors import AccuracyError
from coinhaze.ledger.amounts import Bools, Floats, Ints
from coinhaze.measure import Scores
from coinhaze.measure.entropy import renyi_from_power
from coinhaze.measure.intervals import slack_from_each, slack_from_total, surprise
from coinhaze.solve.factor import ROUNDING, Factor, factorise
from coinhaze.solve.progress import Progress, silent
from coinhaze.solve.reduce import NO_STATE, Reduced, kept_excess, reduce_chain
from coinhaze.solve.stream_kernels import WIDTH, solve_tile, start_tile, sum_tile, weigh_tile
from coinhaze.solve.structure_kernels import count_outcomes, reachable

EXACT_WIDTH = 1e-9
CERTIFICATE = 1e-9


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums over the outcomes of each scored state."""

    entropy: Floats
    mass: Floats
    prior: Floats
    top: Floats
    top_column: Ints
    powers: Floats
    elsewhere: Floats
    conservation: float | None


def score_exactly(
    chain: AbsorbingChain,
    rows: Ints,
    *,
    method: str,
    width: float = EXACT_WIDTH,
    renyi: Sequence[float] = (),
    threads: int | None = None,
    progress: Progress = silent,
    reduced: Reduced | None = None,
) -> Scores:
    """Score rows by streaming B; raise if the proven interval is wider than asked."""
    reduced = reduced or reduce_chain(chain, rows)
    factor = factorise(reduced)
    state = reduced.state[rows]
    answered = state != NO_STATE
    scored, row_of = np.unique(factor.place[state[answered]], return_inverse=True)
    orders = np.array([o for o in renyi if o not in (0, 1) and np.isfinite(o)])
    sums = _stream(chain, reduced, factor, scored, orders, threads, progress)
    counts = _count_sources(chain, reduced, factor)[scored]
    steps = factor.solve(factor.cost)[scored]
    bits = sums.entropy + surprise(sums.elsewhere) + sums.prior
    low, high = _interval(factor, scored, bits, counts)
    worst = float(np.abs(sums.mass + sums.elsewhere - 1).max(initial=0.0))
    if worst > CERTIFICATE:
        raise AccuracyError(f"a row of B sums to 1 {worst:+.2e}: mass was lost; no score is given")
    if sums.conservation is not None and sums.conservation > CERTIFICATE:
        raise AccuracyError(f"x^T B differs from b by {sums.conservation:.2e}; no score is given")
    reached = float((high - low).max(initial=0.0))
    if reached > width:
        raise AccuracyError(
            f"the proven interval is {reached:.2e} bits wide at its widest, above the asked "
            f"{width:.0e}: rounding over so many steps cannot be bounded better; "
            f"ask for accuracy={reached:.0e} or wider"
        )
    spread = _spreader(answered, row_of)
    listed = sums.mass
    with np.errstate(divide="ignore", invalid="ignore"):
        conditional = np.where(listed > 0, sums.entropy / listed + np.log2(listed), np.nan)
    extra = reduced.extra_steps[rows]
    exposure = spread(np.minimum(listed, 1.0))
    if chain.clean is not None:
        exposure = np.where(chain.clean[rows], 0.0, exposure)
    powers = {float(o): renyi_from_power(sums.powers[:, k], o) for k, o in enumerate(orders)}
    powers |= {0.0: np.log2(counts)} if 0 in renyi else {}
    powers |= {1.0: bits} if 1 in renyi else {}
    powers |= {np.inf: -np.log2(sums.top)} if np.inf in renyi else {}
    return Scores(
        chain=chain,
        nodes=rows,
        bits=spread(np.clip(bits, low, high)),
        bits_low=spread(low),
        bits_high=spread(high),
        steps=spread(steps) + extra,
        mass=spread(sums.mass + sums.elsewhere),
        sources=spread(counts),
        top=spread(sums.top_column, NO_COLUMN).astype(np.int64),
        top_probability=spread(sums.top),
        method=method,
        exposure=exposure if chain.listed else None,
        conditional_bits=spread(np.maximum(conditional, 0.0)) if chain.listed else None,
        bits_unmodified=spread(np.maximum(sums.entropy, 0.0)) if chain.history else None,
        renyi={o: spread(np.maximum(powers[float(o)], 0.0)) for o in renyi},
        conservation=sums.conservation,
    )


class _spreader:
    """Spreads values of scored states over the asked rows, null where there is no answer."""

    def __init__(self, answered: Bools, row_of: Ints) -> None:
        self.answered = answered
        self.row_of = row_of

    def __call__(self, values: Floats | Ints, missing: float = np.nan) -> Floats:
        result = np.full(len(self.answered), missing)
        result[self.answered] = values[self.row_of]
        return result


def _interval(factor: Factor, scored: Ints, bits: Floats, sources: Floats) -> tuple[Floats, Floats]:
    """Bound rounding. Two proofs hold for every row, and the narrower interval is taken.

    An error of relative size c in one state's moves changes each probability by at most 2c (every
    spanning forest of the chain uses one move of each state), and changes the row of a walk by at
    most 2c in total for each time it visits that state. See docs/accuracy.md.
    """
    degree = np.diff(factor.lower) + np.diff(factor.upper)
    cost = (2 * factor.row_error + degree + 10) * ROUNDING
    by_total = slack_from_total(1.01 * factor.solve(cost)[scored], sources)
    by_each = slack_from_each(1.01 * float(cost.sum()), bits)
    # Adding up -p log2 p: a tile's terms, then tile by tile, a few roundings each.
    tiles = -(-sources // WIDTH) + WIDTH
    slack = np.minimum(by_total, by_each) + 4 * tiles * ROUNDING * (bits + 2)
    low = np.maximum(bits - slack, 0.0)
    # The most the sources allow, with room for the rounding of log2 itself.
    high = np.minimum(bits + slack, np.log2(np.maximum(sources, 1)) * (1 + 4 * ROUNDING))
    return np.minimum(low, high), high


def _count_sources(chain: AbsorbingChain, reduced: Reduced, factor: Factor) -> Floats:
    """Count the sources each state can reach; one with a history counts as many as that has."""
    args = (reduced.indptr, reduced.indices, reduced.column, reduced.block_start)
    counts = count_outcomes(*args, len(chain.outcomes)).astype(np.float64)
    if chain.history:
        rows = np.repeat(np.arange(len(reduced)), np.diff(reduced.indptr))
        order = np.argsort(reduced.indices, kind="stable")
        back = np.searchsorted(reduced.indices[order], np.arange(len(reduced) + 1))
        for column, q in chain.history.items():
            hit = reachable(back, rows[order], reduced.column == column)
            counts[hit] += len(q) - 1
    result = np.empty(len(reduced))
    result[factor.place] = counts
    return result


def _stream(
    chain: AbsorbingChain,
    reduced: Reduced,
    factor: Factor,
    scored: Ints,
    orders: Floats,
    threads: int | None,
    progress: Progress,
) -> _Sums:
    n_columns, n = len(chain.outcomes), len(scored)
    prior_bits, prior_top = np.zeros(n_columns), np.ones(n_columns)
    prior_powers = np.ones((len(orders), n_columns))
    for column, q in chain.history.items():
        prior_bits[column] = float(surprise(q).sum())
        prior_top[column] = q.max()
        prior_powers[:, column] = [(q**o).sum() for o in orders]
    # Outcomes are renumbered in the order the sweep meets them, so that a tile's outcomes are near
    # each other and most states need not be touched for it.
    met = factor.column[factor.column != NO_COLUMN]
    _, first_met = np.unique(met, return_index=True)
    columns = met[np.sort(first_met)]
    number = np.full(n_columns + 1, NO_COLUMN)
    number[columns] = np.arange(len(columns))
    excess = np.zeros(len(factor))
    if chain.conserves:
        x = kept_excess(chain, reduced.kept)
        np.add.at(excess, factor.place[reduced.state[reduced.kept]], x[reduced.kept])

    elsewhere_at = number[chain.elsewhere] if chain.elsewhere >= 0 else -1
    column_at = number[factor.column]
    priors = prior_bits[columns], prior_top[columns], prior_powers[:, columns]

    def solve(first: int) -> tuple[Any, ...]:
        x, live = workspaces.pop()
        start_tile(factor.own, column_at, first, x, live)
        solve_tile(*factor.arrays(), x, live)
        sums = tuple(np.empty(n) for _ in range(4))
        out = (*sums, np.empty(n, dtype=np.int64), np.empty((n, len(orders))), np.empty(n))
        sum_tile(x, live, first, scored, elsewhere_at, *priors, orders, *out)
        conserved = weigh_tile(x, live, excess) if chain.conserves else np.zeros(WIDTH)
        workspaces.append((x, live))
        return (*out, conserved)

    workers = max(1, threads or os.cpu_count() or 1)
    workspaces = [
        (np.zeros((len(factor), WIDTH)), np.zeros(len(factor), dtype=np.bool_))
        for _ in range(workers)
    ]
    entropy, mass, prior, top, elsewhere = (np.zeros(n) for _ in range(5))
    top_column = np.full(n, NO_COLUMN)
    powers = np.zeros((n, len(orders)))
    conserved = []
    starts = range(0, len(columns), WIDTH)
    with ThreadPoolExecutor(workers) as pool:
        # Tiles are handed out a few at a time: their sums wait in memory to be added in order.
        for batch in range(0, len(starts), 2 * workers):
            for done in pool.map(solve, starts[batch : batch + 2 * workers]):
                entropy += done[0]
                mass += done[1]
                prior += done[2]
                better = done[3] > top
                top = np.where(better, done[3], top)
                top_column = np.where(better, done[4], top_column)
                powers += done[5]
                elsewhere += done[6]
                conserved.append(done[7])
            progress(min(1.0, (batch + 2 * workers) / max(len(starts), 1)))
    conservation = None
    if chain.conserves and len(columns):
        opening = np.zeros(n_columns)
        assert chain.graph.opening is not None
        source = chain.column != NO_COLUMN
        opening[chain.column[source]] = chain.graph.opening.take(source).floats()
        b = opening[columns]
        conservation = float(np.abs(np.concatenate(conserved)[: len(b)] / b - 1).max())
    return _Sums(
        entropy=entropy,
        mass=mass,
        prior=prior,
        top=top,
        top_column=np.where(top_column >= 0, columns[top_column], NO_COLUMN),
        powers=powers,
        elsewhere=elsewhere,
        conservation=conservation,
    )
