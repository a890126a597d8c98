"""A report as sections of sentences and tables, the same on a terminal and on a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from coinhaze.report.page import page, paragraph, section, table

LEFT, RIGHT = "left", "right"


@dataclass(frozen=True)
class Section:
    """A heading, warnings, sentences and a table under it; any of them may be missing."""

    title: str
    lines: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()  # heading, and left or right
    rows: tuple[tuple[str, ...], ...] = ()


def sections_text(title: str, sections: Sequence[Section]) -> Group:
    """Return a report formatted for a terminal."""
    parts: list[RenderableType] = [Text(title, style="bold")]
    for part in sections:
        parts += [Text(""), Text(part.title, style="bold")]
        if part.columns:
            shown = Table()
            for name, side in part.columns:
                right = side == RIGHT
                shown.add_column(name, justify="right" if right else "left", overflow="fold")
            for row in part.rows:
                shown.add_row(*(Text(cell) for cell in row))
            parts.append(shown)
        parts += [Text(f"! {line}") for line in part.warnings]
        parts += [Text(f"- {line}") for line in part.lines]
    return Group(*parts)


def sections_page(title: str, sections: Sequence[Section]) -> str:
    """Return a report as an HTML page.

    >>> "<h2>Why</h2>" in sections_page("Coins", [Section("Why", lines=("a & b",))])
    True
    """
    return page(title, [_section(part) for part in sections])


def _section(part: Section) -> str:
    parts = []
    if part.columns:
        right = [k for k, (_, side) in enumerate(part.columns) if side == RIGHT]
        parts.append(table([name for name, _ in part.columns], part.rows, right=right))
    parts += [paragraph(line, warning=True) for line in part.warnings]
    parts += [paragraph(line) for line in part.lines]
    return section(part.title, *parts)
