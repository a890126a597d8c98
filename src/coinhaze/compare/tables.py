"""Rows of a comparison -> tables: text, CSV, LaTeX, Markdown."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from coinhaze.compare.rows import PRINTED, PUBLISHED, ComparisonRow, Published, rows_table
from coinhaze.measures.summary import AT_LEAST, Summary
from coinhaze.observer.chain import reading_words
from coinhaze.report.files import write_table, write_text
from coinhaze.report.grids import Grid
from coinhaze.units import NOT_KNOWN

WIDTH = 110  # of the text files, in letters


_HEAD = (
    "ledger", "|V|", "|E|", "bits", "median", "variance", "max", "steps", "median", "variance",
)  # fmt: skip


def comparison_grids(rows: Sequence[ComparisonRow], time: str) -> list[Grid]:
    """Return the paper's table, and a second one with what it left out."""
    return [_paper_grid(rows, time), _more_grid(rows, time)]


def _paper_grid(rows: Sequence[ComparisonRow], time: str) -> Grid:
    lines = [
        (
            row.label,
            thousands(row.nodes),
            thousands(row.edges),
            *(number(bits, row.mark) for bits in (row.bits_mean, row.bits_median)),
            number(row.bits_variance),
            number(row.bits_max, row.mark),
            *map(number, (row.steps_mean, row.steps_median, row.steps_variance)),
        )
        for row in rows
    ]
    notes = [
        "Bits and steps: means over sinks; variances are the population's.",
        f"Data: {_listing(rows, 'data')}.",
        f"Rules: {_listing(rows, 'rules')}.",
    ]
    read = [row for row in rows if row.completeness]
    notes += [f"{_listing(read, 'completeness')}."] if read else []
    notes += [note for row in rows if not row.variant and (note := _left_out(row))]
    notes += lower_bounds_note(rows)
    title = f"{time.capitalize()} graphs"
    return Grid(title, _HEAD, lines, notes, _remarks(rows))


def summary_latex(summary: Summary, name: str, label: str) -> str:
    """Give a summary as the paper's table has it, in LaTeX; below it the paper's own row.

    That is there where `name` is one of its weeks, such as dai-week, read in the same time.
    """
    found = {
        field: getattr(summary, field) for field in Published.__annotations__ if field != "sinks"
    }
    rows = [(name or "ledger", Published(**found), summary.mark)]
    printed = PUBLISHED.get((name, summary.time or "temporal"))
    if printed is not None:
        rows.append((f"{name}, {PRINTED}", printed, ""))
    lines = [
        (
            words,
            f"{row.nodes:,}",
            f"{row.edges:,}",
            *(number(bits, mark) for bits in (row.bits_mean, row.bits_median)),
            number(row.bits_variance),
            number(row.bits_max, mark),
            *map(number, (row.steps_mean, row.steps_median, row.steps_variance)),
        )
        for words, row, mark in rows
    ]
    notes = ["Bits and steps: means over sinks; variances are the population's."]
    notes.append(f"{summary.certainty()} ({summary.method}); {reading_words(summary.as_dict())}.")
    return Grid("Summary", _HEAD, lines, notes).latex(label)


def _more_grid(rows: Sequence[ComparisonRow], time: str) -> Grid:
    head = ["ledger", "sinks", "5 %", "25 %", "75 %", "95 %", "by value", "0 bits"]
    exposed = any(not math.isnan(row.exposure_mean) for row in rows)
    lines = []
    for row in rows:
        if row.method == PRINTED:
            continue
        cells = [
            row.label,
            f"{row.sinks:,}",
            *(
                number(bits, row.mark)
                for bits in (row.bits_05, row.bits_25, row.bits_75, row.bits_95)
            ),
            number(row.bits_by_value, row.mark),
            share(row.one_origin),
            row.known,
        ]
        if exposed:
            cells += [share(row.exposure_mean), share(row.exposure_by_value)]
        lines.append(cells)
    notes = [
        "Quantiles of bits over sinks; mean by value held; share of sinks proven to have one "
        "origin; how well the mean is known: exact, proven bounds, or bounds that miss with a "
        "stated probability and its standard error (s.e.) measured over independent draws.",
        f"Method: {_listing(rows, 'method')}.",
    ]
    holding = [row for row in rows if row.held]
    notes += [f"Held by these sinks: {_listing(holding, 'held')} in all."] if holding else []
    notes += [NOT_KNOWN] if any(row.held[-1].isdigit() for row in holding) else []
    notes += lower_bounds_note(rows)
    head += ["mean known", *(["exposure", "by value"] if exposed else [])]
    return Grid(f"{time.capitalize()} graphs: spread and certainty", head, lines, notes)


def _listing(rows: Sequence[ComparisonRow], what: str) -> str:
    """List something about every ledger, once for those that have it in common."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if not row.variant:
            found.setdefault(getattr(row, what), []).append(row.ledger)
    return "; ".join(f"{', '.join(names)}: {words}" for words, names in found.items())


def lower_bounds_note(rows: Sequence[ComparisonRow]) -> list[str]:
    """Explain the sign of lower bounds, with how many sinks of which ledgers have them."""
    counts = [
        f"{row.lower_bounds:,} of {row.sinks:,} sinks of {row.ledger}"
        for row in rows
        if row.lower_bounds and not row.variant
    ]
    if not counts:
        return []
    return [
        f"{AT_LEAST}: a lower bound. Bits of {', '.join(counts)} are lower bounds: coins of "
        "unknown value that were spent together count as one origin. Variances are those of the "
        "bounds, and none of these sinks counts as proven to have one origin."
    ]


def _remarks(rows: Sequence[ComparisonRow]) -> list[str]:
    """Return every note, with the names of the ledgers it is about."""
    found: dict[str, list[str]] = {}
    for row in rows:
        for note in row.notes if not row.variant else ():
            found.setdefault(note, []).append(row.ledger)
    return [f"{', '.join(names)}: {note}" for note, names in found.items()]


def _plain(grids: Sequence[Grid]) -> str:
    text = io.StringIO()
    console = Console(width=WIDTH, file=text, color_system=None, force_terminal=False)
    for grid in grids:
        console.print(grid.rich())
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def _left_out(row: ComparisonRow) -> str:
    """Describe how many sinks are in no figure."""
    parts = [f"{row.nulls:,} sinks without an answer"] if row.nulls else []
    parts += [f"{row.burns:,} burns"] if row.burns else []
    return f"{row.ledger}: {' and '.join(parts)} left out." if parts else ""


def write_tables(
    rows: Sequence[ComparisonRow], time: str, folder: Path, about: dict[str, object]
) -> list[Path]:
    """Write the tables of one reading of time in every format; return the paths written."""
    grids = comparison_grids(rows, time)
    texts = {
        "txt": _plain(grids),
        "md": "\n".join(grid.markdown() for grid in grids),
        "tex": "\n".join(
            grid.latex(f"tab:{time}{suffix}")
            for grid, suffix in zip(grids, ("", "-spread"), strict=True)
        ),
    }
    own_rows = [row for row in rows if not row.variant]
    marks = {
        "notes": {row.ledger: list(row.notes) for row in own_rows if row.notes},
        "lower_bounds": {row.ledger: row.lower_bounds for row in own_rows if row.lower_bounds},
    }
    written = write_table(rows_table(rows), folder / f"{time}.csv", about | marks)
    for suffix, text in texts.items():
        written.append(write_text(folder / f"{time}.{suffix}", text))
    return written


def thousands(count: int) -> str:
    """Format a size as the paper does: in thousands where it is large.

    >>> thousands(8_598_499), thousands(9_500)
    ('8,598k', '9,500')
    """
    return f"{count / 1000:,.0f}k" if count >= 100_000 else f"{count:,}"


def number(value: float, mark: str = "") -> str:
    """Format a figure with two decimals, or none where it is large.

    >>> number(3.957), number(1234567.8), number(math.nan)
    ('3.96', '1234568', '-')
    """
    if math.isnan(value):
        return "-"
    return f"{mark}{value:.2f}" if abs(value) < 100_000 else f"{mark}{value:.0f}"


def share(value: float) -> str:
    """Format a share in percent.

    >>> share(0.123), share(math.nan)
    ('12.3 %', '-')
    """
    return "-" if math.isnan(value) else f"{100 * value:.1f} %"
