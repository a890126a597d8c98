"""The figures of a comparison, drawn from its score files, each with a caption."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from coinhaze.compare.rows import TIMES
from coinhaze.growth.plots import FEW, about_growth, plot_growths
from coinhaze.measures.summary import AT_LEAST
from coinhaze.report import plots as plots
from coinhaze.report.figures import COLUMN, Figure, drawing, save_figure
from coinhaze.report.files import write_text
from coinhaze.report.plots import Looks, looks_of
from coinhaze.report.score_files import ScoreFile

Growths = Mapping[tuple[str, str], pa.Table]  # by ledger and time
PANEL, LEGEND_LINE = 1.75, 0.125  # inches: the height of a panel, and of a line of its legend
ORDER = (
    "bits-shares", "bits", "steps-shares", "steps", "bits-against-steps", "top-shares", "exposure",
    "growth",
)  # fmt: skip
NODES = {"account": "accounts", "address": "addresses", "coin": "coins"}


class _Kind(NamedTuple):
    """A figure with one panel for each reading of time."""

    name: str
    title: str
    plot: Callable[..., Any]
    says: str
    column: str  # the column that at least one row must have
    bounds: str = ""  # what the sign of bounds means here


RIGHT = (
    f" ({AT_LEAST}): some bits of this ledger are lower bounds; its coins may lie further "
    "right, never further left."
)
_KINDS = (
    _Kind(
        "bits-shares",
        "Bits: how many coins have at most this many",
        plots.plot_bits_shares,
        "What share of coins has at most this many bits. A line that begins high has many coins of "
        "one origin; a line further right leaves an observer more in doubt.",
        "bits",
        RIGHT,
    ),
    _Kind(
        "bits",
        "Bits: how they are distributed",
        plots.plot_bits,
        "How coins are distributed over bits. Bins are a quarter of a bit wide (an eightieth of "
        "the range above 20 bits); heights are shares of all coins, on a scale of square roots so "
        "that low bins can be seen. Coins proven to have one origin are left out of the bins: the "
        "legend tells their share.",
        "bits",
        RIGHT,
    ),
    _Kind(
        "steps-shares",
        "Steps: how many coins have at most this many",
        plots.plot_steps_shares,
        "What share of coins has at most this many expected steps back to an origin, the step into "
        "it included.",
        "steps",
    ),
    _Kind(
        "steps",
        "Steps: how they are distributed",
        plots.plot_steps,
        f"How coins are distributed over expected steps back to an origin. There are "
        f"{plots.STEP_BINS} bins for each tenfold; heights are shares of all coins, on a scale of "
        "square roots.",
        "steps",
    ),
    _Kind(
        "top-shares",
        "The likeliest source",
        plots.plot_top_shares,
        "What share of coins has a likeliest source of at most such a probability. Bits are a "
        "mean: many bits may hide one source that is likely by itself.",
        "top_probability",
        f" ({plots.AT_MOST}): some of this ledger's sources stand for several coins; its coins may "
        "lie further left, never further right.",
    ),
    _Kind(
        "exposure",
        "Exposure to the listed sources",
        plots.plot_exposures,
        "What share of coins has at most such an exposure: the probability that their money came "
        "from a listed source.",
        "exposure",
    ),
)


def draw_comparison(
    files: Sequence[ScoreFile],
    folder: Path,
    *,
    growth: Growths | None = None,
    only: Collection[str] | None = None,
) -> list[Figure]:
    """Draw every figure that the score files allow into a folder, in three formats each.

    Captions are written to a text file beside them. `growth` are tables of bits along walks
    forward, by ledger and time; `only` names the figures to draw.
    """
    looks = looks_of([*(file.name for file in files), *(name for name, _ in growth or {})])
    tasks: dict[str, Callable[[], Figure]] = {
        kind.name: partial(_draw_kind, kind, files, looks, folder)
        for kind in _KINDS
        if _known(files, kind.column)
    }
    if _known(files, "steps"):
        tasks["bits-against-steps"] = partial(_draw_against_steps, files, looks, folder)
    if growth:
        tasks["growth"] = partial(_draw_growth, growth, files, looks, folder)
    drawn = [tasks[name]() for name in ORDER if name in tasks and (only is None or name in only)]
    captions = "".join(f"{figure.name}: {figure.caption}\n\n" for figure in drawn)
    write_text(folder / "captions.txt", captions)
    return drawn


def _known(files: Sequence[ScoreFile], column: str) -> bool:
    """Return whether any coin has a figure in this column."""
    found = [(file, getattr(file, column)) for file in files]
    return any(v is not None and not np.all(np.isnan(v[file.held])) for file, v in found)


def _draw_kind(kind: _Kind, files: Sequence[ScoreFile], looks: Looks, folder: Path) -> Figure:
    drawn = [file for file in files if _known([file], kind.column)]
    panels = {time: of for time in TIMES if (of := [f for f in drawn if f.time == time])}
    lines = [_legend_lines(kind, of, looks) for of in panels.values()]
    heights = [PANEL + LEGEND_LINE * n for n in lines]
    with drawing() as plt:
        figure, axes = plt.subplots(
            len(panels), 1, figsize=(COLUMN, sum(heights) + 0.35 * len(panels)),
            layout="constrained", squeeze=False,
        )  # fmt: skip
        for ax, (time, of) in zip(axes[:, 0], panels.items(), strict=True):
            kind.plot(of, ax=ax, looks=looks)
            ax.set_title(time)
        _same_reach(axes[:, 0])
        paths = save_figure(figure, folder, kind.name)
    missing = [file.label for file in files if file not in drawn]
    unknown = f" Not known, so not drawn: {'; '.join(missing)}." if missing else ""
    says = kind.says + (kind.bounds if any(file.lower_bounds for file in drawn) else "")
    return Figure(kind.name, kind.title, says, measured(drawn) + unknown, paths)


def _legend_lines(kind: _Kind, files: Sequence[ScoreFile], looks: Looks) -> int:
    if kind.plot in (plots.plot_bits, plots.plot_steps):
        return len(files)
    mark = AT_LEAST if kind.bounds else ""
    short = max(len(plots.marked(looks[file.name][0], file, mark)) for file in files) <= 24
    return -(-len(files) // 2) if short else len(files)


def _same_reach(axes: Any) -> None:
    """Give panels above one another the same range, so that they can be compared."""
    low = min(ax.get_xlim()[0] for ax in axes)
    high = max(ax.get_xlim()[1] for ax in axes)
    for ax in axes:
        ax.set_xlim(low, high)


def _draw_against_steps(files: Sequence[ScoreFile], looks: Looks, folder: Path) -> Figure:
    """Draw a panel for each ledger and reading of time: ledgers down, time across."""
    drawn = [file for file in files if _known([file], "steps")]
    names = list(dict.fromkeys(file.name for file in drawn))
    times = [time for time in TIMES if any(file.time == time for file in drawn)]
    by_place = {(file.name, file.time): file for file in drawn}
    with drawing() as plt:
        figure, axes = plt.subplots(
            len(names), len(times), figsize=(3.5 * len(times), 1.95 * len(names) + 0.1),
            layout="constrained", squeeze=False,
        )  # fmt: skip
        for row, name in enumerate(names):
            label, line = looks[name]
            for ax, time in zip(axes[row], times, strict=True):
                file = by_place.get((name, time))
                if file is None:
                    ax.set_axis_off()
                    continue
                plots.plot_bits_against_steps(file, ax=ax, line=line)
                ax.set_title(f"{plots.marked(label, file, AT_LEAST)}, {time}")
        paths = save_figure(figure, folder, "bits-against-steps")
    says = (
        f"Bits against expected steps back: a dot a coin or, above {plots.MANY:,} coins, cells "
        "shaded by how many coins lie in them, on a logarithmic scale; coins proven to have one "
        "origin are the row below 0."
    )
    if any(file.lower_bounds for file in drawn):
        says += (
            f" ({AT_LEAST}): some bits of this ledger are lower bounds; its coins may lie "
            "higher, never lower."
        )
    return Figure("bits-against-steps", "Bits against steps", says, measured(drawn), paths)


def _draw_growth(growth: Growths, files: Sequence[ScoreFile], looks: Looks, folder: Path) -> Figure:
    """Plot mean bits along walks forward, one panel for each reading of time."""
    panels = {
        time: of for time in TIMES if (of := {n: t for (n, at), t in growth.items() if at == time})
    }
    with drawing() as plt:
        legend = sum(LEGEND_LINE * len(of) for of in panels.values())
        figure, axes = plt.subplots(
            len(panels), 1, figsize=(COLUMN, (PANEL + 0.35) * len(panels) + legend),
            layout="constrained", squeeze=False,
        )  # fmt: skip
        for ax, (time, tables) in zip(axes[:, 0], panels.items(), strict=True):
            plot_growths(tables, ax=ax, looks=looks)
            ax.set_title(time)
        paths = save_figure(figure, folder, "growth")
    says = (
        "Mean bits of money after so many payments: walks begin at every source and follow "
        "payments forward, the next one chosen by amount; the mean is over walks still going, and "
        f"a line ends where fewer than {FEW:.0%} are."
    )
    if any(about_growth(table).get("lower_bounds") for table in growth.values()):
        says += f" ({AT_LEAST}): bits of this ledger are lower bounds; its line may lie higher."
    walked = [f"{name} ({time}): {_walked(table)}" for (name, time), table in growth.items()]
    notes = notes_by_ledger([file for file in files if (file.name, file.time) in growth])
    caption = ". ".join(["; ".join(walked), *notes]) + "."
    return Figure("growth", "Bits as money is paid on", says, caption, paths)


def _walked(table: pa.Table) -> str:
    """Describe the walks of a table, from its own metadata."""
    return str(about_growth(table).get("told", "walks from every source"))


def measured(files: Sequence[ScoreFile]) -> str:
    """Describe what was measured: each ledger, its nodes and time, how many coins, and how."""
    by_name: dict[str, list[ScoreFile]] = {}
    for file in files:
        by_name.setdefault(file.name, []).append(file)
    parts = []
    for name, of in by_name.items():
        readings = ", ".join(f"{file.time} {_how_many(file)} by {file.method}" for file in of)
        parts.append(f"{name} ({made_from(of[0])}): {readings}")
    return "Measured: " + ". ".join(["; ".join(parts), *notes_by_ledger(files)]) + "."


def notes_by_ledger(files: Sequence[ScoreFile]) -> list[str]:
    """Return every note once, with the ledgers it is about, and the time if there is only one."""
    times: dict[str, set[str]] = {}
    found: dict[str, dict[str, list[str]]] = {}
    for file in files:
        times.setdefault(file.name, set()).add(file.time)
        for note in file.notes:
            found.setdefault(note, {}).setdefault(file.name, []).append(file.time)
    lines = []
    for note, names in found.items():
        whose = [
            name if len(of) == len(times[name]) else f"{name} ({', '.join(of)})"
            for name, of in names.items()
        ]
        lines.append(f"{', '.join(whose)}: {note}")
    return lines


def _how_many(file: ScoreFile) -> str:
    held = int(file.held.sum())
    left_out = len(file) - held
    apart = f" ({left_out:,} burnt or without an answer left out)" if left_out else ""
    return f"{held:,} {NODES.get(file.view, 'sinks')}{apart}"


def made_from(file: ScoreFile) -> str:
    """Describe the window and ledger of a score file."""
    made_up = file.about.get("simulated")
    if made_up:
        return f"made-up {made_up['week']}, size {made_up['size']:g}, seed {made_up['seed']}"
    settings = (file.about.get("key") or {}).get("settings") or {}
    first, last = (settings.get(a, settings.get(b)) for a, b in (("from", "first"), ("to", "last")))
    names = [str(source["file"]) for source in file.about.get("inputs") or []]
    what = names[0] if len(names) == 1 else f"{len(names)} files" if names else "a ledger"
    if first is None and last is None:
        return what
    start, end = "its start" if first is None else first, "its end" if last is None else last
    return f"{what} from {start} to {end}"
