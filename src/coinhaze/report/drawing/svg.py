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


# Advance widths in thousandths of the letter size, those of the widest common system face
# (DejaVu Sans is wider than Segoe, Helvetica, Roboto and Liberation).
_NARROWEST, _NARROW, _USUAL, _WIDE, _WIDEST = 338, 420, 640, 990, 1100
BOLD = 1.1  # how much wider bold letters are
_NARROWEST_SET, _NARROW_SET = frozenset(" ijlI.,:;'!|·"), frozenset("ftr()[]-")
_WIDE_SET = frozenset("mwMW@%—…⚑↻")


def text_width(text: str, size: float) -> float:
    """Bound the width of text from above, in pixels.

    >>> text_width("iii", 10), text_width("wide", 10)
    (10.14, 26.08)
    """
    return sum(_letter(c) for c in text) * size / 1000


def fit_text(text: str, width: float, size: float) -> str:
    """Shorten text in its middle until it fits a width; nothing where not even two letters do.

    >>> fit_text("Payment 9c41aabbccdd7d", 100, 12)
    'Payment…dd7d'
    >>> fit_text("Mined", 100, 12), fit_text("Payment", 8, 12)
    ('Mined', '')
    """
    if fits(text, width, size):
        return text
    # Head and tail only grow with what is retained, so its width does: halve, in what can fit.
    # Blanks before the gap are dropped, so a long run of them is no wider than eight letters.
    low, high = 1, min(len(text) - 1, max(max_letters(width, size), 8))
    while low < high:
        retained = (low + high + 1) // 2
        low, high = (
            (retained, high)
            if fits(_shortened(text, retained), width, size)
            else (low, retained - 1)
        )
    return _shortened(text, low) if low > 1 else ""


def fits(text: str, width: float, size: float) -> bool:
    """Tell whether text fits a width; however long it is, no more than can fit is looked at.

    >>> fits("wide", 27, 10), fits("wide", 26, 10), fits("i" * 10**6, 100, 10)
    (True, False, False)
    """
    return len(text) <= max_letters(width, size) and text_width(text, size) <= width


def max_letters(width: float, size: float) -> int:
    """Give how many letters can fit a width, were they the narrowest.

    >>> max_letters(10.14, 10), max_letters(-1, 10)
    (4, 0)
    """
    # One more, for what division rounds away.
    return max(int(width * 1000 / (_NARROWEST * size)) + 1, 0) if width > 0 else 0


def _shortened(text: str, retained: int) -> str:
    tail = min(4, retained // 2)
    return f"{text[: retained - tail].rstrip()}…{text[len(text) - tail :]}"


def _letter(c: str) -> int:
    if c in _NARROWEST_SET:
        return _NARROWEST
    if c in _NARROW_SET:
        return _NARROW
    if c in _WIDE_SET:
        return _WIDE
    return _USUAL if ord(c) < 0x250 else _WIDEST
