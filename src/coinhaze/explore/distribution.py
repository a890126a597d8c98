"""All coins of a ledger by bits: histogram, place of one coin, field of bits and steps, curve."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.explore.models import (
    Density,
    Histogram,
    Outlier,
    Place,
)
from coinhaze.explore.query import Settings
from coinhaze.measures import Scores
from coinhaze.measures.scores import ZERO

WIDTH = 0.25  # bits of a bar
EVERY = 2_000  # coins of which each is listed
COLUMNS, ROWS, MAX_OUTLIERS, POINTS = 160, 100, 500, 200
FAR = 20  # times the median: the farthest asks for a logarithmic axis


def counted(scores: Scores) -> Bools:
    """Tell which rows enter the figures: those with an answer that somebody holds."""
    found: Bools = ~np.isnan(scores.bits) & ~scores.burnt
    return found


def histogram_of(scores: Scores) -> Histogram:
    """Count coins by bits: those at exactly 0, then bars of a quarter of a bit.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers(
    ...     [("a", "c", 1), ("b", "c", 1), ("a", "d", 1)])
    >>> histogram_of(coinhaze.score(ledger)).zeros
    1
    """
    return histogram_of_bits(scores.rising)


def histogram_of_bits(bits: Floats) -> Histogram:
    """Count sorted bits."""
    zeros = int(np.searchsorted(bits, 0.0, side="right"))
    some = bits[zeros:]
    bars = _bar(some)
    return Histogram(
        width=WIDTH,
        zeros=zeros,
        counts=tuple(np.bincount(bars).tolist()) if len(some) else (),
        values=tuple(bits.tolist()) if len(bits) <= EVERY else None,
    )


def _bar(bits: Floats) -> np.typing.NDArray[np.int64]:
    # Each bar holds its upper end: 0.25 bits are in the first. Roundings do not move a coin up.
    return np.maximum(np.ceil(bits / WIDTH - 1e-9).astype(np.int64) - 1, 0)


def place_of(scores: Scores, bits: float) -> Place:
    """Tell where some bits stand among all coins."""
    return place_among(scores.rising, bits)


def place_among(every: Floats, bits: float) -> Place:
    """Tell where some bits stand among those of all coins, which rise."""
    at = 0.0 if bits <= ZERO else bits
    # A coin is not harder than itself: its own roundings are not counted.
    fewer = int(np.searchsorted(every, at - ZERO, side="left")) if at else 0
    share = fewer / len(every) if len(every) else 0.0
    return Place(
        bin=None if at == 0 else int(_bar(np.array([at]))[0]), fewer=share, coins=len(every)
    )


def density_of(scores: Scores, *, ledger: str, settings: Settings) -> Density:
    """Count coins by bits and steps, and name those that stand alone."""
    retained = np.flatnonzero(counted(scores) & np.isfinite(scores.steps))

    def names_of(rows: Ints) -> list[str]:
        found: list[str] = scores.chain.graph.names.of(scores.nodes[retained[rows]]).to_pylist()
        return found

    figures = scores.bits[retained], scores.steps[retained]
    return density_among(*figures, names_of, ledger=ledger, settings=settings)


def density_among(
    bits: Floats,
    steps: Floats,
    names_of: Callable[[Ints], list[str]],
    *,
    ledger: str,
    settings: Settings,
) -> Density:
    """Count coins by bits and steps; `names_of` names those that stand alone, by their places."""
    bits = np.maximum(bits, 0.0)
    bits_high, steps_high = _end(bits, 1.0), _end(steps, 1.0)
    low = float(np.floor(steps.min(initial=1.0)))
    column = np.minimum((bits / bits_high * COLUMNS).astype(np.int64), COLUMNS - 1)
    steps_high = max(steps_high, low + 1.0)
    # A few long ways would press all others flat.
    log = len(steps) > 0 and low >= 1 and steps_high > FAR * float(np.median(steps))
    scale = np.log if log else np.asarray
    up = scale(np.maximum(steps, low)) - scale(low)
    row = (up / (scale(steps_high) - scale(low)) * ROWS).astype(np.int64)
    cell = np.minimum(row, ROWS - 1) * COLUMNS + column
    counts = np.bincount(cell, minlength=COLUMNS * ROWS)
    alone = _lone(counts, cell)
    rows = zip(names_of(alone), bits[alone].tolist(), steps[alone].tolist(), strict=True)
    return Density(
        ledger=ledger, settings=settings, columns=COLUMNS, rows=ROWS, bits_low=0.0,
        bits_high=bits_high, steps_low=low, steps_high=steps_high, steps_log=log,
        counts=tuple(counts.tolist()),
        outliers=tuple(Outlier(name=n, bits=b, steps=s) for n, b, s in rows),
    )  # fmt: skip


def _end(values: Floats, minimum: float) -> float:
    return max(float(np.ceil(values.max(initial=0.0))), minimum)


def _lone(counts: Ints, cell: Ints) -> Ints:
    """Find coins with the fewest neighbours in the cells around theirs, where those are few."""
    field = np.pad(counts.reshape(ROWS, COLUMNS), 2)
    around = sum(field[r : r + ROWS, c : c + COLUMNS] for r in range(5) for c in range(5)).ravel()  # type: ignore[union-attr]
    crowd = around[cell]
    few = np.flatnonzero(crowd <= 3)
    order = few[np.argsort(crowd[few], kind="stable")]
    return np.sort(order[:MAX_OUTLIERS])


def curve_of(scores: Scores) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Give points of the share of coins with at most so many bits; 200 of them at most."""
    return curve_among(scores.rising)


def curve_among(bits: Floats) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Give points of the share of coins with at most so many bits, which rise."""
    if not len(bits):
        return (), ()
    rank = np.unique(np.linspace(0, len(bits) - 1, POINTS).round().astype(np.int64))
    # At a point all coins of the same bits are counted.
    upto = np.searchsorted(bits, bits[rank], side="right") / len(bits)
    point, first = np.unique(bits[rank], return_index=True)
    return tuple(point.tolist()), tuple(upto[first].tolist())
