"""Slow twins on dense arrays: B = (I - Q)^-1 R by numpy, reachability by matrix powers."""

from __future__ import annotations

import numpy as np

from coinhaze import AbsorbingChain
from coinhaze.amounts import Bools, Floats


def absorption(chain: AbsorbingChain, nodes: Bools) -> tuple[Floats, Floats]:
    """Give B and the expected steps of the given nodes."""
    q = chain.Q.toarray()[np.ix_(nodes, nodes)]
    r = chain.R.toarray()[nodes]
    fundamental = np.linalg.inv(np.eye(len(q)) - q)
    return fundamental @ r, fundamental.sum(axis=1)


def reach(q: Floats) -> Bools:
    """Tell which nodes each node can reach, itself included."""
    can = (q > 0) | np.eye(len(q), dtype=np.bool_)
    for _ in range(len(q).bit_length()):
        can = can @ can
    return can


def entropy(b: Floats) -> Floats:
    """Give the entropy of each row in bits."""
    safe = np.where(b > 0, b, 1.0)
    bits: Floats = -(safe * np.log2(safe)).sum(axis=1)
    return bits
