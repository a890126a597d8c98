"""Pieces of SVG: marks that stretch with the page, words that never do.

Bands and bars are drawn in a box that is stretched to the width it finds; words stand beside it at
per cents of that width, in their own size. So nothing has to be laid out again in the browser.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from coinhaze.report.page import Html, escape

SPAN = 1000.0  # units across a stretched box


def stretched(parts: Iterable[str], height: float, *, kind: str = "") -> Html:
    """Put marks in a box of SPAN units that takes the whole width, and `height` pixels."""
    return Html(
        f'<svg class="{kind}" viewBox="0 0 {SPAN:.0f} {height:.0f}" width="100%" '
        f'height="{height:.0f}" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        + "".join(parts)
        + "</svg>"
    )


def percent(x: float) -> str:
    """Write units of SPAN as a share of the width.

    >>> percent(125)
    '12.5%'
    """
    return f"{_number(x * 100 / SPAN)}%"


def ribbon_path(points: Sequence[tuple[float, float]], width: float, *, turned: bool) -> str:
    """Give the outline of a band through points (along, across); turned: along is down.

    >>> ribbon_path([(0, 0), (10, 5)], 2, turned=False)
    'M0 0C5 0 5 5 10 5V7C5 7 5 2 0 2Z'
    """
    width = max(width, 1.0)
    there = "".join(_bend(a, b, turned) for a, b in pairwise(points))
    far = [(along, across + width) for along, across in reversed(points)]
    back = "".join(_bend(a, b, turned) for a, b in pairwise(far))
    line = f"H{_number(far[0][1])}" if turned else f"V{_number(far[0][1])}"
    return f"M{_point(points[0], turned)}{there}{line}{back}Z"


def text(
    x: str, y: float, words: object, *, kind: str = "", anchor: str = "start", dx: float = 0
) -> Html:
    """Draw words; `x` may be a share of the width."""
    shift = f' dx="{_number(dx)}"' if dx else ""
    end = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return Html(f'<text class="{kind}" x="{x}" y="{_number(y)}"{shift}{end}>{escape(words)}</text>')


def _bend(a: tuple[float, float], b: tuple[float, float], turned: bool) -> str:
    middle = (a[0] + b[0]) / 2
    ends = ((middle, a[1]), (middle, b[1]), b)
    return "C" + " ".join(_point(p, turned) for p in ends)


def _point(p: tuple[float, float], turned: bool) -> str:
    along, across = p
    return (
        f"{_number(across)} {_number(along)}" if turned else f"{_number(along)} {_number(across)}"
    )


def _number(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".") if value else "0"
