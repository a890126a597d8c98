"""Pages of several coins: an address, a transaction, a block, or a wallet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from coinhaze.errors import count_words
from coinhaze.explore.describe import (
    NOT_TOUCHED,
    OWNERSHIP,
    TOUCHED,
    at_most_words,
    reading_words,
    share_words,
)
from coinhaze.explore.models import (
    Before,
    EqualCoins,
    GroupAnswer,
    LedgerCard,
    ListCard,
    PartyKnows,
    Together,
    TransactionLinks,
    WalletAnswer,
)
from coinhaze.explore.query import (
    GROUP_PATHS,
    PageQuery,
    destinations_link,
    thing_data_link,
    thing_link,
    wallet_link,
)
from coinhaze.web.drawing.charts import scale_chart
from coinhaze.web.pages.render import render
from coinhaze.web.pages.settings import choices_of, leads_on, link_with_list
from coinhaze.web.pages.words import DASH, bits_of_many, table_caption
from coinhaze.web.schema import Problem

FEW_INPUTS = 12  # that a transaction's page shows before it folds the others
FEW_PARTIES = 3
MANY = {"address": "addresses", "transaction": "transactions", "block": "blocks"}


def group_page(
    answer: GroupAnswer, card: LedgerCard, ask: PageQuery, lists: Sequence[ListCard], name: str
) -> str:
    """Return its page; `name` is what the request called it."""

    def link(**changes: object) -> str:
        # A choice begins again at the first of its coins; boxes of a flow it has none.
        retained = {key: value for key, value in changes.items() if key != "open"}
        now = ask.model_copy(update={"after": None, **retained})
        return link_with_list(thing_link(card.id, path, answer.name, now), now, lists)

    path = GROUP_PATHS[answer.kind]
    links = answer.transaction.links if answer.transaction is not None else None
    ways = links is not None and links.interpretations not in ("", "1")
    coins = answer.histogram.zeros + sum(answer.histogram.counts)
    on = ask.model_copy(update={"after": answer.after})
    block = None
    if answer.height is not None and answer.kind != "block":
        block = thing_link(card.id, "block", str(answer.height))
    time = None if answer.exposure is None else answer.exposure.time
    return render(
        "group.html",
        f"{answer.kind.capitalize()} {name}",
        card=card,
        answer=answer,
        block=block,
        json=thing_data_link(card.id, MANY[answer.kind], answer.name),
        forward=_forward(answer, card, ask),
        median=bits_of_many(answer.bits_median, lower_bound=answer.lower_bounds > 0),
        span=_span(answer),
        few=FEW_INPUTS,
        heat=heat_rows(links) if links is not None and ways else (),
        across=[side_words(each) for each in links.inputs] if links is not None else (),
        exposure=_exposure(answer),
        chart=scale_chart(answer.histogram, height=110, whose=f"of this {answer.kind}")
        if coins > 1
        else "",
        choices=choices_of(card, ask, answer.settings, lists, link),
        caption=table_caption(answer.settings, time),
        next=thing_link(card.id, path, answer.name, on) if answer.after else None,
    )


def _forward(answer: GroupAnswer, card: LedgerCard, ask: PageQuery) -> str | None:
    """Give where the money of a transaction, or of an address as a whole, went."""
    used = ask.settings
    if answer.kind == "address":
        used = used.model_copy(update={"view": "address"})
    followed = leads_on(card, used) and (answer.kind != "address" or "address" in card.views)
    return (
        destinations_link(card.id, answer.name, used)
        if followed and answer.kind != "block"
        else None
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
        return DASH, "no list chosen"
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


MAX_PAIRS = 60  # rows of pairs that a page shows
MERGED, APART = "Safe to merge: no known party learns of another coin", "Keep apart"


@dataclass(frozen=True)
class WalletForm:
    """What was pasted."""

    coins: str = ""
    exposed: str = ""
    amount: str = ""
    known: str = ""
    psbt: str = ""
    payee: str = ""


def wallet_page(card: LedgerCard, form: WalletForm, answer: WalletAnswer | Problem | None) -> str:
    """Return the form as it was filled, and the answer; accounts have no wallets."""
    problem = answer if isinstance(answer, Problem) else None
    weighed = answer if isinstance(answer, WalletAnswer) else None
    return render(
        "wallet.html",
        "Wallet",
        card=card,
        here=wallet_link(card.id) if answer is None else "",
        form=form,
        problem=problem,
        answer=weighed,
        **(_groups(weighed) if weighed is not None else {}),
    )


def _groups(answer: WalletAnswer) -> dict[str, Any]:
    """Sort groups by what merging them does, those that tell nobody anything first; then pairs."""
    used = answer.settings
    read = reading_words(used.view, used.time, used.policy)
    panels: list[dict[str, Any]] = []
    for title, safe in ((MERGED, True), (APART, False)):
        rows = [
            (each.kind.capitalize(), each)
            for each in answer.groups
            if each.safe is safe and len(each.coins) > 1
        ]
        if rows:
            panels.append({"title": title, "rows": rows, "notes": () if panels else (OWNERSHIP,)})
    seen = {frozenset(group.coins) for group in answer.groups}
    pairs = [pair for pair in answer.pairs or () if frozenset(pair.coins) not in seen]
    pairs.sort(key=lambda pair: bool(pair.safe))
    return {
        "parties": knowing_the_same(answer),
        "few": FEW_PARTIES,
        "read": f"Bits and exposure: {read}. Amounts are those of the coins, none is assumed.",
        "panels": panels,
        "pairs": {
            "too_many": answer.pairs is None and len(answer.coins) > 1,
            "count": len(pairs),
            "rows": [("", pair) for pair in pairs[:MAX_PAIRS]],
            "left": len(pairs) - MAX_PAIRS,
        },
    }


def knowing_the_same(answer: WalletAnswer) -> list[tuple[tuple[str, ...], PartyKnows]]:
    """Put parties that know the same coins together: what they are called, and one of them."""
    same: dict[frozenset[str], list[PartyKnows]] = {}
    for party in answer.parties:
        same.setdefault(frozenset(party.knows), []).append(party)
    return [(tuple(each.party for each in some), some[0]) for some in same.values()]


def exposed_by(coins: Sequence[Before], spend: Together, limit: float) -> tuple[str, ...]:
    """Name the coins that are not exposed, and would or may be if these were spent together."""
    if not spend.ties:
        return ()
    known = {coin.name: coin for coin in coins}
    return tuple(name for name in spend.coins if name in known and _within(known[name], limit))


def _within(coin: Before, limit: float) -> bool:
    high = coin.exposure if coin.exposure_high is None else coin.exposure_high
    return high is not None and high <= limit


SHADES = 8


@dataclass(frozen=True)
class HeatRow:
    """Outputs of one amount: what they are, and how often they go with each input."""

    words: str
    cells: list[tuple[str, int]]  # the share in words, and its shade


def shade(share: float) -> int:
    """Give the shade of a share.

    >>> [shade(s) for s in (0.0, 0.01, 0.5, 1.0)]
    [0, 1, 4, 8]
    """
    return 0 if share <= 0 else max(1, min(round(share * SHADES), SHADES))


def heat_rows(links: TransactionLinks) -> list[HeatRow]:
    """Give a row for each different amount of outputs: the link matrix as a heat map.

    It is a table, so that it can be read without colour, by any reader and without script.
    """
    return [
        HeatRow(side_words(output), [(share_words(share), shade(share)) for share in row])
        for output, row in zip(links.outputs, links.probabilities, strict=True)
    ]


def side_words(coins: EqualCoins) -> str:
    """Name coins of one amount by it, and by how many they are."""
    return coins.amount.shown if coins.count == 1 else f"{coins.count:,} of {coins.amount.shown}"
