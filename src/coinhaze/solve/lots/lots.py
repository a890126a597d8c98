"""Ordered policies: first in, first out, or last in, first out. Money moves as lots.

These are no walks: what a coin is made of depends on the order of its transaction's inputs and
outputs, not on amounts alone. The whole ledger is replayed with exact integers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Unpack

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.errors import InputError, UsageError, not_in_ledger
from coinhaze.graph import TransactionGraph
from coinhaze.graph.graph import Kind, downstream
from coinhaze.ledger import Amounts
from coinhaze.observer.chain import ELSEWHERE, NO_COLUMN, Outcomes, SourceNames
from coinhaze.observer.knowledge import SourceSet, source_set
from coinhaze.observer.policies import FIRST_IN, POLICIES, Order, is_ordered, ordered_policies
from coinhaze.options import LedgerKeywords
from coinhaze.solve.lots import lots_kernels as kernels
from coinhaze.solve.lots.lots_kernels import Queues, Room
from coinhaze.solve.lots.payments import Payments, payments_of
from coinhaze.solve.source import Source, graph_of

NO_STEPS = "an ordered policy follows lots, not a walk: steps are null"


@dataclass(frozen=True, eq=False)
class LotLabels:
    """What money counts as: its source, or an entry of the list it passed last."""

    outcomes: Outcomes
    opening: Ints  # for each party that opens with money, the outcome it counts as
    listed: Ints  # for each party the outcome of what it receives, -1 if it is not listed
    elsewhere: int = NO_COLUMN
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Lots:
    """All money of a ledger at its end, in lots of one source each; valid once built.

    A node that holds money is described by what it holds; one that holds none any more, such as a
    spent coin or an earlier snapshot, by what it held when it came to be; a transaction by its
    inputs.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    >>> coinhaze.lots(ledger, order="fifo")
    Lots(fifo, 2 lots of 2 outcomes)
    """

    graph: TransactionGraph
    order: Order
    payments: Payments
    labels: LotLabels
    queues: Queues
    gained: Amounts  # for each outcome what came to count as it, being listed ...
    lost: Amounts  # ... and what came to count as another
    settings: dict[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.graph)

    def __repr__(self) -> str:
        return f"Lots({self.order}, {self.live} lots of {len(self.outcomes)} outcomes)"

    @property
    def outcomes(self) -> Outcomes:
        """The sources lots can have."""
        return self.labels.outcomes

    @cached_property
    def lower_bounds(self) -> Bools | None:
        """Tell which nodes may hold lots of unknown value, as `AbsorbingChain` does."""
        graph = self.graph
        if self.labels.elsewhere != NO_COLUMN or len(graph.unknown_sources) == 0:
            return None
        return downstream(graph.unknown_sources, graph.tail, graph.head, len(graph))

    @property
    def live(self) -> int:
        """How many lots there are at the end."""
        return int(self.queues.count[kernels.LIVE])

    def of(self, node: str | int) -> pa.Table:
        """Give the lots of one node in their order: source and exact amount.

        >>> import coinhaze
        >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 2), ("b", "c", 3)])
        >>> lots(ledger).of("c").to_pylist()
        [{'source': 'a:0', 'amount': '2'}, {'source': 'b:0', 'amount': '3'}]
        """
        at = self.graph.names.node(node) if isinstance(node, str) else int(node)
        label, amounts = self.queue(at)
        return pa.table({"source": self.outcomes.take(pa.array(label)), "amount": amounts.text()})

    def queue(self, node: int) -> tuple[Ints, Amounts]:
        """Give the outcomes and amounts of one node's lots, in their order."""
        party = self.graph.names.party[[node]].astype(np.int64)
        queues = self.queues
        if not self.holding()[node]:
            queues, _, _ = _replayed(self.payments, self.labels, self.order, end=self._paid(node))
        _, label, digits = kernels.read_queues(queues, party)
        backwards = slice(None, None, -1 if POLICIES[self.order].newest_first else 1)
        return label[backwards], Amounts(digits[backwards].copy(order="F")).carried()

    def held(self, nodes: Ints) -> tuple[Ints, Ints, Amounts]:
        """Give what nodes hold at the end by source: place in `nodes`, outcome, exact amount."""
        place = np.flatnonzero(self.holding()[nodes])
        owner, label, amounts = self._read(self.graph.names.party[nodes[place]])
        n = len(self.outcomes)
        key, group = np.unique(owner * n + label, return_inverse=True)
        return place[key // n], key % n, amounts.total_by(group, len(key))

    def fees(self) -> Amounts:
        """Give what transactions and accounts paid in fees, for each outcome."""
        graph = self.graph
        payers = graph.names.party[graph.kinds == Kind.transaction]
        _, label, amounts = self._read(np.append(payers, self.payments.fees))
        return amounts.total_by(label, len(self.outcomes))

    def _read(self, parties: Ints) -> tuple[Ints, Ints, Amounts]:
        owner, label, digits = kernels.read_queues(self.queues, parties.astype(np.int64))
        return owner, label, Amounts(np.asfortranarray(digits)).carried()

    def holding(self) -> Bools:
        """Tell which nodes hold money at the end; what a transaction keeps is its fee."""
        graph = self.graph
        newest = graph.names.newest[graph.names.party] == np.arange(len(graph))
        holds: Bools = newest & (graph.kinds != Kind.transaction)
        holds &= self.queues.first[graph.names.party] != kernels.NONE
        return holds

    def figures(self, nodes: Ints, orders: Floats) -> tuple[Floats, Floats]:
        """Sum up the lots of nodes: a row of figures each, and sums of p^order."""
        figures = np.full((len(nodes), kernels.FIGURES), np.nan)
        powers = np.full((len(nodes), len(orders)), np.nan)
        party = self.graph.names.party[nodes].astype(np.int64)
        now = np.flatnonzero(self.holding()[nodes])
        found, sums = figures[now], powers[now]
        kernels.sum_up_all(
            self.queues, party[now], self._room(), found, orders, sums, self.labels.elsewhere
        )
        figures[now], powers[now] = found, sums
        then = np.flatnonzero(~self.holding()[nodes])
        if len(then):
            at = self._paid(nodes[then])
            then, at = then[np.argsort(at, kind="stable")], np.sort(at)
            found, sums = figures[then], powers[then]
            looks = (at, party[then], self._room(), found, orders, sums, self.labels.elsewhere)
            _replayed(self.payments, self.labels, self.order, end=int(at[-1]), looks=looks)
            figures[then], powers[then] = found, sums
        return figures, powers

    def _paid(self, nodes: Any) -> Any:
        """Count the payments made when a node has come to be."""
        assert self.graph.born is not None
        return np.searchsorted(self.payments.step, self.graph.born[nodes], side="right")

    def _room(self) -> Room:
        n = len(self.outcomes)
        width = self.queues.amount.shape[1]
        return Room(np.zeros((n + 1, width), dtype=np.int64), np.zeros(n, dtype=np.int64))


def lots(
    source: Source,
    *,
    order: Order = FIRST_IN,
    listed: Iterable[str] | None = None,
    **settings: Unpack[LedgerKeywords],
) -> Lots:
    """Follow all money in order, first in, first out or last in, first out.

    `source` is a path or several, a ledger, or a graph that knows the order of payments (the coin
    view; accounts with time=temporal, which is the default here); further settings are those of
    `read` and `transaction_graph`. Listed nodes, addresses or accounts make the money that reaches
    them theirs; all other sources count as one outcome, `elsewhere`.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers(
    ...     [("a", "c", 2), ("b", "c", 3), ("c", "d", 4)])
    >>> lots(ledger, order="lifo").of("d").to_pylist()
    [{'source': 'b:0', 'amount': '3'}, {'source': 'a:0', 'amount': '1'}]
    """
    if not is_ordered(order):
        known = " or ".join(policy.name for policy in ordered_policies())
        raise UsageError(f"order is {known}, not {order!r}")
    graph = graph_of(source, in_order=True, **settings)
    payments = payments_of(graph)
    return follow(graph, payments, labels_of(graph, payments, listed), order)


def follow(graph: TransactionGraph, payments: Payments, labels: LotLabels, order: Order) -> Lots:
    """Replay all payments of a graph."""
    queues, gained, lost = _replayed(payments, labels, order)
    notes = (*graph.notes, NO_STEPS)
    if labels.unknown:
        notes += (not_in_ledger(labels.unknown),)
    entries = None if labels.elsewhere == NO_COLUMN else len(labels.outcomes) - 1
    return Lots(
        graph=graph,
        order=order,
        payments=payments,
        labels=labels,
        queues=queues,
        gained=gained,
        lost=lost,
        settings=graph.settings | {"policy": order, "listed": entries},
        notes=notes,
    )


def labels_of(
    graph: TransactionGraph, payments: Payments, listed: Iterable[str] | None
) -> LotLabels:
    """Say what money counts as: its own source, or, with a list, an entry or elsewhere."""
    nobody = np.full(len(payments.whole), NO_COLUMN, dtype=np.int64)
    if listed is None:
        nodes = payments.opening_node
        return LotLabels(SourceNames(graph.names, nodes), np.arange(len(nodes)), nobody)
    sources = source_set(graph, listed)
    if not sources.labels:
        raise InputError(
            "none of the listed names is in the ledger: " + ", ".join(sources.unknown[:5])
        )
    _refuse_snapshots(graph, sources)
    counts_as = nobody.copy()
    counts_as[graph.names.party[sources.nodes]] = sources.entry[sources.nodes]
    elsewhere = len(sources.labels)
    own = counts_as[payments.openers]
    return LotLabels(
        outcomes=pa.array([*sources.labels, ELSEWHERE], pa.string()),
        opening=np.where(own == NO_COLUMN, elsewhere, own),
        listed=counts_as,
        elsewhere=elsewhere,
        unknown=tuple(sources.unknown),
    )


def _refuse_snapshots(graph: TransactionGraph, sources: SourceSet) -> None:
    """Refuse a list that names some of an account's snapshots: its money is one queue."""
    n = len(graph.names.parties)
    nodes = np.bincount(graph.names.party, minlength=n)
    some = np.bincount(graph.names.party[sources.nodes], minlength=n)
    partly = np.flatnonzero((some > 0) & (some < nodes))
    if len(partly):
        name = graph.names.parties[int(partly[0])].as_py()
        raise UsageError(
            f"the list names some snapshots of {name}: an ordered policy follows the account as "
            f"a whole; list {name!r}"
        )


def _replayed(
    payments: Payments,
    labels: LotLabels,
    order: Order,
    *,
    end: int | None = None,
    looks: tuple[Any, ...] | None = None,
) -> tuple[Queues, Amounts, Amounts]:
    """Make all payments, or the first `end` of them; give queues and what changed its outcome."""
    total = payments.opening.total_by(np.zeros(len(payments.openers), dtype=np.int64), 1)
    # No sum of lots passes the sum of all openings: digits that hold it hold everything.
    columns = (payments.amounts, payments.opening, total)
    width = max(column.digits.shape[1] for column in columns)
    digits, opening = (np.ascontiguousarray(c.widened(width)) for c in columns[:2])
    queues = _empty_queues(len(payments.whole), len(payments.openers) + payments.cuts(), width)
    kernels.lay_openings(queues, payments.openers, labels.opening, opening)
    gained, lost = (np.zeros((len(labels.outcomes), width), dtype=np.int64) for _ in range(2))
    end = len(payments) if end is None else int(end)
    nothing = np.zeros(0, dtype=np.int64)
    room = Room(np.zeros((1, width), dtype=np.int64), nothing)
    none = (nothing, nothing, room, np.zeros((0, 0)), np.zeros(0), np.zeros((0, 0)), NO_COLUMN)
    made = kernels.run(
        queues, payments.order, payments.tail, payments.head, digits, payments.whole, labels.listed,
        POLICIES[order].newest_first, gained, lost, 0, end, *(looks or none),
    )  # fmt: skip
    # Openings are at least what payments need, so that no queue falls short.
    assert made == end, f"payment {made} finds less money than it moves"
    for array in queues:
        array.setflags(write=False)
    changes = [Amounts(np.asfortranarray(c)).carried() for c in (gained, lost)]
    return queues, changes[0], changes[1]


def _empty_queues(parties: int, maximum: int, width: int) -> Queues:
    # Untouched pages of the rows set aside take no memory.
    return Queues(
        first=np.full(parties, kernels.NONE, dtype=np.int32),
        last=np.full(parties, kernels.NONE, dtype=np.int32),
        after=np.empty(maximum, dtype=np.int32),
        label=np.empty(maximum, dtype=np.int32),
        amount=np.empty((maximum, width), dtype=np.int64),
        count=np.array([kernels.NONE, 0, 0], dtype=np.int64),
    )
