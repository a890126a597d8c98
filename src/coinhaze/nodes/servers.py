"""Servers that index a chain by address: where a wallet's coins and their past come from.

A server may be anybody's, so what it says is checked: a transaction's bytes hash to its id, a coin
is an output, of that value and script, of the transaction that made it, and values of coins spent
are read from the transactions that made those. What cannot be checked: whether a coin or a use of
an address was left out, and whether transactions are in blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import islice
from typing import NamedTuple, Protocol

from coinhaze.errors import ResourceError, SourceUnreachable, UsageError
from coinhaze.formats.bitcoin_raw.networks import Network, network_named
from coinhaze.formats.bitcoin_raw.scripts import owners_of
from coinhaze.formats.bitcoin_raw.wire import Malformed
from coinhaze.formats.psbt import PlainTransaction, read_transaction
from coinhaze.ledger.coins import Input, Output, Transaction
from coinhaze.nodes.best_chain import HIGHEST
from coinhaze.nodes.http import is_loopback, shown_url
from coinhaze.nodes.transactions import TransactionCache

KINDS = {
    "electrum": ("electrum", "ElectrumServer", "electrum+ssl://host:50002"),
    "esplora": ("esplora", "EsploraServer", "esplora+https://mempool.space/api"),
}
RATE = 10.0  # calls a second at most, unless given, to a server on another machine
AT_ONCE = 50  # transactions per request
MAX_COINS = 10_000  # of one wallet
MAX_MONEY = 21_000_000 * 100_000_000
NOBODY = ("0" * 64, 0xFFFFFFFF)  # what a coinbase spends


class Claim(NamedTuple):
    """A coin as a server names it."""

    txid: str
    vout: int
    value: int


class Server(Protocol):
    """What is requested of a server."""

    @property
    def node(self) -> str:
        """Its address, for messages."""

    @property
    def network(self) -> str:
        """The network it is of."""

    def raw(self, txids: Sequence[str]) -> list[bytes]:
        """Request transactions by id, as bytes."""

    def used(self, scripts: Sequence[bytes]) -> list[bool]:
        """Tell which scripts any transaction paid to, or spent from."""

    def unspent(self, scripts: Sequence[bytes]) -> list[list[Claim]]:
        """Request the unspent coins of each script, those in the mempool included."""

    def height(self) -> int:
        """Request the height of the last block."""

    def close(self) -> None:
        """Close the connection."""


class FoundCoin(NamedTuple):
    """An unspent coin that a server named and its transaction proves."""

    name: str
    value: int


class ServerTransactions:
    """A server's transactions, each requested once and then cached, and its coins by script.

    At most `max_transactions` are used, those included that only tell the value of a coin spent;
    which ones does not depend on what is cached.
    """

    def __init__(
        self, server: Server, cache: TransactionCache, *, max_transactions: int | None = None
    ) -> None:
        if not server.network.startswith("bitcoin"):
            raise UsageError(
                f"{server.node}: a server of {server.network}: coins are found and walked back on "
                "Bitcoin's networks alone"
            )
        self.server = server
        self.cache = cache
        self.network: Network = network_named(server.network)
        self.requested = 0  # from the server
        self.found = 0  # in the cache
        self._limit = max_transactions
        self._known: dict[str, PlainTransaction] = {}
        self._unspent: set[tuple[str, int]] = set()

    def transactions(self, txids: Sequence[str]) -> list[Transaction]:
        """Return transactions by id, in that order, without those that exceed the limit."""
        made: list[Transaction] = []
        for start in range(0, len(txids), AT_ONCE):
            some = self._affordable(txids[start : start + AT_ONCE])
            plain = self._plain(some)
            fitting: list[PlainTransaction] = []
            spent: set[str] = set()
            for txid in some:
                more = _parents(plain[txid]) - self._known.keys() - spent
                if self._limit is None or len(self._known) + len(spent | more) <= self._limit:
                    fitting.append(plain[txid])
                    spent |= more
            self._plain(spent)
            made += self._built(fitting)
        return made

    def used(self, scripts: Sequence[bytes]) -> list[bool]:
        """Tell which scripts any transaction paid to, or spent from."""
        return self.server.used(scripts)

    def coins(self, scripts: Sequence[bytes]) -> list[list[FoundCoin]]:
        """Return the unspent coins of each script, checked against what made them."""
        claimed = self.server.unspent(scripts)
        count = len(self._unspent) + sum(map(len, claimed))
        if count > MAX_COINS:
            raise ResourceError(
                f"{self.server.node}: {count:,} coins and more, of {MAX_COINS:,} at most: list "
                "those of interest as txid:vout"
            )
        plain = self._plain({_checked_id(self.server.node, c.txid) for s in claimed for c in s})
        found: list[list[FoundCoin]] = []
        for script, claims in zip(scripts, claimed, strict=True):
            for claim in claims:
                pays = plain[claim.txid].pays
                if not 0 <= claim.vout < len(pays) or pays[claim.vout] != (claim.value, script):
                    raise SourceUnreachable(
                        f"{self.server.node}: names a coin, {claim.txid}:{claim.vout}, that its "
                        "transaction did not make, or made for another: use another server"
                    )
                self._unspent.add((claim.txid, claim.vout))
            found.append([FoundCoin(f"{c.txid}:{c.vout}", c.value) for c in dict.fromkeys(claims)])
        return found

    def is_unspent(self, txid: str, vout: int) -> bool:
        """Return whether an output is unspent, in blocks and in the mempool."""
        if (txid, vout) not in self._unspent:
            self.coins([self._plain([txid])[txid].pays[vout].script])
        return (txid, vout) in self._unspent

    def blocks(self) -> int:
        """Count the chain's blocks: there are at most as many coinbases."""
        height = self.server.height()
        if not 0 <= height < HIGHEST:
            raise SourceUnreachable(f"{self.server.node}: a last block of height {height}")
        return height + 1

    def _affordable(self, txids: Sequence[str]) -> list[str]:
        if self._limit is None:
            return list(txids)
        room, some = self._limit - len(self._known), []
        for txid in txids:
            room -= txid not in self._known
            if room < 0:
                break
            some.append(txid)
        return some

    def _plain(self, txids: Iterable[str]) -> dict[str, PlainTransaction]:
        """Return transactions by id: known, cached, or requested and checked."""
        wanted = sorted(set(txids))
        missing = [txid for txid in wanted if txid not in self._known]
        for txid, octets in self.cache.find_raw(missing).items():
            with suppress(SourceUnreachable):  # a damaged one is requested again
                self._known[txid] = self._read(txid, octets, str(self.cache.path))
                self.found += 1
        missing = [txid for txid in missing if txid not in self._known]
        for start in range(0, len(missing), AT_ONCE):
            some = missing[start : start + AT_ONCE]
            received = dict(zip(some, self.server.raw(some), strict=True))
            for txid, octets in received.items():
                self._known[txid] = self._read(txid, octets, self.server.node)
            self.cache.keep_raw(received)
        self.requested += len(missing)
        return {txid: self._known[txid] for txid in wanted}

    def _read(self, txid: str, octets: bytes, where: str) -> PlainTransaction:
        try:
            plain = read_transaction(octets)
        except Malformed as error:
            raise SourceUnreachable(f"{where}: {txid}: not a transaction: {error}") from None
        if plain.txid != txid:
            raise SourceUnreachable(
                f"{where}: gave {plain.txid} where {txid} was requested: use another server"
            )
        if sum(pay.value for pay in plain.pays) > MAX_MONEY or not plain.spends:
            raise SourceUnreachable(f"{where}: {txid} is no transaction that a block could have")
        return plain

    def _built(self, some: Sequence[PlainTransaction]) -> list[Transaction]:
        """Add values and owners of the coins spent, from the transactions that made them."""
        coins = []
        for plain in some:
            for txid, vout in _spends(plain):
                pays = self._known[txid].pays
                if vout >= len(pays):
                    raise SourceUnreachable(
                        f"{self.server.node}: {plain.txid} spends {txid}:{vout}, which does not "
                        "exist: use another server"
                    )
                coins.append(pays[vout])
        scripts = [p.script for p in coins] + [p.script for t in some for p in t.pays]
        names, spendable = (column.to_pylist() for column in owners_of(scripts, self.network))
        spent = iter(zip(coins, names[: len(coins)], strict=True))
        paid = iter(zip(names[len(coins) :], spendable[len(coins) :], strict=True))
        made = []
        for plain in some:
            inputs = []
            for txid, vout in _spends(plain):
                coin, owner = next(spent)
                inputs.append(Input(txid, vout, coin.value, owner))
            owners = list(islice(paid, len(plain.pays)))
            outputs = tuple(
                Output(pay.value, owner, k, ok)
                for k, (pay, (owner, ok)) in enumerate(zip(plain.pays, owners, strict=True))
            )
            where = f"{self.server.node}: {plain.txid}"
            made.append(
                Transaction(plain.txid, tuple(inputs), outputs, coinbase=not inputs, where=where)
            )
        return made


def _spends(plain: PlainTransaction) -> tuple[tuple[str, int], ...]:
    return () if plain.spends == (NOBODY,) else plain.spends


def _parents(plain: PlainTransaction) -> set[str]:
    return {txid for txid, _ in _spends(plain)}


def _checked_id(node: str, txid: str) -> str:
    if len(txid) != 64 or not txid.isascii() or not txid.isalnum():
        raise SourceUnreachable(f"{node}: names a coin without the id of a transaction")
    return txid


def is_server(source: str) -> bool:
    """Tell whether a source is a server that knows coins by address.

    >>> is_server("electrum+ssl://host:50002"), is_server("bitcoin+http://127.0.0.1:8332")
    (True, False)
    """
    return source.partition("+")[0] in KINDS and "://" in source


def open_server(
    source: str,
    *,
    proxy: str | None = None,
    certificate: str | None = None,
    rate: float | None = None,
) -> Server:
    """Open electrum+ssl://, electrum+tcp://, esplora+https:// or esplora+http://.

    `proxy` is a SOCKS5 proxy, such as Tor's; `certificate` the fingerprint of an Electrum server's
    own certificate; `rate` how many calls a second are made at most.
    """
    from importlib import import_module

    kind, _, url = source.partition("+")
    if kind not in KINDS:
        forms = " or ".join(form for *_, form in KINDS.values())
        raise UsageError(f"which kind of server is {shown_url(source)!r}? {forms}")
    if certificate is not None and kind != "electrum":
        raise UsageError(
            "--certificate is for electrum+ssl:// alone: https needs a known authority"
        )
    module, name, _ = KINDS[kind]
    more = {} if certificate is None else {"certificate": certificate}
    if rate is None and not is_loopback(_host(url)):
        rate = RATE
    opened: Server = getattr(import_module(f"coinhaze.nodes.{module}"), name)(
        url, proxy=proxy, rate=rate, **more
    )
    return opened


def _host(url: str) -> str:
    from urllib.parse import urlsplit

    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def privacy_notes(source: str, *, proxy: str | None = None) -> list[str]:
    """Say what a server and those between learn from what is requested of it."""
    url = source.partition("+")[2]
    host = _host(url)
    stated = [
        f"{host} learns which addresses are looked at, that they belong together, and which "
        "transactions; "
        + (
            "the proxy hides where you are, not what you look at"
            if proxy
            else "it sees your network address too, unless it is yours or --proxy (Tor) hides it"
        )
    ]
    plain = url.startswith(("tcp:", "http:"))
    if plain and not is_loopback(host) and not host.endswith(".onion"):
        stated.append(
            f"the connection to {host} is not encrypted: all between can read and change it"
        )
    return stated
