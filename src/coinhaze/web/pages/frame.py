"""What every page has: head, search, ledger, theme, keys; nothing fetched from elsewhere."""

from __future__ import annotations

from coinhaze import __version__
from coinhaze.explore.links import ledger_link
from coinhaze.explore.models import LedgerCard
from coinhaze.report.page import Html, escape
from coinhaze.web.pages.say import EN, ledger_words, tag, together

LOGO = Html(
    '<svg width="22" height="22" viewBox="0 0 22 22" aria-hidden="true" focusable="false">'
    '<circle class="haze3" cx="11" cy="11" r="10"/><circle class="haze2" cx="11" cy="11" r="6.8"/>'
    '<circle class="haze1" cx="11" cy="11" r="3.6"/></svg>'
)
START = "/"  # where the search stands in the page itself
_KEYS = (
    ("/", "search"), ("t", "theme"), ("h", "hide amounts"), ("v", "flow as table"),
    (f"1{EN}5", "rule"), ("?", "keys"),
)  # fmt: skip


def whole_page(
    title: str,
    body: object,
    *,
    card: LedgerCard | None = None,
    query: str = "",
    refresh: int | None = None,
    here: str = "",
) -> str:
    """Give a whole page around its main part.

    >>> page = whole_page("<b>", "text")
    >>> "<title>&lt;b&gt; · coinhaze</title>" in page, "http:" in page
    (True, False)
    """
    meta = ""
    if refresh is not None:
        # Without script a page that waits asks again by itself.
        meta = f'<noscript><meta http-equiv="refresh" content="{refresh}"></noscript>\n'
    return (
        '<!doctype html>\n<html lang="en" data-theme="auto">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        # With none at all browsers would not say that a posted form is from here.
        '<meta name="referrer" content="same-origin">\n'
        f"{meta}<title>{escape(title)} · coinhaze</title>\n"
        f'<link rel="icon" href="{static_link("icon.svg")}" type="image/svg+xml">\n'
        f'<link rel="stylesheet" href="{static_link("app.css")}">\n'
        f'<script src="{static_link("theme.js")}"></script>\n'
        f'<script type="module" src="{static_link("app.js")}"></script>\n'
        "</head>\n<body>\n"
        f'<a class="skip" href="#main">Skip to the page</a>\n{_header(card, query, here)}'
        f'<main class="wrap" id="main" tabindex="-1">\n{escape(body)}</main>\n{_footer()}'
        '<div class="vh" id="said" role="status" aria-live="polite"></div>\n'
        "</body>\n</html>\n"
    )


def static_link(name: str) -> str:
    """Give where a file of the page is; its address changes with the version.

    >>> static_link("app.css").startswith("/static/app.css?v=")
    True
    """
    return f"/static/{name}?v={__version__}"


def _header(card: LedgerCard | None, query: str, here: str) -> Html:
    ledger = (
        tag("a", ledger_words(card), kind="chipl ledger", href=ledger_link(card.id)) if card else ""
    )
    nav = "".join(
        tag("a", words, href=to, kind="nav", aria_current="page" if here == to else None)
        for to, words in _places(card)
    )
    search = "" if here == START else _search(card, query)
    return Html(
        '<header class="top"><div class="bar1 wrap">'
        f'<a class="brand" href="/" aria-label="coinhaze, start">{LOGO}<span>coinhaze</span></a>'
        f'{search}{ledger}<nav class="nav-bar" aria-label="Pages">{nav}</nav>'
        '<span class="grow"></span>'
        '<span class="chipl stays">Nothing leaves this machine</span>'
        '<button class="btn ic" id="theme" type="button" aria-label="Light or dark">'
        '<span aria-hidden="true">◐</span></button></div></header>\n'
    )


def _search(card: LedgerCard | None, query: str) -> Html:
    hidden = f'<input type="hidden" name="l" value="{escape(card.id)}">' if card else ""
    return Html(
        '<form class="search" role="search" action="/search" method="get">'
        f'{hidden}<input type="search" name="q" id="q" value="{escape(query)}" '
        'placeholder="txid, address or block" aria-label="Search: transaction, coin, address, '
        'account or block" autocomplete="off" autocapitalize="off" spellcheck="false" '
        'maxlength="512"><kbd aria-hidden="true">/</kbd></form>'
    )


def _places(card: LedgerCard | None) -> list[tuple[str, str]]:
    places = []
    if card is not None and card.state == "ready":
        base = ledger_link(card.id)
        places = [(f"{base}/table", "Table")]
        # Accounts hold no coins that could be chosen among.
        places += [(f"{base}/wallet", "Wallet")] if card.kind != "accounts" else []
    return [*places, ("/compare", "Compare"), ("/jobs", "Jobs")]


def _footer() -> Html:
    keys = together(
        Html(f"<span>{tag('kbd', key)} {escape(words)}</span> ") for key, words in _KEYS
    )
    return Html(
        '<footer class="foot wrap"><p>Bits say how many an observer of the public ledger lacks to '
        "tell where money came from. They are no verdict on anyone.</p>"
        f'<p id="keys" class="keys">{keys}</p></footer>\n'
    )
