"""Taint: how much of the listed money is where at the end, one column a policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Floats, Ints
from coinhaze.graph import TransactionGraph
from coinhaze.graph.graph import kind_names
from coinhaze.ledger import Amounts
from coinhaze.ledger.frames import ArrowTable
from coinhaze.ledger.frozen import freeze
from coinhaze.observer.policies import POISON, PROPORTIONAL


@dataclass(frozen=True, eq=False)
class Trail:
    """Where one policy sends the money of each entry of a list, to the last unit.

    For each entry, `listed` = `relisted` + what lies in sinks + `fees` + `other`.
    """

    row: Ints  # rows of the taint's nodes that hold listed money ...
    entry: Ints  # ... of this entry ...
    amounts: Amounts  # ... and how much
    listed: Amounts  # for each entry: what it had or what reached it ...
    relisted: Amounts  # ... and of that, what later reached another entry
    sinks: Amounts
    fees: Amounts
    other: Amounts  # in coins that can never be spent and accounts that received nothing

    def __post_init__(self) -> None:
        freeze(self)

    def of_rows(self, n: int) -> Amounts:
        """Add up the listed money of each row."""
        return self.amounts.total_by(self.row, n)


@dataclass(frozen=True, eq=False)
class Taint(ArrowTable):
    """How much of the listed money each node holds at the end, by policy.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    >>> taint = coinhaze.taint(ledger, ["a"])
    >>> taint
    Taint(1 nodes, 1 listed: haircut, poison, fifo, lifo)
    >>> taint.to_arrow()["exposure"].to_pylist()
    [0.25]
    """

    graph: TransactionGraph
    listed: tuple[str, ...]
    nodes: Ints
    balance: Amounts
    exposure: Floats | None  # haircut: the share of each node's money that is listed
    poison: Amounts | None
    trails: Mapping[str, Trail]  # of ordered policies
    settings: dict[str, object]
    notes: tuple[str, ...] = ()
    exposure_low: Floats | None = None  # proven bounds of the exposure
    exposure_high: Floats | None = None

    def __post_init__(self) -> None:
        freeze(self)

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        return f"Taint({len(self)} nodes, {len(self.listed)} listed: {', '.join(self.policies)})"

    @property
    def policies(self) -> tuple[str, ...]:
        """The policies that were requested."""
        shares = () if self.exposure is None else (PROPORTIONAL.column,)
        marks = () if self.poison is None else (POISON.column,)
        return shares + marks + tuple(self.trails)

    @property
    def haircut(self) -> Floats | None:
        """Each node's balance times its exposure: the one policy whose amounts are not whole."""
        return None if self.exposure is None else self.exposure * self.balance.floats()

    def amounts(self, policy: str) -> Amounts:
        """Give the listed money of each node in whole units; not for haircut."""
        if policy == POISON.column and self.poison is not None:
            return self.poison
        return self.trails[policy].of_rows(len(self))

    def to_arrow(self) -> pa.Table:
        """Give a table, a row a node; whole amounts in digits of the smallest unit."""
        columns: dict[str, pa.Array] = {
            "node": self.graph.names.of(self.nodes),
            "kind": kind_names(self.graph.kinds[self.nodes]),
            "balance": self.balance.text(),
        }
        if self.exposure is not None and self.haircut is not None:
            unknown = np.isnan(self.exposure)
            columns["exposure"] = pa.array(self.exposure, mask=unknown)
            columns[PROPORTIONAL.column] = pa.array(self.haircut, mask=unknown)
        for policy in self.policies:
            if policy != PROPORTIONAL.column:
                columns[policy] = self.amounts(policy).text()
        return pa.table(columns)

    def sources(self, policy: str) -> pa.Table:
        """Give the listed money of each node by entry of the list; for ordered policies."""
        trail = self.trails[policy]
        return pa.table(
            {
                "node": self.graph.names.of(self.nodes[trail.row]),
                "source": self._entries().take(pa.array(trail.entry)),
                "amount": trail.amounts.text(),
            }
        )

    def totals(self) -> pa.Table:
        """Give for each ordered policy and entry where its money went, to the last unit."""
        names = ("listed", "relisted", "sinks", "fees", "other")
        parts = [
            pa.table(
                {
                    "policy": pa.array([policy] * len(self.listed), pa.string()),
                    "source": self._entries(),
                }
                | {name: getattr(trail, name).text() for name in names}
            )
            for policy, trail in self.trails.items()
        ]
        empty = {name: pa.array([], pa.string()) for name in ("policy", "source", *names)}
        return pa.concat_tables([pa.table(empty), *parts])

    def tainted(self) -> Ints:
        """Give the rows that hold listed money under any policy."""
        any_policy = np.zeros(len(self), dtype=np.bool_)
        if self.exposure is not None:
            any_policy |= self.exposure > 0
        for policy in self.policies:
            if policy != PROPORTIONAL.column:
                any_policy |= self.amounts(policy).positive()
        return np.flatnonzero(any_policy)

    def _entries(self) -> pa.StringArray:
        return pa.array(self.listed, pa.string())
