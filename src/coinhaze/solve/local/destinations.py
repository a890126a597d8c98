"""One node: where its money went. A walk back on the graph turned round, or lots replayed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Unpack

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Floats, Ints
from coinhaze.errors import AccuracyError, UsageError
from coinhaze.graph import TransactionGraph
from coinhaze.graph.find import find_node
from coinhaze.graph.graph import NO_SNAPSHOT
from coinhaze.graph.holes import moved_in_holes
from coinhaze.graph.reverse import FORWARD, reversed_graph
from coinhaze.measures.destinations import (
    ELSEWHERE,
    FEE,
    FEES,
    LISTED,
    NONE,
    UNSPENDABLE,
    Destinations,
    kinds_of,
    part_in_fees,
)
from coinhaze.measures.origins import Origins
from coinhaze.observer import absorbing_chain
from coinhaze.observer.chain import SourceNames
from coinhaze.observer.policies import POLICIES, is_ordered
from coinhaze.options import ModelKeywords
from coinhaze.solve.local.origins import origins_or_reached
from coinhaze.solve.lots.taint import taint
from coinhaze.solve.source import (
    CHAIN_SETTINGS,
    GRAPH_SETTINGS,
    READ_SETTINGS,
    Source,
    check_known,
    graph_of,
    only,
)
from coinhaze.solve.structure.structure import Structure

_OLDEST = (
    "{name} is followed from its oldest snapshot: name a later one, {later}, or choose the "
    "stationary time for all the money it ever had"
)


def destinations(
    source: Source,
    node: str,
    *,
    accuracy: Literal["exact"] | float = "exact",
    **settings: Unpack[ModelKeywords],
) -> Destinations:
    """Say where the money of a node went: in which coins or balances it is at the ledger's end.

    `source` and settings are those of `origins`, mirrored: a node's money goes to each payment it
    made in proportion to its amount, and what it did not spend stays. `listed` are places where
    money ends on arrival, such as an exchange's addresses. Under fifo and lifo whole units are
    followed in order. With an `accuracy` above 1e-6 only the largest flows are followed, and
    `missing` says how much was not; where it is not reached AccuracyError is raised.

    >>> import coinhaze
    >>> ledger = coinhaze.CoinLedger.from_transactions([{"txid": "t", "inputs": [
    ...     {"txid": "x", "vout": 0, "value": 10}], "outputs": [{"value": 6}, {"value": 3}]}])
    >>> coinhaze.destinations(ledger, "x:0").to_arrow().select(["destination", "share"]).to_pydict()
    {'destination': ['t:0', 't:1', 'fees'], 'share': [0.6, 0.3, 0.1]}
    """
    found = destinations_or_reached(source, node, accuracy=accuracy, **settings)
    if found.shortfall is not None:
        raise AccuracyError(found.shortfall, origins=found.walk)
    return found


def destinations_or_reached(
    source: Source,
    node: str,
    *,
    accuracy: Literal["exact"] | float = "exact",
    **settings: Unpack[ModelKeywords],
) -> Destinations:
    """Give destinations as `destinations` does, or what was reached: its `shortfall` says so."""
    graph = forward_graph(source, **settings)
    policy, listed = settings.get("policy"), settings.get("listed")
    if is_ordered(policy):
        if listed is not None:
            raise UsageError(f"policy={policy} follows money to its end: leave the list out")
        return _in_order(graph, node, str(policy))
    structure = forward_structure(graph, policy=policy, listed=listed)
    return destinations_along(structure, graph, node, accuracy=accuracy)


def forward_graph(source: Source, **settings: Unpack[ModelKeywords]) -> TransactionGraph:
    """Give the graph along which money is followed; refuse what has no meaning forward."""
    check_known(settings, READ_SETTINGS | GRAPH_SETTINGS | CHAIN_SETTINGS)
    for name in ("links", "history"):
        if settings.get(name) is not None:
            raise UsageError(f"{name} tell where money came from, not where it went: leave it out")
    policy = settings.get("policy")
    rule = POLICIES[policy] if isinstance(policy, str) else None
    if rule is not None and rule.needs_list:
        raise UsageError(
            f"policy={rule.name} marks all that money touched: take coinhaze screen, or "
            "coinhaze.taint, with the node as the list"
        )
    in_order = is_ordered(policy) or settings.get("listed") is not None
    shape = only(settings, READ_SETTINGS | GRAPH_SETTINGS)
    return graph_of(source, in_order=in_order, **shape)


def forward_structure(
    graph: TransactionGraph, *, policy: Any = None, listed: Any = None
) -> Structure:
    """Give the chain of a walk forward: an absorbing chain on the graph turned round."""
    return Structure(absorbing_chain(reversed_graph(graph), policy=policy, listed=listed))


def destinations_along(
    structure: Structure,
    graph: TransactionGraph,
    node: str,
    *,
    accuracy: Literal["exact"] | float = "exact",
) -> Destinations:
    """Follow a node's money along a chain of `forward_structure`, made of this graph."""
    start = start_of(graph, node)
    walk = origins_or_reached(structure, start, accuracy=accuracy)
    chain = structure.chain
    notes = walk.notes + moved_in_holes(graph) + oldest_note(graph, start, node)
    rank = np.arange(len(walk))
    in_fees = np.zeros(len(walk))
    if isinstance(chain.outcomes, SourceNames):
        nodes = chain.outcomes.nodes[walk.outcomes].astype(np.int64)
        assert chain.graph.opening is not None
        in_fees = walk.probability * part_in_fees(graph, chain.graph.opening, nodes)
        names, kinds = graph.names.of(nodes), kinds_of(graph, nodes)
    else:
        nodes = np.full(len(walk), NONE)
        names = chain.outcomes.take(pa.array(walk.outcomes.astype(np.int64)))
        kinds = [ELSEWHERE if k == chain.elsewhere else LISTED for k in walk.outcomes.tolist()]
    return _with_fees_together(
        Destinations(
            graph=graph,
            node=start,
            received=received_by(graph, start),
            visits=1.0 + _returned(walk),
            nodes=nodes,
            names=names,
            kinds=tuple(kinds),
            share=walk.probability - in_fees,
            settings=chain.settings | {"direction": FORWARD},
            walk=walk,
            rank=rank,
            missing=walk.missing,
            notes=notes,
        ),
        float(in_fees.sum()),
    )


def start_of(graph: TransactionGraph, name: str) -> int:
    """Find the node whose money is followed: of an account with snapshots the oldest one.

    The id of a transaction stands for the transaction.
    """
    nodes = graph.names.nodes(name)
    if not len(nodes) and len(graph.names.nodes(f"tx:{name}")):
        return find_node(graph, f"tx:{name}")
    node = find_node(graph, name)
    is_snapshot = graph.names.snapshot[node] != NO_SNAPSHOT
    if is_snapshot and len(graph.names.parties_named(name)):
        same = np.flatnonzero(graph.names.party == graph.names.party[node])
        return int(same[np.argmin(graph.names.snapshot[same])])
    return node


def oldest_note(graph: TransactionGraph, node: int, name: str) -> tuple[str, ...]:
    """Note that an account, found by this name, is followed from its oldest snapshot."""
    if graph.names.newest[graph.names.party[node]] == node:
        return ()
    party = str(graph.names.parties[int(graph.names.party[node])].as_py())
    return (_OLDEST.format(name=party, later=_later(graph, node)),) if name == party else ()


def _later(graph: TransactionGraph, node: int) -> str:
    """Name the snapshot after that of a node which is not the newest one."""
    same = np.flatnonzero(graph.names.party == graph.names.party[node])
    snapshots = graph.names.snapshot[same]
    later = snapshots[snapshots > graph.names.snapshot[node]]
    return str(graph.names.of_sources(same[snapshots == later.min()])[0].as_py())


def _returned(walk: Origins) -> float:
    """Give how often money comes back to the node it started from, on average."""
    return float(walk.flow_share[walk.flow_from == walk.node].sum())


def received_by(graph: TransactionGraph, node: int) -> int:
    """Add up what a node opened with and what it received, money that came back each time."""
    assert graph.amounts is not None
    assert graph.opening is not None
    received = graph.amounts.take(np.flatnonzero(graph.head == node)).ints()
    return graph.opening[node] + sum(received)


def _with_fees_together(found: Destinations, of_accounts: float) -> Destinations:
    """Make the fees of all transactions, and those of accounts, one destination."""
    fee = np.array([kind == FEE for kind in found.kinds], dtype=np.bool_)
    fees = float(found.share[fee].sum()) + of_accounts
    other = np.flatnonzero(~fee)
    assert found.rank is not None
    return _sorted(
        found,
        nodes=np.append(found.nodes[other], NONE),
        names=[*found.names.take(pa.array(other)).to_pylist(), FEES],
        kinds=[*(found.kinds[k] for k in other.tolist()), FEE],
        share=np.append(found.share[other], fees),
        rank=np.append(found.rank[other], NONE),
    )


def _sorted(
    found: Destinations,
    *,
    nodes: Ints,
    names: list[str],
    kinds: list[str],
    share: Floats,
    rank: Ints | None,
    units: Sequence[int] | None = None,
) -> Destinations:
    order = np.argsort(-share, kind="stable")
    order = order[share[order] > 0]
    return replace(
        found,
        nodes=nodes[order],
        names=pa.array([names[k] for k in order.tolist()], pa.string()),
        kinds=tuple(kinds[k] for k in order.tolist()),
        share=share[order],
        rank=None if rank is None else rank[order],
        units=None if units is None else tuple(units[k] for k in order.tolist()),
    )


def _in_order(graph: TransactionGraph, node: str, policy: str) -> Destinations:
    """Replay the ledger with the node's money marked, to the last unit."""
    start = start_of(graph, node)
    name = str(graph.names.of(np.array([start]))[0].as_py())
    if graph.names.snapshot[start] != NO_SNAPSHOT:
        name = node  # lots are of accounts: all that reached it, whenever
    column = POLICIES[policy].column
    marked = taint(graph, [name], policies=[column])
    trail = marked.trails[column]
    held = sum(trail.listed.ints()) - sum(trail.relisted.ints())
    if held == 0:
        raise UsageError(f"{name} had no money to follow")
    amounts = [*trail.amounts.ints(), sum(trail.fees.ints()), sum(trail.other.ints())]
    nodes = np.append(marked.nodes[trail.row], [NONE, NONE])
    kinds = [*kinds_of(graph, nodes[:-2]), FEE, UNSPENDABLE]
    share = np.array([amount / held for amount in amounts])
    names = [*graph.names.of(nodes[:-2]).to_pylist(), FEES, "unspendable or not received"]
    found = Destinations(
        graph=graph,
        node=start,
        received=held,
        nodes=nodes,
        names=pa.array([], pa.string()),
        kinds=(),
        share=share,
        settings=graph.settings | {"policy": policy, "direction": FORWARD},
        notes=marked.notes + moved_in_holes(graph),
    )
    return _sorted(
        found, nodes=nodes, names=names, kinds=kinds, share=share, rank=None, units=amounts
    )
