"""Which party knows which coins of a wallet, as far as the ledger tells, and by a table.

The payer of a coin knows it: the owner of the inputs of the transaction that made it. So does
the payee of an earlier spend of yours, of the coins that it linked. Nobody knows the output
of a CoinJoin or of a coinbase, nor change that was not evident. Coins on one address, coins whose
addresses were spent together, and evident change are linked: who knows one knows all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from coinhaze.amounts import Ints
from coinhaze.formats.lists.parties import OWNER
from coinhaze.graph import TransactionGraph
from coinhaze.graph.clusters.merge import cluster_labels
from coinhaze.ledger import CoinLedger
from coinhaze.observer.owners import CHANGE, COMMON_INPUTS, Inferences, inferences
from coinhaze.wallet.holdings import NO_LABELS, WalletCoin, coin_ledger
from coinhaze.wallet.who_learns import CoinKnowledge

NO_TABLE: Mapping[str, Sequence[str]] = {}


@dataclass(frozen=True, eq=False)
class Parties:
    """Who knows the coins of a wallet, and how to name the payee."""

    knowledge: CoinKnowledge
    name: Callable[[str], str] = field(repr=False)  # of an address: the party that holds it
    is_seen: Callable[[str], bool] = field(repr=False)  # whether an address is in the ledger
    is_mine: Callable[[str], bool] = field(repr=False)  # whether an address is known to be yours
    notes: tuple[str, ...] = ()


def parties_of(
    graph: TransactionGraph,
    coins: Sequence[WalletCoin],
    *,
    labels: Mapping[str, str] = NO_LABELS,
    table: Mapping[str, Sequence[str]] = NO_TABLE,
    inferred: Inferences | None = None,
) -> Parties:
    """Find who knows the coins of a wallet.

    `table` adds to what the ledger tells: for each party the coins, addresses or transactions it
    knows to be yours; the party `me` is yourself. A label of an address names its owner. `inferred`
    are the `inferences` of the ledger, where they are known already.

    >>> import coinhaze
    >>> from coinhaze.wallet.holdings import find_coin
    >>> paid = {"txid": "a", "inputs": [{"txid": "x", "vout": 0, "value": 9, "address": "bob"}],
    ...         "outputs": [{"value": 4, "address": "m1"}, {"value": 5, "address": "m2"}]}
    >>> graph = coinhaze.transaction_graph(coinhaze.CoinLedger.from_transactions([paid]))
    >>> mine = [find_coin(graph, name) for name in ("a:0", "a:1")]
    >>> parties_of(graph, mine, table={"shop": ["m2"]}).knowledge.known
    {'bob': ('a:0', 'a:1'), 'shop': ('a:1',)}
    """
    inferred = inferences(graph.ledger) if inferred is None else inferred
    return _Finder(graph, coins, labels, table, inferred).parties()


class _Finder:
    """The ledger's owners, grouped as an observer groups them, and which of them are yours."""

    def __init__(
        self,
        graph: TransactionGraph,
        coins: Sequence[WalletCoin],
        labels: Mapping[str, str],
        table: Mapping[str, Sequence[str]],
        inferred: Inferences,
    ) -> None:
        self.graph = graph
        self.ledger: CoinLedger = coin_ledger(graph)
        self.coins = [coin for coin in coins if coin.node is not None]
        self.labels = labels
        self.table = table
        self.rows = {coin.name: graph.names.parties.find(coin.name) for coin in self.coins}
        self.missing: list[str] = []
        # Where amounts are hidden, CoinJoins cannot be recognised: nothing is taken for sure.
        nothing = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        owner, joint = inferred.get(COMMON_INPUTS, nothing)
        self.change = inferred.get(CHANGE, nothing)
        self.label = cluster_labels(self.ledger, owner, joint)
        # A payment's inputs have one owner: the first input says who.
        self.payer = np.full(len(self.ledger.txids), -1)
        self.payer[joint] = self.label[owner]
        own = [int(self.ledger.output_owner[row]) for row in self.rows.values()]
        own += [owner for ref in table.get(OWNER, ()) for owner in self._owners(ref, own=True)]
        self.own = np.unique(np.array(own, dtype=np.int64))
        self.mine = np.isin(self.label, self.label[self.own])
        self.label = self._with_change()
        self.payer[self.payer >= 0] = self.label[self._first_owner()[self.payer >= 0]]

    def _first_owner(self) -> Ints:
        """Return an owner of an input for each transaction, -1 where it has none."""
        first = np.full(len(self.ledger.txids), -1)
        first[self.ledger.input_tx] = self.ledger.output_owner[self.ledger.input_output]
        return first

    def _with_change(self) -> Ints:
        """Join your owners with those of evident change of your payments."""
        back, made = self.change
        owner = self._first_owner()[made]
        ours = (owner >= 0) & self.mine[owner] & np.isin(back, self.own)
        label = self.label.copy()
        for first, second in zip(owner[ours].tolist(), back[ours].tolist(), strict=True):
            label[label == label[second]] = label[first]
        return label

    def parties(self) -> Parties:
        groups: dict[int, list[str]] = {}
        for name, row in self.rows.items():
            groups.setdefault(int(self.label[self.ledger.output_owner[row]]), []).append(name)
        known: dict[str, set[str]] = {}
        for party, group in self._from_ledger(groups):
            known.setdefault(party, set()).update(groups[group])
        for party, refs in self.table.items():
            if party != OWNER:
                found = [coin for ref in refs for coin in self._named(ref, groups)]
                known.setdefault(party, set()).update(found)
        values = {coin.name: coin.value for coin in self.coins}
        ordered = {party: sorted(some, key=list(values).index) for party, some in known.items()}
        return Parties(
            CoinKnowledge(values, ordered, groups.values()),
            self._party_of,
            lambda address: bool(self._owners(address)),
            lambda address: any(self.mine[owner] for owner in self._owners(address)),
            self._notes(),
        )

    def _from_ledger(self, groups: Mapping[int, object]) -> Iterator[tuple[str, int]]:
        """Yield parties with the label of the coins that they know."""
        ledger = self.ledger
        label = self.label[ledger.output_owner]
        wanted = np.array(list(groups), dtype=np.int64)
        mine = np.unique(self.label[self.mine])
        paid = np.flatnonzero(np.isin(label, wanted) & (self.payer[ledger.output_tx] >= 0))
        for row in paid.tolist():
            payer = int(self.payer[ledger.output_tx[row]])
            if payer not in mine:
                yield self._party(payer, self._payers(ledger.output_tx[row])), int(label[row])
        spender = self.payer[ledger.output_tx]
        for row in np.flatnonzero(np.isin(spender, wanted) & ~np.isin(label, mine)).tolist():
            owner = int(ledger.output_owner[row])
            yield self._party(int(label[row]), [owner]), int(spender[row])

    def _payers(self, tx: int) -> list[int]:
        spent = self.ledger.input_output[self.ledger.input_tx == tx]
        return [int(owner) for owner in self.ledger.output_owner[spent]]

    def _party(self, label: int, owners: Sequence[int]) -> str:
        """Name a party by a label of its addresses, else by the first of them."""
        names = self.ledger.owners
        if self.labels:
            for owner in (*owners, *np.flatnonzero(self.label == label).tolist()):
                if (name := names[owner].as_py()) in self.labels:
                    return self.labels[name]
        return str(names[int(np.argmax(self.label == label))].as_py())

    def _party_of(self, address: str) -> str:
        owners = self._owners(address)
        if not owners:
            return self.labels.get(address, address)
        return self._party(int(self.label[owners[0]]), owners)

    def _owners(self, ref: str, *, own: bool = False) -> list[int]:
        """Return the owners an address or a coin stands for; of a transaction of yours, inputs."""
        ledger = self.ledger
        rows = self.graph.names.others.parties(ref)
        if len(rows):
            return [int(ledger.output_owner[rows[0]])]
        found = self.graph.names.parties.find(ref)
        if 0 <= found < len(ledger.output_tx):
            return [int(ledger.output_owner[found])]
        tx = self.graph.names.parties.find(f"tx:{ref}")
        if own and tx >= len(ledger.output_tx):
            return self._payers(tx - len(ledger.output_tx))
        return []

    def _named(self, ref: str, groups: Mapping[int, list[str]]) -> list[str]:
        """Return the coins of yours that an entry of a table names."""
        made = [name for name in self.rows if name.rpartition(":")[0] == ref]
        of_owners = [
            name for owner in self._owners(ref) for name in groups.get(int(self.label[owner]), ())
        ]
        if not (found := made or of_owners):
            self.missing.append(ref)
        return found

    def _notes(self) -> tuple[str, ...]:
        if not self.missing:
            return ()
        return (
            f"parties: {len(self.missing):,} entries name none of these coins, such as "
            f"{self.missing[0]}",
        )


def payee_names(parties: Parties, addresses: Iterable[str | None]) -> tuple[str, ...]:
    """Name those who are paid, each once; an output without an address has no name."""
    names = ("the payee" if a is None else parties.name(a) for a in addresses)
    return tuple(dict.fromkeys(names))
