"""Flows: who paid whom in ledger order, one step between every ledger and every graph.

Every view of every ledger is a choice of parties: those that hold money (accounts, addresses,
pools) and those that pass it on (coins, transactions, mints, burns, rings). `stationary` makes
each party one node. `temporal` gives each holder a new snapshot at every receipt. The coin view
is `temporal` too: only its pools hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.errors import LedgerError
from coinhaze.graph.graph import NO_SNAPSHOT, Kind, Kinds, Names, TransactionGraph
from coinhaze.graph.opening import Opening, opening_balances
from coinhaze.ledger import Amounts, Ledger
from coinhaze.ledger.amounts import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class Flows:
    """Payments between parties; a step's spends come before its receipts."""

    names: pa.StringArray
    kinds: Kinds
    holds: Bools
    can_sink: Bools
    step: Ints
    tail: Ints
    head: Ints
    amounts: Amounts | None
    payment_flow: Ints  # for each payment of the ledger its flow, -1 if it makes none
    ledger: Ledger
    lone: Bools  # parties that are nodes even if no money moves: transactions
    lost: Amounts  # what each party closes without: fees it paid, outputs it can never spend
    others: pa.StringArray  # further names of parties ...
    other_party: Ints  # ... and the party each of them means
    observed: Amounts | None = None  # what each party's known earlier coins were worth
    weights: Floats | None = None  # chances of ring members, where a posterior is given

    def kept(self) -> Bools:
        """Tell which flows move money from one party to another."""
        moves: Bools = self.tail != self.head
        return moves if self.amounts is None else moves & self.amounts.positive()


class _Nodes(NamedTuple):
    """Nodes and edges of one way to see time, before balances are drawn up."""

    party: Ints
    snapshot: Ints
    flow_tail: Ints  # for each kept flow
    flow_head: Ints
    carry_tail: Ints
    carry_head: Ints
    carry: Amounts
    opening: Amounts  # for each node
    born: Ints | None  # for each node, where time counts


def stationary(flows: Flows, opening: Opening, *, paper_sinks: bool = False) -> TransactionGraph:
    """Make each party one node, whatever the order of its payments."""
    kept = flows.kept()
    tail, head, amounts = flows.tail[kept], flows.head[kept], _amounts(flows, kept)
    n = len(flows.names)
    least = (amounts.total_by(tail, n) - amounts.total_by(head, n)).where_positive()
    money, notes = opening_balances(flows.names, flows.holds, least, opening)
    used = flows.lone.copy()
    used[tail] = used[head] = True
    number = np.cumsum(used) - 1
    party = np.flatnonzero(used)
    nothing = np.zeros(0, dtype=np.int64)
    nodes = _Nodes(
        party=party,
        snapshot=np.full(len(party), NO_SNAPSHOT),
        flow_tail=number[tail],
        flow_head=number[head],
        carry_tail=nothing,
        carry_head=nothing,
        carry=Amounts.zeros(0),
        opening=money.take(party),
        born=None,
    )
    return _graph(flows, kept, nodes, notes, paper_sinks=paper_sinks)


def temporal(flows: Flows, opening: Opening, *, paper_sinks: bool = False) -> TransactionGraph:
    """Give each holder a snapshot at every receipt; nodes are numbered in the order of time."""
    _refuse_snapshot_names(flows)
    kept = flows.kept()
    tail, head, step = flows.tail[kept], flows.head[kept], flows.step[kept]
    amounts = _amounts(flows, kept)
    n = len(flows.names)
    # A moment is a holder and a step in one number, so that moments sort by holder, then by time.
    span = int(step.max(initial=0)) + 1
    spends, receives = flows.holds[tail], flows.holds[head]
    spend_at = tail[spends] * span + step[spends]
    receive_at = head[receives] * span + step[receives]
    receipt = np.unique(receive_at)
    receipt_party = receipt // span
    first_receipt = np.searchsorted(receipt, np.arange(n + 1) * span)

    event = np.concatenate([spend_at * 2, receive_at * 2 + 1])
    order = np.argsort(event, kind="stable")
    event = event[order]
    change = Amounts.concat([-amounts.take(spends), amounts.take(receives)]).take(order)
    event_party = event // (2 * span)
    starts = np.flatnonzero(np.diff(event_party, prepend=-1))
    balance = change.running(starts)
    # Passers have no events; their opening is what they paid out above what they took in.
    least = -balance.least_by(event_party, n)
    surplus = (amounts.total_by(tail, n) - amounts.total_by(head, n)).where_positive()
    least = Amounts.concat([least, surplus]).take(np.arange(n) + n * ~flows.holds)
    money, notes = opening_balances(flows.names, flows.holds, least, opening)

    before = np.searchsorted(event, receipt * 2 + 1) - 1
    same = (before >= 0) & (event_party[before] == receipt_party) if len(event) else before >= 0
    left = Amounts(np.where(same[:, None], balance.digits[before], 0)) if len(event) else balance
    left = left + money.take(receipt_party)

    # Slots: one for each passer; for each holder one for its opening and one a receipt.
    slots = np.where(flows.holds, 1 + np.diff(first_receipt), 1)
    slot = np.concatenate([[0], np.cumsum(slots)])
    slot_party = np.repeat(np.arange(n), slots)
    slot_snapshot = np.where(flows.holds[slot_party], np.arange(slot[-1]) - slot[slot_party], -1)
    receipt_slot = slot[receipt_party] + 1 + np.arange(len(receipt)) - first_receipt[receipt_party]
    at_tail = np.searchsorted(receipt, tail * span + step) - first_receipt[tail]
    at_head = np.searchsorted(receipt, head * span + step) - first_receipt[head] + 1
    tail_slot = slot[tail] + np.where(spends, at_tail, 0)
    head_slot = slot[head] + np.where(receives, at_head, 0)
    used = np.zeros(slot[-1], dtype=np.bool_)
    used[tail_slot] = used[head_slot] = used[receipt_slot] = True
    # An opening makes a snapshot of its own, but only of a holder that takes part.
    taking_part = np.zeros(n, dtype=np.bool_)
    taking_part[tail] = taking_part[head] = True
    used[slot[:-1][flows.holds & taking_part & money.positive()]] = True
    used[slot[:-1][flows.lone]] = True
    born = np.full(slot[-1], span)
    np.minimum.at(born, head_slot, step)
    # What takes in nothing was there before, but money is made just before it is paid out.
    makes = np.isin(flows.kinds[slot_party], [Kind.mint, Kind.transaction]) & (born == span)
    paid = np.full(slot[-1], span)
    np.minimum.at(paid, tail_slot, step)
    born = np.where(makes & (paid < span), paid - 1, np.where(born == span, -1, born))
    slots_by_time = np.flatnonzero(used)[np.argsort(born[used], kind="stable")]
    number = np.full(slot[-1], -1)
    number[slots_by_time] = np.arange(len(slots_by_time))

    carried = left.positive()
    first = slot_snapshot[slots_by_time] <= 0
    party = slot_party[slots_by_time]
    nodes = _Nodes(
        party=party,
        snapshot=slot_snapshot[slots_by_time],
        flow_tail=number[tail_slot],
        flow_head=number[head_slot],
        carry_tail=number[receipt_slot[carried] - 1],
        carry_head=number[receipt_slot[carried]],
        carry=left.take(carried),
        opening=Amounts(np.where(first[:, None], money.digits[party], 0)),
        born=born[slots_by_time],
    )
    return _graph(flows, kept, nodes, notes, paper_sinks=paper_sinks)


def _refuse_snapshot_names(flows: Flows) -> None:
    """Refuse a name like `a:1` beside a holder `a`, whose first snapshot is called that."""
    numbered = flows.names.filter(pc.match_substring_regex(flows.names, ":[0-9]+$"))
    base = pc.replace_substring_regex(numbered, ":[0-9]+$", "")
    holders = flows.names.filter(pa.array(flows.holds))
    clash = pc.index(pc.is_in(base, value_set=holders), True).as_py()
    if clash >= 0:
        name, holder = numbered[clash].as_py(), base[clash].as_py()
        raise LedgerError(
            f"name {name}",
            f"would be taken for a snapshot of {holder}",
            fix="rename one of them, or use a stationary view",
        )


def _graph(
    flows: Flows, kept: Bools, nodes: _Nodes, notes: tuple[str, ...], *, paper_sinks: bool
) -> TransactionGraph:
    n = len(nodes.party)
    tail = np.concatenate([nodes.flow_tail, nodes.carry_tail])
    head = np.concatenate([nodes.flow_head, nodes.carry_head])
    key, edge = np.unique(tail * n + head, return_inverse=True)
    tail, head = (key // n, key % n) if n else (key, key)
    amounts = Amounts.concat([_amounts(flows, kept), nodes.carry]).total_by(edge, len(key))
    incoming, outgoing = amounts.total_by(head, n), amounts.total_by(tail, n)
    newest = np.full(len(flows.names), -1)
    np.maximum.at(newest, nodes.party, np.arange(n))
    is_newest = newest[nodes.party] == np.arange(n)
    lost = Amounts(np.where(is_newest[:, None], flows.lost.digits[nodes.party], 0))
    closing = (nodes.opening + incoming - outgoing - lost).where_positive()
    sources = nodes.opening.positive()
    kinds = flows.kinds[nodes.party]
    hidden = flows.amounts is None
    if hidden:
        spent = np.zeros(n, dtype=np.bool_)
        spent[tail] = True
        sinks = flows.can_sink[nodes.party] & (_is_ring_ledger(flows) | ~spent)
        sources = ~incoming.positive()
    elif paper_sinks:
        sinks = (incoming - outgoing).positive()
    else:
        sinks = closing.positive() & incoming.positive() & flows.can_sink[nodes.party]
    flow_edge = np.full(len(kept), -1)
    flow_edge[kept] = edge[: len(nodes.flow_tail)]
    payment = flows.payment_flow
    return TransactionGraph(
        names=Names(
            parties=flows.names,
            party=nodes.party,
            snapshot=nodes.snapshot,
            newest=newest,
            others=flows.others,
            other_party=flows.other_party,
        ),
        kinds=kinds,
        tail=tail,
        head=head,
        amounts=None if hidden else amounts,
        weights=_edge_weights(flows, kept, edge, len(key)),
        opening=None if hidden else nodes.opening,
        sources=sources,
        closing=None if hidden else closing,
        sinks=sinks,
        born=nodes.born,
        payment_edge=np.where(payment >= 0, flow_edge[payment], -1)
        if len(flow_edge)
        else np.full(len(payment), -1),
        payment_amount=None
        if flows.amounts is None or not len(flows.tail)
        else flows.amounts.take(payment),
        ledger=flows.ledger,
        notes=notes,
    )


def _is_ring_ledger(flows: Flows) -> bool:
    return bool(getattr(flows.ledger, "has_rings", False))


def _amounts(flows: Flows, kept: Bools) -> Amounts:
    # Where amounts are hidden every flow counts one: it says who can have paid whom, no more.
    if flows.amounts is None:
        return Amounts.of(np.ones(int(kept.sum()), dtype=np.int64))
    return flows.amounts.take(kept)


def _edge_weights(flows: Flows, kept: Bools, edge: Ints, n_edges: int) -> Floats | None:
    if flows.weights is None:
        return None
    total = np.zeros(n_edges)
    np.add.at(total, edge[: int(kept.sum())], flows.weights[kept])
    return total
