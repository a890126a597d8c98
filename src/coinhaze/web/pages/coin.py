"""A coin's page: the number and what it means, where the money came from, what would change it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from string import ascii_uppercase
from urllib.parse import parse_qsl

from coinhaze.errors import count_words
from coinhaze.explore.describe import reading_words, share_words, short_id
from coinhaze.explore.models import (
    CoinAnswer,
    Flow,
    FlowNode,
    Histogram,
    LedgerCard,
    ListCard,
    Origin,
    TableRow,
    WhatIfAnswer,
)
from coinhaze.explore.query import (
    CoinQuery,
    destinations_link,
    screen_link,
    thing_data_link,
    thing_link,
)
from coinhaze.graph.opening import assumed_words
from coinhaze.observer.policies import POLICIES, PROPORTIONAL, Policy
from coinhaze.report.page import Html
from coinhaze.web.drawing.charts import scale_chart
from coinhaze.web.drawing.flow import Picture, draw_flow
from coinhaze.web.drawing.flow_columns import order_by_time
from coinhaze.web.drawing.flow_marks import kind_of
from coinhaze.web.pages.coin_facts import facts_of, verdict_words, whose_view
from coinhaze.web.pages.coin_sets import exposed_by
from coinhaze.web.pages.render import render, render_part
from coinhaze.web.pages.settings import choices_of, leads_on, link_with_list
from coinhaze.web.pages.words import can_screen, moment, noun_of, table_caption
from coinhaze.web.schema import Problem

MORE = 8  # origins that "show more" adds
MAX_OFFERED, MAX_NAMED = 6, 6  # coins that a what-if offers, and that a warning names
_KIND_WORDS = {
    "service": "labelled service",
    "earlier": "older than the window",
    "mined": "mined",
    "listed": "⚑ on a list",
    "coinjoin": "CoinJoin",
    "pool": "shielded pool",
    "other": "folded",
}
FORWARD_WORDS = {
    "service": "labelled, holds it now",
    "earlier": "holds it now",
    "mined": "fees, burned, or never to be spent",
    "listed": "⚑ on a list",
    "coinjoin": "CoinJoin",
    "pool": "shielded pool",
    "other": "folded",
}
NO_WORDS: Mapping[str, str] = {}
FRONTIER = {"earlier": "not followed further"}  # of a chain that is walked back on demand
MINTED = {"mined": "minted"}  # accounts are not mined to
KINDS = {
    "earlier": "older than the window",
    "service": "labelled",
    "mined": "mined",
    "listed": "⚑ on the list",
    "other": "folded",
}


@dataclass(frozen=True)
class CoinView:
    """All that a coin's page shows, and its request."""

    card: LedgerCard
    answer: CoinAnswer
    ask: CoinQuery
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
        return link_with_list(link, ask, self.lists)


def coin_page(view: CoinView) -> str:
    """Return a coin's page."""
    answer, card, used = view.answer, view.card, view.answer.settings
    noun, policy = noun_of(answer.kind), POLICIES[used.policy]
    rule = f"{_caption(policy, noun)} Read by {_read(answer)}."
    bits = "" if answer.bits is None else f" · {answer.sentence.shown} bits"
    screen = screen_link(card.id, answer.name, view.ask.settings) if can_screen(card) else None
    others, mark, query = thing_link(card.id, "coin", answer.name, view.ask).partition("?")
    method = [("method", answer.method), ("ledger", card.name), ("digest", answer.digest)]
    return render(
        "coin.html",
        f"{short_id(answer.name)}{bits}",
        card=card,
        view=view,
        noun=noun,
        many=noun_of(answer.kind, many=True),
        policy=policy,
        shares=policy.shares,
        assumed=_assumed(answer),
        warnings=_warnings(view),
        verdict=verdict_words(answer),
        whose=whose_view(answer, card, view.ask),
        chart=_scale(view) if policy.shares else None,
        facts=facts_of(answer, view.lists, screen=screen),
        choices=choices_of(card, view.ask, used, view.lists, view.link),
        legend=legend(answer.flow, _own_words(card)),
        flow_table=flow_table(answer.flow, shares=policy.shares, rule=rule),
        flow=_flow(view),
        flow_title="Where the money came from",
        flow_empty="This money came from nowhere else.",
        forward=destinations_link(card.id, answer.name, view.ask.settings)
        if leads_on(card, view.ask.settings)
        else None,
        origins=_origins(view),
        spend=_what_if(view)
        if noun == "coin" and card.kind != "accounts" and card.standing is None
        else None,
        others=f"{others}/comparators{mark}{query}",
        method=[*method, *((key, _plain(value)) for key, value in answer.provenance.items())],
        json=thing_data_link(card.id, "coins", answer.name, view.ask),
    )


def _caption(rule: Policy, noun: str) -> str:
    """Say what the shares of a flow are."""
    if not rule.shares:
        return f"Ways back to a listed address; {rule.column} gives no shares."
    name = rule.label if rule.ordered else rule.column
    return f"Shares of this {noun}, {rule.split} ({name})."


def _read(answer: CoinAnswer) -> str:
    used = answer.settings
    return reading_words(used.view, used.time, used.policy)


def _assumed(answer: CoinAnswer) -> str:
    """Say what of the amount is assumed."""
    if answer.amount is None or answer.assumed is None:
        return ""
    holds, assumed = answer.amount, answer.assumed
    return assumed_words(int(holds.smallest), int(assumed.smallest), assumed.shown)


def _warnings(view: CoinView) -> list[str]:
    """Say what a reader must know before the number."""
    notes = list(view.answer.notes)
    if view.card.changed:
        notes.append("The ledger's file is newer than what is shown: figures may differ.")
    if view.list_changed:
        notes.append("The list this link was made with has changed: figures may differ.")
    return notes


def _scale(view: CoinView) -> Html | None:
    answer = view.answer
    if view.histogram is None or answer.bits is None:
        return None
    return scale_chart(
        view.histogram,
        bits=answer.bits,
        marked=f"this {answer.kind}",
        # Of the whole ledger the rule requested may not be known: that of its scores is named.
        whose="of this ledger" + ("" if answer.place else f", by {PROPORTIONAL.column}"),
        noun=noun_of(answer.kind),
    )


def _flow(view: CoinView) -> Html:
    answer = view.answer

    def link(node: FlowNode) -> str | None:
        if node.opens:
            return view.link(open=(*view.ask.open, node.id))
        return node.href if node.column > 0 else None

    shares = POLICIES[answer.settings.policy].shares
    letters = {origin.name: letter(k) for k, origin in enumerate(answer.origins)}
    picture = Picture(letters, link, shares, noun_of(answer.kind))
    return draw_flow(answer.flow, picture)


def _own_words(card: LedgerCard) -> dict[str, str]:
    return (MINTED if card.kind == "accounts" else {}) | (FRONTIER if card.source else {})


def legend(flow: Flow, own: Mapping[str, str] = NO_WORDS) -> Html:
    """List the kinds of boxes and threads that are there; `own` are words of the ledger's kind."""
    present = {kind_of(node) for node in flow.nodes}
    if any(band.listed > 0 for band in flow.bands):
        present.add("listed")  # a thread is drawn even where its box is folded
    known = {**(FORWARD_WORDS if flow.direction == "forward" else _KIND_WORDS), **own}
    kinds = [(kind, words) for kind, words in known.items() if kind in present]
    return render_part("legend.html", kinds=kinds)


def flow_table(flow: Flow, *, shares: bool = True, rule: str = "") -> Html:
    """Give every band of the drawing as a row, newest first: the same figures without a picture."""
    forward = flow.direction == "forward"
    flow = flow.turned() if forward else flow
    if flow.by == "time":
        flow = order_by_time(flow, forward=forward)
    nodes = {node.id: node for node in flow.nodes}
    rows = []
    for band in sorted(flow.bands, key=lambda b: (nodes[b.before].column, -b.share)):
        far, near = nodes[band.before], nodes[band.after]
        ends = (near, far) if forward else (far, near)
        names = (node.label or node.words for node in ends)
        rows.append((_hop_words(flow, far), *names, share_words(band.share)))
    when = "When" if flow.by == "time" else "Hops on" if forward else "Hops back"
    first = "oldest" if forward else "newest"
    return render_part(
        "flow_table.html", rows=rows, when=when, rule=rule, shares=shares, first=first
    )


def _hop_words(flow: Flow, node: FlowNode) -> str:
    if node.column < len(flow.columns):
        column = flow.columns[node.column]
        return str(column.hop) if column.hop is not None else column.title
    return str(node.column)


def _origins(view: CoinView) -> dict[str, object]:
    """List origins, largest first; CSV and JSON beside."""
    answer, card, ask = view.answer, view.card, view.ask
    total = "" if answer.sources is None else f" of {answer.sources:,}"
    head = f"{len(answer.origins)} largest{total}" if answer.other.count else "all of them"
    flow_ids = {node.name: node.id for node in answer.flow.nodes if node.name}
    more = ask.model_copy(update={"top": min(ask.top + MORE, 100)})
    data = partial(thing_data_link, card.id, "coins", answer.name, ask.settings)
    return {
        "head": f"{head}; {_read(answer)}",
        "csv": data(suffix="/origins.csv"),
        "json": data(suffix="/origins"),
        "largest": max([o.share for o in answer.origins] + [answer.other.share, 1e-12]),
        "rows": [
            {
                "origin": origin,
                "letter": letter(k),
                "node": flow_ids.get(origin.name),
                "facts": " · ".join(_origin_facts(origin, card)),
            }
            for k, origin in enumerate(answer.origins)
        ],
        "folded": next((n.id for n in answer.flow.nodes if n.folded and n.kind == "other"), None),
        "more": thing_link(card.id, "coin", answer.name, more),
    }


def _origin_facts(origin: Origin, card: LedgerCard) -> list[str]:
    facts = [(KINDS | _own_words(card))[origin.kind]]
    if origin.label and origin.words != origin.label:
        facts.append(origin.words)
    elif origin.name != origin.words:
        facts.append(short_id(origin.name))
    if origin.height is not None:
        facts.append(f"block {origin.height:,}")
    elif origin.time is not None:
        facts.append(moment(origin.time))
    return facts


def letter(k: int) -> str:
    """Give an origin its letter, A to Z, or a number where letters end.

    >>> letter(0), letter(26)
    ('A', '27')
    """
    return ascii_uppercase[k] if k < len(ascii_uppercase) else str(k + 1)


def _what_if(view: CoinView) -> dict[str, object]:
    """Offer to spend it with others; the chosen coins are in the link, so it can be shared."""
    path, _, query = view.link().partition("?")
    offered = [row for row in view.beside if row.name != view.answer.name][:MAX_OFFERED]
    known = {row.name for row in offered}
    found = view.what_if if isinstance(view.what_if, WhatIfAnswer) else None
    spend: dict[str, object] = {
        "action": path,
        "hidden": [(key, value) for key, value in parse_qsl(query) if key != "with"],
        "offered": offered,
        "typed": ",".join(name for name in view.ties if name not in known),
        "problem": view.what_if if isinstance(view.what_if, Problem) else None,
        "answer": found,
    }
    if found is not None:
        after = found.after.exposure or 0.0
        spend["warning"] = _warning(found)
        spend["rises"] = any(after > (coin.exposure or 0.0) + 5e-4 for coin in found.before)
        spend["caption"] = table_caption(found.settings)
    return spend


def _warning(what_if: WhatIfAnswer) -> str:
    """Say which coins that are not exposed would become so: a mean that falls hides it."""
    names = exposed_by(what_if.before, what_if.after, 0.0)
    if not names:
        return ""
    shown = ", ".join(short_id(name) for name in names[:MAX_NAMED])
    left = len(names) - MAX_NAMED
    more = f" and {left:,} more" if left > 0 else ""
    would = "would" if (what_if.after.exposure or 0.0) > 0 else "may"
    return (
        f"Keep apart: {count_words(len(names), 'coin')} not exposed now {would} become so: "
        f"{shown}{more}."
    )


def _plain(value: object) -> str:
    if isinstance(value, dict):
        said = {k: _plain(v) for k, v in value.items()}
        return "; ".join(f"{k}: {v}" for k, v in said.items() if v)
    if isinstance(value, list | tuple):
        return ", ".join(_plain(v) for v in value)
    return "" if value is None else str(value)
