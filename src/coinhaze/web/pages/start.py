"""The first page: search, ledgers, and a few coins to begin with."""

from __future__ import annotations

from collections.abc import Sequence

from coinhaze.explore.describe import count_words
from coinhaze.explore.links import ledger_link
from coinhaze.explore.models import LedgerCard, TableRow
from coinhaze.report.page import Html, escape
from coinhaze.web.pages.rows import coins_table
from coinhaze.web.pages.say import DASH, bits_of_many, tag, window_words

STATES = {
    "ready": "",
    "loading": "loading",
    "not scored": "not scored yet",
    "missing": "file missing",
    "locked": "in use by another process",
    "damaged": "cannot be read",
}


def start_page(cards: Sequence[LedgerCard], examples: Sequence[TableRow] = ()) -> Html:
    """Give the main part of the first page."""
    ready = [card for card in cards if card.state == "ready"]
    chosen = (
        "".join(f'<option value="{escape(c.id)}">{escape(c.name)}</option>' for c in ready)
        if len(ready) > 1
        else ""
    )
    pick = f'<select name="l" aria-label="Ledger">{chosen}</select>' if chosen else ""
    hidden = (
        f'<input type="hidden" name="l" value="{escape(ready[0].id)}">' if len(ready) == 1 else ""
    )
    return Html(
        '<section class="hero"><h1>Where did this money come from?</h1>'
        '<p class="lead">Paste a coin. See how many bits an observer of the public ledger lacks to '
        "tell, and the origins it could have.</p>"
        '<form class="big-search" role="search" action="/search" method="get">'
        f'{hidden}<input type="search" name="q" id="start-q" autofocus required maxlength="512" '
        'placeholder="txid, txid:output, address, account or block" aria-label="Search for a coin, '
        'transaction, address, account or block" autocomplete="off" autocapitalize="off" '
        f'spellcheck="false">{pick}<button class="btn main" type="submit">Look</button></form>'
        "</section>"
        f"{_ledgers(cards)}{_examples(examples)}"
        '<section class="card sec js" id="recent" hidden><div class="hd"><h2>Recent</h2><span '
        'class="grow"></span><button class="btn small" type="button" id="forget">Forget</button>'
        '</div><ul class="plain" id="recent-list"></ul></section>'
    )


def _ledgers(cards: Sequence[LedgerCard]) -> Html:
    if not cards:
        return Html(
            '<section class="card sec"><h2>No ledger is open</h2><p>Start again with one: '
            "<code>coinhaze serve LEDGER</code>. A ledger to try: <code>coinhaze simulate dai-week "
            "--size 0.01 -o dai</code>.</p></section>"
        )
    rows = "".join(_ledger_row(card) for card in cards)
    compare = ""
    if len(cards) > 1:
        ids = ",".join(card.id for card in cards[:5])
        compare = tag("a", "Compare", href=f"/compare?l={ids}", kind="btn")
    return Html(
        '<section class="card sec" aria-labelledby="lh"><div class="hd"><h2 id="lh">Ledgers</h2>'
        f'<span class="grow"></span>{compare}</div><table><thead><tr><th>Ledger</th><th>Window</th>'
        '<th class="num">Coins</th><th class="num">Median bits</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></section>"
    )


def _ledger_row(card: LedgerCard) -> str:
    state = STATES[card.state]
    note = " · ".join(filter(None, (state, card.message if card.state != "ready" else None)))
    sub = tag("span", note or (card.network or ""), kind="sub")
    median = bits_of_many(card.bits_median, lower_bound=card.lower_bounds)
    coins = DASH if card.coins is None else f"{card.coins:,}"
    return (
        f"<tr><td>{tag('a', tag('bdi', card.name), href=ledger_link(card.id))}{sub}</td>"
        f'<td>{escape(window_words(card.window))}</td><td class="num">{coins}</td>'
        f'<td class="num">{median}</td></tr>'
    )


def _examples(rows: Sequence[TableRow]) -> Html:
    if not rows:
        return Html("")
    return Html(
        '<section class="card sec" aria-labelledby="eh"><div class="hd"><h2 id="eh">To begin with'
        f'</h2><span class="sub">{count_words(len(rows), "coin")} of the first ledger</span></div>'
        f"{coins_table(rows)}</section>"
    )
