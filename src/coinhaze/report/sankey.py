"""A Sankey diagram of flow by hop: boxes in columns, bands as wide as the money they carry.

The requested node is on the right, its past to the left; what ends at a source has its own colour
and no band further left.
"""

from __future__ import annotations

from typing import NamedTuple

from coinhaze.report.flow_layout import Canvas, Layout, Stop, lay_out
from coinhaze.report.layers import FlowBox, Layers
from coinhaze.report.page import Html, escape

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
