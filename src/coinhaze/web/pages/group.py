"""An address, a transaction or a block: its coins together, and each of them."""

from __future__ import annotations

from collections.abc import Sequence

from coinhaze.explore.describe import (
    NOT_TOUCHED,
    TOUCHED,
    at_most_words,
    count_words,
    reading_words,
    share_words,
)
from coinhaze.explore.links import GROUP_PATHS, api_link, thing_link
from coinhaze.explore.models import GroupAnswer, LedgerCard, ListCard
from coinhaze.explore.query import PageAsk
from coinhaze.web.drawing.charts import scale_chart
from coinhaze.web.pages.asked import look_link
from coinhaze.web.pages.choices import choices_of
from coinhaze.web.pages.render import render
from coinhaze.web.pages.rows import table_caption
from coinhaze.web.pages.say import DASH, bits_of_many

MANY = {"address": "addresses", "transaction": "transactions", "block": "blocks"}


def group_page(
    answer: GroupAnswer, card: LedgerCard, ask: PageAsk, lists: Sequence[ListCard], name: str
) -> str:
    """Return its page; `name` is what it was asked for by."""

    def link(**changes: object) -> str:
        # A choice begins again at the first of its coins; boxes of a flow it has none.
        kept = {key: value for key, value in changes.items() if key != "open"}
        now = ask.model_copy(update={"after": None, **kept})
        return look_link(thing_link(card.id, path, answer.name, now), now, lists)

    path = GROUP_PATHS[answer.kind]
    coins = answer.histogram.zeros + sum(answer.histogram.counts)
    on = ask.model_copy(update={"after": answer.after})
    block = None
    if answer.height is not None and answer.kind != "block":
        block = thing_link(card.id, "block", str(answer.height))
    tail = thing_link("x", "coin", answer.name).rpartition("/")[2]
    time = None if answer.exposure is None else answer.exposure.time
    return render(
        "group.html",
        f"{answer.kind.capitalize()} {name}",
        card=card,
        answer=answer,
        block=block,
        json=api_link(f"/ledgers/{card.id}/{MANY[answer.kind]}/{tail}"),
        median=bits_of_many(answer.bits_median, lower_bound=answer.lower_bounds > 0),
        span=_span(answer),
        exposure=_exposure(answer),
        chart=scale_chart(answer.histogram, height=110, whose=f"of this {answer.kind}")
        if coins > 1
        else "",
        choices=choices_of(card, ask, answer.settings, lists, link),
        caption=table_caption(answer.settings, time),
        next=thing_link(card.id, path, answer.name, on) if answer.after else None,
    )


def _span(answer: GroupAnswer) -> str:
    if answer.coins == 1:
        return "one coin"
    if answer.bits_low is None or answer.bits_high is None:
        return DASH
    bounds = ", some of them lower bounds" if answer.lower_bounds else ""
    return f"coins have {answer.bits_low:.2f} to {answer.bits_high:.2f}{bounds}"


def _exposure(answer: GroupAnswer) -> tuple[str, str]:
    exposure = answer.exposure
    if exposure is None:
        return DASH, "no list asked for"
    listed = count_words(exposure.listed, "listed address", "listed addresses")
    read = reading_words(exposure.view, exposure.time, exposure.policy)
    of = f"{exposure.entries:,} of {listed}; {read}"
    if exposure.touched is not None:
        return (TOUCHED if exposure.touched else NOT_TOUCHED), of
    if exposure.share is None:
        return DASH, exposure.text
    if not exposure.share:
        return "none", f"none found, {at_most_words(exposure.share_high or 0.0)}"
    amount = "" if exposure.amount is None else f"{exposure.amount.shown} "
    return share_words(exposure.share), f"{amount}from {of}"
