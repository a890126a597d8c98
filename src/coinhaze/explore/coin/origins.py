"""One coin's origins as people see them, and why it has its bits: which merges added how many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.explore.models import MergePoint, Origin, Other, Why
from coinhaze.explore.nodes import Nodes
from coinhaze.measures import Origins
from coinhaze.measures.intervals import surprise
from coinhaze.observer import AbsorbingChain
from coinhaze.observer.chain import NO_COLUMN, SourceNames
from coinhaze.solve import Lots
from coinhaze.solve.local.past import Past
from coinhaze.solve.local.past_kernels import nearest

MANY, ABOUT = 20, 1.1  # origins that are many; shares this near are about the same
NOTHING = 1e-12  # a rest this small is roundings
ALWAYS, LOOKED_AT = 2, 100_000  # listed origins that are shown however small, and where they may be


@dataclass(frozen=True, eq=False)
class Row:
    """A coin's row of B, largest first; shares are lower bounds, `missing` what is not known."""

    belief: AbsorbingChain | Lots
    outcomes: Ints
    shares: Floats
    missing: float
    whole: bool  # every possible origin is among them

    @classmethod
    def of_past(cls, past: Past) -> Row:
        """Take it from a past."""
        outcomes, shares = past.outcomes()
        missing = 0.0 if past.whole and past.ordered else past.missing
        return cls(past.chain, outcomes, shares, missing, past.whole)

    @classmethod
    def of_lots(cls, found: Origins, belief: Lots) -> Row:
        """Take it from lots, where every unit is known."""
        return cls(belief, found.outcomes, found.probability, 0.0, True)

    def __len__(self) -> int:
        return len(self.outcomes)

    @property
    def equal(self) -> bool:
        """Whether there are many origins and none stands out: all shares are about the same."""
        shares = self.shares
        return len(shares) > MANY and self.missing == 0 and shares[0] <= ABOUT * shares[-1]

    def other(self, ranks: Ints) -> Other:
        """Count what is not of some ranks, and its share; the shares of both make 1."""
        if not len(self):
            return Other(count=0, share=0.0)
        rest = len(self) - len(ranks)
        share = max(1.0 - float(self.shares[ranks].sum()), 0.0)
        return Other(count=rest, share=0.0 if rest == 0 and share <= NOTHING else share)


class OutcomeNames:
    """Tells of outcomes: of sources by their node, of entries of a list by their name."""

    def __init__(
        self,
        nodes: Nodes,
        belief: AbsorbingChain | Lots,
        listed: Bools | None,
        balance: int | None,
    ) -> None:
        self.nodes = nodes
        self.belief = belief
        self.listed = listed
        self.balance = balance

    def node(self, outcome: int) -> int:
        """Give the node an outcome stands for, -1 for an entry of a list."""
        names = self.belief.outcomes
        return int(names.nodes[outcome]) if isinstance(names, SourceNames) else NO_COLUMN

    def shown(self, row: Row, top: int) -> Ints:
        """Give the ranks that are shown one by one: the first, and the first listed beyond them."""
        ranks = np.arange(min(top, len(row)))
        names = self.belief.outcomes
        if self.listed is None or not isinstance(names, SourceNames):
            return ranks
        rest = row.outcomes[len(ranks) :][:LOOKED_AT]
        listed = np.flatnonzero(self.listed[names.nodes[rest]])[:ALWAYS]
        return np.append(ranks, len(ranks) + listed)

    def origins(self, row: Row, ranks: Ints) -> tuple[Origin, ...]:
        """Tell of some ranks."""
        outcomes = row.outcomes[ranks].astype(np.int64)
        if isinstance(self.belief.outcomes, SourceNames):
            self.nodes.fetch(self.belief.outcomes.nodes[outcomes].astype(np.int64))
        names = self.belief.outcomes.take(pa.array(outcomes)).to_pylist()
        rows = zip(
            ranks.tolist(), outcomes.tolist(), names, row.shares[ranks].tolist(), strict=True
        )
        return tuple(self._origin(*some) for some in rows)

    def _origin(self, rank: int, outcome: int, name: str, share: float) -> Origin:
        share = min(share, 1.0)
        node, nodes = self.node(outcome), self.nodes
        amount = None if self.balance is None else nodes.index.part(self.balance, share)
        if node == NO_COLUMN:
            label = nodes.labels.get(name)
            return Origin(
                rank=rank, name=name, words=label or name, kind="listed", share=share,
                amount=amount, label=label, href=nodes.named_href(name),
            )  # fmt: skip
        listed = self.listed is not None and bool(self.listed[node])
        return Origin(
            rank=rank,
            name=name,
            words=nodes.words(node),
            kind=nodes.origin_kind(node, listed=listed),
            share=share,
            amount=amount,
            label=nodes.label(node),
            time=nodes.time(node),
            height=nodes.height(node),
            href=nodes.href(node),
        )


MAX_MERGES = 8  # that are named
MINIMUM = 5e-4  # bits of a merge that is named


def added_bits(past: Past) -> Floats:
    """Give of each node of a past the bits that the choice there adds to a walk."""
    of_moves = np.bincount(past.at, surprise(past.chance), len(past))
    added: Floats = past.visits * (of_moves + surprise(past.own))
    return added


def why(past: Past, nodes: Nodes, bits: float) -> Why:
    """Say which merges made a coin's bits; its past must be whole.

    A walk back is a sequence of choices, one at every node it comes by, so its entropy is the sum
    over nodes of how often it comes by times the entropy of the choice there. Walks that end at the
    same origin tell no origin apart: what they differ by is taken off once, at the end.
    """
    added = added_bits(past)
    largest = np.argsort(-added, kind="stable")[:MAX_MERGES]
    largest = largest[added[largest] >= MINIMUM]
    shown = np.sort(largest)[::-1]  # later nodes have higher numbers
    nodes.fetch(past.nodes[shown])
    rest = np.delete(added, shown)
    return Why(
        merges=tuple(_merge(past, nodes, int(place), float(added[place])) for place in shown),
        others=int(np.count_nonzero(rest > 0)),
        others_bits=max(float(rest.sum()), 0.0),
        again=max(float(added.sum()) - bits, 0.0),
    )


def _merge(past: Past, nodes: Nodes, place: int, bits: float) -> MergePoint:
    node = int(past.nodes[place])
    there = np.zeros(len(past), dtype=np.bool_)
    there[place] = True
    moves = int(nearest(past.first, past.to, there, past.start))
    return MergePoint(
        words=nodes.words(node),
        name=nodes.name(node),
        inputs=int(past.first[place + 1] - past.first[place]) + int(past.own[place] > 0),
        # Of coins every other move leads to a coin, which is passed over.
        hops=None if moves < 0 else (moves + 1) // 2 if nodes.coin_view else moves,
        passing=float(past.visits[place]),
        bits=bits,
        href=nodes.href(node),
    )
