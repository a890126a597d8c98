"""Tables for people: what a terminal shows of scores and origins."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from coinhaze.amounts import Ints
from coinhaze.errors import count_words
from coinhaze.formats.money import unit_of
from coinhaze.graph.opening import assumed_in_balances, assumed_words
from coinhaze.measures import Origins, Scores, Summary
from coinhaze.measures.comparators.registry import COMPARATORS
from coinhaze.measures.comparators.side_by_side import correlations
from coinhaze.measures.scores import InformedBits
from coinhaze.measures.summary import AT_LEAST
from coinhaze.observer.chain import reading_words
from coinhaze.report.drawing.flow import short_name
from coinhaze.report.grids import Grid
from coinhaze.units import NOT_KNOWN

ASSUMED = "* with money assumed to have been there before the window: origins says how much"
DIGITS = 10  # that amounts are shown with; files have all of them


def summary_table(summary: Summary) -> Table:
    """Show sizes, bits and steps as the paper's tables do."""
    table = Table(title="Summary", title_justify="left")
    for column in ("", "mean", "median", "variance", "max", "by value"):
        table.add_column(column, justify="left" if not column else "right")
    s = summary
    table.add_row(
        "bits",
        *(_number(v, s.mark) for v in (s.bits_mean, s.bits_median)),
        _number(s.bits_variance),
        *(_number(v, s.mark) for v in (s.bits_max, s.bits_weighted_mean)),
    )
    table.add_row(
        "steps", *(_number(v) for v in (s.steps_mean, s.steps_median, s.steps_variance)), "", ""
    )
    burns = f", {s.burns} burns apart ({_number(s.burns_bits_mean)} bits)" if s.burns else ""
    table.caption = (
        f"{count_words(s.nodes, 'node')}, {count_words(s.edges, 'edge')}; {s.scored:,} scored, "
        f"{s.nulls:,} without an answer{burns}; {s.certainty()} ({s.method}); "
        f"{reading_words(s.as_dict())}"
    )
    table.caption_justify = "left"
    return table


def rows_table(scores: Scores, rows: Ints, identical: list[int], title: str) -> Table:
    """Show some rows of scores, and how many further rows equal each of them."""
    table = Table(title=title, title_justify="left", caption_justify="left")
    table.caption = reading_words(scores.chain.settings)
    table.add_column("node", overflow="fold")
    estimated = scores.bits_error is not None
    graph = scores.chain.graph
    held = None if graph.closing is None else graph.closing.take(scores.nodes[rows]).ints()
    unit = unit_of(graph.ledger)
    assumed = assumed_in_balances(graph, scores.nodes[rows])
    marked = [] if assumed is None else assumed.positive().tolist()
    if any(marked):
        table.caption += f"; {ASSUMED}"
    if held is not None:
        table.add_column("holds", justify="right")
    for column in ("equal", "bits", *(["interval"] if estimated else []), "steps", "sources"):
        table.add_column(column, justify="right")
    table.add_column("likeliest source", overflow="fold")
    table.add_column("share", justify="right")
    if scores.exposure is not None:
        table.add_column("exposure", justify="right")
    names = scores.chain.graph.names.of(scores.nodes[rows]).to_pylist()
    bounds = scores.lower_bound
    for k, (name, more, row) in enumerate(zip(names, identical, rows.tolist(), strict=True)):
        cells: list[RenderableType] = [
            Text(name),
            *([] if held is None else [_held(unit.words(held[k], significant=DIGITS), marked[k])]),
            f"+{more:,}" if more else "",
            _number(scores.bits[row], "" if bounds is None or not bounds[row] else AT_LEAST)
            if not estimated or scores.bits_high[row] - scores.bits_low[row] < 1e-6
            else f"{scores.bits[row]:.2f}",
            *([_ends(scores, row)] if estimated else []),
            "-" if np.isnan(scores.steps[row]) else f"{scores.steps[row]:.2f}",
            *_likeliest(scores, row),
        ]
        if scores.exposure is not None:
            cells.append(f"{scores.exposure[row]:.2%}")
        table.add_row(*cells)
    return table


def _held(amount: str, is_assumed: bool) -> str:
    return f"{amount}*" if is_assumed else amount


def _ends(scores: Scores, row: int) -> str:
    """Say where the bits of a drawn row lie; some are exact."""
    low, high = scores.bits_low[row], scores.bits_high[row]
    return "exact" if high - low < 1e-6 else f"{low:.2f}-{high:.2f}"


def _likeliest(scores: Scores, row: int) -> list[RenderableType]:
    top = int(scores.top[row])
    if top < 0:
        return ["", "", ""]
    name = Text(scores.chain.outcomes[top].as_py())
    count = scores.sources[row]  # not known where there were too many to count
    sources = "-" if np.isnan(count) else f"{int(count):,}"
    return [sources, name, f"{scores.top_probability[row]:.2%}"]


def scores_report(scores: Scores, *, limit: int = 5) -> Group:
    """Show the summary and the coins with most and least haze, identical ones once."""
    rows = scores.order()
    parts: list[RenderableType] = [summary_table(scores.summary())]
    figures = [scores.bits[rows], scores.steps[rows], scores.top[rows].astype(np.float64)]
    if scores.lower_bound is not None:
        figures.append(scores.lower_bound[rows].astype(np.float64))
    like = np.round(np.nan_to_num(np.stack(figures, axis=1), nan=-1.0), 9)
    begins = np.flatnonzero(np.any(np.diff(like, axis=0, prepend=np.nan) != 0, axis=1))
    identical = (np.diff(np.append(begins, len(rows))) - 1).tolist()
    firsts = rows[begins]
    shown = min(limit, len(firsts))
    if shown:
        parts.append(rows_table(scores, firsts[:shown], identical[:shown], f"Most haze ({shown})"))
    rest = min(limit, len(firsts) - shown)
    if rest:
        lowest, same = firsts[-rest:][::-1], identical[-rest:][::-1]
        parts.append(rows_table(scores, lowest, same, f"Least haze ({rest})"))
    graph = scores.chain.graph
    if shown and graph.closing is not None and not unit_of(graph.ledger).is_known:
        parts.append(Text(NOT_KNOWN))
    return Group(*parts)


def scores_latex(scores: Scores, label: str) -> str:
    """Give scores as a LaTeX table, most bits first; nodes without an answer come last."""
    rows = scores.order()
    others = np.setdiff1d(np.arange(len(scores)), rows)
    found = [*scores.take(rows), *scores.take(others)]
    columns = ["node", "bits", "low", "high", "steps", "sources"]
    cells = [
        [
            s.node,
            *(_figure(v) for v in (s.bits, s.bits_low, s.bits_high, s.steps)),
            _whole(s.sources),
        ]
        for s in found
    ]
    return Grid("Scores", columns, cells, notes=[scores.summary().line() + "."]).latex(label)


def _figure(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.4f}"


def _whole(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:,.0f}"


def origins_sentence(origins: Origins) -> str:
    """Describe one coin's bits, their accuracy and how far its money came."""
    count = 2.0**origins.bits
    half = (origins.bits_high - origins.bits_low) / 2
    one = len(origins.outcomes) == 1 and origins.bits_high < 1e-9
    among = "one possible origin" if one else f"as among {count:,.1f} equally likely origins"
    steps = (
        ""
        if np.isnan(origins.steps)
        else f"; {origins.steps:.2f} steps on average, the last into the origin"
    )
    between = f"between {origins.bits_low:.4f} and {origins.bits_high:.4f}"
    proven = f"proven to {half:.0e}" if half <= 1e-6 else f"proven {between}"
    how = reading_words(origins.chain.settings)
    if origins.lower_bound:
        lowest = max(origins.bits_low, 0.0) if half > 1e-6 else origins.bits
        some = "at least one origin" if one else f"at least {among}"
        why = "since coins of unknown value are lumped"
        return f"At least {lowest:.4f} bits, {why}: {some}{steps} ({how})."
    return f"{origins.bits:.4f} bits, {proven}: {among}{steps} ({how})."


def holds_sentence(origins: Origins) -> str:
    """Say what the node holds that the shares are of; nothing where amounts are hidden."""
    balance, graph = origins.balance, origins.chain.graph
    if balance is None:
        return ""
    unit = unit_of(graph.ledger)
    assumed = origins.assumed or 0
    part = assumed_words(balance, assumed, unit.words(assumed))
    more = f" {NOT_KNOWN}" if not unit.is_known else ""
    return f"It holds {unit.words(balance)} at the end of the window{part}.{more}"


def origins_report(
    origins: Origins,
    *,
    limit: int = 10,
    labels: Sequence[str | None] = (),
    in_short: str | None = None,
) -> Group:
    """Show one coin's sources, largest first, the likeliest way from each, and their labels.

    `in_short` is an answer to give before.
    """
    table = Table(title="Origins", title_justify="left", caption_justify="left")
    table.caption = reading_words(origins.chain.settings)
    table.add_column("source", overflow="fold")
    table.add_column("share", justify="right")
    ways = bool(np.any(origins.way_end >= 0))
    if ways:
        table.add_column("likeliest way it came", overflow="fold")
    shown = origins.sources().slice(0, limit).to_pylist()
    for rank, row in enumerate(shown):
        way = origins.way(rank)
        cells = [Text(way_words(way))] if ways else []
        label = labels[rank] if rank < len(labels) else None
        name = row["source"] if label is None else f"{label}: {row['source']}"
        table.add_row(Text(name), f"{row['probability']:.2%}", *cells)
    rest = len(origins.outcomes) - len(shown)
    if rest:
        share = float(np.sum(origins.probability[len(shown) :]))
        table.add_row(Text(f"other, {rest:,} sources"), f"{share:.2%}")
    if origins.missing > 5e-5:
        table.add_row("not followed to its end", f"{origins.missing:.2%}")
    sentence = Text(f"{origins_sentence(origins)} {holds_sentence(origins)}".strip())
    answer = [] if in_short is None else [Text(in_short)]
    return Group(Text(origins.name, style="bold"), *answer, sentence, table)


def way_words(way: Sequence[str]) -> str:
    """Format a way with arrows, omitting the middle of a long one.

    >>> way_words("abcdefghi")
    'a → b → c → (3 more) → g → h → i'
    """
    shown = list(way)
    if len(shown) > 7:
        shown = [*shown[:3], f"({len(shown) - 6} more)", *shown[-3:]]
    return " → ".join(map(short_name, shown))


def _number(value: float, mark: str = "") -> str:
    return "-" if np.isnan(value) else f"{mark}{value:.4f}"


def observers_report(scores: Scores, *, limit: int = 5) -> Group:
    """Show what informed observers lack: all coins, the haziest ones, and what each assumes."""
    summary = Table(title="Observers", title_justify="left")
    for column in ("observer", "assumes", "confidence"):
        summary.add_column(column, overflow="fold")
    for column in ("mean bits", "median", "of 0 bits"):
        summary.add_column(column, justify="right")
    everyone = {"naive": InformedBits.naive(scores), **scores.informed}
    for name, found in everyone.items():
        bits = found.bits[~np.isnan(found.bits)]
        about = found.observer
        summary.add_row(
            name,
            "nothing" if about is None else about.assumes,
            "" if about is None else about.sure(),
            *((_number(float(f(bits))) for f in (np.mean, np.median)) if len(bits) else "--"),
            f"{np.mean(bits < 1e-9):.1%}" if len(bits) else "-",
        )
    table = Table(title="Most haze, and what is left of it", title_justify="left")
    table.add_column("node", overflow="fold")
    for name in everyone:
        table.add_column(name, justify="right")
    rows = scores.order()[:limit]
    names = scores.chain.graph.names.of(scores.nodes[rows]).to_pylist()
    for name, row in zip(names, rows.tolist(), strict=True):
        table.add_row(Text(name), *(_number(found.bits[row]) for found in everyone.values()))
    return Group(summary, table)


def comparison_report(scores: Scores, *, limit: int = 5) -> Group:
    """Show measures of the haziest and clearest coins, their definitions and correlations."""
    return Group(_measures(scores, limit), _correlations(scores), *_legend(scores))


def _measures(scores: Scores, limit: int) -> Table:
    table = Table(title="Measures side by side", title_justify="left")
    table.add_column("node", overflow="fold")
    for name in ("bits", *scores.comparators):
        table.add_column(name, justify="right")
    rows = scores.order()
    shown = np.concatenate([rows[:limit], rows[limit:][-limit:]])
    names = scores.chain.graph.names.of(scores.nodes[shown]).to_pylist()
    for name, row in zip(names, shown.tolist(), strict=True):
        values = [column[row] for column in scores.comparators.values()]
        table.add_row(Text(name), f"{scores.bits[row]:.4f}", *(_measure(float(v)) for v in values))
    return table


def _correlations(scores: Scores) -> Table:
    table = Table(title="Correlations", title_justify="left")
    for column in ("measure", "with"):
        table.add_column(column)
    for column in ("coins", "nulls", "Pearson", "Spearman"):
        table.add_column(column, justify="right")
    for row in correlations(scores).to_pylist():
        figures = (row["pearson"], row["spearman"])
        table.add_row(
            row["measure"],
            row["with"],
            f"{row['n']:,}",
            f"{row['nulls']:,}",
            *("-" if f is None else f"{f:.4f}" for f in figures),
        )
    return table


def _legend(scores: Scores) -> list[RenderableType]:
    return [Text(f"{name}: {COMPARATORS[name].words}") for name in scores.comparators]


def _measure(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4g}" if abs(value) < 1e6 else f"{value:.3e}"
