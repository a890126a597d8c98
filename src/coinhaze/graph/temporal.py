"""Flows -> the temporal graph: holders get a snapshot at every receipt, nodes are in order of time.

Slots are numbered by party: one for each party that passes money on; for each holder one for its
opening and one for each receipt. Slots that money reaches become nodes, numbered in order of
creation.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from coinhaze.amounts import Bools, Ints
from coinhaze.errors import LedgerError
from coinhaze.graph.flows import (
    Flows,
    NodesAndEdges,
    graph_of,
    index_type,
    moved_amounts,
    no_snapshots,
)
from coinhaze.graph.graph import Kind, TransactionGraph
from coinhaze.graph.opening import Opening, opening_balances
from coinhaze.graph.order_kernels import group_rows
from coinhaze.graph.temporal_kernels import (
    carries,
    flow_nodes,
    name_nodes,
    number_born,
    replay,
    slot_times,
)
from coinhaze.ledger import Amounts
from coinhaze.threads import each


class _Replay(NamedTuple):
    """Retained flows in order of time, and which parties hold money."""

    order: Ints
    step: Ints
    tail: Ints
    head: Ints
    amounts: Amounts
    holders: Ints  # the parties that hold ...
    number: Ints  # ... and the number of each party among them, -1 if it does not hold


class _Slots(NamedTuple):
    start: Ints  # the first slot of each party, and the number of slots
    leaves: Ints  # the slot each flow leaves, counted from its party's first
    meets: Ints


def temporal(flows: Flows, opening: Opening, *, paper_sinks: bool = False) -> TransactionGraph:
    """Give each holder a snapshot at every receipt; nodes are numbered in order of time."""
    _refuse_snapshot_names(flows)
    retained = flows.retained()
    run = _in_order(flows, retained)
    nodes, notes = _nodes_in_time(flows, run, opening)
    amounts = run.amounts
    del run  # the graph takes as much again
    return graph_of(flows, retained, amounts, nodes, notes, paper_sinks=paper_sinks)


def _nodes_in_time(
    flows: Flows, run: _Replay, opening: Opening
) -> tuple[NodesAndEdges, tuple[str, ...]]:
    """Replay the ledger twice: for what holders lack, then, given openings, what they retain."""
    n = len(flows.names)
    lowest, receipts, leaves, meets = replay(
        run.order, run.step, run.tail, run.head, run.number, run.amounts.digits, len(run.holders)
    )
    money, notes = opening_balances(
        flows.names, flows.holds, _lowest_opening(run, lowest, n), opening
    )
    kind = index_type(n + int(receipts.sum()), 2 * len(run.order))
    start = np.ones(n + 1, dtype=kind)
    start[0] = 0
    start[1:][run.holders] += receipts.astype(kind)
    np.cumsum(start, out=start)
    carried = _carried(run, money, int(receipts.sum()))
    return _nodes(flows, run, _Slots(start, leaves, meets), money, carried), notes


def _in_order(flows: Flows, retained: Bools) -> _Replay:
    every = bool(retained.all())
    step, tail, head = (c if every else c[retained] for c in (flows.step, flows.tail, flows.head))
    if np.all(step[1:] >= step[:-1]):
        order = np.arange(len(step), dtype=step.dtype)
    else:
        order = group_rows(step, int(step.max(initial=0)) + 1)[1]
    number = np.cumsum(flows.holds, dtype=step.dtype)
    number -= 1
    number[~flows.holds] = -1
    return _Replay(
        order, step, tail, head, moved_amounts(flows, retained), np.flatnonzero(flows.holds), number
    )


def _lowest_opening(run: _Replay, lowest: Ints, n: int) -> Amounts:
    """Return each party's lowest opening: its largest deficit or, if it passes on, all it pays."""
    lacked = -Amounts(lowest)
    if len(run.holders) == n:
        return lacked
    out = run.amounts.net_by(run.tail, run.head, n)
    passes = np.ones(n, dtype=np.bool_)
    passes[run.holders] = False
    surplus = out.where_positive().where(passes)
    return surplus + lacked.total_by(run.holders, n) if len(run.holders) else surplus


def _carried(run: _Replay, money: Amounts, receipts: int) -> tuple[Ints, Ints, Amounts]:
    """Return what holders carry from one snapshot to the next: party, snapshot, amount."""
    opened = money.take(run.holders)
    width = max(opened.digits.shape[1], run.amounts.digits.shape[1])
    balance = np.array(opened.widened(width), order="C")
    digits = run.amounts.widened(width)
    party, snapshot, retained = carries(
        run.order, run.step, run.tail, run.head, run.number, digits, balance, receipts
    )
    return party, snapshot, Amounts(retained.T).carried()


def _nodes(
    flows: Flows,
    run: _Replay,
    slots: _Slots,
    money: Amounts,
    carried: tuple[Ints, Ints, Amounts],
) -> NodesAndEdges:
    start = slots.start
    places = (start, run.tail, run.head, slots.leaves, slots.meets)
    used, born = _born(flows, run, slots)
    # An opening has its own snapshot, but only for a holder that takes part.
    taking_part = np.zeros(len(flows.holds), dtype=np.bool_)
    taking_part[run.tail] = taking_part[run.head] = True
    used[start[:-1][flows.holds & taking_part & money.positive()]] = True
    used[start[:-1][flows.lone]] = True
    number = np.full(start[-1], -1, dtype=start.dtype)
    born = number_born(used, born, int(born.max(initial=-1)) + 2, number)
    nodes = len(born)
    retained_by, retained_from, retained = carried
    carry_from = start[retained_by] + retained_from
    carry_tail, carry_head = number[carry_from], number[carry_from + 1]

    def named() -> tuple[Ints, Ints, Amounts]:
        party, snapshot = name_nodes(start, flows.holds, number, nodes)
        if len(run.holders) == 0:
            snapshot = no_snapshots(nodes)
        return party, snapshot, money.take(party).where(snapshot <= 0)

    (leaving, meeting), (party, snapshot, opening) = each(
        nodes, partial(flow_nodes, *places, number), named
    )
    return NodesAndEdges(
        party=party,
        snapshot=snapshot,
        flow_tail=leaving,
        flow_head=meeting,
        carry_tail=carry_tail,
        carry_head=carry_head,
        carry=retained,
        opening=opening,
        born=born,
    )


def _born(flows: Flows, run: _Replay, slots: _Slots) -> tuple[Bools, Ints]:
    """Return which slots money reaches, and the step at which each slot comes into being."""
    never = int(run.step.max(initial=0)) + 1
    n = int(slots.start[-1])
    first_in, first_out = (np.empty(n, dtype=run.step.dtype) for _ in range(2))
    slot_times(
        slots.start, run.tail, run.head, slots.leaves, slots.meets, run.step, never, first_in,
        first_out,
    )  # fmt: skip
    used: Bools = (first_in < never) | (first_out < never)
    # What receives nothing existed before, but money is minted just before it is paid out.
    fresh = (flows.kinds == Kind.mint) | (flows.kinds == Kind.transaction)
    makes = slots.start[:-1][fresh]
    makes = makes[(first_in[makes] == never) & (first_out[makes] < never)]
    first_in[first_in == never] = -1
    first_in[makes] = first_out[makes] - 1
    return used, first_in


def _refuse_snapshot_names(flows: Flows) -> None:
    """Raise an error for a name such as `a:1` beside a holder `a`: its snapshot has that name."""
    if not flows.holds.any():
        return
    holders = flows.names.take(np.flatnonzero(flows.holds))
    numbered = flows.names.numbered(holders)
    if len(numbered) == 0:
        return
    base = pc.replace_substring_regex(numbered, ":[0-9]+$", "")
    clash = pc.index(pc.is_in(base, value_set=holders.cast(base.type)), True).as_py()
    if clash >= 0:
        name, holder = numbered[clash].as_py(), base[clash].as_py()
        raise LedgerError(
            f"name {name}",
            f"would be taken for a snapshot of {holder}",
            fix="rename one of them, or use a stationary view",
        )
