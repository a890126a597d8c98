"""Nodes of a graph as people see them: name, kind, words, label, time, amount, page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Ints
from coinhaze.errors import UnknownName, shorten
from coinhaze.explore.describe import short_id
from coinhaze.explore.ledger_index import NOBODY, LedgerIndex
from coinhaze.explore.models import (
    Amount,
    NodeKind,
    OriginKind,
)
from coinhaze.explore.query import thing_link
from coinhaze.explore.views import ViewOptions, Views
from coinhaze.graph import TransactionGraph
from coinhaze.graph.clusters.coinjoins import coinjoin_kinds
from coinhaze.graph.find import find_node, name_in, other_network
from coinhaze.graph.graph import Kind
from coinhaze.graph.opening import assumed_openings
from coinhaze.ledger import CoinLedger
from coinhaze.ledger.coins import UNKNOWN
from coinhaze.observer.chain import ELSEWHERE

_KINDS: Mapping[int, NodeKind] = {
    Kind.coin: "coin",
    Kind.transaction: "transaction",
    Kind.address: "address",
    Kind.account: "account",
    Kind.pool: "pool",
    Kind.ring: "ring",
    Kind.mint: "mint",
    Kind.burn: "burn",
}
_COIN, _TRANSACTION, _MINT = int(Kind.coin), int(Kind.transaction), int(Kind.mint)
_MADE = (_TRANSACTION, _MINT)  # sources that make money


class Nodes:
    """The nodes of one graph of a ledger, described to people."""

    def __init__(
        self,
        graph: TransactionGraph,
        index: LedgerIndex,
        *,
        ledger: str,
        labels: Mapping[str, str],
        part: bool = False,
    ) -> None:
        """Take a graph; `part` says that only a part of its chain was walked back."""
        self.graph = graph
        self.index = index
        self.ledger = ledger
        self.labels = labels
        self.part = part
        self._kinds = graph.kinds
        self._parties: dict[int, str] = {}

    def of_graph(self, graph: TransactionGraph) -> Nodes:
        """Give the nodes of another graph of the same ledger."""
        if graph is self.graph:
            return self
        return Nodes(graph, self.index, ledger=self.ledger, labels=self.labels, part=self.part)

    def fetch(self, nodes: Ints) -> None:
        """Make the names of nodes that are about to be needed, all at once."""
        found = self.graph.names.parties.take(self.graph.names.party[nodes].astype(np.int64))
        self._parties |= zip(np.asarray(nodes).tolist(), found.to_pylist(), strict=True)

    def names(self, nodes: Ints) -> list[str]:
        """Name nodes."""
        found: list[str] = self.graph.names.of(np.asarray(nodes, dtype=np.int64)).to_pylist()
        return found

    def name(self, node: int) -> str:
        """Name a node."""
        return self.names(np.array([node]))[0]

    def party_name(self, node: int) -> str:
        """Name whose node it is: an account by its own name, whichever snapshot."""
        if node not in self._parties:
            self.fetch(np.array([node]))
        return self._parties[node]

    def kind(self, node: int) -> NodeKind:
        """Tell what a node is."""
        return _KINDS[int(self._kinds[node])]

    def coin(self, node: int) -> int:
        """Give a coin's number in the ledger, -1 if the node is no single coin of the coin view."""
        is_coin = self._kinds[node] == _COIN and self.coin_view
        return int(self.graph.names.party[node]) if is_coin else NOBODY

    def tx(self, node: int) -> int:
        """Give the transaction a node is, or that made a coin; -1 if neither."""
        if self._kinds[node] == _TRANSACTION:
            return int(self.graph.names.party[node]) - self._holders
        coin = self.coin(node)
        return NOBODY if coin == NOBODY else int(self.index.coins.output_tx[coin])

    @cached_property
    def coin_view(self) -> bool:
        """Whether nodes are single coins."""
        return self.graph.settings.get("view") == "coin"

    @cached_property
    def _holders(self) -> int:
        return len(self.graph.names.parties.blocks[0])

    def balance(self, node: int) -> int | None:
        """Give what a node holds, or what a spent coin was worth; None where hidden."""
        coin = self.coin(node)
        if coin != NOBODY:
            return self.index.value(coin)
        closing = self.graph.closing
        return None if closing is None else closing[node]

    def amount(self, node: int) -> Amount | None:
        """Show what a node holds; None where hidden."""
        balance = self.balance(node)
        return None if balance is None else self.index.amount(balance)

    def assumed_in(self, nodes: Ints) -> int:
        """Add up what of some nodes' balances is assumed: openings that nobody tells."""
        closing = self.graph.closing
        if closing is None or self.coin_view:
            return 0  # what coins are worth is known
        found = assumed_openings(self.graph, nodes)
        return 0 if found is None else sum(found.where(closing.take(nodes).positive()).ints())

    def assumed(self, node: int) -> Amount | None:
        """Show what of a node's balance is assumed; None where nothing is."""
        found = self.assumed_in(np.array([node]))
        return self.index.amount(found) if found else None

    def owner(self, node: int) -> str | None:
        """Give a coin's address; None where it has none, and for what is no coin."""
        coin = self.coin(node)
        return None if coin == NOBODY else self.index.owner(coin)

    def time(self, node: int) -> int | None:
        """Give when a node came to be, in seconds since 1970; None if not known."""
        tx = self.tx(node)
        if tx != NOBODY:
            return self.index.time(tx)
        if self.graph.born is None or self._kinds[node] == _MINT:
            return self._transfer_time(node)
        return self.index.time_of_step(int(self.graph.born[node]))

    def _transfer_time(self, node: int) -> int | None:
        if self._kinds[node] not in (Kind.mint, Kind.burn):
            return None  # an account without snapshots has been there all the time
        names = self.graph.names
        block = int(np.searchsorted(names.parties.starts, names.party[node], side="right")) - 1
        rows = getattr(names.parties.blocks[block], "rows", None)
        if rows is None:
            return None
        return self.index.time(int(rows[int(names.party[node]) - int(names.parties.starts[block])]))

    def height(self, node: int) -> int | None:
        """Give a node's block, None if not known."""
        tx = self.tx(node)
        return None if tx == NOBODY else self.index.height(tx)

    def label(self, node: int) -> str | None:
        """Give what people call a node: its label, its address's, or of new coins their owner's."""
        if not self.labels:
            return None
        own = self.labels.get(self.party_name(node))
        if own is not None:
            return own
        coin = self.coin(node)
        if coin != NOBODY:
            owner = self.index.owner(coin)
            return None if owner is None else self.labels.get(owner)
        if self._kinds[node] == _TRANSACTION and self.graph.sources[node]:
            paid = (self.index.owner(int(c)) for c in self.index.made(self.tx(node)))
            return next((self.labels[o] for o in paid if o is not None and o in self.labels), None)
        return None

    def words(self, node: int) -> str:
        """Say what a node is, in a few letters."""
        label = self.label(node)
        if label is not None:
            return label
        name = self.party_name(node)
        kind = self._kinds[node]
        if kind in _MADE and self.graph.sources[node]:
            return self._made_words(node, name)
        if kind == _TRANSACTION:
            return f"Payment {short_id(name.removeprefix('tx:'))}"
        if kind == _COIN:
            return self._coin_words(node, name)
        if kind == Kind.pool:
            return f"{name.removeprefix('pool:').capitalize()} pool"
        if kind == Kind.burn:
            return f"Burnt {short_id(name.removeprefix('burn:'))}"
        return short_id(name)

    def _made_words(self, node: int, name: str) -> str:
        if self._kinds[node] == _MINT:
            return f"Minted {short_id(name.removeprefix('mint:'))}"
        height = self.height(node)
        if height is not None:
            return f"Mined, block {height:,}"
        return f"Mined {short_id(name.removeprefix('tx:'))}"

    def _coin_words(self, node: int, name: str) -> str:
        if name.startswith(UNKNOWN):
            return "Coins of unknown value"
        owner = self.owner(node)
        return short_id(name if owner is None else owner)

    def origin_kind(self, node: int, *, listed: bool) -> OriginKind:
        """Tell what kind of origin a source is."""
        if listed:
            return "listed"
        if self.label(node) is not None:
            return "service"
        return "mined" if self._kinds[node] in _MADE else "earlier"

    def href(self, node: int) -> str | None:
        """Give the page of a node, None where there is nothing more to see."""
        kind, name = self._kinds[node], self.party_name(node)
        if kind == _TRANSACTION:
            return thing_link(self.ledger, "tx", name.removeprefix("tx:"))
        if kind == Kind.coin and self.coin_view:
            return self._coin_href(node, name)
        if kind in (Kind.address, Kind.account, Kind.coin):
            by_address = "" if kind == Kind.account else "?view=address"
            return thing_link(self.ledger, "coin", name) + by_address
        return None

    def _coin_href(self, node: int, name: str) -> str | None:
        tx = self.tx(node)
        if self.index.coins.inside[tx] or self.part:  # a coin not followed can be, from its page
            return thing_link(self.ledger, "coin", name)
        # Of an earlier coin only its address leads on.
        owner = self.owner(node)
        return None if owner is None else thing_link(self.ledger, "address", owner)

    def named_href(self, name: str) -> str | None:
        """Give the page of an entry of a list: an address's, or its node's."""
        if name == ELSEWHERE:
            return None
        nodes = self.graph.names.nodes(name)
        if len(nodes) and self.graph.names.parties.find(name) >= 0:
            return self.href(int(nodes[-1]))
        return thing_link(self.ledger, "address", name) if len(nodes) else None


HINTED = 200_000  # parties of a graph in which a mistyped name is looked for


def node_named(
    views: Views, nodes: Nodes, options: ViewOptions, name: str
) -> tuple[int, tuple[str, ...]]:
    """Find the node a name means in a view, and what to say of it.

    A coin seen by address is its owner.
    """
    graph = nodes.graph
    own = name_in(graph, name)
    found = graph.names.nodes(own)
    if len(found) == 0:
        owner = _owner_of(views, options, name)
        if owner is not None:
            return find_node(graph, owner), (f"{name} is seen as its address, {owner}.",)
        # Looking for what else could be meant takes long in a large ledger.
        if len(graph.names.parties) > HINTED:
            why = other_network(graph, [name])
            raise UnknownName(why or f"no node {shorten(name)} in the ledger")
    return find_node(graph, name), ()


def _owner_of(views: Views, options: ViewOptions, name: str) -> str | None:
    """Give whose coin it is, for a view by address of a ledger whose own view is by coin."""
    ledger = views.ledger
    if options.view != "address" or views.default.view != "coin":
        return None
    assert isinstance(ledger, CoinLedger)
    coin = views.chain.graph.names.parties.find(name)
    if not 0 <= coin < len(ledger.output_tx):
        return None
    return str(ledger.owners[int(ledger.output_owner[coin])].as_py())


def coins_of(nodes: Nodes, address: str) -> np.typing.NDArray[np.int64]:
    """Find the nodes of an address's coins in the coin view, in ledger order."""
    own = name_in(nodes.graph, address)
    parties = nodes.graph.names.others.parties(own)
    found = nodes.graph.names.newest[parties]
    return np.sort(found[found >= 0]).astype(np.int64)


MAX_COINS = 20_000  # that a transaction may have to be looked at


def coinjoins(nodes: Nodes, some: Sequence[int]) -> set[int]:
    """Find those of some nodes that are transactions shaped like CoinJoins."""
    transactions = {
        int(n): nodes.tx(int(n)) for n in some if nodes.graph.kinds[n] == Kind.transaction
    }
    if not transactions or nodes.index.hides_amounts:
        return set()
    txs = sorted(set(transactions.values()))
    kinds = dict(zip(txs, coinjoin_kinds(only(nodes.index, txs))[1:].tolist(), strict=True))
    return {node for node, tx in transactions.items() if kinds[tx]}


def only(index: LedgerIndex, txs: Sequence[int]) -> CoinLedger:
    """Cut a ledger down to some transactions and their coins; row 0 made what they spend."""
    ledger = index.coins
    made, spent = [index.made(tx) for tx in txs], [index.spent(tx) for tx in txs]
    for k in range(len(txs)):
        if len(made[k]) + len(spent[k]) > MAX_COINS:
            made[k], spent[k] = made[k][:0], spent[k][:0]
    coins = np.concatenate([*spent, *made])
    n_spent = sum(map(len, spent))
    assert ledger.output_value is not None
    inside = np.arange(len(txs) + 1) > 0
    nothing = np.zeros(0, dtype=np.int64)
    return replace(
        ledger,
        txids=pa.array([str(k) for k in range(len(txs) + 1)], pa.string()),
        inside=inside,
        coinbase=np.zeros(len(inside), dtype=np.bool_),
        heights=pa.nulls(len(inside), pa.int64()),
        times=pa.nulls(len(inside), pa.int64()),
        output_tx=np.concatenate([np.zeros(n_spent, dtype=np.int64), _numbers(made)]),
        output_vout=ledger.output_vout[coins],
        output_value=ledger.output_value.take(coins),
        output_owner=ledger.output_owner[coins],
        output_spendable=ledger.output_spendable[coins],
        input_tx=_numbers(spent),
        input_output=np.arange(n_spent),
        flow_tx=nothing,
        flow_pool=nothing,
        flow_into=ledger.flow_into.take(nothing),
        ring_tx=nothing,
        ring_vin=nothing,
        ring_output=nothing,
        ring_probability=None,
    )


def _numbers(parts: Sequence[Ints]) -> Ints:
    """Number the rows of each part by the transaction it belongs to, from 1."""
    return np.repeat(np.arange(1, len(parts) + 1), [len(part) for part in parts])
