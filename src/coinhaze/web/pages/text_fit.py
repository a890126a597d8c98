"""How wide words are drawn, before a browser has drawn them: a bound, so that nothing overlaps."""

from __future__ import annotations

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
    if text_width(text, size) <= width:
        return text
    for kept in range(len(text) - 1, 1, -1):
        tail = min(4, kept // 2)
        short = f"{text[: kept - tail].rstrip()}…{text[len(text) - tail :]}"
        if text_width(short, size) <= width:
            return short
    return ""


def _letter(c: str) -> int:
    if c in _NARROWEST_SET:
        return _NARROWEST
    if c in _NARROW_SET:
        return _NARROW
    if c in _WIDE_SET:
        return _WIDE
    return _USUAL if ord(c) < 0x250 else _WIDEST
