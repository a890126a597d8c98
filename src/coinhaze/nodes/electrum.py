"""Electrum servers: JSON-RPC in lines over TCP or TLS, coins found by the hash of their script.

What a server says is checked as far as it can be: transactions by their ids, coins by the
transactions that made them. Sizes, numbers of answers and times are bounded.
"""

from __future__ import annotations

import hashlib
import socket
import ssl
import time
from collections.abc import Sequence
from itertools import count
from typing import Self, TypeVar
from urllib.parse import urlsplit

import msgspec

from coinhaze.errors import NotAnswering, SourceUnreachable, UnknownName, UsageError, shorten
from coinhaze.formats.bitcoin_raw.wire import double_sha256, id_text
from coinhaze.nodes.best_chain import NETWORKS
from coinhaze.nodes.http import LARGEST_ANSWER, RequestRate, ResponseTooLarge, pause_after, start_of
from coinhaze.nodes.rpc import Call, RpcError, RpcResult, refused
from coinhaze.nodes.servers import Claim
from coinhaze.nodes.sockets import (
    Address,
    connect,
    encrypted,
    read_fingerprint,
    read_proxy,
    refuse_onion,
    untrusted,
)

T = TypeVar("T")

PORTS = {"ssl": 50002, "tcp": 50001}
PROTOCOL = ["1.4", "1.6"]
AT_ONCE = 25  # calls that wait for an answer at a time
IGNORED = 1_000  # messages nobody requested, per round of calls
BUSY = (-101, -102)  # too much was requested, or by too many
NOT_FOUND = ("no such", "not found", "missing transaction")
HEADER = 80

_result = msgspec.json.Decoder(RpcResult)


class _Lost(Exception):
    """A connection that ended; its calls may be repeated on another."""


class _Tip(msgspec.Struct):
    height: int


class _Unspent(msgspec.Struct):
    tx_hash: str
    tx_pos: int
    value: int


class ElectrumServer:
    """An Electrum server at ssl://host:port or tcp://host:port.

    `timeout` bounds silence; a round of calls may take ten times that. `certificate` is the
    fingerprint of a certificate that no authority signed, `proxy` a SOCKS5 proxy, `rate` how many
    calls a second are made at most.
    """

    def __init__(
        self,
        url: str,
        *,
        proxy: str | None = None,
        certificate: str | None = None,
        rate: float | None = None,
        timeout: float = 30.0,
        retries: int = 4,
        largest: int = LARGEST_ANSWER,
    ) -> None:
        self.scheme, self.address = _read_url(url)
        refuse_onion(self.address.host, proxy)
        if certificate is not None and self.scheme != "ssl":
            raise UsageError("--certificate is for electrum+ssl://: tcp has no certificate")
        self.node = f"{self.scheme}://{self.address}"
        self.host = self.address.host
        self.encrypted = self.scheme == "ssl"
        self._proxy = None if proxy is None else read_proxy(proxy)
        self._fingerprint = None if certificate is None else read_fingerprint(certificate)
        self._pace = RequestRate(rate)
        self._timeout, self._retries, self._largest = timeout, retries, largest
        self._socket: socket.socket | None = None
        self._rest = bytearray()
        self._numbers = count(1)
        try:
            self.network = self._network()
        except BaseException:
            self.close()
            raise

    # Requests to a server

    def raw(self, txids: Sequence[str]) -> list[bytes]:
        """Request transactions by id, as bytes."""
        calls: list[Call] = [("blockchain.transaction.get", [txid]) for txid in txids]
        try:
            answers = self.batch(calls)
        except RpcError as error:
            if any(words in error.message.lower() for words in NOT_FOUND):
                some = txids[0] if len(txids) == 1 else f"one of {len(txids)} transactions"
                raise UnknownName(f"{self.node}: does not know {some}") from None
            raise
        return [self._hex(raw, "blockchain.transaction.get") for raw in answers]

    def used(self, scripts: Sequence[bytes]) -> list[bool]:
        """Tell which scripts any transaction paid to, or spent from."""
        calls: list[Call] = [("blockchain.scripthash.get_history", [_hash(s)]) for s in scripts]
        found = self.batch(calls)
        return [bool(self._decode(raw, list[msgspec.Raw], "get_history")) for raw in found]

    def unspent(self, scripts: Sequence[bytes]) -> list[list[Claim]]:
        """Request the unspent coins of each script, those in the mempool included."""
        calls: list[Call] = [("blockchain.scripthash.listunspent", [_hash(s)]) for s in scripts]
        found = [self._decode(raw, list[_Unspent], "listunspent") for raw in self.batch(calls)]
        return [[Claim(c.tx_hash.lower(), c.tx_pos, c.value) for c in coins] for coins in found]

    def height(self) -> int:
        """Request the height of the last block."""
        method = "blockchain.headers.subscribe"
        return self._decode(self.call(method), _Tip, method).height

    def _network(self) -> str:
        method = "blockchain.block.header"
        header = self._hex(self.call(method, 0), method)
        if len(header) < HEADER:
            raise SourceUnreachable(f"{self.node}: a first block of {len(header)} bytes")
        first = id_text(double_sha256(header[:HEADER]))
        return NETWORKS.get(first, f"unknown ({first})")

    # How

    def call(self, method: str, *params: object) -> bytes:
        """Return the raw JSON of one result."""
        return self.batch([(method, params)])[0]

    def batch(self, calls: Sequence[Call]) -> list[bytes]:
        """Return the results of several calls, a few of them on their way at a time."""
        results: dict[int, bytes] = {}
        attempt = 0
        while len(results) < len(calls):
            missing = [k for k in range(len(calls)) if k not in results][:AT_ONCE]
            try:
                self._round(calls, missing, results)
                attempt = 0
            except (_Lost, OSError) as error:
                self.close()
                if attempt >= self._retries:
                    raise NotAnswering(
                        f"{self.node}: no answer in {attempt + 1} tries: {error or 'silence'} (is "
                        "a server running there?)"
                    ) from None
                time.sleep(pause_after(attempt))
                attempt += 1
        return [results[k] for k in range(len(calls))]

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._rest = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _round(self, calls: Sequence[Call], some: Sequence[int], results: dict[int, bytes]) -> None:
        """Make some of the calls over one connection; a connection that ends raises _Lost."""
        if self._socket is None:
            self._open()
        waiting = self._send(calls, some)
        end = time.monotonic() + 10 * self._timeout
        ignored = 0
        while waiting:
            answer = self._answer(end)
            number = waiting.pop(answer.id, None) if isinstance(answer.id, int) else None
            if number is None:
                ignored += 1  # a notification, or an answer to nothing
                if ignored > IGNORED:
                    raise SourceUnreachable(
                        f"{self.node}: {IGNORED} answers that were not requested"
                    )
                continue
            if bytes(answer.error) not in (b"", b"null"):
                error = refused(self.node, calls[number][0], bytes(answer.error))
                if error.code in BUSY:
                    raise _Lost(f"too busy: {error.message[:100]}")
                self.close()  # whatever else is on its way
                raise error
            if not bytes(answer.result):
                raise SourceUnreachable(f"{self.node}: neither result nor error")
            results[number] = bytes(answer.result)

    def _send(self, calls: Sequence[Call], some: Sequence[int]) -> dict[int, int]:
        """Send calls; return which of them each id stands for."""
        assert self._socket is not None
        waiting: dict[int, int] = {}
        lines = bytearray()
        for k in some:
            self._pace.wait()
            number = next(self._numbers)
            waiting[number] = k
            method, params = calls[k]
            request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            lines += msgspec.json.encode(request) + b"\n"
        self._socket.sendall(lines)
        return waiting

    def _open(self) -> None:
        opened = connect(self.address, proxy=self._proxy, timeout=self._timeout)
        try:
            if self.scheme == "ssl":
                opened = encrypted(opened, self.address, fingerprint=self._fingerprint)
        except ssl.SSLCertVerificationError as error:
            opened.close()
            why, limits = error.verify_message, (self._proxy, self._timeout)
            raise SourceUnreachable(
                untrusted(self.address, why, proxy=limits[0], timeout=limits[1])
            ) from None
        except BaseException:
            opened.close()
            raise
        self._socket, self._rest = opened, bytearray()
        hello: list[Call] = [("server.version", ["coinhaze", PROTOCOL])]
        self._round(hello, [0], {})

    def _answer(self, end: float) -> RpcResult:
        line = self._line(end)
        try:
            return _result.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise SourceUnreachable(
                f"{self.node}: answers, but not as an Electrum server: {shorten(start_of(line))}"
            ) from None

    def _line(self, end: float) -> bytes:
        assert self._socket is not None
        searched = 0
        while (at := self._rest.find(b"\n", searched)) < 0:
            searched = len(self._rest)
            if searched > self._largest:
                raise ResponseTooLarge(
                    f"{self.node}: an answer above the limit of {self._largest} bytes"
                )
            if time.monotonic() > end:
                raise _Lost(f"answers took {10 * self._timeout:g} s")
            some = self._socket.recv(1 << 18)
            if not some:
                raise _Lost("the server hung up")
            self._rest += some
        line = bytes(self._rest[:at])
        del self._rest[: at + 1]
        return line

    def _hex(self, raw: bytes, method: str) -> bytes:
        try:
            return bytes.fromhex(self._decode(raw, str, method))
        except ValueError:
            raise SourceUnreachable(f"{self.node}: an answer to {method} that is no hex") from None

    def _decode(self, raw: bytes, kind: type[T], method: str) -> T:
        try:
            return msgspec.json.decode(raw, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise SourceUnreachable(
                f"{self.node}: an unknown answer to {method}: {error} (is it an Electrum server?)"
            ) from None


def _hash(script: bytes) -> str:
    """Name a script as Electrum servers do."""
    return id_text(hashlib.sha256(script).digest())


def _read_url(url: str) -> tuple[str, Address]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    more = parts.path.strip("/") or parts.query or parts.fragment or parts.username is not None
    if parts.scheme not in PORTS or not parts.hostname or more:
        raise UsageError(
            "an Electrum server is electrum+ssl://host:50002 or electrum+tcp://host:50001"
        )
    return parts.scheme, Address(parts.hostname, port or PORTS[parts.scheme])
