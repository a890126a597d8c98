"""One node's past as a small chain of its own: all of it, or what carries nearly all its money.

What lies outside is never guessed at: every share is a lower bound, and `missing` says how much
was not followed to its end. A past that is `whole` misses nothing but roundings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.observer import AbsorbingChain
from coinhaze.observer.chain import NO_COLUMN
from coinhaze.solve.local.past_kernels import arrive, nearest
from coinhaze.solve.local.walk import BackwardWalk, Trace, WalkMoves
from coinhaze.solve.planner import thresholds
from coinhaze.solve.structure.structure import Structure


@dataclass(frozen=True, eq=False)
class Past:
    """Nodes a walk back from one node comes to, in order of number, and their moves.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    >>> chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    >>> past_of(chain, 2).shares().tolist()
    [0.25, 0.75]
    """

    chain: AbsorbingChain
    node: int
    nodes: Ints
    first: Ints  # the moves of each node begin here ...
    before: Ints  # ... and lead to these nodes of the chain ...
    to: Ints  # ... by their place in `nodes`, -1 where they are not followed ...
    chance: Floats  # ... with this probability
    whole: bool
    ordered: bool

    @classmethod
    def along(
        cls,
        chain: AbsorbingChain,
        node: int,
        nodes: Ints,
        *,
        whole: bool = False,
        ordered: bool = False,
    ) -> Past:
        """Take some nodes, in order of number, as a node's past.

        `whole` says that no other is left out, `ordered` that moves lead to lower numbers only.
        """
        at, before, chance = chain.moves_of(nodes)
        to = np.minimum(np.searchsorted(nodes, before), len(nodes) - 1)
        return cls(
            chain=chain,
            node=node,
            nodes=nodes,
            first=np.searchsorted(at, np.arange(len(nodes) + 1)),
            before=before,
            to=np.where(nodes[to] == before, to, -1),
            chance=chance,
            whole=whole,
            ordered=ordered,
        )

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def at(self) -> Ints:
        """The place each move begins at."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))

    @property
    def start(self) -> int:
        """The place of the node itself."""
        return int(np.searchsorted(self.nodes, self.node))

    @cached_property
    def own(self) -> Floats:
        """Of each node the chance to end there."""
        ends = self.chain.column[self.nodes] != NO_COLUMN
        return np.where(ends, self.chain.walk.own[self.nodes], 0.0)

    @cached_property
    def column(self) -> Ints:
        """Of each node the outcome it ends as, -1 if it does not."""
        return np.where(self.own > 0, self.chain.column[self.nodes], NO_COLUMN)

    @cached_property
    def _walked(self) -> tuple[Floats, float]:
        # All mass is pushed; where it may go round in loops, until next to nothing is left.
        minimum = 0.0 if self.ordered else thresholds.MIN_LOOPING_MASS / len(self)
        walk = self.walk
        with walk.begun(np.array([self.start]), np.ones(1)):
            walk.push(minimum, max_moves=thresholds.MAX_LOOPING_MOVES)
            found = walk.found()
        visits = np.zeros(len(self))
        visits[found.nodes] = found.visits
        return visits, float(found.mass.sum())

    @cached_property
    def walk(self) -> BackwardWalk:
        """The walk over these moves; what is not followed is an end."""
        to = np.where(self._left, len(self), self.to)
        return BackwardWalk(WalkMoves.of(self.first, to, self.chance), ordered=self.ordered, ends=1)

    @cached_property
    def _left(self) -> Bools:
        """Which moves are not followed: they lead outside, or to where no walk ever ends."""
        outside: Bools = self.to < 0
        n = len(self)
        if self.ordered:
            return outside
        from scipy.sparse.csgraph import breadth_first_order  # with all of scipy.linalg

        # Back from all ends at once: what is not come to leads to none.
        moves = np.flatnonzero(~outside & (self.chance > 0))
        ends = np.flatnonzero((self.own > 0) | (np.bincount(self.at[outside], minlength=n) > 0))
        tail = np.concatenate([self.to[moves], np.full(len(ends), n)])
        head = np.concatenate([self.at[moves], ends])
        turned = scipy.sparse.csr_array((np.ones(len(tail)), (tail, head)), shape=(n + 1, n + 1))
        met = np.zeros(n + 1, dtype=np.bool_)
        met[breadth_first_order(turned, n, return_predecessors=False)] = True
        return outside | ~met[self.to]

    def cut_at(self, listed: Bools) -> Past:
        """Give a past in which no walk goes on from a listed node: each meets one at most.

        So its visits of listed nodes are the chances to meet each first, and what it ends in
        elsewhere never met one. `listed` is about the chain's nodes.
        """
        return replace(self, chance=np.where(listed[self.nodes][self.at], 0.0, self.chance))

    @property
    def visits(self) -> Floats:
        """How often a walk comes by each node, at least."""
        return self._walked[0]

    @property
    def missing(self) -> float:
        """How much of the money was not followed to its end."""
        left = self._left
        out = self.visits[self.at[left]] * self.chance[left]
        return min(float(out.sum()) + self._walked[1], 1.0)

    @property
    def steps(self) -> float:
        """Expected steps of a walk, the one into its end among them; a lower bound unless whole."""
        return float(self.visits.sum())

    def outcomes(self, visits: Floats | None = None) -> tuple[Ints, Floats]:
        """Give the outcomes a walk can end in and their probabilities, largest first.

        `visits` are those to each node, if they are known from elsewhere.
        """
        visits = self.visits if visits is None else visits
        ends = np.flatnonzero(self.column != NO_COLUMN)
        found, place = np.unique(self.column[ends], return_inverse=True)
        share = np.bincount(place, visits[ends] * self.own[ends], len(found))
        order = np.argsort(-share, kind="stable")
        return found[order], share[order].astype(np.float64)

    def shares(self) -> Floats:
        """Give the probability to end at each node that can be an end."""
        ends = self.column != NO_COLUMN
        found: Floats = (self.visits * self.own)[ends]
        return found

    def passing(self, listed: Bools) -> Floats:
        """Give for each node the chances to pass a listed one, and to end before any: two columns.

        `listed` is about the chain's nodes. What is missing to 1 is not known.
        """
        here = listed[self.nodes]
        value = np.stack([here.astype(np.float64), np.where(here, 0.0, self.own)], axis=1)
        sweeps = max(10, thresholds.MAX_LOOPING_MOVES // (len(self.chance) + len(self)))
        minimum = thresholds.MIN_LOOPING_MASS
        arrive(self.first, self.to, self.chance, value, here, self.ordered, minimum, sweeps)
        return value

    def nearest_end(self, ends: Bools | None = None) -> int | None:
        """Count the steps to the nearest end, or node that is named, the one into it among them.

        None where there is no end, and where one outside of what was followed may be nearer.
        """
        there = self.own > 0 if ends is None else ends[self.nodes]
        moves = int(nearest(self.first, self.to, there, self.start))
        return None if moves < 0 else moves + 1


def past_of(
    chain: AbsorbingChain | Structure, node: int, *, whole: int = thresholds.MAX_WHOLE_PAST
) -> Past:
    """Find a node's past: all of it if that takes at most `whole` moves, else its largest flows."""
    structure = Structure.of(chain)
    walk = structure.walk
    with walk.begun(np.array([node]), np.ones(1)):
        is_whole = walk.reach(whole)
        nodes = walk.found().nodes
    if not is_whole:
        nodes = trace(structure, node, moves=thresholds.MAX_PAST_MOVES).passed
    return Past.along(structure.chain, node, nodes, whole=is_whole, ordered=structure.is_ordered)


def trace(
    chain: AbsorbingChain | Structure,
    node: int,
    *,
    finest: float = thresholds.MIN_FLOW,
    moves: int = thresholds.MAX_TRACED_MOVES,
) -> Trace:
    """Follow money back from a node along its largest flows (`follow_largest`)."""
    walk = Structure.of(chain).walk
    with walk.begun(np.array([node]), np.ones(1)):
        return follow_largest(walk, finest=finest, moves=moves)


def follow_largest(walk: BackwardWalk, *, finest: float, moves: int) -> Trace:
    """Follow shares above 10 %, then above 1 %, and so on, to `finest`.

    Ends where every share above `finest` was followed, where a thousandth is left after some
    moves, or after so many `moves`. What is given is a part of the walk: every visit is at least
    as likely as said.
    """
    minimum, made = 1.0, 0
    while minimum > finest and made < moves:
        if made >= thresholds.FEW_TRACED_MOVES and walk.resting <= thresholds.ENOUGH:
            break
        minimum *= 0.1
        made += walk.push(minimum, max_moves=moves - made - 1)
    return walk.found()
