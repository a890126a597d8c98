"""Where money went, as a page: shares, who holds it now, and the same drawing as of its past."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coinhaze.explore.describe import at_most_words, reading_words, share_words, short_id
from coinhaze.explore.models import (
    Destination,
    DestinationsAnswer,
    FlowNode,
    LedgerCard,
    ListCard,
)
from coinhaze.explore.query import CoinQuery, destinations_link, thing_data_link, thing_link
from coinhaze.observer.policies import POLICIES, PROPORTIONAL
from coinhaze.report.destinations import A_HOP, NOT
from coinhaze.web.drawing.flow import Picture, draw_flow
from coinhaze.web.drawing.flow_marks import colour_of
from coinhaze.web.pages.coin import MORE, flow_table, legend, letter
from coinhaze.web.pages.render import render
from coinhaze.web.pages.settings import choices_of, link_with_list
from coinhaze.web.pages.words import moment, noun_of

PLACES = {
    "unspent": "unspent",
    "balance": "balance",
    "fee": "all transactions on the way",
    "burned": "burned",
    "unspendable": "can never be spent",
    "other": "",
}


@dataclass(frozen=True)
class DestinationsView:
    """All that the page shows, and its request."""

    card: LedgerCard
    answer: DestinationsAnswer
    ask: CoinQuery
    lists: Sequence[ListCard] = ()

    @property
    def name(self) -> str:
        """What requests call it: a transaction by its id."""
        return self.answer.name.removeprefix("tx:")

    def link(self, **changes: object) -> str:
        """Give this page with other settings."""
        ask = self.ask.model_copy(update=changes)
        return link_with_list(destinations_link(self.card.id, self.name, ask), ask, self.lists)


def destinations_page(view: DestinationsView) -> str:
    """Return the page of where money went."""
    answer, card, used = view.answer, view.card, view.answer.settings
    of_transaction = answer.kind == "transaction"
    noun = "transaction" if of_transaction else noun_of(answer.kind)
    rule = POLICIES[used.policy]
    read = reading_words(used.view, used.time, used.policy)
    back = thing_link(card.id, "tx", view.name)
    if not of_transaction:
        ask = None if card.source else view.ask.settings
        back = link_with_list(thing_link(card.id, "coin", view.name, ask), view.ask, view.lists)
    return render(
        "destinations.html",
        f"{short_id(view.name)} · where it went",
        card=card,
        view=view,
        answer=answer,
        noun=noun,
        name=view.name,
        back=back,
        back_words="The transaction" if of_transaction else "Where it came from",
        reached=_reached(answer),
        read=read,
        caution=NOT,
        hop=A_HOP,
        choices=_choices(view),
        legend=legend(answer.flow),
        flow_table=flow_table(
            answer.flow, rule=f"Shares of the money it had, {rule.split}. Read by {read}."
        ),
        flow=_drawn(view, noun),
        flow_title="Where the money went",
        flow_empty="This money went nowhere else.",
        largest=max([to.share for to in answer.destinations] + [answer.other.share, 1e-12]),
        rows=[_row(k, to) for k, to in enumerate(answer.destinations)],
        folded=next((n.id for n in answer.flow.nodes if n.folded and n.kind == "other"), None),
        more=view.link(top=min(view.ask.top + MORE, 100)),
        head=f"{len(answer.destinations)} largest of "
        f"{len(answer.destinations) + answer.other.count:,}"
        if answer.other.count
        else "all of them",
        json=thing_data_link(card.id, "coins", view.name, view.ask, suffix="/destinations"),
    )


def _choices(view: DestinationsView) -> tuple[object, object]:
    """Offer what has a meaning forward: not the rules that only mark what money touched."""
    card = view.card
    meant = tuple(name for name in card.policies if POLICIES[name].shares)
    offered = card.model_copy(update={"policies": meant or (PROPORTIONAL.column,)})
    return choices_of(offered, view.ask, view.answer.settings, view.lists, view.link)


def _drawn(view: DestinationsView, noun: str) -> str:
    letters = {to.name: letter(k) for k, to in enumerate(view.answer.destinations)}

    def link(node: FlowNode) -> str | None:
        if node.opens:
            return view.link(open=(*view.ask.open, node.id))
        return node.href if node.column > 0 else None

    return draw_flow(view.answer.flow, Picture(letters, link, noun=noun))


def _reached(answer: DestinationsAnswer) -> str:
    """Say how much of the money passed a listed name."""
    if answer.reached is None:
        return ""
    listed = f"a name of the list {(answer.settings.list or '').partition('@')[0]}"
    if not answer.reached:
        high = answer.reached_high
        return f"None of it passed {listed}{f': {at_most_words(high)}' if high else ''}."
    more = ""
    if answer.reached_high is not None and answer.reached_high > answer.reached + 1e-6:
        more = f", {at_most_words(answer.reached_high)}"
    return f"{share_words(answer.reached)} of it passed {listed}{more}."


def _row(rank: int, to: Destination) -> dict[str, object]:
    facts = [PLACES[to.kind]]
    if to.label and to.words != to.label:
        facts.append(to.words)
    elif to.name != to.words and to.href:
        facts.append(short_id(to.name))
    if to.height is not None:
        facts.append(f"block {to.height:,}")
    elif to.time is not None:
        facts.append(moment(to.time))
    return {
        "to": to,
        "letter": letter(rank),
        "colour": colour_of(to.kind, labelled=to.label is not None),
        "facts": " · ".join(filter(None, facts)),
    }
