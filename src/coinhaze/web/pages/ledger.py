"""A ledger's page: how bits are distributed, bits against steps, the table, its ends."""

from __future__ import annotations

from functools import partial

from coinhaze.explore.describe import count_words, reading_words, share_words, steps_words
from coinhaze.explore.links import api_link, ledger_link, table_link
from coinhaze.explore.models import (
    CompletenessCheck,
    Density,
    LedgerCard,
    LedgerPage,
    LedgerSummary,
    TablePage,
)
from coinhaze.report.page import Html, escape
from coinhaze.web.asks import TableAsk
from coinhaze.web.pages.charts import DOTS_ONLY, log_switch, scale_chart
from coinhaze.web.pages.density import density_chart
from coinhaze.web.pages.rows import coins_table, table_caption
from coinhaze.web.pages.say import (
    DASH,
    bits_of_many,
    fact,
    ledger_words,
    panel,
    tag,
    together,
    window_words,
)
from coinhaze.web.pages.start import STATES

FIELDS = (
    ("bits_low", "Bits from"),
    ("bits_high", "to"),
    ("steps_low", "Steps from"),
    ("steps_high", "to"),
)


def ledger_page(page: LedgerPage, density: Density | None) -> Html:
    """Give the main part of a ledger's page; of one that is not ready, what to do."""
    card = page.card
    if page.summary is None or page.histogram is None:
        return not_ready_page(card)
    summary, coins = page.summary, page.histogram.zeros + sum(page.histogram.counts)
    picture = (
        scale_chart(page.histogram, height=120, noun=_noun(card).lower())
        if coins <= DOTS_ONLY
        else log_switch(page.histogram)
    )
    notes = [*page.notes]
    if card.changed:
        notes.append("The file is newer than what is shown: figures may differ.")
    if not coins:
        return together([_heading(card), tag("p", "Nothing in this ledger was scored.")])
    field = Html("")
    if density is not None:
        field = panel(
            "Bits against steps",
            density_chart(density),
            range_form(TableAsk(), card.id),
            tag("div", id="brushed", aria_live="polite"),
            beside=tag("span", "drag over it, or give numbers, to list coins", kind="sub"),
        )
    return together(
        [
            _heading(card),
            *(tag("p", note, kind="note") for note in notes),
            _summary(summary, picture, _noun(card)),
            field,
            _ends(page),
            _completeness(page),
            _method(page),
        ]
    )


def _heading(card: LedgerCard) -> Html:
    facts = " · ".join(filter(None, (window_words(card.window), card.network, card.unit)))
    buttons = together(
        tag("a", words, kind="btn", href=href)
        for words, href in (
            ("Table", table_link(TableAsk(), card.id)),
            ("Wallet", f"{ledger_link(card.id)}/wallet"),
            ("JSON", api_link(f"/ledgers/{card.id}")),
        )
        if words != "Wallet" or card.kind != "accounts"
    )
    return Html(
        f'<div class="id"><h1>{tag("bdi", card.name)}</h1><span class="meta">{escape(facts)}</span>'
        f'<span class="grow"></span>{buttons}</div>'
    )


def _summary(summary: LedgerSummary, picture: Html, noun: str) -> Html:
    some = partial(bits_of_many, lower_bound=summary.lower_bounds > 0)
    facts = (
        ("Scored", f"{summary.scored:,}", f"{summary.nodes:,} nodes, {summary.edges:,} edges"),
        (
            "Median bits",
            some(summary.bits_median),
            f"mean {some(summary.bits_mean)}; "
            + reading_words(summary.view, summary.time, summary.policy),
        ),
        (
            "One possible origin",
            DASH if summary.at_zero_bits is None else share_words(summary.at_zero_bits),
            "at exactly 0 bits",
        ),
        (
            "Median steps",
            DASH if summary.steps_median is None else steps_words(summary.steps_median),
            "back to an origin",
        ),
    )
    cells = together(fact(*given) for given in facts)
    without = ""
    if summary.without_answer:
        words = f"{count_words(summary.without_answer, noun.lower())} without an answer."
        without = tag("p", words, kind="sub")
    return panel(f"{noun}s by bits", picture, tag("dl", cells, kind="facts in"), without)


def range_form(ask: TableAsk, ledger: str) -> Html:
    """Give the four numbers that say which coins are listed; works without script."""
    inputs = "".join(
        f'<label>{words} <input type="number" step="any" min="0" name="{name}" id="{name}" '
        f'value="{_given(getattr(ask, name))}"></label>'
        for name, words in FIELDS
    )
    hidden = "".join(
        f'<input type="hidden" name="{key}" value="{escape(value)}">'
        for key, value in ask.model_dump(exclude_defaults=True).items()
        if key not in {*dict(FIELDS), "after"} and value is not None
    )
    return Html(
        f'<form class="range" id="range-form" action="{ledger_link(ledger)}/table" method="get">'
        f'{hidden}{inputs}<button class="btn" type="submit">List coins</button>'
        f"{tag('a', 'Clear', kind='btn js-clear', href=f'{ledger_link(ledger)}/table')}</form>"
    )


def _given(number: float | None) -> str:
    return "" if number is None else f"{number:.6g}"


def table_page(page: TablePage, card: LedgerCard) -> Html:
    """Give the main part of a table's page: one part of the rows, in an order."""
    ask = page.asked
    table = coins_table(
        page.rows,
        sort=ask.sort,
        first=_noun(card),
        caption=table_caption(ask, page.exposure_time),
        link=lambda sort: table_link(ask.model_copy(update={"sort": sort, "after": None}), card.id),
    )
    csv = api_link(
        f"/ledgers/{card.id}/table.csv", ask.model_copy(update={"after": None, "limit": 100})
    )
    json = api_link(f"/ledgers/{card.id}/table", ask)
    empty = (
        "" if page.rows else tag("p", f"No {_noun(card).lower()} lies in that range.", kind="dim")
    )
    return Html(
        f'<div class="id"><h1>{_noun(card)}s of {tag("bdi", card.name)}</h1>'
        f'<span class="meta" id="total" data-total="{page.total}">{count_words(page.total, "row")}'
        '</span><span class="grow"></span>'
        f"{tag('a', 'CSV', kind='btn', href=csv, download='', id='csv')}"
        f"{tag('a', 'JSON', kind='btn', href=json)}</div>"
        f'<section class="card sec">{range_form(ask, card.id)}</section>'
        f'<section class="card sec" id="listed" aria-label="Coins"><div class="wide">{table}</div>'
        f"{empty}{_turning(page, card)}</section>"
    )


def _turning(page: TablePage, card: LedgerCard) -> Html:
    ask = page.asked
    parts = []
    if ask.after:
        start = table_link(ask.model_copy(update={"after": None}), card.id)
        parts.append(tag("a", "From the start", kind="btn", href=start))
    if page.after:
        on = table_link(ask.model_copy(update={"after": page.after}), card.id)
        parts.append(tag("a", "Next", kind="btn", href=on, id="next", rel="next"))
    return Html(f'<p class="turning">{"".join(parts)}</p>') if parts else Html("")


def _ends(page: LedgerPage) -> Html:
    both = (("Hardest to trace", page.most, "-bits"), ("Easiest to trace", page.fewest, "bits"))
    parts = []
    for words, rows, sort in both:
        link = table_link(TableAsk(sort=sort), page.card.id)
        beside = Html(f'<span class="grow"></span>{tag("a", "All", kind="btn", href=link)}')
        caption = table_caption(page.settings, page.exposure_time)
        table = tag("div", coins_table(rows, first=_noun(page.card), caption=caption), kind="wide")
        parts.append(panel(words, table, beside=beside))
    return together(parts)


def _noun(card: LedgerCard) -> str:
    return "Account" if card.kind == "accounts" else "Coin"


def _completeness(page: LedgerPage) -> Html:
    """List the checks of whether anything is missing; open where one failed."""
    if page.completeness is None:
        return Html("")
    lines = together(
        Html(f"<dt>{escape(check.name)}</dt><dd>{escape(_check_words(check))}</dd>")
        for check in page.completeness.checks
    )
    failed = any(check.status == "failed" for check in page.completeness.checks)
    return Html(
        f'<section class="card sec" id="completeness"><details{" open" if failed else ""}>'
        f"<summary>{escape(page.completeness.line.capitalize())}</summary>"
        f'<dl class="method">{lines}</dl></details></section>'
    )


def _check_words(check: CompletenessCheck) -> str:
    times = "1 time" if check.failures == 1 else f"{check.failures:,} times"
    where = f" {times}, first at {check.first}" if check.failures else ""
    return f"{check.status}{where}" + (f": {check.detail}" if check.detail else "")


def _method(page: LedgerPage) -> Html:
    assert page.summary is not None
    rows = {"scores": page.summary.line, "digest": page.card.digest, **page.provenance}
    body = together(
        Html(f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>")
        for key, value in rows.items()
        if value
    )
    return Html(
        '<section class="card sec"><details><summary>How this was computed</summary>'
        f'<dl class="method">{body}</dl></details></section>'
    )


def not_ready_page(card: LedgerCard) -> Html:
    """Say why a ledger has no figures, and what to do."""
    state = STATES[card.state] or "not ready"
    fix = tag("p", card.fix) if card.fix else ""
    job = ""
    if card.job:
        job = Html(f"<p>{tag('a', 'See how far it is', kind='btn', href=f'/jobs#{card.job}')}</p>")
    elif card.state == "not scored":
        job = Html(
            f'<form method="post" action="{ledger_link(card.id)}/score"><button class="btn main" '
            'type="submit">Score it now</button></form>'
        )
    return Html(
        f'<div class="id"><h1>{tag("bdi", ledger_words(card))}</h1></div>'
        f'<section class="card sec state" data-state="{escape(card.state)}"><h2>'
        f"{escape(state.capitalize())}</h2><p>{escape(card.message or '')}</p>{fix}{job}</section>"
    )
