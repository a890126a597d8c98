"""The sweep with sparse lists, for acyclic chains: exact, or with proven truncation.

Each state's row of B is a list of the outcomes it can end in; a state's list is its predecessors'
lists mixed, and is freed at its last use. Entries below `least` may be dropped. Then a row is
b = q + r with q kept and r dropped, and three numbers travel with each list:

- `missing` m, the mass of r;
- `above`, at least the sum of phi(r_c), phi(x) = -x log2 x. Since phi(x + y) <= phi(x) + phi(y),
  dropped pieces may be taken as apart: pieces scaled by w add w above + phi(w) m. So
  H <= sum phi(q_c) + above;
- `below`, at most m times the entropy of r / m. Entropy is concave, so mixing adds up what the
  parts had: H >= sum phi(q_c) - phi(1 - m) + below. Also H is at least what it would be if all
  that is missing were on the largest entry; the better bound is taken.

All three are linear in the chain, so they cost one number each a state.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from coinhaze.errors import ResourceError
from coinhaze.ledger.amounts import Floats
from coinhaze.solve.asked import Asked
from coinhaze.solve.columns import Columns
from coinhaze.solve.lists_kernels import sweep_lists
from coinhaze.solve.progress import Progress
from coinhaze.solve.sums import Sums
from coinhaze.solve.workers import workers_for

# Bytes an entry of a list takes: outcome and probability, twice over while the lists grow.
ENTRY = 24
MEMORY = 3 << 30


def list_sums(
    asked: Asked,
    columns: Columns,
    orders: Floats,
    *,
    least: float = 0.0,
    blocks: int = 1,
    memory: int = MEMORY,
    threads: int | None,
    progress: Progress,
) -> tuple[Sums, Floats]:
    """Add every scored row of an acyclic chain up over all columns; also give x^T B.

    Columns are swept in `blocks`, one after the other or by several threads: contributions of
    columns add up, so the blocks change nothing but rounding. Only a run without dropping
    (`least` 0) can be cut into blocks: what is dropped must be seen whole.
    """
    reduced, priors = asked.reduced, columns.priors
    scored = np.full(len(reduced), -1)
    scored[asked.scored] = np.arange(len(asked.scored))
    uses = np.bincount(reduced.indices, minlength=len(reduced))
    workers = workers_for(blocks, threads)
    most = memory // (ENTRY * workers)
    edges = np.linspace(0, len(columns), blocks + 1).astype(np.int64)

    def sweep(block: int) -> tuple[Sums, Floats]:
        first, last = int(edges[block]), int(edges[block + 1])
        part = Sums.zeros(len(asked.scored), len(orders))
        weighed = np.zeros(last - first)
        peak = sweep_lists(
            reduced.indptr, reduced.indices, reduced.data, reduced.own, columns.of_state, uses,
            scored, first, last, least, most, priors.bits, priors.top, priors.powers, orders,
            columns.elsewhere, asked.excess, weighed, *part.arrays(),
        )  # fmt: skip
        if peak < 0:
            raise ResourceError(
                f"the lists of outcomes passed {memory >> 20} MB: allow more memory, "
                "more blocks, or a wider interval"
            )
        return part, weighed

    total = Sums.zeros(len(asked.scored), len(orders))
    weights = np.zeros(len(columns))
    with ThreadPoolExecutor(workers) as pool:
        for block, (part, weighed) in enumerate(pool.map(sweep, range(blocks))):
            total.add(part)
            weights[edges[block] : edges[block + 1]] = weighed
            progress((block + 1) / blocks)
    return total, weights
