"""Bits and steps by walking: an estimate that shares nothing with the solvers but the chain.

It costs walks times steps, whatever the size of the graph, so it checks full-size ledgers.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.walks_kernels import walk_back
from coinhaze import AbsorbingChain
from coinhaze.amounts import Floats, Ints


def estimate(
    chain: AbsorbingChain,
    rows: Ints,
    *,
    walks: int = 4096,
    seed: int = 1,
    max_steps: int = 1_000_000,
) -> tuple[Floats, Floats]:
    """Walk back from each of the rows many times: bits of where walks ended, and mean steps.

    Draws show too few of many rare origins: on a tenth of an ethereum-week 2 048 plain counts,
    Miller-Madow corrected too, missed 0.4 of 3.8 bits on average. So unseen origins are reckoned
    in (Chao & Shen 2003). Not a number where a walk was not absorbed.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 1)])
    >>> chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    >>> bits, steps = estimate(chain, np.array([chain.graph.names.node("c")]), walks=1000)
    >>> round(float(bits[0]), 2), float(steps[0])
    (1.0, 2.0)
    """
    reach = _running(chain.Q.data, chain.Q.indptr)
    nats, steps = walk_back(
        chain.Q.indptr.astype(np.int64),
        chain.Q.indices,
        reach,
        chain.walk.own,
        chain.column,
        rows.astype(np.int64),
        walks,
        seed,
        max_steps,
    )
    return nats / math.log(2), steps


def _running(chances: Floats, indptr: Ints) -> Floats:
    """Add up the chances of each row as they come."""
    total = np.cumsum(chances)
    before = np.concatenate([[0.0], total])[indptr[:-1]]
    running: Floats = total - np.repeat(before, np.diff(indptr))
    return running
