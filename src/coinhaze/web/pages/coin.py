"""A coin's page: the number and what it means, where the money came from, what would change it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coinhaze.explore.describe import reading_words, short_id
from coinhaze.explore.links import api_link, ledger_link, thing_link
from coinhaze.explore.models import (
    CoinAnswer,
    FlowNode,
    Histogram,
    LedgerCard,
    ListCard,
    TableRow,
    WhatIfAnswer,
)
from coinhaze.graph.assumed import assumed_words
from coinhaze.observer.policies import POLICIES, PROPORTIONAL, Policy
from coinhaze.report.page import Html, escape
from coinhaze.web.asks import CoinAsk
from coinhaze.web.pages.asked import look_link
from coinhaze.web.pages.charts import scale_chart
from coinhaze.web.pages.coin_facts import facts, verdict_words, whose_view
from coinhaze.web.pages.coin_origins import letters_of, origins_section
from coinhaze.web.pages.flow import Picture, draw_flow, flow_table, legend
from coinhaze.web.pages.say import amount, moment, noun_of, tag, together
from coinhaze.web.pages.switches import switches
from coinhaze.web.pages.what_if import what_if_section
from coinhaze.web.schema import Problem


@dataclass(frozen=True)
class CoinView:
    """All that a coin's page shows, and how it was asked for."""

    card: LedgerCard
    answer: CoinAnswer
    ask: CoinAsk
    histogram: Histogram | None = None
    lists: Sequence[ListCard] = ()
    ties: tuple[str, ...] = ()  # coins it might be spent with
    what_if: WhatIfAnswer | Problem | None = None
    beside: Sequence[TableRow] = ()  # coins of the same address
    list_changed: bool = False  # the link was made with another one of the same name

    def link(self, **changes: object) -> str:
        """Give this page with other settings."""
        ask = self.ask.model_copy(update=changes)
        link = thing_link(self.card.id, "coin", self.answer.name, ask, ties=self.ties)
        return look_link(link, ask, self.lists)


def coin_title(answer: CoinAnswer) -> str:
    """Name a coin's page."""
    bits = "" if answer.bits is None else f" · {answer.sentence.shown} bits"
    return f"{short_id(answer.name)}{bits}"


def coin_page(view: CoinView) -> Html:
    """Give the main part of a coin's page."""
    parts = [
        _identity(view),
        *(tag("p", note, kind="note") for note in _warnings(view)),
        _verdict(view),
        switches(view.card, view.ask, view.answer.settings, view.lists, view.link),
        _flow(view),
        Html('<div class="two"><div>'),
        origins_section(view.answer, view.card, view.ask),
        Html("</div><div>"),
        _what_if(view),
        _others(view),
        Html("</div></div>"),
        _method(view),
    ]
    return together(parts)


def _what_if(view: CoinView) -> Html:
    """Offer to spend it with others, where it is a coin: accounts and addresses are not spent."""
    if noun_of(view.answer.kind) != "coin" or view.card.kind == "accounts":
        return Html("")
    return what_if_section(view.answer, view.what_if, view.ties, view.beside, view.link())


def _warnings(view: CoinView) -> list[str]:
    """Say what a reader must know before the number."""
    notes = list(view.answer.notes)
    if view.card.changed:
        notes.append("The ledger's file is newer than what is shown: figures may differ.")
    if view.list_changed:
        notes.append("The list this link was made with has changed: figures may differ.")
    return notes


def _identity(view: CoinView) -> Html:
    answer, ledger = view.answer, view.card.id
    kind = noun_of(answer.kind).capitalize()
    name = tag("code", short_id(answer.name), title=answer.name, id="coin-name")
    parts: list[object] = []
    if answer.label:
        parts.append(tag("bdi", answer.label))
    if answer.time is not None:
        parts.append(moment(answer.time))
    if answer.height is not None:
        link = thing_link(ledger, "block", str(answer.height))
        parts.append(tag("a", f"block {answer.height:,}", href=link))
    if answer.made_by:
        link = thing_link(ledger, "tx", answer.made_by)
        parts.append(tag("a", "transaction", href=link, title=answer.made_by))
    if answer.owner and answer.owner != answer.name:
        link = thing_link(ledger, "address", answer.owner)
        parts.append(tag("a", f"address {short_id(answer.owner)}", href=link))
    if answer.kind == "coin" and not view.card.hides_amounts:
        parts.append(_spent(view))
    meta = Html(" · ").join(escape(part) for part in parts if part)
    return Html(
        f'<div class="id"><h1>{kind} {name}</h1>'
        f'<button class="btn js" type="button" data-copy="{escape(answer.name)}">Copy id</button>'
        f'<span class="meta"><b>{amount(answer.amount)}</b>{_assumed(answer)}'
        f"{' · ' if meta else ''}{meta}</span></div>"
    )


def _assumed(answer: CoinAnswer) -> Html:
    """Say what of the amount is assumed."""
    if answer.amount is None or answer.assumed is None:
        return Html("")
    holds, assumed = answer.amount, answer.assumed
    part = assumed_words(int(holds.smallest), int(assumed.smallest), assumed.shown)
    return tag("span", part, id="assumed")


def _spent(view: CoinView) -> Html:
    if view.answer.spent_by is None:
        return escape("unspent in this ledger")
    link = thing_link(view.card.id, "tx", view.answer.spent_by)
    return tag("a", f"spent by {short_id(view.answer.spent_by)}", href=link)


def _verdict(view: CoinView) -> Html:
    answer = view.answer
    rule = POLICIES[answer.settings.policy]
    chart = Html("")
    if view.histogram is not None and answer.bits is not None and rule.shares:
        chart = scale_chart(
            view.histogram,
            bits=answer.bits,
            marked=f"this {answer.kind}",
            # Of the whole ledger the rule asked for may not be known: that of its scores is named.
            whose="of this ledger" + ("" if answer.place else f", by {PROPORTIONAL.column}"),
            noun=noun_of(answer.kind),
        )
    elif not rule.shares:
        many = noun_of(answer.kind, many=True)
        words = f"{rule.label} gives no number that {many} could be compared by."
        chart = tag("p", words, kind="scale-none dim")
    whose = escape(whose_view(answer, view.card, view.ask))
    return Html(
        f'<section class="card verdict" aria-label="How hard it is to trace"><div>'
        f'{verdict_words(answer)}<p class="not">{whose}</p></div>{chart}'
        f"{facts(answer, view.lists)}</section>"
    )


def _caption(rule: Policy, noun: str) -> str:
    """Say what the shares of a flow are."""
    if not rule.shares:
        return f"Ways back to a listed address; {rule.column} gives no shares."
    name = rule.label if rule.ordered else rule.column
    return f"Shares of this {noun}, {rule.split} ({name})."


def _flow(view: CoinView) -> Html:
    answer, shares = view.answer, POLICIES[view.answer.settings.policy].shares

    def link(node: FlowNode) -> str | None:
        if node.opens:
            return view.link(open=(*view.ask.open, node.id))
        return node.href if node.column > 0 else None

    noun = noun_of(answer.kind)
    picture = Picture(letters_of(answer), link, shares, noun)
    used = answer.settings
    read = reading_words(used.view, used.time, used.policy)
    rule = f"{_caption(POLICIES[used.policy], noun)} Read by {read}."
    by = "".join(
        tag(
            "a",
            words,
            href=f"{view.link(by=by)}{mark}",
            kind="by",
            id=f"by-{key}",
            data_swap="",
            aria_current="true" if key == answer.settings.by else None,
        )
        for key, by, mark, words in (
            ("hop", "hop", "#flow", "By hop"),
            ("time", "time", "#flow", "By time"),
        )
    )
    table = tag("a", "Table", href="#flow-table", id="by-table", kind="by")
    close = ""
    if view.ask.open:
        close = tag("a", "Fold again", href=view.link(open=()), kind="btn small", data_swap="")
    empty = "" if answer.flow.bands else tag("p", "This money came from nowhere else.", kind="dim")
    return Html(
        '<section class="card flow" id="flow" aria-labelledby="fh"><div class="hd">'
        f'<h2 id="fh">Where the money came from</h2>{legend(answer.flow)}<span class="grow"></span>'
        f'{close}<span class="seg" role="group" aria-label="Show as">{by}{table}</span></div>'
        f"{flow_table(answer.flow, shares=shares, rule=rule)}"
        f"{draw_flow(answer.flow, picture)}{empty}"
        '<p class="info" id="info" role="status">Point at a bar, or press <kbd>Tab</kbd> and then '
        "arrow keys; <kbd>Enter</kbd> opens it, <kbd>Esc</kbd> clears.</p></section>"
    )


def _others(view: CoinView) -> Html:
    """Leave room for other rules and measures: they take longer, so they come after the page."""
    base = f"{ledger_link(view.card.id)}/coin"
    link = thing_link(view.card.id, "coin", view.answer.name, view.ask)
    path, _, query = link.partition("?")
    href = f"{path}/comparators" + (f"?{query}" if query else "")
    assert href.startswith(base)
    return Html(
        '<section class="card sec" aria-labelledby="oh"><div class="hd"><h2 id="oh">The same '
        f'{noun_of(view.answer.kind)}, other rules</h2></div><div data-load="{escape(href)}">'
        f"{tag('a', 'Show other rules and measures', href=href)}</div></section>"
    )


def _method(view: CoinView) -> Html:
    answer = view.answer
    rows = [("method", answer.method), ("ledger", view.card.name), ("digest", answer.digest)]
    rows += [(key, _plain(value)) for key, value in answer.provenance.items()]
    body = together(
        Html(f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>") for key, value in rows if value
    )
    data = api_link(f"/ledgers/{view.card.id}/coins/{_tail(answer.name)}", view.ask)
    return Html(
        '<section class="card sec"><details><summary>How this was computed, and how sure it is'
        f'</summary><p class="sub">A proven range is arithmetic: where the number lies under the '
        "rule that is named. It says nothing about how well the rule fits the world.</p>"
        f'<dl class="method">{body}</dl><p>{tag("a", "All of this page as JSON", href=data)}</p>'
        "</details></section>"
    )


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{k}: {_plain(v)}" for k, v in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_plain(v) for v in value)
    return "" if value is None else str(value)


def _tail(name: str) -> str:
    return thing_link("x", "coin", name).rpartition("/")[2]
