"""A coin's origins as a table; letters are those of the narrow drawing."""

from __future__ import annotations

from string import ascii_uppercase

from coinhaze.explore.describe import count_words, reading_words, share_words, short_id
from coinhaze.explore.links import api_link, thing_link
from coinhaze.explore.models import (
    CoinAnswer,
    LedgerCard,
    Origin,
)
from coinhaze.observer.policies import POLICIES
from coinhaze.report.page import Html, escape
from coinhaze.web.asks import CoinAsk, Settings
from coinhaze.web.pages.say import moment, noun_of, share_bar, tag

MORE = 8  # origins that "show more" adds
PASSED = (
    "Exposure counts all money that passed a listed name on its way here, not only what began "
    "there: it can be more than what listed origins hold."
)
KINDS = {
    "earlier": "older than the window",
    "service": "labelled",
    "mined": "mined",
    "listed": "⚑ on the list",
    "other": "folded",
}


def letters_of(answer: CoinAnswer) -> dict[str, str]:
    """Give each origin its letter: A to Z, then numbers."""
    names = [origin.name for origin in answer.origins]
    return {name: letter(k) for k, name in enumerate(names)}


def letter(k: int) -> str:
    """Give a letter, or a number where letters end.

    >>> letter(0), letter(26)
    ('A', '27')
    """
    return ascii_uppercase[k] if k < len(ascii_uppercase) else str(k + 1)


def origins_section(answer: CoinAnswer, card: LedgerCard, ask: CoinAsk) -> Html:
    """Give a coin's origins, largest first, the others as one row; CSV and JSON beside."""
    shares = POLICIES[answer.settings.policy].shares
    most = max([o.share for o in answer.origins] + [answer.other.share, 1e-12])
    flow_ids = {node.name: node.id for node in answer.flow.nodes if node.name}
    rows = [_row(o, k, most, flow_ids.get(o.name), shares) for k, o in enumerate(answer.origins)]
    if answer.other.count:
        folded = next((n.id for n in answer.flow.nodes if n.folded and n.kind == "other"), None)
        rows.append(_other_row(answer, card, ask, most, folded, shares))
    total = "" if answer.sources is None else f" of {answer.sources:,}"
    used = answer.settings
    read = reading_words(used.view, used.time, used.policy)
    head = f"{len(answer.origins)} largest{total}" if answer.other.count else "all of them"
    head = f"{head}; {read}"
    tail = thing_link("x", "coin", answer.name).rpartition("/")[2]
    settings = Settings(**{k: getattr(ask, k) for k in Settings.model_fields})
    base = f"/ledgers/{card.id}/coins/{tail}/origins"
    csv = api_link(base + ".csv", settings)
    json = api_link(base, settings)
    share = f'<th class="num">Share of {noun_of(answer.kind)}</th>' if shares else ""
    passed = ""
    if answer.exposure is not None and answer.exposure.share:
        passed = tag("p", PASSED, kind="sub", id="passed")
    empty = "" if rows else tag("p", "No origin is known.", kind="dim")
    return Html(
        '<section class="card sec" id="origins" aria-labelledby="orh"><div class="hd">'
        f'<h2 id="orh">Origins</h2><span class="sub">{escape(head)}</span><span class="grow">'
        f"</span>{tag('a', 'CSV', kind='btn', href=csv, download='')}"
        f'{tag("a", "JSON", kind="btn", href=json)}</div><table class="origins"><thead><tr>'
        f'<th class="rk"><span class="vh">Key</span></th><th>Origin</th>{share}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>{empty}{passed}</section>"
    )


def _row(origin: Origin, k: int, most: float, node: str | None, shares: bool) -> str:
    words = origin.label or origin.words
    name = tag("bdi", words)
    shown = tag("a", name, href=origin.href) if origin.href else name
    facts = [KINDS[origin.kind]]
    if origin.label and origin.words != origin.label:
        facts.append(origin.words)
    elif origin.name != origin.words:
        facts.append(short_id(origin.name))
    if origin.height is not None:
        facts.append(f"block {origin.height:,}")
    elif origin.time is not None:
        facts.append(moment(origin.time))
    amount = "" if origin.amount is None else tag("span", origin.amount.shown, kind="sub amt")
    cell = (
        f'<td class="num"><span class="cell">{share_bar(origin.share, origin.kind, most=most)}'
        f"<span>{share_words(origin.share)}{amount}</span></span></td>"
        if shares
        else ""
    )
    data = f' data-o="{escape(node)}"' if node else ""
    return (
        f'<tr{data} data-share="{origin.share!r}"><td class="rk"><span class="chip '
        f'k-{origin.kind}" aria-hidden="true">{letter(k)}</span></td>'
        f'<td>{shown}<span class="sub">{escape(" · ".join(facts))}</span></td>{cell}</tr>'
    )


def _other_row(
    answer: CoinAnswer, card: LedgerCard, ask: CoinAsk, most: float, node: str | None, shares: bool
) -> str:
    top = min(ask.top + MORE, 100)
    more = thing_link(card.id, "coin", answer.name, ask.model_copy(update={"top": top}))
    link = tag("a", "show more", href=more, data_swap="", id="more-origins")
    words = f"Other, {count_words(answer.other.count, 'origin')}"
    data = f' data-o="{escape(node)}"' if node else ""
    cell = (
        f'<td class="num"><span class="cell">{share_bar(answer.other.share, "other", most=most)}'
        f"<span>{share_words(answer.other.share)}</span></span></td>"
        if shares
        else ""
    )
    return (
        f'<tr{data} data-share="{answer.other.share!r}"><td class="rk"><span class="chip k-other" '
        f'aria-hidden="true">…</span></td><td>{escape(words)}<span class="sub">{link}</span></td>'
        f"{cell}</tr>"
    )
