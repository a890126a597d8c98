"""Up to five ledgers side by side: one curve each, one table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from coinhaze.explore.describe import LUMPED, reading_words, share_words
from coinhaze.explore.links import ledger_link
from coinhaze.explore.models import (
    Comparison,
    Curve,
    LedgerCard,
)
from coinhaze.measures.summary import AT_LEAST
from coinhaze.report.page import Html, escape
from coinhaze.web.pages.charts import curves_chart, spark_key
from coinhaze.web.pages.say import DASH, bits_of_many, tag, window_words


def compare_page(comparison: Comparison | None, cards: Sequence[LedgerCard]) -> Html:
    """Give the main part: the choice of ledgers, and how they differ."""
    chosen = [c.card.id for c in comparison.curves] if comparison else []
    boxes = "".join(
        f'<label class="pick"><input type="checkbox" name="l" value="{escape(card.id)}"'
        f"{' checked' if card.id in chosen else ''}>{tag('bdi', card.name)}</label>"
        for card in cards
    )
    form = (
        f'<form class="choose" action="/compare" method="get">{boxes}'
        '<button class="btn" type="submit">Compare</button></form>'
    )
    if not cards:
        form = "<p>No ledger is open. Start with several: <code>coinhaze serve A B</code>.</p>"
    return Html(
        f'<div class="id"><h1>Compare ledgers</h1></div><section class="card sec">{form}</section>'
        f"{_curves(comparison) if comparison else ''}"
    )


def _curves(comparison: Comparison) -> Html:
    ready = [c for c in comparison.curves if c.bits]
    chart = (
        curves_chart(comparison.curves) if ready else tag("p", "Nothing to draw yet.", kind="dim")
    )
    order = {c.card.id: k for k, c in enumerate(ready)}
    rows = "".join(_row(curve, order.get(curve.card.id)) for curve in comparison.curves)
    return Html(
        '<section class="card sec" aria-labelledby="ch"><div class="hd"><h2 id="ch">Share of coins '
        f'with at most so many bits</h2></div>{chart}</section><section class="card sec">'
        '<div class="wide"><table><thead><tr><th>Ledger</th><th>Window</th><th class="num">Coins'
        '</th><th class="num">Median bits</th><th class="num">Mean bits</th><th class="num">At 0 '
        'bits</th><th class="num">Median steps</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{_bounds(comparison)}</section>"
    )


def _bounds(comparison: Comparison) -> Html:
    """Explain the mark of lower bounds, where a ledger has it."""
    marked = [c.card.name for c in comparison.curves if c.summary and c.summary.lower_bounds]
    if not marked:
        return Html("")
    return tag("p", f"{AT_LEAST} {', '.join(marked)}: {LUMPED}", kind="note")


def _row(curve: Curve, k: int | None) -> str:
    card, summary = curve.card, curve.summary
    key = spark_key(k) if k is not None else ""
    name = tag("a", tag("bdi", card.name), href=ledger_link(card.id))
    if summary is None:
        why = card.message or card.state
        return f'<tr><td>{key}{name}</td><td colspan="6" class="dim">{escape(why)}</td></tr>'
    zero = DASH if summary.at_zero_bits is None else share_words(summary.at_zero_bits)
    some = partial(bits_of_many, lower_bound=summary.lower_bounds > 0)
    numbers = [f"{summary.scored:,}", some(summary.bits_median), some(summary.bits_mean), zero]
    numbers.append(_two(summary.steps_median))
    cells = "".join(tag("td", number, kind="num") for number in numbers)
    read = tag("span", reading_words(summary.view, summary.time, summary.policy), kind="sub")
    return (
        f"<tr><td>{key} {name}{read}</td><td>{escape(window_words(card.window))}</td>{cells}</tr>"
    )


def _two(value: float | None) -> str:
    return DASH if value is None else f"{value:.2f}"
