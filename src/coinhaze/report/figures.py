"""Figures: the distribution of bits, and bits against steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from coinhaze.errors import UsageError
from coinhaze.measures import Scores

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
        raise UsageError("figures need matplotlib: pip install matplotlib") from None
    return plt
