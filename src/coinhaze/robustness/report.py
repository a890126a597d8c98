"""How bits fall as an observer learns more, and how choices move the table: tables and plots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from rich.table import Table
from rich.text import Text

from coinhaze.report.figures import (
    BLUE,
    COLOURS,
    GREY,
    ORANGE,
    SOFT,
    axes_or_new,
    drawing,
    new_axes,
    pyplot,
    save_picture,
)

MIN_RANGE = 0.005  # bits: the minimum range of the plot


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


def sensitivity_table(table: pa.Table) -> Table:
    """Show the row of the table under each choice, and by how much its mean moves."""
    shown = Table(title="What moves the table", title_justify="left")
    shown.add_column("choice")
    shown.add_column("what", overflow="fold")
    for column in ("scored", "mean", "moved", "median", "by value", "steps"):
        shown.add_column(column, justify="right")
    for row in table.to_pylist():
        if row["bits_mean"] is None:
            why = row.get("refused") or "no sink has an answer"
            shown.add_row(row["choice"], f"{row['what']}: {why}", *[""] * 6)
            continue
        figures = [row[name] for name in ("bits_median", "bits_weighted_mean", "steps_mean")]
        moved = row.get("bits_mean_moved")
        shown.add_row(
            row["choice"],
            row["what"],
            f"{row['scored']:,}",
            f"{row['bits_mean']:.3f}",
            "" if moved is None else f"{moved:+.3f}",
            *("-" if value is None else f"{value:.3f}" for value in figures),
        )
    return shown


def plot_sensitivity(table: pa.Table, *, ax: Any = None) -> Any:
    """Plot by how many bits each choice moves the mean, one bar each, in the table's order."""
    ax = axes_or_new(ax)
    rows = [row for row in table.to_pylist() if row.get("bits_mean_moved") is not None]
    moved = np.array([row["bits_mean_moved"] for row in rows], dtype=np.float64)
    place = np.arange(len(rows))[::-1]
    colours = [COLOURS[0] if value >= 0 else COLOURS[1] for value in moved]
    ax.barh(place, moved, color=colours, height=0.7)
    ax.axvline(0, color=SOFT, linewidth=0.8)
    widest = float(np.abs(moved).max(initial=MIN_RANGE))
    for at, value in zip(place.tolist(), moved.tolist(), strict=True):
        # The figure is written beyond the end of its bar.
        side = -1 if value < 0 else 1
        text = f"{round(value, 2) + 0.0:+.2f}"  # no minus before a zero
        ax.text(value + side * 0.03 * widest, at, text, va="center", fontsize=6.5,
                ha="right" if side < 0 else "left")  # fmt: skip
    ax.set_yticks(place, [f"{row['choice']}: {row['what']}" for row in rows])
    ax.set_ylim(-0.6, len(rows) - 0.4)
    ax.set_xlim(*_limits(moved, widest))
    ax.set_xlabel("change of the mean (bits)")
    return ax


def _limits(moved: np.typing.NDArray[np.float64], widest: float) -> tuple[float, float]:
    """Return axis limits that leave room for the figures beyond the bars."""
    room = 0.25 * widest
    return float(moved.min(initial=0.0)) - room, float(moved.max(initial=0.0)) + room


def save_sensitivity(table: pa.Table, path: Path, *, title: str) -> None:
    """Save the plot as an image; the title gives the result without the choices."""
    with drawing() as plt:
        rows = len(table)
        figure, ax = plt.subplots(figsize=(4.6, 0.8 + 0.2 * rows), layout="constrained")
        plot_sensitivity(table, ax=ax)
        base = table.slice(0, 1).to_pylist()[0]
        ax.set_title(f"{title}: {base['bits_mean']:.2f} bits on average", fontsize=8)
    save_picture(figure, path)
    pyplot().close(figure)
