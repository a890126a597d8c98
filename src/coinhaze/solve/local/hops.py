"""One node's money hop by hop: a walk back, all its ways at once, a hop at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coinhaze.amounts import Floats, Ints
from coinhaze.errors import UsageError
from coinhaze.graph.graph import NO_SNAPSHOT
from coinhaze.observer import AbsorbingChain
from coinhaze.solve.planner import thresholds
from coinhaze.solve.structure.structure import Structure


@dataclass(frozen=True, eq=False)
class WalkHop:
    """Where a walk is after so many hops, how much of it ends there, and how it goes on."""

    parties: Ints  # coins, transactions, accounts, by number, in order
    nodes: Ints  # of each a node that money came to
    share: Floats  # of the money, at each of them ...
    ended: Floats  # ... and the part whose source it is
    at: Ints  # moves on: from which of `parties` ...
    to: Ints  # ... to which of the next hop's ...
    flow: Floats  # ... and how much moves

    @property
    def reached(self) -> float:
        """How much of the money is here: 1 less what ended before."""
        return float(self.share.sum())

    @property
    def ends(self) -> float:
        """How much of it ends here."""
        return float(self.ended.sum())


@dataclass(frozen=True, eq=False)
class Hops:
    """A node's money hop by hop; hop 0 is the node itself."""

    chain: AbsorbingChain
    node: int
    hops: tuple[WalkHop, ...]
    earlier: float  # how much comes from before the last hop

    def __len__(self) -> int:
        return len(self.hops)

    def __getitem__(self, hop: int) -> WalkHop:
        return self.hops[hop]


def hops_of(chain: AbsorbingChain | Structure, node: str | int, *, limit: int = 6) -> Hops:
    """Spread a node's money over its past, `limit` hops back or until all of it has ended.

    A hop leads from an account to one that paid it, from a coin to its transaction, or from a
    transaction to a coin it spent. Money that stays in an account makes no hop, though the walk
    takes a step from each snapshot to the one before.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers(
    ...     [("a", "c", 1), ("b", "c", 3), ("c", "d", 4)])
    >>> chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger, time="temporal"))
    >>> [(hop.reached, hop.ends) for hop in hops_of(chain, "d").hops]
    [(1.0, 0.0), (1.0, 0.0), (1.0, 1.0)]
    """
    if limit < 1:
        raise UsageError(f"hops are 1 or more, not {limit}")
    structure = Structure.of(chain)
    chain = structure.chain
    start = chain.graph.names.node(node) if isinstance(node, str) else int(node)
    nodes, share = np.array([start]), np.ones(1)
    found: list[WalkHop] = []
    while True:
        hop, nodes, share = _hop(structure, nodes, share)
        if found:
            found[-1] = _joined(found[-1], hop, chain)
        found.append(hop)
        if len(found) > limit or not len(nodes):
            return Hops(chain, start, (*found[:-1], _last(found[-1])), float(share.sum()))


def _hop(structure: Structure, nodes: Ints, share: Floats) -> tuple[WalkHop, Ints, Floats]:
    """Gather what came to some nodes by party; give the nodes it goes on to, and how much."""
    chain = structure.chain
    names = chain.graph.names
    parties, first, row = np.unique(names.party[nodes], return_index=True, return_inverse=True)
    passed, mass = _carried(structure, nodes, share)
    place = np.searchsorted(parties, names.party[passed])
    ended = _sums(place, mass * chain.walk.own[passed], len(parties))
    at, before, chance = chain.moves_of(passed)
    flow = mass[at] * chance
    leaves = (names.party[before] != names.party[passed[at]]) | (before == passed[at])
    leaves &= flow > 0  # what is below the range of floats is nowhere
    at, before, flow = at[leaves], before[leaves], flow[leaves]
    total = _sums(row, share, len(parties))
    hop = WalkHop(parties, nodes[first], total, ended, place[at], before, flow)
    return hop, *_gathered(before, flow, len(chain))


def _gathered(nodes: Ints, flow: Floats, n: int) -> tuple[Ints, Floats]:
    """Add flow up by node: on a dense array where that is less work than sorting."""
    if n <= thresholds.DENSE_HOP * len(nodes):
        total = _sums(nodes, flow, n)
        found = np.flatnonzero(total)
        return found, total[found]
    found, row = np.unique(nodes, return_inverse=True)
    return found, _sums(row, flow, len(found))


def _carried(structure: Structure, nodes: Ints, share: Floats) -> tuple[Ints, Floats]:
    """Add what lay in the same accounts before, with the nodes it lay at."""
    names = structure.chain.graph.names
    if np.all(names.snapshot[nodes] == NO_SNAPSHOT):
        return nodes, share
    walk = structure.walk
    with walk.begun(nodes, share):
        walk.push(0.0, party=names.party)
        found = walk.found()
    return found.nodes, found.visits


def _joined(hop: WalkHop, following: WalkHop, chain: AbsorbingChain) -> WalkHop:
    """Turn the nodes a hop moves on to into rows of the next one, each pair of rows once."""
    to = np.searchsorted(following.parties, chain.graph.names.party[hop.to])
    pair, row = np.unique(hop.at * len(following.parties) + to, return_inverse=True)
    flow = _sums(row, hop.flow, len(pair))
    at, to = np.divmod(pair, len(following.parties))
    return WalkHop(hop.parties, hop.nodes, hop.share, hop.ended, at, to, flow)


def _last(hop: WalkHop) -> WalkHop:
    nothing = np.zeros(0, dtype=np.int64)
    return WalkHop(hop.parties, hop.nodes, hop.share, hop.ended, nothing, nothing, np.zeros(0))


def _sums(group: Ints, values: Floats, n: int) -> Floats:
    return np.bincount(group, values, n).astype(np.float64)
