"""A solve as moves without cycles, for engines that go through it once.

An acyclic chain is its own. A cyclic one is unrolled through its factors: a state i of a component
becomes two nodes, r_i = own_i + sum of lower_ik r_k (what forward elimination gathers) and
x_i = (r_i + sum of upper_ij x_j) / pivot_i, which is its row of B; in a core x = N r. All weights
are positive, so whatever holds for mixtures of lists along moves holds here; only rows of r sum to
less than 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coinhaze.amounts import Floats, Ints
from coinhaze.errors import ResourceError
from coinhaze.solve.exact.core import DenseCore
from coinhaze.solve.exact.factor import Factor
from coinhaze.solve.exact.triangles_kernels import unroll
from coinhaze.solve.structure.reduce import Reduced


@dataclass(frozen=True, eq=False)
class Moves:
    """Nodes in an order where every move leads to a lower number.

    The list of node i is own[i] on the column of state[i] (if any) plus the lists it moves to,
    each times its weight.
    """

    indptr: Ints
    indices: Ints
    data: Floats
    own: Floats
    state: Ints  # the state whose absorber a node ends in, -1 if none
    node: Ints  # the node that holds each state's row

    def __len__(self) -> int:
        return len(self.own)

    @cached_property
    def uses(self) -> Ints:
        """How many moves lead to each node: how often its list is read."""
        return np.bincount(self.indices, minlength=len(self)).astype(np.int32)

    @classmethod
    def straight(cls, reduced: Reduced) -> Moves:
        """Take an acyclic chain as it is."""
        every = np.arange(len(reduced))
        state = np.where(reduced.column >= 0, every, -1)
        return cls(reduced.indptr, reduced.indices, reduced.data, reduced.own, state, every)

    @classmethod
    def unrolled(cls, reduced: Reduced, factor: Factor) -> Moves:
        """Unroll a cyclic chain through its factors."""
        if factor.sweeps:
            raise ResourceError(
                "a component with a core of "
                f"{max(len(c) for c in factor.cores.values())} states cannot be unrolled"
            )
        first = np.minimum.reduceat(factor.place, reduced.block_start[:-1])
        sizes, at, inverses = _cores(factor, first)
        indptr, indices, data, node, source = unroll(
            *factor.arrays()[:7], first, np.diff(reduced.block_start), sizes, at, inverses
        )
        own = np.zeros(len(indptr) - 1)
        state = np.full(len(own), -1)
        ends = np.flatnonzero(reduced.column >= 0)
        own[source[factor.place[ends]]] = reduced.own[ends]
        state[source[factor.place[ends]]] = ends
        return cls(indptr, indices, data, own, state, node[factor.place])

    def columns(self, of_state: Ints) -> Ints:
        """Give the column each node ends in, from those of states."""
        return np.append(of_state, -1)[self.state]


def _cores(factor: Factor, first: Ints) -> tuple[Ints, Ints, Floats]:
    """Give the size of each block's core, where its inverse begins, and all inverses."""
    sizes = np.zeros(len(first), dtype=np.int64)
    at = np.zeros(len(first), dtype=np.int64)
    inverses = [np.zeros(0)]
    block_at = {int(place): block for block, place in enumerate(first)}
    for block, core in factor.cores.items():
        assert isinstance(core, DenseCore)
        b = block_at[int(factor.block_start[block])]
        sizes[b] = len(core)
        at[b] = sum(len(i) for i in inverses)
        inverses.append(core.inverse.ravel())
    return sizes, at, np.concatenate(inverses)
