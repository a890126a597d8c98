"""Bits of all coins that were unspent at the end of each month, since the first block.

While it is made, a tape takes down how many coins and how much value each row won or lost in a
month. Sums of bits over what was unspent follow from these changes alone: no coin is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Floats, Ints
from coinhaze.errors import InputError
from coinhaze.history import files
from coinhaze.history.scores.score import RowScores
from coinhaze.history.tape import Tape
from coinhaze.measures.confidence import MISS, mean_ends
from coinhaze.measures.intervals import ROUNDING

_LN2 = math.log(2.0)
_CARE = 1e-12


@dataclass(frozen=True)
class MonthEnd:
    """What was unspent at the end of a month: coins, value, and mean bits of both.

    Each interval of a mean misses with probability `miss`, 0 where it is proven.
    """

    month: str  # 2013-01
    coins: int
    value: int
    bits_mean: float
    bits_mean_low: float
    bits_mean_high: float
    bits_by_value: float
    bits_by_value_low: float
    bits_by_value_high: float
    miss: float


def changed_rows(tape: Tape) -> Ints:
    """Give the rows that held coins at the end of a month, rising, and some that held none."""
    held = np.zeros(tape.manifest.rows, dtype=np.bool_)
    for rows, _, _, _ in _changes(tape):
        held[rows] = True
    return np.flatnonzero(held)


def _changes(tape: Tape) -> Iterator[tuple[Ints, Ints, Ints, Ints]]:
    """Give rows, coins, values and months of the changes, piece by piece."""
    for piece in tape.manifest.pieces:
        table = tape.table(piece, "changes")
        row, coins, value, month = (
            files.column(table, name).astype(np.int64)
            for name in ("row", "coins", "value", "month")
        )
        yield row, coins, value, month


@dataclass(frozen=True, eq=False)
class _Ends:
    """Of each row its bits, and the ends that hold for a mean but for what draws may miss."""

    bits: Floats
    low: Floats
    high: Floats
    drawn: Floats  # 1 where draws may miss
    below: float  # by how much, in bits
    above: float
    maximum: float

    @classmethod
    def of(cls, scores: RowScores) -> _Ends:
        drawn, maximum = scores.drawn, float(scores.bits_high.max(initial=0.0))
        if drawn is None or not len(scores.bits):
            none = np.zeros(len(scores.bits))
            return cls(scores.bits, scores.bits_low, scores.bits_high, none, 0.0, 0.0, maximum)
        ends = mean_ends(int(scores.about["draws"]), float(scores.miss.max()) or MISS)
        by_draws = ~drawn.alone & np.isfinite(drawn.slack)
        slack = np.where(by_draws, drawn.slack, 0.0)
        return cls(
            bits=scores.bits,
            low=np.where(by_draws, (drawn.nats - slack) / _LN2, scores.bits_low),
            high=np.where(by_draws, (drawn.nats + slack) / _LN2, scores.bits_high),
            drawn=by_draws.astype(np.float64),
            below=ends.below / _LN2,
            above=ends.above / _LN2,
            maximum=maximum,
        )

    def columns(self) -> tuple[Floats, ...]:
        """Give what is summed up."""
        return self.bits, self.low, self.high, self.drawn

    def mean(self, whole: float, sums: Floats, care: float) -> tuple[float, float, float]:
        """Give a mean and its interval, by sums of the columns; `care` is what these are off by."""
        if whole <= 0:
            return 0.0, 0.0, 0.0
        bits, low, high, drawn = (float(s) / whole for s in sums)
        care = care / whole + _CARE * (1.0 + self.maximum)
        low = max(0.0, low - self.below * drawn - care)
        high = max(low, min(high + self.above * drawn, self.maximum) + care)
        return min(max(bits, low), high), low, high


def month_ends(tape: Tape, scores: RowScores) -> tuple[MonthEnd, ...]:
    """Give what was unspent at the end of each month; `scores` are those of all changed rows.

    A block whose clock is behind is of the latest month of any block before it, so that each
    month ends with a state that the chain was in.
    """
    ends = _Ends.of(scores)
    named = [set(np.unique(month).tolist()) for _, _, _, month in _changes(tape)]
    months = sorted(set().union(*named))
    if months and months[0] < 0:
        raise InputError(f"{tape.path}: its sources give no times: months are not known")
    if not months:
        return ()
    first, n = months[0], months[-1] + 1 - months[0]
    wholes = np.zeros((2, n), np.int64)
    sums, moved, terms = np.zeros((2, 4, n)), np.zeros(2), 0
    for row, coins, value, month in _changes(tape):
        at = np.searchsorted(scores.rows, row)
        terms += len(row)
        for k, changed in enumerate((coins, value)):
            np.add.at(wholes[k], month - first, changed)
            weights = changed.astype(np.float64)
            moved[k] += np.abs(weights).sum()
            for c, column in enumerate(ends.columns()):
                sums[k, c] += np.bincount(month - first, weights * column[at], n)
    wholes, sums = wholes.cumsum(axis=1), sums.cumsum(axis=2)
    # Each sum is rounded once for every term at most.
    cares = (terms + n + 8) * ROUNDING * moved * (ends.maximum + ends.below + ends.above + 1.0)
    miss = float(scores.miss.max(initial=0.0))
    return tuple(
        _month_end(
            first + m, wholes[:, m], [ends.mean(float(wholes[k, m]), sums[k, :, m], cares[k])
            for k in range(2)], miss,
        )
        for m in range(n)
    )  # fmt: skip


def month_end(month: int, coins: Ints, values: Ints, scores: RowScores) -> MonthEnd:
    """Give what is unspent now; `coins` and `values` are those on each of the rows."""
    ends, means = _Ends.of(scores), []
    for held in (coins, values):
        weights, whole = held.astype(np.float64), int(held.sum())
        sums = np.array([weights @ column for column in ends.columns()])
        care = (len(held) + 8) * ROUNDING * whole * (ends.maximum + ends.below + ends.above + 1.0)
        means.append(ends.mean(float(whole), sums, care))
    wholes = np.array([coins.sum(), values.sum()])
    return _month_end(month, wholes, means, float(scores.miss.max(initial=0.0)))


def _month_end(
    month: int, wholes: Ints, means: list[tuple[float, float, float]], miss: float
) -> MonthEnd:
    coins, value = (int(whole) for whole in wholes)
    return MonthEnd(str(np.datetime64(month, "M")), coins, value, *means[0], *means[1], miss)


def months_table(months: tuple[MonthEnd, ...]) -> pa.Table:
    """Give months as a table."""
    return pa.Table.from_pylist([asdict(month) for month in months], schema=_SCHEMA)


_SCHEMA = pa.schema(
    {
        name: {"str": pa.string(), "int": pa.int64()}.get(str(kind), pa.float64())
        for name, kind in MonthEnd.__annotations__.items()
    }
)
