"""Plots that compare ledgers: bits, steps, the likeliest source, exposure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from coinhaze.amounts import Bools, Floats
from coinhaze.measures import Scores
from coinhaze.measures.summary import AT_LEAST
from coinhaze.report.figures import PAPER, Line, axes_or_new, legend_below, line_of, short_labels
from coinhaze.report.score_files import ScoreFile

BITS, STEPS = "untraceability (bits)", "expected steps back"
POINTS = 500  # of a running share: more than a printed column can show
MANY = 2000  # number of coins from which density is drawn instead of dots
FEW = 200  # number of dots from which they are rasterised: as shapes they would make files large
AT_MOST = "\u2264"  # the likeliest source may stand for several: its probability is an upper bound
STEP_BINS = 24  # per factor of ten

Looks: TypeAlias = Mapping[str, tuple[str, Line]]


def looks_of(names: Sequence[str]) -> Looks:
    """Return a label and a style for each ledger, for use in all figures."""
    distinct = list(dict.fromkeys(names))
    return {
        name: (label, line_of(number))
        for number, (name, label) in enumerate(zip(distinct, short_labels(distinct), strict=True))
    }


def plot_bits_shares(
    files: Sequence[ScoreFile], *, ax: Any = None, looks: Looks | None = None
) -> Any:
    """Plot the share of coins with at most so many bits, one line per ledger."""
    ax = axes_or_new(ax)
    ax.set_xlabel(BITS)
    _running(ax, files, lambda file: file.bits[file.held], looks, mark=AT_LEAST)
    ax.set_xlim(left=0)
    return ax


def plot_scores(scores: Scores, ax: Any = None) -> Any:
    """Draw what share of scored nodes has at most so many bits."""
    ax = axes_or_new(ax)
    bits, share = running_share(scores.bits)
    ax.step([0.0, *bits], [0.0, *share], where="post")
    ax.set(xlabel=BITS, ylabel="share of nodes", ylim=(0, 1.02))
    ax.set_xlim(left=0)
    summary = scores.summary()
    if summary.miss > 0:
        ax.set_title(f"drawn, not proven: of the intervals {summary.missing_words()}", fontsize=8)
    return ax


def plot_steps_shares(
    files: Sequence[ScoreFile], *, ax: Any = None, looks: Looks | None = None
) -> Any:
    """Plot the share of coins with at most so many expected steps, one line per ledger."""
    ax = axes_or_new(ax)
    ax.set_xlabel(STEPS)
    far = _running(ax, files, _steps, looks)
    _steps_axis(ax, far)
    ax.set_xlim(1, max(10.0, far))
    return ax


def plot_top_shares(
    files: Sequence[ScoreFile], *, ax: Any = None, looks: Looks | None = None
) -> Any:
    """Plot the share of coins whose likeliest source has at most a given probability."""
    ax = axes_or_new(ax)
    ax.set_xlabel("probability of the likeliest source")
    top = lambda file: file.top_probability[file.held]  # noqa: E731
    _running(ax, files, top, looks, far=1.0, mark=AT_MOST)
    ax.set_xlim(0, 1)
    return ax


def plot_exposures(
    files: Sequence[ScoreFile], *, ax: Any = None, looks: Looks | None = None
) -> Any:
    """Plot the share of coins with at most a given exposure to the listed sources."""
    ax = axes_or_new(ax)
    ax.set_xlabel("exposure (share that came from the list)")
    _running(ax, [file for file in files if file.exposure is not None], _exposure, looks, far=1.0)
    ax.set_xlim(0, 1)
    return ax


def plot_bits(files: Sequence[ScoreFile], *, ax: Any = None, looks: Looks | None = None) -> Any:
    """Plot the distribution of positive bits; the legend states the share of the other coins.

    Heights are shares of all coins, including those proven to have one origin.
    """
    ax = axes_or_new(ax)
    top = max([1.0, *(float(f.bits[f.held].max(initial=0.0)) for f in files)])
    width = 0.25 if top <= 20 else top / 80
    edges = np.arange(np.ceil(top / width) + 1) * width

    def values(file: ScoreFile) -> tuple[Floats, str]:
        one = one_origin(file)
        remark = f"{100 * one.mean():.0f} % at 0 bits" if len(one) else "no coin"
        return file.bits[file.held][~one], remark

    ax.set_xlabel(BITS)
    _outlines(ax, files, values, edges, looks, mark=AT_LEAST)
    return ax


def plot_steps(files: Sequence[ScoreFile], *, ax: Any = None, looks: Looks | None = None) -> Any:
    """Plot the distribution of expected steps, in bins that grow by a constant factor."""
    ax = axes_or_new(ax)
    top = max([10.0, *(float(_steps(f).max(initial=1.0)) for f in files)])
    edges = 10 ** (np.arange(np.ceil(np.log10(top) * STEP_BINS) + 2) / STEP_BINS)

    def values(file: ScoreFile) -> tuple[Floats, str]:
        steps = _steps(file)
        return steps, f"median {np.median(steps):.3g}" if len(steps) else "no figures"

    ax.set_xlabel(STEPS)
    _outlines(ax, files, values, edges, looks)
    _steps_axis(ax, float(edges[-1]))
    return ax


def plot_bits_against_steps(file: ScoreFile, *, ax: Any = None, line: Line | None = None) -> Any:
    """Plot bits against expected steps: one dot per coin, or shades of density for many."""
    ax = axes_or_new(ax)
    known = ~np.isnan(file.steps[file.held])
    bits, steps = file.bits[file.held][known], file.steps[file.held][known]
    top = max(1.0, float(bits.max(initial=0.0)))
    far = max(10.0, float(steps.max(initial=1.0)))
    ax.set_xlim(0.9, far * 1.15)
    ax.set_ylim(-0.04 * top, top * 1.05)
    _steps_axis(ax, far)
    if len(bits) > MANY:
        _density(ax, steps, bits, one_origin(file)[known])
    else:
        look = line or line_of(0)
        ax.scatter(
            steps, bits, s=9, marker=look.marker, color=look.colour, alpha=0.5, linewidths=0,
            rasterized=len(bits) > FEW,
        )  # fmt: skip
    ax.set_xlabel(STEPS)
    ax.set_ylabel(BITS)
    return ax


def marked(label: str, file: ScoreFile, mark: str) -> str:
    """Append the sign of bounds to a ledger's label, where its figures are bounds."""
    return f"{label} ({mark})" if mark and file.lower_bounds else label


def _density(ax: Any, steps: Floats, bits: Floats, one: Bools) -> None:
    """Shade cells by the number of coins in them, as an image whose size is independent of it."""
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import FuncFormatter

    (near, far), (floor, top) = ax.get_xlim(), ax.get_ylim()
    across = np.logspace(np.log10(near), np.log10(far), 61)
    # The lowest row is for coins of one origin alone, which are often the majority.
    up = np.concatenate([[floor], np.linspace(0, top, 41)])
    placed = np.where(one, floor / 2, np.maximum(bits, 0.0))
    cells = np.histogram2d(placed, steps, bins=(up, across))[0]
    ax.set_facecolor(PAPER)
    shades = ax.pcolormesh(
        across, up, np.ma.masked_equal(cells, 0), cmap="cividis_r", rasterized=True,
        norm=LogNorm(1, max(10.0, float(cells.max()))),
    )  # fmt: skip
    bar = ax.figure.colorbar(
        shades, ax=ax, pad=0.02, aspect=18, format=FuncFormatter(lambda v, _: _in_short(v))
    )
    bar.set_label("coins in a cell")
    bar.solids.set_rasterized(True)
    bar.outline.set_linewidth(0.6)
    bar.minorticks_off()


def one_origin(file: ScoreFile) -> Bools:
    """Return which of the coins in figures are proven to have one origin."""
    return file.one_origin[file.held]


def _in_short(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value / 1e3:g}k" if value >= 1e3 else f"{value:g}"


def _steps(file: ScoreFile) -> Floats:
    steps = file.steps[file.held]
    return steps[~np.isnan(steps)]


def _exposure(file: ScoreFile) -> Floats:
    assert file.exposure is not None
    return file.exposure[file.held]


def _running(
    ax: Any,
    files: Sequence[ScoreFile],
    values: Callable[[ScoreFile], Floats],
    looks: Looks | None,
    *,
    far: float = 0.0,
    mark: str = "",
) -> float:
    """Plot for each value how many coins have at most that; return how far the lines go."""
    known = looks or looks_of([file.name for file in files])
    found = [running_share(values(file)) for file in files]
    far = max([far, *(float(across[-1]) for across, _ in found if len(across))])
    for file, (across, up) in zip(files, found, strict=True):
        label, line = known[file.name]
        label = marked(label, file, mark)
        style = {"color": line.colour, "linestyle": line.dash}
        if len(across) == 0:
            ax.plot([], [], label=f"{label}: no figures", **style)
            continue
        # From 0 up to the first value, and on to where the longest line ends.
        x, y = [across[0], *across, far], [0.0, *(100 * up), 100.0]
        ax.plot(x, y, drawstyle="steps-post", label=label, clip_on=False, **style)
    ax.set_ylim(0, 100)
    ax.set_ylabel("coins with at most that (%)")
    legend_below(ax)
    return far


def running_share(values: Floats) -> tuple[Floats, Floats]:
    """Return values and the share of all that is at most each, thinned to visible resolution.

    >>> running_share(np.array([0.0, 0.0, 2.0, 1.0]))
    (array([0., 1., 2.]), array([0.5 , 0.75, 1.  ]))
    """
    ordered = np.sort(values[~np.isnan(values)])
    if len(ordered) == 0:
        return ordered, ordered
    last = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)
    if len(last) > 2 * POINTS:
        # Evenly by share and by value: neither a steep nor a flat part may look broken.
        by_share = np.searchsorted(last, np.linspace(0, len(ordered) - 1, POINTS))
        by_value = np.searchsorted(ordered[last], np.linspace(ordered[0], ordered[-1], POINTS))
        last = last[np.unique(np.concatenate([by_share, by_value]))]
    return ordered[last], (last + 1) / len(ordered)


def _outlines(
    ax: Any,
    files: Sequence[ScoreFile],
    values: Callable[[ScoreFile], tuple[Floats, str]],
    edges: Floats,
    looks: Looks | None,
    mark: str = "",
) -> None:
    """Plot outlines of histograms, heights in percent of all coins."""
    known = looks or looks_of([file.name for file in files])
    for file in files:
        label, line = known[file.name]
        label = marked(label, file, mark)
        found, remark = values(file)
        count = np.histogram(found, bins=edges)[0]
        whole = max(1, int(file.held.sum()))
        ax.stairs(
            100 * count / whole, edges, color=line.colour, linestyle=line.dash, linewidth=1.2,
            label=f"{label}: {remark}",
        )  # fmt: skip
    # Many coins often share one value, such as two steps; a square root shows the others too.
    ax.set_yscale("function", functions=(lambda y: np.sqrt(np.maximum(y, 0.0)), np.square))
    _percent_ticks(ax)
    ax.set_ylabel("coins in a bin (%, by root)")
    ax.set_xlim(edges[0], edges[-1])
    legend_below(ax)


def _percent_ticks(ax: Any) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator

    highest = max([1e-9, *(float(p.get_data().values.max(initial=0.0)) for p in ax.patches)])
    top = highest * 1.08
    ladder = np.array([0, 0.1, 0.5, 1, 2, 5, 10, 20, 40, 70, 100])
    # Ticks closer than a ninth of the axis would overlap.
    ticks = [0.0]
    for tick in ladder[(ladder > 0) & (ladder <= top)]:
        if np.sqrt(tick / top) - np.sqrt(ticks[-1] / top) >= 0.11:
            ticks.append(float(tick))
    ax.set_ylim(0, top)
    ax.yaxis.set_major_locator(FixedLocator(ticks))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")


def _steps_axis(ax: Any, far: float) -> None:
    """Put steps on a logarithmic axis labelled with whole numbers."""
    from matplotlib.ticker import FixedLocator, NullLocator

    ax.set_xscale("log")
    far = max(far, 10.0)
    tens = [10.0**k for k in range(int(np.log10(far) + 1e-9) + 1)]
    between = (1, 2, 5) if len(tens) < 4 else (1, 3) if len(tens) < 5 else (1,)
    ticks = sorted({t * m for t in tens for m in between if t * m <= far})
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ax.xaxis.set_minor_locator(NullLocator())
