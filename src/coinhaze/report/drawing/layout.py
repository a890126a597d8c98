"""Where boxes and bands of a flow stand: columns along one axis, shares across the other.

Numbers only, no drawing: the same layout serves a wide drawing (columns side by side) and a narrow
one (columns below each other). A band that passes columns by gets a lane in each, so that it never
runs under a box.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

SWEEPS, STARTS = 4, 4  # times the order of columns is improved, and from how many beginnings
ENOUGH = 400  # ends of bands times beginnings
MIN_SCALE = 0.3  # of the room, for all the money, before the drawing grows


class _Node(Protocol):
    """A box of a flow, in a column; `folded` ones stand for others and come last."""

    @property
    def id(self) -> str: ...
    @property
    def column(self) -> int: ...
    @property
    def share(self) -> float: ...
    @property
    def folded(self) -> bool: ...


class _Link(Protocol):
    """Money that moved from an older box to a newer one, by their ids."""

    @property
    def before(self) -> str: ...
    @property
    def after(self) -> str: ...
    @property
    def share(self) -> float: ...


class _Flow(Protocol):
    """What is laid out: the flow of the page, or the one of a report."""

    @property
    def nodes(self) -> Sequence[_Node]: ...
    @property
    def bands(self) -> Sequence[_Link]: ...


@dataclass(frozen=True)
class Canvas:
    """What a drawing offers: room across, gaps, minima of a box and a lane, a maximum of all."""

    across: float
    gap: float
    box: float
    lane: float = 2.0
    max_length: float = math.inf  # for all the money


@dataclass(frozen=True)
class Stop:
    """A box, or a lane of a band, in a column: where it begins, and how wide its money is."""

    column: int
    at: float
    width: float


@dataclass(frozen=True)
class Ribbon:
    """A band from its older end to its newer one: a stop in every column on its way."""

    band: int
    stops: tuple[Stop, ...]
    width: float


@dataclass(frozen=True)
class Layout:
    """Boxes by id, bands, how long 1 of share is, and how much room across all takes."""

    boxes: dict[str, Stop]
    ribbons: tuple[Ribbon, ...]
    scale: float
    across: float


@dataclass
class _Item:
    """A box or a lane while it is being placed."""

    column: int
    share: float
    slot: float
    last: bool  # folded ones come last
    links: list[tuple[int, float]]  # items of neighbouring columns, and the share between
    at: float = 0.0
    middle: float = 0.0

    def put(self, at: float) -> None:
        self.at = at
        self.middle = at + self.slot / 2


def lay_out(flow: _Flow, room: Canvas) -> Layout:
    """Place the boxes of a flow in their columns and lead its bands between them.

    >>> from types import SimpleNamespace as Some
    >>> two = [Some(id=i, column=c, share=1.0, folded=False) for i, c in (("a", 1), ("b", 0))]
    >>> flow = Some(nodes=two, bands=[Some(before="a", after="b", share=1.0)])
    >>> placed = lay_out(flow, Canvas(100, 4, 10))
    >>> placed.boxes["a"].width == placed.ribbons[0].width == placed.scale
    True
    """
    items, box_of, ways = _items(flow)
    columns = _columns(items)
    scale = _scale(items, columns, room)
    for item in items:
        min_share = room.lane if item.slot < 0 else room.box
        item.slot = max(item.share * scale, min_share)
    across = max((_length(items, c, room.gap) for c in columns), default=0.0)
    across = max(across, room.across)
    _order(items, columns, room.gap, across)
    boxes = {name: _stop(items[k], scale) for name, k in box_of.items()}
    return Layout(boxes, _ribbons(flow, items, ways, scale), scale, across)


def _items(flow: _Flow) -> tuple[list[_Item], dict[str, int], list[list[int]]]:
    """Make an item of every box and of every lane; a way is the items a band leads through."""
    items: list[_Item] = []
    box_of: dict[str, int] = {}
    for node in flow.nodes:
        box_of[node.id] = len(items)
        items.append(_Item(node.column, node.share, 0.0, node.folded, []))
    ways = []
    for band in flow.bands:
        older, newer = box_of[band.before], box_of[band.after]
        way = [older]
        for column in range(items[older].column - 1, items[newer].column, -1):
            way.append(len(items))
            items.append(_Item(column, band.share, -1.0, False, []))
        way.append(newer)
        for a, b in pairwise(way):
            items[a].links.append((b, band.share))
            items[b].links.append((a, band.share))
        ways.append(way)
    return items, box_of, ways


def _columns(items: Sequence[_Item]) -> list[list[int]]:
    columns: list[list[int]] = [[] for _ in range(1 + max((i.column for i in items), default=0))]
    for k, item in enumerate(items):
        columns[item.column].append(k)
    return columns


def _length(items: Sequence[_Item], column: Sequence[int], gap: float) -> float:
    return sum(items[k].slot for k in column) + gap * max(len(column) - 1, 0)


def _scale(items: Sequence[_Item], columns: Sequence[Sequence[int]], room: Canvas) -> float:
    """Give the longest that 1 of share may be so that every column finds room."""
    low, high = MIN_SCALE * room.across, room.across
    if room.max_length <= low:
        return room.max_length
    high = min(high, room.max_length)
    for _ in range(24):
        middle = (low + high) / 2
        fits = all(
            sum(
                max(items[k].share * middle, room.lane if items[k].slot < 0 else room.box)
                for k in column
            )
            + room.gap * max(len(column) - 1, 0)
            <= room.across
            for column in columns
        )
        low, high = (middle, high) if fits else (low, middle)
    return low


def _order(items: list[_Item], columns: list[list[int]], gap: float, across: float) -> None:
    """Order every column to cut crossings, and place it near what it is linked to.

    Sweeps end in the nearest valley, so they begin from several orders; the best one is taken.
    """
    best: tuple[float, list[list[int]]] | None = None
    # What an order costs is counted for pairs of bands: crowds get fewer beginnings.
    links = sum(len(item.links) for item in items)
    for start in range(max(1, min(STARTS, ENOUGH // max(links, 1)))):
        tried = [_shuffled(items, column, start) for column in columns]
        for column in tried:
            _spread(items, column, gap, across)
        for sweep in range(SWEEPS):
            _sweep(items, tried, gap, across, newer_first=(sweep + start) % 2 == 0)
            crossed = _crossings(items, tried)
            if best is None or crossed < best[0] - 1e-12:
                best = crossed, [list(column) for column in tried]
        if best is not None and best[0] <= 0:
            break
    assert best is not None
    for c, column in enumerate(best[1]):
        _spread(items, column, gap, across)
        _place(items, column, c - 1, gap, across)
    for c in range(len(best[1]) - 2, -1, -1):
        _place(items, best[1][c], None, gap, across)


def _shuffled(items: Sequence[_Item], column: Sequence[int], start: int) -> list[int]:
    """Give a column in the order of a start: as it came, turned round, or scattered by a rule."""
    if start == 0:
        return list(column)
    # 2654435761 is Knuth's multiplier: it scatters, and the same way everywhere.
    rank = {k: (k * 2654435761 * (2 * start - 1)) % 2**32 if start > 1 else -k for k in column}
    return sorted(column, key=lambda k: (items[k].last, rank[k]))


def _sweep(
    items: list[_Item], columns: list[list[int]], gap: float, across: float, *, newer_first: bool
) -> None:
    for c in range(len(columns)) if newer_first else range(len(columns) - 1, -1, -1):
        beside = c - 1 if newer_first else c + 1
        if 0 <= beside < len(columns):
            rank = {k: (items[k].last, _wish(items, k, beside), k) for k in columns[c]}
            columns[c].sort(key=rank.__getitem__)
            _swap(items, columns[c])
        _place(items, columns[c], beside, gap, across)


def _swap(items: Sequence[_Item], column: list[int]) -> None:
    """Exchange neighbours as long as fewer bands cross; folded ones stay last."""
    for _ in range(len(column)):
        changed = False
        for i in range(len(column) - 1):
            a, b = column[i], column[i + 1]
            if items[a].last == items[b].last and _cost(items, b, a) < _cost(items, a, b) - 1e-12:
                column[i], column[i + 1] = b, a
                changed = True
        if not changed:
            return


def _cost(items: Sequence[_Item], upper: int, lower: int) -> float:
    """Give what crosses between two neighbours of a column, the smaller share of each pair."""
    return sum(
        min(s, t)
        for j, s in items[upper].links
        for k, t in items[lower].links
        if items[j].column == items[k].column and items[j].middle > items[k].middle
    )


def _spread(items: Sequence[_Item], column: Sequence[int], gap: float, across: float) -> None:
    at = (across - _length(items, column, gap)) / 2
    for k in column:
        items[k].put(at)
        at += items[k].slot + gap


def _wish(items: Sequence[_Item], k: int, beside: int | None) -> float:
    """Give the mean middle of what an item is linked to in a column; in all where None."""
    links = [
        (items[j].middle, share)
        for j, share in items[k].links
        if beside is None or items[j].column == beside
    ]
    total = sum(share for _, share in links)
    if total <= 0:
        return items[k].middle
    return sum(middle * share for middle, share in links) / total


def _place(
    items: Sequence[_Item], column: Sequence[int], beside: int | None, gap: float, across: float
) -> None:
    """Move a column's items as near to their wishes as its order and the room let them.

    Least squares under a fixed order: neighbours that would overlap are pooled (isotonic
    regression), then all is clipped to the room, which keeps it the least.
    """
    offset, pools, offsets = 0.0, [], []
    for k in column:
        item = items[k]
        wish = _wish(items, k, beside) - item.slot / 2 - offset
        offsets.append(offset)
        weight = max(item.share, 1e-6)
        pools.append([wish * weight, weight, 1.0])
        while len(pools) > 1 and pools[-2][0] / pools[-2][1] > pools[-1][0] / pools[-1][1]:
            top = pools.pop()
            pools[-1] = [a + b for a, b in zip(pools[-1], top, strict=True)]
        offset += item.slot + gap
    latest = across - (offset - gap)
    at = [min(max(s / w, 0.0), max(latest, 0.0)) for s, w, n in pools for _ in range(int(n))]
    for k, base, extra in zip(column, at, offsets, strict=True):
        items[k].put(base + extra)


def _crossings(items: Sequence[_Item], columns: Sequence[Sequence[int]]) -> float:
    """Sum the shares of bands that cross, the smaller of each pair."""
    total = 0.0
    for c in range(len(columns) - 1):
        ends = sorted(
            (items[k].middle, items[j].middle, share)
            for k in columns[c]
            for j, share in items[k].links
            if items[j].column == c + 1
        )
        # In the order of one end, two bands cross where the other ends fall.
        for i, (_, there, share) in enumerate(ends):
            for _, before, other in ends[:i]:
                if before > there:
                    total += min(share, other)
    return total


def _stop(item: _Item, scale: float) -> Stop:
    """Centre the money of an item in the room it takes."""
    width = item.share * scale
    return Stop(item.column, item.at + (item.slot - width) / 2, width)


def _ribbons(
    flow: _Flow, items: Sequence[_Item], ways: Sequence[Sequence[int]], scale: float
) -> tuple[Ribbon, ...]:
    """Stack bands on both sides of their boxes, in the order of where they lead."""
    starts: dict[tuple[int, int], float] = {}
    for end, there in ((0, 1), (-1, -2)):
        used: dict[int, float] = {}

        def rank(b: int, end: int = end, there: int = there) -> tuple[int, float, float]:
            way = ways[b]
            # Of two that lead to the same box the one whose own way goes on higher comes first.
            return way[end], items[way[there]].middle, items[way[-1 - end]].middle

        for b in sorted(range(len(ways)), key=rank):
            k = ways[b][end]
            begin = used.get(k, _stop(items[k], scale).at)
            starts[b, end] = begin
            used[k] = begin + flow.bands[b].share * scale
    ribbons = []
    for b, way in enumerate(ways):
        width = flow.bands[b].share * scale
        stops = [Stop(items[way[0]].column, starts[b, 0], width)]
        stops += [_stop(items[k], scale) for k in way[1:-1]]
        stops.append(Stop(items[way[-1]].column, starts[b, -1], width))
        ribbons.append(Ribbon(b, tuple(stops), width))
    return tuple(ribbons)
