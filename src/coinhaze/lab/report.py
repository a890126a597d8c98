"""Lab results as tables for a terminal, files, figures and a page."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

from coinhaze import __version__
from coinhaze.errors import InputError
from coinhaze.lab.figures import COSTS, save_scan, save_technologies, technology_label
from coinhaze.lab.lab import ParameterScan
from coinhaze.report.figures import FIGURE_STYLE, Figure, inline_figure
from coinhaze.report.files import write_table, write_whole
from coinhaze.report.grids import Grid
from coinhaze.report.page import page, section, table

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
        (name, _percent(r["fees"]), _number(r["transactions"]), _number(r["waiting"], 1),
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
    for name, text in (
        ("lab.json", lambda: lab_json(scans, provenance)),
        ("lab.html", lambda: lab_page(scans, figure, provenance)),
    ):
        written.append(_write(folder / name, text))
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
    rows = [(s.technology.name, s.technology.says, f"{s.observer}: {_sees(s)}") for s in scans]
    parts.append(section("What is modelled", table(("technology", "people", "the observer"), rows)))
    about = [(k, json.dumps(v)) for k, v in provenance.items() if k != "settings"]
    parts.append(section("What made this", table(("", ""), about)))
    return page(title, parts, style=FIGURE_STYLE, pictures=True)


def _sees(scan: ParameterScan) -> str:
    return scan.technology.observers[scan.observer]


def _write(path: Path, text: Callable[[], str]) -> Path:
    write_whole(path, lambda p: p.write_text(text(), encoding="utf-8"))
    return path


def _number(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _percent(value: float) -> str:
    return f"{value:.3%}"


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
