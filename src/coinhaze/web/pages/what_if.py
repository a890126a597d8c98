"""What spending a coin with others would do: bits and exposure before and after."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import parse_qsl

from coinhaze.report.page import Html, escape
from coinhaze.web.models import CoinAnswer, Problem, TableRow, WhatIfAnswer
from coinhaze.web.pages.say import DASH, amount, bits_text, tag
from coinhaze.web.words import share_words, short_id

MOST_OFFERED = 6


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


def _share(share: float | None) -> str:
    return DASH if share is None else share_words(share)


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
    first, after = what_if.before[0], what_if.after
    bits = f"{bits_text(first)} → {bits_text(after)}"
    exposure = ""
    if first.exposure is not None and after.exposure is not None:
        exposure = (
            f" · <b>Exposure</b> {share_words(first.exposure)} → "
            f"<b>{share_words(after.exposure)}</b>"
        )
    rises = (after.exposure or 0.0) > (first.exposure or 0.0) + 5e-4
    notes = "".join(tag("p", note, kind="sub") for note in what_if.notes)
    each = "".join(
        f'<tr><td class="mono">{escape(short_id(coin.name))}</td>'
        f'<td class="num">{amount(coin.amount)}</td><td class="num">{bits_text(coin)}</td>'
        f'<td class="num">{_share(coin.exposure)}</td></tr>'
        for coin in what_if.before
    )
    return Html(
        f'<div class="{"warnbox" if rises else "res"}"><p id="what-if-bits" '
        f'data-bits="{after.bits!r}"><b>Bits</b> {escape(bits)}{exposure}</p>'
        f'<p class="sub" id="ownership">{escape(what_if.ownership)}</p>{notes}</div>'
        '<table class="small"><thead><tr><th>Coin</th><th class="num">Amount</th>'
        '<th class="num">Bits</th><th class="num">Exposure</th></tr></thead>'
        f"<tbody>{each}</tbody></table>"
    )
