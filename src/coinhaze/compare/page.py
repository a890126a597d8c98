"""The page of a comparison: what stands out, figures, tables, and how to check them."""

from __future__ import annotations

from collections.abc import Sequence

from coinhaze.compare.figures import Growths, made_from, notes_by_ledger
from coinhaze.compare.rows import row_of
from coinhaze.compare.story import story
from coinhaze.report.drawing import Figure
from coinhaze.report.grids import Grid
from coinhaze.report.inline_svg import FIGURE_STYLE, inline_figure
from coinhaze.report.page import Html, escape, page, paragraph, section, table
from coinhaze.report.score_files import ScoreFile

_CHAPTERS = (
    ("How much an observer lacks", ("bits-shares", "bits")),
    ("How far back the origins lie", ("steps-shares", "steps")),
    ("Bits against steps", ("bits-against-steps",)),
    ("The likeliest source, and listed ones", ("top-shares", "exposure")),
    ("As money is paid on", ("growth",)),
)
_NOT = (
    "Bits are about origins inside the window that was read. Money that was there before it counts "
    "as an origin, whatever its own past.",
    "They are about an observer who knows the ledger and nothing else, and who takes money to be "
    "mixed in proportion. One who knows more lacks fewer bits.",
    "They say nothing about any person, and nothing about whether money was come by rightly.",
    "They are means over all origins: a coin with many bits can still have one likely source.",
    "Ledgers differ in size and in how long their windows are; more sources allow more bits.",
)


def comparison_page(
    files: Sequence[ScoreFile],
    figures: Sequence[Figure],
    grids: Sequence[Grid],
    *,
    growth: Growths | None = None,
    folder: str = "REPORT",
    published: bool = False,
) -> str:
    """Return the page as self-contained HTML; `folder` is where the score files are.

    Everything is computed from the score files, and `growth` from the tables beside them.
    """
    names = list(dict.fromkeys(file.name for file in files))
    title = f"Where does money come from? {_count(len(names), 'ledger')} compared"
    parts = [
        Html(f'<div class="lead">{paragraph(_lead(files, names))}</div>\n'),
        section("What stands out", _points(story(files, growth=growth))),
        *_notes(files),
        *_chapters(figures),
        *(_grid_section(grid) for grid in grids),
        section("What these numbers are not", _points(_NOT)),
        section("Method and errors", *_method(files)),
        section(
            "How to compute it again",
            *_again(files, folder, walked=bool(growth), published=published),
        ),
    ]
    return page(title, parts, style=FIGURE_STYLE, pictures=True)


def _lead(files: Sequence[ScoreFile], names: Sequence[str]) -> str:
    coins = sum(int(file.held.sum()) for file in files)
    return (
        f"How many bits does an observer of a public ledger lack to say where a coin's money came "
        f"from? 0 bits: one certain origin. 10 bits: as uncertain as among 1024 equally likely "
        f"ones. Compared here: {', '.join(names) or 'nothing'}; {coins:,} answers in all. A ledger "
        "is read with the order of payments left out (stationary) or kept (temporal). A coin here "
        "is whatever holds money at the end: an unspent coin, an address or an account."
    )


def _notes(files: Sequence[ScoreFile]) -> list[Html]:
    """Return every note of every ledger, if there are any."""
    notes = notes_by_ledger(files)
    return [section("What must be known of these ledgers", _points(notes))] if notes else []


def _chapters(figures: Sequence[Figure]) -> list[Html]:
    drawn = {figure.name: figure for figure in figures}
    chapters = []
    for title, names in _CHAPTERS:
        shown = [inline_figure(drawn[name]) for name in names if name in drawn]
        if shown:
            chapters.append(section(title, Html(f'<div class="figures">{"".join(shown)}</div>\n')))
    return chapters


def _grid_section(grid: Grid) -> Html:
    right = range(1, len(grid.columns))
    # Leading spaces of a row would be lost.
    rows = [(_set_in(first), *others) for first, *others in grid.rows]
    return section(grid.title, table(grid.columns, rows, right=right), *grid.notes)


def _set_in(text: str) -> str:
    plain = text.lstrip(" ")
    return "\u2002" * (len(text) - len(plain)) + plain


def _method(files: Sequence[ScoreFile]) -> list[object]:
    columns = ("ledger", "time", "rules", "made from", "method", "mean of bits known")
    rows = []
    for file in files:
        row = row_of(file)
        rows.append((file.name, file.time, row.rules, made_from(file), file.method, row.known))
    return [
        table(columns, rows),
        "Every reading is solved exactly where that is soon done; else in intervals that are "
        "proven, or by draws. Intervals of drawn bits miss with the probability told; "
        "\u201cs.e.\u201d is the standard error of the mean of bits, measured over independent "
        "draws; single coins err more, by the same draws.",
    ]


def _again(
    files: Sequence[ScoreFile], folder: str, *, walked: bool, published: bool
) -> list[object]:
    commands = [c for c in dict.fromkeys(str(f.about.get("command") or "") for f in files) if c]
    # The first creates the comparison; each of the others adds a ledger to it.
    shown = "\n".join(
        [
            *(f"{command}{' --add' * bool(k)} -o {folder}" for k, command in enumerate(commands)),
            f"coinhaze compare --again{' --published' * published} -o {folder}",
        ]
    )
    beside = f" and the bits along walks in {folder}/growth" if walked else ""
    software = sorted({str(file.about.get("software", "coinhaze")) for file in files})
    return [
        f"Every number and figure above comes from the score files in {folder}/scores{beside} and "
        "nothing else, and each of those says what made it, its inputs with their digests "
        f"included. Made with {', '.join(software) or 'coinhaze'}. The last line makes this page "
        "from them again:",
        Html(f"<pre><code>{escape(shown)}</code></pre>\n"),
    ]


def _points(lines: Sequence[str]) -> Html:
    return Html("<ul>" + "".join(f"<li>{escape(line)}</li>\n" for line in lines) + "</ul>\n")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
