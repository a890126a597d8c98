"""A chain walked back on demand: only what was followed is known, and the rest is bounded.

The transactions fetched so far are a ledger. Coins at its frontier, whose past nobody fetched, are
shown as origins that are not followed further; figures of a coin are intervals that hold over the
whole chain (measures/mixture.py). What needs the whole ledger, such as its table, is refused.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from coinhaze.errors import InputError, UnknownName, UsageError, shorten
from coinhaze.explore.explorer import OWN, Explorer, no_lists
from coinhaze.explore.models import (
    Comparators,
    GroupAnswer,
    GroupKind,
    LedgerCard,
    LedgerPage,
    SearchAnswer,
    SharedAnswer,
    WalkedCoin,
)
from coinhaze.explore.query import ScreenQuery, Settings, SharedQuery
from coinhaze.explore.screening import MadeStatement
from coinhaze.explore.search import taken_out
from coinhaze.explore.views import WALKED
from coinhaze.formats.lists.coins import ListedCoin
from coinhaze.ledger import CoinLedger
from coinhaze.ledger.coins import Transaction
from coinhaze.wallet.walk_back import ACCURACY, TransactionSource, in_order, walk_back

_WALKABLE = re.compile(r"[0-9a-f]{64}(:[0-9]{1,10})?", re.ASCII)


def is_walkable(text: str) -> bool:
    """Tell whether a text, as `taken_out` gives it, is a transaction's id or a coin.

    >>> is_walkable("ab" * 32), is_walkable("ab" * 32 + ":1"), is_walkable("bc1q")
    (True, True, False)
    """
    return _WALKABLE.fullmatch(text) is not None


def coin_of(text: str) -> ListedCoin:
    """Read what is to be walked back; the coins of a transaction have one past.

    >>> (coin_of(" " + "AB" * 32).coin or "")[-3:]
    'b:0'
    """
    name = taken_out(text)
    if not is_walkable(name):
        raise InputError(f"{shorten(text)}: give a transaction's id, or a coin as txid:0")
    return ListedCoin("coin", name if ":" in name else f"{name}:0", None)


@dataclass(frozen=True)
class WalkedPart:
    """What was followed of a chain so far, and the coins it was followed from, newest first."""

    known: Mapping[str, Transaction] = field(default_factory=dict)
    coins: tuple[str, ...] = ()
    blocks: int = 1

    @property
    def digest(self) -> str:
        """Tell it from what was followed before and after."""
        names = sorted(self.known)
        return hashlib.sha256(
            " ".join([str(self.blocks), *names, *self.coins]).encode()
        ).hexdigest()


def follow(
    past: TransactionSource,
    part: WalkedPart,
    coins: Sequence[ListedCoin],
    *,
    accuracy: float = ACCURACY,
    max_transactions: int,
    unspent: bool = False,
) -> WalkedPart:
    """Fetch the past of coins until their intervals are narrow, and add it to what is known."""
    walked = walk_back(
        past, coins, accuracy=accuracy, max_transactions=max_transactions, fetched=part.known,
        unspent=unspent,
    )  # fmt: skip
    names = [coin.coin or "" for coin in coins]
    return WalkedPart(
        walked.fetched, tuple(dict.fromkeys([*names, *part.coins])), max(walked.blocks, part.blocks)
    )


class WalkedExplorer(Explorer):
    """Answers about single coins of a chain, of which a part was walked back."""

    def __init__(
        self,
        part: WalkedPart,
        *,
        id: str = "ledger",
        card: Callable[[], LedgerCard] | None = None,
        names_of: Callable[[str], Sequence[str]] = no_lists,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Take what was followed; the others are as an explorer takes them."""
        super().__init__(
            CoinLedger.from_transactions(in_order(part.known)), id=id, digest=part.digest,
            card=card, names_of=names_of, labels=labels, max_origins=part.blocks,
        )  # fmt: skip
        self.part = part

    def search(self, query: str) -> SearchAnswer:
        """Find what was followed; at the frontier, say that it can be."""
        text = taken_out(query)
        if is_walkable(text) and text.partition(":")[0] not in self.part.known:
            note = "It has not been walked back yet."
            return SearchAnswer(query=query, understood=text, hits=(), note=note)
        return super().search(query)

    def ledger(self, query: Settings = OWN) -> LedgerPage:
        """Give the coins that were followed."""
        return LedgerPage(
            card=self.card(), settings=self.settings(query), followed=self.followed(self.part.coins)
        )

    def followed(self, names: Sequence[str]) -> tuple[WalkedCoin, ...]:
        """Say how far coins were followed, and what is known of them."""
        found = []
        for name in names:
            figures = (question := self._question(name, OWN)[0]).figures
            nodes = question.nodes
            found.append(
                WalkedCoin(
                    name=name, amount=nodes.amount(question.node), bits=figures.bits,
                    bits_low=figures.low, bits_high=figures.high,
                    not_followed=figures.not_followed, href=nodes.href(question.node) or "",
                )
            )  # fmt: skip
        return tuple(found)

    def group(
        self,
        kind: GroupKind,
        name: str,
        query: Settings = OWN,
        *,
        after: str | None = None,
        limit: int = 100,
    ) -> GroupAnswer:
        """Give a transaction; what addresses and blocks hold is not known from a part."""
        if kind != "transaction":
            raise UsageError(f"{WALKED} does not tell what addresses and blocks hold")
        bare = name.removeprefix("tx:")
        if bare not in self.part.known:
            raise UnknownName(f"transaction {shorten(bare)} has not been walked back")
        return super().group(kind, name, query, after=after, limit=limit)

    def comparators(self, name: str, query: Settings = OWN) -> Comparators:
        """Refuse: other measures have no bounds over the whole chain."""
        raise UsageError(f"{WALKED} bounds bits and exposure alone, not other measures")

    def _statement(self, query: ScreenQuery) -> MadeStatement:
        raise UsageError(f"{WALKED} is no ledger that could be screened: look at one coin")

    def shared(self, name: str, query: SharedQuery) -> SharedAnswer:
        """Refuse: coins at the frontier may share origins beyond it."""
        raise UsageError(f"{WALKED} does not tell what coins share beyond it")
