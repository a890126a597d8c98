"""A coin's money over its past as boxes and bands: columns of hops, what is deeper, origins."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from coinhaze.amounts import Bools, Ints
from coinhaze.errors import count_words
from coinhaze.explore.coin.hops import Box, Hop, Spread, spread_hops
from coinhaze.explore.coin.origins import NOTHING
from coinhaze.explore.describe import share_words
from coinhaze.explore.models import (
    Direction,
    Flow,
    FlowBand,
    FlowColumn,
    FlowNode,
    NodeKind,
    Origin,
    Other,
)
from coinhaze.explore.nodes import Nodes, coinjoins
from coinhaze.explore.query import MAX_NODES, By
from coinhaze.solve.local.past import Past

HOPS, A_HOP, MORE = 3, 6, 8  # columns of hops, boxes of each, and how many opening one adds
MAX_HOPS = 20
LOOKED_AT = 20  # nodes of a folded box, to tell its time
COIN = "c"
FURTHER = {"backward": "back", "forward": "on"}
ENDS = {"backward": "Origins", "forward": "Destinations"}
_OPENS = re.compile(r"h(?P<hop>[0-9]{1,2})x[0-9]*|(?P<origins>ox)[0-9]*|(?P<depth>d)[0-9]*")
Parts = tuple[tuple[int, float], ...]  # boxes of ends, and what part of an outcome each stands for
ONE, NOT_FOLLOWED = "One possible origin.", "further back, not followed"


@dataclass(frozen=True)
class Opened:
    """How far a flow is opened: hops shown, boxes of each hop, origins beyond those requested."""

    hops: int
    boxes: tuple[int, ...]  # of each hop how many times eight more
    origins: int

    @classmethod
    def of(cls, ids: Sequence[str]) -> Opened:
        """Read the ids of boxes that were opened; those of no box say nothing.

        >>> Opened.of(["h2x", "h2x1", "d", "ox"])
        Opened(hops=4, boxes=(0, 2, 0, 0), origins=8)
        """
        found = [m for m in map(_OPENS.fullmatch, ids) if m is not None]
        hops = min(HOPS + sum(m["depth"] is not None for m in found), MAX_HOPS)
        boxes = tuple(sum(m["hop"] == str(k) for m in found) for k in range(1, hops + 1))
        return cls(hops, boxes, MORE * sum(m["origins"] is not None for m in found))

    @property
    def depth(self) -> str:
        """The id of the box of what is deeper than the last hop."""
        return f"d{self.hops - HOPS or ''}"

    def maximum(self, room: int) -> list[int]:
        """Give for each hop the boxes shown at most; negative where it was opened."""
        given = []
        for times in self.boxes:
            wanted = A_HOP + MORE * times
            fits = max(min(wanted, room), 1)
            room -= fits + 1
            given.append(-fits if times else fits)
        return given


class _Drawing:
    """Boxes and bands while they are put together."""

    def __init__(self, by: By, direction: Direction) -> None:
        self.by = by
        self.direction = direction
        self.columns: list[FlowColumn] = []
        self.nodes: list[FlowNode] = []
        self.bands: list[FlowBand] = []

    def column(self, title: str, hop: int | None, nodes: Sequence[FlowNode]) -> None:
        reached = min(sum(node.share for node in nodes), 1.0)
        self.columns.append(FlowColumn(title=title, hop=hop, reached=reached))
        self.nodes += nodes

    def band(self, before: str, after: str, share: float, listed: float = 0.0) -> None:
        if share > 0:
            part = min(max(listed, 0.0), share, 1.0)
            self.bands.append(
                FlowBand(before=before, after=after, share=min(share, 1.0), listed=part)
            )

    def flow(self, text: str) -> Flow:
        flow = Flow(
            by=self.by, columns=tuple(self.columns), nodes=tuple(self.nodes),
            bands=tuple(self.bands), text=text,
        )  # fmt: skip
        return flow if self.direction == "backward" else flow.turned()


def straight_flow(
    coin: FlowNode,
    origins: Sequence[FlowNode],
    *,
    by: By,
    text: str,
    direction: Direction = "backward",
) -> Flow:
    """Draw origins straight to the coin, where the rule follows no ways."""
    drawing = _Drawing(by, direction)
    drawing.column(coin.kind.capitalize(), 0, [coin])
    if origins:
        drawing.column(ENDS[direction], None, origins)
    for origin in origins:
        drawing.band(origin.id, coin.id, origin.share, origin.listed)
    return drawing.flow(text)


def draw_flow(
    past: Past,
    nodes: Nodes,
    place: Mapping[int, Parts],
    origins: Sequence[FlowNode],
    *,
    by: By,
    opened: Opened,
    met: Bools | None,
    through: str = "",
    direction: Direction = "backward",
) -> Flow:
    """Spread a past over columns, and lead what is deeper than the last hop to the origins.

    `place` says which of the origins stand for an outcome; the last one does for all others.
    `through` says what listed money came through, where boxes are not listed themselves. Forward,
    the past is one of a graph turned round, and origins are destinations.
    """
    room = MAX_NODES - len(origins) - 3 - opened.hops
    hops, further = spread_hops(Spread.of(past, met), maximum=opened.maximum(room))
    drawing = _Drawing(by, direction)
    ids = _hop_columns(drawing, past, nodes, hops, opened, through)
    deep = _deeper(drawing, hops, ids, opened)
    further_on = FURTHER[direction]
    if deep is not None and len(further):
        words = _parties(nodes, past, further) + ("" if past.whole else " or more")
        facts = {"count": len(further), "words": words, "time": _mean_time(nodes, past, further)}
        deep = deep.model_copy(update=facts)
    direct = _ended(drawing, hops, ids, place, origins)
    if deep is not None:
        drawing.column(f"{len(hops)}+ hops {further_on}", None, [deep])
        for origin, (done, thread) in zip(origins, direct, strict=True):
            rest = max(origin.share - done, 0.0)
            drawing.band(origin.id, opened.depth, rest, origin.listed - thread)
    column = len(drawing.columns)
    drawing.column(
        ENDS[direction], None, [o.model_copy(update={"column": column}) for o in origins]
    )
    return drawing.flow(_text(origins, len(hops) - 1, direction))


def origin_nodes(
    origins: Sequence[Origin],
    other: Other,
    threads: Sequence[float] | None = None,
    *,
    met: float = 0.0,
    through: str = "",
) -> list[FlowNode]:
    """Make the boxes of the last column, the one of all others last.

    `threads` are the parts of origins that met the list, `met` is all that did. An origin all of
    whose money did has the flag, also if it is not listed itself.
    """
    found = []
    for k, o in enumerate(origins):
        listed = o.share if o.kind == "listed" else 0.0 if threads is None else threads[k]
        flag = 0 < o.share <= listed and o.kind != "listed"
        found.append(
            FlowNode(
                id=f"o{o.rank}", column=1, kind="listed" if flag else o.kind, name=o.name,
                words=f"{o.words}, through {through}" if flag else o.words, share=o.share,
                ended=o.share, listed=min(listed, o.share), label=o.label, time=o.time,
                height=o.height, href=o.href,
            )
        )  # fmt: skip
    if other.share > 0 or other.count > 0:
        words = f"Other, {count_words(other.count, 'origin')}" if other.count else NOT_FOLLOWED
        if not origins and other.count:
            # Nothing stands out: all are one bundle.
            words = count_words(other.count, "equal origin")
        found.append(
            FlowNode(
                id=f"ox{len(origins)}", column=1, kind="other", name=None, words=words,
                share=min(other.share, 1.0), ended=min(other.share, 1.0), count=other.count,
                listed=_rest(met - sum(node.listed for node in found), other.share),
                folded=True, opens=other.count > 0,
            )
        )  # fmt: skip
    return found


def _rest(listed: float, share: float) -> float:
    """Give what of the others is listed, but for roundings."""
    return 0.0 if listed <= NOTHING else min(listed, share, 1.0)


def coin_node(nodes: Nodes, node: int, *, listed: float) -> FlowNode:
    """Make the box of the coin itself."""
    return FlowNode(
        id=COIN, column=0, kind=nodes.kind(node), name=nodes.name(node), words=nodes.words(node),
        share=1.0, listed=min(listed, 1.0), label=nodes.label(node), time=nodes.time(node),
        height=nodes.height(node), href=None,
    )  # fmt: skip


def _hop_columns(
    drawing: _Drawing,
    past: Past,
    nodes: Nodes,
    hops: Sequence[Hop],
    opened: Opened,
    through: str,
) -> list[list[str]]:
    """Make boxes of all hops and the bands between them; give their ids."""
    shown = [past.nodes[b.nodes[0]] for hop in hops[1:] for b in hop.boxes if not b.folded]
    nodes.fetch(np.array([past.node, *shown], dtype=np.int64))
    joins = coinjoins(nodes, shown)
    at: dict[int, list[int]] = {}
    for number, hop in enumerate(hops):
        for box in hop.boxes:
            if not box.folded:
                party = int(nodes.graph.names.party[past.nodes[box.nodes[0]]])
                at.setdefault(party, []).append(number)
    ids: list[list[str]] = []
    for number, hop in enumerate(hops):
        made = []
        for rank, box in enumerate(hop.boxes):
            first = int(past.nodes[box.nodes[0]])
            if number == 0:
                made.append(coin_node(nodes, first, listed=box.listed))
            elif box.folded:
                times = opened.boxes[number - 1]
                made.append(_folded(nodes, past, box, f"h{number}x{times or ''}", number))
            else:
                also = tuple(h for h in at[int(nodes.graph.names.party[first])] if h != number)
                id_ = f"h{number}n{rank}"
                made.append(
                    _party(nodes, first, box, id_, number, also, joins, through, drawing.direction)
                )
        title = (
            made[0].kind.capitalize()
            if number == 0
            else f"{number} hop{'' if number == 1 else 's'}"
        )
        ended = [sum(m.share for m in hop.ended if m.to == k) for k in range(len(made))]
        made = [
            node if not part else node.model_copy(update={"ended": min(part, 1.0)})
            for node, part in zip(made, ended, strict=True)
        ]
        drawing.column(title, number, made)
        ids.append([node.id for node in made])
        if number:
            for move in hops[number - 1].moves:
                drawing.band(ids[-1][move.at], ids[-2][move.to], move.share, move.listed)
    return ids


def _party(
    nodes: Nodes,
    node: int,
    box: Box,
    id_: str,
    column: int,
    also: tuple[int, ...],
    joins: set[int],
    through: str,
    direction: Direction,
) -> FlowNode:
    kind: NodeKind = nodes.kind(node)
    words = nodes.words(node)
    if node in joins:
        kind, words = "coinjoin", words.replace("Payment", "CoinJoin")
    if box.paid and not box.is_listed:
        words = f"{words}, {'to' if direction == 'backward' else 'from'} {through}"
    return FlowNode(
        id=id_,
        column=column,
        kind="listed" if box.is_listed or box.paid else kind,
        name=nodes.party_name(node),
        words=words,
        share=min(box.share, 1.0),
        listed=min(box.listed, box.share, 1.0),
        also=also,
        twin=f"p{nodes.graph.names.party[node]}" if also else None,
        label=nodes.label(node),
        time=nodes.time(node),
        height=nodes.height(node),
        href=nodes.href(node),
    )


def _folded(nodes: Nodes, past: Past, box: Box, id_: str, column: int) -> FlowNode:
    return FlowNode(
        id=id_, column=column, kind="other", name=None,
        words=_parties(nodes, past, box.nodes, box.parties), share=min(box.share, 1.0),
        listed=min(box.listed, box.share, 1.0), count=box.parties, folded=True, opens=True,
        time=_mean_time(nodes, past, box.nodes),
    )  # fmt: skip


def _parties(nodes: Nodes, past: Past, places: Ints, count: int | None = None) -> str:
    """Count parties by what the first of them is."""
    kind = nodes.kind(int(past.nodes[places[0]]))
    many = "addresses" if kind == "address" else f"{kind}s"
    return count_words(len(places) if count is None else count, kind, many)


def _mean_time(nodes: Nodes, past: Past, places: Ints) -> int | None:
    """Give about when parties that are folded came to be; of many, of some."""
    some = places[:: max(len(places) // LOOKED_AT, 1)]
    times = [t for t in (nodes.time(int(past.nodes[k])) for k in some) if t is not None]
    return int(np.mean(times)) if times else None


def _deeper(
    drawing: _Drawing, hops: Sequence[Hop], ids: Sequence[Sequence[str]], opened: Opened
) -> FlowNode | None:
    """Make the box of all that is further back than the last hop, None if there is nothing."""
    share = listed = 0.0
    followed = False
    for number, hop in enumerate(hops):
        parts: dict[int, tuple[float, float]] = {}
        for move in hop.deeper:
            was = parts.get(move.to, (0.0, 0.0))
            parts[move.to] = was[0] + move.share, was[1] + move.listed
        for box, (all_, thread) in parts.items():
            drawing.band(opened.depth, ids[number][box], all_, thread)
            share, listed = share + all_, listed + thread
        followed = followed or (number == opened.hops and bool(hop.deeper))
    if share <= 0:
        return None
    return FlowNode(
        id=opened.depth, column=len(hops), kind="other", name=None,
        words=f"{len(hops)} hops {FURTHER[drawing.direction]} and more", share=min(share, 1.0),
        listed=min(listed, share, 1.0), count=0, folded=True,
        opens=followed and opened.hops < MAX_HOPS,
    )  # fmt: skip


def _ended(
    drawing: _Drawing,
    hops: Sequence[Hop],
    ids: Sequence[Sequence[str]],
    place: Mapping[int, Parts],
    origins: Sequence[FlowNode],
) -> list[tuple[float, float]]:
    """Lead origins straight to boxes they ended at; give how much of each, and of its thread."""
    direct = [(0.0, 0.0)] * len(origins)
    for number, hop in enumerate(hops):
        parts: dict[tuple[int, int], tuple[float, float]] = {}
        for move in hop.ended:
            for origin, part in place.get(move.at, ((len(origins) - 1, 1.0),)):
                was = parts.get((origin, move.to), (0.0, 0.0))
                more = part * move.share, part * move.listed
                parts[origin, move.to] = was[0] + more[0], was[1] + more[1]
        for (origin, box), (share, listed) in parts.items():
            drawing.band(origins[origin].id, ids[number][box], share, listed)
            direct[origin] = direct[origin][0] + share, direct[origin][1] + listed
    return direct


def _text(origins: Sequence[FlowNode], hops: int, direction: Direction) -> str:
    if len(origins) == 1 and not origins[0].folded:
        if direction == "forward":
            return f"All of it is in one place: {origins[0].words}."
        return f"{ONE} All of it comes from {origins[0].words}."
    parts = [f"{node.words} {share_words(node.share)}" for node in origins[:4]]
    over = f" over {count_words(hops, 'hop')}" if hops else ""
    which = "came from" if direction == "backward" else "went"
    return f"Where the money {which}{over}: {'; '.join(parts)}."
