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
    if fits(text, width, size):
        return text
    # Head and tail only grow with what is kept, so its width does: halve, in what can fit at all.
    # Blanks before the gap are dropped, so a long run of them is no wider than eight letters.
    low, high = 1, min(len(text) - 1, max(most_letters(width, size), 8))
    while low < high:
        kept = (low + high + 1) // 2
        low, high = (kept, high) if fits(_shortened(text, kept), width, size) else (low, kept - 1)
    return _shortened(text, low) if low > 1 else ""


def fits(text: str, width: float, size: float) -> bool:
    """Tell whether text fits a width; however long it is, no more than can fit is looked at.

    >>> fits("wide", 27, 10), fits("wide", 26, 10), fits("i" * 10**6, 100, 10)
    (True, False, False)
    """
    return len(text) <= most_letters(width, size) and text_width(text, size) <= width


def most_letters(width: float, size: float) -> int:
    """Give how many letters can fit a width, were they the narrowest.

    >>> most_letters(10.14, 10), most_letters(-1, 10)
    (4, 0)
    """
    # One more, for what division rounds away.
    return max(int(width * 1000 / (_NARROWEST * size)) + 1, 0) if width > 0 else 0


def _shortened(text: str, kept: int) -> str:
    tail = min(4, kept // 2)
    return f"{text[: kept - tail].rstrip()}…{text[len(text) - tail :]}"


def _letter(c: str) -> int:
    if c in _NARROWEST_SET:
        return _NARROWEST
    if c in _NARROW_SET:
        return _NARROW
    if c in _WIDE_SET:
        return _WIDE
    return _USUAL if ord(c) < 0x250 else _WIDEST
