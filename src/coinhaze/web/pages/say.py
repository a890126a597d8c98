"""Small pieces all pages share: moments, windows, amounts that can be hidden, bars in cells."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from coinhaze.explore.describe import bits_words, range_words
from coinhaze.explore.models import (
    Amount,
    Bits,
    LedgerCard,
    Window,
)
from coinhaze.measures.summary import AT_LEAST
from coinhaze.report.page import Html, escape

EN = "\N{EN DASH}"  # between the ends of a range
DASH = EN  # where there is no number


def tag(name: str, body: object = "", *, kind: str = "", **attributes: object) -> Html:
    """Write an element; attributes that are None are left out, `for_` is `for`.

    >>> tag("a", "<x>", kind="btn", href="/a?b&c", id=None)
    '<a class="btn" href="/a?b&amp;c">&lt;x&gt;</a>'
    """
    given = {"class": kind or None} | {
        key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()
    }
    said = "".join(f' {key}="{escape(value)}"' for key, value in given.items() if value is not None)
    return Html(f"<{name}{said}>{escape(body)}</{name}>")


def together(parts: Iterable[object]) -> Html:
    """Put pieces of markup behind each other; text among them is escaped."""
    return Html("".join(escape(part) for part in parts))


def panel(title: object, *parts: object, beside: object = "", name: str | None = None) -> Html:
    """Draw a card with a heading, and something beside the heading.

    >>> panel("Coins", tag("p", "none"))
    '<section class="card sec"><div class="hd"><h2>Coins</h2></div><p>none</p></section>'
    """
    head = Html(f"<h2>{escape(title)}</h2>{escape(beside)}")
    body = Html(f'<div class="hd">{head}</div>{together(parts)}')
    return tag("section", body, kind="card sec", id=name)


def fact(
    title: object, value: object, words: object, *, name: str | None = None, warn: bool = False
) -> Html:
    """Draw one of the facts below a number: what it is, how much, and a word more."""
    said = tag("dd", Html(f"<b>{escape(value)}</b><span>{escape(words)}</span>"), id=name)
    return tag("div", Html(f"{tag('dt', title)}{said}"), kind="fact warn" if warn else "fact")


def moment(seconds: int | None) -> str:
    """Say a moment.

    >>> moment(1612620120), moment(None)
    ('6 Feb 2021 14:02 UTC', '')
    """
    if seconds is None:
        return ""
    when = _when(seconds)
    return f"{when.day} {when:%b %Y %H:%M} UTC" if when else f"time {seconds}"


def span_words(first: int, last: int) -> str:
    """Say a span of time by its days.

    >>> span_words(1612137600, 1612742399), span_words(1612137600, 1612137600)
    ('1–7 Feb 2021', '1 Feb 2021')
    """
    start, end = _when(first), _when(last)
    if start is None or end is None:
        return f"time {first}{EN}{last}"
    if start.date() == end.date():
        return f"{start.day} {start:%b %Y}"
    if (start.year, start.month) == (end.year, end.month):
        return f"{start.day}{EN}{end.day} {end:%b %Y}"
    year = f" {start.year}" if start.year != end.year else ""
    return f"{start.day} {start:%b}{year} {EN} {end.day} {end:%b %Y}"


def hours_words(first: int, last: int) -> str:
    """Say a short span of time by its hours.

    >>> hours_words(1612137600, 1612140000), hours_words(1612137600, 1612137601)
    ('1 Feb 00:00–00:40', '1 Feb 00:00')
    """
    start, end = _when(first), _when(last)
    if start is None or end is None:
        return f"time {first}{EN}{last}"
    text = f"{start.day} {start:%b %H:%M}"
    if f"{start:%d%H%M}" == f"{end:%d%H%M}":
        return text
    day = "" if start.date() == end.date() else f"{end.day} {end:%b} "
    return f"{text}{EN}{day}{end:%H:%M}"


def window_words(window: Window) -> str:
    """Say what part of a chain a ledger holds.

    >>> window_words(Window(first_height=5, last_height=9000))
    'blocks 5–9,000'
    """
    if window.first_time is not None and window.last_time is not None:
        return span_words(window.first_time, window.last_time)
    if window.first_height is not None and window.last_height is not None:
        return f"blocks {window.first_height:,}{EN}{window.last_height:,}"
    return ""


def amount(value: Amount | None) -> Html:
    """Show an amount; people may hide all of them."""
    if value is None:
        return tag("span", "hidden by the ledger", kind="dim")
    return tag("span", value.shown, kind="amt")


def noun_of(kind: str, *, many: bool = False) -> str:
    """Name what a page is of: an account, an address, or else a coin.

    >>> noun_of("account"), noun_of("address", many=True), noun_of("ring")
    ('account', 'addresses', 'coin')
    """
    one = kind if kind in ("account", "address") else "coin"
    return (one + ("es" if one == "address" else "s")) if many else one


def bits_text(value: Bits) -> str:
    """Say bits with their digits; a dash where there is no answer.

    >>> bits_text(Bits(bits=6.981, bits_low=6.98, bits_high=6.99))
    '6.98'
    """
    if value.bits is None:
        return DASH
    low, high = ends(value)
    return bits_words(value.bits, low, high, lower_bound=value.lower_bound)


def bits_of_many(bits: float | None, *, lower_bound: bool) -> str:
    """Say a median or mean; a dash where there is none.

    >>> bits_of_many(2.345, lower_bound=False), bits_of_many(None, lower_bound=False)
    ('2.35', '–')
    """
    return DASH if bits is None else f"{AT_LEAST if lower_bound else ''}{bits:.2f}"


def bits_title(value: Bits) -> str | None:
    """Say the range of bits, for those who want it."""
    if value.bits is None:
        return None
    return range_words(*ends(value), certified=value.certified, lower_bound=value.lower_bound)


def ends(value: Bits) -> tuple[float, float]:
    """Give the ends of a range; the number itself where they are not known."""
    bits = value.bits or 0.0
    low = bits if value.bits_low is None else value.bits_low
    high = bits if value.bits_high is None else value.bits_high
    return low, high


def share_bar(share: float, kind: str, *, most: float = 1.0) -> Html:
    """Draw a share as a bar in a cell; the number beside it says it."""
    width = 100 * share / most if most > 0 else 0.0
    return Html(
        '<svg class="mini" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="k-{escape(kind)}" width="{min(width, 100.0):.1f}" height="8"/></svg>'
    )


def ledger_words(card: LedgerCard) -> str:
    """Name a ledger and its window."""
    return " · ".join(filter(None, (card.name, window_words(card.window))))


def _when(seconds: int | None) -> datetime | None:
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None
