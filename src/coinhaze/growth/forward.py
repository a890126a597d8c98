"""Walks forward in time: from where money first appears, along payments, weighted by amount."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.graph import TransactionGraph
from coinhaze.graph.graph import Kind
from coinhaze.graph.order_kernels import group_rows
from coinhaze.growth import kernels as kernels


class Level(NamedTuple):
    """Where walks of a given number of payments are, and where those that ended earlier stopped."""

    nodes: Ints
    mass: Floats  # the share of all walks at each node
    end_nodes: Ints
    end_mass: Floats


@dataclass(frozen=True, eq=False)
class Forward:
    """Edges sorted by tail: where a walk may go next, how likely, and whether that is a payment.

    A payment counts once: money that enters a transaction or a ring has not arrived yet, and money
    that waits while its holder is paid by others (from one snapshot to the next) was not paid.
    """

    start: Ints
    tail: Ints
    head: Ints
    weight: Floats
    pays: Bools

    @classmethod
    def of(cls, graph: TransactionGraph) -> Forward:
        """Reverse a graph; where amounts are hidden all edges of a node are equally likely."""
        start, order = group_rows(graph.tail, len(graph))
        tail, head = graph.tail[order], graph.head[order]
        weight = np.ones(len(order)) if graph.amounts is None else graph.amounts.floats()[order]
        enters = (graph.kinds[head] == Kind.transaction) | (graph.kinds[head] == Kind.ring)
        waits = graph.names.party[tail] == graph.names.party[head]
        return cls(start, tail, head, weight, ~(enters | waits))

    def walks(self, first: Ints, *, length: int, seed: int) -> tuple[Ints, Ints]:
        """Walk once from each of `first`; return nodes by number of payments, and the ends."""
        reach = kernels.running_shares(self.start, self.weight)
        visited, ends = kernels.walk_forward(
            self.start, self.head, reach, self.pays, first, length, seed
        )
        return visited, ends

    def levels(self, first: Ints, *, length: int) -> Iterator[Level]:
        """Weigh all walks at once, starting at each of `first` with equal probability."""
        mass = np.bincount(first, minlength=len(self.start) - 1) / len(first)
        rest = np.zeros(len(mass))
        for made in range(length + 1):
            yield Level(*_present(mass), *_present(rest))
            if made < length:
                # Edges that are not payments lead to higher numbers in temporal graphs and do not
                # occur in stationary ones, so one pass in order of tails moves everything.
                kernels.move_on(*self._moves, mass)
                rest += np.where(self._final, mass, 0.0)
                mass = kernels.pay_on(*self._payments, mass)

    @cached_property
    def _share(self) -> Floats:
        total = np.bincount(self.tail, weights=self.weight, minlength=len(self.start) - 1)
        return self.weight / total[self.tail]

    @cached_property
    def _moves(self) -> tuple[Ints, Ints, Floats]:
        return self.tail[~self.pays], self.head[~self.pays], self._share[~self.pays]

    @cached_property
    def _payments(self) -> tuple[Ints, Ints, Floats]:
        return self.tail[self.pays], self.head[self.pays], self._share[self.pays]

    @cached_property
    def _final(self) -> Bools:
        """Return the nodes that no edge leaves."""
        final: Bools = np.diff(self.start) == 0
        return final


def levels_of(visited: Ints, ends: Ints) -> Iterator[Level]:
    """Yield the levels of drawn walks, each walk with the same mass."""
    walks = len(visited)
    for nodes in visited.T:
        gone = ends[nodes < 0]
        yield Level(*_counted(nodes[nodes >= 0], walks), *_counted(gone, walks))


def _present(mass: Floats) -> tuple[Ints, Floats]:
    nodes = np.flatnonzero(mass)
    return nodes, mass[nodes]


def _counted(nodes: Ints, walks: int) -> tuple[Ints, Floats]:
    found, count = np.unique(nodes, return_counts=True)
    return found, count / walks
