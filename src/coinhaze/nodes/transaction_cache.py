"""A file cache of transactions received from a node: a transaction with an id never changes."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from coinhaze.errors import InputError
from coinhaze.ledger.atomic import private_file, private_folder
from coinhaze.ledger.coins import Input, Output, Transaction

TABLE = "transactions_1"
IDS_PER_QUERY = 500  # ids per query


class _CachedTransaction(msgspec.Struct, array_like=True):
    inputs: list[tuple[str, int, int, str | None]]  # txid, vout, value, address
    outputs: list[tuple[int, int, str | None, bool]]  # vout, value, address, spendable


_decoder = msgspec.json.Decoder(_CachedTransaction)


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
            self._file.execute(
                f"CREATE TABLE IF NOT EXISTS {TABLE} (network TEXT, txid TEXT, body BLOB, "
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
            for start in range(0, len(txids), IDS_PER_QUERY):
                some = txids[start : start + IDS_PER_QUERY]
                marks = ",".join("?" * len(some))
                query = f"SELECT txid, body FROM {TABLE} WHERE network = ? AND txid IN ({marks})"
                for txid, body in self._file.execute(query, [self.network, *some]):
                    found[txid] = _transaction(txid, body)
        except (sqlite3.Error, msgspec.DecodeError, TypeError) as error:
            raise self._fault(error) from None
        return found

    def keep(self, transactions: Iterable[Transaction]) -> None:
        """Add transactions, all or none."""
        rows = [(self.network, t.txid, _body(t)) for t in transactions]
        try:
            with self._file:
                self._file.executemany(f"INSERT OR REPLACE INTO {TABLE} VALUES (?, ?, ?)", rows)
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
    cached = _decoder.decode(body)
    return Transaction(
        txid,
        tuple(Input(*given) for given in cached.inputs),
        tuple(Output(value, owner, vout, ok) for vout, value, owner, ok in cached.outputs),
        coinbase=not cached.inputs,
        where=f"transaction {txid}",
    )
