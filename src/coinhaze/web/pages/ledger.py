"""Pages of ledgers: all of them, one, its table, and several side by side."""

from __future__ import annotations

from collections.abc import Sequence

from coinhaze.explore.describe import LUMPED, reading_words
from coinhaze.explore.models import (
    Comparison,
    CompletenessCheck,
    Curve,
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
from coinhaze.web.drawing.months import months_chart
from coinhaze.web.pages.render import render
from coinhaze.web.pages.words import STATES, heads, informed_text, table_caption, window_words

REFRESH = 30  # seconds after which a page that follows a chain is loaded again, without script
FIELDS = (
    ("bits_low", "Bits from"),
    ("bits_high", "to"),
    ("steps_low", "Steps from"),
    ("steps_high", "to"),
)


def start_page(
    cards: Sequence[LedgerCard],
    examples: Sequence[TableRow] = (),
    of: LedgerCard | None = None,
) -> str:
    """Return the first page: search, ledgers, and a few coins to begin with."""
    ready = [card for card in cards if card.state == "ready"]
    title = "Where did this money come from?"
    return render("start.html", title, here="/", cards=cards, ready=ready, examples=examples, of=of)


def ledger_page(page: LedgerPage, density: Density | None) -> str:
    """Return a ledger's page; of one that is not ready, what to do."""
    card = page.card
    if card.source is not None:
        return render("walked.html", card.name, card=card, page=page)
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
        informed=informed_words(page.most),
        notes=notes,
        picture=scale_chart(page.histogram, height=120, noun=noun.lower())
        if coins <= DOTS_ONLY
        else log_switch(page.histogram, noun=noun.lower()),
        field=None if density is None else density_chart(density, noun=noun.lower()),
        months=months_chart(page.months) if page.months else None,
        refresh=REFRESH if card.standing is not None else None,
        range=_range_form(TableQuery(), card),
        caption=table_caption(page.settings, page.exposure_time),
        failed=any(check.status == "failed" for check in checks),
        check_words=_check_words,
        method=method.items(),
    )


def _range_form(ask: TableQuery, card: LedgerCard) -> dict[str, object]:
    """Return the four numbers that say which coins are listed; works without script."""
    given = ask.model_dump(exclude_defaults=True)
    retained = {
        k: v for k, v in given.items() if k not in {*dict(FIELDS), "after"} and v is not None
    }
    fields = [(name, words, _given(getattr(ask, name))) for name, words in FIELDS]
    return {
        "action": f"{ledger_link(card.id)}/table",
        "hidden": retained.items(),
        "fields": fields,
        "noun": _noun(card).lower(),
    }


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
        f"{_noun(card)}s of {card.name}",
        card=card,
        here=f"{ledger_link(card.id)}/table",
        page=page,
        noun=_noun(card),
        csv=api_link(f"/ledgers/{card.id}/table.csv", whole),
        json=api_link(f"/ledgers/{card.id}/table", ask),
        range=_range_form(ask, card),
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
        differences=_different(curves),
        bounds=f"{AT_LEAST} {', '.join(marked)}: {LUMPED}" if marked else "",
    )


def like_with_like(cards: Sequence[LedgerCard]) -> bool:
    """Whether ledgers of coins stand beside ledgers of accounts that can be read in order too.

    Coins have their order of time; accounts compared with them are then read in theirs.
    """
    ready = [card for card in cards if card.kind is not None]
    accounts = [card for card in ready if card.kind == "accounts"]
    mixed = 0 < len(accounts) < len(ready)
    return mixed and all("temporal" in card.times for card in accounts)


def _different(curves: Sequence[Curve]) -> str:
    """Say where curves are read in different ways; nothing where they are not."""
    read = {
        f"{c.card.name}: {reading_words(c.summary.view, c.summary.time, c.summary.policy)}"
        for c in curves
        if c.summary is not None
    }
    times = {c.summary.time or "temporal" for c in curves if c.summary is not None}
    if len(times) < 2:
        return ""
    return f"These curves are read in different ways. {'; '.join(sorted(read))}."


def informed_words(rows: Sequence[TableRow]) -> str:
    """Say to whom the first rows are hardest to trace; nothing where observers are not known."""
    if not any(row.informed for row in rows):
        return ""
    if all(informed_text(row) == "0.00" for row in rows if row.informed):
        return "to the naive observer; one who groups origins by owner traces every coin"
    return "to an informed observer, who takes coins spent together for one person's"


def _noun(card: LedgerCard) -> str:
    return "Account" if card.kind == "accounts" else "Coin"


def _check_words(check: CompletenessCheck) -> str:
    times = "1 time" if check.failures == 1 else f"{check.failures:,} times"
    where = f" {times}, first at {check.first}" if check.failures else ""
    return f"{check.status}{where}" + (f": {check.detail}" if check.detail else "")
