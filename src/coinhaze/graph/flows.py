"""Flows: who paid whom in ledger order, the step between every ledger and every graph.

Every view of every ledger is a choice of parties: those that hold money (accounts, addresses,
pools) and those that pass it on (coins, transactions, mints, burns, rings). `stationary` makes
each party one node. `temporal` gives each holder a new snapshot at every receipt. The coin view
is `temporal` too: only its pools hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.graph.graph import Kinds, TransactionGraph
from coinhaze.graph.names import NO_SNAPSHOT, Aliases, NodeNames, PartyNames
from coinhaze.graph.opening import Opening, opening_balances
from coinhaze.graph.order_kernels import merge_pairs
from coinhaze.ledger import Amounts, Ledger
from coinhaze.threads import each


@dataclass(frozen=True, eq=False)
class Flows:
    """Payments between parties; a step's spends come before its receipts."""

    names: PartyNames
    kinds: Kinds
    holds: Bools
    can_sink: Bools
    step: Ints
    tail: Ints
    head: Ints
    amounts: Amounts | None
    payment_flow: Ints  # the flow of each payment of the ledger, -1 if it makes none
    payment_amounts: Amounts | None
    ledger: Ledger
    lone: Bools  # parties that are nodes even if no money moves: transactions
    lost: Amounts | None  # what each party closes without: fees paid, outputs it can never spend
    others: Aliases  # further names of parties
    observed: Callable[[], Amounts] | None = None  # the value of each party's earlier coins
    weights: Floats | None = None  # probabilities of ring members, where a posterior is given

    def retained(self) -> Bools:
        """Return which flows move money from one party to another."""
        moves: Bools = self.tail != self.head
        return moves if self.amounts is None else moves & self.amounts.positive()


def index_type(*sizes: int) -> type[np.signedinteger[Any]]:
    """Return the type of whole numbers below all of these: of four bytes where that is enough.

    Building touches many columns once, and memory that is touched for the first time is slow.
    """
    return np.int32 if max(sizes) < 2**31 else np.int64


class NodesAndEdges(NamedTuple):
    """Nodes and edges for one treatment of time, before balances are computed."""

    party: Ints
    snapshot: Ints
    flow_tail: Ints  # for each retained flow
    flow_head: Ints
    carry_tail: Ints
    carry_head: Ints
    carry: Amounts
    opening: Amounts  # for each node
    born: Ints | None  # for each node, where time counts


def stationary(flows: Flows, opening: Opening, *, paper_sinks: bool = False) -> TransactionGraph:
    """Make each party one node, regardless of the order of its payments."""
    retained = flows.retained()
    tail, head, amounts = flows.tail[retained], flows.head[retained], moved_amounts(flows, retained)
    n = len(flows.names)
    needed = amounts.net_by(tail, head, n).where_positive()
    money, notes = opening_balances(flows.names, flows.holds, needed, opening)
    used = flows.lone.copy()
    used[tail] = used[head] = True
    number = np.cumsum(used, dtype=tail.dtype)
    number -= 1
    party = np.flatnonzero(used)
    nothing = np.zeros(0, dtype=np.int64)
    nodes = NodesAndEdges(
        party=party,
        snapshot=no_snapshots(len(party)),
        flow_tail=number[tail],
        flow_head=number[head],
        carry_tail=nothing,
        carry_head=nothing,
        carry=Amounts.zeros(0),
        opening=money.take(party),
        born=None,
    )
    return graph_of(flows, retained, amounts, nodes, notes, paper_sinks=paper_sinks)


def no_snapshots(nodes: int) -> Ints:
    """Return -1 for every node (none is a snapshot), in the memory of a single number."""
    return np.broadcast_to(np.int32(NO_SNAPSHOT), nodes)


def graph_of(
    flows: Flows,
    retained: Bools,
    amounts: Amounts,
    nodes: NodesAndEdges,
    notes: tuple[str, ...],
    *,
    paper_sinks: bool,
) -> TransactionGraph:
    """Merge flows into edges and compute balances, sources and sinks.

    `amounts` are those of the retained flows.
    """
    n = len(nodes.party)
    tail, head = nodes.flow_tail, nodes.flow_head
    if len(nodes.carry_tail):
        tail = np.concatenate([tail, nodes.carry_tail])
        head = np.concatenate([head, nodes.carry_head])
        amounts = Amounts.concat([amounts, nodes.carry])
    edge, tail, head = merge_pairs(tail, head, n)
    amounts = amounts.total_by(edge, len(tail))
    gained, receives, payment_edge, newest = each(
        n,
        partial(amounts.net_by, head, tail, n),
        partial(_marked, head, n),  # every edge moves something
        partial(_payment_edges, flows, retained, edge[: len(nodes.flow_tail)]),
        partial(_newest, nodes.party, len(flows.names)),
    )
    closing = nodes.opening + gained
    if flows.lost is not None:
        is_newest = newest[nodes.party] == np.arange(n)
        closing -= flows.lost.take(nodes.party).where(is_newest)
    closing = closing.where_positive()
    sources = nodes.opening.positive()
    kinds = flows.kinds[nodes.party]
    hidden = flows.amounts is None
    if hidden:
        sinks = flows.can_sink[nodes.party] & (_is_ring_ledger(flows) | ~_marked(tail, n))
        sources = ~receives
    elif paper_sinks:
        sinks = gained.positive()
    else:
        sinks = closing.positive() & receives & flows.can_sink[nodes.party]
    return TransactionGraph(
        names=NodeNames(
            parties=flows.names,
            party=nodes.party,
            snapshot=nodes.snapshot,
            newest=newest,
            others=flows.others,
        ),
        kinds=kinds,
        tail=tail,
        head=head,
        amounts=None if hidden else amounts,
        weights=_edge_weights(flows, retained, edge, len(tail)),
        opening=None if hidden else nodes.opening,
        sources=sources,
        closing=None if hidden else closing,
        sinks=sinks,
        born=nodes.born,
        payment_edge=payment_edge,
        payment_amount=flows.payment_amounts,
        ledger=flows.ledger,
        notes=notes,
    )


def _marked(nodes: Ints, n: int) -> Bools:
    """Return which of n nodes are among some."""
    marked = np.zeros(n, dtype=np.bool_)
    marked[nodes] = True
    return marked


def _payment_edges(flows: Flows, retained: Bools, edge: Ints) -> Ints:
    """Return the edge of each payment of the ledger, -1 if it has none; `edge` is that of flows."""
    payment = flows.payment_flow
    if not len(retained):
        return np.full(len(payment), -1)
    flow_edge = np.full(len(retained), -1, dtype=edge.dtype)
    flow_edge[retained] = edge
    return np.where(payment >= 0, flow_edge[payment], -1)


def _newest(party: Ints, parties: int) -> Ints:
    """Return the newest node of each party, -1 if it has none."""
    newest = np.full(parties, -1, dtype=index_type(len(party)))
    newest[party] = np.arange(len(party))  # of several nodes of a party the last one wins
    return newest


def _is_ring_ledger(flows: Flows) -> bool:
    return bool(getattr(flows.ledger, "has_rings", False))


def moved_amounts(flows: Flows, retained: Bools) -> Amounts:
    """Return the amounts of retained flows."""
    # Where amounts are hidden every flow counts as one: it says only who can have paid whom.
    if flows.amounts is None:
        return Amounts.of(np.ones(int(retained.sum()), dtype=np.int64))
    return flows.amounts.take(retained)


def _edge_weights(flows: Flows, retained: Bools, edge: Ints, n_edges: int) -> Floats | None:
    if flows.weights is None:
        return None
    total = np.zeros(n_edges)
    np.add.at(total, edge[: int(retained.sum())], flows.weights[retained])
    return total
