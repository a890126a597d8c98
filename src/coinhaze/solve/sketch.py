"""The entropy sketch: any chain at linear cost, bits with a standard error.

Every source gets k independent draws X of the 1-stable law skewed to the left, for which E
exp(cX) = c^c (Clifford and Cosma, AISTATS 2013). Propagated like amounts they give y = B X, and
since the draws are independent, E exp(y) = prod p^p = exp(-H). So H is -ln of the mean of exp(y),
with relative variance 3/k whatever the number of sources: a standard error of 2.50/sqrt(k) bits,
and a bias of 3/(2k) nats that is taken off. A source that stands for a history q has the sum of
q_j X_j, which is X - H(q) in distribution.

Draws are a hash of the source's name and a seed, so that any part of the work can be done anywhere.
Errors are shared by rows with common ancestors, so the mean over rows errs nearly as much as one
row does: `mean_error` is its standard error, measured over independent tiles of draws.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from coinhaze.chain import AbsorbingChain
from coinhaze.chain.chain import NO_COLUMN
from coinhaze.errors import UsageError
from coinhaze.ledger.amounts import Bools, Floats, Ints
from coinhaze.ledger.text import text_hashes
from coinhaze.measure import Scores
from coinhaze.solve.asked import Asked
from coinhaze.solve.columns import Columns
from coinhaze.solve.fold import Folded, fold
from coinhaze.solve.progress import Progress, silent
from coinhaze.solve.sketch_kernels import start_draws, sum_draws
from coinhaze.solve.stream_kernels import WIDTH
from coinhaze.solve.workers import UNLIMITED, Budget

DRAWS = 256
# Standard deviation of the estimate times sqrt(k), in bits: sqrt(3) nats.
SPREAD = math.sqrt(3) / math.log(2)
# What sweeps over cores may leave out of a row: far less than the standard error.
MISSING = 1e-4


def sketch(
    chain: AbsorbingChain,
    rows: Ints,
    *,
    draws: int = DRAWS,
    seed: int = 0,
    budget: Budget = UNLIMITED,
    progress: Progress = silent,
    folded: Folded | None = None,
) -> Scores:
    """Estimate bits of rows from `draws` columns; `bits_error` is the standard error."""
    if draws < 1 or draws % WIDTH:
        raise UsageError(f"draws come in tiles: a multiple of {WIDTH}, not {draws}")
    if chain.listed:
        raise UsageError("a list has few outcomes, which are cheap to score exactly")
    folded = folded or fold(Asked.of(chain, rows, missing=MISSING), np.zeros(0))
    asked, columns = folded.asked, folded.columns
    total, means = _exponentials(asked, columns, draws, seed, budget, progress)
    most = math.log2(max(1.0, float(columns.priors.count.sum())))
    alone, known = _known(asked, columns)
    nats = np.where(alone, known, _nats(total, draws))
    null = np.where(asked.answered, 0.0, np.nan)
    return Scores(
        chain=chain,
        nodes=rows,
        bits=asked.spread(np.clip(nats / math.log(2), 0.0, most)),
        bits_low=null,
        bits_high=most + null,
        bits_error=asked.spread(np.where(alone, 0.0, SPREAD / math.sqrt(draws))),
        mean_error=float(np.std(means, ddof=1)) / math.sqrt(len(means)) if len(means) > 1 else None,
        steps=asked.steps(),
        mass=1.0 + null,
        sources=np.full(len(rows), np.nan),
        top=np.full(len(rows), NO_COLUMN),
        top_probability=np.full(len(rows), np.nan),
        method=f"sketch (k={draws}, seed {seed})",
    )


def _nats(total: Floats, draws: int) -> Floats:
    """Turn sums of exp(y) over draws into estimates of entropy, their bias taken off."""
    nats: Floats = -np.log(total / draws) - 1.5 / draws
    return nats


def _known(asked: Asked, columns: Columns) -> tuple[Bools, Floats]:
    """Tell which scored states have one column only, and the nats of those."""
    alone: Bools = (np.diff(asked.reduced.indptr) == 0)[asked.scored]
    nats = columns.priors.total[columns.of_state[asked.scored]] * math.log(2)
    return alone, nats


def _exponentials(
    asked: Asked, columns: Columns, draws: int, seed: int, budget: Budget, progress: Progress
) -> tuple[Floats, list[float]]:
    """Give the sum of exp(y) over all draws for every scored state, tiles added in order.

    Also give the mean bits of all rows by each tile alone: tiles are independent, so these means
    show how far the mean can be trusted, however much rows have in common.
    """
    factor = asked.factor
    source = text_hashes(asked.chain.outcomes.take(pa.array(columns.likeliest)))
    law = (source, columns.priors.total * math.log(2), seed)
    own, column = asked.reduced.own[factor.back], columns.of_state[factor.back]
    # Rare absorption does not fit single precision.
    single = float(factor.pivot.min(initial=1.0)) > 1e-30
    kind = np.float32 if single else np.float64
    rows = (own, column, factor.lower, factor.lower_at, factor.lower_v.astype(kind))
    scored = factor.place[asked.scored]
    wanted = np.zeros(len(factor), dtype=np.bool_)
    wanted[scored] = True
    needed = factor.needed(wanted)
    mass = 1.0 - factor.missing()[asked.scored]
    workspaces = budget.tiles(factor.inner, draws // WIDTH, kind=kind)
    workers = len(workspaces)

    def solve(first: int) -> Floats:
        x, live = workspaces.pop()
        start_draws(own, column, *law, first, x, live)
        factor.solve_tile(x, live, needed)
        part = np.zeros(len(scored))
        sum_draws(x, live, *rows, *law, first, scored, mass, part)
        workspaces.append((x, live))
        return part

    total = np.zeros(len(scored))
    rows_of = np.bincount(asked.row_of, minlength=len(scored))
    alone, known = _known(asked, columns)
    means = []
    with ThreadPoolExecutor(workers) as pool:
        for done, part in enumerate(pool.map(solve, range(0, draws, WIDTH)), 1):
            total += part
            if len(scored):
                nats = np.where(alone, known, _nats(part, WIDTH))
                means.append(float(np.average(nats, weights=rows_of)) / math.log(2))
            progress(done * WIDTH / draws)
    return total, means
