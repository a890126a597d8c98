"""Esplora servers, such as mempool.space and blockstream.info: coins found by address, over HTTP.

Transactions are requested as bytes, so that their ids prove them; the JSON that Esplora gives of
them could say anything about the coins spent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, TypeVar
from urllib.parse import urlsplit

import msgspec

from coinhaze.errors import InputError, SourceUnreachable, UnknownName, UsageError, shorten
from coinhaze.formats.bitcoin_raw.networks import network_named, script_of
from coinhaze.formats.bitcoin_raw.scripts import owners_of
from coinhaze.nodes.best_chain import NETWORKS
from coinhaze.nodes.http import LARGEST_ANSWER, Connection, StatusError, start_of
from coinhaze.nodes.servers import Claim

T = TypeVar("T")


class _Counts(msgspec.Struct):
    tx_count: int


class _Address(msgspec.Struct):
    address: str
    chain_stats: _Counts
    mempool_stats: _Counts


class _Unspent(msgspec.Struct):
    txid: str
    vout: int
    value: int


class EsploraServer:
    """An Esplora server at https://host/api, or http:// on this machine or behind Tor."""

    def __init__(
        self,
        url: str,
        *,
        proxy: str | None = None,
        rate: float | None = None,
        timeout: float = 30.0,
        retries: int = 5,
        largest: int = LARGEST_ANSWER,
    ) -> None:
        parts = urlsplit(url)
        if parts.query or parts.fragment:
            raise UsageError("an Esplora server is esplora+https://host/api, without ? or #")
        self._http = Connection(
            url, timeout=timeout, retries=retries, largest=largest, proxy=proxy, rate=rate
        )
        self._path = parts.path.rstrip("/")
        self.node, self.host = self._http.node, parts.hostname or ""
        self.encrypted = parts.scheme == "https"
        try:
            first = self._text("/block-height/0")
        except BaseException:
            self.close()
            raise
        self.network = NETWORKS.get(first, f"unknown ({first})")

    def raw(self, txids: Sequence[str]) -> list[bytes]:
        """Request transactions by id, as bytes."""
        return [self._transaction(txid) for txid in txids]

    def used(self, scripts: Sequence[bytes]) -> list[bool]:
        """Tell which scripts any transaction paid to, or spent from."""
        return [self._is_used(address) for address in self._addresses(scripts)]

    def unspent(self, scripts: Sequence[bytes]) -> list[list[Claim]]:
        """Request the unspent coins of each script, those in the mempool included."""
        found = [
            self._decode(f"/address/{address}/utxo", list[_Unspent])
            for address in self._addresses(scripts)
        ]
        return [[Claim(c.txid.lower(), c.vout, c.value) for c in coins] for coins in found]

    def height(self) -> int:
        """Request the height of the last block."""
        return self._decode("/blocks/tip/height", int)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _transaction(self, txid: str) -> bytes:
        try:
            return self._http.get(f"{self._path}/tx/{txid}/raw")
        except StatusError as error:
            if error.status in (400, 404):
                raise UnknownName(f"{self.node}: does not know {txid}") from None
            raise

    def _is_used(self, address: str) -> bool:
        found = self._decode(f"/address/{address}", _Address)
        if found.address != address:
            raise SourceUnreachable(f"{self.node}: answered about another address than {address}")
        return found.chain_stats.tx_count + found.mempool_stats.tx_count > 0

    def _addresses(self, scripts: Sequence[bytes]) -> list[str]:
        network = network_named(self.network)
        names = [str(name) for name in owners_of(scripts, network)[0].to_pylist()]
        for name, script in zip(names, scripts, strict=True):
            if script_of(name, network) != script:
                raise InputError(
                    f"{self.node}: finds coins by address, and a script of {len(script)} bytes has "
                    "none: an Electrum server finds those too"
                )
        return names

    def _text(self, path: str) -> str:
        try:
            return start_of(self._http.get(self._path + path))
        except StatusError as error:
            if error.status != 404:
                raise
            raise SourceUnreachable(
                f"{self.node}: no Esplora server at this path: mempool.space and blockstream.info "
                "have theirs at /api, as in esplora+https://mempool.space/api"
            ) from None

    def _decode(self, path: str, kind: type[T]) -> T:
        body = self._http.get(self._path + path)
        try:
            return msgspec.json.decode(body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise SourceUnreachable(
                f"{self.node}: an unknown answer to {path.split('/')[1]}: {error}: "
                f"{shorten(start_of(body), 80)} (is it an Esplora server?)"
            ) from None
