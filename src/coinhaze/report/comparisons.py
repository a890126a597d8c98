"""Tables of published measures beside the bits."""

from __future__ import annotations

import math

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from coinhaze.measures import Scores
from coinhaze.measures.comparators.registry import COMPARATORS
from coinhaze.measures.comparators.side_by_side import correlations


def comparison_report(scores: Scores, *, most: int = 5) -> Group:
    """Show measures of the haziest and clearest coins, their definitions and correlations."""
    return Group(_measures(scores, most), _correlations(scores), *_legend(scores))


def _measures(scores: Scores, most: int) -> Table:
    table = Table(title="Measures side by side", title_justify="left")
    table.add_column("node", overflow="fold")
    for name in ("bits", *scores.comparators):
        table.add_column(name, justify="right")
    rows = scores.order()
    shown = np.concatenate([rows[:most], rows[most:][-most:]])
    names = scores.chain.graph.names.of(scores.nodes[shown]).to_pylist()
    for name, row in zip(names, shown.tolist(), strict=True):
        values = [column[row] for column in scores.comparators.values()]
        table.add_row(Text(name), f"{scores.bits[row]:.4f}", *(_number(float(v)) for v in values))
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


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4g}" if abs(value) < 1e6 else f"{value:.3e}"
