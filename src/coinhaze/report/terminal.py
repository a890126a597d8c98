"""Reports on a terminal or in a pipe: nothing is cut, and every id stands whole on one line.

Sentences in cells are broken between words, names and figures never. A table that is too wide for
the screen even so is shown as a list, one row after the other; in a pipe, where lines may be of any
length, tables are as wide as they need to be.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

WIDEST = 100_000
_SENTENCE = 60  # letters a line, of sentences in a table that may be of any width
_PHRASE = 20  # letters: what is no longer is no sentence, such as an amount with its unit
_TOGETHER = 24  # letters: cells of a list up to this length share a line


def show(*parts: RenderableType, console: Console | None = None) -> None:
    """Print what is in a report, one part after the other."""
    console = console or Console()
    for part in _flat(parts):
        if not isinstance(part, Table):
            console.print(part, soft_wrap=_has_long_word(part, console))
        elif _fit(part, console, console.width):
            console.print(part)
        elif console.is_terminal:
            _print_list(part, console)
        else:
            _print_wide(part, console)


def _has_long_word(part: RenderableType, console: Console) -> bool:
    """Tell whether a word is longer than a line: only the terminal may break it then."""
    words = _plain(part).split() if isinstance(part, Text | str) else []
    return any(cell_len(word) > console.width for word in words)


def _fit(table: Table, console: Console, width: int) -> bool:
    """Give columns the widths in which no word is broken, if the table can be so narrow."""
    natural, shortest = (
        zip(*map(_widths, table.columns), strict=True) if table.columns else ((), ())
    )
    room = width - (_natural_width(table, console) - sum(natural))
    widths = list(natural)
    while sum(widths) > room:
        # The widest of the columns that can be narrower, to the width of the next.
        k = max(range(len(widths)), key=lambda k: (widths[k] > shortest[k], widths[k]))
        if widths[k] <= shortest[k]:
            return False
        widths[k] -= 1
    if sum(natural) > room:
        for column, chosen in zip(table.columns, widths, strict=True):
            column.width = chosen
    return True


def _widths(column: Column) -> tuple[int, int]:
    """Give the width of a column's longest line, and of its longest word."""
    texts = [_plain(column.header), *map(_plain, column.cells)]
    lines = max((cell_len(line) for text in texts for line in text.splitlines()), default=0)
    words = max((cell_len(word) for text in texts for word in text.split()), default=0)
    return lines, lines if lines <= _PHRASE else words


def _natural_width(table: Table, console: Console) -> int:
    options = console.options.update(max_width=WIDEST)
    return Measurement.get(console, options, table).maximum


def _flat(parts: tuple[RenderableType, ...]) -> Iterator[RenderableType]:
    for part in parts:
        if isinstance(part, Group):
            yield from _flat(tuple(part.renderables))
        else:
            yield part


def _print_wide(table: Table, console: Console) -> None:
    """Print a table wider than the console, and what stands below it as wide as the console."""
    for column in table.columns:
        natural, shortest = _widths(column)
        column.width = max(shortest, min(natural, _SENTENCE))
    caption, table.caption = table.caption, None
    narrow = console.width
    try:
        console.width = max(_natural_width(table, console), narrow)
        console.print(table)
    finally:
        console.width, table.caption = narrow, caption
    _print_text(caption, console, style="table.caption")


def _print_list(table: Table, console: Console) -> None:
    """Print rows one below the other: what names a row, then the other cells under their names."""
    _print_text(table.title, console, style="table.title")
    heads = [_plain(column.header) for column in table.columns]
    for cells in zip(*(column.cells for column in table.columns), strict=True):
        name, *texts = map(_plain, cells)
        _print_text(f"{heads[0]} {name}".strip(), console)
        line = ""
        for head, text in zip(heads[1:], texts, strict=True):
            if not text:
                continue
            words = f"{head}: {' '.join(text.split())}"
            if len(text) > _TOGETHER or len(line) + len(words) + 3 > console.width:
                _print_text(line, console)
                line = ""
            line = f"{line}   {words}" if line else f"  {words}"
            if len(text) > _TOGETHER:
                _print_text(line, console)
                line = ""
        _print_text(line, console)
    _print_text(table.caption, console, style="table.caption")


def _print_text(text: RenderableType | None, console: Console, style: str = "") -> None:
    """Print lines that only the terminal itself may break, so that ids can be copied."""
    if text:
        console.print(Text(_plain(text), style=style), soft_wrap=True)


def _plain(cell: RenderableType) -> str:
    if isinstance(cell, Text):
        return cell.plain
    return Text.from_markup(cell).plain if isinstance(cell, str) else str(cell)


def written(*parts: RenderableType, width: int) -> str:
    """Give a report as a file of text has it."""
    file = StringIO()
    show(*parts, console=Console(file=file, width=width, color_system=None, force_terminal=False))
    return file.getvalue()
