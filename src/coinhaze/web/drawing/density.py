"""The field of bits and steps: bins in eight shades, lone coins as dots; small enough to send."""

from __future__ import annotations

import math

from coinhaze.explore.describe import count_words
from coinhaze.explore.models import Density
from coinhaze.report.page import Html, escape
from coinhaze.web.drawing.svg import SPAN, percent, stretched, text

SHADES = 8
HEIGHT, FOOT, TOP = 300.0, 34.0, 6.0


def density_chart(density: Density) -> Html:
    """Draw a field; its ends are given to the script that brushes it."""
    tall = HEIGHT - FOOT - TOP
    marks = [
        f'<path class="shade s{shade}" d="{path}"/>'
        for shade, path in enumerate(shade_paths(density))
        if path
    ]
    # Rows are units of their own: the field is scaled into its place.
    across, up = SPAN / density.columns, tall / density.rows
    field = f'<g transform="translate(0 {TOP + tall}) scale({across:.4f} {-up:.4f})">'
    frame = (
        f'<rect class="axis" x="0" y="{TOP + tall:.1f}" width="{SPAN:.0f}" height="1"/>'
        f'<rect class="grid" x="0" y="{TOP}" width="{SPAN:.0f}" height="1"/>'
    )
    dots = "".join(
        f'<circle class="dot" cx="{percent(_x(density, o.bits))}" '
        f'cy="{TOP + tall * (1 - _up(density, o.steps)):.1f}" r="2"/>'
        for o in density.outliers
    )
    words = [*_bits_ticks(density), *_steps_ticks(density, tall)]
    coins = sum(density.counts) + len(density.outliers)
    said = f"{count_words(coins, 'coin')} by bits, across, and steps, up"
    ends = (
        f'data-bits-low="{density.bits_low!r}" data-bits-high="{density.bits_high!r}" '
        f'data-steps-low="{density.steps_low!r}" data-steps-high="{density.steps_high!r}"'
    )
    return Html(
        f'<div class="field" id="field" {ends} data-top="{TOP}" data-tall="{tall}">'
        f'<svg width="100%" height="{HEIGHT:.0f}" role="img" aria-label="{escape(said)}">'
        f"{stretched([frame, field, *marks, '</g>'], HEIGHT)}{dots}{''.join(words)}</svg></div>"
    )


def shade_paths(density: Density) -> list[str]:
    """Give for each shade the runs of bins it covers, as one path; shades count in logarithms."""
    most = max(density.counts, default=0)
    runs: list[list[str]] = [[] for _ in range(SHADES)]
    for row in range(density.rows):
        line = density.counts[row * density.columns : (row + 1) * density.columns]
        k = 0
        while k < len(line):
            shade = _shade(line[k], most)
            end = k + 1
            while end < len(line) and _shade(line[end], most) == shade:
                end += 1
            if shade >= 0:
                runs[shade].append(f"M{k} {row}h{end - k}v1h{k - end}z")
            k = end
    return ["".join(run) for run in runs]


def _shade(count: int, most: int) -> int:
    """Give the shade of a count, -1 for none.

    >>> [_shade(c, 1000) for c in (0, 1, 30, 1000)]
    [-1, 0, 3, 7]
    """
    if count <= 0:
        return -1
    return min(int(SHADES * math.log(count) / math.log(most + 1)), SHADES - 1) if most > 1 else 7


def _x(density: Density, bits: float) -> float:
    wide = density.bits_high - density.bits_low
    return SPAN * (bits - density.bits_low) / wide if wide > 0 else SPAN / 2


def _up(density: Density, steps: float) -> float:
    tall = density.steps_high - density.steps_low
    return (steps - density.steps_low) / tall if tall > 0 else 0.5


def _bits_ticks(density: Density) -> list[Html]:
    wide = density.bits_high - density.bits_low
    step = max(1, round(wide / 8))
    return [
        text(
            percent(_x(density, b)),
            HEIGHT - 14,
            f"{b} bits" if b == math.ceil(density.bits_low) else b,
            kind="tk",
            anchor="start" if _x(density, b) < 20 else "end" if _x(density, b) > 980 else "middle",
        )
        for b in range(math.ceil(density.bits_low), math.floor(density.bits_high) + 1, step)
    ]


def _steps_ticks(density: Density, tall: float) -> list[Html]:
    span = density.steps_high - density.steps_low
    if span <= 0:
        return []
    step = 10 ** math.floor(math.log10(span))
    step = step if span / step >= 3 else step / 2
    first = math.ceil(density.steps_low / step + 0.2)
    return [
        text(
            "4",
            TOP + tall * (1 - _up(density, k * step)) + 4,
            f"{k * step:g} steps",
            kind="tk dim halo",
        )
        for k in range(first, math.floor(density.steps_high / step) + 1)
    ]
