"""Draw docs/engines.png: what exact scores take by engine and size, from measured figures.

Reads engines.csv beside this file; each row states how it was measured and by which command.
Dashed lines are extrapolated in proportion to the entries of B (states times columns), from the
largest chain that was measured.
"""

from __future__ import annotations

import csv
import math
import sys
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl

from coinhaze.report.figures import GREY, drawing, line_of, save_picture

HERE = Path(__file__).parent
NAMES = {
    "laptop": "laptop, 2 cores",
    "cluster": "cluster, 2 processes",
    "16 cores": "16 cores",
    "gpu": "one H200",
}
PANELS = {"temporal": "without cycles: temporal, coins", "stationary": "with cycles: stationary"}
# The whole ethereum-week has so many entries: extrapolated lines end there.
WHOLE = {"temporal": 4_613_012 * 751_203, "stationary": 1_100_000 * 406_576}
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
MANY = 64  # processes of a cluster that is larger than the one measured


class Point(NamedTuple):
    """One measured solve."""

    entries: float
    seconds: float


def points(path: Path) -> dict[tuple[str, str], list[Point]]:
    """Give the measured solves of each engine and kind of graph, the smallest first."""
    found: dict[tuple[str, str], list[Point]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            entries = float(row["states"]) * float(row["columns"])
            place = found.setdefault((row["engine"], row["time"]), [])
            place.append(Point(entries, float(row["seconds"])))
    return {key: sorted(measured) for key, measured in found.items()}


def extrapolated(last: Point, entries: float, factor: float = 1.0) -> Point:
    """Scale a measured solve up in proportion to its entries."""
    return Point(entries, factor * last.seconds * entries / last.entries)


def draw(ax: Any, time: str, measured: dict[tuple[str, str], list[Point]]) -> None:
    """Draw one kind of graph."""
    for number, (engine, name) in enumerate(NAMES.items()):
        found = measured.get((engine, time))
        if found is None:
            continue
        line = line_of(number)
        ax.plot(*zip(*found, strict=True), line.marker, color=line.colour, label=name)
        last = found[-1]
        if engine != "cluster" and last.entries < WHOLE[time]:
            ends = (last, extrapolated(last, WHOLE[time]))
            ax.plot(*zip(*ends, strict=True), "--", color=line.colour, linewidth=0.8)
        if engine == "cluster":
            ends = tuple(extrapolated(last, e, 2 / MANY) for e in (last.entries, WHOLE[time]))
            name = f"cluster, {MANY} processes*"
            ax.plot(*zip(*ends, strict=True), ":", color=line.colour, label=name)
    ax.axvline(WHOLE[time], color=GREY, linewidth=0.6, zorder=0)
    ax.text(WHOLE[time], 0.06, "ethereum-week ", color=GREY, ha="right", fontsize="small")
    ax.set(xscale="log", yscale="log", title=PANELS[time], xlabel="states times columns")
    ax.set(xlim=(3e7, 1e13), ylim=(0.05, 2e4))
    ax.xaxis.set_major_formatter(lambda x, _: "10" + f"{round(math.log10(x))}".translate(RAISED))
    ax.yaxis.set_major_formatter(lambda y, _: f"{y:g}" if y < 1 else f"{y:,.0f}")


def main(path: Path) -> None:
    """Draw both kinds of graph side by side."""
    mpl.use("agg")
    measured = points(HERE / "engines.csv")
    with drawing() as plt:
        shape: dict[str, Any] = {"sharey": True, "layout": "constrained"}
        figure, axes = plt.subplots(1, 2, figsize=(6.8, 3.2), **shape)
        for ax, time in zip(axes, PANELS, strict=True):
            draw(ax, time, measured)
        axes[0].set_ylabel("seconds of an exact solve")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower left", ncols=3)
    save_picture(figure, path)
    print(f"wrote {path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent / "engines.png")
