"""Pages of ledgers: all of them, one, its table, and several side by side."""

from __future__ import annotations

from collections.abc import Sequence

from coinhaze.explore.describe import LUMPED
from coinhaze.explore.models import (
    Comparison,
    CompletenessCheck,
    Density,
    LedgerCard,
    LedgerPage,
    TablePage,
    TableRow,
)
from coinhaze.explore.query import TableQuery, api_link, ledger_link, table_link
from coinhaze.measures.summary import AT_LEAST
from coinhaze.web.drawing.charts import (
    DOTS_ONLY,
    curves_chart,
    density_chart,
    log_switch,
    scale_chart,
    spark_key,
)
from coinhaze.web.pages.render import render
from coinhaze.web.pages.words import STATES, heads, table_caption, window_words

FIELDS = (
    ("bits_low", "Bits from"),
    ("bits_high", "to"),
    ("steps_low", "Steps from"),
    ("steps_high", "to"),
)


def start_page(cards: Sequence[LedgerCard], examples: Sequence[TableRow] = ()) -> str:
    """Return the first page: search, ledgers, and a few coins to begin with."""
    ready = [card for card in cards if card.state == "ready"]
    title = "Where did this money come from?"
    return render("start.html", title, here="/", cards=cards, ready=ready, examples=examples)


def ledger_page(page: LedgerPage, density: Density | None) -> str:
    """Return a ledger's page; of one that is not ready, what to do."""
    card = page.card
    if page.summary is None or page.histogram is None:
        state = (STATES[card.state] or "not ready").capitalize()
        return render("not_ready.html", card.name, card=card, state=state)
    coins = page.histogram.zeros + sum(page.histogram.counts)
    noun = _noun(card)
    notes = [*page.notes]
    if card.changed:
        notes.append("The file is newer than what is shown: figures may differ.")
    checks = () if page.completeness is None else page.completeness.checks
    method = {"scores": page.summary.line, "digest": card.digest, **page.provenance}
    return render(
        "ledger.html",
        card.name,
        card=card,
        page=page,
        facts=" · ".join(filter(None, (window_words(card.window), card.network, card.unit))),
        coins=coins,
        noun=noun,
        notes=notes,
        picture=scale_chart(page.histogram, height=120, noun=noun.lower())
        if coins <= DOTS_ONLY
        else log_switch(page.histogram),
        field=None if density is None else density_chart(density),
        range=_range_form(TableQuery(), card.id),
        caption=table_caption(page.settings, page.exposure_time),
        failed=any(check.status == "failed" for check in checks),
        check_words=_check_words,
        method=method.items(),
    )


def _range_form(ask: TableQuery, ledger: str) -> dict[str, object]:
    """Return the four numbers that say which coins are listed; works without script."""
    given = ask.model_dump(exclude_defaults=True)
    retained = {
        k: v for k, v in given.items() if k not in {*dict(FIELDS), "after"} and v is not None
    }
    fields = [(name, words, _given(getattr(ask, name))) for name, words in FIELDS]
    return {"action": f"{ledger_link(ledger)}/table", "hidden": retained.items(), "fields": fields}


def _given(number: float | None) -> str:
    return "" if number is None else f"{number:.6g}"


def table_page(page: TablePage, card: LedgerCard) -> str:
    """Return a table's page: one part of the rows, in an order."""
    ask = page.query

    def link(**changes: object) -> str:
        return table_link(ask.model_copy(update=changes), card.id)

    whole = ask.model_copy(update={"after": None, "limit": 100})
    return render(
        "table.html",
        f"Coins of {card.name}",
        card=card,
        here=f"{ledger_link(card.id)}/table",
        page=page,
        noun=_noun(card),
        csv=api_link(f"/ledgers/{card.id}/table.csv", whole),
        json=api_link(f"/ledgers/{card.id}/table", ask),
        range=_range_form(ask, card.id),
        heads=heads(ask.sort, lambda sort: link(sort=sort, after=None), _noun(card)),
        caption=table_caption(ask, page.exposure_time),
        first=link(after=None) if ask.after else None,
        next=link(after=page.after) if page.after else None,
    )


def compare_page(comparison: Comparison | None, cards: Sequence[LedgerCard]) -> str:
    """Return the choice of ledgers, and how they differ."""
    curves = comparison.curves if comparison else ()
    ready = [curve.card.id for curve in curves if curve.bits]
    signs = {ledger: spark_key(k) for k, ledger in enumerate(ready)}
    marked = [c.card.name for c in curves if c.summary and c.summary.lower_bounds]
    return render(
        "compare.html",
        "Compare ledgers",
        here="/compare",
        cards=cards,
        chosen=[curve.card.id for curve in curves],
        curves=curves,
        chart=curves_chart(curves) if ready else None,
        signs={curve.card.id: signs.get(curve.card.id, "") for curve in curves},
        bounds=f"{AT_LEAST} {', '.join(marked)}: {LUMPED}" if marked else "",
    )


def _noun(card: LedgerCard) -> str:
    return "Account" if card.kind == "accounts" else "Coin"


def _check_words(check: CompletenessCheck) -> str:
    times = "1 time" if check.failures == 1 else f"{check.failures:,} times"
    where = f" {times}, first at {check.first}" if check.failures else ""
    return f"{check.status}{where}" + (f": {check.detail}" if check.detail else "")
