"""What an observer gains by one more link: the bits coins lose, without a new solve for each link.

A link changes one row of Q: a share w of receiver r's row goes to origin o instead of sender s. By
the Sherman-Morrison formula every row of B then moves along one vector,

    B' = B + N e_r w (B_o - B_s) / (1 - w (N_or - N_sr)),

so after one factorisation of I - Q a link costs a few vector operations, and only coins that can
have come through r, and sources on which B_o and B_s differ, need to be examined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.observer import AbsorbingChain

AT_ONCE = 64  # right-hand sides whose solutions are held dense
# The share of a walk that still leaves a cycle closed by a link; below this, it is rounding.
NEVER_ENDS = 1e-12


@dataclass(frozen=True)
class RowChange:
    """A link as a change of one row: the share that moves from the sender to the origin."""

    receiver: int
    sender: int
    origin: int
    share: float


class Gains:
    """A chain prepared to evaluate links: one factorisation, and the solutions computed so far."""

    def __init__(self, chain: AbsorbingChain) -> None:
        self.chain = chain
        # From other nodes the walk never ends, and I - Q would have no inverse.
        self.ending = np.flatnonzero(_ends(chain))
        self.place = np.full(len(chain), -1)
        self.place[self.ending] = np.arange(len(self.ending))
        q = chain.Q[self.ending][:, self.ending]
        system = scipy.sparse.csc_array(scipy.sparse.eye_array(len(self.ending)) - q)
        self.factors = scipy.sparse.linalg.splu(system)

    def visits(self, rows: Ints, columns: Ints) -> Floats:
        """Return entries of N: how often walks from `rows` visit `columns`."""
        found = np.zeros((len(rows), len(columns)))
        for first, solved in self._solves(columns, "N"):
            inside = self.place[rows] >= 0
            found[inside, first : first + solved.shape[1]] = solved[self.place[rows[inside]]]
        return found

    def arrivals(self, rows: Ints) -> scipy.sparse.csr_array:
        """Return rows of B."""
        r = self.chain.R[self.ending].T.tocsr()
        parts = [scipy.sparse.csr_array((r @ x).T) for _, x in self._solves(rows, "T")]
        empty = scipy.sparse.csr_array((0, len(self.chain.outcomes)))
        return scipy.sparse.csr_array(scipy.sparse.vstack(parts)) if parts else empty

    def _solves(self, nodes: Ints, side: str) -> Iterator[tuple[int, Floats]]:
        for first in range(0, len(nodes), AT_ONCE):
            places = self.place[nodes[first : first + AT_ONCE]]
            right = np.zeros((len(self.ending), len(places)))
            inside = np.flatnonzero(places >= 0)
            right[places[inside], inside] = 1
            yield first, self.factors.solve(right, trans=side)


def bits_gained(
    chain: AbsorbingChain,
    coins: Ints,
    moves: Sequence[RowChange],
    *,
    most: int,
    chance: np.random.Generator,
) -> tuple[Floats, bool]:
    """Return, for each link, by how many bits in total it lowers the entropy of the coins.

    At most `most` of the coins that the links touch are examined, drawn at random; the second
    value says whether a sample was drawn. A link that would close a cycle without a source gains
    -inf.
    """
    gains = Gains(chain)
    receivers, to = np.unique([m.receiver for m in moves], return_inverse=True)
    seen = gains.visits(coins, receivers)
    touched = np.flatnonzero(seen.any(axis=1))
    sampled = len(touched) > most
    if sampled:
        touched = np.sort(chance.choice(touched, most, replace=False))
    arrivals, seen = gains.arrivals(coins[touched]), seen[touched]
    ends = np.array([[m.sender, m.origin] for m in moves], dtype=np.int64).reshape(-1, 2)
    nodes, at = np.unique(ends, return_inverse=True)
    at = at.reshape(-1, 2)
    between, theirs = gains.visits(nodes, receivers), gains.arrivals(nodes)
    found = np.zeros(len(moves))
    for k, move in enumerate(moves):
        s, o, r = int(at[k, 0]), int(at[k, 1]), int(to[k])
        leaving = 1 - move.share * (between[o, r] - between[s, r])
        if leaving <= NEVER_ENDS:
            found[k] = -np.inf
            continue
        scale = move.share / leaving
        along = (theirs[[o]] - theirs[[s]]).tocoo()
        passing = np.flatnonzero(seen[:, r] > 0)
        before = arrivals[passing][:, along.coords[1]].toarray()
        after = before + np.outer(seen[passing, r], along.data * scale)
        found[k] = _entropy(before) - _entropy(np.maximum(after, 0))
    return found, sampled


def _entropy(p: Floats) -> float:
    positive = p[p > 0]
    return float(-np.sum(positive * np.log2(positive)))


def _ends(chain: AbsorbingChain) -> Bools:
    """Return which nodes' walks can reach an absorber."""
    n = len(chain)
    absorbing = np.flatnonzero(chain.walk.own > 0)
    q = chain.Q.tocoo()
    ends = scipy.sparse.csr_array(
        (
            np.ones(q.nnz + len(absorbing)),
            (
                np.concatenate([q.coords[1], np.full(len(absorbing), n)]),
                np.concatenate([q.coords[0], absorbing]),
            ),
        ),
        shape=(n + 1, n + 1),
    )
    reached = scipy.sparse.csgraph.breadth_first_order(ends, n, return_predecessors=False)
    found = np.zeros(n + 1, dtype=np.bool_)
    found[reached] = True
    return found[:n]
