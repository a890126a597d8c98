"""One ledger, and all that was made of it: graph, chain, structure and scores, each made once.

`coinhaze.score(ledger)` makes a session for the one call. To ask several questions of a ledger
holds a session, and passes it to `score`, `origins`, `taint` and the applications in the place of
the ledger; or calls its own `score`, which remembers its answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from threading import Lock
from typing import Any, Literal, Unpack

from coinhaze.errors import AccuracyError, UsageError
from coinhaze.graph import TransactionGraph, transaction_graph
from coinhaze.ledger import AccountLedger, CoinLedger, Ledger
from coinhaze.measures import Origins, Scores, Taint
from coinhaze.observer import AbsorbingChain, absorbing_chain
from coinhaze.observer.owners import Inferences, inferences
from coinhaze.observer.policies import is_ordered
from coinhaze.options import LIMITS, ModelKeywords, ScoringKeywords
from coinhaze.readers import read
from coinhaze.solve.local.origins import origins
from coinhaze.solve.lots.lots import Lots
from coinhaze.solve.lots.scores import lots_of
from coinhaze.solve.lots.taint import taint
from coinhaze.solve.planner.plan import Plan
from coinhaze.solve.pool import Backend
from coinhaze.solve.pool.limits import THREADS
from coinhaze.solve.progress import Progress, silent
from coinhaze.solve.score import plan, score_or_reached
from coinhaze.solve.source import (
    CHAIN_SETTINGS,
    GRAPH_SETTINGS,
    READ_SETTINGS,
    Prepared,
    Source,
    check_known,
    in_time,
    only,
    opening_before,
    refuse,
)
from coinhaze.solve.structure.structure import Structure


class Session(Prepared):
    """A ledger under one choice of settings, and what was made of it so far.

    `source` is a path or several, a ledger, a graph or a chain; settings are those of `read`,
    `transaction_graph` and `absorbing_chain`, each used when it is needed. `backend` names what
    solves its questions, "threads" unless another was registered, or is a backend itself.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    >>> session = coinhaze.Session(ledger)
    >>> coinhaze.score(session).bits.round(4), session.origins("c").sources()["source"][0].as_py()
    (array([0.8113]), 'b')
    >>> session.score() is session.score()
    True
    """

    def __init__(
        self, source: Source, *, backend: str | Backend = THREADS, **settings: Unpack[ModelKeywords]
    ) -> None:
        check_known(settings, READ_SETTINGS | GRAPH_SETTINGS | CHAIN_SETTINGS)
        if isinstance(source, Prepared):
            raise UsageError("a session is given already: use it as it is")
        made = (Structure, AbsorbingChain, Lots, TransactionGraph, AccountLedger, CoinLedger)
        self.source = source
        self.backend = backend
        self.settings = settings
        self.scores: dict[object, Scores] = {}
        self._solving = Lock()
        if isinstance(source, made[:3]):
            refuse(settings, "a chain is given")
        elif isinstance(source, TransactionGraph):
            refuse(only(settings, READ_SETTINGS | GRAPH_SETTINGS), "a graph is given")
        elif isinstance(source, made):
            refuse(only(settings, READ_SETTINGS), "a ledger is given")

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger."""
        source: Any = self.source
        if isinstance(source, AccountLedger | CoinLedger):
            return source
        if isinstance(source, TransactionGraph | AbsorbingChain | Structure | Lots):
            return self.graph.ledger
        return read(source, **only(self.settings, READ_SETTINGS))

    @property
    def is_ordered(self) -> bool:
        """Whether its policy follows lots, not a walk."""
        return isinstance(self.source, Lots) or is_ordered(self.settings.get("policy"))

    @cached_property
    def graph(self) -> TransactionGraph:
        """The transaction graph; with a list or an ordered policy, one that knows time."""
        source = self.source
        if isinstance(source, TransactionGraph):
            return source
        if isinstance(source, Structure):
            return source.chain.graph
        if isinstance(source, AbsorbingChain | Lots):
            return source.graph
        if self.is_ordered or self.settings.get("listed") is not None:
            return self.graph_in_time
        return transaction_graph(self.ledger, **self._graph_settings)

    @cached_property
    def graph_in_time(self) -> TransactionGraph:
        """The graph, or one that knows the order of payments where the settings leave it open."""
        if isinstance(self.source, TransactionGraph | AbsorbingChain | Structure | Lots):
            return self.graph
        settings = self._graph_settings
        chosen = in_time(self.ledger, settings)
        ordered = self.is_ordered or self.settings.get("listed") is not None
        if chosen == settings and not ordered:
            return self.graph
        return transaction_graph(self.ledger, **chosen)

    @property
    def _graph_settings(self) -> dict[str, Any]:
        return only(opening_before(self.source, self.settings), GRAPH_SETTINGS)

    @property
    def chain(self) -> AbsorbingChain:
        """The absorbing chain; an ordered policy has none."""
        return self.structure.chain

    @cached_property
    def structure(self) -> Structure:
        """The chain, and what was worked out of it."""
        source = self.source
        if isinstance(source, Structure | AbsorbingChain):
            return Structure.of(source)
        return Structure(absorbing_chain(self.graph, **only(self.settings, CHAIN_SETTINGS)))

    @cached_property
    def inferences(self) -> Inferences:
        """What informed observers infer about owners, found once."""
        return inferences(self.graph.ledger)

    @property
    def belief(self) -> AbsorbingChain | Lots:
        """What the observer believes: the chain, or the lots of an ordered policy."""
        return self.lots if self.is_ordered else self.chain

    @cached_property
    def lots(self) -> Lots:
        """The lots of an ordered policy; a walk has none."""
        if isinstance(self.source, Lots):
            return self.source
        return lots_of(self.graph, only(self.settings, CHAIN_SETTINGS))

    def score(self, **options: Unpack[ScoringKeywords]) -> Scores:
        """Score as `coinhaze.score` does, with its options; the same question is solved once."""
        found = self.score_or_reached(**options)
        if found.shortfall is not None:
            raise AccuracyError(found.shortfall, scores=found)
        return found

    def score_or_reached(
        self, *, progress: Progress = silent, **options: Unpack[ScoringKeywords]
    ) -> Scores:
        """Score; where the accuracy is not reached, give what was, with its note."""
        if not isinstance(options.get("nodes", "sinks"), str):
            options["nodes"] = list(options["nodes"])
        key = _frozen({k: v for k, v in options.items() if k not in LIMITS})
        with self._solving:
            if key not in self.scores:
                self.scores[key] = score_or_reached(self, progress=progress, **options)
            return self.scores[key]

    def plan(self, **options: Unpack[ScoringKeywords]) -> Plan:
        """Say what `score` with the same options would do."""
        return plan(self, **options)

    def origins(self, node: str | int, *, accuracy: Literal["exact"] | float = "exact") -> Origins:
        """Give where one node's money came from, as `coinhaze.origins` does."""
        return origins(self, node, accuracy=accuracy)

    def taint(
        self,
        listed: Iterable[str],
        *,
        policies: Sequence[str] | None = None,
        nodes: Literal["sinks"] | Iterable[str] = "sinks",
    ) -> Taint:
        """Follow listed money forward, as `coinhaze.taint` does."""
        return taint(self, listed, policies=policies, nodes=nodes)


def _frozen(value: Any) -> object:
    if isinstance(value, Mapping):
        return tuple(sorted((k, _frozen(v)) for k, v in value.items()))
    return tuple(value) if isinstance(value, list | tuple) else value
