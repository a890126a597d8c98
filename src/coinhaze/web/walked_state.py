"""A node or server being served: coins of its chain are walked back when somebody asks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from coinhaze.errors import UsageError
from coinhaze.explore.cache import progress
from coinhaze.explore.models import LedgerCard
from coinhaze.explore.walked import WalkedExplorer, WalkedPart, follow
from coinhaze.formats.lists.coins import ListedCoin
from coinhaze.ledger.coins import Transaction
from coinhaze.nodes.http import shown_url
from coinhaze.nodes.servers import ServerTransactions, is_server, open_server, privacy_notes
from coinhaze.nodes.transactions import NodeTransactions, TransactionCache, default_cache
from coinhaze.options import WalletOptions
from coinhaze.store.sync import open_node
from coinhaze.wallet.keys import listed_coins
from coinhaze.wallet.walk_back import ACCURACY, TransactionSource, without_spent

NETWORKS = ("bitcoin",)  # whose coins are walked back over a node


class WalkedEntry:
    """A source that is served, and what of its chain was followed so far."""

    def __init__(
        self,
        id: str,
        source: str,
        *,
        proxy: str | None = None,
        certificate: str | None = None,
        rate: float | None = None,
        cache: str | None = None,
        max_transactions: int = WalletOptions.max_transactions,
    ) -> None:
        if not is_server(source) and source.partition("+")[0] not in NETWORKS:
            raise UsageError(
                f"{shown_url(source)}: coins are walked back over electrum+ssl://HOST:PORT, "
                "esplora+https://HOST/api or a node of Bitcoin, bitcoin+http://HOST:PORT"
            )
        self.id = id
        self.source = source
        self.max_transactions = max_transactions
        self._reach = {"proxy": proxy, "certificate": certificate, "rate": rate}
        self._cache = Path(cache) if cache is not None else default_cache()
        self._walking = threading.Lock()  # one connection at a time
        self._part = WalkedPart()
        self._explorer: WalkedExplorer | None = None

    @property
    def notes(self) -> list[str]:
        """Say what a server learns; a node of one's own learns nothing new."""
        if not is_server(self.source):
            return []
        return privacy_notes(self.source, proxy=self._reach["proxy"])  # type: ignore[arg-type]

    def card(self) -> LedgerCard:
        """Say how it stands."""
        shown = shown_url(self.source)
        explorer = self._explorer
        if explorer is None:
            return LedgerCard(
                id=self.id, name=shown, source=shown, kind="coins", state="nothing followed",
                message="no coin of this chain has been walked back yet",
                fix="give a transaction or a coin on its page, and it is walked back",
            )  # fmt: skip
        return LedgerCard(
            id=self.id, name=shown, source=shown, state="ready", digest=explorer.digest,
            **explorer.facts(),
        )  # fmt: skip

    def explorer(
        self, names_of: Callable[[str], Sequence[str]], labels: Mapping[str, str]
    ) -> WalkedExplorer | None:
        """Give the part that was followed; None where nothing was yet."""
        part, found = self._part, self._explorer
        if part.coins and (found is None or found.part is not part):
            found = self._explorer = WalkedExplorer(
                part, id=self.id, card=self.card, names_of=names_of, labels=labels
            )
        return found

    def walk(
        self, listed: Sequence[ListedCoin], *, accuracy: float = ACCURACY, unspent: bool = False
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Walk coins back and add what was found; give their names, and what was looked through.

        A key or an address stands for its unspent coins, which a server tells.
        """
        notes: list[str] = []
        with self._walking:
            progress()(0.0)
            if is_server(self.source):
                opened = open_server(self.source, **self._reach)  # type: ignore[arg-type]
                with closing(opened) as server, self._file(server.network) as file:
                    past = ServerTransactions(server, file, max_transactions=self.max_transactions)
                    coins, notes = listed_coins(past, listed)
                    coins, more = without_spent(past, coins)
                    notes += more
                    self._follow(past, coins, accuracy, unspent=unspent)
            else:
                _, node = open_node(self.source)
                with closing(node.rpc), self._file(node.network) as file:
                    transactions = NodeTransactions(node, file)
                    coins, notes = without_spent(transactions, listed)
                    self._follow(transactions, coins, accuracy, unspent=unspent)
        return tuple(coin.coin or "" for coin in coins), tuple(notes)

    def _file(self, network: str) -> TransactionCache:
        return TransactionCache(self._cache, network)

    def _follow(
        self,
        past: TransactionSource,
        coins: Sequence[ListedCoin],
        accuracy: float,
        *,
        unspent: bool,
    ) -> None:
        self._part = follow(
            _Stopping(past), self._part, coins, accuracy=accuracy,
            max_transactions=self.max_transactions, unspent=unspent,
        )  # fmt: skip


class _Stopping:
    """A source of transactions that stops when the job that asks is cancelled."""

    def __init__(self, past: TransactionSource) -> None:
        self._past = past
        self._note = progress()

    def transactions(self, txids: Sequence[str]) -> list[Transaction]:
        self._note(0.0)
        return self._past.transactions(txids)

    def is_unspent(self, txid: str, vout: int) -> bool:
        return self._past.is_unspent(txid, vout)

    def blocks(self) -> int:
        return self._past.blocks()
