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
    short_id,
)
from coinhaze.explore.links import api_link, thing_link
from coinhaze.explore.models import (
    GroupAnswer,
    LedgerCard,
    ListCard,
)
from coinhaze.report.page import Html, escape
from coinhaze.web.asks import PageAsk
from coinhaze.web.pages.asked import look_link
from coinhaze.web.pages.charts import scale_chart
from coinhaze.web.pages.rows import coins_table, table_caption
from coinhaze.web.pages.say import DASH, amount, bits_of_many, fact, moment, panel, tag, together
from coinhaze.web.pages.switches import switches

_API = {"address": "addresses", "transaction": "transactions", "block": "blocks"}
PATHS = {"address": "address", "transaction": "tx", "block": "block"}


def group_page(
    answer: GroupAnswer, card: LedgerCard, ask: PageAsk, lists: Sequence[ListCard] = ()
) -> Html:
    """Give the main part of its page."""

    def options(**changes: object) -> str:
        # A choice begins again at the first of its coins; boxes of a flow it has none.
        kept = {key: value for key, value in changes.items() if key != "open"}
        now = ask.model_copy(update={"after": None, **kept})
        link = thing_link(card.id, PATHS[answer.kind], answer.name, now)
        return look_link(link, now, lists)

    coins = answer.histogram.zeros + sum(answer.histogram.counts)
    chart = (
        scale_chart(answer.histogram, height=110, whose=f"of this {answer.kind}")
        if coins > 1
        else ""
    )
    nothing = ""
    if not answer.rows:
        nothing = tag("p", "No coin of it is left in this ledger.", kind="dim")
    turn = ""
    if answer.after:
        on = ask.model_copy(update={"after": answer.after})
        link = thing_link(card.id, PATHS[answer.kind], answer.name, on)
        turn = Html(f'<p class="turning">{tag("a", "Next", kind="btn", href=link)}</p>')
    time = None if answer.exposure is None else answer.exposure.time
    table = coins_table(answer.rows, caption=table_caption(answer.settings, time))
    return together(
        [
            _identity(answer, card),
            *(tag("p", note, kind="note") for note in answer.notes),
            tag("section", together([_facts(answer), chart]), kind="card verdict group"),
            switches(card, ask, answer.settings, lists, options),
            panel("Coins", tag("div", table, kind="wide"), nothing, turn),
            _spends(answer, card),
            _transactions(answer, card),
        ]
    )


def _identity(answer: GroupAnswer, card: LedgerCard) -> Html:
    name = tag("code", short_id(answer.name), title=answer.name)
    parts: list[object] = [tag("bdi", answer.label) if answer.label else "", moment(answer.time)]
    if answer.height is not None and answer.kind != "block":
        link = thing_link(card.id, "block", str(answer.height))
        parts.append(tag("a", f"block {answer.height:,}", href=link))
    meta = Html(" · ").join(escape(part) for part in parts if part)
    tail = thing_link("x", "coin", answer.name).rpartition("/")[2]
    data = api_link(f"/ledgers/{card.id}/{_API[answer.kind]}/{tail}")
    return Html(
        f'<div class="id"><h1>{answer.kind.capitalize()} {name}</h1>'
        f'<button class="btn js" type="button" data-copy="{escape(answer.name)}">Copy id</button>'
        f'<span class="meta">{meta}</span><span class="grow"></span>'
        f"{tag('a', 'JSON', kind='btn', href=data)}</div>"
    )


def _facts(answer: GroupAnswer) -> Html:
    span = DASH
    if answer.coins == 1:
        span = "one coin"
    elif answer.bits_low is not None and answer.bits_high is not None:
        bounds = ", some of them lower bounds" if answer.lower_bounds else ""
        span = f"coins have {answer.bits_low:.2f} to {answer.bits_high:.2f}{bounds}"
    median = bits_of_many(answer.bits_median, lower_bound=answer.lower_bounds > 0)
    exposure, words = _exposure(answer)
    cells = [
        (
            "Total",
            amount(answer.total),
            f"{answer.unspent:,} unspent of {count_words(answer.coins, 'coin')}",
        ),
        ("Median bits", median, span),
        ("Exposure to loaded lists", exposure, words),
    ]
    return tag("dl", together(fact(*cell) for cell in cells), kind="facts three")


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


def _spends(answer: GroupAnswer, card: LedgerCard) -> Html:
    if not answer.spends:
        return Html("")
    rows = "".join(
        f"<tr><td>{_linked(coin.name, coin.href)}</td>"
        f'<td class="num">{amount(coin.amount)}</td><td>{_owner(coin.owner, card)}</td></tr>'
        for coin in answer.spends
    )
    table = (
        '<div class="wide"><table><thead><tr><th>Coin</th><th class="num">Amount</th>'
        f"<th>Address</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )
    return panel("Spends", Html(table))


def _linked(name: str, href: str | None) -> Html:
    if href is None:
        # What was mined, or made before the window, leads nowhere.
        return tag("span", short_id(name), kind="mono", title=name)
    return tag("a", short_id(name), href=href, kind="mono", title=name)


def _owner(owner: str | None, card: LedgerCard) -> Html:
    if owner is None:
        return Html("")
    return tag(
        "a", short_id(owner), href=thing_link(card.id, "address", owner), kind="mono", title=owner
    )


def _transactions(answer: GroupAnswer, card: LedgerCard) -> Html:
    if not answer.transactions:
        return Html("")
    items = together(
        tag("li", _linked(name, thing_link(card.id, "tx", name))) for name in answer.transactions
    )
    return panel("Transactions", tag("ul", items, kind="plain many"))
