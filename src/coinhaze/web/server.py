"""The server: a socket, connections that may not dawdle, and the address to open."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import ipaddress
import secrets
import socket
import stat
import sys
from pathlib import Path
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from coinhaze.errors import InputError, UsageError
from coinhaze.web.schema import Refused
from coinhaze.web.security.guard import Guard
from coinhaze.web.security.headers import ALWAYS

SHORTEST = 22  # letters of a token: 128 bits, if they are random
USUAL_PORT = 8000
_M_ARENA_MAX = -8  # of glibc's malloc.h


def new_token() -> str:
    """Make a token of 256 random bits."""
    return secrets.token_urlsafe(32)


def read_token(path: Path) -> str:
    """Read a token from a file that nobody else may read."""
    try:
        mode = path.stat().st_mode
        token = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: no token can be read: {type(error).__name__}") from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InputError(f"{path}: others can read this token: chmod 600 {path}")
    if len(token) < SHORTEST or not token.replace("-", "").replace("_", "").isalnum():
        raise InputError(
            f"{path}: a token is {SHORTEST} letters and digits or more, such as python3 -c "
            "'import secrets; print(secrets.token_urlsafe(32))' prints"
        )
    return token


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_place(host: str, *, allow_remote: bool, token_file: Path | None) -> None:
    """Refuse to be reached from elsewhere unless the options say so in full."""
    if not is_loopback(host) and not (allow_remote and token_file):
        raise UsageError(
            f"--host {host} can be reached from other machines: that needs --allow-remote and "
            "--token-file FILE; what is sent is not encrypted, so put it behind TLS"
        )


def listen(host: str, port: int | None) -> socket.socket:
    """Open a socket; without a port the usual one, or any that is free."""
    last: OSError | None = None
    for candidate in (USUAL_PORT, 0) if port is None else (port,):
        try:
            family = socket.getaddrinfo(host, candidate, type=socket.SOCK_STREAM)[0][0]
            # Named as TCP, so that asyncio sends small pieces at once: else each answer waits
            # 40 ms for its reader to say that the first piece came.
            found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                found.bind((host, candidate))
            except OSError:
                found.close()
                raise
            found.listen(128)
            return found
        except OSError as error:
            last = error
    assert last is not None
    raise UsageError(f"cannot serve at {host}:{port}: {last.strerror}; try --port 0")


def address_of(sock: socket.socket, host: str) -> str:
    """Give the address of a server's first page, without a token."""
    port = sock.getsockname()[1]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def share_memory() -> None:
    """Let all threads take memory from two heaps, where the C library allows it.

    Each would have a heap of its own, and keep the most it ever held.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)


def server_of(app: Guard) -> uvicorn.Server:
    """Make the server of an app; nothing it logs holds a query or a header."""
    config = uvicorn.Config(
        app,
        http=_protocol(app),
        ws="none",
        log_config=None,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=app.limits.headers,
    )
    return uvicorn.Server(config)


def _protocol(app: Guard) -> type[asyncio.Protocol]:
    limits = app.limits
    open_now: dict[Prompt, None] = {}  # in the order they came

    def make_room() -> bool:
        """Close the oldest connection that has not brought the token; tell whether there is one.

        Nobody can tell an owner from a stranger before a request is read, and a request of the
        owner's is read at once: who has said nothing for longest is not waiting for us.
        """
        oldest = next((c for c in open_now if c.client not in app.trusted), None)
        if oldest is None:
            return False
        del open_now[oldest]
        oldest.transport.abort()
        return True

    class Prompt(H11Protocol):
        """A connection that is closed when a request's head takes too long to come."""

        _head: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(open_now) >= limits.connections and not make_room():
                transport.abort()
                return
            open_now[self] = None
            self._expect_head()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            open_now.pop(self, None)
            if self.client is not None:
                app.trusted.discard(self.client)
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.conn.their_state is h11.IDLE:
                self._expect_head()
            else:
                self._stop_waiting()

        def on_response_complete(self) -> None:
            self._stop_waiting()
            super().on_response_complete()

        def send_400_response(self, msg: str) -> None:
            error = sys.exc_info()[1]
            large = getattr(error, "error_status_hint", 400) == 431
            code = "headers-too-large" if large else "bad-request"
            _say(self, Refused(code, msg, fix="send HTTP/1.1, with fewer headers"))

        def _expect_head(self) -> None:
            if self._head is None:
                self._head = self.loop.call_later(limits.headers_within, self._too_slow)

        def _stop_waiting(self) -> None:
            if self._head is not None:
                self._head.cancel()
                self._head = None

        def _too_slow(self) -> None:
            self.transport.abort()

    return Prompt


def _say(connection: Any, refused: Refused) -> None:
    """Refuse what never became a request."""
    headers = {"content-type": "application/json", "connection": "close", **ALWAYS}
    lines = [(key.encode(), value.encode()) for key, value in headers.items()]
    for event in (
        h11.Response(status_code=refused.status, headers=lines, reason=b""),
        h11.Data(data=refused.body),
        h11.EndOfMessage(),
    ):
        connection.transport.write(connection.conn.send(event))
    connection.transport.close()
