"""What spending a coin with others would do: bits and exposure before and after."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import parse_qsl

from coinhaze.explore.describe import count_words, share_words, short_id
from coinhaze.explore.models import (
    Before,
    CoinAnswer,
    TableRow,
    Together,
    WhatIfAnswer,
)
from coinhaze.report.page import Html, escape
from coinhaze.web.pages.rows import table_caption
from coinhaze.web.pages.say import amount, bits_text, tag
from coinhaze.web.pages.wallet_groups import exposed_by, share_or_dash
from coinhaze.web.schema import Problem

MOST_OFFERED = 6
MOST_NAMED = 6  # coins that a warning names


def what_if_section(
    answer: CoinAnswer,
    what_if: WhatIfAnswer | Problem | None,
    ties: Sequence[str],
    beside: Sequence[TableRow],
    here: str,
) -> Html:
    """Give the picker, and what it says; the chosen coins are in the link, so it can be shared."""
    path, _, query = here.partition("?")
    kept = "".join(
        f'<input type="hidden" name="{escape(key)}" value="{escape(value)}">'
        for key, value in parse_qsl(query)
        if key != "with"
    )
    offered = [row for row in beside if row.name != answer.name][:MOST_OFFERED]
    boxes = "".join(_box(row, row.name in ties) for row in offered)
    known = {row.name for row in offered}
    typed = ",".join(name for name in ties if name not in known)
    heading = tag("p", "Other coins of the same address:", kind="sub") if boxes else ""
    return Html(
        '<section class="card sec wi" id="what-if" aria-labelledby="wh"><div class="hd">'
        '<h2 id="wh">What if you spend it with…</h2></div>'
        f'<form action="{escape(path)}#what-if" method="get" data-swap="" id="what-if-form">{kept}'
        f'{heading}{boxes}<label class="field-label" for="with">Coins, with commas or spaces '
        f'between</label><div class="row"><input type="text" id="with" name="with" '
        f'value="{escape(typed)}" autocomplete="off" spellcheck="false" maxlength="4000">'
        '<button class="btn" type="submit">See</button></div></form>'
        f'<div role="status" id="what-if-result">{_result(what_if)}</div></section>'
    )


def _box(row: TableRow, ticked: bool) -> str:
    mark = " checked" if ticked else ""
    return (
        f'<label class="pick"><input type="checkbox" name="with" value="{escape(row.name)}"{mark}>'
        f'<span><span class="mono">{escape(short_id(row.name))}</span>'
        f'<span class="sub">{amount(row.amount)}</span></span>'
        f'<span class="v">{bits_text(row)} bits</span></label>'
    )


def _result(what_if: WhatIfAnswer | Problem | None) -> Html:
    if what_if is None:
        return Html(
            '<div class="res"><p>Name a coin to see both numbers move. Nothing is signed or sent.'
            "</p></div>"
        )
    if isinstance(what_if, Problem):
        return Html(
            f'<div class="res"><p>{escape(what_if.message)}</p>'
            f'<p class="sub">{escape(what_if.fix)}</p></div>'
        )
    after = what_if.after
    exposure = "" if after.exposure is None else f" · exposure {share_words(after.exposure)}"
    warning = _warning(what_if)
    rises = any((after.exposure or 0.0) > (c.exposure or 0.0) + 5e-4 for c in what_if.before)
    notes = "".join(tag("p", note, kind="sub") for note in what_if.notes)
    each = "".join(
        f'<tr><td class="mono">{escape(short_id(coin.name))}<span class="sub">{amount(coin.amount)}'
        f'</span></td><td class="num">{bits_text(coin)} → {bits_text(after)}</td>'
        f'<td class="num">{_exposures(coin, after)}</td></tr>'
        for coin in what_if.before
    )
    return Html(
        f'<div class="{"warnbox" if warning or rises else "res"}">{warning}<p id="what-if-bits" '
        f'data-bits="{after.bits!r}"><b>Together</b> {bits_text(after)} bits{exposure}</p>'
        f'<p class="sub" id="ownership">{escape(what_if.ownership)}</p>{notes}</div>'
        f'<table class="small"><caption>{escape(table_caption(what_if.settings))}</caption>'
        '<thead><tr><th>Coin</th><th class="num">Bits, then</th>'
        '<th class="num">Exposure, then</th></tr></thead>'
        f"<tbody>{each}</tbody></table>"
    )


def _exposures(coin: Before, after: Together) -> str:
    if coin.exposure is None and after.exposure is None:
        return share_or_dash(None)
    return f"{share_or_dash(coin.exposure)} → {share_or_dash(after.exposure)}"


def _warning(what_if: WhatIfAnswer) -> Html:
    """Say which coins that are not exposed would become so: a mean that falls hides it."""
    names = exposed_by(what_if.before, what_if.after, 0.0)
    if not names:
        return Html("")
    shown = ", ".join(short_id(name) for name in names[:MOST_NAMED])
    left = len(names) - MOST_NAMED
    more = f" and {left:,} more" if left > 0 else ""
    would = "would" if (what_if.after.exposure or 0.0) > 0 else "may"
    words = (
        f"Keep apart: {count_words(len(names), 'coin')} not exposed now {would} become so: "
        f"{shown}{more}."
    )
    return tag("p", tag("b", words), id="what-if-warning")
