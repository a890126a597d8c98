"""One row of B to a requested width, on as little of the coin's past as that takes.

Mass 1 starts at the coin. Pushing a node hands its mass on to its predecessors and its own
outcome, so at any time b = what has ended + sum_j r_j B_j, with r_j the mass that rests at node j.
That holds exactly whatever was pushed; what rests is bounded. Once for a chain, in time and memory
that grow with it, every node is bounded and the chain cut down to few states; a question then
touches only what it needs.

*Bounds of a node* (`bound_nodes`, one pass). phi(x) = -x log2 x.
- High. The way a walk takes tells where it ends, so U(j) <= H(row j) + sum_k q_jk High(k); and
  U(j) <= log2 of all the origins that come before j.
- Tree state. Call j one if each node behind it has in-degree 1: then every walk to what is behind j
  passes j, and the pasts of j's predecessors share nothing. So U(j) = H(row j) + sum_k q_jk U(k)
  exactly, and mass at j is one outcome with that inner entropy (chain rule): it need not be pushed.
  A source is the smallest tree state. A node whose outcome is shared with others is none.
- Low. Entropy is concave: U(j) >= sum_k q_jk Low(k). Predecessors that are tree states and lead to
  j alone share nothing with the rest, nor does an own opening: what they are apart adds in full.

*Few states* (`condense`): only nodes that are no tree states and do more than pass mass on count.

*The interval.* Let q be what is sure (ended, or at tree states), M its mass and S the sum of
phi(q_s) + q_s h_s; r what rests elsewhere, of mass m = 1 - M.
- phi(x + y) <= phi(x) + phi(y), so U <= S + sum_j phi(r_j) + r_j High(j).
- Entropy is concave, so U >= M H(q/M) + m H(r/m) >= S - phi(M) + sum_j r_j Low(j). Also, S grows
  least if all that rests falls on the largest piece.
- Roundings change b by at most d in all, the units in the last place of every partial sum and every
  pushed row (`walk_kernels.push`). |phi(x) - phi(y)| <= phi(|x - y|) up to 1/2, so U changes by at
  most d log2 n + phi(d) for n origins (Fannes).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.errors import AccuracyError, InputError
from coinhaze.graph.reverse import FORWARD
from coinhaze.measures.intervals import ROUNDING, at_least, phi
from coinhaze.observer import AbsorbingChain
from coinhaze.observer.chain import NO_COLUMN
from coinhaze.solve.certify import CERTIFICATE
from coinhaze.solve.local.row_kernels import (
    BINS,
    LOST,
    TREE_STATE,
    bound_nodes,
    condense,
    count_in_degree,
    follow,
    number_states,
    tally,
)
from coinhaze.solve.local.walk import BackwardWalk, WalkMoves
from coinhaze.solve.planner import thresholds
from coinhaze.solve.structure.reduce import certain_nodes
from coinhaze.solve.structure.reduce_kernels import is_in_order, strong_components
from coinhaze.solve.sums import Priors

# Without loops pieces seldom meet again: on made-up weeks of Bitcoin nine tenths of the truths lie
# above 0.8 of the interval.
LIKELY = 0.9
# What may remain of the requested width after a round, by what it does not push.
UNPUSHED_SHARE = 0.7
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
    max_bits: float  # log2 of the number of all origins

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
        max_ends = int(
            np.count_nonzero((kind == TREE_STATE) & (in_degree > 1)) + np.count_nonzero(~single)
        )
        room = int((q.indptr[plain + 1] - q.indptr[plain] + 1).sum())
        start = np.zeros(states + 1, dtype=np.int64)
        to, share = np.empty(room, dtype=np.int32), np.empty(room)
        size, private = np.zeros(states), np.zeros(states)
        private_low, private_high = np.zeros(states), np.zeros(states)
        ends = np.zeros(max_ends, dtype=np.int64)
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
            max_bits=math.log2(max(float(np.exp2(prior).sum()), 1.0)),
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


@dataclass(frozen=True, eq=False)
class LocalRow:
    """What is proven of one node's row."""

    node: int
    bits: float  # where in the interval the truth is likely to lie
    bits_low: float
    bits_high: float
    steps: float  # NaN where loops leave it open
    mass: float  # what ended or rests in parts whose entropy is known: the rest is bounded
    moves: int  # how many moves of the bounded chain were made
    shortfall: str | None = None  # why the interval is wider than requested, if it is

    @property
    def width(self) -> float:
        """How wide the interval is."""
        return self.bits_high - self.bits_low


def no_answer(chain: AbsorbingChain, node: int) -> InputError:
    """Say why a node's money has no origins."""
    name = chain.graph.names.of(np.array([node]))[0].as_py()
    clean = chain.clean is not None and chain.clean[node]
    if chain.graph.settings.get("direction") == FORWARD:
        why = "its money goes round for ever and rests nowhere"
    else:
        why = "no listed money ever reached it" if clean else "its past never ends"
    return InputError(f"{name} has no answer: {why}")


class PartialSums(NamedTuple):
    """Sums over pieces that are sure and masses that rest, as at the top of this module."""

    sure: float  # the mass of pieces ...
    sure_low: float  # ... their entropy, from below and above ...
    sure_high: float
    largest: float  # ... and how large one of them is at most
    rest: float  # the mass that rests, and its entropy from below and above
    below: float
    above: float
    terms: int  # how many were added

    def interval(self, roundings: float, max_bits: float) -> tuple[float, float]:
        """Bound the entropy; roundings are those of all masses, in units of 2^-53."""
        total = 1.01 * roundings * ROUNDING
        slack = total * max_bits + phi(total)
        slack += 2 * (self.terms + 128) * ROUNDING * (self.sure_high + self.above + 2)
        apart = self.below - phi(min(self.sure, 1.0))
        on_largest = phi(min(self.largest + self.rest, 1.0)) - phi(min(self.largest, 1.0))
        low = self.sure_low + max(apart, on_largest) - slack
        return low, self.sure_high + self.above + slack


class _Reached(NamedTuple):
    """An interval, the mass that is sure, and how much width lies at what size (`tally`)."""

    low: float
    high: float
    sure: float
    rest: float
    narrows: Floats

    @property
    def width(self) -> float:
        return self.high - self.low

    def threshold(self, width: float) -> float:
        """Choose what to push next: all but the smallest, which may keep part of the width."""
        retained = np.cumsum(self.narrows[::-1])[::-1] <= UNPUSHED_SHARE * width
        return float(2.0 ** (-int(np.argmax(retained)) / 4)) if retained.any() else 0.0


class LocalSolver:
    """A bounded chain, with room to work in, that answers questions about single nodes."""

    def __init__(self, bounded: BoundedChain) -> None:
        self.bounded = bounded
        # A share may be a sum of all moves its row is made of.
        rounding = bounded.size + 16.0
        moves = WalkMoves(bounded.start, bounded.to, bounded.share, rounding, bounded.gap)
        self._walk = BackwardWalk(moves, ordered=bounded.ordered, ends=len(bounded.ends))

    def lost(self, node: int) -> bool:
        """Tell whether a walk back from a node may never end."""
        return self.bounded.lost(node)

    def row(self, node: int, *, width: float, moves: int = thresholds.MAX_LOCAL_MOVES) -> LocalRow:
        """Bound a node's bits; `shortfall` says if so many moves did not reach the width."""
        known, state = self.bounded.known(node), self.bounded.state(node)
        reached, made = _Reached(*known, 0.0, 1.0, np.zeros(0)), 0
        if 0 <= state < len(self.bounded) and not reached.width <= width:
            with self._walk.begun(np.array([state]), np.ones(1)):
                reached, made = self._narrow(known, width, moves)
        shortfall = None
        if not reached.width <= width:
            shortfall = (
                f"after {made:,} moves the proven interval is {reached.width:.2e} bits wide, above "
                f"the requested {width:.0e}: ask for accuracy={at_least(reached.width)} or wider"
            )
        likely = LIKELY if self.bounded.ordered else 0.5
        return LocalRow(
            node=node,
            bits=reached.low + likely * reached.width,
            bits_low=reached.low,
            bits_high=reached.high,
            steps=float(self.bounded.steps[node]),
            mass=reached.sure,
            moves=made,
            shortfall=shortfall,
        )

    def _narrow(
        self, known: tuple[float, float], width: float, max_moves: int
    ) -> tuple[_Reached, int]:
        """Push more and more until the interval is as narrow as requested, or nothing rests."""
        moves = 0
        threshold = width / 4
        for _ in range(thresholds.MAX_LOCAL_ROUNDS):
            # Of mass at the threshold phi takes the logarithm: it is some 2^-6 of it.
            extra = 6.0 - math.log2(max(threshold, 1e-300))
            moves += self._walk.push(threshold, extra=extra, max_moves=max_moves - moves)
            reached = self._interval(known)
            if reached.width <= width or reached.rest == 0 or moves > max_moves:
                break
            threshold = min(threshold / 2, reached.threshold(width))
        return reached, moves

    def _interval(self, known: tuple[float, float]) -> _Reached:
        """Bound the entropy by what was pushed so far, and by what was known beforehand."""
        bounded, narrows = self.bounded, np.empty(BINS)
        sums = PartialSums(
            *tally(
                *self._walk.room, bounded.low, bounded.high, bounded.private,
                bounded.private_low, bounded.private_high, narrows,
            )
        )  # fmt: skip
        if not abs(sums.sure + sums.rest - 1) <= CERTIFICATE:
            raise AccuracyError(f"a row of B sums to {sums.sure + sums.rest!r}: mass was lost")
        low, high = sums.interval(self._walk.roundings, bounded.max_bits)
        low, high = max(known[0], low), min(known[1], high)
        return _Reached(min(low, high), high, sums.sure, sums.rest, narrows)
