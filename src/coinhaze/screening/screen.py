"""Screening: how much of the balance of nodes came from a list, under every policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.errors import InputError, UsageError
from coinhaze.formats.money import unit_of, with_amount_texts
from coinhaze.graph import TransactionGraph
from coinhaze.graph.find import find_holdings, moved_by, name_in, other_network
from coinhaze.graph.graph import Kind
from coinhaze.graph.opening import assumed_openings
from coinhaze.ledger import Amounts
from coinhaze.measures import Taint
from coinhaze.measures.taint import Trail
from coinhaze.observer import AbsorbingChain, absorbing_chain
from coinhaze.observer.knowledge import source_set
from coinhaze.observer.policies import POISON, POLICIES, PROPORTIONAL
from coinhaze.options import LedgerKeywords, ScreenOptions
from coinhaze.solve import score_or_reached, taint
from coinhaze.solve.local.origins import origins_or_reached
from coinhaze.solve.local.paths import largest_paths
from coinhaze.solve.lots.payments import check_order
from coinhaze.solve.lots.taint import choose_taint_policies
from coinhaze.solve.lots.tiho import check_coins
from coinhaze.solve.planner import thresholds
from coinhaze.solve.score import rows_of
from coinhaze.solve.source import Source, graph_of
from coinhaze.solve.structure.structure import Structure

# Paths through the same accounts at other times are one route: this many are examined per route.
LOOKED_AT = 10
# Where people send Ethereum's money to be rid of it; the zero address is a node kind of its own.
DEAD_ADDRESS = "0x" + "0" * 36 + "dead"
ROUTED = 5  # the number of largest nodes whose paths are searched


@dataclass(frozen=True)
class Route:
    """One path from a listed source to a node, and the share of its money that came that way."""

    node: str
    source: str
    names: tuple[str, ...]  # hop by hop, the source first; all snapshots of an account are one hop
    share: float
    listed: float  # the share that came from the list over all paths


def find_routes(chain: AbsorbingChain, nodes: Ints, *, limit: int) -> Iterator[Route]:
    """Yield for each node the paths that carried most of its listed money, largest first.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers(
    ...     [("thief", "shop", 1), ("bob", "shop", 3), ("shop", "carol", 2)])
    >>> graph = coinhaze.transaction_graph(ledger, time="temporal")
    >>> chain = coinhaze.absorbing_chain(graph, listed=["thief"])
    >>> carol = np.array([graph.names.node("carol")])
    >>> [route.names for route in find_routes(chain, carol, limit=1)]
    [('thief', 'shop', 'carol')]
    """
    graph, structure = chain.graph, Structure(chain)
    for node in nodes.tolist():
        try:
            large = len(chain) > thresholds.MAX_EXACT_NODES
            found = origins_or_reached(
                structure, int(node), accuracy=thresholds.NEARLY if large else "exact"
            )
        except InputError:
            continue  # its past never ends: there is no path to show
        listed = float(found.probability[found.outcomes != chain.elsewhere].sum())
        shares: dict[tuple[int, tuple[int, ...]], float] = {}
        for path in largest_paths(found, limit=limit * LOOKED_AT):
            party = graph.names.party[list(path.nodes)]
            # Money that stays in an account passes from snapshot to snapshot.
            moved = np.append(True, party[1:] != party[:-1])
            key = path.outcome, tuple(party[moved].tolist())
            shares[key] = shares.get(key, 0.0) + path.share
        for (outcome, parties), share in sorted(shares.items(), key=lambda item: -item[1])[:limit]:
            yield Route(
                node=found.name,
                source=str(chain.outcomes[outcome].as_py()),
                names=tuple(graph.names.parties.take(np.array(parties)).to_pylist()),
                share=share,
                listed=listed,
            )


@dataclass(frozen=True, eq=False)
class Screening:
    """Listed money held by nodes: shares and amounts by policy, and the routes it took."""

    taint: Taint
    requested: tuple[str, ...]  # the policies requested, including undefined ones
    undefined: Mapping[str, str]  # ... and why they are undefined here
    shares: Mapping[str, Floats]  # by policy; NaN where there is no answer
    found: tuple[str, ...]  # names of the list that the ledger knows ...
    missing: tuple[str, ...]  # ... and those it does not
    listed: Bools  # which nodes are on the list themselves
    every: bool  # whether all sinks were screened, or only named nodes
    burned: Bools  # which nodes are money that nobody can move again
    dust: int = 0  # findings of less listed money are set apart
    deposits: tuple[str, ...] = ()  # names that were given as the hash of a transaction
    routes: tuple[Route, ...] = ()

    def __len__(self) -> int:
        return len(self.taint)

    @property
    def graph(self) -> TransactionGraph:
        """The graph that was screened."""
        return self.taint.graph

    @property
    def policies(self) -> tuple[str, ...]:
        """The policies that have an answer."""
        return self.taint.policies

    @cached_property
    def assumed(self) -> Amounts:
        """The part of each row's balance that is only assumed: money from before the window."""
        found = assumed_openings(self.graph, self.taint.nodes)
        assert found is not None  # screening needs amounts
        return found.where(self.taint.balance.positive())

    def amounts(self, policy: str, rows: Ints) -> list[int] | list[float]:
        """Return the listed money of some rows: in whole units, except under haircut."""
        if policy == PROPORTIONAL.column:
            assert self.taint.haircut is not None
            parts: list[float] = self.taint.haircut[rows].tolist()
            return parts
        return self.taint.amounts(policy).take(rows).ints()

    def reached(self) -> Bools:
        """Return which rows listed money reached, under any policy."""
        reached = np.zeros(len(self), dtype=np.bool_)
        for share in self.shares.values():
            reached |= share > 0
        return reached

    @property
    def is_match(self) -> bool:
        """Whether listed money was found anywhere, by any policy."""
        return bool(self.reached().any())

    def is_dust(self) -> Bools:
        """Return which rows listed money reached, but less of it than the limit of dust.

        Counted is the most by any policy but poison, which counts whole balances.
        """
        maximum = np.zeros(len(self), dtype=np.float64)
        for policy in self.policies:
            if policy != POISON.column:
                rows = np.arange(len(self))
                held = np.array([float(a) for a in self.amounts(policy, rows)])
                maximum = np.fmax(maximum, held)
        return self.reached() & (maximum < self.dust) & self.taint.balance.positive()

    @property
    def limited_by(self) -> str:
        """The rule whose share is compared with a limit."""
        return PROPORTIONAL.column if PROPORTIONAL.column in self.policies else "some rule"

    def above(self, limit: float) -> Ints:
        """Return the rows whose exposure is, or may be, above a limit; dust and burned apart.

        Exposure is the share under haircut, at the upper end of its interval; where haircut was
        not requested, the largest share under any policy.
        """
        if PROPORTIONAL.column in self.policies:
            high = self.taint.exposure_high
            share = self.shares[PROPORTIONAL.column] if high is None else high
        else:
            share = np.fmax.reduce([self.shares[policy] for policy in self.policies])
        passed = np.nan_to_num(share) > limit
        # A bound above 0 by rounding alone is no finding.
        return np.flatnonzero(passed & self.reached() & ~self.is_dust() & ~self.burned)

    def only_mixed(self) -> Ints:
        """Return the rows that poison reaches and no policy that follows single units."""
        units = [self.shares[p] for p in self.policies if POLICIES[p].kind != "walk"]
        if POISON.column not in self.policies or not units:
            return np.zeros(0, np.int64)
        none = np.fmax.reduce([np.nan_to_num(share) for share in units]) == 0
        return np.flatnonzero((self.shares[POISON.column] > 0) & none)

    def order(self) -> Ints:
        """Return the rows by descending listed money under the first policy.

        For all sinks, only those it reached; for nodes given by name, all of them.
        """
        rows = np.flatnonzero(self.reached()) if self.every else np.arange(len(self))
        keys: list[list[Any]] = []
        for policy in self.policies:
            share = np.nan_to_num(self.shares[policy][rows]).tolist()
            # No answer counts as 0: comparing with NaN would leave the order undefined.
            keys += [[0 if a != a else a for a in self.amounts(policy, rows)], share]
        # Whole amounts may be too large for floats, so they are compared exactly.
        order = sorted(range(len(rows)), key=lambda k: tuple(-key[k] for key in keys))
        return rows[np.array(order, dtype=np.int64)]

    def half_width(self) -> float:
        """Return the largest margin of the haircut shares; 0 where all shares are exact."""
        low, high = self.taint.exposure_low, self.taint.exposure_high
        if low is None or high is None or not len(low):
            return 0.0
        return float(np.nanmax((high - low) / 2, initial=0.0))

    def to_arrow(self) -> pa.Table:
        """Return one row per node: share and amount under every policy, null where undefined.

        `assumed` is the part of the balance that no payment shows: the opening by `surplus`.
        """
        taint = self.taint
        columns: dict[str, pa.Array] = {
            "node": taint.graph.names.of(taint.nodes),
            "kind": taint.to_arrow()["kind"],
            "listed": pa.array(self.listed),
            "balance": taint.balance.text(),
            "assumed": self.assumed.text(),
        }
        for policy in self.requested:
            if policy in self.undefined:
                columns[f"{policy}_share"] = pa.nulls(len(self), pa.float64())
                columns[f"{policy}_amount"] = pa.nulls(len(self), pa.string())
                continue
            columns[f"{policy}_share"] = _nullable(self.shares[policy])
            if policy == PROPORTIONAL.column:
                for side in ("low", "high"):
                    bound = getattr(taint, f"exposure_{side}")
                    columns[f"{policy}_share_{side}"] = _nullable(bound)
                columns[f"{policy}_amount"] = _nullable(taint.haircut)
            else:
                columns[f"{policy}_amount"] = taint.amounts(policy).text()
        columns |= {"burned": pa.array(self.burned), "dust": pa.array(self.is_dust())}
        table = pa.table(columns)
        # Shares of amounts, which haircut makes, are no whole numbers.
        exact = [n for n in columns if table[n].type == pa.string() and n not in ("node", "kind")]
        return with_amount_texts(table, unit_of(taint.graph.ledger), exact)

    def totals(self) -> list[dict[str, Any]]:
        """Return for each policy where the list's money is; ordered policies cover every unit.

        For these, `listed` = `screened` + `other_sinks` + `fees` + `unspendable` + `relisted`.
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
    dust: int = 0,
    **settings: Unpack[LedgerKeywords],
) -> Screening:
    """Compute how much of the balance of nodes came from listed names, under every policy.

    `source` and settings are those of `taint`. `nodes` are names, an address standing for its
    unspent coins and a transaction's hash for what it moved; all sinks unless given. A policy that
    is undefined for the ledger is reported as such. `paths` is how many single paths to search for,
    for each of the largest nodes. Findings of less than `dust` are set apart. A list with no name
    in the ledger is a result: no match.

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
    requested = tuple(policy.column for policy in choose_taint_policies(policies))
    undefined = _undefined(graph, requested)
    defined = [policy for policy in requested if policy not in undefined]
    if not defined:
        raise UsageError("; ".join(dict.fromkeys(undefined.values())))
    rows: Any = "sinks"
    deposits: tuple[str, ...] = ()
    if nodes is not None:
        nodes = list(nodes)
        deposits = tuple(name for name in nodes if len(moved_by(graph, name)))
        rows = graph.names.of(find_holdings(graph, nodes)).to_pylist()
    if known:
        found = taint(graph, known, policies=defined, nodes=rows)
        listed_nodes = source_set(graph, known).nodes[found.nodes]
    else:
        found = _no_match(graph, defined, rows)
        listed_nodes = np.zeros(len(found), dtype=np.bool_)
    screening = Screening(
        taint=found,
        requested=requested,
        undefined=undefined,
        shares={policy: _shares(found, policy, known) for policy in found.policies},
        found=tuple(known),
        missing=tuple(missing),
        listed=listed_nodes,
        every=nodes is None,
        burned=_burned(found),
        dust=dust,
        deposits=deposits,
    )
    return _with_routes(screening, known, paths)


def _no_match(graph: TransactionGraph, policies: Sequence[str], nodes: Any) -> Taint:
    """Return a taint of nothing: no listed name is in the ledger."""
    rows = np.array(list(dict.fromkeys(rows_of(graph, nodes).tolist())), dtype=np.int64)
    assert graph.closing is not None
    balance = graph.closing.take(rows)
    zeros, empty = np.zeros(len(rows)), np.zeros(0, dtype=np.int64)
    nothing = Amounts.zeros(0)
    trail = Trail(empty, empty, nothing, nothing, nothing, nothing, nothing, nothing)
    haircut = PROPORTIONAL.column in policies
    return Taint(
        graph=graph,
        listed=(),
        nodes=rows,
        balance=balance,
        exposure=zeros if haircut else None,
        exposure_low=zeros if haircut else None,
        exposure_high=zeros if haircut else None,
        poison=Amounts.zeros(len(rows)) if POISON.column in policies else None,
        trails={p: trail for p in policies if POLICIES[p].kind != "walk"},
        settings=graph.settings | {"policies": list(policies), "listed": 0},
        notes=graph.notes,
    )


def _burned(found: Taint) -> Bools:
    """Return which nodes are burned money: paid to nobody, or to an address nobody has a key to."""
    names = found.graph.names.of(found.nodes)
    dead = pc.equal(pc.utf8_lower(names), DEAD_ADDRESS).to_numpy(zero_copy_only=False)
    burned: Bools = (found.graph.kinds[found.nodes] == Kind.burn) | dead.astype(np.bool_)
    return burned


def _with_routes(screening: Screening, known: Sequence[str], paths: int) -> Screening:
    rows = screening.order()
    rows = rows[screening.reached()[rows] & ~screening.listed[rows]]
    nodes = screening.taint.nodes[rows][:ROUTED]
    if not paths or not len(nodes):
        return screening
    chain = absorbing_chain(screening.graph, policy=PROPORTIONAL.name, listed=known)
    routes = tuple(find_routes(chain, nodes, limit=paths))
    return replace(screening, routes=routes)


def _resolved(graph: TransactionGraph, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split names into those the ledger knows and those it does not.

    A list of other networks' addresses alone is an error: it could not match.
    """
    if not names:
        raise InputError("the list names nothing: write one name a line")
    as_written = {name: name_in(graph, name) for name in names}
    known = [own for own in as_written.values() if len(graph.names.nodes(own))]
    missing = [name for name, own in as_written.items() if not len(graph.names.nodes(own))]
    foreign = [other_network(graph, [name]) for name in missing]
    if not known and all(foreign):
        raise InputError(
            f"none of the {len(names):,} listed names can be in the ledger: {foreign[0]}"
        )
    return list(dict.fromkeys(known)), missing


def _undefined(graph: TransactionGraph, requested: Sequence[str]) -> dict[str, str]:
    """Return the policies that are undefined for a graph, and why."""
    reasons: dict[str, str] = {}
    for policy in requested:
        try:
            if "coins" in POLICIES[policy].needs:
                check_coins(graph)
            if "order" in POLICIES[policy].needs:
                check_order(graph)
        except UsageError as error:
            reasons[policy] = str(error)
    return reasons


def _shares(found: Taint, policy: str, known: Sequence[str]) -> Floats:
    """Return the listed share of each node's money; of its past holdings where it is empty."""
    if policy == PROPORTIONAL.column:
        assert found.exposure is not None
        return found.exposure
    if not known:
        return np.zeros(len(found))
    held = found.amounts(policy)
    some = np.flatnonzero(held.positive())
    shares = np.where(found.balance.positive(), 0.0, np.nan)
    # Python divides integers of any size with a single rounding.
    pairs = zip(held.take(some).ints(), found.balance.take(some).ints(), strict=True)
    shares[some] = [part / whole for part, whole in pairs]
    empty = np.flatnonzero(np.isnan(shares))
    if len(empty) and POLICIES[policy].kind != "trace":
        names = found.graph.names.of(found.nodes[empty]).to_pylist()
        exposure = score_or_reached(found.graph, nodes=names, policy=policy, listed=known).exposure
        assert exposure is not None
        shares[empty] = exposure
    return shares


def _nullable(values: Floats | None) -> pa.Array:
    assert values is not None
    return pa.array(values, mask=np.isnan(values))
