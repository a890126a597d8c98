"""Pictures of many coins, as SVG made here: bins of bits, the field of bits and steps, curves."""

from __future__ import annotations

import math
from collections.abc import Sequence

from coinhaze.explore.describe import count_words, share_words
from coinhaze.explore.models import Curve, Density, Histogram
from coinhaze.report.page import Html, escape
from coinhaze.report.svg import SPAN, percent, stretched, text
from coinhaze.web.pages.words import noun_of

ZERO_END, FIRST = 16.0, 26.0  # of SPAN: the bar of exact zeros, and where the bins begin
DOTS_ONLY, DOTS_TOO = 50, 2_000
_EQUAL = (1, 2, 10, 100, 1_000, 10_000, 100_000, 1_000_000)
DASHES = ("", "9 5", "2 4", "14 4 2 4", "5 3")


def scale_chart(
    histogram: Histogram,
    *,
    bits: float | None = None,
    height: float = 92.0,
    marked: str = "",
    whose: str = "of this ledger",
    noun: str = "coin",
) -> Html:
    """Draw coins by bits, one marked; the axis counts equally likely origins."""
    # The axis reaches the marked coin, though it may have more bits than all others.
    n = max(len(histogram.counts), 4, math.ceil((bits or 0.0) / histogram.width) + 1)
    coins = histogram.zeros + sum(histogram.counts)
    most = max([histogram.zeros, *histogram.counts, 1])
    tall, top = height - 34, 18.0

    def bar(x: float, width: float, count: int, below: bool) -> str:
        high = max(tall * count / most, 1.0) if count else 0.0
        kind = "below" if below else "above"
        return (
            f'<rect class="hs {kind}" x="{x:.1f}" y="{top + tall - high:.1f}" '
            f'width="{width:.1f}" height="{high:.1f}"/>'
        )

    reach = math.inf if bits is None else bits
    step = (SPAN - FIRST) / n
    bars = [bar(0, ZERO_END, histogram.zeros, True)] if histogram.zeros else []
    dots = _dots(histogram, step, top + tall) if coins <= DOTS_ONLY else ""
    bars += [
        bar(
            FIRST + k * step, max(step - 1.5, 1.0), count, (k + 1) * histogram.width <= reach + 0.13
        )
        for k, count in enumerate(histogram.counts)
    ]
    axis = f'<rect class="axis" x="0" y="{top + tall:.1f}" width="{SPAN:.0f}" height="1"/>'
    words = [
        text(percent(FIRST + b / histogram.width * step), height - 3, f"{e:,}", kind="tk", anchor=a)
        for e, b, a in _ticks(n * histogram.width)
    ]
    mark = "" if bits is None else _marker(bits, histogram.width, step, top + tall, marked)
    counted = count_words(coins, noun, noun_of(noun, many=True))
    said = f"{counted} by bits" + (f", {marked} at {bits:.2f}" if bits else "")
    if dots:
        bars = []
    return Html(
        f'<figure class="scale"><svg width="100%" height="{height:.0f}" role="img" '
        f'aria-label="{escape(said)}">{stretched([*bars, axis], height)}{dots}{"".join(words)}'
        f"{mark}</svg><figcaption><span>equally likely origins, "
        f"{counted} {escape(whose)}</span><span>harder to trace →</span>"
        "</figcaption></figure>"
    )


def _marker(bits: float, width: float, step: float, foot: float, words: str) -> str:
    at = FIRST + bits / width * step if bits > 0 else ZERO_END / 2
    right = at < SPAN * 0.75
    return (
        f'<svg x="{percent(at)}" overflow="visible"><rect class="iv" x="-1.5" y="2" width="3" '
        f'height="{foot - 2:.0f}"/>'
        + text("0", 13, words, kind="me", anchor="start" if right else "end", dx=8 if right else -8)
        + "</svg>"
    )


def _ticks(last: float) -> list[tuple[int, float, str]]:
    """Give equal origins, their bits, and how their words are anchored; none too near the next."""
    found = [(e, math.log2(e)) for e in _EQUAL if math.log2(e) <= last]
    retained: list[tuple[int, float, str]] = []
    for equal, bits in found:
        if not retained or (bits - retained[-1][1]) / last > 0.07:
            retained.append((equal, bits, "middle" if bits / last < 0.96 else "end"))
    return retained


def _dots(histogram: Histogram, step: float, foot: float) -> str:
    """Draw each coin as a dot on a line; those at one place stand above each other."""
    stacks: dict[int, int] = {}
    parts = []
    for value in histogram.values or ():
        at = FIRST + value / histogram.width * step if value > 0 else ZERO_END / 2
        place = round(at / 9)
        stacks[place] = stacks.get(place, 0) + 1
        up = min(foot - 5 - 8 * (stacks[place] - 1), foot - 5)
        parts.append(f'<circle class="dot" cx="{percent(at)}" cy="{max(up, 4):.1f}" r="3.5"/>')
    return "".join(parts)


def histogram_chart(histogram: Histogram, *, log: bool, height: float = 190.0) -> Html:
    """Draw the coins of a ledger by bits, with a count axis, linear or logarithmic."""
    n = max(len(histogram.counts), 4)
    counts = [histogram.zeros, *histogram.counts]
    most = max([*counts, 1])
    top, tall = 8.0, height - 36

    def high(count: int) -> float:
        if not count:
            return 0.0
        share = math.log10(1 + count) / math.log10(1 + most) if log else count / most
        return max(tall * share, 1.0)

    step = (SPAN - FIRST) / n
    bars = []
    for k, count in enumerate(counts):
        x, width = (0.0, ZERO_END) if k == 0 else (FIRST + (k - 1) * step, max(step - 1.5, 1.0))
        if count:
            kind = "hs zero" if k == 0 else "hs below"
            name = "exactly 0 bits" if k == 0 else _bin_words(k - 1, histogram.width)
            bars.append(
                f'<rect class="{kind}" x="{x:.1f}" y="{top + tall - high(count):.1f}" '
                f'width="{width:.1f}" height="{high(count):.1f}">'
                f"<title>{name}: {count_words(count, 'coin')}</title></rect>"
            )
    lines, words = [], []
    for level in _levels(most, log=log):
        y = top + tall - high(level)
        lines.append(f'<rect class="grid" x="0" y="{y:.1f}" width="{SPAN:.0f}" height="1"/>')
        words.append(text("100%", y - 3, f"{level:,}", kind="tk dim halo", anchor="end"))
    axis = f'<rect class="axis" x="0" y="{top + tall:.1f}" width="{SPAN:.0f}" height="1"/>'
    bits_ticks = [
        text(
            percent(FIRST + b / histogram.width * step),
            height - 14,
            f"{b} bits" if b == 0 else b,
            kind="tk",
            anchor="start" if b == 0 else "middle",
        )
        for b in range(0, int(n * histogram.width), max(1, round(n * histogram.width / 8)))
    ]
    kind = "log" if log else "linear"
    said = (
        f"Coins by bits, counts {kind}: {share_words(histogram.zeros / max(sum(counts), 1))} at 0"
    )
    return Html(
        f'<svg class="hist {kind}" width="100%" height="{height:.0f}" role="img" '
        f'aria-label="{escape(said)}">{stretched([*lines, *bars, axis], height)}'
        f"{''.join(bits_ticks)}{''.join(words)}</svg>"
    )


def _bin_words(k: int, width: float) -> str:
    return f"{k * width:g} to {(k + 1) * width:g} bits"


def _levels(most: int, *, log: bool) -> list[int]:
    if log:
        return [10**p for p in range(0, 12, 1 if most < 10_000 else 2) if 10**p <= most]
    step = 10 ** math.floor(math.log10(max(most, 1)))
    step = (
        step if most / step >= 3 else max(step // 2, 1) if most / step >= 1.5 else max(step // 4, 1)
    )
    return list(range(step, most + 1, step))[:6]


def curves_chart(curves: Sequence[Curve], *, height: float = 320.0) -> Html:
    """Draw what share of coins has at most so many bits, a line a ledger, its name at the line."""
    ready = [c for c in curves if c.bits]
    most = max([b for c in ready for b in c.bits] + [1.0])
    top, tall, right = 10.0, height - 44, SPAN
    lines, words = [], []
    for level in (0.25, 0.5, 0.75, 1.0):
        y = top + tall * (1 - level)
        lines.append(f'<rect class="grid" x="0" y="{y:.1f}" width="{right:.0f}" height="1"/>')
        words.append(text("0", y - 3, f"{level:.0%}".replace("%", " %"), kind="tk dim halo"))
    lines.append(f'<rect class="axis" x="0" y="{top + tall:.0f}" width="{right:.0f}" height="1"/>')
    step = max(1, round(most / 8))
    words += [
        text(
            percent(b / most * right),
            height - 20,
            f"{b} bits" if b == 0 else b,
            kind="tk",
            anchor="start" if b == 0 else "middle",
        )
        for b in range(0, int(most) + 1, step)
    ]
    for k, curve in enumerate(ready):
        points = [(0.0, 0.0), *zip(curve.bits, curve.share, strict=True), (most, 1.0)]
        path = "".join(
            f"{'L' if i else 'M'}{b / most * right:.1f} {top + tall * (1 - s):.1f}"
            for i, (b, s) in enumerate(points)
        )
        dash = f' stroke-dasharray="{DASHES[k]}"' if DASHES[k] else ""
        lines.append(
            f'<path class="curve c{k}" d="{path}"{dash} vector-effect="non-scaling-stroke"/>'
        )
    words += _curve_names(ready, most, right, top, tall)
    return Html(
        f'<svg class="curves" width="100%" height="{height:.0f}" role="img" aria-label="Share of '
        f'coins with at most so many bits, by ledger">{stretched(lines, height)}'
        f"{''.join(words)}</svg>"
    )


def _curve_names(
    ready: Sequence[Curve], most: float, right: float, top: float, tall: float
) -> list[Html]:
    """Put each name above its curve, at a place of its own so that names stand apart."""
    parts = []
    for k, curve in enumerate(ready):
        at = most * (k + 0.5) / len(ready)
        points = zip(curve.bits, curve.share, strict=True)
        share = max((s for b, s in points if b <= at), default=0.0)
        y = max(top + tall * (1 - share) - 7, 12.0)
        parts.append(
            text(
                percent(at / most * right),
                y,
                curve.card.name,
                kind=f"name c{k} halo",
                anchor="middle",
            )
        )
    return parts


def spark_key(k: int) -> Html:
    """Draw a piece of a curve's line, for a table."""
    dash = f' stroke-dasharray="{DASHES[k]}"' if DASHES[k] else ""
    return Html(
        '<svg class="spark" width="36" height="10" aria-hidden="true">'
        f'<path class="curve c{k}" d="M0 5H36"{dash}/></svg>'
    )


def log_switch(histogram: Histogram) -> Html:
    """Draw a histogram with both count axes; a box that needs no script changes them."""
    box = '<input type="checkbox" id="log-counts" class="log-box">'
    label = '<label for="log-counts">log counts</label>'
    both = histogram_chart(histogram, log=False) + histogram_chart(histogram, log=True)
    return Html(f'<div class="hist-box"><span class="tick">{box}{label}</span>{both}</div>')


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
