"""Reports of text and tables: for a terminal, a page, LaTeX and Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Group, OverflowMethod, RenderableType
from rich.table import Table
from rich.text import Text

from coinhaze.report.page import Html, division, page, paragraph, section, table

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "\u2265": r"$\ge$",
    "|": r"\textbar{}",
    **{c: "\\" + c for c in "&%$#_{}"},
}
# Characters that would end a line or a cell, or are invisible.
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


@dataclass(frozen=True)
class Grid:
    """A title, columns with their headings, rows of text, and notes below.

    The first column names rows and is aligned left, all others right. `remarks` are about single
    rows, and may be many and long.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    remarks: Sequence[str] = ()

    def rich(self) -> Table:
        """Return it as a rich table for a terminal."""
        table = Table(
            title=Text(self.title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
        )
        table.padding = (0, 0, 0, 1)
        for k, column in enumerate(self.columns):
            overflow: OverflowMethod = "ellipsis" if k else "fold"
            table.add_column(Text(column), justify="right" if k else "left", overflow=overflow)
        for row in self.rows:
            table.add_row(*(Text(one_line(cell)) for cell in row))
        below = [one_line(note) for note in (*self.notes, *self.remarks)]
        if below:
            table.caption = Text("\n".join(below))
            table.caption_justify = "left"
        return table

    def markdown(self) -> str:
        """Return it as a Markdown table under a heading.

        >>> print(Grid("Bits", ["ledger", "mean"], [["a|b", "1.00"]]).markdown())
        ## Bits
        <BLANKLINE>
        | ledger | mean |
        |---|---:|
        | a\\|b | 1.00 |
        <BLANKLINE>
        """
        lines = [f"## {markdown_cell(self.title)}", "", _line(self.columns)]
        lines.append("|---|" + "---:|" * (len(self.columns) - 1))
        lines += [_line(row) for row in self.rows]
        for note in (*self.notes, *self.remarks):
            lines += ["", markdown_cell(note)]
        return "\n".join(lines) + "\n"

    def latex(self, label: str) -> str:
        """Return it as a table for the booktabs package."""
        lines = [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{latex_cell(' '.join([self.title + '.', *self.notes]))}}}",
            rf"\label{{{label}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(self.columns) - 1)}}}",
            r"\toprule",
            " & ".join(map(_latex_head, self.columns)) + r" \\",
            r"\midrule",
            *(_latex_line(row) for row in self.rows),
            r"\bottomrule",
            r"\end{tabular}",
            *(rf"\par\smallskip\footnotesize\raggedright {latex_cell(r)}" for r in self.remarks),
            r"\end{table}",
        ]
        return "\n".join(lines) + "\n"


def one_line(text: str) -> str:
    """Remove characters that break lines or are invisible.

    >>> one_line("a\\nb")
    'a b'
    """
    return _UNSEEN.sub(" ", text)


def latex_cell(text: str) -> str:
    """Escape text so that LaTeX prints it unchanged.

    >>> print(latex_cell("50 % of a_b"))
    50 \\% of a\\_b
    """
    return "".join(_LATEX.get(c, c) for c in one_line(text))


def markdown_cell(text: str) -> str:
    """Escape text so that Markdown shows it unchanged, in one cell.

    >>> print(markdown_cell("a|b *c*"))
    a\\|b \\*c\\*
    """
    return re.sub(r"([\\`*_\[\]<>|~#])", r"\\\1", one_line(text))


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(markdown_cell, cells)) + " |"


def _latex_head(text: str) -> str:
    """Set sizes of sets, which stand between bars, as mathematics.

    >>> print(_latex_head("|V|"), _latex_head("0 %"))
    $|V|$ 0 \\%
    """
    return f"${text}$" if re.fullmatch(r"\|[A-Z]\|", text) else latex_cell(text)


def _latex_line(cells: Sequence[str]) -> str:
    return " & ".join(map(latex_cell, cells)) + r" \\"


LEFT, RIGHT = "left", "right"


@dataclass(frozen=True)
class Section:
    """A heading, warnings, sentences and a table under it; any of them may be missing."""

    title: str
    lines: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()  # heading, and left or right
    rows: tuple[tuple[str, ...], ...] = ()
    annex: bool = False  # printed on pages of its own, after those that are not


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
    first = [_section(part) for part in sections if not part.annex]
    annex = [_section(part) for part in sections if part.annex]
    return page(title, [*first, *([division("annex", *annex)] if annex else [])])


def _section(part: Section) -> Html:
    parts = []
    if part.columns:
        right = [k for k, (_, side) in enumerate(part.columns) if side == RIGHT]
        parts.append(table([name for name, _ in part.columns], part.rows, right=right))
    parts += [paragraph(line, warning=True) for line in part.warnings]
    parts += [paragraph(line) for line in part.lines]
    return section(part.title, *parts)
