"""A wallet's coins, addresses and sources in a graph of coins; errors say why one is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from coinhaze.amounts import Ints
from coinhaze.errors import InputError, UnknownName, UsageError
from coinhaze.formats.bitcoin_raw.networks import (
    BITCOIN,
    NETWORKS,
    Network,
    foreign_words,
    networks_of,
    networks_of_owners,
)
from coinhaze.formats.bitcoin_raw.scripts import owners_of
from coinhaze.formats.lists.coins import ListedCoin
from coinhaze.formats.money import unit_of
from coinhaze.graph import TransactionGraph
from coinhaze.ledger import CoinLedger
from coinhaze.ledger.coins import UNKNOWN
from coinhaze.ledger.links import Links
from coinhaze.observer import AbsorbingChain
from coinhaze.observer.build import chain_over
from coinhaze.observer.chain import ELSEWHERE
from coinhaze.options import PolicyLike
from coinhaze.wallet.keys import GAP, check_network, nothing, passed_over, scripts_in_use

NO_LABELS: Mapping[str, str] = {}


class UnknownCoin(UnknownName):
    """A coin that is not in the ledger."""


class _Empty(InputError):
    """A key without an unspent coin; a payment received, or a label, whose coin is spent."""


class _SpentCoin(InputError):
    """A coin that is spent."""


@dataclass(frozen=True)
class WalletCoin:
    """An unspent coin; `node` is its number in the graph, None if the ledger does not have it."""

    name: str
    node: int | None
    value: int | None
    address: str | None = None
    label: str | None = None


def find_coins(
    graph: TransactionGraph, listed: Iterable[ListedCoin], *, gap_limit: int = GAP
) -> list[WalletCoin]:
    """Find the unspent coins a list names, each once, in its order.

    An address stands for all its unspent coins, a key for those of its addresses, of which
    `gap_limit` in a row that are not in the ledger end a branch. A payment received whose coin is
    spent is left out, and so are spent coins and empty addresses of a wallet's labels. Any other
    entry that is unknown, spent, or of another network raises an error that gives its position in
    the list.
    """
    return find_listed(graph, listed, gap_limit=gap_limit)[0]


def find_listed(
    graph: TransactionGraph, listed: Iterable[ListedCoin], *, gap_limit: int = GAP
) -> tuple[list[WalletCoin], list[str]]:
    """Find coins as `find_coins` does; also note how many of a wallet's labels are left out."""
    found: dict[str, WalletCoin] = {}
    labelled: list[ListedCoin] = []
    empty: InputError | None = None
    for entry in listed:
        try:
            coins = _coins_of(graph, entry, gap_limit)
        except _Empty as error:  # of several, one may be: a branch that is not used yet, say
            empty = empty or InputError(f"{entry.where}: {error}")
            labelled += [entry] if entry.labelled else []
            continue
        except InputError as error:
            raise type(error)(f"{entry.where}: {error}") from None
        found |= {coin.name: coin for coin in coins if coin.name not in found}
    if not found:
        raise empty or InputError("the list names no coin")
    return list(found.values()), passed_over(labelled)


def find_coin(graph: TransactionGraph, name: str, *, label: str | None = None) -> WalletCoin:
    """Find an unspent coin by `txid:vout`."""
    ledger = coin_ledger(graph)
    output = graph.names.parties.find(name)
    if not 0 <= output < len(ledger.output_tx):
        raise UnknownCoin(
            f"no coin {name!r} in the ledger (a coin made before the window and not spent in it is "
            "not there: add the blocks or files that made it)"
        )
    return _coin(graph, ledger, output, label)


def coin_ledger(graph: TransactionGraph) -> CoinLedger:
    """Return the ledger of a coin view in which spends of coins are visible."""
    if not isinstance(graph.ledger, CoinLedger):
        raise UsageError(
            "a wallet holds coins, and this is a ledger of accounts: origins, screen and "
            "destinations take an account"
        )
    if graph.settings.get("view") != "coin":
        raise UsageError("a wallet's coins are found in the coin view: leave out view")
    if graph.ledger.has_rings:
        raise UsageError("rings do not tell which coins are spent: no coin of theirs can be found")
    return graph.ledger


def _coins_of(graph: TransactionGraph, entry: ListedCoin, gap_limit: int) -> list[WalletCoin]:
    ledger = coin_ledger(graph)
    if entry.coin is not None:
        try:
            coin = find_coin(graph, entry.coin, label=entry.label)
        except _SpentCoin as error:
            passed = entry.received or entry.labelled
            raise (_Empty(str(error)) if passed else error) from None
        if entry.value is not None and coin.value not in (None, entry.value):
            unit = unit_of(ledger)
            there, here = (unit.words(value) for value in (coin.value or 0, entry.value))
            raise InputError(
                f"coin {coin.name} is worth {there} in the ledger, {here} in the list (correct it "
                "there, or leave the value out)"
            )
        return [coin]
    if entry.keys:
        addresses = _addresses_of(graph, ledger, entry, gap_limit)
        found = [c for a in addresses for c in _unspent_of(graph, ledger, a, entry.label)]
        if not found:
            raise _Empty(nothing(entry, len(addresses), gap_limit))
        return found
    assert entry.address is not None
    if not len(graph.names.others.parties(entry.address)):
        raise unknown_address(ledger, entry.address)
    found = _unspent_of(graph, ledger, entry.address, entry.label)
    if not found:
        empty = f"address {entry.address} has no unspent coin in the ledger"
        raise _Empty(empty) if entry.labelled else InputError(empty)
    return found


def _unspent_of(
    graph: TransactionGraph, ledger: CoinLedger, address: str, label: str | None
) -> list[WalletCoin]:
    outputs = graph.names.others.parties(address)
    unspent = outputs[~np.isin(outputs, ledger.input_output)]
    unspent = unspent[ledger.output_spendable[unspent] & (graph.names.newest[unspent] >= 0)]
    return [_coin(graph, ledger, int(output), label) for output in unspent]


def _addresses_of(
    graph: TransactionGraph, ledger: CoinLedger, entry: ListedCoin, gap_limit: int
) -> list[str]:
    """Give the addresses of a key that are in the ledger."""
    ours = networks_of_owners(ledger.owners)
    some = [n for n in NETWORKS if n.name in ours and n.name.startswith("bitcoin")]
    # Test networks share addresses of the older kind, so more than one may be the ledger's.
    networks = [n for n in some if (n.name == BITCOIN.name) == entry.keys[0].mainnet] or some
    for network in networks or [BITCOIN]:
        check_network(entry.keys, network, "the ledger")

    def addresses(scripts: Sequence[bytes]) -> list[set[str]]:
        names = [owners_of(scripts, network)[0].to_pylist() for network in networks]
        return [{str(name) for name in each if _known(name)} for each in zip(*names, strict=True)]

    def _known(name: str) -> bool:
        return len(graph.names.others.parties(name)) > 0

    def used(scripts: Sequence[bytes]) -> list[bool]:
        return [bool(names) for names in addresses(scripts)] or [False] * len(scripts)

    found = [each.script for each in scripts_in_use(entry.keys, used, gap_limit=gap_limit)]
    return list(dict.fromkeys(name for names in addresses(found) for name in sorted(names)))


def _coin(
    graph: TransactionGraph, ledger: CoinLedger, output: int, label: str | None
) -> WalletCoin:
    name = str(ledger.output_names(np.array([output]))[0].as_py())
    spends: Ints = np.flatnonzero(ledger.input_output == output)
    if len(spends):
        spender = ledger.txids[int(ledger.input_tx[spends[0]])].as_py()
        raise _SpentCoin(f"coin {name} is spent already, by {spender}")
    if not ledger.output_spendable[output]:
        raise InputError(f"coin {name} can never be spent")
    node = int(graph.names.newest[output])
    if node < 0:
        raise InputError(f"coin {name} is worth nothing")
    value = None if ledger.output_value is None else ledger.output_value[output]
    return WalletCoin(name, node, value, address_of(ledger, output), label)


def address_of(ledger: CoinLedger, output: int) -> str | None:
    """Return the address an output pays, None if it has none."""
    owner = int(ledger.output_owner[output])
    return None if ledger.owner_is_coin[owner] else str(ledger.owners[owner].as_py())


def network_of(graph: TransactionGraph) -> Network:
    """Return the network whose addresses the ledger has, Bitcoin's unless it tells another."""
    ours = networks_of_owners(coin_ledger(graph).owners)
    return next((network for network in NETWORKS if network.name in ours), BITCOIN)


def unknown_address(ledger: CoinLedger, address: str) -> UnknownName:
    """Return the error for an address missing from the ledger, naming its network if different."""
    ours = networks_of_owners(ledger.owners)
    if foreign := foreign_words(address, ours):
        return UnknownName(foreign)
    odd = "" if networks_of(address) or not ours else ", and no address of a network known here"
    return UnknownName(f"address {address} is not in the ledger{odd}")


@dataclass(frozen=True)
class NamedOrigin:
    """A source of a coin's money: its name in the graph, its description, and its share."""

    source: str
    words: str
    share: float


def origin_words(graph: TransactionGraph, source: str, labels: Mapping[str, str]) -> str:
    """Describe a source of a coin view, with a label where its address has one.

    >>> import coinhaze
    >>> ledger = coinhaze.CoinLedger.from_transactions([
    ...     {"txid": "a", "outputs": [{"value": 5, "address": "m"}]},
    ... ])
    >>> origin_words(coinhaze.transaction_graph(ledger), "tx:a", {"m": "the old mine"})
    'newly mined by the old mine: tx:a'
    """
    if source == ELSEWHERE:
        return "anywhere not listed"
    if source in labels:
        return f"{labels[source]}: {source}"
    if source.startswith("pool:"):
        return f"the shielded {source}"
    ledger = coin_ledger(graph)
    party = graph.names.parties.find(source)
    outputs = len(ledger.output_tx)
    if 0 <= party < outputs:
        return _coin_words(ledger, party, source, labels)
    if outputs <= party < outputs + len(ledger.txids):
        return _mined_words(ledger, party - outputs, source, labels)
    return source


def _coin_words(ledger: CoinLedger, output: int, source: str, labels: Mapping[str, str]) -> str:
    if source.startswith(UNKNOWN):
        return f"coins of unknown value, spent by {source[len(UNKNOWN) :].rpartition(':')[0]}"
    owner = address_of(ledger, output)
    whose = "" if owner is None else f" of {labels.get(owner, owner)}"
    return f"a coin{whose} from before this ledger: {source}"


def _mined_words(ledger: CoinLedger, tx: int, source: str, labels: Mapping[str, str]) -> str:
    paid = [address_of(ledger, int(k)) for k in np.flatnonzero(ledger.output_tx == tx)]
    known = [labels[owner] for owner in paid if owner is not None and owner in labels]
    by = f" by {known[0]}" if known else ""
    height = ledger.block_heights[tx].as_py()
    block = "" if height is None else f" in block {height}"
    return f"newly mined{by}{block}: {source}"


def exposed_chain(
    graph: TransactionGraph,
    names: Sequence[str],
    *,
    policy: PolicyLike | None = None,
    links: Links | None = None,
    is_part: bool = False,
) -> AbsorbingChain:
    """Return a chain in which walks end at these addresses or coins.

    An empty list raises an error, and so does one of which nothing is in the ledger; then the error
    explains the first name. Where the ledger `is_part` of a chain, of which no more was needed,
    nothing need be in it.

    >>> import coinhaze
    >>> ledger = coinhaze.CoinLedger.from_transactions([{"txid": "a", "outputs": [{"value": 5}]}])
    >>> exposed_chain(coinhaze.transaction_graph(ledger), [])
    Traceback (most recent call last):
    coinhaze.errors.InputError: the list of exposed addresses is empty
    """
    if not names:
        raise InputError("the list of exposed addresses is empty")
    if not is_part and not any(len(graph.names.nodes(name)) for name in names):
        why = unknown_address(coin_ledger(graph), names[0])
        raise InputError(f"nothing listed as exposed is found: {why}")
    return chain_over(graph, policy=policy, listed=names, links=links, may_miss=is_part)
