"""Coins of addresses and of keys: each branch is looked through until a gap of unused scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from coinhaze.errors import InputError, ResourceError, UnknownName, UsageError
from coinhaze.formats.bitcoin_raw.networks import (
    Network,
    foreign_words,
    networks_of,
    script_of,
)
from coinhaze.formats.descriptors import BRANCHES, Descriptor
from coinhaze.formats.lists.coins import ListedCoin
from coinhaze.options import WalletOptions

GAP = WalletOptions.gap_limit
MAX_SCRIPTS = 10_000  # of one branch

Used = Callable[[Sequence[bytes]], Sequence[bool]]


@dataclass(frozen=True)
class UsedScript:
    """A script of a key that was paid to: its branch in words, its index."""

    words: str
    index: int
    script: bytes


class Holding(Protocol):
    """A coin by name, and its value."""

    @property
    def name(self) -> str:
        """Its name, txid:vout."""

    @property
    def value(self) -> int:
        """Its value."""


class AddressIndex(Protocol):
    """Where coins are found by script."""

    network: Network

    def used(self, scripts: Sequence[bytes]) -> Sequence[bool]:
        """Tell which scripts any transaction paid to, or spent from."""

    def coins(self, scripts: Sequence[bytes]) -> Sequence[Sequence[Holding]]:
        """Return the unspent coins of each script."""


def scripts_in_use(
    keys: Sequence[Descriptor], used: Used, *, gap_limit: int = GAP
) -> Iterator[UsedScript]:
    """Yield the scripts that were used, by branch, until `gap_limit` of a branch were not.

    >>> branch = Descriptor("wpkh receive", True, True, lambda index: bytes([index]))
    >>> used = lambda scripts: [script in (b"\\0", b"\\2") for script in scripts]
    >>> [found.index for found in scripts_in_use([branch], used)]
    [0, 2]
    """
    if gap_limit < 1:
        raise UsageError(f"a gap limit is 1 or more, not {gap_limit}")
    for branch in keys:
        index = unused = 0
        while unused < gap_limit and (branch.ranged or index == 0):
            count = gap_limit - unused if branch.ranged else 1
            scripts = [branch.script(k) for k in range(index, index + count)]
            for script, is_used in zip(scripts, used(scripts), strict=True):
                unused = 0 if is_used else unused + 1
                if is_used:
                    yield UsedScript(branch.words, index, script)
                index += 1
            if index > MAX_SCRIPTS:
                raise ResourceError(
                    f"more than {MAX_SCRIPTS:,} addresses of one branch are in use, so it is said: "
                    "list coins or addresses, or take another server"
                )


def check_network(keys: Sequence[Descriptor], network: Network, where: str) -> None:
    """Raise an error for keys of another network."""
    main = network.name == "bitcoin"
    for key in keys:
        if key.mainnet not in (None, main):
            theirs = "Bitcoin's main network" if key.mainnet else "a test network"
            raise InputError(f"{where}: a key of {theirs}, where the coins are of {network.name}")


def listed_coins(
    source: AddressIndex, listed: Sequence[ListedCoin], *, gap_limit: int = GAP
) -> tuple[list[ListedCoin], list[str]]:
    """Find the unspent coins of listed addresses and keys; also say what was looked through."""
    found: dict[str, ListedCoin] = {}
    notes: list[str] = []
    empty: list[str] = []
    labelled: list[ListedCoin] = []
    branches: set[str] = set()
    for entry in listed:
        if entry.coin is not None:
            found.setdefault(entry.coin, entry)
            continue
        if entry.keys:
            check_network(entry.keys, source.network, entry.where)
            scripts = list(scripts_in_use(entry.keys, source.used, gap_limit=gap_limit))
            notes.append(_looked_through(entry, scripts, gap_limit))
            branches |= {key.words.rpartition(" ")[2] for key in entry.keys}
        else:
            scripts = [UsedScript("", 0, _script(entry, source.network))]
        coins = source.coins([used.script for used in scripts])
        for used, some in zip(scripts, coins, strict=True):
            place = f"{entry.where} ({used.words} {used.index})" if entry.keys else entry.where
            for coin in some:
                made = ListedCoin(place, coin.name, None, entry.label, coin.value)
                found.setdefault(coin.name, made)
        if not any(coins):
            empty.append(f"{entry.where}: {nothing(entry, len(scripts), gap_limit)}")
            if entry.labelled:
                labelled.append(entry)
            elif not entry.keys:
                raise InputError(empty[-1])
    if not found and empty:  # one key of several may be empty: a branch that is not used yet
        raise InputError(empty[0])
    if BRANCHES[0] in branches and BRANCHES[1] not in branches:
        notes.append("change is not looked for: add the descriptor of the branch /1/*, or /<0;1>/*")
    return list(found.values()), notes + passed_over(labelled)


def passed_over(labelled: Sequence[ListedCoin]) -> list[str]:
    """Say how many spent coins and empty addresses of a wallet's labels are left out, if any.

    >>> passed_over([ListedCoin("a", coin="t:0"), ListedCoin("b", coin="t:1")])
    ["of a wallet's labels, 2 coins are spent, and passed over"]
    """
    coins = sum(entry.coin is not None for entry in labelled)
    addresses = len(labelled) - coins
    notes = []
    if coins:
        words = "1 coin is" if coins == 1 else f"{coins:,} coins are"
        notes.append(f"{words} spent, and passed over")
    if addresses:
        words = "1 address has" if addresses == 1 else f"{addresses:,} addresses have"
        notes.append(f"{words} no unspent coin, and passed over")
    return [f"of a wallet's labels, {note}" for note in notes]


def nothing(entry: ListedCoin, used: int, gap_limit: int) -> str:
    """Say that an address or a key has no unspent coin, and what may be the cause."""
    if not entry.keys:
        return f"address {entry.address} has no unspent coin"
    kinds = ", ".join(dict.fromkeys(key.words.split(" ")[0] for key in entry.keys))
    if used:
        return f"no unspent coin: {used} addresses of this key ({kinds}) were used and are empty"
    return (
        f"no address of this key ({kinds}) was used among the first {gap_limit} of each branch: is "
        "it the key of the account, and of this network? --gap-limit looks further"
    )


def _looked_through(entry: ListedCoin, scripts: Sequence[UsedScript], gap_limit: int) -> str:
    counts = [
        f"{key.words} {sum(used.words == key.words for used in scripts)}" for key in entry.keys
    ]
    note = f"{entry.where}: addresses in use: {', '.join(counts)}"
    if not any(key.ranged for key in entry.keys):
        note += "; it has no /*, so it is one address"
    return note + (f" (gap limit {gap_limit})" if any(k.ranged for k in entry.keys) else "")


def _script(entry: ListedCoin, network: Network) -> bytes:
    assert entry.address is not None
    script = script_of(entry.address, network)
    if script is None:
        foreign = foreign_words(entry.address, frozenset({network.name}))
        if not foreign and not networks_of(entry.address):
            foreign = f"{entry.address!r} is no address: a letter may be missing or mistyped"
        raise UnknownName(f"{entry.where}: {foreign or 'no script is known of this address'}")
    return script
