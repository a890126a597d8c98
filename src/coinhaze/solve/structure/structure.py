"""What is worked out of one chain, once: order, certainty, bounds of nodes, lumped questions.

A chain is immutable, so all of this stays true of it. Functions that need it take a `Structure`
where somebody holds one (a session does), and make one where they are given a bare chain.
"""

from __future__ import annotations

from functools import cached_property

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.observer import AbsorbingChain
from coinhaze.solve.local.row import BoundedChain, LocalSolver
from coinhaze.solve.local.walk import BackwardWalk, WalkMoves
from coinhaze.solve.planner import thresholds
from coinhaze.solve.pool import UNLIMITED, Budget
from coinhaze.solve.query import Query
from coinhaze.solve.structure.lump import LumpedChain, lump
from coinhaze.solve.structure.reduce import certain_nodes, reduce_chain
from coinhaze.solve.structure.reduce_kernels import is_in_order


class Structure:
    """A chain, and what was worked out of it so far.

    >>> import coinhaze, numpy as np
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    >>> structure = Structure(coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger)))
    >>> structure.is_ordered, structure.lump(np.array([2]), np.zeros(0)).query.reduced.acyclic
    (True, True)
    """

    def __init__(self, chain: AbsorbingChain, *, bounded: BoundedChain | None = None) -> None:
        self.chain = chain
        self._given = bounded
        self._latest: tuple[tuple[bytes, bytes, float, bool], LumpedChain] | None = None

    @classmethod
    def of(cls, chain: AbsorbingChain | Structure) -> Structure:
        """Take a structure as it is; make one of a bare chain."""
        return chain if isinstance(chain, Structure) else cls(chain)

    @cached_property
    def is_ordered(self) -> bool:
        """Whether every move leads to a lower number, as in the coin view."""
        return bool(is_in_order(self.chain.Q.indptr, self.chain.Q.indices))

    @cached_property
    def certain(self) -> Bools:
        """Which nodes are absorbed with certainty; others have no answer."""
        return certain_nodes(self.chain, ordered=self.is_ordered)

    @cached_property
    def bounded(self) -> BoundedChain:
        """The chain with every node's bits bounded, for questions about single nodes."""
        return BoundedChain.of(self.chain) if self._given is None else self._given

    @cached_property
    def local(self) -> LocalSolver:
        """What answers questions about single nodes."""
        return LocalSolver(self.bounded)

    def lump(
        self,
        rows: Ints,
        orders: Floats,
        *,
        missing: float = thresholds.EXACT_MISSING,
        merge: bool = True,
        budget: Budget = UNLIMITED,
    ) -> LumpedChain:
        """Reduce and lump the chain for some rows; the latest answer is held, with its factors."""
        key = (rows.tobytes(), orders.tobytes(), missing, merge)
        latest = self._latest
        if latest is not None and latest[0] == key:
            return latest[1]
        budget.fits(self._lumping_bytes(), "reducing the chain")
        reduced = reduce_chain(
            self.chain,
            rows,
            merge=merge,
            ordered=self.is_ordered,
            certain=self.certain,
            budget=budget,
        )
        query = Query.by(self.chain, rows, reduced, missing=missing)
        found = lump(query, orders, merge=merge, budget=budget)
        self._latest = key, found
        return found

    def _lumping_bytes(self) -> int:
        """Estimate the most bytes that reducing and lumping take beside the chain.

        Measured on simulated weeks, a tenth to a third of each.
        """
        in_time = self.chain.graph.settings.get("time") == "temporal"
        each = thresholds.LUMPING_BYTES_IN_TIME if in_time else thresholds.LUMPING_BYTES
        return each * (len(self.chain) + int(self.chain.Q.nnz))

    @cached_property
    def walk(self) -> BackwardWalk:
        """The walk back over the chain's moves, with room for one question at a time."""
        q = self.chain.Q
        return BackwardWalk(WalkMoves.of(q.indptr, q.indices, q.data), ordered=self.is_ordered)
