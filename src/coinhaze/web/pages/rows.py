"""Tables of coins: which columns they have, how a head sorts, and how the figures are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from coinhaze.explore.describe import reading_words
from coinhaze.explore.query import Settings

# What a column is called, the name it is sorted by, and whether it holds numbers.
COLUMNS = (
    ("Coin", "name", False),
    ("Amount", "amount", True),
    ("Bits", "bits", True),
    ("Steps", "steps", True),
    ("Possible origins", "sources", True),
    ("Likeliest origin", "top_share", False),
)
OPTIONAL = ("sources", "top_share")  # left out where it is narrow


class Head(NamedTuple):
    """The head of a column; `href` sorts by it, `order` is how the table is sorted by it now."""

    key: str
    words: str
    kind: str
    href: str | None
    order: str | None


def heads(
    sort: str = "", link: Callable[[str], str] | None = None, first: str = "Coin"
) -> list[Head]:
    """Return the heads of a table of coins; with `link` they sort."""
    found = []
    for words, key, number in COLUMNS:
        kind = " ".join(filter(None, ("num" if number else "", "opt" if key in OPTIONAL else "")))
        now, falls = link is not None and sort.lstrip("-") == key, sort.startswith("-")
        # A second press turns the order round; numbers begin with the largest.
        to = (key if falls else f"-{key}") if now else (f"-{key}" if number else key)
        order = ("descending" if falls else "ascending") if now else None
        href = None if link is None else link(to)
        found.append(Head(key, first if key == "name" else words, kind, href, order))
    return found


def table_caption(used: Settings, exposure: str | None = None) -> str:
    """Say how a table's bits are read, and its exposure; `exposure` is the time of that.

    >>> table_caption(Settings(view="account", time="stationary", list="known"), "temporal")
    'Bits: accounts, all at once, haircut. Exposure: accounts, in order of time, haircut.'
    """
    words = f"Bits: {reading_words(used.view, used.time, used.policy)}."
    if used.list is None or (exposure is None and used.view != "coin"):
        return words
    return f"{words} Exposure: {reading_words(used.view, exposure, used.policy)}."
