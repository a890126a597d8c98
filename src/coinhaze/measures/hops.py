"""Hops: how a node's money lies spread over its past, one step back after another."""

from __future__ import annotations

from dataclasses import dataclass

from coinhaze.amounts import Floats, Ints
from coinhaze.observer import AbsorbingChain


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
