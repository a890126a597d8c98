"""Tables of coins: name, amount, bits, steps, possible origins, the likeliest one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from coinhaze.explore.describe import reading_words, share_words, short_id, steps_words
from coinhaze.explore.models import TableRow
from coinhaze.report.page import Html, escape
from coinhaze.web.asks import Settings
from coinhaze.web.pages.say import DASH, amount, bits_text, bits_title, share_bar, tag

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
Sorter = Callable[[str], str]


def coins_table(
    rows: Sequence[TableRow],
    *,
    sort: str = "",
    link: Sorter | None = None,
    first: str = "Coin",
    caption: str = "",
) -> Html:
    """Draw rows; with `link` the heads sort. The caption says how the figures are read."""
    exposed = any(row.exposure is not None for row in rows)
    heads = [_head(words, key, number, sort, link, first) for words, key, number in COLUMNS]
    if exposed:
        heads.append('<th class="num">Exposure</th>')
    most = max([row.bits or 0.0 for row in rows] + [1e-9])
    lines = "".join(_row(row, exposed, most) for row in rows)
    return Html(
        f'<table class="coins">{tag("caption", caption) if caption else ""}'
        f"<thead><tr>{''.join(heads)}</tr></thead>"
        f"<tbody>{lines}</tbody></table>"
    )


def table_caption(used: Settings, exposure: str | None = None) -> str:
    """Say how a table's bits are read, and its exposure; `exposure` is the time of that.

    >>> table_caption(Settings(view="account", time="stationary", list="known"), "temporal")
    'Bits: accounts, all at once, haircut. Exposure: accounts, in order of time, haircut.'
    """
    words = f"Bits: {reading_words(used.view, used.time, used.policy)}."
    if used.list is None or (exposure is None and used.view != "coin"):
        return words
    return f"{words} Exposure: {reading_words(used.view, exposure, used.policy)}."


def _head(words: str, key: str, number: bool, sort: str, link: Sorter | None, first: str) -> str:
    kind = " ".join(filter(None, ("num" if number else "", "opt" if key in OPTIONAL else "")))
    words = first if key == "name" else words
    if link is None:
        return tag("th", words, kind=kind, scope="col")
    now = sort.lstrip("-") == key
    falls = sort.startswith("-")
    # A second press turns the order round; numbers begin with the largest.
    to = (key if falls else f"-{key}") if now else (f"-{key}" if number else key)
    mark = Html(f' <span aria-hidden="true">{"↓" if falls else "↑"}</span>') if now else ""
    order = ("descending" if falls else "ascending") if now else None
    body = tag("a", Html(f"{escape(words)}{mark}"), href=link(to), data_swap="", id=f"sort-{key}")
    return tag("th", body, kind=kind, scope="col", aria_sort=order)


def _row(row: TableRow, exposed: bool, most: float) -> str:
    label = tag("span", tag("bdi", row.label), kind="sub") if row.label else ""
    name = tag("a", short_id(row.name), href=row.href, kind="mono", title=row.name)
    steps = DASH if row.steps is None else steps_words(row.steps)
    sources = DASH if row.sources is None else f"{row.sources:,}"
    top = ""
    if row.top is not None:
        top = tag("bdi", row.top)
        if row.top_share is not None:
            top = Html(f'{top} <b class="pc">{share_words(row.top_share)}</b>')
    elif row.top_share is not None:
        top = tag("b", share_words(row.top_share), kind="pc")
    bar = "" if row.bits is None else share_bar(row.bits, "bits", most=most)
    cells = [
        f"<td>{name}{label}</td>",
        tag("td", amount(row.amount), kind="num"),
        f'<td class="num" title="{escape(bits_title(row) or "no answer")}">'
        f'<span class="cell">{bar}<span>{bits_text(row)}</span></span></td>',
        tag("td", steps, kind="num"),
        tag("td", sources, kind="num opt"),
        tag("td", top, kind="opt"),
    ]
    if exposed:
        cells.append(
            tag("td", DASH if row.exposure is None else share_words(row.exposure), kind="num")
        )
    return f"<tr>{''.join(cells)}</tr>"
