"""Bits along walks forward: a table for a terminal, and plots of one or several ledgers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from rich.table import Table

from coinhaze.amounts import Floats
from coinhaze.measures.summary import AT_LEAST
from coinhaze.report.figures import (
    SOFT,
    Line,
    axes_or_new,
    drawing,
    legend_below,
    line_of,
    pyplot,
    save_picture,
)
from coinhaze.report.plots import BITS, Looks, looks_of

PAYMENTS = "payments since it was first seen"
FEW = 0.01  # the share of walks below which results are in tables but not plotted


def growth_table(table: pa.Table, *, title: str, caption: str) -> Table:
    """Show bits by number of payments."""
    shown = Table(title=title, title_justify="left", caption=caption, caption_justify="left")
    columns = ("payments", "walks", "bits", "5 %", "25 %", "median", "75 %", "95 %", "held")
    for column in columns:
        shown.add_column(column, justify="right")
    figures = ("bits_mean", "bits_05", "bits_25", "bits_50", "bits_75", "bits_95", "bits_held")
    for row in table.to_pylist():
        cells = ["-" if row[f] is None else f"{row[f]:.3f}" for f in figures]
        shown.add_row(str(row["payments"]), f"{row['share']:.1%}", *cells)
    return shown


def plot_growth(table: pa.Table, *, ax: Any = None, line: Line | None = None) -> Any:
    """Plot mean bits by number of payments, with bands for half and nine tenths of the walks."""
    ax = axes_or_new(ax)
    look = line or line_of(0)
    made, figures = _drawn(table)
    for low, high, alpha in (("bits_05", "bits_95", 0.12), ("bits_25", "bits_75", 0.22)):
        ax.fill_between(
            made, figures(low), figures(high), color=look.colour, alpha=alpha, linewidth=0
        )
    ax.plot(made, figures("bits_mean"), color=look.colour, marker=look.marker, markersize=3,
            label="mean of walks still going; bands: half and nine tenths of them")  # fmt: skip
    ax.plot(made, figures("bits_held"), color=SOFT, linestyle=(0, (4, 1.5)), linewidth=1,
            label="mean of all walks, the others where they ended")  # fmt: skip
    _label(ax)
    return ax


def plot_growths(
    tables: Mapping[str, pa.Table], *, ax: Any = None, looks: Looks | None = None
) -> Any:
    """Plot mean bits by number of payments, one line per ledger."""
    ax = axes_or_new(ax)
    known = looks or looks_of(list(tables))
    for name, table in tables.items():
        label, look = known[name]
        if about_growth(table).get("lower_bounds"):
            label = f"{label} ({AT_LEAST})"
        made, figures = _drawn(table)
        ax.plot(made, figures("bits_mean"), color=look.colour, linestyle=look.dash,
                marker=look.marker, markersize=2.5, label=label)  # fmt: skip
    _label(ax)
    return ax


def about_growth(table: pa.Table) -> dict[str, Any]:
    """Return a table's own metadata: which walks, how bits were found, lower bounds."""
    about = (table.schema.metadata or {}).get(b"coinhaze")
    return {} if about is None else dict(json.loads(about))


def save_growth(table: pa.Table, path: Path, *, title: str) -> None:
    """Save the plot of one ledger as an image: bits above, walks still going below."""
    with drawing() as plt:
        figure, (above, below) = plt.subplots(
            2, 1, figsize=(4.6, 4.0), layout="constrained", sharex=True, height_ratios=(4, 1)
        )
        plot_growth(table, ax=above)
        above.set_title(title, fontsize=8.5)
        above.set_xlabel("")
        made = table["payments"].to_numpy()
        plot_going(table, ax=below)
        handles, labels = above.get_legend_handles_labels()
        above.get_legend().remove()
        figure.legend(handles, labels, loc="outside lower left", ncols=1)
        below.set_xlim(-0.02 * len(made), _drawn(table)[0][-1] * 1.02)
    save_picture(figure, path)
    pyplot().close(figure)


def plot_going(table: pa.Table, *, ax: Any = None) -> Any:
    """Plot the share of walks that made each number of payments."""
    ax = axes_or_new(ax)
    made, figures = _drawn(table)
    ax.fill_between(
        made, 0, 100 * figures("share"), color=SOFT, alpha=0.35, linewidth=0, step="mid"
    )
    ax.set_ylim(0, 100)
    ax.set_ylabel("going (%)")
    ax.set_xlabel(PAYMENTS)
    return ax


def _drawn(table: pa.Table) -> tuple[Floats, Any]:
    """Return the lengths that enough walks reached, and a function that selects their figures."""
    share = table["share"].to_numpy()
    enough = int(np.argmax(share < FEW)) if np.any(share < FEW) else len(share)
    made = table["payments"].to_numpy()[:enough]

    def figures(column: str) -> Floats:
        values = table[column].to_numpy(zero_copy_only=False)[:enough]
        return np.asarray(values, dtype=np.float64)

    return made, figures


def _label(ax: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.set_xlabel(PAYMENTS)
    ax.set_ylabel(BITS)
    ax.set_ylim(bottom=0)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    legend_below(ax)
