"""Bits of what was unspent at the end of each month, as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence

from coinhaze.explore.models import MonthOfCoins
from coinhaze.report.drawing.svg import SPAN, percent, stretched, text
from coinhaze.report.page import Html, escape

NAMES = (("bits_mean", "mean of coins"), ("bits_by_value", "mean by value"))


def months_chart(months: Sequence[MonthOfCoins], *, height: float = 300.0) -> Html:
    """Draw mean bits over coins and by value, month by month, with what is known of them."""
    top, tall = 14.0, height - 48
    highs = [getattr(m, f"{name}_high") or 0.0 for m in months for name, _ in NAMES]
    maximum = max([1.0, *(math.ceil(2 * high) / 2 for high in highs)])

    def x(k: int) -> float:
        return SPAN * (k + 0.5) / len(months)

    def y(bits: float | None) -> float:
        return top + tall * (1 - (bits or 0.0) / maximum)

    lines, words = [], []
    step = max(1, round(maximum / 5))
    for level in range(0, math.floor(maximum) + 1, step):
        lines.append(f'<rect class="grid" x="0" y="{y(level):.1f}" width="{SPAN:.0f}" height="1"/>')
        said = f"{level} bits" if level == 0 else f"{level}"
        words.append(text("0", y(level) - 3, said, kind="tk dim halo"))
    for k, (name, said) in enumerate(NAMES):
        low, high = (
            [(x(i), y(getattr(m, f"{name}_{end}"))) for i, m in enumerate(months)]
            for end in ("low", "high")
        )
        line = [(x(i), y(getattr(m, name))) for i, m in enumerate(months)]
        lines.append(f'<path class="between c{k}" d="{_path([*high, *reversed(low)])}z"/>')
        lines.append(
            f'<path class="curve c{k}" d="{_path(line)}" vector-effect="non-scaling-stroke"/>'
        )
        at = len(months) * (k + 1) // 3
        at = min(at, len(months) - 1)
        place = max(line[at][1] - 8, 12.0)
        words.append(text(percent(x(at)), place, said, kind=f"name c{k} halo", anchor="middle"))
    years = [i for i, m in enumerate(months) if m.month.endswith("-01")] or [0]
    for i in years[:: max(1, math.ceil(len(years) / 10))]:
        said = months[i].month[:4] if months[i].month.endswith("-01") else months[i].month
        words.append(text(percent(x(i)), height - 14, said, kind="tk", anchor="middle"))
    lines.append(f'<rect class="axis" x="0" y="{top + tall:.0f}" width="{SPAN:.0f}" height="1"/>')
    last = months[-1]
    label = (
        f"Mean bits of what was unspent, from {months[0].month} to {last.month}, when it was "
        f"{last.bits_mean or 0:.2f} over coins and {last.bits_by_value or 0:.2f} by value"
    )
    return Html(
        f'<svg class="curves months" width="100%" height="{height:.0f}" role="img" '
        f'aria-label="{escape(label)}">{stretched(lines, height)}{"".join(words)}</svg>'
    )


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "".join(f"{'L' if k else 'M'}{x:.1f} {y:.1f}" for k, (x, y) in enumerate(points))
