"""Screening: how much of what nodes hold came from a list, by every rule side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Unpack

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.errors import InputError, UsageError, first_few
from coinhaze.graph import TransactionGraph
from coinhaze.graph.assumed import assumed_openings
from coinhaze.graph.find import find_holdings, name_in, other_network
from coinhaze.ledger import Amounts
from coinhaze.measures import Taint
from coinhaze.observer import absorbing_chain
from coinhaze.observer.knowledge import source_set
from coinhaze.observer.policies import POLICIES, PROPORTIONAL
from coinhaze.options import LedgerKeywords, ScreenOptions
from coinhaze.screening.routes import Route, find_routes
from coinhaze.solve import score_or_reached, taint
from coinhaze.solve.lots.payments import check_order
from coinhaze.solve.lots.taint import choose_taint_policies
from coinhaze.solve.lots.tiho import check_coins
from coinhaze.solve.source import Source, graph_of

ROUTED = 5  # nodes, the largest, whose paths are looked for


@dataclass(frozen=True, eq=False)
class Screening:
    """What nodes hold of a list's money: shares and amounts by policy, and the ways it came."""

    taint: Taint
    asked: tuple[str, ...]  # the policies asked for, those without a meaning here among them
    undefined: Mapping[str, str]  # ... and why they have none
    shares: Mapping[str, Floats]  # by policy; not a number where there is no answer
    found: tuple[str, ...]  # names of the list that the ledger knows ...
    missing: tuple[str, ...]  # ... and those it does not
    listed: Bools  # which nodes are on the list themselves
    every: bool  # whether all sinks were screened, or nodes that were named
    routes: tuple[Route, ...] = ()

    def __len__(self) -> int:
        return len(self.taint)

    @property
    def graph(self) -> TransactionGraph:
        """The graph it is about."""
        return self.taint.graph

    @property
    def policies(self) -> tuple[str, ...]:
        """The policies that have an answer."""
        return self.taint.policies

    @cached_property
    def assumed(self) -> Amounts:
        """Of each row's balance what is only assumed: money from before the window."""
        found = assumed_openings(self.graph, self.taint.nodes)
        assert found is not None  # screening needs amounts
        return found.where(self.taint.balance.positive())

    def amounts(self, policy: str, rows: Ints) -> list[int] | list[float]:
        """Give the listed money of some rows: whole units, but for haircut."""
        if policy == PROPORTIONAL.column:
            assert self.taint.haircut is not None
            parts: list[float] = self.taint.haircut[rows].tolist()
            return parts
        return self.taint.amounts(policy).take(rows).ints()

    def reached(self) -> Bools:
        """Tell which rows listed money reached, by any policy."""
        reached = np.zeros(len(self), dtype=np.bool_)
        for share in self.shares.values():
            reached |= share > 0
        return reached

    def order(self) -> Ints:
        """Give rows with most listed money first, by the first policy.

        Of all sinks only those it reached; of nodes that were asked about, all.
        """
        rows = np.flatnonzero(self.reached()) if self.every else np.arange(len(self))
        keys: list[list[Any]] = []
        for policy in self.policies:
            share = np.nan_to_num(self.shares[policy][rows]).tolist()
            # No answer counts as none: a comparison with it would leave the order open.
            keys += [[0 if a != a else a for a in self.amounts(policy, rows)], share]
        # Whole amounts may be too large for floats: they are compared as they are.
        order = sorted(range(len(rows)), key=lambda k: tuple(-key[k] for key in keys))
        return rows[np.array(order, dtype=np.int64)]

    def half_width(self) -> float:
        """Give the widest margin of the shares by haircut; 0 where all shares are exact."""
        low, high = self.taint.exposure_low, self.taint.exposure_high
        if low is None or high is None or not len(low):
            return 0.0
        return float(np.nanmax((high - low) / 2, initial=0.0))

    def to_arrow(self) -> pa.Table:
        """Give a table, a row a node: share and amount by every policy, null where undefined.

        `assumed` is the part of the balance that no payment shows: the opening by `surplus`.
        """
        told = self.taint
        columns: dict[str, pa.Array] = {
            "node": told.graph.names.of(told.nodes),
            "kind": told.to_arrow()["kind"],
            "listed": pa.array(self.listed),
            "balance": told.balance.text(),
            "assumed": self.assumed.text(),
        }
        for policy in self.asked:
            if policy in self.undefined:
                columns[f"{policy}_share"] = pa.nulls(len(self), pa.float64())
                columns[f"{policy}_amount"] = pa.nulls(len(self), pa.string())
                continue
            columns[f"{policy}_share"] = _nullable(self.shares[policy])
            if policy == PROPORTIONAL.column:
                for side in ("low", "high"):
                    bound = getattr(told, f"exposure_{side}")
                    columns[f"{policy}_share_{side}"] = _nullable(bound)
                columns[f"{policy}_amount"] = _nullable(told.haircut)
            else:
                columns[f"{policy}_amount"] = told.amounts(policy).text()
        return pa.table(columns)

    def totals(self) -> list[dict[str, Any]]:
        """Say for each policy where the list's money is; ordered ones tell of every unit.

        There `listed` = `screened` + `other_sinks` + `fees` + `unspendable` + `relisted`.
        """
        return [self._total(policy) for policy in self.policies]

    def _total(self, policy: str) -> dict[str, Any]:
        if policy == PROPORTIONAL.column:
            assert self.taint.haircut is not None
            screened: int | float = float(np.nansum(self.taint.haircut))
        else:
            held = self.taint.amounts(policy)
            screened = sum(held.ints())
        row: dict[str, Any] = {"policy": policy, "screened": screened}
        names = ("listed", "other_sinks", "fees", "unspendable", "relisted")
        row |= dict.fromkeys(names)
        trail = self.taint.trails.get(policy)
        if trail is None:
            return row
        in_sink = sum(held.take(self.graph.sinks[self.taint.nodes]).ints())
        row |= {name: sum(getattr(trail, name).ints()) for name in ("listed", "fees", "relisted")}
        row["other_sinks"] = sum(trail.sinks.ints()) - in_sink
        row["unspendable"] = sum(trail.other.ints()) - (screened - in_sink)
        return row


def screen(
    source: Source,
    listed: Iterable[str],
    *,
    policies: Sequence[str] | None = None,
    nodes: Iterable[str] | None = None,
    paths: int = ScreenOptions.paths,
    **settings: Unpack[LedgerKeywords],
) -> Screening:
    """Say how much of what nodes hold came from listed names, by every policy side by side.

    `source` and settings are those of `taint`. `nodes` are names, an address standing for its
    unspent coins; all sinks unless given. A policy that has no meaning for the ledger is told as
    such. `paths` is how many single paths to look for, for each of the largest nodes.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers(
    ...     [("thief", "shop", 1), ("bob", "shop", 3), ("shop", "carol", 2)])
    >>> found = screen(ledger, ["thief"])
    >>> found.shares["haircut"].tolist(), sorted(found.undefined)
    ([0.25, 0.25], ['tiho'])
    """
    if isinstance(listed, str):
        raise UsageError(f"listed is a list of names, not one: [{listed!r}]")
    graph = graph_of(source, in_order=True, **settings)
    if graph.closing is None:
        raise UsageError("this ledger hides amounts: nobody can say how much of them is listed")
    known, missing = _resolved(graph, list(dict.fromkeys(listed)))
    asked = tuple(policy.column for policy in choose_taint_policies(policies))
    undefined = _undefined(graph, asked)
    defined = [policy for policy in asked if policy not in undefined]
    if not defined:
        raise UsageError("; ".join(dict.fromkeys(undefined.values())))
    rows: Any = "sinks"
    if nodes is not None:
        rows = graph.names.of(find_holdings(graph, nodes)).to_pylist()
    found = taint(graph, known, policies=defined, nodes=rows)
    chosen = source_set(graph, known)
    screening = Screening(
        taint=found,
        asked=asked,
        undefined=undefined,
        shares={policy: _shares(found, policy, known) for policy in found.policies},
        found=tuple(known),
        missing=tuple(missing),
        listed=chosen.nodes[found.nodes],
        every=nodes is None,
    )
    return _with_routes(screening, known, paths)


def _with_routes(screening: Screening, known: Sequence[str], paths: int) -> Screening:
    rows = screening.order()
    rows = rows[screening.reached()[rows] & ~screening.listed[rows]]
    nodes = screening.taint.nodes[rows][:ROUTED]
    if not paths or not len(nodes):
        return screening
    chain = absorbing_chain(screening.graph, policy=PROPORTIONAL.name, listed=known)
    routes = tuple(find_routes(chain, nodes, most=paths))
    return replace(screening, routes=routes)


def _resolved(graph: TransactionGraph, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Tell names the ledger knows from those it does not; refuse where it knows none."""
    if not names:
        raise InputError("the list names nothing: write one name a line")
    as_written = {name: name_in(graph, name) for name in names}
    known = [own for own in as_written.values() if len(graph.names.nodes(own))]
    missing = [name for name, own in as_written.items() if not len(graph.names.nodes(own))]
    if known:
        return list(dict.fromkeys(known)), missing
    foreign = other_network(graph, missing)
    why = "" if foreign is None else f"; {foreign}"
    raise InputError(
        f"none of the {len(names):,} listed names is in the ledger: {first_few(missing)}{why}"
    )


def _undefined(graph: TransactionGraph, asked: Sequence[str]) -> dict[str, str]:
    """Say which policies have no meaning for a graph, and why."""
    reasons: dict[str, str] = {}
    for policy in asked:
        try:
            if "coins" in POLICIES[policy].needs:
                check_coins(graph)
            if "order" in POLICIES[policy].needs:
                check_order(graph)
        except UsageError as error:
            reasons[policy] = str(error)
    return reasons


def _shares(found: Taint, policy: str, known: Sequence[str]) -> Floats:
    """Give the share of each node's money that is listed; of what it held, where it holds none."""
    if policy == PROPORTIONAL.column:
        assert found.exposure is not None
        return found.exposure
    held = found.amounts(policy)
    some = np.flatnonzero(held.positive())
    shares = np.where(found.balance.positive(), 0.0, np.nan)
    # Python divides integers of any size with one rounding.
    pairs = zip(held.take(some).ints(), found.balance.take(some).ints(), strict=True)
    shares[some] = [part / whole for part, whole in pairs]
    empty = np.flatnonzero(np.isnan(shares))
    if len(empty) and POLICIES[policy].kind != "trace":
        names = found.graph.names.of(found.nodes[empty]).to_pylist()
        told = score_or_reached(found.graph, nodes=names, policy=policy, listed=known).exposure
        assert told is not None
        shares[empty] = told
    return shares


def _nullable(values: Floats | None) -> pa.Array:
    assert values is not None
    return pa.array(values, mask=np.isnan(values))
