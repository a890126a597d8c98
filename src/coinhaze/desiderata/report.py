"""Findings as a table of approaches by desideratum, with the case behind each failure."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from coinhaze.desiderata.cases import WISHES, Finding


def desiderata_report(findings: Sequence[Finding]) -> Group:
    """Return the table and, for every "no" in it, the case that shows it."""
    table = Table(title="Approaches against wishes", title_justify="left")
    table.add_column("approach")
    for wish in WISHES:
        table.add_column(wish, justify="center")
    names = list(dict.fromkeys(finding.approach for finding in findings))
    for name in names:
        cells = [_cell(finding) for finding in findings if finding.approach == name]
        table.add_row(name, *cells)
    parts: list[RenderableType] = [
        table,
        Text("(+) and (-): the paper's table says otherwise. A no stands for a case:"),
    ]
    for finding in findings:
        if not finding.holds:
            parts.append(Text(f"- {finding.approach}, {finding.wish}: {finding.shown}"))
    return Group(*parts)


def _cell(finding: Finding) -> str:
    mark = "+" if finding.holds else "-"
    return mark if finding.claimed in (None, finding.holds) else f"({mark})"
