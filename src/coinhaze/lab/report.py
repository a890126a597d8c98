"""Lab results as tables for a terminal, files, figures and a page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from coinhaze import __version__
from coinhaze.amounts import Floats
from coinhaze.errors import InputError
from coinhaze.lab.lab import COSTS, ParameterScan
from coinhaze.report.figures import (
    COLOURS,
    COLUMN,
    FIGURE_STYLE,
    LINE,
    SOFT,
    Figure,
    axes_or_new,
    drawing,
    inline_figure,
    line_of,
    save_figure,
)
from coinhaze.report.files import write_table, write_text
from coinhaze.report.grids import Grid
from coinhaze.report.page import page, section, table

GAINED = "bits gained"


def plot_gains(table: pa.Table, *, ax: Any = None) -> Any:
    """Plot bits gained by the parameter's value, with bands: adopters, and other people."""
    ax = axes_or_new(ax)
    value = _column(table, "value")
    for number, (what, words) in enumerate((("gained", "adopters"), ("others_gained", "others"))):
        mean, low, high = (_column(table, f"{what}_{end}") for end in ("bits", "low", "high"))
        if np.isnan(mean).all():
            continue
        look = line_of(number)
        ax.fill_between(value, low, high, color=look.colour, alpha=0.22, linewidth=0)
        ax.plot(value, mean, color=look.colour, linestyle=look.dash, marker=look.marker,
                markersize=3, label=words)  # fmt: skip
    ax.axhline(0, color=SOFT, linewidth=0.6)
    _scale(ax, value)
    ax.set_xlabel(_folded(table["parameter"][0].as_py(), 42))
    ax.set_ylabel(GAINED)
    if len(ax.get_legend_handles_labels()[0]) > 1:
        ax.legend(loc="best")
    return ax


def plot_against(table: pa.Table, cost: str, *, ax: Any = None) -> Any:
    """Plot bits gained against one cost, value by value, with bands."""
    ax = axes_or_new(ax)
    x = _column(table, cost) * COSTS[cost].times
    mean, low, high = (_column(table, f"gained_{end}") for end in ("bits", "low", "high"))
    look = line_of(0)
    bars = np.nan_to_num(np.stack([mean - low, high - mean]))
    ax.errorbar(x, mean, bars, color=look.colour, marker=look.marker, markersize=3,
                linewidth=0.9, elinewidth=0.9, capsize=1.5)  # fmt: skip
    ax.axhline(0, color=SOFT, linewidth=0.6)
    for at, value in zip(zip(x, mean, strict=True), _column(table, "value"), strict=True):
        if at != (0, 0):
            ax.annotate(f"{value:g}", at, xytext=(4, -6), textcoords="offset points",
                        fontsize=6, color=SOFT)  # fmt: skip
    ax.margins(x=0.08)
    ax.set_xlabel(COSTS[cost].words)
    ax.set_ylabel(GAINED)
    return ax


def save_scan(
    table: pa.Table, folder: Path, name: str, *, title: str, says: str, measured: str
) -> Figure:
    """Save one technology's figure: its parameter, and each cost it has."""
    costs = [c for c in COSTS if np.abs(_column(table, c)).max() >= COSTS[c].threshold]
    high, wide = [(1, 1), (1, 2), (2, 2), (2, 2)][len(costs)]
    with drawing() as plt:
        figure, axes = plt.subplots(
            high, wide, figsize=(COLUMN * wide, 0.2 + 2.2 * high), layout="constrained",
            sharey=True, squeeze=False,
        )  # fmt: skip
        places = axes.ravel().tolist()
        plot_gains(table, ax=places[0])
        for ax, cost in zip(places[1:], costs, strict=False):
            plot_against(table, cost, ax=ax)
        for ax in places[1 + len(costs) :]:
            ax.set_axis_off()
        for ax in axes[:, 1:].ravel():
            ax.set_ylabel("")
        figure.suptitle(title, fontsize=9, x=0.01, horizontalalignment="left")
        paths = save_figure(figure, folder, name)
    return Figure(name=name, title=title, says=says, measured=measured, paths=paths)


def plot_technologies(table: pa.Table, axes: Any) -> None:
    """Plot every technology on its own line: bits gained with bands, then each cost."""
    order = np.argsort(_column(table, "gained_bits"), kind="stable")
    rows = np.arange(len(order))
    gained, low, high = (_column(table, f"gained_{end}")[order] for end in ("bits", "low", "high"))
    # Broad and pale under a small mark: narrow bands would disappear behind a large one.
    axes[0].hlines(rows, low, high, color=COLOURS[0], alpha=0.4, linewidth=6)
    axes[0].plot(gained, rows, "o", markersize=2.2, color=COLOURS[0])
    axes[0].axvline(0, color=SOFT, linewidth=0.6)
    axes[0].set_xlabel(f"{GAINED}\nby adopters")
    axes[0].set_yticks(rows, [technology_label(table, k) for k in order.tolist()])
    for ax, (name, cost) in zip(axes[1:], COSTS.items(), strict=True):
        paid = _column(table, name)[order] * cost.times
        ax.barh(rows, paid, height=0.55, color=COLOURS[1], alpha=0.8, linewidth=0)
        ax.axvline(0, color=SOFT, linewidth=0.6)
        ax.set_xlabel(_folded(cost.words, 18))
    for ax in axes:
        ax.set_ylim(-0.7, len(rows) - 0.3)
        ax.grid(axis="y", color=LINE, linewidth=0.5)
        ax.set_axisbelow(True)


def plot_gain_for_fees(table: pa.Table, *, ax: Any = None) -> Any:
    """Plot bits gained against fees, one mark per technology, as its strongest observer sees it."""
    ax = axes_or_new(ax)
    gained = _column(table, "gained_bits")
    fees = _column(table, "fees") * COSTS["fees"].times
    names = table["technology"].to_pylist()
    sharpest = {name: k for k, name in sorted(enumerate(names), key=lambda at: -gained[at[0]])}
    rows = np.array(sorted(sharpest.values()))
    ax.axhline(0, color=SOFT, linewidth=0.6)
    low, high = (_column(table, f"gained_{end}")[rows] for end in ("low", "high"))
    # Without a band, as after one seed, only the mark is drawn.
    reach = np.where(np.isnan(low), gained[rows], np.stack([low, high]))
    ax.vlines(fees[rows], *reach, color=COLOURS[0], alpha=0.4, linewidth=6)
    ax.plot(fees[rows], gained[rows], "o", markersize=2.2, color=COLOURS[0])
    # What costs nothing is placed at 0, everything else on a logarithmic scale.
    ax.set_xscale("symlog", linthresh=0.01, linscale=0.6)
    ax.set_xlim(-0.003, max(0.02, float(fees.max(initial=0.0)) * 4))
    ax.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    ax.set_xlabel(COSTS["fees"].words)
    ax.set_ylabel(GAINED)
    ax.margins(y=0.1)
    _name_marks(ax, [names[k] for k in rows.tolist()], fees[rows], gained[rows], reach)
    return ax


def _name_marks(ax: Any, names: list[str], x: Floats, y: Floats, reach: Floats) -> None:
    """Write a name beside each mark, where it hides no mark, no band and no other name."""
    figure = ax.figure
    figure.canvas.draw()  # mark positions are known only after drawing
    marks = ax.transData.transform(np.column_stack([x, y]))
    ends = [ax.transData.transform(np.column_stack([x, end]))[:, 1] for end in reach]
    point = figure.dpi / 72
    pad = 3 * point
    taken = [
        (mx - pad, min(low, my - pad), mx + pad, max(high, my + pad))
        for (mx, my), low, high in zip(marks, *ends, strict=True)
    ]
    zero, frame = ax.transData.transform((0, 0))[1], ax.bbox
    taken += [
        (frame.x0, zero - point, frame.x1, zero + point),
        (-np.inf, -np.inf, frame.x0, np.inf),
    ]
    for name, (mx, my), at in zip(names, marks, zip(x, y, strict=True), strict=True):
        width, height = len(name) * 4.0 * point, 8 * point
        for dx, dy in _PLACES:
            left = mx + dx * point - (width if dx < 0 else 0)
            low = my + dy * point - height / 2
            box = (left, low, left + width, low + height)
            if not any(_meet(box, other) for other in taken):
                break
        taken.append(box)
        ax.annotate(name, at, xytext=(dx, dy), textcoords="offset points", fontsize=6.5,
                    verticalalignment="center",
                    horizontalalignment="right" if dx < 0 else "left")  # fmt: skip


# Possible positions of a name, in points from its mark, the best first.
_PLACES = [
    (side * 6, up * sign)
    for up in (0, 7, 11, 15, 20, 26, 32, 38)
    for sign in (1, -1)
    for side in (1, -1)
]


def _meet(one: tuple[float, ...], two: tuple[float, ...]) -> bool:
    return one[0] < two[2] and two[0] < one[2] and one[1] < two[3] and two[1] < one[3]


def save_technologies(
    table: pa.Table, folder: Path, name: str, *, title: str, says: str, measured: str
) -> Figure:
    """Save the figure of all technologies: gains beside each cost, and against fees."""
    with drawing() as plt:
        rows = 0.21 * len(table)
        figure = plt.figure(figsize=(6.8, rows + 3.9), layout="constrained")
        above, below = figure.subfigures(2, 1, height_ratios=(rows + 0.9, 3.0))
        axes = above.subplots(1, 4, sharey=True, width_ratios=(2.2, 1, 1, 1))
        plot_technologies(table, axes)
        plot_gain_for_fees(table, ax=below.subplots())
        figure.suptitle(title, fontsize=9, x=0.01, horizontalalignment="left")
        paths = save_figure(figure, folder, name)
    return Figure(name=name, title=title, says=says, measured=measured, paths=paths)


def technology_label(table: pa.Table, row: int) -> str:
    """Return the name of a technology, with its observer where it has several."""
    names = table["technology"].to_pylist()
    name, observer = names[row], table["observer"][row].as_py()
    return f"{name} ({observer})" if names.count(name) > 1 else str(name)


def _scale(ax: Any, value: Floats) -> None:
    """Use a logarithmic scale where values double."""
    if len(value) > 2 and value.min() > 0 and value.max() / value.min() >= 16:
        ax.set_xscale("log", base=2)
        ax.set_xticks(value, [f"{v:g}" for v in value])
        ax.minorticks_off()


def _folded(words: str, limit: int) -> str:
    """Break a long label in two."""
    if len(words) <= limit:
        return words
    middle = min(
        (k for k, c in enumerate(words) if c == " "), key=lambda k: abs(k - len(words) // 2)
    )
    return f"{words[:middle]}\n{words[middle + 1 :]}"


def _column(table: pa.Table, name: str) -> Floats:
    return np.asarray(table[name].to_numpy(zero_copy_only=False), dtype=np.float64)


MEASURED = (
    "bits gained: the mean, over people who adopt, of their money's bits with the technology less "
    "its bits without, in the same economy"
)


def lab_table(scans: Sequence[ParameterScan]) -> pa.Table:
    """Return all results in one table, one row per technology, observer and value."""
    return pa.concat_tables([scan.to_arrow() for scan in scans])


def lab_grids(scans: Sequence[ParameterScan]) -> tuple[Grid, Grid]:
    """Return the tables of bits and of their costs."""
    found = lab_table(scans)
    rows = found.to_pylist()
    one = len(scans) == 1
    names = [
        f"{row['value']:g}" if one else f"{technology_label(found, k)}, {row['value']:g}"
        for k, row in enumerate(rows)
    ]
    first = scans[0]
    head = first.technology.parameter if one else "technology, value"
    bits = [
        (name, _number(r["bits_without"]), _number(r["bits"]), _with_band(r, "gained"),
         _with_band(r, "others_gained"))
        for name, r in zip(names, rows, strict=True)
    ]  # fmt: skip
    costs = [
        (name, f"{r['fees']:.3%}", _number(r["transactions"]), _number(r["waiting"], 1),
         *(_gain_per(r, cost, band=one) for cost in COSTS))
        for name, r in zip(names, rows, strict=True)
    ]  # fmt: skip
    title = f"{first.technology.name} (observer: {first.observer})" if one else "all technologies"
    return (
        Grid(f"Bits: {title}", (head, "without", "with", "gained", "others gain"), bits,
             (conditions(first),)),
        Grid("What they cost, and bits gained for each unit of it",
             (head, "fees", "more tx", "hours", "per 1 % fees", "per tx", "per hour"), costs),
    )  # fmt: skip


def conditions(scan: ParameterScan) -> str:
    """Describe what means and bands are taken over."""
    n, first, last = len(scan.seeds), scan.seeds[0], scan.seeds[-1]
    seeds = f"seeds {first} to {last}" if n > 1 else f"seed {first}"
    band = f"± {scan.level:.0%} band (t, paired by seed)" if n > 1 else "one seed has no band"
    return f"{scan.people} people, {scan.payments} payments, {seeds}; {band}"


def lab_json(scans: Sequence[ParameterScan], provenance: dict[str, object]) -> str:
    """Return all results as JSON text; null where there is no answer."""
    document = {
        "provenance": provenance,
        "settings": [scan.settings() for scan in scans],
        "points": lab_table(scans).to_pylist(),
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def lab_provenance(scans: Sequence[ParameterScan], command: str) -> dict[str, object]:
    """Return the provenance of these results, identical for identical commands."""
    return {
        "software": f"coinhaze {__version__}",
        "command": command,
        "settings": [scan.settings() for scan in scans],
        "method": "exact scores of everything people hold",
        "notes": list(dict.fromkeys(note for scan in scans for note in scan.notes)),
    }


def write_lab(
    scans: Sequence[ParameterScan], folder: Path, provenance: dict[str, object]
) -> list[Path]:
    """Write tables, figures and a page to a folder; return the paths written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror}") from None
    written = write_table(lab_table(scans), folder / "lab.csv", provenance)
    trials = pa.concat_tables([scan.trials() for scan in scans])
    written += write_table(trials, folder / "trials.csv", provenance)
    figure = save_lab(scans, folder)
    written += figure.paths
    written.append(write_text(folder / "lab.json", lab_json(scans, provenance)))
    written.append(write_text(folder / "lab.html", lab_page(scans, figure, provenance)))
    return written


def save_lab(scans: Sequence[ParameterScan], folder: Path, name: str = "lab") -> Figure:
    """Save a scan, or all technologies side by side, as PNG, SVG and PDF."""
    found, first = lab_table(scans), scans[0]
    words = {"says": f"{MEASURED[0].upper()}{MEASURED[1:]}.", "measured": f"{conditions(first)}."}
    if len(scans) > 1:
        title = "Bits that privacy technologies gain, and what they cost"
        return save_technologies(found, folder, name, title=title, **words)
    title = f"{first.technology.name} (observer: {first.observer})"
    return save_scan(found, folder, name, title=title, **words)


def lab_page(scans: Sequence[ParameterScan], figure: Figure, provenance: dict[str, object]) -> str:
    """Return the results as a single self-contained page."""
    first = scans[0]
    one = len(scans) == 1
    title = f"Privacy lab: {first.technology.name}" if one else "Privacy lab: all technologies"
    parts: list[object] = [
        f"The same payments with and without; {MEASURED}. {conditions(first)}.",
        inline_figure(figure),
    ]
    for grid in lab_grids(scans):
        right = range(1, len(grid.columns))
        parts.append(section(grid.title, table(grid.columns, grid.rows, right=right)))
    rows = [
        (
            s.technology.name,
            s.technology.says,
            f"{s.observer}: {s.technology.observers[s.observer]}",
        )
        for s in scans
    ]
    parts.append(section("What is modelled", table(("technology", "people", "the observer"), rows)))
    about = [(k, json.dumps(v)) for k, v in provenance.items() if k != "settings"]
    parts.append(section("What made this", table(("", ""), about)))
    return page(title, parts, style=FIGURE_STYLE, pictures=True)


def _number(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _with_band(row: dict[str, float | None], name: str) -> str:
    mean, low, high = (row[f"{name}_{end}"] for end in ("bits", "low", "high"))
    if mean is None:
        return "-"
    return f"{mean:.2f}" if low is None or high is None else f"{mean:.2f} ± {(high - low) / 2:.2f}"


def _gain_per(row: dict[str, float | None], name: str, *, band: bool) -> str:
    """Format bits gained per unit of cost, with its band, unless the cost is shown as 0."""
    cost, paid = COSTS[name], row[name]
    mean, low, high = (row[f"per_{name}_{end}"] for end in ("bits", "low", "high"))
    if mean is None or paid is None or paid < cost.threshold:
        return "-"
    mean_text = _three_digits(mean / cost.times)
    if not band or low is None or high is None:
        return mean_text
    return f"{mean_text} ± {_three_digits((high - low) / 2 / cost.times)}"


def _three_digits(value: float) -> str:
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f}"
