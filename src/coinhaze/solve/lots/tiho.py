"""Taint in, highest out: tainted money goes to a transaction's largest outputs first.

It says where listed money goes, not what a coin is made of, and only of coins. Amounts are Python's
integers: only transactions that tainted money reaches are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from coinhaze.amounts import Bools, Ints
from coinhaze.errors import UsageError
from coinhaze.graph import TransactionGraph
from coinhaze.ledger import CoinLedger
from coinhaze.observer.chain import NO_COLUMN
from coinhaze.solve.lots.lots import LotLabels
from coinhaze.solve.lots.payments import Payments

Taints = dict[int, int]  # entry of the list -> amount


@dataclass(frozen=True)
class Traced:
    """Where listed money lies at the end, by party; what each entry gained and lost to others."""

    held: dict[int, Taints]
    gained: Taints
    lost: Taints


def check_coins(graph: TransactionGraph) -> None:
    """Refuse what tiho does not speak of: accounts, and pools, which are accounts."""
    ledger = graph.ledger
    if not isinstance(ledger, CoinLedger):
        raise UsageError("policy=tiho ranks a transaction's outputs: accounts have no outputs")
    if len(ledger.flow_tx):
        raise UsageError("policy=tiho is for coins: this ledger has shielded pools")


def trace_tiho(
    graph: TransactionGraph, payments: Payments, labels: LotLabels, tainted: Bools
) -> Traced:
    """Follow listed money through every transaction it reaches; `tainted` says which nodes."""
    check_coins(graph)
    held: dict[int, Taints] = {}
    result = Traced(held, {}, {})
    opening = payments.opening
    for k in np.flatnonzero(labels.opening != labels.elsewhere).tolist():
        held[int(payments.openers[k])] = {int(labels.opening[k]): opening[k]}
    for tx, inputs, outputs in _transactions(graph, payments, labels, tainted):
        taints = held.pop(tx, {})  # a listed coinbase opens with its money
        for coin, _ in inputs:
            for entry, amount in held.pop(coin, {}).items():
                taints[entry] = taints.get(entry, 0) + amount
        if labels.listed[tx] != NO_COLUMN and inputs:
            taken = sum(value for _, value in inputs)
            taints = _relisted(result, taints, int(labels.listed[tx]), taken, labels.elsewhere)
        for coin, value in sorted(outputs, key=lambda output: -output[1]):  # ties: the earlier
            share = shared(taints, min(value, sum(taints.values())))
            taints = {s: a - share.get(s, 0) for s, a in taints.items() if a != share.get(s, 0)}
            if labels.listed[coin] != NO_COLUMN:
                entry = int(labels.listed[coin])
                share = _relisted(result, share, entry, value, labels.elsewhere)
            if share:
                held[coin] = share
        if taints:
            held[tx] = taints
    return result


def shared(taints: Taints, amount: int) -> Taints:
    """Take an amount from several entries in proportion, in whole units.

    What rounding down leaves over goes to the largest remainders, the earlier entry first; an
    entry never has to give more than it has.

    >>> shared({0: 2, 1: 1}, 2)
    {0: 1, 1: 1}
    """
    total = sum(taints.values())
    if amount == total:
        return dict(taints)
    share = {entry: amount * has // total for entry, has in taints.items()}
    left = amount - sum(share.values())
    remainder = {entry: amount * has % total for entry, has in taints.items()}
    for entry in sorted(taints, key=lambda e: (-remainder[e], e))[:left]:
        share[entry] += 1
    return {entry: part for entry, part in share.items() if part}


def _relisted(result: Traced, taints: Taints, entry: int, value: int, elsewhere: int) -> Taints:
    """Make all money of a listed node its own, noting whose it was."""
    was = taints | {elsewhere: value - sum(taints.values())}
    for source, amount in was.items():
        if source != entry and amount:
            result.gained[entry] = result.gained.get(entry, 0) + amount
            result.lost[source] = result.lost.get(source, 0) + amount
    return {entry: value}


_Ends = list[tuple[int, int]]  # coin and its value


def _transactions(
    graph: TransactionGraph, payments: Payments, labels: LotLabels, tainted: Bools
) -> Iterator[tuple[int, _Ends, _Ends]]:
    """Give transactions that are tainted or pay a listed coin: party, inputs and outputs."""
    reached = np.zeros(len(payments.whole), dtype=np.bool_)
    reached[graph.names.party[tainted]] = True
    reached[payments.tail[labels.listed[payments.head] != NO_COLUMN]] = True
    enters = payments.whole[payments.tail]  # coins are spent whole, transactions are not
    tx = np.where(enters, payments.head, payments.tail)
    order = payments.order[reached[tx[payments.order]]]
    coin = np.where(enters, payments.tail, payments.head)[order]
    value = payments.amounts.take(order).ints()
    of = tx[order]
    begins = np.flatnonzero(np.diff(of, prepend=-1) != 0).tolist()
    for first, last in pairwise([*begins, len(of)]):
        inputs, outputs = _split(coin, value, enters[order[first:last]], first)
        yield int(of[first]), inputs, outputs


def _split(coin: Ints, value: list[int], enters: Bools, first: int) -> tuple[_Ends, _Ends]:
    ends = [(int(coin[first + k]), value[first + k]) for k in range(len(enters))]
    inputs = [end for end, enter in zip(ends, enters.tolist(), strict=True) if enter]
    return inputs, ends[len(inputs) :]
