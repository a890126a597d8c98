"""What a search found; the text and the box stay, whatever was pasted."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from coinhaze.explore.describe import count_words
from coinhaze.explore.models import Hit, LedgerCard
from coinhaze.report.page import Html, escape
from coinhaze.web.pages.say import tag, together
from coinhaze.web.schema import Problem

EXAMPLES = (
    "A coin is a transaction's id, a colon and the output's number. Also: a transaction, an "
    "address or account, a block's height, or the first 6 letters of any of them."
)


def found_page(hits: Sequence[Hit], *, notes: Sequence[str] = (), more: bool = False) -> Html:
    """List what was found, where it was more than one thing."""
    said = together(tag("p", note, kind="note") for note in notes)
    rows = "".join(
        f'<li><a href="{escape(hit.href)}">{escape(hit.kind.capitalize())} '
        f'<code>{escape(hit.name)}</code></a><span class="sub">{escape(hit.words)}</span></li>'
        for hit in hits
    )
    tail = tag("p", "There are others; paste more letters.", kind="sub") if more else ""
    count = count_words(len(hits), "match", "matches")
    return Html(
        f'<div class="id"><h1>Found</h1><span class="meta">{count}</span></div>{said}'
        f'<section class="card sec"><ul class="plain hits">{rows}</ul>{tail}</section>'
    )


def nothing_page(
    query: str,
    why: str,
    *,
    searched: Sequence[LedgerCard] = (),
    others: Sequence[LedgerCard] = (),
) -> Html:
    """Say that nothing was found and where, what can be pasted, and where else to look."""
    names = Html(", ").join(tag("bdi", card.name) for card in searched)
    return Html(
        '<div class="id"><h1>Nothing found</h1></div><section class="card sec state" '
        f'id="nothing"><p>You searched for <code>{escape(query)}</code>'
        f"{' in ' if names else ''}{names}</p><p>{escape(why)}</p>{_elsewhere(query, others)}"
        f'<p class="sub">{escape(EXAMPLES)}</p></section>'
    )


def _elsewhere(query: str, others: Sequence[LedgerCard]) -> Html:
    """Offer the same search in ledgers that were not looked at."""
    links = Html(", ").join(
        tag("a", tag("bdi", card.name), href=f"/search?{urlencode({'q': query, 'l': card.id})}")
        for card in others
    )
    return tag("p", Html(f"Look for it in {links}."), id="elsewhere") if links else Html("")


def problem_page(problem: Problem, *, title: str = "That did not work") -> Html:
    """Say what is wrong, and what to do."""
    return Html(
        f'<div class="id"><h1>{escape(title)}</h1></div><section class="card sec state" '
        f'data-code="{escape(problem.code)}"><p>{escape(problem.message)}</p>'
        f"<p>{escape(problem.fix)}</p></section>"
    )
