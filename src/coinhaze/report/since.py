"""Bits as blocks go by, for a terminal, as JSON and as a figure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from coinhaze.measures.since import NAIVE, UNMIXED, Since, moment_words
from coinhaze.observer.chain import reading_words
from coinhaze.report.figures import axes_or_new, drawing, line_of, pyplot, save_picture
from coinhaze.report.files import made_from
from coinhaze.report.plots import BITS

NOT = (
    "Observers join owners by rules that can be wrong, and one wrong link stays wrong for good. "
    "The ledger ends where it ends: later spends may tell more."
)
WORDS = {
    NAIVE: "knows the coin's past and infers nothing: later spends change nothing",
    "common-input-no-coinjoins": "origins are one person's if ever spent together, CoinJoins apart",
    "change": "and if change, where it can be recognised, joins them",
    UNMIXED: (
        "as the last one, and outputs of a CoinJoin whose owner paid an input come from that "
        "input, the others from the rest"
    ),
}


def since_text(found: Since) -> Group:
    """Show bits at each moment, then by age."""
    several = len(found.nodes) > 1
    observers = list(found.bits)
    table = Table(title="Bits by moment" + (", means" if several else ""), title_justify="left")
    table.add_column("up to")
    if several:
        table.add_column("coins", justify="right")
    for name in observers:
        table.add_column(name, justify="right")
    for row in found.series(unspent=False).to_pylist():
        cells = [_bits(row[f"bits_{name.replace('-', '_')}"]) for name in observers]
        count = [f"{row['coins']:,}"] if several else []
        table.add_row(moment_words(row["height"], row["time"]), *count, *cells)
    parts: list[RenderableType] = [Text(found.sentence()), table]
    if several:
        parts.append(_unspent(found, observers))
    aged = [row for row in found.decay().to_pylist() if row["coins"]]
    if aged:
        ages = Table(title="Change since a coin's first moment, by age", title_justify="left")
        ages.add_column("after")
        ages.add_column("coins", justify="right")
        for name in observers:
            ages.add_column(name, justify="right")
        for row in aged:
            cells = [_bits(row[name], signed=True) for name in observers]
            ages.add_row(row["age"], f"{row['coins']:,}", *cells)
        parts.append(ages)
    parts += [Text(f"{name}: {WORDS[name]}") for name in observers if name in WORDS]
    parts += [Text(NOT), Text(f"Bits by {reading_words(found.settings)}.")]
    return Group(*parts, Text(found.graph.ledger.completeness.line()))


def _unspent(found: Since, observers: list[str]) -> Table:
    table = Table(title="Coins unspent at each moment, means", title_justify="left")
    table.add_column("up to")
    table.add_column("unspent", justify="right")
    for name in observers:
        table.add_column(name, justify="right")
    for row in found.series().to_pylist():
        cells = [_bits(row[f"bits_{name.replace('-', '_')}"]) for name in observers]
        table.add_row(moment_words(row["height"], row["time"]), f"{row['coins']:,}", *cells)
    return table


def _bits(value: float | None, *, signed: bool = False) -> str:
    return "-" if value is None else f"{value:+.4f}" if signed else f"{value:.4f}"


def since_json(found: Since, made_by: Mapping[str, object]) -> str:
    """Give moments, means over coins made and coins unspent, and changes by age, as JSON text."""
    document = {
        "coins": len(found.nodes),
        "names": found.names if len(found.nodes) <= 100 else None,
        "observers": {
            name: WORDS.get(name, "with the owners that were given") for name in found.bits
        },
        "linked": found.linked,
        "moments": found.series(unspent=False).to_pylist(),
        "unspent": found.series().to_pylist(),
        "decay": found.decay().to_pylist(),
        "settings": {name: value for name, value in found.settings.items() if value is not None},
        "completeness": found.graph.ledger.completeness.line(),
        "provenance": made_from(found.graph.ledger, made_by, found.notes),
    }
    return json.dumps(document, indent=1, allow_nan=False, default=str) + "\n"


def plot_since(found: Since, *, ax: Any = None) -> Any:
    """Plot bits at each moment, or their mean over the coins made by then, a line per observer."""
    ax = axes_or_new(ax)
    table = found.series(unspent=False)
    times = found.times
    by_time = None not in times
    at: list[Any] = [*map(_date, times)] if by_time else found.heights
    if not by_time and None in at:
        at = (found.until - 1).tolist()
    for k, name in enumerate(found.bits):
        look = line_of(k)
        values = table[f"bits_{name.replace('-', '_')}"].to_numpy(zero_copy_only=False)
        ax.plot(at, np.asarray(values, dtype=np.float64), color=look.colour, linestyle=look.dash,
                marker=look.marker, markersize=3, drawstyle="steps-post", label=name)  # fmt: skip
    ax.set_ylim(bottom=0)
    ax.set_ylabel(BITS)
    ax.set_xlabel("the observer knows the ledger up to" + (" (UTC)" if by_time else " height"))
    ax.legend(loc="lower left")
    return ax


def save_since(found: Since, path: Path, *, title: str) -> None:
    """Save the plot as an image."""
    with drawing() as plt:
        figure, ax = plt.subplots(figsize=(5.4, 3.2), layout="constrained")
        plot_since(found, ax=ax)
        ax.set_title(title, fontsize=8.5)
        figure.autofmt_xdate()
    save_picture(figure, path)
    pyplot().close(figure)


def _date(time: int | None) -> datetime:
    assert time is not None
    return datetime.fromtimestamp(time, UTC)
