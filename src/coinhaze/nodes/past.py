"""Single transactions of a node by id, with the coins they spent: `getrawtransaction` 2.

The response includes values and scripts of spent coins from Bitcoin Core 25 on; arbitrary
transactions are found only if the node has an index of them (`-txindex`).
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import msgspec

from coinhaze.errors import LedgerError, SourceUnreachable, UnknownName, UsageError
from coinhaze.formats.bitcoin_raw.addresses import network_named
from coinhaze.formats.bitcoin_raw.networks import Network
from coinhaze.formats.bitcoin_raw.scripts import owners_of
from coinhaze.formats.json.bitcoin import satoshi
from coinhaze.formats.json.records import FAULTS
from coinhaze.ledger.coins import Input, Output, Transaction
from coinhaze.nodes.best_chain import ChainNode
from coinhaze.nodes.http import ResponseTooLarge
from coinhaze.nodes.rpc import Call, RpcError
from coinhaze.nodes.transaction_cache import TransactionCache

AT_ONCE = 50  # transactions per request
NOT_FOUND = -5


class _Script(msgspec.Struct):
    hex: str


class _Coin(msgspec.Struct):
    value: Any  # an int or a Decimal, never a float
    scriptPubKey: _Script


class _Output(_Coin, kw_only=True):
    n: int


class _Input(msgspec.Struct):
    txid: str | None = None
    vout: int | None = None
    coinbase: str | None = None
    prevout: _Coin | None = None


class _RawTransaction(msgspec.Struct):
    txid: str
    vin: list[_Input]
    vout: list[_Output]


_decoder = msgspec.json.Decoder(_RawTransaction, float_hook=Decimal)


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
        self.asked = 0  # from the node
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
        self.asked += len(missing)
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
        scripts = [bytes.fromhex(c.scriptPubKey.hex) for c in (*known, *decoded.vout)]
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


def _text(txid: str | None, where: str) -> str:
    if txid is None or len(txid) != 64:
        raise LedgerError(where, "an input without the id of a transaction", value=txid)
    return txid.lower()


def _count(vout: int | None, where: str) -> int:
    if vout is None or not 0 <= vout < 2**32:
        raise LedgerError(where, "an input without the number of an output", value=vout)
    return vout
