"""Single transactions of a node by id, with the coins they spent: `getrawtransaction` 2.

They are cached in a file: a transaction with an id never changes.

The response includes values and scripts of spent coins from Bitcoin Core 25 on; arbitrary
transactions are found only if the node has an index of them (`-txindex`).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

import msgspec

from coinhaze.errors import InputError, LedgerError, SourceUnreachable, UnknownName, UsageError
from coinhaze.formats.bitcoin_raw.networks import Network, network_named
from coinhaze.formats.bitcoin_raw.scripts import owners_of
from coinhaze.formats.json.bitcoin import CoreCoin, CoreTransaction, satoshi
from coinhaze.formats.json.records import FAULTS
from coinhaze.ledger.atomic import private_file, private_folder
from coinhaze.ledger.coins import Input, Output, Transaction
from coinhaze.nodes.best_chain import ChainNode
from coinhaze.nodes.http import ResponseTooLarge
from coinhaze.nodes.rpc import Call, RpcError

TABLE = "transactions_1"
RAW = "raw_transactions_1"  # as bytes, where values of what they spent are not known with them
IDS_PER_QUERY = 500  # ids per query

AT_ONCE = 50  # transactions per request
NOT_FOUND = -5


class _CachedTransaction(msgspec.Struct, array_like=True):
    inputs: list[tuple[str, int, int, str | None]]  # txid, vout, value, address
    outputs: list[tuple[int, int, str | None, bool]]  # vout, value, address, spendable


_cached = msgspec.json.Decoder(_CachedTransaction)


def default_cache() -> Path:
    """Return the path of the file in the user's cache directory."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "coinhaze" / "transactions.sqlite"


class TransactionCache:
    """A file of transactions by network and id; addresses are in that network's format.

    >>> with TransactionCache(":memory:", "bitcoin") as cache:
    ...     cache.keep([Transaction("t", outputs=(Output(5, "a", 0),), coinbase=True)])
    ...     cache.find(["t", "u"])["t"].outputs[0].value
    5
    """

    def __init__(self, path: Path | str, network: str) -> None:
        self.path = path
        self.network = network
        try:
            if path != ":memory:":
                private_folder(Path(path).parent)
                os.close(private_file(path, os.O_RDWR | os.O_CREAT))
            # Work may move to another thread; only one thread uses it at a time.
            self._file = sqlite3.connect(path, check_same_thread=False)
            for table in (TABLE, RAW):
                self._file.execute(
                    f"CREATE TABLE IF NOT EXISTS {table} (network TEXT, txid TEXT, body BLOB, "
                    "PRIMARY KEY (network, txid)) WITHOUT ROWID"
                )
        except (OSError, sqlite3.Error) as error:
            raise self._fault(error) from None

    def __enter__(self) -> TransactionCache:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def find(self, txids: Sequence[str]) -> dict[str, Transaction]:
        """Return the transactions that are cached."""
        found: dict[str, Transaction] = {}
        try:
            for txid, body in self._rows(TABLE, txids):
                found[txid] = _transaction(txid, body)
        except (sqlite3.Error, msgspec.DecodeError, TypeError) as error:
            raise self._fault(error) from None
        return found

    def find_raw(self, txids: Sequence[str]) -> dict[str, bytes]:
        """Return the transactions that are cached as bytes."""
        try:
            return {txid: bytes(b) for txid, b in self._rows(RAW, txids) if isinstance(b, bytes)}
        except sqlite3.Error as error:
            raise self._fault(error) from None

    def keep(self, transactions: Iterable[Transaction]) -> None:
        """Add transactions, all or none."""
        self._add(TABLE, [(self.network, t.txid, _body(t)) for t in transactions])

    def keep_raw(self, transactions: Mapping[str, bytes]) -> None:
        """Add transactions as bytes, all or none."""
        self._add(RAW, [(self.network, txid, body) for txid, body in transactions.items()])

    def _rows(self, table: str, txids: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        for start in range(0, len(txids), IDS_PER_QUERY):
            some = txids[start : start + IDS_PER_QUERY]
            marks = ",".join("?" * len(some))
            query = f"SELECT txid, body FROM {table} WHERE network = ? AND txid IN ({marks})"
            yield from self._file.execute(query, [self.network, *some])

    def _add(self, table: str, rows: Sequence[tuple[str, str, bytes]]) -> None:
        try:
            with self._file:
                self._file.executemany(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?)", rows)
        except sqlite3.Error as error:
            raise self._fault(error) from None

    def _fault(self, error: Exception) -> InputError:
        return InputError(
            f"{self.path}: cannot be used as a cache: {error}: delete it, or name another file "
            "with --cache"
        )


def _body(transaction: Transaction) -> bytes:
    inputs = [(i.txid, i.vout, i.value or 0, i.address) for i in transaction.inputs]
    outputs = [(o.vout or 0, o.value or 0, o.address, o.spendable) for o in transaction.outputs]
    return msgspec.json.encode(_CachedTransaction(inputs, outputs))


def _transaction(txid: str, body: bytes) -> Transaction:
    cached = _cached.decode(body)
    return Transaction(
        txid,
        tuple(Input(*given) for given in cached.inputs),
        tuple(Output(value, owner, vout, ok) for vout, value, owner, ok in cached.outputs),
        coinbase=not cached.inputs,
        where=f"transaction {txid}",
    )


_decoder = msgspec.json.Decoder(CoreTransaction, float_hook=Decimal)


class NodeTransactions:
    """A node's transactions, each requested once and then cached."""

    def __init__(self, node: ChainNode, cache: TransactionCache) -> None:
        if not node.network.startswith("bitcoin"):
            raise UsageError(
                f"coins of {node.network} are not walked back over a node: read its blocks into a "
                "store with coinhaze ingest"
            )
        self.node = node
        self.cache = cache
        self.requested = 0  # from the node
        self.found = 0  # in the cache
        self._network = network_named(node.network)

    def transactions(self, txids: Sequence[str]) -> list[Transaction]:
        """Return transactions by id, in that order."""
        cached = self.cache.find(txids)
        self.found += len(cached)
        missing = [txid for txid in txids if txid not in cached]
        for start in range(0, len(missing), AT_ONCE):
            received = self._request(missing[start : start + AT_ONCE])
            self.cache.keep(received)
            cached |= {transaction.txid: transaction for transaction in received}
        self.requested += len(missing)
        return [cached[txid] for txid in txids]

    def is_unspent(self, txid: str, vout: int) -> bool:
        """Return whether an output is unspent, in blocks and in the mempool."""
        return self.node.rpc.call("gettxout", txid, vout, True) != b"null"

    def blocks(self) -> int:
        """Count the chain's blocks: there are at most as many coinbases."""
        return self.node.tip()[0] + 1

    def _request(self, txids: Sequence[str]) -> list[Transaction]:
        calls: list[Call] = [("getrawtransaction", [txid, 2]) for txid in txids]
        try:
            try:
                bodies = self.node.rpc.batch(calls)
            except ResponseTooLarge:
                bodies = [self.node.rpc.call("getrawtransaction", txid, 2) for txid in txids]
        except RpcError as error:
            raise self._refusal(error, txids) from None
        return [
            read_transaction(body, txid, self._network, where=f"{self.node.rpc.node}: {txid}")
            for txid, body in zip(txids, bodies, strict=True)
        ]

    def _refusal(self, error: RpcError, txids: Sequence[str]) -> Exception:
        node = self.node.rpc.node
        if "-txindex" in error.message:
            return SourceUnreachable(
                f"{node}: keeps no index of transactions: start it with -txindex=1, or read its "
                "blocks into a store with coinhaze ingest"
            )
        if error.code == NOT_FOUND:
            some = txids[0] if len(txids) == 1 else f"one of {len(txids)} transactions"
            return UnknownName(f"{node}: does not know {some}: {error.message[:200]}")
        return error


def read_transaction(body: bytes, txid: str, network: Network, *, where: str) -> Transaction:
    """Read a transaction from a response to `getrawtransaction` with verbosity 2."""
    try:
        decoded = _decoder.decode(body)
        spends = [i for i in decoded.vin if i.coinbase is None]
        coins = [i.prevout for i in spends]
        known = [coin for coin in coins if coin is not None]
        scripts = [_octets(c) for c in (*known, *decoded.vout)]
    except (*FAULTS, ValueError) as error:
        raise SourceUnreachable(
            f"{where}: an unknown answer to getrawtransaction: {error}"
        ) from None
    if decoded.txid.lower() != txid:
        raise SourceUnreachable(
            f"{where}: the node gave another transaction: {decoded.txid[:64]!r}"
        )
    if len(known) < len(coins):
        raise SourceUnreachable(
            f"{where}: the node does not tell what was spent: Bitcoin Core 25 or newer does, if it "
            "keeps undo data"
        )
    if bool(spends) == any(i.coinbase is not None for i in decoded.vin):
        raise LedgerError(where, "neither a coinbase nor a payment")
    names, spendable = (column.to_pylist() for column in owners_of(scripts, network))
    inputs = tuple(
        Input(_text(i.txid, where), _count(i.vout, where), satoshi(coin.value, where), owner)
        for i, coin, owner in zip(spends, known, names[: len(known)], strict=True)
    )
    outputs = tuple(
        Output(satoshi(o.value, where), owner, o.n, ok)
        for o, owner, ok in zip(
            decoded.vout, names[len(known) :], spendable[len(known) :], strict=True
        )
    )
    return Transaction(txid, inputs, outputs, coinbase=not spends, where=where)


def _octets(coin: CoreCoin) -> bytes:
    if coin.script.hex is None:
        raise ValueError("a script without its hex")
    return bytes.fromhex(coin.script.hex)


def _text(txid: str | None, where: str) -> str:
    if txid is None or len(txid) != 64:
        raise LedgerError(where, "an input without the id of a transaction", value=txid)
    return txid.lower()


def _count(vout: int | None, where: str) -> int:
    if vout is None or not 0 <= vout < 2**32:
        raise LedgerError(where, "an input without the number of an output", value=vout)
    return vout
