"""A past spread over columns: what came through each party, hop by hop, folded as it goes.

A hop leads to the party before: in the coin view from transaction to transaction, else from one
address or account to the next; coins, rings and, by address, transactions on the way are passed
over. Money that stays in an account makes no hop. A source without a past is no party of a hop:
it is where money begins.

Besides all of the money, the part that has met no listed node yet goes back. What of it will meet
one, and what met one on the way between two parties, is the thread of listed money: it runs from
where the list has it to the coin.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.graph.graph import NO_SNAPSHOT, Kind
from coinhaze.observer.chain import NO_COLUMN
from coinhaze.solve.local.past import Past

FOLDED = 0.01  # boxes below this share are folded
COIN_VIEW_PASSED, OTHERS_PASSED = (Kind.coin, Kind.ring), (Kind.transaction,)


@dataclass(frozen=True, eq=False)
class Spread:
    """A past made ready to be spread: whose node is shown, and what meets the list."""

    past: Past
    fresh: Past  # as far as no listed node is met
    shown: Bools  # of each node of the past: is it a party of a hop, or passed over
    party: npt.NDArray[np.int32]
    meets: Floats  # chance to meet a listed node from here on; 0 where nothing is listed
    listed: Bools

    @classmethod
    def of(cls, past: Past, listed: Bools | None) -> Spread:
        """Make a past ready; `listed` tells of the chain's nodes."""
        graph = past.chain.graph
        coin_view = graph.settings.get("view") == "coin"
        over = COIN_VIEW_PASSED if coin_view else OTHERS_PASSED
        nothing = np.zeros(len(past))
        return cls(
            past=past,
            fresh=past if listed is None else past.cut_at(listed),
            shown=~np.isin(graph.kinds[past.nodes], over),
            party=graph.names.party[past.nodes].astype(np.int32),
            meets=nothing if listed is None else past.passing(listed)[:, 0],
            listed=np.zeros(len(past), dtype=np.bool_) if listed is None else listed[past.nodes],
        )


@dataclass(frozen=True)
class Box:
    """A party of a hop, or all that are folded: share, thread, and the nodes it is made of."""

    share: float
    listed: float
    nodes: Ints  # places in the past, largest share first
    parties: int
    folded: bool = False
    is_listed: bool = False
    paid: bool = False  # its money went on to a listed coin before it came to the next box


class Move(NamedTuple):
    """Money that came to box `to` of a hop from box `at` of the next one, or from an outcome."""

    to: int
    at: int
    share: float
    listed: float


@dataclass
class Hop:
    """One column: its boxes, and what came to them from elsewhere than the next column's boxes."""

    boxes: list[Box]
    moves: list[Move] = field(default_factory=list)  # from boxes of the next hop
    ended: list[Move] = field(default_factory=list)  # from outcomes
    deeper: list[Move] = field(default_factory=list)  # from what is not shown by hop


class _Mass(NamedTuple):
    """Money somewhere: the box it goes to, the node of the past it is at, and how much."""

    box: Ints
    node: Ints
    all: Floats
    fresh: Floats  # of it, what has met no listed node yet
    met: Floats  # what has met one since it left the box


def spread_hops(spread: Spread, *, maximum: list[int], always: int = 3) -> tuple[list[Hop], Ints]:
    """Spread a past over as many hops as `maximum` has entries, each the boxes shown at most there.

    A negative entry also shows boxes that are small. Hop 0 is the node itself. Also gives places of
    nodes that are further back than all hops, one of each party.
    """
    past = spread.past
    start = np.array([past.start])
    whole = np.ones(1)
    itself = Box(
        1.0, float(spread.meets[past.start]), start, 1, is_listed=bool(spread.listed[past.start])
    )
    hops = [Hop([itself])]
    here = _Mass(np.zeros(1, dtype=np.int64), start, whole, whole, np.zeros(1))
    seen = np.zeros(len(past), dtype=np.bool_)
    deeper = np.zeros(0, dtype=np.int64)
    for max_hop in [*maximum, 0]:
        arrived = _back(spread, hops[-1], _stayed(spread, here))
        last = len(hops) > len(maximum)
        if last:
            hops[-1].deeper += _arrivals(spread, arrived, np.zeros(len(arrived.box), np.int64), 1)
            deeper = _further(spread, seen, arrived.node)
            break
        if not len(arrived.box):
            break
        seen[arrived.node] = True
        boxes, at = _folded(spread, arrived, max_hop, always)
        hops[-1].moves += _arrivals(spread, arrived, at, len(boxes))
        hops.append(Hop(boxes))
        left = np.zeros(len(at))
        here = _gathered(_Mass(at, arrived.node, arrived.all, arrived.fresh, left), len(past))
    return hops, deeper


def _further(spread: Spread, seen: Bools, arrived: Ints) -> Ints:
    """Give a node of each party that is further back than the hops, as far as it was followed."""
    past = spread.past
    behind = spread.shown & (np.diff(past.first) > 0) & ~seen
    behind[past.start] = False
    behind[arrived] = True
    nodes = np.flatnonzero(behind) if len(arrived) else arrived
    first: Ints = nodes[np.unique(spread.party[nodes], return_index=True)[1]]
    return first


def _stayed(spread: Spread, here: _Mass) -> _Mass:
    """Add what lay in the same account before: the same money, no hop further."""
    past = spread.past
    snapshot = past.chain.graph.names.snapshot[past.nodes[here.node]]
    if not past.ordered or np.all(snapshot == NO_SNAPSHOT):
        return here
    # A party has one box, so that what stays in it stays in that box.
    parties, first = np.unique(spread.party[here.node], return_index=True)
    both = []
    for walk, mass in ((past.walk, here.all), (spread.fresh.walk, here.fresh)):
        with walk.begun(here.node, mass):
            walk.push(0.0, party=spread.party)
            both.append(walk.found())
    came = both[0].visits > 0
    nodes = both[0].nodes[came]
    box = here.box[first[np.searchsorted(parties, spread.party[nodes])]]
    return _Mass(box, nodes, both[0].visits[came], both[1].visits[came], np.zeros(len(nodes)))


def _back(spread: Spread, hop: Hop, here: _Mass) -> _Mass:
    """Take money back to the parties before; note what ends on the way or is not followed."""
    past = spread.past
    arrived: list[_Mass] = []
    stays = True
    while len(here.box):
        _note_ends(spread, hop, here)
        # What has met a listed node is no longer fresh; at a party itself a thread begins there.
        listed = spread.listed[here.node]
        fresh = np.where(listed, 0.0, here.fresh)
        met = here.met if stays else here.met + np.where(listed, here.fresh, 0.0)
        count = past.first[here.node + 1] - past.first[here.node]
        at = np.repeat(np.arange(len(here.box)), count)
        place = np.arange(len(at)) - np.repeat(np.cumsum(count) - count, count)
        place += past.first[here.node][at]
        to, chance = past.to[place], past.chance[place]
        flows = (mass[at] * chance for mass in (here.all, fresh, met))
        moved = _Mass(here.box[at], to, *flows)
        if stays:
            # Moves inside an account were made already.
            inside = np.maximum(to, 0)
            retained = (to < 0) | (spread.party[inside] != spread.party[here.node[at]])
            retained |= inside == here.node[at]
            moved = _some(moved, retained)
            stays = False
        lost = _some(moved, moved.node < 0)
        nowhere = np.zeros(len(lost.box), np.int64)
        hop.deeper += _moves(lost.box, nowhere, 1, lost.all, np.zeros(len(lost.box)))
        moved = _gathered(_some(moved, (moved.node >= 0) & (moved.all > 0)), len(past))
        goes_on = past.first[moved.node + 1] > past.first[moved.node]
        party = spread.shown[moved.node] & goes_on
        arrived.append(_some(moved, party))
        here = _some(moved, ~party)
    return _Mass(*(np.concatenate(column) for column in zip(*arrived, strict=True)))


def _note_ends(spread: Spread, hop: Hop, here: _Mass) -> None:
    past = spread.past
    ends = np.flatnonzero(past.column[here.node] != NO_COLUMN)
    if not len(ends):
        return
    node = here.node[ends]
    share = here.all[ends] * past.own[node]
    # A listed source begins a thread, if the money has met no listed node on its way.
    thread = here.met[ends] + np.where(spread.listed[node], here.fresh[ends], 0.0)
    n = len(past.chain.outcomes)
    hop.ended += _moves(here.box[ends], past.column[node], n, share, thread * past.own[node])


def _folded(spread: Spread, arrived: _Mass, maximum: int, always: int) -> tuple[list[Box], Ints]:
    """Make boxes of the largest parties and of those listed, and one of all the others."""
    party, group = np.unique(spread.party[arrived.node], return_inverse=True)
    share = np.bincount(group, arrived.all, len(party))
    thread = np.bincount(group, arrived.fresh * spread.meets[arrived.node], len(party))
    is_listed = np.zeros(len(party), dtype=np.bool_)
    is_listed[group[spread.listed[arrived.node]]] = True
    paid = np.bincount(group, arrived.met, len(party)) > 0
    order = np.argsort(-share, kind="stable")
    large = (
        order[: abs(maximum)] if maximum < 0 else order[:maximum][share[order[:maximum]] >= FOLDED]
    )
    forced = order[(is_listed | paid)[order]][:always]
    retained = order[np.isin(order, np.concatenate([large, forced]))]
    rest = order[~np.isin(order, retained)]
    if len(rest) == 1:
        retained, rest = order[np.isin(order, np.append(retained, rest))], rest[:0]
    box = np.full(len(party), len(retained))
    box[retained] = np.arange(len(retained))
    at = box[group]
    boxes = []
    for number in range(len(retained) + (len(rest) > 0)):
        some = np.flatnonzero(at == number)
        some = some[np.argsort(-arrived.all[some], kind="stable")]
        parties = retained[number : number + 1] if number < len(retained) else rest
        boxes.append(
            Box(
                share=float(share[parties].sum()),
                listed=float(thread[parties].sum()),
                nodes=np.array(list(dict.fromkeys(arrived.node[some[:100]].tolist()))),
                parties=len(parties),
                folded=number == len(retained),
                is_listed=bool(is_listed[parties].all()) and number < len(retained),
                paid=bool(paid[parties].all()) and number < len(retained),
            )
        )
    return boxes, at


def _moves(to: Ints, at: Ints, places: int, share: Floats, listed: Floats) -> list[Move]:
    """Add up money by the box it came to and the one of so many places it came from."""
    key, group = np.unique(to * places + at, return_inverse=True)
    total = np.bincount(group, share, len(key)).tolist()
    thread = np.bincount(group, listed, len(key)).tolist()
    rows = zip(key.tolist(), total, thread, strict=True)
    return [Move(k // places, k % places, s, t) for k, s, t in rows]


def _arrivals(spread: Spread, arrived: _Mass, at: Ints, boxes: int) -> list[Move]:
    thread = arrived.fresh * spread.meets[arrived.node] + arrived.met
    return _moves(arrived.box, at, boxes, arrived.all, thread)


def _gathered(mass: _Mass, n: int) -> _Mass:
    """Add up what is at one node for one box."""
    key, group = np.unique(mass.box * n + mass.node, return_inverse=True)
    masses = (mass.all, mass.fresh, mass.met)
    return _Mass(
        key // n, key % n, *(np.bincount(group, m, len(key)).astype(float) for m in masses)
    )


def _some(mass: _Mass, retained: Bools) -> _Mass:
    box, node, *masses = mass
    return _Mass(box[retained], node[retained], *(m[retained] for m in masses))
