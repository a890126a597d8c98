"""How a ledger can be looked at: settings made whole, and the graph, chain and scores they mean."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow.compute as pc

from coinhaze.amounts import Ints
from coinhaze.errors import UsageError, shorten
from coinhaze.explore.cache import Cache, progress
from coinhaze.explore.query import Settings
from coinhaze.graph import TransactionGraph, transaction_graph
from coinhaze.graph.build import default_time
from coinhaze.graph.clusters.change import change_outputs
from coinhaze.graph.find import name_in
from coinhaze.graph.graph import Kind
from coinhaze.ledger import AccountLedger, CoinLedger
from coinhaze.measures import Scores
from coinhaze.observer import AbsorbingChain
from coinhaze.observer.chain import SourceNames
from coinhaze.observer.knowledge import SourceSet, source_set
from coinhaze.observer.owners import Observer, ladder
from coinhaze.observer.policies import (
    POLICIES,
    Policy,
    default_policy,
    score_policies,
    weighing_policies,
)
from coinhaze.options import Accuracy
from coinhaze.session import Session
from coinhaze.solve import score_or_reached
from coinhaze.solve.informed import informed
from coinhaze.solve.local.destinations import forward_structure
from coinhaze.solve.planner import thresholds
from coinhaze.solve.structure.structure import Structure

# Graphs of other views, and sessions of them, that are cached: of a large ledger each takes
# gigabytes.
CACHED, CACHED_LARGE, CACHED_LISTS = (3, 6), (1, 2), 8
LARGE = 1_000_000  # nodes
WALKED = "a part of a chain that was walked back"
SNAPSHOTS = re.compile(r":[0-9]+$")
AnyQuery = TypeVar("AnyQuery", bound=Settings)


class ViewOptions(NamedTuple):
    """Settings with nothing left open: what a graph, a chain or scores are cached by."""

    policy: str
    view: str
    time: str
    list: str | None

    @property
    def graph(self) -> tuple[str, str]:
        """What of it a graph depends on."""
        return self.view, self.time

    @property
    def ordered(self) -> bool:
        """Whether lots are followed, not a walk."""
        return self.rule.ordered

    @property
    def rule(self) -> Policy:
        """The policy."""
        return POLICIES[self.policy]


class Listed(NamedTuple):
    """A list in one graph: the nodes it names, and how many names it has."""

    id: str
    names: tuple[str, ...]  # those of the ledger, as it writes them
    total: int
    nodes: SourceSet


class Views:
    """One ledger's sessions by settings, made when they are needed; so many are cached."""

    def __init__(
        self,
        session: Session,
        scores: Scores | None,
        *,
        names_of: Callable[[str], Sequence[str]],
        max_origins: int | None = None,
    ) -> None:
        """Take a session; `max_origins` says that its ledger is a part of a chain, walked back.

        Then figures of single coins are bounded over the whole chain, and nothing else is given.
        """
        self.max_origins = max_origins
        self.chain = chain = session.chain
        self.ledger = chain.graph.ledger
        self.names_of = names_of
        self.default = self._own(chain)
        self._session = session
        self._scores = scores
        graphs, sessions = CACHED_LARGE if len(chain) > LARGE else CACHED
        self._graphs: Cache[TransactionGraph] = Cache(graphs)
        self._sessions: Cache[Session] = Cache(sessions)
        self._lists: Cache[Listed] = Cache(CACHED_LISTS)
        self._observers: Cache[tuple[Observer, ...]] = Cache(1)
        self._informed: Cache[Scores] = Cache(2)
        self._forward: Cache[Structure] = Cache(sessions)

    @staticmethod
    def _own(chain: AbsorbingChain) -> ViewOptions:
        name = chain.settings.get("policy")
        policy = POLICIES.get(name)
        if policy is None or not policy.takes_links or chain.listed:
            raise UsageError(f"an explorer's own chain is over all sources, not {name!r}")
        view = str(chain.settings["view"])
        return ViewOptions(policy.column, view, str(chain.settings.get("time") or "temporal"), None)

    def observers(self, labels: Mapping[str, str]) -> tuple[Observer, ...]:
        """Give the informed observers of the ledger, found once; `labels` are its own."""
        return self._observers.make((), lambda: ladder(self.ledger, labels=labels))

    @property
    def tells_observers(self) -> bool:
        """Whether informed observers stand beside the naive one on every page.

        Of a large ledger they are found on request: that takes a while.
        """
        return len(self.chain) <= thresholds.MAX_VIEW_NODES and self.max_origins is None

    @cached_property
    def change(self) -> frozenset[int]:
        """The coins of the ledger that are recognised as change."""
        assert isinstance(self.ledger, CoinLedger)
        return frozenset(change_outputs(self.ledger).tolist())

    @cached_property
    def policies(self) -> tuple[str, ...]:
        """What policies can be requested, the default first."""
        own = self.default.policy
        if self.max_origins is not None:
            # The past of what was not followed is bounded where money is split by shares alone.
            return tuple(p.column for p in weighing_policies())
        found = score_policies(hides_amounts=self.chain.graph.amounts is None)
        can = (p.column for p in found if not (p.ordered and self.no_snapshots))
        return own, *(name for name in can if name != own)

    @property
    def times(self) -> tuple[str, ...]:
        """What can be known of the order of payments."""
        if self.default.view == "coin":
            return ()
        return ("stationary",) if self.no_snapshots else ("stationary", "temporal")

    @cached_property
    def no_snapshots(self) -> str | None:
        """Why accounts cannot be followed through time; None where they can."""
        return why_no_snapshots(self.chain.graph)

    @cached_property
    def views(self) -> tuple[str, ...]:
        """What nodes can be, the default first."""
        if isinstance(self.ledger, AccountLedger):
            return ("account",)
        can = ("coin",) if self._coins_only() else ("coin", "address")
        return self.default.view, *(v for v in can if v != self.default.view)

    def _coins_only(self) -> bool:
        ledger = self.ledger
        if not isinstance(ledger, CoinLedger):
            return False
        part = self.max_origins is not None
        return part or ledger.output_value is None or ledger.has_unknown

    def settings(self, query: AnyQuery) -> AnyQuery:
        """Put defaults in the place of what was left open; refuse what does not go together."""
        options = self.options(query)
        return query.model_copy(
            update={
                "policy": options.policy,
                "view": options.view,
                "time": None if options.view == "coin" else options.time,
            }
        )

    def options(self, query: Settings) -> ViewOptions:
        """Resolve settings."""
        rule = POLICIES[query.policy]
        if self.chain.graph.amounts is None and rule == default_policy(hides_amounts=False):
            # Nothing is split by amounts that nobody sees.
            rule = default_policy(hides_amounts=True)
        policy = rule.column
        if self.no_snapshots and (rule.ordered or query.time == "temporal"):
            raise UsageError(self.no_snapshots)
        if policy not in self.policies:
            why = "a ledger that hides amounts" if self.max_origins is None else WALKED
            raise UsageError(
                f"policy {policy} has no meaning for {why}: one of {', '.join(self.policies)}"
            )
        view = query.view or self.default.view
        if view not in self.views:
            can = ", ".join(self.views)
            raise UsageError(f"view {view} does not fit this ledger: one of {can}")
        if rule.needs_list and query.list is None:
            raise UsageError(f"{policy} needs a list: it {rule.words}")
        if view == "coin":
            if query.time not in (None, "temporal"):
                raise UsageError("coins have their own time: ask for view=address, or no time")
            return ViewOptions(policy, view, "temporal", query.list)
        time = query.time
        if rule.ordered:
            # Lots need to know what came first.
            if time == "stationary":
                raise UsageError(f"{policy} needs the order of payments: time=temporal")
            if view == "address":
                raise UsageError(f"{policy} follows coins, not addresses: view=coin")
            time = "temporal"
        if time is None and rule.needs_list:  # all it tells is of the list
            return self._in_time(ViewOptions(policy, view, "stationary", query.list))
        own = self.default.time if view == self.default.view else default_time("address")
        return ViewOptions(policy, view, time or own, query.list)

    def exposing(self, query: Settings) -> ViewOptions:
        """Resolve settings for exposure: in the order of time, unless another is chosen."""
        options = self.options(query)
        return options if query.time is not None else self._in_time(options)

    def _in_time(self, options: ViewOptions) -> ViewOptions:
        if self.no_snapshots is not None:
            return options
        return options._replace(time=default_time(options.view, exposure=True))  # type: ignore[arg-type]

    def nodes_in(self, other: ViewOptions, options: ViewOptions, nodes: Ints) -> Ints:
        """Find the nodes of one graph in that of another time: those of the same parties."""
        if other.graph == options.graph:
            return nodes
        parties = self.graph(options).names.party[nodes]
        return self.graph(other).names.newest[parties].astype(np.int64)

    def graph(self, options: ViewOptions) -> TransactionGraph:
        """Give the graph of a view."""
        if options.graph == self.default.graph:
            return self.chain.graph
        return self._graphs.make(options.graph, lambda: self._build(options))

    def _build(self, options: ViewOptions) -> TransactionGraph:
        note = progress()
        note(0.0)
        time = None if options.view == "coin" else options.time
        graph = transaction_graph(self.ledger, view=options.view, time=time)  # type: ignore[arg-type]
        note(0.3)
        return graph

    def listed(self, options: ViewOptions) -> Listed | None:
        """Give the list of a view in its graph, None without a list."""
        name = options.list
        if name is None:
            return None
        return self._lists.make((options.graph, name), lambda: self._resolve(options, name))

    def _resolve(self, options: ViewOptions, name: str) -> Listed:
        graph = self.graph(options)
        names = list(dict.fromkeys(self.names_of(name)))
        found = source_set(graph, [name_in(graph, n) for n in names])
        return Listed(name, tuple(found.labels), len(names), found)

    def session(self, options: ViewOptions, *, listed: bool = False) -> Session:
        """Give the session of a view; `listed`: with all but the list lumped as elsewhere.

        Otherwise the list counts under poison only, as what spreads.
        """
        key = self._key(options, listed=listed)
        if key == (self.default, False):
            return self._session
        return self._sessions.make(key, lambda: self._begin(options, key[1]))

    def forward(self, options: ViewOptions) -> Structure:
        """Give the chain of a walk forward in a view."""
        key = options._replace(list=None)
        return self._forward.make(
            key, lambda: forward_structure(self.graph(options), policy=options.policy)
        )

    def _key(self, options: ViewOptions, *, listed: bool = False) -> tuple[ViewOptions, bool]:
        with_list = listed or options.rule.needs_list
        return options if with_list else options._replace(list=None), with_list

    def _begin(self, options: ViewOptions, with_list: bool) -> Session:
        graph = self.graph(options)
        names: tuple[str, ...] | None = None
        if with_list:
            found = self.listed(options)
            assert found is not None
            names = found.names
            if not names:
                raise UsageError(f"nothing of the list {found.id} is in this ledger")
        progress()(0.5)
        session = Session(graph, policy=options.policy, listed=names)
        assert session.belief is not None  # made here, while others that need it wait
        return session

    def is_quick(self, options: ViewOptions) -> bool:
        """Tell whether an answer in a view needs no long work before."""
        key = self._key(options)
        return (
            key[0] == self.default
            or len(self.chain) <= thresholds.MAX_VIEW_NODES
            or key in self._sessions
        )

    def has_scores(self, options: ViewOptions) -> bool:
        """Tell whether scores are there without any work."""
        return options._replace(list=None) == self.default and self._scores is not None

    def scores(self, options: ViewOptions) -> Scores:
        """Give the scores of all sinks in a view; the list counts under poison only."""
        if self.max_origins is not None:
            raise UsageError(f"{WALKED} tells of single coins, not of all at once: look at one")
        if self._key(options) == (self.default, False) and self._scores is not None:
            return self._scores
        return _scored(self.session(options))

    def informed_scores(self, options: ViewOptions, labels: Mapping[str, str]) -> Scores:
        """Give the scores of all sinks, with informed observers' bits where pages tell them."""
        scores = self.scores(options)
        walks = isinstance(scores.chain, AbsorbingChain)
        if not walks or type(scores.chain.outcomes) is not SourceNames or not self.tells_observers:
            return scores
        if not self.observers(labels):
            return scores
        key = self._key(options)
        return self._informed.make(key, lambda: informed(scores, labels=labels))

    def listed_scores(self, options: ViewOptions) -> Scores | None:
        """Give scores of all sinks that tell exposure; None where nothing of a list is here."""
        found = self.listed(options)
        if found is None or not found.names:
            return None
        return _scored(self.session(options, listed=True))

    def listed_row(self, options: ViewOptions, node: int) -> tuple[float, float, float] | None:
        """Give a sink's exposure and its proven bounds where that was, or is soon, solved."""
        there = self._sessions.get(self._key(options, listed=True))
        if len(self.chain) > thresholds.MAX_LISTED_NODES and (there is None or not there.scores):
            return None
        scores = self.listed_scores(options)
        return None if scores is None else _exposure_of(scores, node)

    def listed_exactly(self, options: ViewOptions, node: int) -> tuple[float, float, float]:
        """Solve for the exposure of one node, and its bounds; not a number if it has no answer."""
        name = str(self.graph(options).names.of(np.array([node]))[0].as_py())
        found = _exposure_of(
            score_or_reached(self.session(options, listed=True).belief, nodes=[name]), node
        )
        return (math.nan,) * 3 if found is None else found

    def lost(self, options: ViewOptions, node: int) -> bool:
        """Tell whether a walk from a node may never end; the list does not count."""
        scored_row = self.row_of(options, node)
        if scored_row is not None:
            return bool(np.isnan(scored_row[0].bits[scored_row[1]]))
        return self.session(options).structure.local.lost(node)

    def row_of(self, options: ViewOptions, node: int) -> tuple[Scores, int] | None:
        """Find the score of a node among those that are there already."""
        if not self.has_scores(options):
            return None
        scores = self._scores
        assert scores is not None
        at = int(np.searchsorted(scores.nodes, node))
        if at < len(scores) and scores.nodes[at] == node:
            return scores, at
        return None


def _scored(session: Session) -> Scores:
    """Give the scores of all sinks, exact where that does not take long."""
    if session.is_ordered:
        return session.score()
    accuracy: Accuracy = (
        "exact" if len(session.chain) <= thresholds.MAX_VIEW_NODES else thresholds.NEARLY
    )
    return session.score_or_reached(accuracy=accuracy, progress=progress())


def _exposure_of(scores: Scores, node: int) -> tuple[float, float, float] | None:
    """Read a node's exposure and its bounds out of scores in order of node; None if not there."""
    low, high = scores.exposure_low, scores.exposure_high
    at = int(np.searchsorted(scores.nodes, node))
    if scores.exposure is None or at == len(scores) or scores.nodes[at] != node:
        return None
    share = float(scores.exposure[at])
    if low is None or high is None:
        return None
    return share, min(float(low[at]), share), max(float(high[at]), share)


def why_no_snapshots(graph: TransactionGraph) -> str | None:
    """Say why accounts of a graph cannot have snapshots: `a:1` is beside `a`; None if they can.

    >>> from coinhaze.ledger import AccountLedger
    >>> ledger = AccountLedger.from_transfers([("a", "b", 1), ("b", "a:1", 1)])
    >>> why_no_snapshots(transaction_graph(ledger))[:42]
    "account 'a:1' would be taken for a snapsho"
    """
    if graph.settings.get("view") != "account" or graph.settings.get("time") == "temporal":
        return None
    names = graph.names.of(np.flatnonzero(graph.kinds == Kind.account))
    ends = pc.match_substring_regex(names, SNAPSHOTS.pattern)
    for name in names.filter(ends).to_pylist():
        base = SNAPSHOTS.sub("", name)
        party = graph.names.parties.find(base)
        if party >= 0 and graph.names.newest[party] >= 0:
            return (
                f"account {shorten(name)} would be taken for a snapshot of {shorten(base)}, so "
                "that temporal, fifo and lifo have no meaning: rename one of them, or ask without"
            )
    return None
