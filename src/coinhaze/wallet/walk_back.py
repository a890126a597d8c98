"""Coins of a node or server, walked back only as far as a requested interval needs.

The part of the chain fetched so far is a ledger like any other, with earlier coins as sources. What
these may stand for is bounded (measures/mixture.py); the heaviest of them are fetched next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from coinhaze.errors import InputError, ResourceError, UnknownName, UsageError
from coinhaze.formats.lists.coins import ListedCoin
from coinhaze.graph import transaction_graph
from coinhaze.ledger import CoinLedger
from coinhaze.ledger.coins import Transaction
from coinhaze.ledger.links import Links
from coinhaze.measures.mixture import Beyond, bits_beyond
from coinhaze.observer import absorbing_chain
from coinhaze.options import PolicyLike, WalletOptions
from coinhaze.solve.local.mixing import mix
from coinhaze.solve.structure.structure import Structure
from coinhaze.wallet.holdings import UnknownCoin
from coinhaze.wallet.keys import passed_over

ACCURACY = 0.1  # bits, unless given
NOTHING_FETCHED: Mapping[str, Transaction] = {}
FIRST = 50  # minimum transactions per round; rounds grow with what is fetched


class TransactionSource(Protocol):
    """Where transactions come from."""

    def transactions(self, txids: Sequence[str]) -> list[Transaction]:
        """Return transactions by id, in that order; without some if it has a limit of its own."""

    def is_unspent(self, txid: str, vout: int) -> bool:
        """Return whether an output is unspent."""

    def blocks(self) -> int:
        """Count the chain's blocks."""


@dataclass(frozen=True, eq=False)
class WalkedChain:
    """The part of a chain that was fetched, and what is proven of each coin over all of it."""

    ledger: CoinLedger
    blocks: int
    beyond: dict[str, Beyond]
    width: float  # as requested
    fetched: Mapping[str, Transaction] = field(default_factory=dict)  # what the ledger is made of

    @property
    def reached(self) -> bool:
        """Return whether every interval is as narrow as requested, up to rounding."""
        return all(b.width <= self.width or b.open == 0 for b in self.beyond.values())


def walk_back(
    past: TransactionSource,
    listed: Sequence[ListedCoin],
    *,
    accuracy: float = ACCURACY,
    max_transactions: int = WalletOptions.max_transactions,
    policy: PolicyLike | None = None,
    links: Links | None = None,
    fetched: Mapping[str, Transaction] = NOTHING_FETCHED,
    unspent: bool = True,
) -> WalkedChain:
    """Fetch the past of listed coins until every interval is `accuracy` bits or narrower.

    It ends earlier once `max_transactions` are fetched: the intervals are then wider, but hold.
    `fetched` are transactions fetched before, which are part of the ledger and fetched no more.
    With `unspent`, coins that are spent are refused.
    """
    if not accuracy >= 0 or max_transactions < 1:
        raise UsageError(
            "accuracy is 0 bits or more, and max_transactions 1 or more: "
            f"{accuracy}, {max_transactions}"
        )
    coins = [_check_name(entry) for entry in listed]
    before = len(fetched)
    fetched = {
        **fetched,
        **{t.txid: t for t in _first(past, listed, coins, fetched, unspent=unspent)},
    }
    blocks = past.blocks()  # only now: all the coins' origins are in these blocks
    while True:
        ledger = CoinLedger.from_transactions(in_order(fetched))
        chain = absorbing_chain(transaction_graph(ledger), policy=policy, links=links)
        structure = Structure(chain)
        beyond = {name: bits_beyond(mix(structure, [name]), blocks) for name in coins}
        wanted = _heaviest(beyond, accuracy)
        room = min(max(FIRST, len(fetched) // 4), max_transactions + before - len(fetched))
        if not wanted or room <= 0:
            return WalkedChain(ledger, blocks, beyond, accuracy, fetched)
        more = past.transactions(wanted[:room])
        if not more:
            return WalkedChain(ledger, blocks, beyond, accuracy, fetched)
        fetched |= {t.txid: t for t in more}


def without_spent(
    past: TransactionSource, listed: Sequence[ListedCoin]
) -> tuple[list[ListedCoin], list[str]]:
    """Leave out payments received and labels whose coin is spent by now; note the labels."""

    def stays(entry: ListedCoin) -> bool:
        if not (entry.received or entry.labelled) or entry.coin is None:
            return True
        txid, _, vout = entry.coin.rpartition(":")
        return past.is_unspent(txid, int(vout))

    left, spent = list[ListedCoin](), list[ListedCoin]()
    for entry in listed:
        (left if stays(entry) else spent).append(entry)
    if spent and not left:
        raise InputError(f"{spent[0].where}: all these coins are spent")
    return left, passed_over([entry for entry in spent if entry.labelled])


def _check_name(entry: ListedCoin) -> str:
    if entry.coin is None:
        raise UsageError(
            f"{entry.where}: a node does not tell the coins of {entry.address or 'a key'}: list "
            "them as txid:vout, or as listunspent gives them, or take an Electrum or Esplora "
            "server: electrum+ssl://host:50002"
        )
    return entry.coin


def _first(
    past: TransactionSource,
    listed: Sequence[ListedCoin],
    coins: Sequence[str],
    fetched: Mapping[str, Transaction],
    *,
    unspent: bool,
) -> list[Transaction]:
    """Fetch the transactions that created the coins, and check that the coins exist."""
    wanted = list(dict.fromkeys(name.rpartition(":")[0] for name in coins))
    found = {txid: fetched[txid] for txid in wanted if txid in fetched}
    missing = [txid for txid in wanted if txid not in found]
    with suppress(UnknownName):  # which one, is seen below
        found |= {t.txid: t for t in past.transactions(missing)}
    for entry, name in zip(listed, coins, strict=True):
        txid, _, vout = name.rpartition(":")
        try:
            some = [found[txid]] if txid in found else past.transactions([txid])
        except UnknownName as error:
            raise UnknownCoin(f"{entry.where}: no coin {name!r}: {error}") from None
        if not some:
            raise ResourceError(
                f"{entry.where}: coin {name} was made of more coins than --max-transactions lets "
                "be fetched: raise it, or leave the coin out"
            )
        made = some[0]
        if int(vout) not in {output.vout for output in made.outputs}:
            raise UnknownCoin(f"{entry.where}: no coin {name!r}: {txid} has no such output")
        if unspent and not past.is_unspent(txid, int(vout)):
            raise InputError(f"{entry.where}: coin {name} is spent already, or can never be")
        found[txid] = made
    return list(found.values())


def _heaviest(beyond: Mapping[str, Beyond], width: float) -> list[str]:
    """Return the transactions that hold most of some coin's money, heaviest first."""
    weight: dict[str, float] = {}
    for found in beyond.values():
        if found.width > width:
            for txid, share in found.resting.items():
                weight[txid] = max(weight.get(txid, 0.0), share)
    return sorted(weight, key=lambda txid: (-weight[txid], txid))


def in_order(fetched: Mapping[str, Transaction]) -> list[Transaction]:
    """Order transactions after those they spend from.

    >>> from coinhaze.ledger.coins import Input
    >>> fetched = {"b": Transaction("b", (Input("a", 0),)), "a": Transaction("a")}
    >>> [t.txid for t in in_order(fetched)]
    ['a', 'b']
    """
    done: dict[str, Transaction] = {}
    for start in sorted(fetched):
        stack = [start]
        while stack:
            txid = stack[-1]
            parents = {i.txid for i in fetched[txid].inputs if i.txid in fetched}
            waiting = sorted(parents - done.keys())
            if not waiting or txid in done:
                done.setdefault(stack.pop(), fetched[txid])
            elif len(stack) > len(fetched):
                raise InputError(f"transaction {txid} comes from itself")
            else:
                stack.append(waiting[0])
    return list(done.values())
