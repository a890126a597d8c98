"""How bits fall as an observer learns more: a table and a plot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.table import Table
from rich.text import Text

from coinhaze.report.figures import BLUE, GREY, ORANGE, new_axes, pyplot


def falls_table(falls: pa.Table, *, title: str, caption: str) -> Table:
    """Show bits after each number of links, best-first and at random."""
    table = Table(title=title, title_justify="left", caption=caption, caption_justify="left")
    for column in ("links", "best-first", "at random", "lowest", "highest"):
        table.add_column(column, justify="right")
    table.add_column("learnt next, best-first", overflow="fold")
    for row in falls.to_pylist():
        figures = ("best_first_bits", "random_bits", "random_bits_low", "random_bits_high")
        table.add_row(
            str(row["links"]), *(f"{row[f]:.4f}" for f in figures), Text(row["payment"] or "")
        )
    return table


def plot_falls(falls: pa.Table, *, ax: Any = None) -> Any:
    """Plot bits against links learnt: best-first, and the range of random orders."""
    ax = ax or new_axes()
    links = falls["links"].to_numpy()
    low, high = falls["random_bits_low"].to_numpy(), falls["random_bits_high"].to_numpy()
    ax.fill_between(links, low, high, color=BLUE, alpha=0.15, linewidth=0)
    for column, colour, words in (
        ("random_bits", BLUE, "at random"),
        ("best_first_bits", ORANGE, "best-first"),
    ):
        bits = falls[column].to_numpy()
        ax.plot(links, bits, color=colour, marker="o", markersize=3, linewidth=1.2)
        ax.annotate(
            words,
            (links[-1], bits[-1]),
            xytext=(5, 0),
            textcoords="offset points",
            color=colour,
            verticalalignment="center",
        )
    ax.axhline(falls["best_first_bits"][0].as_py(), color=GREY, linestyle="--", linewidth=1)
    ax.set_xlabel("links the observer learnt")
    ax.set_ylabel("untraceability (bits)")
    ax.set_ylim(bottom=0)
    ax.spines[["top", "right"]].set_visible(False)
    ax.margins(x=0.12)
    return ax


def save_falls(falls: pa.Table, path: Path, *, title: str) -> None:
    """Save the plot as an image."""
    ax = plot_falls(falls)
    ax.set_title(title, fontsize=11)
    ax.figure.savefig(path, dpi=150)
    pyplot().close(ax.figure)
