"""The moves of some nodes of a chain, without a look at the others."""

from __future__ import annotations

import numpy as np

from coinhaze.amounts import Floats, Ints
from coinhaze.observer import AbsorbingChain


def moves_of(chain: AbsorbingChain, nodes: Ints) -> tuple[Ints, Ints, Floats]:
    """Give the moves of some nodes: which of them moves, to which predecessor, how likely."""
    q = chain.Q
    first = q.indptr[nodes].astype(np.int64)
    count = q.indptr[nodes + 1] - first
    at = np.repeat(np.arange(len(nodes)), count)
    place = np.arange(len(at)) - np.repeat(np.cumsum(count) - count, count) + first[at]
    return at, q.indices[place].astype(np.int64), q.data[place]
