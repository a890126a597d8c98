"""Bits of coins at later and later moments: what became known after the fact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.graph import TransactionGraph
from coinhaze.ledger import CoinLedger
from coinhaze.ledger.frames import ArrowTable, shown

NAIVE, UNMIXED = "naive", "unmixed"
HOUR = 3600
AGES = {
    "at once": 0,
    "an hour": HOUR,
    "a day": 24 * HOUR,
    "a week": 7 * 24 * HOUR,
    "30 days": 30 * 24 * HOUR,
    "a year": 365 * 24 * HOUR,
}


@dataclass(frozen=True, eq=False)
class Since(ArrowTable):
    """Bits of some coins to each observer, at moments from their making to the ledger's end.

    >>> import coinhaze
    >>> ledger = coinhaze.CoinLedger.from_transactions([
    ...     {"txid": "t", "outputs": [{"value": 2, "address": "y"}]}])
    >>> coinhaze.since(ledger, ["t:0"], points=1)
    Since(1 coins, 1 moments: naive, common-input-no-coinjoins, change, unmixed)
    """

    graph: TransactionGraph
    nodes: Ints
    made: Ints  # the transaction that made each coin, a row of the ledger ...
    spent: Ints  # ... and the one that spent it, one after the last for those unspent
    until: Ints  # of each moment the first transaction that is not there yet
    bits: Mapping[str, Floats]  # by observer: moments by coins, NaN before a coin was made
    linked: int  # outputs of CoinJoins taken apart at the last moment
    settings: dict[str, object]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        observers = ", ".join(self.bits)
        return f"Since({len(self.nodes)} coins, {len(self.until)} moments: {observers})"

    def _repr_html_(self) -> str:
        return shown("since", self)

    @property
    def names(self) -> list[str]:
        """The coins' names."""
        found: list[str] = self.graph.names.of(self.nodes).to_pylist()
        return found

    @property
    def times(self) -> list[int | None]:
        """Seconds since 1970 of each moment, None where the ledger has no times."""
        return self._clock(self._ledger.times)

    @property
    def heights(self) -> list[int | None]:
        """The height of each moment, None where the ledger has none."""
        return self._clock(self._ledger.heights)

    def unspent(self) -> Bools:
        """Tell which coins are there and unspent at each moment: moments by coins."""
        until = self.until[:, None]
        found: Bools = (self.made < until) & (self.spent >= until)
        return found

    def series(self, *, unspent: bool = True) -> pa.Table:
        """Give mean bits at each moment, over coins unspent then or over all made by then."""
        there = self.unspent() if unspent else self.made < self.until[:, None]
        columns: dict[str, pa.Array] = {
            "height": pa.array(self.heights, pa.int64()),
            "time": pa.array(self.times, pa.int64()),
            "coins": pa.array(there.sum(axis=1), pa.int64()),
        }
        for name, bits in self.bits.items():
            known = there & ~np.isnan(bits)
            mean = np.where(known, bits, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
            columns[f"bits_{name.replace('-', '_')}"] = pa.array(mean, mask=~known.any(axis=1))
        return pa.table(columns)

    def decay(self, ages: Mapping[str, int] = AGES) -> pa.Table:
        """Give the mean change of bits since a coin's first moment, by how old it had become.

        Each coin counts once for an age, at its last moment up to that age, if the ledger goes on
        that long: a level is what was surely known by then. Empty where there are no times.
        """
        rows: list[dict[str, object]] = []
        times = self.times
        if None not in times and self._ledger.times.null_count < len(self._ledger.times):
            born = np.array(self._ledger.times.take(pa.array(self.made)).to_pylist(), dtype=float)
            age = np.array(times, dtype=float)[:, None] - born
            first = self._first()
            column = np.arange(len(self.nodes))
            for words, limit in ages.items():
                at = np.sum(age <= limit, axis=0) - 1
                old = (age[-1] >= limit) & (at >= first)
                row: dict[str, object] = {"age": words, "seconds": limit, "coins": int(old.sum())}
                for name, bits in self.bits.items():
                    change = (bits[at, column] - bits[first, column])[old]
                    change = change[~np.isnan(change)]
                    row[name] = float(change.mean()) if len(change) else None
                rows.append(row)
        return pa.Table.from_pylist(rows)

    def to_arrow(self) -> pa.Table:
        """Give a row for each coin and moment from its making on."""
        moment, coin = np.nonzero(self.made < self.until[:, None])
        names = self.graph.names.of(self.nodes).cast(pa.string())
        columns: dict[str, pa.Array] = {
            "node": names.take(pa.array(coin)),
            "height": pa.array(self.heights, pa.int64()).take(pa.array(moment)),
            "time": pa.array(self.times, pa.int64()).take(pa.array(moment)),
            "unspent": pa.array(self.unspent()[moment, coin]),
        }
        for name, bits in self.bits.items():
            values = bits[moment, coin]
            columns[f"bits_{name.replace('-', '_')}"] = pa.array(values, mask=np.isnan(values))
        return pa.table(columns)

    def sentence(self) -> str:
        """Say in short what became known since."""
        begun, column = self._first(), np.arange(len(self.nodes))
        first = {name: float(np.nanmean(bits[begun, column])) for name, bits in self.bits.items()}
        last = {name: float(np.nanmean(bits[-1])) for name, bits in self.bits.items()}
        who = self.names[0] if len(self.nodes) == 1 else f"{len(self.nodes):,} coins"
        parts = [
            f"{name} {first[name]:.2f} to {last[name]:.2f}" for name in self.bits if name != NAIVE
        ]
        return (
            f"{who}: {last[NAIVE]:.2f} bits to the naive observer, whatever comes later. From a "
            f"coin's first moment to the last, bits went: {'; '.join(parts)}."
        )

    def _first(self) -> Ints:
        """Give of each coin the first moment at which it is there."""
        found: Ints = np.argmax(self.made < self.until[:, None], axis=0)
        return found

    @property
    def _ledger(self) -> CoinLedger:
        assert isinstance(self.graph.ledger, CoinLedger)
        return self.graph.ledger

    def _clock(self, values: pa.Int64Array) -> list[int | None]:
        found: list[int | None] = values.take(pa.array(self.until - 1)).to_pylist()
        return found


def moment_words(height: int | None, time: int | None) -> str:
    """Name a moment: its time, or its height.

    >>> moment_words(5, 0), moment_words(5, None)
    ('1970-01-01 00:00', '5')
    """
    if time is not None:
        return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M}"
    return "-" if height is None else str(height)
