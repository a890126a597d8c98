"""Graph + list -> taint: the listed money followed forward, under every policy side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, Unpack, cast

import numpy as np

from coinhaze.amounts import Bools, Ints
from coinhaze.errors import UsageError
from coinhaze.graph import TransactionGraph
from coinhaze.graph.graph import Kind
from coinhaze.ledger import Amounts, CoinLedger
from coinhaze.measures.taint import Taint, Trail
from coinhaze.observer import absorbing_chain
from coinhaze.observer.policies import POISON, PROPORTIONAL, Order, Policy, taint_policies
from coinhaze.options import LedgerKeywords
from coinhaze.solve.lots.lots import LotLabels, Lots, follow, labels_of
from coinhaze.solve.lots.payments import Payments, payments_of
from coinhaze.solve.lots.tiho import Traced, check_coins, trace_tiho
from coinhaze.solve.score import rows_of, score
from coinhaze.solve.source import Source, graph_of


def taint(
    source: Source,
    listed: Iterable[str],
    *,
    policies: Sequence[str] | None = None,
    nodes: Literal["sinks"] | Iterable[str] = "sinks",
    **settings: Unpack[LedgerKeywords],
) -> Taint:
    """Say how much of the listed money each sink holds at the end, one column a policy.

    `source` is a path or several, a ledger, or a graph that knows the order of payments; further
    settings are those of `read` and `transaction_graph`. A listed node, address or account makes
    the money that reaches it its own. Poison counts a touched balance in full, haircut its
    exposure's share; fifo, lifo and tiho move whole units and lose none. `policies` are all that
    fit the ledger unless given: tiho is for coins without pools.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers(
    ...     [("thief", "shop", 1), ("bob", "shop", 3), ("shop", "carol", 2)])
    >>> taint(ledger, ["thief"]).to_arrow().select(["node", "haircut", "fifo"]).to_pylist()
    [{'node': 'shop', 'haircut': 0.5, 'fifo': '0'}, {'node': 'carol', 'haircut': 0.5, 'fifo': '1'}]
    """
    graph = graph_of(source, in_order=True, **settings)
    chosen = _policies(graph, policies)
    listed = listed if isinstance(listed, str) else list(listed)
    rows = np.array(list(dict.fromkeys(rows_of(graph, nodes).tolist())), dtype=np.int64)
    poisoned = absorbing_chain(graph, policy=POISON.name, listed=listed)
    assert poisoned.clean is not None
    assert graph.closing is not None
    balance = graph.closing.take(rows)
    scores = None
    if PROPORTIONAL in chosen:
        chain = absorbing_chain(graph, policy=PROPORTIONAL.name, listed=listed)
        names = "sinks" if nodes == "sinks" else graph.names.of(rows).to_pylist()
        scores = score(chain, nodes=names)
    return Taint(
        graph=graph,
        listed=tuple(poisoned.outcomes.to_pylist()),
        nodes=rows,
        balance=balance,
        exposure=None if scores is None else scores.exposure,
        exposure_low=None if scores is None else scores.exposure_low,
        exposure_high=None if scores is None else scores.exposure_high,
        poison=balance.where(~poisoned.clean[rows]) if POISON in chosen else None,
        trails=_trails(graph, listed, chosen, rows, tainted=~poisoned.clean),
        settings=graph.settings
        | {"policies": [policy.column for policy in chosen], "listed": len(poisoned.outcomes)},
        notes=poisoned.notes,
    )


def _trails(
    graph: TransactionGraph,
    listed: Sequence[str],
    chosen: Sequence[Policy],
    rows: Ints,
    *,
    tainted: Bools,
) -> dict[str, Trail]:
    """Follow listed money by every policy that moves it in whole units."""
    if all(policy.kind == "walk" for policy in chosen):
        return {}
    payments = payments_of(graph)
    labels = labels_of(graph, payments, listed)
    trails = {}
    for policy in chosen:
        if policy.ordered:
            held = follow(graph, payments, labels, cast(Order, policy.name))
            trails[policy.column] = _trail_of_lots(held, rows)
        elif policy.kind == "trace":
            found = trace_tiho(graph, payments, labels, tainted)
            trails[policy.column] = _tiho_trail(found, graph, _opened(payments, labels), rows)
    return trails


def _policies(graph: TransactionGraph, given: Sequence[str] | None) -> tuple[Policy, ...]:
    if given is None:
        ledger = graph.ledger
        coins = isinstance(ledger, CoinLedger) and len(ledger.flow_tx) == 0
        return tuple(p for p in taint_policies() if coins or "coins" not in p.needs)
    chosen = choose_taint_policies(given)
    if any("coins" in policy.needs for policy in chosen):
        check_coins(graph)
    return chosen


def choose_taint_policies(given: Sequence[str] | None) -> tuple[Policy, ...]:
    """Give the policies of these names in their usual order, all of them where none is given."""
    every = taint_policies()
    if given is None:
        return every
    known = {name for policy in every for name in (policy.name, policy.column)}
    names = ", ".join(policy.column for policy in every)
    if isinstance(given, str) or not given:
        raise UsageError(f"policies are some of {names}, not {given!r}")
    if unknown := [name for name in given if name not in known]:
        raise UsageError(f"policies are some of {names}, not {', '.join(map(repr, unknown))}")
    return tuple(policy for policy in every if {policy.name, policy.column} & set(given))


class _Held(NamedTuple):
    """What nodes hold at the end: which node, of which entry of the list, how much."""

    node: Ints
    entry: Ints
    amounts: Amounts

    def take(self, retained: Bools) -> _Held:
        """Select rows."""
        return _Held(self.node[retained], self.entry[retained], self.amounts.take(retained))

    def total(self, entries: int) -> Amounts:
        """Add up by entry."""
        return self.amounts.total_by(self.entry, entries)


def _trail_of_lots(held: Lots, rows: Ints) -> Trail:
    nodes = np.flatnonzero(held.holding())
    owner, label, amounts = held.held(nodes)
    everywhere = _Held(nodes[owner], label, amounts).take(label != held.labels.elsewhere)
    entries = len(held.outcomes) - 1
    return _trail(
        held.graph,
        rows,
        everywhere,
        listed=_entries(_opened(held.payments, held.labels) + held.gained, entries),
        relisted=_entries(held.lost, entries),
        fees=_entries(held.fees(), entries),
    )


def _tiho_trail(found: Traced, graph: TransactionGraph, opened: Amounts, rows: Ints) -> Trail:
    entries = len(opened) - 1
    held = [(p, e, a) for p, taints in found.held.items() for e, a in taints.items()]
    parties, entry, amounts = zip(*held, strict=True) if held else ((), (), ())
    nodes = graph.names.newest[np.array(parties, dtype=np.int64)]
    everywhere = _Held(nodes, np.array(entry, dtype=np.int64), Amounts.of(amounts))
    kept_as_fee = graph.kinds[nodes] == Kind.transaction
    return _trail(
        graph,
        rows,
        everywhere.take(~kept_as_fee),
        listed=_entries(opened, entries) + _column(found.gained, entries),
        relisted=_column(found.lost, entries),
        fees=everywhere.take(kept_as_fee).total(entries),
    )


def _trail(graph: TransactionGraph, rows: Ints, held: _Held, **columns: Amounts) -> Trail:
    """Draw up where the money of each entry lies, and make sure that none is missing."""
    entries = len(columns["listed"])
    in_sink = graph.sinks[held.node]
    sinks, other = (held.take(part).total(entries) for part in (in_sink, ~in_sink))
    ends = columns["relisted"] + sinks + columns["fees"] + other
    assert not (columns["listed"] - ends).signs().any(), "listed money was lost or made"
    place = np.full(len(graph), -1)
    place[rows] = np.arange(len(rows))
    chosen = held.take(place[held.node] >= 0)
    return Trail(
        row=place[chosen.node],
        entry=chosen.entry,
        amounts=chosen.amounts,
        sinks=sinks,
        other=other,
        **columns,
    )


def _opened(payments: Payments, labels: LotLabels) -> Amounts:
    """Give what was there at the start, for each outcome."""
    return payments.opening.total_by(labels.opening, len(labels.outcomes))


def _entries(amounts: Amounts, entries: int) -> Amounts:
    """Leave out what came from elsewhere."""
    return amounts.take(np.arange(entries))


def _column(amounts: Mapping[int, int], entries: int) -> Amounts:
    return Amounts.of([amounts.get(entry, 0) for entry in range(entries)])
