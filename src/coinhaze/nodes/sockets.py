"""Plain and encrypted sockets to servers, directly or through a SOCKS5 proxy such as Tor's.

Names of hosts are resolved by the proxy, never here, where one is given. A certificate must be
signed by an authority this machine trusts, or have the fingerprint that the user gave.
"""

from __future__ import annotations

import hashlib
import socket
import ssl
import time
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlsplit

from coinhaze.errors import SourceUnreachable, UsageError

TOR = "socks5://127.0.0.1:9050"  # where Tor listens by default


class ProxyRefused(OSError):
    """A proxy that does not connect, in words."""


class Address(NamedTuple):
    """A host and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def read_proxy(url: str) -> Address:
    """Read the address of a SOCKS5 proxy.

    >>> str(read_proxy("socks5://127.0.0.1:9050"))
    '127.0.0.1:9050'
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    plain = parts.username is None and not (parts.path.strip("/") or parts.query or parts.fragment)
    if parts.scheme not in ("socks5", "socks5h") or not parts.hostname or not port or not plain:
        raise UsageError(
            f"a proxy is socks5://host:port without user or password, such as {TOR} for Tor"
        )
    return Address(parts.hostname, port)


def refuse_onion(host: str, proxy: str | None) -> None:
    """Raise an error for a host that only Tor can reach, without a proxy."""
    if host.lower().endswith(".onion") and proxy is None:
        raise UsageError(f"{host} is reached through Tor alone: start it, and give --proxy {TOR}")


def read_fingerprint(text: str) -> bytes:
    """Read a SHA-256 fingerprint of a certificate: 64 digits of hex, with colons or without."""
    try:
        octets = bytes.fromhex(text.replace(":", ""))
    except ValueError:
        octets = b""
    if len(octets) != 32:
        raise UsageError(
            "--certificate is the SHA-256 fingerprint of a certificate: 64 digits of hex, with or "
            "without colons, as openssl x509 -fingerprint -sha256 prints it"
        )
    return octets


def connect(address: Address, *, proxy: Address | None, timeout: float) -> socket.socket:
    """Open a connection; raises OSError."""
    opened = socket.create_connection(proxy or address, timeout)
    try:
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if proxy is not None:
            _through(opened, address, time.monotonic() + timeout)
    except BaseException:
        opened.close()
        raise
    return opened


def _through(opened: socket.socket, address: Address, end: float) -> None:
    """Let a SOCKS5 proxy connect to an address, by name."""
    try:
        from socksio import ProtocolError, socks5
    except ImportError:
        raise UsageError("proxies need socksio: pip install 'coinhaze[nodes]'") from None
    talk = socks5.SOCKS5Connection()
    try:
        talk.send(socks5.SOCKS5AuthMethodsRequest([socks5.SOCKS5AuthMethod.NO_AUTH_REQUIRED]))
        opened.sendall(talk.data_to_send())
        chosen = talk.receive_data(_exactly(opened, 2, end))
        free = socks5.SOCKS5AuthMethod.NO_AUTH_REQUIRED
        if not isinstance(chosen, socks5.SOCKS5AuthReply) or chosen.method != free:
            raise ProxyRefused("the proxy wants a password")
        wanted = socks5.SOCKS5CommandRequest.from_address(
            socks5.SOCKS5Command.CONNECT, (address.host, address.port)
        )
        talk.send(wanted)
        opened.sendall(talk.data_to_send())
        head = _exactly(opened, 5, end)
        rest = {1: 3, 3: head[4], 4: 15}.get(head[3], 0) + 2  # of the address, and the port
        answer = talk.receive_data(head + _exactly(opened, rest, end))
    except ProtocolError as error:
        raise ProxyRefused(f"the proxy does not speak SOCKS5: {error}") from None
    assert isinstance(answer, socks5.SOCKS5Reply)
    if answer.reply_code != socks5.SOCKS5ReplyCode.SUCCEEDED:
        words = answer.reply_code.name.lower().replace("_", " ")
        raise ProxyRefused(f"the proxy does not get there: {words}")


def _exactly(opened: socket.socket, size: int, end: float) -> bytes:
    octets = b""
    while len(octets) < size:
        if time.monotonic() > end:
            raise TimeoutError("the proxy takes too long")
        some = opened.recv(size - len(octets))
        if not some:
            raise ProxyRefused("the proxy hung up")
        octets += some
    return octets


def encrypted(
    opened: socket.socket, address: Address, *, fingerprint: bytes | None
) -> ssl.SSLSocket:
    """Encrypt a connection and check the certificate; raises OSError, SourceUnreachable."""
    context = ssl.create_default_context()
    if fingerprint is None:
        return context.wrap_socket(opened, server_hostname=address.host)
    _trust_anything(context)
    secure = context.wrap_socket(opened, server_hostname=address.host)
    seen = _fingerprint(secure)
    if seen != fingerprint:
        secure.close()
        raise SourceUnreachable(
            f"{address}: has another certificate than --certificate tells: {seen.hex(':')}. "
            "Somebody may be listening in: contact the server's operator before you go on"
        )
    return secure


def untrusted(address: Address, why: str, *, proxy: Address | None, timeout: float) -> str:
    """Say what to do about a certificate that no authority vouches for; nothing is sent."""
    seen = "unknown"
    context = ssl.create_default_context()
    _trust_anything(context)
    with (
        suppress(OSError),
        connect(address, proxy=proxy, timeout=timeout) as opened,
        context.wrap_socket(opened, server_hostname=address.host) as secure,
    ):
        seen = _fingerprint(secure).hex(":")
    return (
        f"{address}: its certificate is not trusted: {why}. Many Electrum servers sign their own: "
        f"if you know this one, compare its SHA-256 fingerprint, {seen}, and give it with "
        "--certificate FINGERPRINT"
    )


def _trust_anything(context: ssl.SSLContext) -> None:
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE


def _fingerprint(secure: ssl.SSLSocket) -> bytes:
    return hashlib.sha256(secure.getpeercert(binary_form=True) or b"").digest()
