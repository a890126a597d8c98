"""Flow by hop of one node: folded, labelled, drawn as a Sankey diagram or written for Graphviz."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Floats, Ints
from coinhaze.errors import UsageError
from coinhaze.graph import TransactionGraph
from coinhaze.graph.graph import Kind
from coinhaze.graph.reverse import FORWARD
from coinhaze.observer.chain import Belief, SourceNames
from coinhaze.report.drawing.layout import Canvas, Stop, lay_out
from coinhaze.report.drawing.svg import ribbon_path
from coinhaze.report.page import Html, escape
from coinhaze.solve.local.hops import Hops, WalkHop

UNLABELLED = -1


class Labelled:
    """The labels of a graph's nodes: a coin has its address's, a coinbase its owner's.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("0xa", "0xb", 1)])
    >>> Labelled(coinhaze.transaction_graph(ledger), {"0xa": "a shop"}).of(np.array([0, 1]))
    ['a shop', None]
    """

    def __init__(self, graph: TransactionGraph, labels: Mapping[str, str]) -> None:
        self.graph = graph
        self.labels = labels
        self.texts = sorted(set(labels.values()))

    @cached_property
    def number(self) -> Ints:
        """The number of each node's label text, -1 if it has none."""
        graph = self.graph
        number = np.full(len(graph), UNLABELLED)
        if not self.labels:
            return number
        place = {text: k for k, text in enumerate(self.texts)}
        for address, text in self.labels.items():
            number[graph.names.nodes(address)] = place[text]
        mined = (graph.kinds[graph.tail] == Kind.transaction) & graph.sources[graph.tail]
        mined &= (number[graph.head] != UNLABELLED) & (number[graph.tail] == UNLABELLED)
        # Of several owners the first output's counts: it is written last.
        edges = np.flatnonzero(mined)[::-1]
        number[graph.tail[edges]] = number[graph.head[edges]]
        return number

    def of(self, nodes: Ints) -> list[str | None]:
        """Return the labels of some nodes."""
        texts = [*self.texts, None]
        return [texts[k] for k in self.number[nodes].tolist()]

    def of_outcomes(self, belief: Belief, outcomes: Ints) -> list[str | None]:
        """Return the labels of some outcomes: sources, or entries of a list."""
        names = belief.outcomes
        if isinstance(names, SourceNames):
            return self.of(names.nodes[outcomes])
        rows = pa.array(outcomes.astype(np.int64))
        return [self.labels.get(name) for name in names.take(rows).to_pylist()]


LONGEST = 24  # letters of a name that is shown in full
SMALLEST = 0.0005  # the smallest share of a box that is shown by itself


@dataclass(frozen=True)
class FlowBox:
    """Some nodes of a hop drawn as one: one node, those of one label, or all the others."""

    id: str
    column: int  # the hop
    name: str
    nodes: int
    share: float
    ended: float
    label: str | None = None
    folded: bool = False  # all the others

    def words(self, longest: int = LONGEST) -> str:
        """Return the text beside the box."""
        if self.folded:
            return f"other ({self.nodes:,}, {self.share:.2%})"
        name = self.name if self.label is None else self.label
        return f"{short_name(name, longest)} {self.share:.2%}"


class LayerBand(NamedTuple):
    """Money that moved between a box and one of the next hop, by their ids.

    `after` is the one nearer to the node: the newer one, or the older one of a flow forward.
    """

    before: str
    after: str
    share: float


@dataclass(frozen=True)
class Layers:
    """Boxes hop by hop, largest first, the bucket last; and the bands between them."""

    boxes: tuple[tuple[FlowBox, ...], ...]
    bands: tuple[LayerBand, ...]
    earlier: float  # the share from before the last hop, or of a flow forward from after it
    forward: bool = False  # whether hops lead to where money went, not to where it came from

    @property
    def nodes(self) -> list[FlowBox]:
        """All boxes."""
        return [box for boxes in self.boxes for box in boxes]


def fold_hops(hops: Hops, labelled: Labelled, *, limit: int = 6) -> Layers:
    """Keep the `limit` largest boxes of each hop; the others become one."""
    folded = [_folded(k, hop, labelled, limit) for k, hop in enumerate(hops.hops)]
    bands = []
    for k, hop in enumerate(hops.hops[:-1]):
        (here, at), (before, to) = folded[k], folded[k + 1]
        width = len(before)
        total = np.bincount(at[hop.at] * width + to[hop.to], hop.flow, len(here) * width)
        for pair in np.flatnonzero(total).tolist():
            older, newer = before[pair % width], here[pair // width]
            bands.append(LayerBand(older.id, newer.id, float(total[pair])))
    forward = hops.chain.graph.settings.get("direction") == FORWARD
    return Layers(tuple(boxes for boxes, _ in folded), tuple(bands), hops.earlier, forward)


def short_name(name: str, longest: int = LONGEST) -> str:
    """Shorten a name in its middle.

    >>> short_name("0123456789abcdef0123456789abcdef")
    '0123456789…6789abcdef'
    """
    retained = longest // 2 - 2
    return name if len(name) <= longest else f"{name[:retained]}…{name[-retained:]}"


def _folded(
    number: int, hop: WalkHop, labelled: Labelled, limit: int
) -> tuple[tuple[FlowBox, ...], Ints]:
    """Return the boxes of a hop, and the box of each of its nodes."""
    label = labelled.number[hop.nodes]
    # Nodes with the same label share a key below all others'.
    key = np.where(label == UNLABELLED, hop.parties, UNLABELLED - 1 - label)
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    share, ended = (_sums(group, values) for values in (hop.share, hop.ended))
    count = np.bincount(group)
    largest = np.argsort(-share, kind="stable")
    shown = min(limit, int(np.sum(share >= SMALLEST)))
    # A bucket of one would save nothing.
    retained = largest[: shown if len(largest) > shown + 1 else len(largest)]
    rest = largest[len(retained) :]
    nodes = hop.nodes[first[retained]]
    names = labelled.graph.names.parties.take(hop.parties[first[retained]]).to_pylist()
    boxes = [
        FlowBox(
            f"h{number}_{rank}", number, name, int(count[k]), float(share[k]), float(ended[k]), text
        )
        for rank, (name, text, k) in enumerate(
            zip(names, labelled.of(nodes), retained.tolist(), strict=True)
        )
    ]
    if len(rest):
        all_, ends = (float(values[rest].sum()) for values in (share, ended))
        of = int(count[rest].sum())
        id_ = f"h{number}_{len(boxes)}"
        boxes.append(FlowBox(id_, number, "other", of, all_, ends, folded=True))
    place = np.full(len(share), len(retained))
    place[retained] = np.arange(len(retained))
    return tuple(boxes), place[group]


def _sums(group: Ints, values: Floats) -> Floats:
    return np.bincount(group, values).astype(np.float64)


def quote(text: str) -> str:
    r"""Write text as a quoted word that stands for itself.

    >>> print(quote('a "b" \\N'))
    "a \"b\" \\N"
    """
    plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ").replace("\r", " ")
    return f'"{plain}"'


def dot(layers: Layers | None, *, title: str) -> str:
    """Return boxes as nodes in ranks, the oldest on the left, and bands as edges."""
    if layers is None:
        raise UsageError(
            "an ordered policy follows lots: there is no flow by hop to draw; "
            "ask for text, json or html"
        )
    lines = [f"digraph {quote(title)} {{", "  rankdir=LR;", "  node [shape=box];"]
    for boxes in layers.boxes:
        lines.append("  { rank=same;")
        for box in boxes:
            style = ", style=dashed" if box.folded else ", style=bold" if box.ended > 0 else ""
            full = "" if box.folded else f", tooltip={quote(box.name)}"
            lines.append(f'    "{box.id}" [label={quote(box.words())}{full}{style}];')
        lines.append("  }")
    for band in layers.bands:
        wide = f"{0.5 + 7.5 * band.share:.2f}"
        label = f"label={quote(f'{band.share:.2%}')}, penwidth={wide}"
        ends = band.before, band.after
        older, newer = ends[::-1] if layers.forward else ends
        lines.append(f'  "{older}" -> "{newer}" [{label}];')
    return "\n".join([*lines, "}", ""])


TALL = 320.0  # pixels for all the money
LINE = 17.0  # the minimum height of a box, so that labels do not overlap
LETTERS = 14  # letters of a name that are shown
# A gap of at least half a line, so that labels of boxes thinner than a line do not overlap.
GAP, STEP, THICK, MARGIN, HEAD = 9.0, 160.0, 12.0, 12.0, 26.0
ROOM = Canvas(TALL, GAP, LINE)
MIN_SCALE = 0.75  # scale below which a wide drawing is scrolled instead of shrunk


def sankey(layers: Layers) -> Html:
    """Draw layers as inline SVG, in the colours of `page`."""
    layout = lay_out(layers, ROOM)
    last = len(layers.boxes) - 1
    width = 2 * MARGIN + STEP * (last + 1)
    height = MARGIN + HEAD + layout.across
    parts = [_heads(last, forward=layers.forward)]
    for ribbon in layout.ribbons:
        ends = [(_x(last, stop.column, forward=layers.forward), stop.at) for stop in ribbon.stops]
        (left, older), (right, newer) = sorted(ends)
        points = [(left + THICK, HEAD + older), (right, HEAD + newer)]
        path = ribbon_path(points, ribbon.width, turned=False)
        parts.append(f'<path d="{path}" style="fill:var(--flow);fill-opacity:.28"/>\n')
    for box in layers.nodes:
        at = _x(last, box.column, forward=layers.forward)
        parts.append(_box(box, at, layout.boxes[box.id]))
    return Html(
        f'<div class="wide"><svg xmlns="http://www.w3.org/2000/svg" role="img" '
        f'style="width:100%;min-width:{MIN_SCALE * width:.0f}px;max-width:{width:.0f}px" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">\n'
        "<title>Flow of money by hop, newest on the right</title>\n"
        + "".join(parts)
        + "</svg></div>\n"
    )


def _x(last: int, hop: int, *, forward: bool) -> float:
    return MARGIN + STEP * (hop if forward else last - hop)


def _box(box: FlowBox, x: float, place: Stop) -> str:
    colour = "var(--other)" if box.folded else "var(--flow)"
    y, height = HEAD + place.at, max(place.width, 1.0)
    ended = height * (box.ended / box.share if box.share else 0.0)
    full = box.name if box.label is None else f"{box.label}: {box.name}"
    parts = [
        _bar(x, y, height - ended, colour),
        _bar(x, y + height - ended, ended, "var(--source)"),
    ]
    at = f'x="{x + THICK + 4:.1f}" y="{y + 12:.1f}"'
    return (
        f"<g><title>{escape(full)} {box.share:.4%}, ends here {box.ended:.4%}</title>"
        + "".join(parts)
        + f"<text {at}>{escape(box.words(LETTERS))}</text></g>\n"
    )


def _bar(x: float, y: float, height: float, colour: str) -> str:
    if height <= 0:
        return ""
    box = f'x="{x:.1f}" y="{y:.1f}" width="{THICK:.0f}" height="{height:.2f}"'
    return f'<rect {box} style="fill:{colour}"/>'


def _heads(last: int, *, forward: bool) -> str:
    way = "on" if forward else "back"
    names = ["the node"] + [f"{hop} {way}" for hop in range(1, last + 1)]
    places = [_x(last, hop, forward=forward) for hop in range(last + 1)]
    return "".join(
        f'<text x="{x:.1f}" y="14" style="fill:var(--soft)">{name}</text>\n'
        for x, name in zip(places, names, strict=True)
    )
