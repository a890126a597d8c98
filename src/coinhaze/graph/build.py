"""Ledger -> transaction graph: every row of the table of views."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from coinhaze.errors import UsageError, first_few
from coinhaze.graph.accounts import account_flows
from coinhaze.graph.clusters.deposit_pools import short_pool_notes
from coinhaze.graph.clusters.heuristics import CLUSTERINGS
from coinhaze.graph.clusters.merge import Clusters
from coinhaze.graph.coins import coin_flows
from coinhaze.graph.flows import Flows, stationary
from coinhaze.graph.graph import Kind, TransactionGraph
from coinhaze.graph.opening import Opening
from coinhaze.graph.temporal import temporal
from coinhaze.ledger import AccountLedger, CoinLedger, Ledger
from coinhaze.ledger.checks import exact_amount
from coinhaze.ledger.frozen import release_unused
from coinhaze.options import Clustering, Time, View
from coinhaze.options import Opening as OpeningOption


def default_view(ledger: Ledger) -> View:
    """Return the default view: what nodes stand for unless specified."""
    return "coin" if isinstance(ledger, CoinLedger) else "account"


def default_time(view: View, *, exposure: bool = False) -> Time:
    """Return the default time: whether the order of payments counts unless specified.

    Coins have their own order. Bits of addresses and accounts are stationary; exposure, the share
    that came from a list, always follows the order of time: money cannot come from somebody who was
    paid later.

    >>> default_time("account"), default_time("account", exposure=True)
    ('stationary', 'temporal')
    """
    return "temporal" if view == "coin" or exposure else "stationary"


def building_bytes(ledger: Ledger, *, view: View | None = None, time: Time | None = None) -> int:
    """Estimate the bytes that building a graph and its chain takes beside the ledger.

    Measured on simulated weeks, a tenth to a third of each: bytes per row grow with the digits that
    amounts take, and with snapshots, of which there may be two for every row.
    """
    view = view or default_view(ledger)
    time = time or default_time(view)
    if isinstance(ledger, CoinLedger):
        rows, amounts = len(ledger.output_tx) + len(ledger.input_tx), ledger.output_value
    else:
        rows, amounts = len(ledger), ledger.amounts
    digits = 1 if amounts is None else amounts.digits.shape[1]
    snapshots = time == "temporal" and view != "coin"
    return rows * (110 + 125 * digits if snapshots else 105 + 25 * digits)


def transaction_graph(
    ledger: Ledger,
    *,
    view: View | None = None,
    time: Time | None = None,
    opening: OpeningOption = "surplus",
    top_up: bool = False,
    mint: Literal["each", "one"] = "each",
    pools: Literal["each", "merged"] = "each",
    clusters: Mapping[str, str] | Clustering | None = None,
    sinks: Literal["balance", "paper"] = "balance",
) -> TransactionGraph:
    """Build the graph of one view of a ledger.

    `view` is `coin` (default) or `address` for coins, `account` for transfers; `time` is
    `stationary` (default) or `temporal`, and not for the coin view, which has its own time.
    `opening` is the lowest balance that explains what was spent (`surplus`), the value of earlier
    coins (`observed`), or a table of balances. `sinks="paper"` counts every node that received more
    than it paid out, including fees left in transactions.

    >>> from coinhaze.ledger import AccountLedger
    >>> transaction_graph(AccountLedger.from_transfers([("a", "b", 5), ("b", "c", 3)]))
    TransactionGraph(3 nodes, 2 edges, 1 sources, 2 sinks)
    """
    if not isinstance(ledger, AccountLedger | CoinLedger):
        raise UsageError(f"not a ledger: {type(ledger).__name__}")
    coins = isinstance(ledger, CoinLedger)
    view = view or default_view(ledger)
    _check_settings(ledger, view, time, opening, clusters)
    for name, value, known in (
        ("mint", mint, ("each", "one")),
        ("pools", pools, ("each", "merged")),
        ("sinks", sinks, ("balance", "paper")),
    ):
        if value not in known:
            raise UsageError(f"{name} is {' or '.join(known)}, not {value!r}")
    time = time or default_time(view)
    table = _cluster_table(ledger, clusters)
    if isinstance(ledger, CoinLedger):
        flows = coin_flows(ledger, by_owner=view == "address", pools=pools, clusters=table)
    else:
        flows = account_flows(ledger, mint=mint, clusters=table)
    build = temporal if time == "temporal" else stationary
    if not isinstance(opening, str) and table:
        opening = _by_cluster(opening, table)
    rule = _opening(flows, opening, top_up=top_up, pools=pools)
    settings: dict[str, Any] = {"view": view, "time": time if view != "coin" else None}
    settings |= {"opening": opening if isinstance(opening, str) else "table", "top_up": top_up}
    settings |= {"pools": pools} if coins else {"mint": mint}
    settings |= {"clusters": _cluster_words(clusters), "sinks": sinks}
    graph = build(flows, rule, paper_sinks=sinks == "paper")
    notes = ledger.notes + graph.notes + _cluster_notes(ledger, clusters) + short_pool_notes(ledger)
    release_unused()
    return replace(graph, settings=settings, notes=notes)


def _cluster_table(ledger: Ledger, clusters: Clusters | str | None) -> Clusters | None:
    if isinstance(clusters, str):
        assert isinstance(ledger, CoinLedger)
        return CLUSTERINGS[clusters](ledger)
    return clusters


def _cluster_notes(ledger: Ledger, clusters: Clusters | str | None) -> tuple[str, ...]:
    if clusters is None or isinstance(clusters, str):
        return ()
    owners = ledger.owners if isinstance(ledger, CoinLedger) else ledger.accounts
    unknown = sorted(clusters.keys() - set(owners.to_pylist()))
    if not unknown:
        return ()
    shown = first_few(unknown)
    return (f"cluster table: {len(unknown)} of its addresses not in the ledger: {shown}",)


def _by_cluster(opening: Mapping[str, int], clusters: Clusters) -> Mapping[str, int]:
    """Add up the balances of each cluster's members, including those absent from the ledger."""
    total: dict[str, int] = {}
    for name, amount in opening.items():
        value = exact_amount(amount, f"opening of {name}", field="amount")
        entity = clusters.get(name, name)
        total[entity] = total.get(entity, 0) + value
    return total


def _cluster_words(clusters: Clusters | str | None) -> str | None:
    return clusters if clusters is None or isinstance(clusters, str) else f"{len(clusters)} rows"


def _check_settings(
    ledger: Ledger,
    view: str,
    time: str | None,
    opening: str | Mapping[str, int],
    clusters: Clusters | str | None,
) -> None:
    coins = isinstance(ledger, CoinLedger)
    views = ("coin", "address") if coins else ("account",)
    if view not in views:
        raise UsageError(f"view {view!r} does not fit this ledger: one of {', '.join(views)}")
    if time not in (None, "stationary", "temporal"):
        raise UsageError(f"time is stationary or temporal, not {time!r}")
    if view == "coin" and time is not None:
        raise UsageError("the coin view has its own time: leave `time` out, or view by address")
    if not isinstance(opening, Mapping) and opening not in ("surplus", "observed"):
        raise UsageError(f"opening is surplus, observed or a table, not {opening!r}")
    if opening == "observed" and not coins:
        raise UsageError("opening=observed needs coins: accounts show no earlier coins")
    if clusters is not None and view == "coin":
        raise UsageError("clusters merge addresses: use view=address")
    if isinstance(clusters, str) and (clusters not in CLUSTERINGS or not coins):
        known = ", ".join(CLUSTERINGS)
        raise UsageError(f"clusters is a table or, for a ledger of coins, one of {known}")
    if isinstance(ledger, CoinLedger) and ledger.output_value is None and view != "coin":
        raise UsageError(
            "this ledger hides amounts, so balances of addresses are unknown: view=coin"
        )
    if isinstance(ledger, CoinLedger) and ledger.has_unknown and view != "coin":
        raise UsageError("it is not known who owned the coins of unknown value: view=coin")


def _opening(
    flows: Flows, opening: str | Mapping[str, int], *, top_up: bool, pools: str
) -> Opening:
    """Convert the setting to a rule; pools take the surplus unless given a value."""
    if not isinstance(opening, str):
        return Opening(table=opening, top_up=top_up)
    if opening == "surplus" or flows.observed is None:
        return Opening()
    ledger = flows.ledger
    assert isinstance(ledger, CoinLedger)
    addresses = np.flatnonzero(flows.kinds == Kind.address)
    names = flows.names.take(addresses).to_pylist()
    table = dict(zip(names, flows.observed().take(addresses).ints(), strict=True))
    values = ledger.pool_values
    if values and pools == "merged":
        table["pool:shielded"] = sum(values.values())
    else:
        table |= {f"pool:{pool}": value for pool, value in values.items()}
    return Opening(table=table, strict=False, top_up=top_up)
