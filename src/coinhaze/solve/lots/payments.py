"""Payments in order: a graph's ledger as ordered policies replay it, party by party."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coinhaze.amounts import Bools, Ints
from coinhaze.errors import UsageError
from coinhaze.graph import TransactionGraph
from coinhaze.graph.coins import coin_flows
from coinhaze.graph.graph import Kind
from coinhaze.graph.order_kernels import group_rows
from coinhaze.ledger import Amounts, CoinLedger
from coinhaze.ledger.frozen import freeze


@dataclass(frozen=True, eq=False)
class Payments:
    """Who pays whom what, and in which order; parties are those of the graph's names.

    One party more, the last, takes the fees that account ledgers note beside their transfers.
    """

    order: Ints  # rows of the columns below, in the order they are paid
    step: Ints  # in that order
    tail: Ints
    head: Ints
    amounts: Amounts
    whole: Bools  # parties that are spent whole: coins
    openers: Ints  # parties that open with money ...
    opening: Amounts
    opening_node: Ints  # ... and the node that stands for that

    def __post_init__(self) -> None:
        freeze(self)

    def __len__(self) -> int:
        return len(self.order)

    @property
    def fees(self) -> int:
        """The party that takes the fees of accounts."""
        return len(self.whole) - 1

    def cuts(self) -> int:
        """Count the payments that may cut a lot in two."""
        return len(self) - int(self.whole[self.tail].sum())


def payments_of(graph: TransactionGraph) -> Payments:
    """Put the payments of a graph in order; it must be one that knows their order."""
    check_order(graph)
    assert graph.amounts is not None
    assert graph.opening is not None
    parties = len(graph.names.parties)
    whole = np.zeros(parties + 1, dtype=np.bool_)
    if isinstance(graph.ledger, CoinLedger):
        order, step, tail, head, amounts = _of_coins(graph, graph.ledger)
        whole[graph.names.party[graph.kinds == Kind.coin]] = True
    else:
        order, step, tail, head, amounts = _of_accounts(graph)
    nodes = np.flatnonzero(graph.sources)
    return Payments(
        order=order,
        step=step,
        tail=tail,
        head=head,
        amounts=amounts,
        whole=whole,
        openers=graph.names.party[nodes].astype(np.int64),
        opening=graph.opening.take(nodes),
        opening_node=nodes,
    )


def check_order(graph: TransactionGraph) -> None:
    """Refuse a graph whose money cannot be followed in order."""
    if graph.amounts is None:
        raise UsageError("this ledger hides amounts: ordered policies need them")
    if graph.settings.get("view") == "address":
        raise UsageError("ordered policies follow coins or accounts, not addresses: use view=coin")
    if graph.born is None:
        raise UsageError("ordered policies need the order of payments: use time=temporal")


_Columns = tuple[Ints, Ints, Ints, Ints, Amounts]


def _of_coins(graph: TransactionGraph, ledger: CoinLedger) -> _Columns:
    """Line up each transaction's inputs, its pools' money, its outputs, what it shields."""
    flows = coin_flows(ledger, by_owner=False, pools=str(graph.settings["pools"]))
    assert flows.amounts is not None
    # Flows come part by part, pools after coins, and sorting keeps that order within a step.
    order = group_rows(flows.step, int(flows.step.max(initial=-1)) + 1)[1]
    made = np.flatnonzero(flows.payment_flow >= 0)
    tx, vout = ledger.output_tx[made], ledger.output_vout[made]
    if np.any((tx[1:] == tx[:-1]) & (vout[1:] < vout[:-1])):
        # Tables may list a transaction's outputs in any order: they are paid by number.
        is_output = np.zeros(len(order), dtype=np.bool_)
        is_output[flows.payment_flow[made]] = True
        order[is_output[order]] = flows.payment_flow[made[np.lexsort((vout, tx))]]
    order = order[flows.retained()[order]]
    return order, flows.step[order], flows.tail, flows.head, flows.amounts


def _of_accounts(graph: TransactionGraph) -> _Columns:
    """Take transfers as they come, and last what each account paid in fees."""
    assert graph.payment_amount is not None
    rows = np.flatnonzero(graph.payment_edge >= 0)
    edge = graph.payment_edge[rows]
    party = graph.names.party
    payers, fees = _fees(graph)
    tail = np.concatenate([party[graph.tail[edge]], party[payers]]).astype(np.int64)
    fee_party = np.full(len(payers), len(graph.names.parties), dtype=np.int64)
    head = np.concatenate([party[graph.head[edge]].astype(np.int64), fee_party])
    after = np.full(len(payers), len(graph.payment_edge), dtype=np.int64)
    step = np.concatenate([rows.astype(np.int64), after])
    amounts = Amounts.concat([graph.payment_amount.take(rows), fees])
    return np.arange(len(tail)), step, tail, head, amounts


def _fees(graph: TransactionGraph) -> tuple[Ints, Amounts]:
    """Find the nodes that close with less than they hold, and by how much: fees took it."""
    assert graph.amounts is not None
    assert graph.opening is not None
    assert graph.closing is not None
    n = len(graph)
    incoming, outgoing = (graph.amounts.total_by(end, n) for end in (graph.head, graph.tail))
    fees = graph.opening + incoming - outgoing - graph.closing
    payers = np.flatnonzero(fees.positive())
    return payers, fees.take(payers)
