"""One coin's largest flows: followed back on the chain itself, with what was left out stated."""

from __future__ import annotations

from typing import ClassVar, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from coinhaze.amounts import Floats, Ints
from coinhaze.observer import AbsorbingChain
from coinhaze.solve.local.trace_kernels import NO_SLOT, trace_back
from coinhaze.solve.planner import thresholds


class Trace(NamedTuple):
    """Nodes a walk back was followed through, in order of number."""

    nodes: Ints
    visits: Floats  # how often a walk comes by, at least
    missing: float  # the mass that was not followed to its end


class _Slots:
    """For every node where a trace holds it; kept with the chain, empty between questions."""

    ready: ClassVar[WeakKeyDictionary[AbsorbingChain, npt.NDArray[np.int32]]] = WeakKeyDictionary()

    @classmethod
    def take(cls, chain: AbsorbingChain) -> npt.NDArray[np.int32]:
        """Take the slots of a chain away, so that no two questions share them."""
        slots = cls.ready.pop(chain, None)
        return np.full(len(chain), NO_SLOT, dtype=np.int32) if slots is None else slots


def trace(
    chain: AbsorbingChain, node: int, *, ordered: bool, finest: float = thresholds.MIN_FLOW
) -> Trace:
    """Follow money back from a node: shares above 10 %, then above 1 %, and so on, to `finest`.

    Ends where every share above `finest` was followed, where a thousandth is left after some
    moves, or after many moves. What is given is a part of the walk: every visit is at least as
    likely as said.
    """
    q, slots = chain.Q, _Slots.take(chain)
    nodes, visits, mass = trace_back(
        q.indptr,
        q.indices,
        q.data,
        node,
        ordered,
        finest,
        thresholds.ENOUGH,
        thresholds.FEW_TRACED_MOVES,
        thresholds.MAX_TRACED_MOVES,
        slots,
    )
    _Slots.ready[chain] = slots
    passed = np.flatnonzero(visits > 0)
    passed = passed[np.argsort(nodes[passed])]
    return Trace(nodes[passed], visits[passed], float(mass.sum()))
