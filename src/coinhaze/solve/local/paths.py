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

from coinhaze.amounts import Floats, Ints
from coinhaze.measures import Origins
from coinhaze.measures.elementary import log2
from coinhaze.observer import AbsorbingChain
from coinhaze.observer.chain import NO_COLUMN
from coinhaze.solve.local.past import Past
from coinhaze.solve.planner import thresholds

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
# A move: how much longer than the shortest the rest of a path is with it, its probability, and
# where it leads.
_Move = tuple[float, float, int]
# The length it has at least once finished, a number for ties, its share, whether it is whole.
_Item = tuple[float, int, float, bool, _Beginning]


def largest_paths(found: Origins, *, limit: int = 3) -> list[Path]:
    """Find the paths that carried most of a node's money from listed sources, largest first.

    All sources count where the chain has no list. Fewer than `limit` are given where there are no
    more, or where the past is so long that looking for more would take too long.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    >>> chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger), listed=["a"])
    >>> [(path.nodes, path.share) for path in largest_paths(coinhaze.origins(chain, "c"))]
    [((0, 2), 0.25)]
    """
    chain = found.chain
    if not isinstance(chain, AbsorbingChain):
        return []  # lots follow no ways
    past = Past.along(chain, found.node, found.past)
    beginnings = _Beginnings(past)
    paths = []
    for share, beginning in islice(beginnings.finished(past.start, limit), limit):
        nodes = found.past[_unrolled(beginning)].tolist()
        whole = share * float(chain.walk.own[nodes[0]])
        paths.append(Path(tuple(nodes), int(chain.column[nodes[0]]), whole))
    return paths


class _Beginnings:
    """The moves of a node's past, and how far each node is from the nearest listed end."""

    def __init__(self, past: Past) -> None:
        # A past that was cut off by its accuracy leads out of what is known.
        known = (past.to >= 0) & (past.chance > 0)
        self.chance = past.chance[known]
        self.length = np.maximum(-log2(self.chance), SHORTEST)
        at, self.to = past.at[known], past.to[known]
        self.first = np.searchsorted(at, np.arange(len(past) + 1))
        listed = (past.column != NO_COLUMN) & (past.column != past.chain.elsewhere)
        ends = np.flatnonzero(listed)
        self.end = np.full(len(past), np.inf)
        self.end[ends] = np.maximum(-log2(past.own[ends]), SHORTEST)
        self.left = self._left(at, ends)
        self.best: dict[int, list[_Move]] = {}

    def _left(self, at: Ints, ends: Ints) -> Floats:
        from scipy.sparse.csgraph import dijkstra  # with all of scipy.linalg

        n = len(self.end)
        goal = np.full(len(ends), n)
        backwards = scipy.sparse.csr_array(
            (
                np.concatenate([self.length, self.end[ends]]),
                (np.concatenate([self.to, goal]), np.concatenate([at, ends])),
            ),
            shape=(n + 1, n + 1),
        )
        left: Floats = dijkstra(backwards, indices=n)
        return left[:n]

    def finished(self, start: int, limit: int) -> Iterator[tuple[float, _Beginning]]:
        """Give whole paths back from a node, largest first, and the share of their moves."""
        if not math.isfinite(self.left[start]):
            return
        # Of equal beginnings the newest goes on: it is the nearest to an end. With the oldest
        # first, all would grow together, and there may be more than can be looked at.
        order = count(0, -1)
        begin: _Item = (float(self.left[start]), next(order), 1.0, False, (start, None))
        heap = [begin]
        for _ in range(thresholds.MAX_PATH_BEGINNINGS):
            if not heap:
                return
            length, _, share, done, beginning = heapq.heappop(heap)
            if done:
                yield share, beginning
                continue
            node = beginning[0]
            if math.isfinite(self.end[node]):
                whole = length + float(_longer(self.end[node], self.left[node]))
                heapq.heappush(heap, (whole, next(order), share, True, beginning))
            for longer, chance, to in self._best(node, limit):
                item = (share * chance, False, (to, beginning))
                heapq.heappush(heap, (length + longer, next(order), *item))

    def _best(self, node: int, limit: int) -> list[_Move]:
        """Give the moves of a node that can be part of the `limit` largest paths through it."""
        if node in self.best:
            return self.best[node]
        moves = slice(self.first[node], self.first[node + 1])
        to = self.to[moves]
        total = self.length[moves] + self.left[to]
        best = np.argsort(total, kind="stable")[:limit]
        best = best[np.isfinite(total[best])]
        columns = (_longer(total[best], self.left[node]), self.chance[moves][best], to[best])
        self.best[node] = list(zip(*(column.tolist() for column in columns), strict=True))
        return self.best[node]


def _longer(length: Floats, shortest: float) -> Floats:
    """Give by how much lengths exceed the shortest; 0 where only rounding parts them."""
    more: Floats = np.asarray(length - shortest)
    return np.where(more < SHORTEST / 2, 0.0, more)


def _unrolled(beginning: _Beginning | None) -> list[int]:
    nodes: list[int] = []
    while beginning is not None:
        nodes.append(beginning[0])
        beginning = beginning[1]
    return nodes
