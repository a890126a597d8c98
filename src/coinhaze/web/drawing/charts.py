"""Pictures of many coins, as SVG made here: bins of bits, the field of bits and steps, curves."""

from __future__ import annotations

import math
from collections.abc import Sequence

from coinhaze.errors import count_words
from coinhaze.explore.describe import share_words
from coinhaze.explore.models import Curve, Density, Histogram
from coinhaze.report.drawing.svg import SPAN, percent, stretched, text
from coinhaze.report.page import Html, escape
from coinhaze.web.pages.words import noun_of

ZERO_END, FIRST = 16.0, 26.0  # of SPAN: the bar of exact zeros, and where the bins begin
DOTS_ONLY, DOTS_TOO = 50, 2_000
_EQUAL = (1, 2, 10, 100, 1_000, 10_000, 100_000, 1_000_000)
_FEW_EQUAL = (1, 2, 4, 8, 16, 32)  # where an axis ends below the last
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
    maximum = max([*histogram.counts, 1])
    tall, top = height - 34, 18.0

    def bar(x: float, width: float, count: int, below: bool) -> str:
        high = min(max(tall * count / maximum, 1.0), tall) if count else 0.0
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
    # Dots at 0 bits stand at one origin; a bar of zeros stands apart from the bins.
    zero = FIRST if dots else ZERO_END / 2
    mark = "" if bits is None else _marker(bits, histogram.width, step, top + tall, marked, zero)
    counted = count_words(coins, noun, noun_of(noun, many=True))
    said = f"{counted} by bits" + (f", {marked} at {bits:.2f}" if bits else "")
    if dots:
        bars = []
    apart = f"; {_zero_words(histogram)}" if histogram.zeros and not dots else ""
    return Html(
        f'<figure class="scale"><svg width="100%" height="{height:.0f}" role="img" '
        f'aria-label="{escape(said)}">{stretched([*bars, axis], height)}{dots}{"".join(words)}'
        f"{mark}</svg><figcaption><span>equally likely origins, "
        f"{counted} {escape(whose)}{apart}</span><span>harder to trace →</span>"
        "</figcaption></figure>"
    )


def _zero_words(histogram: Histogram) -> str:
    """Say what share exact zeros are: their bar is cut off, so that the others can be seen."""
    share = histogram.zeros / (histogram.zeros + sum(histogram.counts))
    cut = histogram.zeros > max([*histogram.counts, 1])
    return f"{share_words(share)} at 0 bits" + (", their bar cut off" if cut else "")


def _marker(bits: float, width: float, step: float, foot: float, words: str, zero: float) -> str:
    at = FIRST + bits / width * step if bits > 0 else zero
    right = at < SPAN * 0.75
    return (
        f'<svg x="{percent(at)}" overflow="visible"><rect class="iv" x="-1.5" y="2" width="3" '
        f'height="{foot - 2:.0f}"/>'
        + text("0", 13, words, kind="me", anchor="start" if right else "end", dx=8 if right else -8)
        + "</svg>"
    )


def _ticks(last: float) -> list[tuple[int, float, str]]:
    """Give equal origins, their bits, and how their words are anchored; none too near the next."""
    steps = _FEW_EQUAL if last < math.log2(_FEW_EQUAL[-1]) else _EQUAL
    found = [(e, math.log2(e)) for e in steps if math.log2(e) <= last]
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
        at = FIRST + value / histogram.width * step
        place = round(at / 9)
        stacks[place] = stacks.get(place, 0) + 1
        up = min(foot - 5 - 8 * (stacks[place] - 1), foot - 5)
        parts.append(f'<circle class="dot" cx="{percent(at)}" cy="{max(up, 4):.1f}" r="3.5"/>')
    return "".join(parts)


def histogram_chart(
    histogram: Histogram, *, log: bool, height: float = 190.0, noun: str = "coin"
) -> Html:
    """Draw the coins of a ledger by bits, with a count axis, linear or logarithmic."""
    n = max(len(histogram.counts), 4)
    counts = [histogram.zeros, *histogram.counts]
    maximum = max([*histogram.counts, 1])
    top, tall = 20.0, height - 48

    def high(count: int) -> float:
        if not count:
            return 0.0
        share = math.log10(1 + count) / math.log10(1 + maximum) if log else count / maximum
        return min(max(tall * share, 1.0), tall)

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
                f"<title>{name}: {count_words(count, noun)}</title></rect>"
            )
    lines, words = [], []
    for level in _levels(maximum, log=log):
        y = top + tall - high(level)
        lines.append(f'<rect class="grid" x="0" y="{y:.1f}" width="{SPAN:.0f}" height="1"/>')
        words.append(text("100%", y - 3, f"{level:,}", kind="tk dim halo", anchor="end"))
    if histogram.zeros:
        words.append(text("0", 12, _zero_words(histogram), kind="tk dim halo"))
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
    at_zero = share_words(histogram.zeros / max(sum(counts), 1))
    said = f"{noun.capitalize()}s by bits, counts {kind}: {at_zero} at 0, others to their own scale"
    return Html(
        f'<svg class="hist {kind}" width="100%" height="{height:.0f}" role="img" '
        f'aria-label="{escape(said)}">{stretched([*lines, *bars, axis], height)}'
        f"{''.join(bits_ticks)}{''.join(words)}</svg>"
    )


def _bin_words(k: int, width: float) -> str:
    return f"{k * width:g} to {(k + 1) * width:g} bits"


def _levels(maximum: int, *, log: bool) -> list[int]:
    if log:
        return [10**p for p in range(0, 12, 1 if maximum < 10_000 else 2) if 10**p <= maximum]
    step = 10 ** math.floor(math.log10(max(maximum, 1)))
    step = (
        step
        if maximum / step >= 3
        else max(step // 2, 1)
        if maximum / step >= 1.5
        else max(step // 4, 1)
    )
    return list(range(step, maximum + 1, step))[:6]


def curves_chart(curves: Sequence[Curve], *, height: float = 320.0) -> Html:
    """Draw what share of coins has at most so many bits, a line a ledger, its name at the line."""
    ready = [c for c in curves if c.bits]
    maximum = max([b for c in ready for b in c.bits] + [1.0])
    top, tall, right = 10.0, height - 44, SPAN
    lines, words = [], []
    for level in (0.25, 0.5, 0.75, 1.0):
        y = top + tall * (1 - level)
        lines.append(f'<rect class="grid" x="0" y="{y:.1f}" width="{right:.0f}" height="1"/>')
        words.append(text("0", y - 3, f"{level:.0%}".replace("%", " %"), kind="tk dim halo"))
    lines.append(f'<rect class="axis" x="0" y="{top + tall:.0f}" width="{right:.0f}" height="1"/>')
    step = max(1, round(maximum / 8))
    words += [
        text(
            percent(b / maximum * right),
            height - 20,
            f"{b} bits" if b == 0 else b,
            kind="tk",
            anchor="start" if b == 0 else "middle",
        )
        for b in range(0, int(maximum) + 1, step)
    ]
    for k, curve in enumerate(ready):
        points = [(0.0, 0.0), *zip(curve.bits, curve.share, strict=True), (maximum, 1.0)]
        path = "".join(
            f"{'L' if i else 'M'}{b / maximum * right:.1f} {top + tall * (1 - s):.1f}"
            for i, (b, s) in enumerate(points)
        )
        dash = f' stroke-dasharray="{DASHES[k]}"' if DASHES[k] else ""
        lines.append(
            f'<path class="curve c{k}" d="{path}"{dash} vector-effect="non-scaling-stroke"/>'
        )
    words += _curve_names(ready, maximum, right, top, tall)
    return Html(
        f'<svg class="curves" width="100%" height="{height:.0f}" role="img" aria-label="Share '
        f'with at most this many bits, by ledger">{stretched(lines, height)}'
        f"{''.join(words)}</svg>"
    )


def _curve_names(
    ready: Sequence[Curve], maximum: float, right: float, top: float, tall: float
) -> list[Html]:
    """Put each name above its curve, at a place of its own so that names stand apart."""
    parts = []
    for k, curve in enumerate(ready):
        at = maximum * (k + 0.5) / len(ready)
        points = zip(curve.bits, curve.share, strict=True)
        share = max((s for b, s in points if b <= at), default=0.0)
        y = max(top + tall * (1 - share) - 7, 12.0)
        parts.append(
            text(
                percent(at / maximum * right),
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


def log_switch(histogram: Histogram, *, noun: str = "coin") -> Html:
    """Draw a histogram with both count axes; a box that needs no script changes them."""
    box = '<input type="checkbox" id="log-counts" class="log-box">'
    label = '<label for="log-counts">log counts</label>'
    both = Html("").join(histogram_chart(histogram, log=log, noun=noun) for log in (False, True))
    return Html(f'<div class="hist-box"><span class="tick">{box}{label}</span>{both}</div>')


SHADES = 8
HEIGHT, FOOT, TOP = 300.0, 34.0, 6.0


def density_chart(density: Density, *, noun: str = "coin") -> Html:
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
    if sum(count > 0 for count in density.counts) <= DOTS_ONLY:
        dots += _bin_dots(density, tall)
    words = [*_bits_ticks(density), *_steps_ticks(density, tall)]
    coins = sum(density.counts) + len(density.outliers)
    said = f"{count_words(coins, noun)} by bits, across, and steps, up"
    ends = (
        f'data-bits-low="{density.bits_low!r}" data-bits-high="{density.bits_high!r}" '
        f'data-steps-low="{density.steps_low!r}" data-steps-high="{density.steps_high!r}"'
        f"{' data-steps-log' if density.steps_log else ''}"
    )
    return Html(
        f'<div class="field" id="field" {ends} data-top="{TOP}" data-tall="{tall}">'
        f'<svg width="100%" height="{HEIGHT:.0f}" role="img" aria-label="{escape(said)}">'
        f"{stretched([frame, field, *marks, '</g>'], HEIGHT)}{dots}{''.join(words)}</svg></div>"
    )


def _bin_dots(density: Density, tall: float) -> str:
    """Draw bins as dots, larger where there are more coins: a few bins alone are hardly seen."""
    parts = []
    for k, count in enumerate(density.counts):
        if count:
            row, column = divmod(k, density.columns)
            x = percent(SPAN * (column + 0.5) / density.columns)
            y = TOP + tall * (1 - (row + 0.5) / density.rows)
            size = min(3.5 + math.log2(count), 8.0)
            parts.append(f'<circle class="dot" cx="{x}" cy="{y:.1f}" r="{size:.1f}"/>')
    return "".join(parts)


def shade_paths(density: Density) -> list[str]:
    """Give for each shade the runs of bins it covers, as one path; shades count in logarithms."""
    maximum = max(density.counts, default=0)
    runs: list[list[str]] = [[] for _ in range(SHADES)]
    for row in range(density.rows):
        line = density.counts[row * density.columns : (row + 1) * density.columns]
        k = 0
        while k < len(line):
            shade = _shade(line[k], maximum)
            end = k + 1
            while end < len(line) and _shade(line[end], maximum) == shade:
                end += 1
            if shade >= 0:
                runs[shade].append(f"M{k} {row}h{end - k}v1h{k - end}z")
            k = end
    return ["".join(run) for run in runs]


def _shade(count: int, maximum: int) -> int:
    """Give the shade of a count, -1 for none.

    >>> [_shade(c, 1000) for c in (0, 1, 30, 1000)]
    [-1, 0, 3, 7]
    """
    if count <= 0:
        return -1
    return (
        min(int(SHADES * math.log(count) / math.log(maximum + 1)), SHADES - 1) if maximum > 1 else 7
    )


def _x(density: Density, bits: float) -> float:
    wide = density.bits_high - density.bits_low
    return SPAN * (bits - density.bits_low) / wide if wide > 0 else SPAN / 2


def _up(density: Density, steps: float) -> float:
    """Give how far up steps are, from 0 to 1; on a logarithmic axis where the field has one."""
    low, high, at = density.steps_low, density.steps_high, steps
    if density.steps_log:
        low, high, at = (math.log(max(value, 1.0)) for value in (low, high, at))
    return (at - low) / (high - low) if high > low else 0.5


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
    if density.steps_log:
        powers = (10**k for k in range(9))
        levels = [float(p) for p in powers if density.steps_low < p <= density.steps_high]
        return [_steps_tick(density, tall, level) for level in levels]
    step = 10 ** math.floor(math.log10(span))
    step = step if span / step >= 3 else step / 2
    first = math.ceil(density.steps_low / step + 0.2)
    last = math.floor(density.steps_high / step)
    return [_steps_tick(density, tall, k * step) for k in range(first, last + 1)]


def _steps_tick(density: Density, tall: float, steps: float) -> Html:
    y = TOP + tall * (1 - _up(density, steps)) + 4
    return text("4", y, f"{steps:,g} steps", kind="tk dim halo")
