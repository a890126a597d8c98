"""An address, a transaction or a block: its coins together, how uncertain, how exposed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.errors import UnknownName, shorten
from coinhaze.explore.coin.answer import walked_figures
from coinhaze.explore.coin.exposure import Met, is_untouched, met, met_together, tell_exposure
from coinhaze.explore.distribution import histogram_of_bits
from coinhaze.explore.models import (
    Amount,
    Exposure,
    GroupAnswer,
    GroupKind,
    Spent,
    TableRow,
)
from coinhaze.explore.nodes import Nodes, coins_of
from coinhaze.explore.query import Settings, thing_link
from coinhaze.explore.search import block_rows
from coinhaze.explore.table import Table, cursor_at, place_of_cursor
from coinhaze.explore.transaction import transaction_facts
from coinhaze.explore.views import ViewOptions, Views
from coinhaze.graph.find import name_in, other_network
from coinhaze.ledger import AccountLedger, CoinLedger
from coinhaze.measures import Scores
from coinhaze.measures.scores import rising
from coinhaze.observer import AbsorbingChain
from coinhaze.solve import Lots
from coinhaze.solve.local.past import past_of
from coinhaze.solve.lots.scores import score_in_order

MAX_SHOWN = 100  # coins spent, or transactions of a block
# Coins whose exposure, or whose bits where they are not scored, are found one by one.
MAX_UNSCORED = 200
WIDTH = 0.05


@dataclass(frozen=True)
class GroupedCoins:
    """What is grouped: nodes of its coins, and what is known of it itself."""

    kind: GroupKind
    name: str
    nodes: Ints
    tx: int | None = None
    height: int | None = None


@dataclass(eq=False)
class _Figures:
    """Bits, their bounds and steps of some coins, and the scores that also tell more of them."""

    values: Floats  # a row a coin, a column a figure
    row: Ints  # of each coin its row in `scores`, -1 if it has none
    scores: Scores | None = None

    @classmethod
    def empty(cls, n: int) -> _Figures:
        return cls(np.full((n, 4), np.nan), np.full(n, -1))

    @property
    def bits(self) -> Floats:
        return self.values[:, 0]

    def set(self, k: int, figures: tuple[float, ...]) -> None:
        self.values[k] = figures

    def take(self, some: Ints, scores: Scores, rows: Ints) -> None:
        self.scores = scores
        self.row[some] = rows
        for k, column in enumerate((scores.bits, scores.bits_low, scores.bits_high, scores.steps)):
            self.values[some, k] = column[rows]


class Grouping:
    """Groups of one view of a ledger."""

    def __init__(
        self, views: Views, nodes: Nodes, options: ViewOptions, exposing: ViewOptions | None = None
    ) -> None:
        """Take view options; `exposing` are those that exposure is computed with."""
        self.views = views
        self.nodes = nodes
        self.options = options
        self.exposing = exposing or options

    @cached_property
    def _bounds(self) -> Bools:
        """Which nodes have bits that are lower bounds."""
        bounds = self.views.session(self.options).belief.lower_bounds
        return np.zeros(len(self.nodes.graph), dtype=np.bool_) if bounds is None else bounds

    def find(self, kind: GroupKind, name: str) -> GroupedCoins:
        """Find a group by name."""
        if kind == "address":
            return self._address(name)
        ledger = self.nodes.graph.ledger
        if isinstance(ledger, AccountLedger):
            raise UnknownName(f"no {kind} {shorten(name)}: a ledger of transfers has accounts only")
        return self._transaction(name) if kind == "transaction" else self._block(ledger, name)

    def _address(self, name: str) -> GroupedCoins:
        graph = self.nodes.graph
        own = name_in(graph, name)
        if self.nodes.coin_view:
            found = coins_of(self.nodes, name)
        else:
            party = graph.names.parties.find(own)
            at = graph.names.newest[[party]] if party >= 0 else np.zeros(0, dtype=np.int64)
            found = at[at >= 0]
        if not len(found):
            why = other_network(graph, [name])
            raise UnknownName(why or f"no address {shorten(name)} in the ledger")
        return GroupedCoins("address", own, found)

    def _transaction(self, name: str) -> GroupedCoins:
        graph = self.nodes.graph
        bare = name.removeprefix("tx:")
        party = graph.names.parties.find(f"tx:{bare}")
        node = int(graph.names.newest[party]) if party >= 0 else -1
        if node < 0:
            raise UnknownName(f"no transaction {shorten(bare)} in the ledger")
        tx = self.nodes.tx(node)
        made = self._held(self.nodes.index.made(tx))
        return GroupedCoins("transaction", bare, made, tx=tx, height=self.nodes.index.height(tx))

    def _block(self, ledger: CoinLedger, name: str) -> GroupedCoins:
        digits = name.replace(",", "")
        rows = np.zeros(0, dtype=np.int64)
        if digits.isascii() and digits.isdigit():
            rows = block_rows(ledger, int(digits[:18]))
        if not len(rows):
            raise UnknownName(f"no block {shorten(name)} in the ledger: ask for a height in it")
        coins = np.concatenate([self.nodes.index.made(int(tx)) for tx in rows.tolist()])
        return GroupedCoins("block", str(int(digits)), self._held(coins), height=int(digits))

    def _held(self, coins: Ints) -> Ints:
        """Give the nodes of some coins: the coins themselves, or who holds them."""
        graph, ledger = self.nodes.graph, self.nodes.index.coins
        parties = coins if self.nodes.coin_view else np.unique(ledger.output_owner[coins])
        found = graph.names.newest[parties]
        return found[found >= 0].astype(np.int64)

    def answer(
        self, group: GroupedCoins, settings: Settings, *, digest: str, after: str | None, limit: int
    ) -> GroupAnswer:
        """Tell of a group and a page of its coins, those with most bits first."""
        found, notes = self._figures(group.nodes)
        order = np.argsort(-np.nan_to_num(found.bits, nan=-1.0), kind="stable")
        what = digest, tuple(self.options), group.kind, group.name
        first = 0 if after is None else place_of_cursor(after, *what, maximum=len(order)) + 1
        page = order[first : first + limit]
        last = first + len(page)
        known = found.bits[~np.isnan(found.bits)]
        nodes, index = self.nodes, self.nodes.index
        sinks = nodes.graph.sinks[group.nodes]
        held = group.nodes[sinks] if group.kind == "address" else group.nodes
        exposed = self._met(group)
        if exposed is None and self.options.list is not None:
            notes = (*notes, f"Exposure is not shown for more than {MAX_UNSCORED} coins at once.")
        return GroupAnswer(
            ledger=nodes.ledger,
            digest=digest,
            settings=settings,
            kind=group.kind,
            name=group.name,
            label=nodes.labels.get(group.name),
            time=None if group.tx is None else index.time(group.tx),
            height=group.height,
            total=self._total(held),
            coins=len(group.nodes),
            unspent=int(sinks.sum()),
            bits_low=float(known.min()) if len(known) else None,
            bits_median=float(np.median(known)) if len(known) else None,
            bits_high=float(known.max()) if len(known) else None,
            lower_bounds=int(self._bounds[group.nodes].sum()),
            bits_weighted_mean=self._weighted(group.nodes, found.bits),
            exposure=None if exposed is None else self._exposure(group, exposed),
            histogram=histogram_of_bits(rising(known)),
            transaction=None
            if group.tx is None
            else transaction_facts(self.views, self.nodes.index, group.tx),
            spends=self._spends(group),
            transactions=self._transactions(group),
            rows=tuple(self._row(found, k, int(group.nodes[k]), exposed) for k in page.tolist()),
            after=cursor_at(last - 1, *what) if 0 < last < len(order) else None,
            notes=(*notes, *nodes.graph.notes),
        )

    def _figures(self, nodes: Ints) -> tuple[_Figures, tuple[str, ...]]:
        """Give the figures of some coins: by scores that are there already, else one by one."""
        found = _Figures.empty(len(nodes))
        belief = self.views.session(self.options).belief
        if isinstance(belief, Lots):
            found.take(np.arange(len(nodes)), score_in_order(belief, nodes), np.arange(len(nodes)))
            return found, ()
        unscored = np.arange(len(nodes))
        if self.views.has_scores(self.options) and len(self.views.scores(self.options)):
            scores = self.views.informed_scores(self.options, self.nodes.labels)
            at = np.minimum(np.searchsorted(scores.nodes, nodes), len(scores) - 1)
            there = scores.nodes[at] == nodes
            found.take(np.flatnonzero(there), scores, at[there])
            unscored = np.flatnonzero(~there)
        structure, maximum = self.views.session(self.options).structure, self.views.max_origins
        solver = structure.local
        for k in unscored[:MAX_UNSCORED].tolist():
            node = int(nodes[k])
            if maximum is not None:
                row = walked_figures(structure, node, maximum)
                found.set(k, (row.bits, row.low, row.high, row.steps))
                continue
            if is_untouched(belief, node) or solver.lost(node):
                continue
            local = solver.row(node, width=WIDTH)
            found.set(k, (local.bits, local.bits_low, local.bits_high, local.steps))
        if len(unscored) <= MAX_UNSCORED:
            return found, ()
        left = len(unscored) - MAX_UNSCORED
        return found, (f"{left:,} spent coins are not scored: no bits are given for them.",)

    def _row(self, found: _Figures, k: int, node: int, exposed: Sequence[Met] | None) -> TableRow:
        """Describe a coin; under poison it has no share."""
        row = self._plain_row(found, k, node)
        if exposed is None or not self.options.rule.shares or not exposed[k].known:
            return row
        return row.model_copy(update={"exposure": exposed[k].share})

    def _plain_row(self, found: _Figures, k: int, node: int) -> TableRow:
        if found.scores is not None and found.row[k] >= 0:
            return Table(found.scores, self.nodes).rows(found.row[[k]])[0]
        bits, low, high, steps = found.values[k].tolist()
        return TableRow(
            name=self.nodes.name(node), kind=self.nodes.kind(node), amount=self.nodes.amount(node),
            bits=bits, bits_low=low, bits_high=high, steps=steps, sources=None, top=None,
            lower_bound=bool(self._bounds[node]), top_share=None, label=self.nodes.label(node),
            href=self.nodes.href(node) or "",
        )  # fmt: skip

    def _total(self, nodes: Ints) -> Amount | None:
        if self.nodes.index.hides_amounts:
            return None
        worth = [self.nodes.balance(int(node)) or 0 for node in nodes.tolist()]
        return self.nodes.index.amount(sum(worth))

    def _weighted(self, nodes: Ints, bits: Floats) -> float | None:
        known = np.flatnonzero(~np.isnan(bits))
        if self.nodes.index.hides_amounts or not len(known):
            return None
        worth = [float(self.nodes.balance(int(nodes[k])) or 0) for k in known.tolist()]
        total = sum(worth)
        if total <= 0:
            return None
        return float(np.dot(bits[known], worth) / total)

    def _met(self, group: GroupedCoins) -> list[Met] | None:
        """Find the listed money of a group's coins; None without a list, or if too many."""
        options = self.exposing
        listed = self.views.listed(options)
        if listed is None or len(group.nodes) > MAX_UNSCORED:
            return None
        belief = self.views.session(options).belief
        found = []
        for node in self._exposed_nodes(group).tolist():
            walks = isinstance(belief, AbsorbingChain)
            past = past_of(self.views.session(options).structure, node) if walks else None
            found.append(met(self.views, options, listed, node, past))
        return found

    def _exposed_nodes(self, group: GroupedCoins) -> Ints:
        return self.views.nodes_in(self.exposing, self.options, group.nodes)

    def _exposure(self, group: GroupedCoins, exposed: Sequence[Met]) -> Exposure:
        """Put the listed money of a group's coins together."""
        listed = self.views.listed(self.exposing)
        assert listed is not None
        nodes = self.nodes.of_graph(self.views.graph(self.exposing))
        at = self._exposed_nodes(group)
        worth = [nodes.balance(node) for node in at.tolist()]
        weights = [1 if value is None else value for value in worth]
        together = met_together(list(zip(exposed, weights, strict=True)))
        return tell_exposure(together, listed, self.exposing, nodes, at)

    def _spends(self, group: GroupedCoins) -> tuple[Spent, ...]:
        if group.tx is None:
            return ()
        index, nodes = self.nodes.index, self.nodes
        coins = index.spent(group.tx)[:MAX_SHOWN]
        names = index.coins.output_names(coins).to_pylist()
        found = []
        for coin, name in zip(coins.tolist(), names, strict=True):
            value, owner = index.value(coin), index.owner(coin)
            inside = bool(index.coins.inside[index.coins.output_tx[coin]])
            link = thing_link(nodes.ledger, "coin", name) if inside else None
            if link is None and owner is not None:
                link = thing_link(nodes.ledger, "address", owner)
            amount = None if value is None else index.amount(value)
            found.append(Spent(name=name, amount=amount, owner=owner, href=link))
        return tuple(found)

    def _transactions(self, group: GroupedCoins) -> tuple[str, ...]:
        if group.kind != "block" or group.height is None:
            return ()
        ledger = self.nodes.index.coins
        rows = block_rows(ledger, group.height)[:MAX_SHOWN]
        return tuple(str(ledger.txids[int(tx)].as_py()) for tx in rows)
