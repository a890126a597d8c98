"""The walk back over a chain's moves: the one loop behind every question about one coin.

Mass starts somewhere. Pushing a node hands its mass on to its predecessors, so that at any time
what has passed each node (`visits`) and what rests there (`mass`) are exact parts of the walk,
whatever was pushed. Questions differ in what they push: all of it, the largest shares, what may
narrow an interval, or what stays in the same account.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from coinhaze.amounts import Floats, Ints
from coinhaze.solve.local.walk_kernels import SEEN, clear, push, reach
from coinhaze.solve.planner import thresholds

Int32s = npt.NDArray[np.int32]
NO_PARTIES = np.zeros(0, dtype=np.int32)
EVERY_MOVE = 1 << 62
ROUNDINGS = 8.0  # of a row of a chain: five of its shares, and those of products and sums


class WalkMoves(NamedTuple):
    """Moves of states, in rows; targets from the number of states on are ends."""

    first: Ints
    to: Int32s
    share: Floats
    rounding: Floats  # of each row's shares and products, in units of 2^-53
    gap: npt.NDArray[np.float32]  # what mass at each state is worth beyond its weight

    @classmethod
    def of(cls, first: Ints, to: Ints | Int32s, share: Floats) -> WalkMoves:
        """Take rows as they are; mass is worth what it weighs."""
        states = len(first) - 1
        rounding, gap = np.full(states, ROUNDINGS), np.zeros(states, dtype=np.float32)
        return cls(first, to.astype(np.int32, copy=False), share, rounding, gap)


class WalkRoom(NamedTuple):
    """Room to work in, all zero between questions."""

    mass: Floats  # at states, then at ends
    visits: Floats  # mass pushed from each state
    state: npt.NDArray[np.uint8]
    touched: Int32s  # where mass has been ...
    used: Ints  # ... and how many of them

    @classmethod
    def of(cls, states: int, ends: int) -> WalkRoom:
        """Make room."""
        return cls(
            mass=np.zeros(states + ends),
            visits=np.zeros(states),
            state=np.zeros(states + ends, dtype=np.uint8),
            touched=np.empty(states + ends, dtype=np.int32),
            used=np.zeros(1, dtype=np.int64),
        )


class Trace(NamedTuple):
    """What a walk has come to, in order of number, ends left out."""

    nodes: Ints
    visits: Floats  # how often the walk comes by, at least
    mass: Floats  # what rests there

    @property
    def passed(self) -> Ints:
        """The nodes that were passed, and not only come to."""
        found: Ints = self.nodes[self.visits > 0]
        return found

    @property
    def missing(self) -> float:
        """How much was not followed to its end."""
        return float(self.mass.sum())


class BackwardWalk:
    """Moves, and room for one question at a time.

    >>> moves = WalkMoves.of(np.array([0, 0, 0, 2]), np.array([0, 1]), np.array([0.25, 0.75]))
    >>> walk = BackwardWalk(moves, ordered=True)
    >>> with walk.begun(np.array([2]), np.ones(1)):
    ...     walk.push(0.0), walk.found().visits.tolist()
    (5, [0.25, 0.75, 1.0])
    """

    def __init__(self, moves: WalkMoves, *, ordered: bool, ends: int = 0) -> None:
        self.moves = moves
        self.ordered = ordered  # whether moves lead to lower numbers only
        states = len(moves.first) - 1
        self.room = WalkRoom.of(states, ends)
        # Who waits: a set of bits, a bit for each word of it that is not 0, and so once more; or
        # those that came first, first.
        words = (-(-states // 64**k) if ordered else 0 for k in (1, 2, 3))
        self._waiting = (
            np.empty(0 if ordered else states, dtype=np.int32),
            *(np.zeros(w, dtype=np.uint64) for w in words),
        )
        self._lock = Lock()
        self.roundings = 0.0  # a bound on those of the question, in units of 2^-53

    @contextmanager
    def begun(self, states: Ints, mass: Floats) -> Iterator[None]:
        """Put mass at some states, each named once; forget it all afterwards."""
        room = self.room
        with self._lock:
            try:
                room.mass[states], room.state[states] = mass, SEEN
                room.touched[: len(states)], room.used[0] = states, len(states)
                self.roundings = 0.0
                yield
            finally:
                clear(*room)

    def push(
        self,
        minimum: float,
        *,
        extra: float = 1.0,
        max_moves: int = EVERY_MOVE,
        party: Int32s = NO_PARTIES,
    ) -> int:
        """Push what is worth `minimum`, with parties inside each only; give the moves made."""
        made = 0
        while True:
            # Loops that hold money for long take many moves: after some, they go on compiled.
            at_once = min(max_moves - made, thresholds.MOVES_AT_ONCE)
            moves, roundings = push(
                *self.moves, party, self.ordered, extra, minimum, at_once, *self.room,
                *self._waiting,
            )  # fmt: skip
            self.roundings += float(roundings)
            made += int(moves)
            if moves < at_once or made >= max_moves:
                return made

    def reach(self, max_moves: int) -> bool:
        """Mark all that can be come to, if that takes no more than so many moves."""
        room = self.room
        return bool(
            reach(self.moves.first, self.moves.to, max_moves, room.state, room.touched, room.used)
        )

    @property
    def resting(self) -> float:
        """How much rests."""
        return float(self.room.mass[self.room.touched[: self.room.used[0]]].sum())

    def found(self) -> Trace:
        """Give what was come to; what rests at a state without moves has passed it."""
        room, first = self.room, self.moves.first
        nodes = np.sort(room.touched[: room.used[0]]).astype(np.int64)
        nodes = nodes[: np.searchsorted(nodes, len(first) - 1)]
        visits, mass = room.visits[nodes], room.mass[nodes]
        ends = first[nodes] == first[nodes + 1]
        visits[ends] += mass[ends]
        mass[ends] = 0.0
        return Trace(nodes, visits, mass)
