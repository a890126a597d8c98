"""A chain made ready for single questions: every node bounded, and what need not be pushed merged.

What the bounds and tree states are, and why they hold, is said at the top of row.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.observer import AbsorbingChain
from coinhaze.observer.chain import NO_COLUMN
from coinhaze.solve.local.bounded_kernels import (
    LOST,
    TREE_STATE,
    bound_nodes,
    condense,
    count_in_degree,
    follow,
    number_states,
)
from coinhaze.solve.priors import Priors
from coinhaze.solve.structure.components_kernels import strong_components
from coinhaze.solve.structure.reduce import certain_nodes
from coinhaze.solve.structure.reduce_kernels import is_in_order

Int32s = npt.NDArray[np.int32]
Kinds = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class BoundedChain:
    """States with moves to other states and to ends, and what is private to each state."""

    ordered: bool  # whether moves lead to lower numbers only
    kind: Kinds  # of every node: PLAIN, ALIAS, TREE_STATE, LOST
    number: Int32s  # of every node its state or end
    node_low: Floats  # bounds of every node's bits ...
    node_high: Floats
    steps: Floats  # ... and its expected steps, NaN where it reaches a loop
    first: Ints  # the chain's own rows, to follow nodes that pass mass on
    before: Int32s
    start: Ints
    to: Int32s
    share: Floats
    size: Floats  # how many moves of the chain a state's row is made of
    private: Floats  # what each state ends in by itself, and the sums of its pieces
    private_low: Floats
    private_high: Floats
    low: Floats  # bounds of states, then of ends
    high: Floats
    gap: npt.NDArray[np.float32]
    ends: Ints
    most_bits: float  # log2 of the number of all origins

    def __len__(self) -> int:
        return len(self.size)

    @classmethod
    def of(cls, chain: AbsorbingChain) -> BoundedChain:
        """Bound every node and cut the chain down, in a few passes over it."""
        n, q = len(chain), chain.Q
        moves = (q.indptr, q.indices, q.data, chain.walk.own, chain.column)
        prior = Priors.of(chain, np.zeros(0)).bits
        ended = chain.column[(chain.column != NO_COLUMN) & (chain.walk.own > 0)]
        single = np.bincount(ended, minlength=len(chain.outcomes)) == 1
        ordered = bool(is_in_order(q.indptr, q.indices))
        order, looped, kind = _order(chain, ordered=ordered)
        in_degree = count_in_degree(q.indptr, q.indices)
        low, high, steps = np.zeros(n), np.zeros(n), np.zeros(n)
        bound_nodes(*moves, single, prior, order, looped, in_degree, kind, low, high, steps)
        number = np.empty(n, dtype=np.int32)
        states = int(number_states(kind, number))
        plain = np.flatnonzero(number >= 0)
        most_ends = int(
            np.count_nonzero((kind == TREE_STATE) & (in_degree > 1)) + np.count_nonzero(~single)
        )
        room = int((q.indptr[plain + 1] - q.indptr[plain] + 1).sum())
        start = np.zeros(states + 1, dtype=np.int64)
        to, share = np.empty(room, dtype=np.int32), np.empty(room)
        size, private = np.zeros(states), np.zeros(states)
        private_low, private_high = np.zeros(states), np.zeros(states)
        ends = np.zeros(most_ends, dtype=np.int64)
        found = condense(
            *moves, single, prior, kind, in_degree, low, high, number, states,
            start, to, share, size, private, private_low, private_high,
            ends, np.full(len(single), -1, dtype=np.int32),
        )  # fmt: skip
        ends = ends[:found].copy()
        both = [
            np.concatenate([bound[plain], np.where(ends >= 0, bound[ends], 0.0)])
            for bound in (low, high)
        ]
        shared = np.flatnonzero(ends < 0)
        for bound in both:
            bound[states + shared] = prior[-1 - ends[shared]]
        return cls(
            ordered=ordered,
            kind=kind,
            number=number,
            node_low=low,
            node_high=high,
            steps=steps,
            first=q.indptr,
            before=q.indices,
            start=start,
            to=to[: start[-1]].copy(),
            share=share[: start[-1]].copy(),
            size=size,
            private=private,
            private_low=private_low,
            private_high=private_high,
            low=both[0],
            high=both[1],
            gap=(both[1] - both[0])[:states].astype(np.float32),
            ends=ends,
            most_bits=math.log2(max(float(np.exp2(prior).sum()), 1.0)),
        )

    def lost(self, node: int) -> bool:
        """Tell whether a walk back from a node may never end."""
        return bool(self.kind[node] == LOST)

    def known(self, node: int) -> tuple[float, float]:
        """Give the bounds of a node's bits."""
        return float(self.node_low[node]), float(self.node_high[node])

    def state(self, node: int) -> int:
        """Give the state or end where mass at a node comes to rest."""
        return int(self.number[follow(node, self.kind, self.first, self.before)])


def _order(chain: AbsorbingChain, *, ordered: bool) -> tuple[Ints, Bools, Kinds]:
    """Order nodes so that each comes after all it reaches; tell which are in loops, and lost."""
    n, q = len(chain), chain.Q
    kind = np.zeros(n, dtype=np.uint8)
    if ordered:
        return np.arange(n), np.zeros(n, dtype=np.bool_), kind
    count, component = strong_components(q.indptr, q.indices)
    looped = np.bincount(component, minlength=count)[component] > 1
    looped |= q.diagonal() > 0
    kind[~certain_nodes(chain)] = LOST
    return np.argsort(component, kind="stable"), looped, kind
