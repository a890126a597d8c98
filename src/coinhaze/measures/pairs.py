"""Two coins: how much of where they came from they have in common.

For rows p and q of B over the same sources, with pi a source's share of all openings:

- collision, sum of p q: the probability that two independent walks end in one source;
- overlap, sum of min(p, q): 1 if both have the same origins in the same shares, 0 if none is
  common;
- divergence (Jensen-Shannon), in bits: 0 if they are the same, 1 if nothing is shared;
- evidence, log2 of the sum of p q / pi: how many bits a common source speaks for one past, rare
  sources more than common ones; null where nothing is shared, and where amounts are hidden.

*Intervals* bound what was not followed. Let a and b be the mass missing from p and q, so that the
true rows are p + d and q + e, none negative, with sums a and b.

- collision: between sum p q and that + b max p + a max q + a b. Evidence likewise, with p / pi.
- overlap: min(p + d, q + e) <= min(p, q) + d + e, so at most a + b more.
- divergence is a sum of f(p, q) = (p log2(2p / (p + q)) + q log2(2q / (p + q))) / 2, which is
  subadditive and at most (p + q) / 2: so at most (a + b) / 2 more. Below: with the missing mass at
  places of its own each row is at divergence a (or b) at most from the true one, and the root of
  the divergence is a metric; and Fano's inequality, D >= 1 - h((1 - T) / 2) for the variation T.

Rounding, about 1e-12 of each figure, is not in them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Floats, Ints
from coinhaze.errors import UnknownName
from coinhaze.graph import TransactionGraph
from coinhaze.ledger.frames import ArrowTable
from coinhaze.measures.elementary import log2
from coinhaze.observer.chain import Outcomes
from coinhaze.observer.owners import Observer

NAIVE = "naive"
FIGURES = ("collision", "overlap", "divergence", "evidence")


@dataclass(frozen=True)
class FigureInterval:
    """A figure and the interval it is proven to lie in; None where it has no value."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, eq=False)
class SourceRow:
    """One coin's row of B: outcomes in order of number, probabilities, what is missing."""

    outcomes: Ints
    probability: Floats
    missing: float = 0.0

    def grouped(self, group: Ints) -> SourceRow:
        """Merge outcomes."""
        used, number = np.unique(group[self.outcomes], return_inverse=True)
        return SourceRow(used, sums_by(number, self.probability, len(used)), self.missing)


def sums_by(group: Ints, values: Floats, groups: int) -> Floats:
    """Add up the values of each group."""
    return np.bincount(group, values, minlength=groups).astype(np.float64)


@dataclass(frozen=True)
class PairFigures:
    """What two coins have in common."""

    collision: FigureInterval
    overlap: FigureInterval
    divergence: FigureInterval
    evidence: FigureInterval


def compare_rows(p: SourceRow, q: SourceRow, prior: Floats | None) -> PairFigures:
    """Compare two rows; `prior` is each outcome's share of all openings, None if it is hidden.

    >>> one = SourceRow(np.array([0, 1]), np.array([0.5, 0.5]))
    >>> other = SourceRow(np.array([1]), np.array([1.0]))
    >>> figures = compare_rows(one, other, np.array([0.75, 0.25]))
    >>> figures.collision.value, figures.overlap.value, figures.evidence.value
    (0.5, 0.5, 1.0)
    """
    _, here, there = np.intersect1d(p.outcomes, q.outcomes, return_indices=True)
    x, y = p.probability[here], q.probability[there]
    a, b = p.missing, q.missing
    product = x * y
    high = _maximum(p.probability, q.probability, a, b, 1.0)
    collision = _within(float(product.sum()), high)
    shared = float(np.minimum(x, y).sum())
    overlap = _within(shared, a + b)
    return PairFigures(
        collision,
        overlap,
        _divergence(p, q, x, y, overlap),
        _evidence(p, q, product, here, prior),
    )


def _maximum(p: Floats, q: Floats, a: float, b: float, rarest: float) -> float:
    """Bound what missing mass adds to a sum of products."""
    return b * float(p.max(initial=0.0)) + a * float(q.max(initial=0.0)) + a * b / rarest


def _within(value: float, more: float) -> FigureInterval:
    value = min(value, 1.0)
    return FigureInterval(value, value, min(1.0, value + more))


def _divergence(
    p: SourceRow, q: SourceRow, x: Floats, y: Floats, overlap: FigureInterval
) -> FigureInterval:
    a, b = p.missing, q.missing
    middle = x + y
    # Where only one coin can come from a source, it adds half its probability.
    apart = (p.probability.sum() - x.sum() + q.probability.sum() - y.sum()) / 2
    both = (x * log2(2 * x / middle) + y * log2(2 * y / middle)).sum() / 2
    found = max(float(apart + both), 0.0)
    high = min(1.0, found + (a + b) / 2)
    root = math.sqrt(min(1.0, found + (a + b) / 2)) - math.sqrt(a) - math.sqrt(b)
    assert overlap.high is not None
    wrong = overlap.high / 2  # how often the better guess at which coin it was is wrong, at most
    fano = 1.0 + sum(e * math.log2(e) for e in (wrong, 1 - wrong) if e > 0)
    low = found if a == b == 0 else max(root, 0.0) ** 2
    low = min(high, max(low, fano if a + b > 0 else 0.0))
    return FigureInterval(min(max(found, low), high), low, high)


def _evidence(
    p: SourceRow, q: SourceRow, product: Floats, here: Ints, prior: Floats | None
) -> FigureInterval:
    if prior is None:
        return FigureInterval(None, None, None)
    total = float((product / prior[p.outcomes[here]]).sum())
    more = 0.0
    if p.missing + q.missing > 0:
        rare = _maximum(
            p.probability / prior[p.outcomes],
            q.probability / prior[q.outcomes],
            p.missing,
            q.missing,
            float(prior.min()),
        )
        more = rare
    low = math.log2(total) if total > 0 else None
    return FigureInterval(low, low, math.log2(total + more) if total + more > 0 else None)


@dataclass(frozen=True, eq=False)
class Seen:
    """The rows of coins as one observer sees them."""

    observer: Observer | None  # None is the naive one
    outcomes: Outcomes
    prior: Floats | None
    rows: tuple[SourceRow, ...]

    @property
    def name(self) -> str:
        """The observer's name."""
        return NAIVE if self.observer is None else self.observer.name


@dataclass(frozen=True, eq=False)
class SharedOrigins(ArrowTable):
    """What some coins have in common, pair by pair, for the naive and for informed observers.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers(
    ...     [("a", "x", 1), ("b", "x", 1), ("b", "y", 1)])
    >>> coinhaze.shared(ledger, ["x", "y"]).pair("x", "y").collision.value
    0.5
    """

    names: tuple[str, ...]
    seen: tuple[Seen, ...]
    graph: TransactionGraph
    settings: dict[str, object]
    notes: tuple[str, ...] = ()

    def pair(self, one: str, other: str, observer: str = NAIVE) -> PairFigures:
        """Give the figures of two of the coins."""
        found = self._by(observer)
        return compare_rows(found.rows[self._at(one)], found.rows[self._at(other)], found.prior)

    def matrix(self, figure: str, observer: str = NAIVE) -> Floats:
        """Give one figure of all pairs, in the order of `names`; NaN where it has none."""
        found = self._by(observer)
        n = len(self.names)
        matrix = np.full((n, n), np.nan)
        for i in range(n):
            for j in range(i, n):
                value = getattr(compare_rows(found.rows[i], found.rows[j], found.prior), figure)
                if value.value is not None:
                    matrix[i, j] = matrix[j, i] = value.value
        return matrix

    def common(
        self, one: str, other: str, observer: str = NAIVE, *, limit: int | None = None
    ) -> pa.Table:
        """Give the common origins of two coins, the most telling first.

        `weight` is the origin's part of the sum that evidence is the logarithm of; where amounts
        are hidden, its part of the collision.
        """
        found = self._by(observer)
        p, q = found.rows[self._at(one)], found.rows[self._at(other)]
        both, here, there = np.intersect1d(p.outcomes, q.outcomes, return_indices=True)
        x, y = p.probability[here], q.probability[there]
        prior = None if found.prior is None else found.prior[both]
        weight = x * y if prior is None else x * y / prior
        order = np.argsort(-weight, kind="stable")[:limit]
        share = pa.nulls(len(order), pa.float64()) if prior is None else pa.array(prior[order])
        return pa.table(
            {
                "origin": found.outcomes.take(pa.array(both[order])),
                "share_of_first": x[order],
                "share_of_second": y[order],
                "share_of_openings": share,
                "weight": weight[order] / max(float(weight.sum()), 1e-300),
            }
        )

    def to_arrow(self) -> pa.Table:
        """Give a table, a row for each observer and pair."""
        return pa.Table.from_pylist(self.rows(), schema=_SCHEMA)

    def rows(self) -> list[dict[str, object]]:
        """Give each observer's figures of each pair as plain values."""
        found: list[dict[str, object]] = []
        for seen in self.seen:
            for (i, one), (j, other) in combinations(enumerate(self.names), 2):
                figures = compare_rows(seen.rows[i], seen.rows[j], seen.prior)
                row: dict[str, object] = {"observer": seen.name, "first": one, "second": other}
                for name in FIGURES:
                    bounded: FigureInterval = getattr(figures, name)
                    row[name] = bounded.value
                    row[f"{name}_low"], row[f"{name}_high"] = bounded.low, bounded.high
                found.append(row)
        return found

    def _at(self, name: str) -> int:
        if name not in self.names:
            raise UnknownName(f"{name} was not compared: one of {', '.join(self.names[:5])}")
        return self.names.index(name)

    def _by(self, observer: str) -> Seen:
        for seen in self.seen:
            if seen.name == observer:
                return seen
        raise UnknownName(
            f"no observer {observer!r}: one of {', '.join(seen.name for seen in self.seen)}"
        )


_SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("observer", "first", "second")]
    + [(f"{name}{end}", pa.float64()) for name in FIGURES for end in ("", "_low", "_high")]
)
