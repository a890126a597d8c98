"""One open ledger, explored: each method returns a frozen model. Any number of threads may call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from coinhaze import __version__
from coinhaze.amounts import Ints
from coinhaze.errors import UnknownName
from coinhaze.explore.cache import Cache
from coinhaze.explore.coin.answer import Question, answer_coin
from coinhaze.explore.coin.comparators import compare
from coinhaze.explore.coin.destinations import answer_destinations
from coinhaze.explore.coin.observers import compare_two
from coinhaze.explore.describe import LUMPED
from coinhaze.explore.distribution import counted, curve_of, density_of, histogram_of
from coinhaze.explore.group import Grouping
from coinhaze.explore.ledger_index import LedgerIndex
from coinhaze.explore.models import (
    CoinAnswer,
    Comparators,
    CompletenessCheck,
    CompletenessRecord,
    Curve,
    Density,
    DestinationsAnswer,
    GroupAnswer,
    GroupKind,
    Histogram,
    LedgerCard,
    LedgerPage,
    LedgerSummary,
    OriginsPage,
    ScreenAnswer,
    SearchAnswer,
    SharedAnswer,
    StatementAnswer,
    StatementFile,
    TablePage,
    WalletAnswer,
    WhatIfAnswer,
)
from coinhaze.explore.nodes import Nodes, node_named
from coinhaze.explore.query import (
    CoinQuery,
    ScreenQuery,
    Settings,
    SharedQuery,
    StatementQuery,
    TableQuery,
    WalletQuery,
    WhatIfQuery,
)
from coinhaze.explore.screening import MadeStatement, make_statement
from coinhaze.explore.search import Seeker
from coinhaze.explore.table import Exposures, Table, batches_of, cursor_at, place_of_cursor
from coinhaze.explore.views import ViewOptions, Views
from coinhaze.explore.what_if import CoinSets
from coinhaze.ledger.completeness import Completeness
from coinhaze.measures import Scores
from coinhaze.measures.scores import ZERO
from coinhaze.measures.summary import AT_LEAST
from coinhaze.screening.statement import ListFile
from coinhaze.session import Session
from coinhaze.solve.planner import thresholds
from coinhaze.solve.source import Source

ENDS = 10  # coins with most and with fewest bits that a ledger's page shows
CACHED_QUESTIONS = 16
CACHED_ORDERS = 16  # of tables: four bytes per row
OWN, A_COIN, ALL_ROWS = Settings(), CoinQuery(), TableQuery()  # the ledger's own defaults
AnyQuery = TypeVar("AnyQuery", bound=Settings)


def no_lists(name: str) -> Sequence[str]:
    """Know no list."""
    raise UnknownName(f"no list {name!r} is loaded")


def no_files() -> Sequence[Path]:
    """Know no files that a ledger was read from."""
    return ()


def no_list_files(name: str) -> ListFile:
    """Know no list's file."""
    raise UnknownName(f"no list {name!r} is loaded")


class Explorer:
    """Answers about one ledger: its own chain and scores, and others made on request.

    >>> import coinhaze.explore
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 1)])
    >>> coinhaze.explore.Explorer(ledger).coin("c").sentence.text
    'As hard to trace as an account with 2.0 equally likely origins.'
    """

    def __init__(
        self,
        source: Source,
        scores: Scores | None = None,
        *,
        id: str = "ledger",
        digest: str = "",
        card: Callable[[], LedgerCard] | None = None,
        names_of: Callable[[str], Sequence[str]] = no_lists,
        list_file: Callable[[str], ListFile] = no_list_files,
        files: Callable[[], Sequence[Path]] = no_files,
        labels: Mapping[str, str] | None = None,
        provenance: Mapping[str, Any] | None = None,
        unit: str | None = None,
        max_origins: int | None = None,
    ) -> None:
        """Take a ledger, or a graph or chain that was made of one.

        `scores` are of the chain's sinks, in order of node; without them they are computed when
        they are first needed. `card` tells the state of a ledger that is served, `names_of` gives
        the names of a list, and `list_file` what its statements say of it; `files` are those that
        the ledger was read from, as long as they have not changed. `unit` is what amounts are
        shown in, as `read` takes it.
        `max_origins` says that the ledger is a part of a chain, see `explore.walked`.
        """
        session = source if isinstance(source, Session) else Session(source)
        self.id = id
        self.digest = digest
        self.views = Views(session, scores, names_of=names_of, max_origins=max_origins)
        self.index = LedgerIndex(session.graph.ledger, unit=unit)
        self.labels: Mapping[str, str] = labels or {}
        self.provenance = {"software": f"coinhaze {__version__}"} | dict(provenance or {})
        self._card = card
        self._list_file, self._files = list_file, files
        self._seeker = Seeker(self._nodes(self.views.default))
        self._questions: Cache[Question] = Cache(CACHED_QUESTIONS)
        self._orders: Cache[Ints] = Cache(CACHED_ORDERS)

    def card(self) -> LedgerCard:
        """Describe the ledger in brief."""
        if self._card is not None:
            return self._card()
        return LedgerCard(id=self.id, name=self.id, state="ready", **self.facts())

    def facts(self) -> dict[str, Any]:
        """Give what a card tells of the ledger itself: kind, network, unit, possible queries."""
        views = self.views
        return {
            "kind": "coins" if views.default.view != "account" else "accounts",
            "hides_amounts": self.index.hides_amounts,
            "network": self.index.network,
            "unit": self.index.unit.symbol or None,
            "decimals": self.index.unit.decimals,
            "policies": views.policies,
            "views": views.views,
            "times": views.times,
        }

    def settings(self, query: AnyQuery) -> AnyQuery:
        """Put the ledger's defaults in the place of what was left open."""
        return self.views.settings(query)

    def _nodes(self, options: ViewOptions) -> Nodes:
        part = self.views.max_origins is not None
        return Nodes(
            self.views.graph(options), self.index, ledger=self.id, labels=self.labels, part=part
        )

    def _question(self, name: str, query: Settings) -> tuple[Question, tuple[str, ...]]:
        """Find a coin and what is known of it; the last ones are cached."""
        options = self.views.options(query)
        nodes = self._nodes(options)
        node, notes = node_named(self.views, nodes, options, name)
        exposing = self.views.exposing(query)
        question = self._questions.make(
            (options, exposing, node), lambda: Question(self.views, nodes, options, node, exposing)
        )
        return question, notes

    def search(self, query: str) -> SearchAnswer:
        """Find what a person pasted."""
        return self._seeker.search(query)

    def coin(self, name: str, query: CoinQuery = A_COIN) -> CoinAnswer:
        """Give a coin's page: a coin, account or address that is a node of the view."""
        question, notes = self._question(name, query)
        return answer_coin(
            question,
            self.settings(query),
            digest=self.digest,
            provenance=self.provenance,
            notes=notes,
        )

    def comparators(self, name: str, query: Settings = OWN) -> Comparators:
        """Give a coin's other rules and measures."""
        return compare(self._question(name, query)[0])

    def shared(self, name: str, query: SharedQuery) -> SharedAnswer:
        """Say what a coin has in common with another one."""
        first, _ = self._question(name, query)
        second, _ = self._question(query.other, query)
        return compare_two(
            self.views, (first, second), self.settings(query).settings, limit=query.limit
        )

    def destinations(self, name: str, query: CoinQuery = A_COIN) -> DestinationsAnswer:
        """Say where the money that a coin, account, address or transaction had went."""
        options = self.views.options(query)
        nodes, notes = self._nodes(options), tuple[str, ...]()
        # A transaction is no coin that could be shown, but it had money.
        if not len(nodes.graph.names.nodes(f"tx:{name}")):
            node, notes = node_named(self.views, nodes, options, name)
            name = nodes.party_name(node) if notes else name
        return answer_destinations(
            self.views, nodes, options, name, self.settings(query),
            digest=self.digest, provenance=self.provenance, notes=notes,
        )  # fmt: skip

    def origins(
        self,
        name: str,
        query: Settings = OWN,
        *,
        after: str | None = None,
        limit: int = 100,
    ) -> OriginsPage:
        """Give some of a coin's origins, largest first."""
        question, _ = self._question(name, query)
        row, outcome_names = question.row, question.outcome_names
        own = question.nodes.name(question.node)
        bound = self.digest, tuple(question.options), own
        first = 0 if after is None else place_of_cursor(after, *bound, maximum=len(row)) + 1
        last = min(first + limit, len(row))
        return OriginsPage(
            ledger=self.id,
            name=own,
            settings=self.settings(query).settings,
            total=len(row),
            rows=outcome_names.origins(row, np.arange(first, last)),
            other=row.other(np.arange(first, last)),
            after=cursor_at(last - 1, *bound) if 0 < last < len(row) else None,
        )

    def origin_batches(self, name: str, query: Settings = OWN) -> Iterator[pa.RecordBatch]:
        """Give all of a coin's origins, as columns; the first batch is empty."""
        question, _ = self._question(name, query)
        row = question.row
        for first, last in [(0, 0), *batches_of(len(row))]:
            some = pa.array(row.outcomes[first:last].astype(np.int64))
            columns = {
                "rank": pa.array(np.arange(first, last)),
                "origin": row.belief.outcomes.take(some).cast(pa.string()),
                "share": pa.array(row.shares[first:last]),
            }
            # Of each share what came from the list; ordered rules and poison do not tell it apart.
            parts = question.threads(np.arange(first, last))
            if parts is not None:
                columns["exposure"] = pa.array(parts, pa.float64())
            yield pa.record_batch(columns)

    def group(
        self,
        kind: GroupKind,
        name: str,
        query: Settings = OWN,
        *,
        after: str | None = None,
        limit: int = 100,
    ) -> GroupAnswer:
        """Give an address, a transaction or a block."""
        options = self.views.options(query)
        grouping = Grouping(self.views, self._nodes(options), options, self.views.exposing(query))
        found = grouping.find(kind, name)
        settings = self.settings(query)
        return grouping.answer(found, settings, digest=self.digest, after=after, limit=limit)

    def _table(self, query: Settings, *, exposed: bool = True) -> Table:
        options = self.views.options(query)
        scores, exposure = self.views.informed_scores(options, self.labels), None
        if options.list is not None and exposed:
            exposure = Exposures.of(scores, self.views.listed_scores(self.views.exposing(query)))
        return Table(
            scores,
            self._nodes(options),
            exposure=exposure,
            bound=(self.digest, tuple(options)),
            orders=self._orders,
        )

    def table(self, query: TableQuery = ALL_ROWS) -> TablePage:
        """Give a page of the table."""
        page = self._table(query).page(self.settings(query))
        return page.model_copy(update={"exposure_time": self._exposure_time(query)})

    def _exposure_time(self, query: Settings) -> str | None:
        options = self.views.exposing(query)
        return None if options.list is None or options.view == "coin" else options.time

    def table_batches(self, query: TableQuery = ALL_ROWS) -> Iterator[pa.RecordBatch]:
        """Give all rows the filter leaves, sorted, as columns."""
        yield from self._table(query).batches(query)

    def histogram(self, query: Settings = OWN) -> Histogram:
        """Give all coins by bits."""
        return histogram_of(self.views.scores(self.views.options(query)))

    def density(self, query: Settings = OWN) -> Density:
        """Give all coins by bits and steps."""
        options = self.views.options(query)
        scores = self.views.scores(options)
        return density_of(scores, ledger=self.id, settings=self.settings(query))

    def curve(self, query: Settings = OWN) -> Curve:
        """Give the ledger's line of a comparison."""
        scores = self.views.scores(self.views.options(query))
        bits, share = curve_of(scores)
        return Curve(card=self.card(), summary=summary_of(scores), bits=bits, share=share)

    def ledger(self, query: Settings = OWN) -> LedgerPage:
        """Give the ledger's page; of a large ledger only its table tells exposure: that is long."""
        quick = len(self.views.chain) <= thresholds.MAX_VIEW_NODES
        table = self._table(query, exposed=quick)
        scores = table.scores
        notes = list(scores.notes)
        if self.views.no_snapshots is not None:
            notes.append(f"{self.views.no_snapshots}.")
        if query.list is not None and not quick:
            notes.append("Exposure is not shown here: the table shows it, after a while.")
        if scores.lower_bound is not None:
            notes.append(f"{AT_LEAST} marks lower bounds. {LUMPED}")
        answered = int(np.sum(~np.isnan(scores.bits)))
        order = table.order("-informed")[:answered]
        return LedgerPage(
            card=self.card(),
            settings=self.settings(query),
            exposure_time=self._exposure_time(query),
            summary=summary_of(scores),
            histogram=histogram_of(scores),
            most=table.rows(order[:ENDS]),
            fewest=table.rows(table.order("bits")[:answered][:ENDS]),
            completeness=_completeness_of(scores.completeness),
            notes=tuple(notes),
            provenance=self.provenance | {"settings": dict(scores.chain.settings)},
        )

    def what_if(self, query: WhatIfQuery) -> WhatIfAnswer:
        """Say what spending coins together would do."""
        return self._coin_sets(query).what_if(query, self.settings(query).settings)

    def wallet(self, query: WalletQuery) -> WalletAnswer:
        """Weigh a wallet."""
        return self._coin_sets(query).wallet(query, self.settings(query).settings)

    def screen(self, query: ScreenQuery) -> ScreenAnswer:
        """Screen nodes against a list: the statement as data.

        >>> import coinhaze
        >>> ledger = coinhaze.AccountLedger.from_transfers(
        ...     [("thief", "shop", 1), ("bob", "shop", 3), ("shop", "carol", 2)])
        >>> found = Explorer(ledger).screen(ScreenQuery(listed="thief", nodes="carol"))
        >>> found.nodes[0]["haircut_share"]
        0.25
        """
        return self._statement(query).answer()

    def statement(self, query: ScreenQuery) -> StatementAnswer:
        """Give the statement of a screening as sections to read."""
        return self._statement(query).page(self.id, query)

    def statement_file(self, query: StatementQuery) -> StatementFile:
        """Give the statement of a screening as a file to hand over."""
        return self._statement(query).file(self.id, query.kind)

    def _statement(self, query: ScreenQuery) -> MadeStatement:
        options = self.views.exposing(Settings(view=query.view, time=query.time))
        return make_statement(
            self.views.graph(options),
            query,
            unit=self.index.unit,
            inputs=self._files(),
            list_file=lambda name: (self.views.names_of(name), self._list_file(name)),
        )

    def _coin_sets(self, query: Settings) -> CoinSets:
        options = self.views.options(query)
        return CoinSets(self.views, self._nodes(options), options)


def summary_of(scores: Scores) -> LedgerSummary:
    """Sum scores up."""
    summary = scores.summary()
    bits = scores.bits[counted(scores)]
    zero = bits <= ZERO
    if scores.lower_bound is not None:
        zero &= ~scores.lower_bound[counted(scores)]
    return LedgerSummary(
        nodes=summary.nodes,
        edges=summary.edges,
        scored=summary.scored,
        without_answer=summary.nulls,
        burns=summary.burns,
        at_zero_bits=float(np.mean(zero)) if len(bits) else None,
        bits_mean=summary.bits_mean,
        bits_median=summary.bits_median,
        bits_max=summary.bits_max,
        bits_weighted_mean=summary.bits_weighted_mean,
        steps_mean=summary.steps_mean,
        steps_median=summary.steps_median,
        widest_interval=summary.widest_interval,
        bits_mean_low=summary.bits_mean_low,
        bits_mean_high=summary.bits_mean_high,
        certified=summary.miss == 0,
        miss=summary.miss,
        method=summary.method,
        lower_bounds=summary.lower_bounds,
        view=summary.view,
        time=summary.time,
        policy=summary.policy,
        line=summary.line(),
    )


def _completeness_of(found: Completeness) -> CompletenessRecord:
    checks = tuple(CompletenessCheck(**vars(check)) for check in found.checks)
    return CompletenessRecord(line=found.line(), checks=checks, missing_heights=found.holes)
