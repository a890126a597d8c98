"""The page of a comparison: what stands out, figures, tables, and how to check them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from coinhaze.compare.figures import Growths, made_from, notes_by_ledger
from coinhaze.compare.rows import TIMES, ComparisonRow, row_of
from coinhaze.growth.plots import FEW, about_growth
from coinhaze.report.figures import FIGURE_STYLE, Figure, inline_figure
from coinhaze.report.grids import Grid
from coinhaze.report.page import Html, escape, page, paragraph, section, table
from coinhaze.report.score_files import ScoreFile

IN_WORDS = {"stationary": "with time left out", "temporal": "in the order of time"}
HAZY, LIKELY = 3.0, 0.5  # bits that suggest many origins; a source likelier than all others
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


def story(files: Sequence[ScoreFile], *, growth: Growths | None = None) -> list[str]:
    """Return sentences on what stands out, the most significant first."""
    rows = [row for row in map(row_of, files) if row.sinks]
    # A bound does not say which ledger has more: such ledgers are described separately.
    exact = [row for row in rows if not row.lower_bounds]
    lines = [line for time in TIMES for line in _extremes(_at(exact, time), time)]
    lines += [_bound(row) for row in rows if row.lower_bounds]
    lines += _order_of_time(exact)
    lines += _one_origin(rows)
    lines += _hidden_likelihood(files)
    lines += _by_value(exact)
    lines += _exposed(rows)
    known = {k: t for k, t in (growth or {}).items() if not about_growth(t).get("lower_bounds")}
    lines += _grown(known) if known else []
    return lines


def _bound(row: ComparisonRow) -> str:
    """Describe what is known where bits are lower bounds."""
    return (
        f"{IN_WORDS[row.time].capitalize()}, the median coin of {row.ledger} has at least "
        f"{_bits(row.bits_median)}: bits of {row.lower_bounds:,} of its {row.sinks:,} coins are "
        "lower bounds, so it is not ranked among the others."
    )


def _at(rows: Sequence[ComparisonRow], time: str) -> list[ComparisonRow]:
    return [row for row in rows if row.time == time]


def _extremes(rows: Sequence[ComparisonRow], time: str) -> list[str]:
    """Describe which ledgers leave an observer most and least in doubt, by the median coin."""
    if not rows:
        return []
    start = f"{IN_WORDS[time].capitalize()}, "
    maximum, minimum = _ends(rows, lambda row: row.bits_median)
    if len(rows) == 1 or maximum.bits_median - minimum.bits_median < 0.005:
        whose = f"the median coin of {maximum.ledger}" if len(rows) == 1 else "every median coin"
        return [f"{start}{whose} has {_bits(maximum.bits_median)}."]
    return [
        f"{start}the median coin has most bits on {maximum.ledger}, "
        f"{_bits(maximum.bits_median)}, and "
        f"fewest on {minimum.ledger}, {_bits(minimum.bits_median)}."
    ]


def _order_of_time(rows: Sequence[ComparisonRow]) -> list[str]:
    """Describe the effect of the order of time on mean bits."""
    stationary = {row.ledger: row.bits_mean for row in _at(rows, "stationary")}
    changes = {
        row.ledger: (stationary[row.ledger], row.bits_mean)
        for row in _at(rows, "temporal")
        if row.ledger in stationary
    }
    if not changes:
        return []

    def listed(named: Mapping[str, tuple[float, float]]) -> str:
        return _and([f"{name} ({a:.2f} to {b:.2f})" for name, (a, b) in named.items()])

    falls = {name: pair for name, pair in changes.items() if pair[1] < pair[0] - 0.005}
    rises = {name: pair for name, pair in changes.items() if pair[1] > pair[0] + 0.005}
    parts = [f"lowers mean bits of {listed(falls)}"] if falls else []
    of = "those of" if falls else "mean bits of"
    parts += [f"raises {of} {listed(rises)}"] if rises else []
    what = " and ".join(parts) or "leaves mean bits as they are"
    return [f"Keeping the order of payments {what}."]


def _one_origin(rows: Sequence[ComparisonRow]) -> list[str]:
    """Describe how many coins have one certain origin."""
    lines = []
    for time in TIMES:
        here = _at(rows, time)
        if not here:
            continue
        maximum, minimum = _ends(here, lambda row: row.one_origin)
        start = f"{IN_WORDS[time].capitalize()}, "
        if maximum.one_origin < 0.0005:
            lines.append(f"{start}hardly any coin is proven to have one origin.")
            continue
        only = len(here) == 1 or maximum.one_origin - minimum.one_origin < 0.0005
        other = "" if only else f", {_percent(minimum.one_origin)} on {minimum.ledger}"
        lines.append(
            f"{start}{_percent(maximum.one_origin)} of coins on {maximum.ledger} are "
            f"proven to have one origin, 0 bits{other}."
        )
    return lines


def _hidden_likelihood(files: Sequence[ScoreFile]) -> list[str]:
    """Describe how often many bits hide a source that is likelier than all others together."""
    shares = []
    for file in files:
        held = file.held & ~np.isnan(file.top_probability)
        if file.lower_bound is not None:
            held &= ~file.lower_bound
        hazy = held & (file.bits >= HAZY)
        if hazy.any():
            shares.append((float(np.mean(file.top_probability[hazy] > LIKELY)), file))
    if not shares:
        return []
    share, file = max(shares, key=lambda pair: pair[0])
    origins = f"{HAZY:g} bits or more, as among {2**HAZY:.0f} origins or more"
    if share < 0.0005:
        return [
            f"Hardly any coin with {origins}, has one source likelier than all others together."
        ]
    return [
        f"Bits can hide a likely source: of the coins with {origins}, {_percent(share)} on "
        f"{file.name} ({file.time}) have one source that is likelier than all others together."
    ]


def _by_value(rows: Sequence[ComparisonRow]) -> list[str]:
    """Describe where means by value and by coin differ most."""
    known = [row for row in rows if not np.isnan(row.bits_by_value)]
    if not known:
        return []
    row = max(known, key=lambda row: abs(row.bits_by_value - row.bits_mean))
    if abs(row.bits_by_value - row.bits_mean) < 0.05:
        return ["Large and small sums have about the same bits on every ledger."]
    where = "fewer" if row.bits_by_value < row.bits_mean else "more"
    return [
        f"On {row.ledger} ({row.time}) most money lies in coins with {where} bits: the mean is "
        f"{row.bits_mean:.2f} coin by coin and {row.bits_by_value:.2f} by value."
    ]


def _exposed(rows: Sequence[ComparisonRow]) -> list[str]:
    known = [row for row in rows if not np.isnan(row.exposure_mean)]
    if not known:
        return []
    row = max(known, key=lambda row: row.exposure_mean)
    return [
        f"From the listed sources came most on {row.ledger} ({row.time}): "
        f"{_percent(row.exposure_mean)} of a coin on average."
    ]


def _grown(growth: Growths) -> list[str]:
    """Describe after how many payments bits are highest, where they rise most."""
    rises = []
    for (name, time), walked in growth.items():
        enough = walked["share"].to_numpy() >= FEW
        bits = np.array(walked["bits_mean"].to_pylist(), dtype=np.float64)[enough]
        peak = int(np.nanargmax(bits))
        top, last = float(bits[peak]), float(bits[-1])
        rises.append((top - float(bits[0]), name, time, peak, top, last, len(bits) - 1))
    _, name, time, peak, top, last, end = max(rises)
    far = f", and {last:.2f} after {end}, the most that one walk in a hundred makes"
    then = far if top - last > 0.05 else ""
    times = "payment" if peak == 1 else "payments"
    return [
        f"Money that is paid on gains bits most on {name} ({time}): {top:.2f} on average after "
        f"{peak} {times}{then}."
    ]


def _ends(
    rows: Sequence[ComparisonRow], by: Callable[[ComparisonRow], float]
) -> tuple[ComparisonRow, ComparisonRow]:
    return max(rows, key=by), min(rows, key=by)


def _bits(bits: float) -> str:
    """Format bits with the equivalent number of equally likely origins.

    >>> _bits(4.0), _bits(0.0)
    ('4.00 bits (as among 16 origins)', '0 bits (one origin)')
    """
    if bits < 0.005:
        return "0 bits (one origin)"
    count = 2.0**bits
    return (
        f"{bits:.2f} bits (as among {count:,.0f} origins)"
        if count >= 10
        else (f"{bits:.2f} bits (as among {count:.1f} origins)")
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _and(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


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
    title = f"Where does money come from? {len(names)} ledger{'s' * (len(names) != 1)} compared"
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
        "proven, or by draws. Intervals of drawn bits miss with the stated probability; "
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
