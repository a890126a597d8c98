"""The flow of money, drawn: past left and coin right, or coin on top where it is narrow.

Where money went is drawn the other way round: the coin on the left, what came later on the right.
A flow is turned for that, so that all bands lead to smaller columns.

Band width is share and nothing else; colour is the kind of an origin and nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from coinhaze.explore.models import Flow, FlowNode
from coinhaze.report.drawing.layout import Canvas, Layout, Ribbon, Stop, lay_out
from coinhaze.report.drawing.svg import SPAN, percent, ribbon_path, stretched, text
from coinhaze.report.page import Html, escape
from coinhaze.web.drawing.flow_columns import fold_flow, order_by_time
from coinhaze.web.drawing.flow_marks import Marks, kind_of, narrow_node, wide_node

NOTHING = 5e-4  # of share: less is no line that can be seen


def thread_shares(flow: Flow, origin: str) -> dict[int, float]:
    """Give for each band that carries an origin's money how much of it.

    >>> from coinhaze.explore.models import Flow, FlowBand, FlowNode
    >>> nodes = [FlowNode(id=i, column=c, kind="coin", name=i, words=i, share=s)
    ...          for i, c, s in (("a", 2, 0.25), ("b", 2, 0.75), ("c", 1, 1.0), ("d", 0, 1.0))]
    >>> bands = [FlowBand(before=a, after=b, share=s)
    ...          for a, b, s in (("a", "c", 0.25), ("b", "c", 0.75), ("c", "d", 1.0))]
    >>> thread_shares(Flow(by="hop", columns=(), nodes=nodes, bands=bands, text=""), "a")
    {0: 0.25, 2: 0.25}
    """
    column = {node.id: node.column for node in flow.nodes}
    share = {node.id: node.share for node in flow.nodes}
    inside = {origin: share[origin]}
    carried: dict[int, float] = {}
    # Bands lead to smaller columns: a box is complete before anything leaves it.
    for b in sorted(range(len(flow.bands)), key=lambda b: (-column[flow.bands[b].before], b)):
        band = flow.bands[b]
        whole = share[band.before]
        part = band.share * inside.get(band.before, 0.0) / whole if whole > 0 else 0.0
        if part > 0:
            inside[band.after] = inside.get(band.after, 0.0) + part
        if part >= NOTHING:
            carried[b] = min(part, band.share)
    return carried


def thread_ribbons(flow: Flow, layout: Layout, carried: Mapping[int, float]) -> list[Ribbon]:
    """Lead threads inside their bands, each going on where the one before it arrived."""
    column = {node.id: node.column for node in flow.nodes}
    by_band = {ribbon.band: ribbon for ribbon in layout.ribbons}
    arrived: dict[str, list[tuple[float, float]]] = {}
    ribbons = []
    for b in sorted(carried, key=lambda b: (-column[flow.bands[b].before], b)):
        band, ribbon = flow.bands[b], by_band[b]
        width = carried[b] * layout.scale
        first = ribbon.stops[0].at
        offset = _offset(arrived.get(band.before, ()), first, width, ribbon.width)
        stops = tuple(Stop(s.column, s.at + offset, width) for s in ribbon.stops)
        arrived.setdefault(band.after, []).append((stops[-1].at, width))
        ribbons.append(Ribbon(b, stops, width))
    return ribbons


def _offset(
    arrived: Sequence[tuple[float, float]], first: float, width: float, room: float
) -> float:
    """Give how far into its band a thread begins: as near as may be to where it arrived."""
    total = sum(w for _, w in arrived)
    if total <= 0:
        return 0.0
    middle = sum((at + w / 2) * w for at, w in arrived) / total
    return min(max(middle - width / 2 - first, 0.0), max(room - width, 0.0))


WIDE_TALL, WIDE_HEAD = 336.0, 24.0  # pixels
SHORT_TALL, THIN = 96.0, 14.0  # for a drawing of one path, and for one whose widths say nothing
NARROW_STEP, NARROW_HEAD, NARROW_FOOT = 74.0, 24.0, 26.0
NARROW_COLUMN = 4  # boxes of a column where narrow: 26 in all
ORIGINS_AT, COIN_AT = 198.0, 990.0  # of SPAN
ORIGIN_KINDS = ("earlier", "service", "mined", "listed")


@dataclass(frozen=True)
class Picture:
    """What a drawing needs beside the flow: letters of origins, links, and whether shares count."""

    letters: Mapping[str, str] = field(default_factory=dict)  # of origins, by name
    link: Callable[[FlowNode], str | None] = lambda node: node.href
    shares: bool = True  # poison gives none
    noun: str = "coin"  # what the money is now
    forward: bool = False  # where it went


def draw_flow(flow: Flow, picture: Picture) -> Html:
    """Draw a flow twice, for wide and for narrow screens; the style sheet shows one."""
    if flow.direction == "forward":
        flow = flow.turned()
        picture = replace(picture, forward=True)
    if flow.by == "time":
        flow = order_by_time(flow, forward=picture.forward)
    narrow = fold_flow(flow, per_column=NARROW_COLUMN)
    return Html(
        f'<div class="pic"><div class="wideflow">{draw_wide(flow, picture)}</div>'
        f'<div class="narrowflow">{draw_narrow(narrow, picture)}</div></div>'
    )


def draw_wide(flow: Flow, picture: Picture) -> Html:
    """Draw columns side by side, the coin on the right."""
    one_path = len(flow.nodes) <= len(flow.columns)
    room = Canvas(SHORT_TALL if one_path else WIDE_TALL, 7.0, 16.0)
    if not picture.shares:
        crowd = max(Counter(node.column for node in flow.nodes).values())
        room = Canvas(23.0 * crowd + THIN, 7.0, 16.0, max_length=THIN)
    layout = lay_out(flow, room)
    last = max((node.column for node in flow.nodes), default=1) or 1
    step = (COIN_AT - ORIGINS_AT) / last

    def along(column: int) -> float:
        back = COIN_AT - step * column
        return SPAN - back if picture.forward else back

    height = WIDE_HEAD + layout.across + 6
    marks = Marks(WIDE_HEAD, along, step / SPAN, picture.shares, picture.noun, picture.forward)
    outer = () if picture.forward else (0, last)
    heads = [
        text(
            percent(along(c)),
            12,
            column.title,
            kind="colh",
            anchor="end" if c in outer else "start",
            dx=6 if c in outer else -5,
        )
        for c, column in enumerate(flow.columns)
    ]
    nodes = [
        wide_node(node, layout.boxes[node.id], marks, picture.link(node), last=last)
        for node in _in_order(flow, layout)
    ]
    bands = _bands(flow, layout, along, WIDE_HEAD, turned=False)
    return _svg("wide", flow, height, [stretched(bands, height), *heads, *nodes], picture)


def draw_narrow(flow: Flow, picture: Picture) -> Html:
    """Draw columns below each other, the coin on top; letters name the origins of the table."""
    maximum = SPAN if picture.shares else 4 * THIN
    layout = lay_out(flow, Canvas(SPAN, 14.0, 50.0, 8.0, maximum))
    last = max((node.column for node in flow.nodes), default=1)
    # A drawing that asks for more room than there is, is drawn smaller: only marks, no words.
    shrink = SPAN / layout.across
    layout = _shrunk(layout, shrink)

    def along(column: int) -> float:
        return NARROW_HEAD + NARROW_STEP * column

    height = along(last) + NARROW_FOOT
    ends = {node.id for node in origins_of(flow)}
    marks = Marks(0.0, along, 1.0, picture.shares, picture.noun, picture.forward)
    nodes = [
        narrow_node(
            node,
            layout.boxes[node.id],
            marks,
            picture.link(node),
            letter=_letter(node, picture) if node.id in ends else None,
        )
        for node in _in_order(flow, layout)
    ]
    heads = [
        text("0%", 12, f"This {picture.noun}", kind="colh"),
        text("100%", 12, "later ↓" if picture.forward else "older ↓", kind="colh", anchor="end"),
    ]
    bands = _bands(flow, layout, along, 0.0, turned=True)
    return _svg("narrow", flow, height, [stretched(bands, height), *heads, *nodes], picture)


def origins_of(flow: Flow) -> list[FlowNode]:
    """Give the boxes nothing leads to."""
    reached = {band.after for band in flow.bands}
    return [node for node in flow.nodes if node.id not in reached and node.column > 0]


def _letter(node: FlowNode, picture: Picture) -> str:
    if node.folded:
        return "…"
    return picture.letters.get(node.name or "", "·")


def _in_order(flow: Flow, layout: Layout) -> list[FlowNode]:
    """Order boxes as they are read: the coin first, then column by column from the top."""
    return sorted(flow.nodes, key=lambda n: (n.column, layout.boxes[n.id].at, n.id))


def _shrunk(layout: Layout, by: float) -> Layout:
    def stop(s: Stop) -> Stop:
        return Stop(s.column, s.at * by, s.width * by)

    return Layout(
        {name: stop(s) for name, s in layout.boxes.items()},
        tuple(
            Ribbon(r.band, tuple(stop(s) for s in r.stops), r.width * by) for r in layout.ribbons
        ),
        layout.scale * by,
        layout.across * by,
    )


def _bands(
    flow: Flow, layout: Layout, along: Callable[[int], float], head: float, *, turned: bool
) -> list[str]:
    """Draw bands, then the threads of origins over them: those of listed money always show."""
    kinds: dict[str, str] = {node.id: kind_of(node) for node in flow.nodes}

    def path(ribbon: Ribbon) -> str:
        points = [(along(s.column), s.at + head) for s in ribbon.stops]
        return ribbon_path(points, ribbon.width, turned=turned)

    parts = []
    # Thin bands last, so that wide ones do not cover them.
    for ribbon in sorted(layout.ribbons, key=lambda r: (-r.width, r.band)):
        band = flow.bands[ribbon.band]
        kind = kinds[band.before] if kinds[band.before] in ORIGIN_KINDS else "mid"
        parts.append(
            f'<path class="ln k-{kind}" d="{path(ribbon)}" '
            f'data-a="{escape(band.before)}" data-b="{escape(band.after)}"/>'
        )
    listed = {b: band.listed for b, band in enumerate(flow.bands) if band.listed > 0}
    groups: list[tuple[str, str, Mapping[int, float]]] = [("listed", "k-listed always", listed)]
    groups += [
        (node.id, f"k-{kinds[node.id]}", thread_shares(flow, node.id)) for node in origins_of(flow)
    ]
    for name, kind, carried in groups:
        if carried:
            lines = "".join(f'<path d="{path(r)}"/>' for r in thread_ribbons(flow, layout, carried))
            parts.append(f'<g class="thread {kind}" data-o="{escape(name)}">{lines}</g>')
    return parts


def _svg(kind: str, flow: Flow, height: float, parts: Iterable[str], picture: Picture) -> Html:
    hatch = (
        f'<defs><pattern id="hatch-{kind}" width="6" height="6" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><rect width="6" height="6" class="hb"/>'
        '<rect width="2.4" height="6" class="hf"/></pattern></defs>'
    )
    what = "Flow of money forward, later" if picture.forward else "Flow of provenance, older"
    side = "below" if kind != "wide" else "on the right" if picture.forward else "on the left"
    label = f"{what} {side}. {flow.text} The table view holds the same figures."
    return Html(
        f'<svg class="sankey {kind}" width="100%" height="{height:.0f}" role="group" '
        f'aria-label="{escape(label)}">{hatch}{"".join(parts)}</svg>'
    )
