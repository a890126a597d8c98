"""Scores, origins and graphs as HTML for notebooks: small, static, and self-contained."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Amounts, Floats
from coinhaze.formats.money import MONEY_FACTS, unit_of
from coinhaze.graph import TransactionGraph
from coinhaze.graph.graph import Kind
from coinhaze.ledger import Ledger
from coinhaze.measures import Origins, Scores, Summary
from coinhaze.observer import AbsorbingChain
from coinhaze.report.drawing.flow import Labelled, fold_hops, sankey, short_name
from coinhaze.report.page import Html, escape, paragraph, table
from coinhaze.report.tables import holds_sentence
from coinhaze.solve.local.hops import hops_of
from coinhaze.units import NOT_KNOWN

# The background may be light or dark: text inherits its colour, bars are a blue visible on both.
_LOOK = (
    "--flow:#4a86c5;--source:#c8682b;--other:#8a97a3;--soft:#7c8894;"
    "fill:currentColor;font:12px system-ui,sans-serif"
)
LONGEST = 60  # letters of a name
SHOWN = 5  # rows at each end
HOPS, BOXES = 5, 5
WIDE, TALL = 320.0, 48.0  # pixels of a small drawing


def scores(found: Scores) -> str:
    """Show scores: one line, the distribution of bits, the highest and the lowest."""
    rows = found.order()
    ends = np.concatenate([rows[:SHOWN], rows[SHOWN:][-SHOWN:]])
    unit = unit_of(found.chain.graph.ledger)
    extremes = found.take(ends).to_arrow()
    if unit.is_known:
        place = extremes.column_names.index("balance")
        shown = extremes["balance_shown"]
        extremes = extremes.drop_columns("balance_shown").set_column(place, "balance", shown)
    columns = [name for name in extremes.column_names if not _empty(extremes[name])]
    body = [[_cell(row[name]) for name in columns] for row in extremes.to_pylist()]
    bits = found.bits[~np.isnan(found.bits)]
    return _shown(
        paragraph(found.summary().line()),
        sparkline(bits, "bits, 0 on the left"),
        table(columns, body) if body else Html(""),
        *([] if unit.is_known or "balance" not in columns else [paragraph(NOT_KNOWN)]),
    )


def origins(found: Origins) -> str:
    """Show one node's origins: a sentence, the largest sources, and the flow that led here."""
    rows = [
        [_cell(row["source"]), f"{row['probability']:.4%}"]
        for row in found.sources().slice(0, 2 * SHOWN).to_pylist()
    ]
    more = len(found.outcomes) - len(rows)
    parts = [
        paragraph(f"{_cell(found.name)}: {found.bits:.4f} bits. {holds_sentence(found)}".strip()),
        table(["source", "share"], rows, right=[1]),
    ]
    if more > 0:
        parts.append(paragraph(f"and {more} more"))
    if found.missing > 0:
        parts.append(paragraph(f"not followed to its end: {found.missing:.4%}"))
    if isinstance(found.chain, AbsorbingChain):
        hops = hops_of(found.chain, found.node, limit=HOPS)
        parts.append(sankey(fold_hops(hops, Labelled(found.chain.graph, {}), limit=BOXES)))
    return _shown(*parts)


def graph(found: TransactionGraph) -> str:
    """Show a graph: counts by kind, and the distribution of the amounts moved."""
    kinds, count = np.unique(found.kinds, return_counts=True)
    rows = [[Kind(k).name, f"{n:,}"] for k, n in zip(kinds.tolist(), count.tolist(), strict=True)]
    rows += [
        ["edges", f"{len(found.tail):,}"],
        ["sources", f"{int(found.sources.sum()):,}"],
        ["sinks", f"{int(found.sinks.sum()):,}"],
    ]
    settings = ", ".join(f"{k}={v}" for k, v in found.settings.items() if isinstance(v, str))
    return _shown(
        paragraph(f"{found!r} {settings}"),
        sparkline(_sizes(found.amounts), "amounts that moved, by number of digits"),
        table(["what", "number"], rows, right=[1]),
    )


def ledger(found: Ledger) -> str:
    """Show a ledger: how many of what it holds."""
    unit = unit_of(found)
    facts = {
        name: unit.words(value) if name in MONEY_FACTS and isinstance(value, int) else value
        for name, value in found.facts().items()
    }
    rows = [[name.replace("_", " "), _cell(value)] for name, value in facts.items()]
    hidden = facts.get("amounts") == "hidden"
    return _shown(
        paragraph(repr(found)),
        table(["what", "value"], rows, right=[1]),
        *([] if unit.is_known or hidden else [paragraph(NOT_KNOWN)]),
    )


def chain(found: AbsorbingChain) -> str:
    """Show a chain: its size, and what the observer believes."""
    rows = [[name, _cell(value)] for name, value in found.settings.items() if value is not None]
    return _shown(paragraph(repr(found)), table(["option", "value"], rows))


def summary(found: Summary) -> str:
    """Show a summary: one line, and all its figures."""
    rows = [[name.replace("_", " "), _cell(v)] for name, v in found.as_dict().items()]
    return _shown(paragraph(found.line()), table(["what", "value"], rows, right=[1]))


def sparkline(values: Floats, title: str, *, bars: int = 32) -> Html:
    """Draw the distribution of values as a small row of bars.

    >>> sparkline(np.array([0.0, 1.0, 1.0]), "bits").count("<rect")
    2
    """
    if len(values) == 0:
        return Html("")
    top = max(float(values.max()), 1e-9)
    count, _ = np.histogram(values, bins=bars, range=(0.0, top))
    step, tallest = WIDE / bars, int(count.max())
    drawn = "".join(
        f'<rect x="{k * step:.1f}" y="{TALL - _height(n, tallest):.1f}" width="{step - 1:.1f}" '
        f'height="{_height(n, tallest):.1f}" style="fill:var(--flow)"/>'
        for k, n in enumerate(count.tolist())
        if n
    )
    text = f"{title}; {len(values):,} values up to {top:.4g}"
    return Html(
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{WIDE:.0f}" '
        f'height="{TALL:.0f}"><title>{escape(text)}</title>{drawn}</svg>'
        f"<div>{escape(text)}</div>"
    )


def _height(count: int, tallest: int) -> float:
    return max(1.0, (TALL - 2) * count / tallest)


def _sizes(amounts: Amounts | None) -> Floats:
    if amounts is None:
        return np.zeros(0)
    values = amounts.floats()
    return np.log10(values[values > 0])


def _empty(column: pa.ChunkedArray) -> bool:
    return len(column) > 0 and column.null_count == len(column)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return "" if value is None else short_name(str(value), LONGEST)


def _shown(*parts: Html) -> str:
    return f'<div style="{_LOOK}">{"".join(parts)}</div>'
