"""The single paths that carried most of a node's money from listed sources.

A path's share is the product of its moves' probabilities. How much a path can carry at most, from
any node on, is known beforehand (shortest paths, lengths being -log2 of probabilities), so that
beginnings of paths are looked at in the order of what they can still become (A*): the first path
to be finished is the largest, the second the next.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

from coinhaze.chain import AbsorbingChain
from coinhaze.chain.chain import NO_COLUMN
from coinhaze.ledger.amounts import Floats, Ints
from coinhaze.measure import Origins
from coinhaze.solve.moves_of import moves_of

# Beginnings of paths that are looked at before those found so far must do.
MOST_LOOKS = 100_000
# Shortest paths need positive lengths: a certain move costs next to nothing.
SHORTEST = 1e-12


@dataclass(frozen=True)
class Path:
    """One way money took: nodes from its source on, and the share of the money that took it."""

    nodes: tuple[int, ...]
    outcome: int
    share: float


# A node, and what comes after it on the way to the start.
_Beginning = tuple[int, Any]


def largest_paths(found: Origins, *, most: int = 3) -> list[Path]:
    """Find the paths that carried most of a node's money from listed sources, largest first.

    All sources count where the chain has no list. Fewer than `most` are given where there are no
    more, or where the past is so long that looking for more would take too long.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    >>> chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger), listed=["a"])
    >>> [(path.nodes, path.share) for path in largest_paths(coinhaze.origins(chain, "c"))]
    [((0, 2), 0.25)]
    """
    chain = found.chain
    if not isinstance(chain, AbsorbingChain):
        return []  # parcels follow no ways
    past = _Past(chain, found.past)
    start = int(np.searchsorted(found.past, found.node))
    paths = []
    for beginning in islice(past.finished(start, most), most):
        nodes = [int(found.past[k]) for k in _unrolled(beginning)]
        paths.append(Path(tuple(nodes), int(chain.column[nodes[0]]), _product(chain, nodes)))
    return paths


class _Past:
    """The moves of a node's past, and how far each node is from the nearest listed end."""

    def __init__(self, chain: AbsorbingChain, nodes: Ints) -> None:
        at, before, chance = moves_of(chain, nodes)
        to = np.minimum(np.searchsorted(nodes, before), len(nodes) - 1)
        # A past that was cut off by its accuracy leads out of what is known.
        known = (nodes[to] == before) & (chance > 0)
        self.length = np.maximum(-np.log2(chance[known]), SHORTEST)
        at, self.to = at[known], to[known]
        self.first = np.searchsorted(at, np.arange(len(nodes) + 1))
        column, own = chain.column[nodes], chain.walk.own[nodes]
        ends = np.flatnonzero((column != NO_COLUMN) & (column != chain.elsewhere) & (own > 0))
        self.end = np.full(len(nodes), np.inf)
        self.end[ends] = np.maximum(-np.log2(own[ends]), SHORTEST)
        self.left = self._left(at, ends)

    def _left(self, at: Ints, ends: Ints) -> Floats:
        n = len(self.end)
        goal = np.full(len(ends), n)
        backwards = scipy.sparse.csr_array(
            (
                np.concatenate([self.length, self.end[ends]]),
                (np.concatenate([self.to, goal]), np.concatenate([at, ends])),
            ),
            shape=(n + 1, n + 1),
        )
        left: Floats = scipy.sparse.csgraph.dijkstra(backwards, indices=n)
        return left[:n]

    def finished(self, start: int, most: int) -> Iterator[_Beginning]:
        """Give whole paths back from a node, largest first."""
        if not math.isfinite(self.left[start]):
            return
        order = count()
        heap = [(float(self.left[start]), next(order), 0.0, False, (start, None))]
        for _ in range(MOST_LOOKS):
            if not heap:
                return
            _, _, length, done, beginning = heapq.heappop(heap)
            if done:
                yield beginning
                continue
            node = beginning[0]
            if math.isfinite(self.end[node]):
                whole = length + float(self.end[node])
                heapq.heappush(heap, (whole, next(order), whole, True, beginning))
            for step, to in self._best(node, most):
                item = (length + step, (to, beginning))
                least = item[0] + float(self.left[to])
                heapq.heappush(heap, (least, next(order), item[0], False, item[1]))

    def _best(self, node: int, most: int) -> list[tuple[float, int]]:
        """Give the moves of a node that can be part of the `most` largest paths through it."""
        moves = slice(self.first[node], self.first[node + 1])
        to, length = self.to[moves], self.length[moves]
        total = length + self.left[to]
        best = np.argsort(total, kind="stable")[:most]
        best = best[np.isfinite(total[best])]
        return list(zip(length[best].tolist(), to[best].tolist(), strict=True))


def _unrolled(beginning: _Beginning | None) -> list[int]:
    nodes = []
    while beginning is not None:
        nodes.append(beginning[0])
        beginning = beginning[1]
    return nodes


def _product(chain: AbsorbingChain, nodes: list[int]) -> float:
    share = float(chain.walk.own[nodes[0]])
    for before, node in zip(nodes, nodes[1:], strict=False):
        share *= float(chain.Q[node, before])
    return share
