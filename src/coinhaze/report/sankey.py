"""A Sankey diagram of flow by hop: boxes in columns, bands as wide as the money they carry.

The requested node is on the right, its past to the left; what ends at a source has its own colour
and no band further left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coinhaze.report.layers import FlowBand, FlowBox, Layers
from coinhaze.report.page import Html, escape

TALL = 320.0  # pixels for all the money
LINE = 17.0  # the minimum height of a box, so that labels do not overlap
LETTERS = 14  # letters of a name that are shown
GAP, STEP, THICK, MARGIN, HEAD = 7.0, 160.0, 12.0, 12.0, 26.0
LEAST = 0.75  # scale below which a wide drawing is scrolled instead of shrunk


@dataclass(frozen=True)
class BoxPosition:
    """The position of a box: its upper left corner and height."""

    x: float
    y: float
    height: float


def sankey(layers: Layers) -> Html:
    """Draw layers as inline SVG, in the colours of `page`."""
    places = lay_out(layers)
    width = 2 * MARGIN + STEP * len(places)
    height = MARGIN + max(p.y + max(p.height, LINE) for column in places for p in column)
    parts = [_heads(places)]
    parts += [_band(*ends) for ends in _band_ends(layers, places)]
    for boxes, column in zip(layers.boxes, places, strict=True):
        parts += [_box(box, place) for box, place in zip(boxes, column, strict=True)]
    return Html(
        f'<div class="wide"><svg xmlns="http://www.w3.org/2000/svg" role="img" '
        f'style="width:100%;min-width:{LEAST * width:.0f}px;max-width:{width:.0f}px" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">\n'
        "<title>Flow of money by hop, newest on the right</title>\n"
        + "".join(parts)
        + "</svg></div>\n"
    )


def lay_out(layers: Layers) -> list[list[BoxPosition]]:
    """Place boxes: one column per hop, near what they flow into, without overlap."""
    columns: list[list[BoxPosition]] = []
    last = len(layers.boxes) - 1
    for hop, boxes in enumerate(layers.boxes):
        wanted = _wanted(layers, hop, columns[-1] if columns else [])
        x = MARGIN + STEP * (last - hop)
        placed: list[BoxPosition | None] = [None] * len(boxes)
        y = HEAD
        # The bucket comes last, whatever it flows into.
        order = sorted(range(len(boxes)), key=lambda k: (boxes[k].other, wanted[k], k))
        for k in order:
            tall = boxes[k].share * TALL
            placed[k] = BoxPosition(x, y, max(tall, 1.0))
            y += max(tall, LINE) + GAP
        columns.append([p for p in placed if p is not None])
    return columns


def _wanted(layers: Layers, hop: int, newer: Sequence[BoxPosition]) -> list[float]:
    """Return for each box of a hop the mean height of what it flows into."""
    n = len(layers.boxes[hop])
    into = [b for b in layers.bands if b.hop == hop - 1]
    before = np.array([b.before for b in into], dtype=np.int64)
    share = np.array([b.share for b in into])
    middle = np.array([newer[b.box].y + newer[b.box].height / 2 for b in into])
    total = np.bincount(before, share, n)
    mean: list[float] = (
        np.bincount(before, share * middle, n) / np.maximum(total, 1e-300)
    ).tolist()
    return mean


_Ends = tuple[float, float, float, float, float]


def _band_ends(layers: Layers, places: Sequence[Sequence[BoxPosition]]) -> list[_Ends]:
    """Stack the bands on both sides of the boxes: x, y at the left, x, y at the right, height."""
    ends = []
    used_left = [[p.y for p in column] for column in places]
    used_right = [[p.y for p in column] for column in places]

    def height_of(band: FlowBand) -> tuple[int, float, float]:
        return band.hop, places[band.hop][band.box].y, places[band.hop + 1][band.before].y

    for band in sorted(layers.bands, key=height_of):
        right, left = places[band.hop][band.box], places[band.hop + 1][band.before]
        tall = band.share * TALL
        y_right, y_left = used_right[band.hop][band.box], used_left[band.hop + 1][band.before]
        used_right[band.hop][band.box] += tall
        used_left[band.hop + 1][band.before] += tall
        ends.append((left.x + THICK, y_left, right.x, y_right, tall))
    return ends


def _band(x: float, y: float, x_to: float, y_to: float, tall: float) -> str:
    mid, tall = (x + x_to) / 2, max(tall, 0.5)
    there = f"C{mid:.1f} {y:.1f} {mid:.1f} {y_to:.1f} {x_to:.1f} {y_to:.1f}"
    back = f"C{mid:.1f} {y_to + tall:.1f} {mid:.1f} {y + tall:.1f} {x:.1f} {y + tall:.1f}"
    line = f"M{x:.1f} {y:.1f}{there}V{y_to + tall:.1f}{back}Z"
    return f'<path d="{line}" style="fill:var(--flow);fill-opacity:.28"/>\n'


def _box(box: FlowBox, place: BoxPosition) -> str:
    colour = "var(--other)" if box.other else "var(--flow)"
    ended = place.height * (box.ended / box.share if box.share else 0.0)
    full = box.name if box.label is None else f"{box.label}: {box.name}"
    parts = [
        _bar(place.x, place.y, place.height - ended, colour),
        _bar(place.x, place.y + place.height - ended, ended, "var(--source)"),
    ]
    at = f'x="{place.x + THICK + 4:.1f}" y="{place.y + 12:.1f}"'
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


def _heads(places: Sequence[Sequence[BoxPosition]]) -> str:
    names = ["the node"] + [f"{hop} back" for hop in range(1, len(places))]
    return "".join(
        f'<text x="{column[0].x:.1f}" y="14" style="fill:var(--soft)">{name}</text>\n'
        for name, column in zip(names, places, strict=True)
    )
