"""Figures: one style, reproducible files, figures inside a page, and the plots of one ledger."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from coinhaze.errors import UsageError
from coinhaze.measures import Scores
from coinhaze.report.files import write_whole
from coinhaze.report.page import Html, escape

COLUMN = 3.4  # inches: the width of a printed column
INK, SOFT, LINE = "#1b242c", "#55636f", "#d5dce2"
PAPER = "#fdfdfd"  # behind shades, which are designed for a light background whatever the page's is
# The colours of Okabe and Ito, distinguishable with colour vision deficiencies ("Color Universal
# Design", 2008), without their yellow, which is invisible on white.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (5, 1, 1, 1)), (0, (8, 2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LONGEST = 30  # letters of a name in a figure
_STYLE = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same everywhere
    "font.size": 7.5,
    "axes.labelsize": 7.5,
    "axes.titlesize": 8,
    "axes.titlelocation": "left",
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.3,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "text.parse_math": False,  # a name with $ in it is a name
    "axes.formatter.use_mathtext": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "coinhaze",
    "pdf.fonttype": 42,
    "path.simplify": True,
}


class Line(NamedTuple):
    """The style of the lines of one ledger."""

    colour: str
    dash: Any
    marker: str


@dataclass(frozen=True)
class Figure:
    """A figure that was drawn: what it shows, and its paths as PNG, SVG and PDF."""

    name: str
    title: str
    says: str
    measured: str  # which ledgers, how many coins, by which method
    paths: tuple[Path, ...]

    @property
    def caption(self) -> str:
        """The complete caption."""
        return f"{self.title}. {self.says} {self.measured}"

    @property
    def svg(self) -> str:
        """The figure as SVG text."""
        path = next(p for p in self.paths if p.suffix == ".svg")
        return path.read_text(encoding="utf-8")


@contextmanager
def drawing() -> Iterator[Any]:
    """Apply the common style; yield matplotlib's pyplot module."""
    plt = pyplot()
    # A user's own matplotlib settings must not change a figure, so they are set aside.
    with plt.style.context("default"), plt.rc_context(_STYLE):
        yield plt


def axes_or_new(ax: Any) -> Any:
    """Return the axes, or those of a new figure as wide as a printed column."""
    if ax is not None:
        return ax
    with drawing() as plt:
        return plt.subplots(figsize=(COLUMN, 2.4), layout="constrained")[1]


def line_of(number: int) -> Line:
    """Return the style of the ledger with this number: colour, dash and marker all differ.

    >>> line_of(0).colour, line_of(7).colour == line_of(0).colour, line_of(7) == line_of(0)
    ('#0072b2', True, False)
    """
    return Line(
        COLOURS[number % len(COLOURS)],
        DASHES[number % len(DASHES)],
        MARKERS[(number + number // len(COLOURS)) % len(MARKERS)],
    )


def short_labels(names: Sequence[str]) -> list[str]:
    """Make names fit for a figure: short, on one line, left to right, and distinct.

    >>> short_labels(["dai", "a\\nb", "x" * 40, "x" * 41])
    ['dai', 'a b', 'xxxxxxxxxxxxxx...xxxxxxxxxxxxx', 'xxxxxxxxxxxx...xxxxxxxxxxx (2)']
    """
    taken: dict[str, int] = {}
    labels = []
    for name in names:
        plain = _one_way("".join(_plain(c) for c in name).strip()) or "(no name)"
        label, number = _cut(plain, LONGEST), 1
        while label in taken:
            number += 1
            end = f" ({number})"
            label = _cut(plain, LONGEST - len(end)) + end
        taken[label] = number
        labels.append(label)
    return labels


def _one_way(text: str) -> str:
    """Isolate a right-to-left name so that it does not reorder the text beside it."""
    if any(unicodedata.bidirectional(c) in ("R", "AL") for c in text):
        return f"\u200e{text}\u200e"
    # Labels that begin so are omitted from legends.
    return f" {text}" if text.startswith("_") else text


def _plain(letter: str) -> str:
    kind = unicodedata.category(letter)
    if kind[0] == "Z" or letter in "\n\r\t":
        return " "
    if kind[0] == "C":
        return ""
    return letter if _has_glyph(letter) else "\ufffd"


def _has_glyph(letter: str) -> bool:
    if letter.isascii():
        return True
    pyplot()
    from matplotlib import font_manager

    font = font_manager.get_font(font_manager.findfont("DejaVu Sans"))
    return bool(font.get_char_index(ord(letter)))


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    head = (limit - 2) // 2
    return f"{text[:head]}...{text[len(text) - (limit - 3 - head) :]}"


def legend_below(ax: Any) -> None:
    """Put the legend under the axes, where it hides nothing; two columns where names are short."""
    handles, labels = ax.get_legend_handles_labels()
    if not handles:
        return
    from matplotlib.transforms import ScaledTranslation

    columns = 2 if max(map(len, labels)) <= 24 and len(labels) > 1 else 1
    # Far enough below the axes for ticks and the axis label, whatever the axes' height.
    points = 30 if ax.get_xlabel() else 16
    below = ScaledTranslation(0, -points / 72, ax.figure.dpi_scale_trans)
    ax.legend(
        handles, labels, ncols=columns, loc="upper left", bbox_to_anchor=(0.0, 0.0),
        bbox_transform=ax.transAxes + below, borderaxespad=0.0, borderpad=0.0, columnspacing=1.2,
    )  # fmt: skip


def save_figure(figure: Any, folder: Path, name: str) -> tuple[Path, ...]:
    """Write a figure as PNG, SVG and PDF with reproducible bytes, and close it."""
    with drawing():
        # Laid out once for all formats: layout takes longer than writing.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
    paths = tuple(save_picture(figure, folder / f"{name}.{kind}") for kind in ("png", "svg", "pdf"))
    pyplot().close(figure)
    return paths


def save_picture(figure: Any, path: Path) -> Path:
    """Write a figure to a .png, .svg or .pdf without the date; it is left open."""
    kind = path.suffix.removeprefix(".")
    # Anything that depends on the date or the machine would make the bytes differ.
    blank = {
        "png": {"Software": None},
        "svg": {"Date": None, "Creator": None},
        "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    }[kind]
    with drawing():
        write_whole(path, lambda p: figure.savefig(p, format=kind, dpi=200, metadata=blank))
    return path


BLUE, ORANGE, GREY = "#0b5cad", "#b5420a", "#55636f"
MANY = 2000


def plot_bits(scores: Scores, *, ax: Any = None) -> Any:
    """Plot how many coins have how many bits; exactly 0 bits has its own bar."""
    ax = ax or new_axes()
    bits = scores.bits[~np.isnan(scores.bits)]
    certain = int(np.sum(bits < 1e-9))
    rest = bits[bits >= 1e-9]
    top = max(1.0, float(bits.max(initial=1.0)))
    width = 0.25 if top <= 16 else top / 64
    edges = np.arange(0, top + width, width)
    ax.hist(rest, bins=edges, color=BLUE, edgecolor="white", linewidth=0.5)
    if certain:
        ax.bar([-width], [certain], width=width * 0.8, color=ORANGE)
        ax.annotate(
            f"one origin: {certain:,}",
            (-width, certain),
            xytext=(6, 2),
            textcoords="offset points",
            color=ORANGE,
        )
    if len(bits):
        median = float(np.median(bits))
        ax.axvline(median, color=GREY, linestyle="--", linewidth=1)
        ax.annotate(
            f"median {median:.2f}",
            (median, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 3),
            textcoords="offset points",
            color=GREY,
            horizontalalignment="center",
        )
    ax.set_xlabel("untraceability (bits)")
    ax.set_ylabel("coins")
    ax.spines[["top", "right"]].set_visible(False)
    ax.margins(y=0.12)
    return ax


def plot_bits_against_steps(scores: Scores, *, ax: Any = None) -> Any:
    """Plot bits against expected steps: one dot per coin, or shades of density for many."""
    ax = ax or new_axes()
    known = ~np.isnan(scores.bits)
    bits, steps = scores.bits[known], scores.steps[known]
    if len(bits) > MANY:
        shades = ax.hexbin(steps, bits, gridsize=60, bins="log", cmap="cividis_r", mincnt=1)
        ax.figure.colorbar(shades, ax=ax, label="coins")
    else:
        ax.scatter(steps, bits, s=12, color=BLUE, alpha=0.5, linewidths=0)
    ax.set_xlabel("expected steps back")
    ax.set_ylabel("untraceability (bits)")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def save_overview(scores: Scores, path: Path, *, title: str) -> None:
    """Save both plots side by side as one image."""
    plt = pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    plot_bits(scores, ax=axes[0])
    plot_bits_against_steps(scores, ax=axes[1])
    figure.suptitle(title, fontsize=11)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def new_axes() -> Any:
    """Return the axes of a new figure."""
    return pyplot().subplots(layout="constrained")[1]


def pyplot() -> Any:
    """Return matplotlib's pyplot module; the error without it says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise UsageError("figures need matplotlib: pip install 'coinhaze[figures]'") from None
    return plt


# The same hues for a dark background, lighter, to preserve the contrast of lines.
_DARK = ("#5aaee8", "#ff9152", "#3cc79b", "#e6a8cb", "#9bd6f7", "#f4bd52", "#e6ebef")
_NAMES = {
    INK: "var(--ink)",
    SOFT: "var(--soft)",
    LINE: "var(--line)",
    "#ffffff": "none",
    **{colour: f"var(--series-{k})" for k, colour in enumerate(COLOURS)},
}


def _variables(colours: tuple[str, ...]) -> str:
    return " ".join(f"--series-{k}: {colour};" for k, colour in enumerate(colours))


FIGURE_STYLE = f"""
:root {{ {_variables(COLOURS)} }}
@media (prefers-color-scheme: dark) {{ :root {{ {_variables(_DARK)} }} }}
.figures {{ display: grid; gap: 1.5rem 2rem; align-items: start;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); }}
figure {{ margin: 1rem 0; min-width: 0; }}
figure svg {{ width: 100%; height: auto; max-width: 34rem; display: block; }}
figure.broad {{ overflow-x: auto; }}
figure.broad svg {{ max-width: 100%; min-width: 38rem; }}
.wide td, .wide th {{ overflow-wrap: break-word; max-width: 18rem; }}
summary {{ cursor: pointer; }}
figcaption {{ color: var(--soft); font-size: .85rem; overflow-wrap: anywhere; }}
figcaption b {{ color: var(--ink); }}
.lead {{ font-size: 1.1rem; max-width: 44rem; }}
ul {{ max-width: 44rem; padding-left: 1.2rem; }} li {{ margin: .4rem 0; }}
code {{ overflow-wrap: anywhere; }} pre {{ overflow-x: auto; }}
"""


def inline_figure(figure: Figure) -> Html:
    """Return a figure as part of a page, with its title and caption below.

    Ids inside are prefixed with the figure's own name, since a page has several figures; colours
    become the page's, which differ on a dark background.
    """
    svg = figure.svg
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL)
    mark = re.sub(r"\W+", "-", figure.name)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{mark}-\1"', svg)
    svg = re.sub(r'href="#', f'href="#{mark}-', svg)
    svg = re.sub(r"url\(#", f"url(#{mark}-", svg)
    svg = re.sub(r"#[0-9a-f]{6}\b", lambda m: _NAMES.get(m.group(), m.group()), svg)
    # Two panels side by side need the full width of the page.
    width = float(re.findall(r'viewBox="0 0 ([\d.]+) ', svg)[0])
    svg = re.sub(r'^<svg ([^>]*?)\bheight="[^"]*"', r"<svg \1", svg, count=1)
    svg = re.sub(r'^<svg ([^>]*?)\bwidth="[^"]*"', r"<svg \1", svg, count=1)
    label = f'role="img" aria-label="{escape(figure.title)}"'
    svg = svg.replace("<svg ", f"<svg {label} ", 1)
    kind = ' class="broad"' if width > 300 else ""
    words = f"<b>{escape(figure.title)}.</b> {escape(figure.says)}"
    words += f"<details><summary>What was measured</summary>{escape(figure.measured)}</details>"
    return Html(f"<figure{kind}>\n{svg}\n<figcaption>{words}</figcaption></figure>\n")
