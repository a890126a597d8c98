"""What the paper's series costs on a chain: all slices, or a sample of them scaled up.

The rule as published: Q^k R is added up for 16 columns at a time until no entry of a slice exceeds
0.001. Slices run in as many threads as ours use, with scipy's sparse times dense product, whose
cost for one entry is measured beside a bare product, so that the baseline is no straw man.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse

from coinhaze import AbsorbingChain

SLICE = 16
THRESHOLD = 0.001


@dataclass(frozen=True)
class Cost:
    """Time of the series on one chain; scaled up where only some slices were run."""

    cpu: float
    wall: float
    slices: int
    run: int
    products: float  # of each slice, on average
    entry_ns: float  # CPU time for each entry of a product, in nanoseconds
    bare_ns: float  # the same of a bare product
    scaled: bool  # whether some slices or products were left out


def cost_of_series(
    chain: AbsorbingChain, *, tolerance: float | None, seconds: float, threads: int, seed: int = 1
) -> Cost:
    """Run slices in a random order until all are done or the time is up, and scale up.

    `tolerance` None is the published rule; a number is the mass the worst row may miss, so that
    every slice needs as many products as that takes.
    """
    q, r = chain.Q, scipy.sparse.csc_array(chain.R)
    slices = -(-r.shape[1] // SLICE)
    order = np.random.default_rng(seed).permutation(slices)
    fixed = None if tolerance is None else products_for(chain, tolerance, seconds)

    wall = time.perf_counter()

    def run(k: int) -> int:
        part = r[:, k * SLICE : (k + 1) * SLICE].toarray()
        total = part.copy()
        products = 0
        while products < fixed if fixed is not None else part.max() > THRESHOLD:
            part = q @ part
            total += part
            products += 1
            # With a fixed number of products each costs the same: some of them tell.
            if fixed is not None and time.perf_counter() - wall > seconds:
                break
        return products

    bare = _bare(q)
    cpu, wall = time.process_time(), time.perf_counter()
    done, products = 0, 0
    with ThreadPoolExecutor(threads) as pool:
        while done < slices and time.perf_counter() - wall < seconds:
            some = order[done : done + 2 * threads].tolist()
            products += sum(pool.map(run, some))
            done += len(some)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    entries = max(products, 1) * q.nnz * SLICE
    whole = slices / done if fixed is None else slices * fixed / max(products, 1)
    return Cost(
        cpu * whole,
        wall * whole,
        slices,
        done,
        products / done if fixed is None else fixed,
        cpu / entries * 1e9,
        bare,
        whole > 1,
    )


def products_for(chain: AbsorbingChain, tolerance: float, seconds: float) -> int:
    """Count the products until no sink misses more than the tolerance of its mass."""
    alive = np.ones(len(chain))
    sinks = chain.graph.sinks
    begin = time.perf_counter()
    for k in range(1_000_000):
        worst = float(alive[sinks].max())
        if worst <= tolerance:
            return k
        if time.perf_counter() - begin > seconds:
            # A lower bound is fair to the series: it would need at least this many.
            return k
        alive = chain.Q @ alive
    return k


def _bare(q: scipy.sparse.csr_array) -> float:
    """Time a product of Q with a dense slice and nothing else."""
    x: npt.NDArray[np.float64] = np.random.default_rng(1).random((q.shape[1], SLICE))
    best = float("inf")
    for _ in range(3):
        begin = time.process_time()
        q @ x
        best = min(best, time.process_time() - begin)
    return best / (int(q.nnz) * SLICE) * 1e9
