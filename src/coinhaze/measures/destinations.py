"""Destinations: where the money that a node had went, and which way."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Amounts, Floats, Ints
from coinhaze.formats.money import unit_of
from coinhaze.graph import Kind, TransactionGraph
from coinhaze.ledger import AccountLedger, CoinLedger
from coinhaze.ledger.frames import ArrowTable, shown
from coinhaze.measures.origins import Origins
from coinhaze.observer.chain import reading_of
from coinhaze.observer.owners import Persons

FEE, BURNED, UNSPENDABLE, UNSPENT, BALANCE = "fee", "burned", "unspendable", "unspent", "balance"
LISTED, ELSEWHERE = "listed", "elsewhere"
FEES = "fees"  # of all transactions and accounts on the way
NONE = -1


@dataclass(frozen=True, eq=False)
class Destinations(ArrowTable):
    """Where the money of one node is at the end of the ledger, largest share first.

    Shares, with `missing`, add up to 1: what is unspent, what was paid as fees, and what can never
    be spent or was burned.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "b", 4), ("b", "c", 3)])
    >>> coinhaze.destinations(ledger, "a").to_arrow().select(["destination", "share"]).to_pylist()
    [{'destination': 'c', 'share': 0.75}, {'destination': 'b', 'share': 0.25}]
    """

    graph: TransactionGraph  # as the ledger has it
    node: int
    received: int  # with its opening, in the smallest unit
    nodes: Ints  # where money is; NONE for fees and for entries of a list
    names: pa.StringArray
    kinds: tuple[str, ...]
    share: Floats
    settings: dict[str, object]
    walk: Origins | None = None  # on the graph turned round; None under ordered policies
    rank: Ints | None = None  # of each destination in that walk, NONE for fees
    units: tuple[int, ...] | None = None  # at each destination, under ordered policies
    visits: float = 1.0  # how often a unit of it was at the node: more where money came back
    missing: float = 0.0  # how much was not followed to its end
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.share)

    @property
    def name(self) -> str:
        """The node's name."""
        return str(self.graph.names.of(np.array([self.node]))[0].as_py())

    @property
    def held(self) -> int:
        """All the money that the node had, in the smallest unit; what came back counts once."""
        return counted_once(self.received, self.visits)

    @property
    def amounts(self) -> Floats:
        """How much money is at each destination, in the smallest unit."""
        if self.units is not None:
            return np.array([float(units) for units in self.units])
        return self.share * (float(self.received) / self.visits)

    @property
    def whole_amounts(self) -> list[int]:
        """The same to the nearest unit; under ordered policies exact, whatever the size."""
        if self.units is not None:
            return list(self.units)
        return [round(amount) for amount in self.amounts.tolist()]

    @property
    def shortfall(self) -> str | None:
        """By how much the walk missed the accuracy requested, None if it did not."""
        return None if self.walk is None else self.walk.shortfall

    def total(self, *kinds: str) -> float:
        """Add up the shares of some kinds of destinations."""
        return float(self.share[np.isin(self.kinds, kinds)].sum()) if len(self) else 0.0

    def count(self, *kinds: str) -> int:
        """Count the destinations of some kinds."""
        return sum(kind in kinds for kind in self.kinds)

    def way(self, rank: int) -> list[str]:
        """Name the likeliest way from the node to the destination of that rank.

        Empty for fees, which many transactions took, and under ordered policies.
        """
        if self.walk is None or self.rank is None or self.rank[rank] == NONE:
            return []
        return self.walk.way(int(self.rank[rank]))[::-1]

    def holders(self, known: Persons | None = None) -> pa.Table:
        """Add destinations up by who holds them: by address, or by person as an observer sees it.

        Fees, and what is burned, unspendable or listed, have no holder and stay as they are.
        """
        names: list[str] = self.names.to_pylist()
        ledger = self.graph.ledger
        if isinstance(ledger, CoinLedger) and self.graph.settings.get("view") == "coin":
            coin = np.flatnonzero(np.isin(self.kinds, (UNSPENT,)))
            owner = ledger.output_owner[self.graph.names.party[self.nodes[coin]]]
            if known is None:
                held_by = ledger.owners.take(pa.array(owner.astype(np.int64))).to_pylist()
            else:
                called = known.called[known.of_owner[owner]]
                held_by = known.names.take(pa.array(called.astype(np.int64))).to_pylist()
            for place, holder in zip(coin.tolist(), held_by, strict=True):
                names[place] = holder
        groups: dict[tuple[str, str], tuple[int, float, float]] = {}
        rows = zip(names, self.kinds, self.share.tolist(), self.amounts.tolist(), strict=True)
        for *key, share, amount in rows:
            count, total, held = groups.get((key[0], key[1]), (0, 0.0, 0.0))
            groups[key[0], key[1]] = count + 1, total + share, held + amount
        found = sorted(groups.items(), key=lambda item: -item[1][1])
        return pa.table(
            {
                "holder": pa.array([key[0] for key, _ in found], pa.string()),
                "kind": pa.array([key[1] for key, _ in found], pa.string()),
                "destinations": pa.array([n for _, (n, _, _) in found], pa.int64()),
                "share": pa.array([s for _, (_, s, _) in found], pa.float64()),
                "amount": pa.array([a for _, (_, _, a) in found], pa.float64()),
            }
        )

    def to_arrow(self) -> pa.Table:
        """Give destinations, their kinds, shares, and amounts in the smallest unit."""
        return pa.table(
            {
                "destination": self.names,
                "kind": pa.array(self.kinds, pa.string()),
                "share": self.share,
                "amount": self.amounts,
            }
        )

    def as_dict(self, *, limit: int | None = None) -> dict[str, object]:
        """Give everything as plain values, for JSON."""
        rows = self.to_arrow().slice(0, limit).to_pylist()
        for row, units in zip(rows, self.units or (), strict=False):
            row["amount"] = units
        return {
            "node": self.name,
            **reading_of(self.settings),
            "held": str(self.held),
            "unit": unit_of(self.graph.ledger).spelling,
            "missing": self.missing,
            "totals": {kind: self.total(kind) for kind in dict.fromkeys(self.kinds)},
            "destinations": [row | {"way": self.way(k)} for k, row in enumerate(rows)],
            "other": {
                "destinations": max(len(self) - len(rows), 0),
                "share": float(self.share[len(rows) :].sum()),
            },
        }

    def __repr__(self) -> str:
        return f"Destinations({self.name}: {len(self)})"

    def _repr_html_(self) -> str:
        return shown("destinations", self)


def counted_once(received: int, visits: float) -> int:
    """Count money that left and came back once; `visits` is how often a unit is at the node.

    >>> counted_once(150, 1.5)
    100
    """
    return received if visits <= 1 else round(Fraction(received) / Fraction(visits))


def part_in_fees(graph: TransactionGraph, stayed: Amounts, nodes: Ints) -> Floats:
    """Give what part of the money that stayed at some nodes their holders paid in fees.

    `stayed` is opening + in - out of every node. Fees that an account ledger notes beside its
    transfers are no payments of the graph, and an account closes without them; transactions are
    nodes of their own, and keep what they were paid.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_columns(["a", "b"], ["b", "c"], [5, 1], fees=[0, 1])
    >>> graph = coinhaze.transaction_graph(ledger)
    >>> part_in_fees(graph, Amounts.of([0, 4, 1]), np.array([1, 2])).tolist()
    [0.25, 0.0]
    """
    ledger = graph.ledger
    if not isinstance(ledger, AccountLedger) or ledger.fees is None or graph.closing is None:
        return np.zeros(len(nodes))
    there = stayed.take(nodes)
    paid = (there - graph.closing.take(nodes)).floats()
    return np.divide(paid, there.floats(), out=np.zeros(len(nodes)), where=there.positive())


def kinds_of(graph: TransactionGraph, nodes: Ints) -> list[str]:
    """Say what money that stayed at some nodes is: unspent, a balance, a fee, or lost.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "b", 4)])
    >>> kinds_of(coinhaze.transaction_graph(ledger), np.array([1]))
    ['balance']
    """
    kind = graph.kinds[nodes]
    lost = (kind == Kind.coin) & ~graph.sinks[nodes]
    if isinstance(graph.ledger, CoinLedger) and graph.settings.get("view") == "coin":
        coins = np.flatnonzero(kind == Kind.coin)
        spendable = graph.ledger.output_spendable[graph.names.party[nodes[coins]]]
        lost = np.zeros(len(nodes), dtype=np.bool_)
        lost[coins] = ~spendable
    found = np.select(
        [kind == Kind.transaction, kind == Kind.burn, lost, kind == Kind.coin],
        [FEE, BURNED, UNSPENDABLE, UNSPENT],
        default=BALANCE,
    )
    return [str(word) for word in found]
