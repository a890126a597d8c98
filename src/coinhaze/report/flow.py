"""Flow by hop of one node: folded, labelled, drawn as a Sankey diagram or written for Graphviz."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Floats, Ints
from coinhaze.graph import TransactionGraph
from coinhaze.graph.graph import Kind
from coinhaze.measures.hops import Hops, WalkHop
from coinhaze.observer.belief import Belief
from coinhaze.observer.outcomes import SourceNames
from coinhaze.report.flow_layout import Canvas, Layout, Stop, lay_out
from coinhaze.report.page import Html, escape

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

    name: str
    nodes: int
    share: float
    ended: float
    label: str | None = None
    other: bool = False

    def words(self, longest: int = LONGEST) -> str:
        """Return the text beside the box."""
        if self.other:
            return f"other ({self.nodes:,}, {self.share:.2%})"
        name = self.name if self.label is None else self.label
        return f"{short_name(name, longest)} {self.share:.2%}"


@dataclass(frozen=True)
class LayerBand:
    """Money that moved from a box of hop `hop + 1` to one of hop `hop`."""

    hop: int
    box: int
    before: int
    share: float


@dataclass(frozen=True)
class Layers:
    """Boxes hop by hop, largest first, the bucket last; and the bands between them."""

    boxes: tuple[tuple[FlowBox, ...], ...]
    bands: tuple[LayerBand, ...]
    earlier: float  # the share from before the last hop


def fold_hops(hops: Hops, labelled: Labelled, *, most: int = 6) -> Layers:
    """Keep the `most` largest boxes of each hop; the others become one."""
    folded = [_folded(hop, labelled, most) for hop in hops.hops]
    bands = []
    for k, hop in enumerate(hops.hops[:-1]):
        here, before = folded[k], folded[k + 1]
        width = len(before.boxes)
        pair = here.of_node[hop.at] * width + before.of_node[hop.to]
        total = np.bincount(pair, hop.flow, len(here.boxes) * width)
        for at in np.flatnonzero(total).tolist():
            bands.append(LayerBand(k, at // width, at % width, float(total[at])))
    return Layers(tuple(f.boxes for f in folded), tuple(bands), hops.earlier)


def short_name(name: str, longest: int = LONGEST) -> str:
    """Shorten a name in its middle.

    >>> short_name("0123456789abcdef0123456789abcdef")
    '0123456789…6789abcdef'
    """
    retained = longest // 2 - 2
    return name if len(name) <= longest else f"{name[:retained]}…{name[-retained:]}"


@dataclass(frozen=True)
class _Folded:
    boxes: tuple[FlowBox, ...]
    of_node: Ints  # the box of each node of the hop


def _folded(hop: WalkHop, labelled: Labelled, most: int) -> _Folded:
    label = labelled.number[hop.nodes]
    # Nodes with the same label share a key below all others'.
    key = np.where(label == UNLABELLED, hop.parties, UNLABELLED - 1 - label)
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    share, ended = (_sums(group, values) for values in (hop.share, hop.ended))
    count = np.bincount(group)
    largest = np.argsort(-share, kind="stable")
    shown = min(most, int(np.sum(share >= SMALLEST)))
    # A bucket of one would save nothing.
    retained = largest[: shown if len(largest) > shown + 1 else len(largest)]
    rest = largest[len(retained) :]
    nodes = hop.nodes[first[retained]]
    names = labelled.graph.names.parties.take(hop.parties[first[retained]]).to_pylist()
    boxes = [
        FlowBox(name, int(count[k]), float(share[k]), float(ended[k]), text)
        for name, text, k in zip(names, labelled.of(nodes), retained.tolist(), strict=True)
    ]
    if len(rest):
        all_, ends = (float(values[rest].sum()) for values in (share, ended))
        boxes.append(FlowBox("other", int(count[rest].sum()), all_, ends, other=True))
    place = np.full(len(share), len(retained))
    place[retained] = np.arange(len(retained))
    return _Folded(tuple(boxes), place[group])


def _sums(group: Ints, values: Floats) -> Floats:
    return np.bincount(group, values).astype(np.float64)


def quote(text: str) -> str:
    r"""Write text as a quoted word that stands for itself.

    >>> print(quote('a "b" \\N'))
    "a \"b\" \\N"
    """
    plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ").replace("\r", " ")
    return f'"{plain}"'


def dot(layers: Layers, *, title: str) -> str:
    """Return boxes as nodes in ranks, the oldest on the left, and bands as edges."""
    lines = [f"digraph {quote(title)} {{", "  rankdir=LR;", "  node [shape=box];"]
    for hop, boxes in enumerate(layers.boxes):
        lines.append("  { rank=same;")
        for k, box in enumerate(boxes):
            style = ", style=dashed" if box.other else ", style=bold" if box.ended > 0 else ""
            full = "" if box.other else f", tooltip={quote(box.name)}"
            lines.append(f'    "h{hop}_{k}" [label={quote(box.words())}{full}{style}];')
        lines.append("  }")
    for band in layers.bands:
        ends = f'"h{band.hop + 1}_{band.before}" -> "h{band.hop}_{band.box}"'
        wide = f"{0.5 + 7.5 * band.share:.2f}"
        lines.append(f"  {ends} [label={quote(f'{band.share:.2%}')}, penwidth={wide}];")
    return "\n".join([*lines, "}", ""])


TALL = 320.0  # pixels for all the money
LINE = 17.0  # the minimum height of a box, so that labels do not overlap
LETTERS = 14  # letters of a name that are shown
# A gap of at least half a line, so that labels of boxes thinner than a line do not overlap.
GAP, STEP, THICK, MARGIN, HEAD = 9.0, 160.0, 12.0, 12.0, 26.0
MIN_SCALE = 0.75  # scale below which a wide drawing is scrolled instead of shrunk


class _Box(NamedTuple):
    id: str
    column: int
    share: float
    folded: bool
    kind: str = ""


class _Band(NamedTuple):
    before: str
    after: str
    share: float


class _Flow(NamedTuple):
    nodes: list[_Box]
    bands: list[_Band]


def sankey(layers: Layers) -> Html:
    """Draw layers as inline SVG, in the colours of `page`."""
    layout = place_layers(layers)
    last = len(layers.boxes) - 1
    width = 2 * MARGIN + STEP * (last + 1)
    height = MARGIN + HEAD + layout.across
    parts = [_heads(last)]
    for ribbon in layout.ribbons:
        older, newer = ribbon.stops
        left, right = _x(last, older.column) + THICK, _x(last, newer.column)
        parts.append(_band(left, HEAD + older.at, right, HEAD + newer.at, ribbon.width))
    for hop, boxes in enumerate(layers.boxes):
        parts += [
            _box(box, _x(last, hop), layout.boxes[_id(hop, k)]) for k, box in enumerate(boxes)
        ]
    return Html(
        f'<div class="wide"><svg xmlns="http://www.w3.org/2000/svg" role="img" '
        f'style="width:100%;min-width:{MIN_SCALE * width:.0f}px;max-width:{width:.0f}px" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">\n'
        "<title>Flow of money by hop, newest on the right</title>\n"
        + "".join(parts)
        + "</svg></div>\n"
    )


def place_layers(layers: Layers) -> Layout:
    """Place boxes as the page does: one column per hop, ordered to cut crossings, no overlap."""
    nodes = [
        _Box(_id(hop, k), hop, box.share, box.other)
        for hop, boxes in enumerate(layers.boxes)
        for k, box in enumerate(boxes)
    ]
    bands = [
        _Band(_id(band.hop + 1, band.before), _id(band.hop, band.box), band.share)
        for band in layers.bands
    ]
    return lay_out(_Flow(nodes, bands), Canvas(TALL, GAP, LINE))


def _id(hop: int, k: int) -> str:
    return f"{hop}.{k}"


def _x(last: int, hop: int) -> float:
    return MARGIN + STEP * (last - hop)


def _band(x: float, y: float, x_to: float, y_to: float, tall: float) -> str:
    mid, tall = (x + x_to) / 2, max(tall, 0.5)
    there = f"C{mid:.1f} {y:.1f} {mid:.1f} {y_to:.1f} {x_to:.1f} {y_to:.1f}"
    back = f"C{mid:.1f} {y_to + tall:.1f} {mid:.1f} {y + tall:.1f} {x:.1f} {y + tall:.1f}"
    line = f"M{x:.1f} {y:.1f}{there}V{y_to + tall:.1f}{back}Z"
    return f'<path d="{line}" style="fill:var(--flow);fill-opacity:.28"/>\n'


def _box(box: FlowBox, x: float, place: Stop) -> str:
    colour = "var(--other)" if box.other else "var(--flow)"
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


def _heads(last: int) -> str:
    names = ["the node"] + [f"{hop} back" for hop in range(1, last + 1)]
    return "".join(
        f'<text x="{_x(last, hop):.1f}" y="14" style="fill:var(--soft)">{name}</text>\n'
        for hop, name in enumerate(names)
    )
