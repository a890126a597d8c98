"""Headers: what a request says of itself and its host, and what every answer says to browsers."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import parse_qs, unquote_to_bytes

from coinhaze.web.schema import Refused

Scope = Mapping[str, Any]

CSP = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
ALWAYS = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "x-robots-tag": "noindex",
}
NO_STORE = "no-store"


class RequestHead:
    """A request's head, read once."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.raw: bytes = scope.get("raw_path") or self.path.encode()
        self._headers: list[tuple[bytes, bytes]] = list(scope["headers"])
        client = scope.get("client")
        self.who: str = client[0] if client else "local"
        self.client: tuple[str, int] | None = (client[0], client[1]) if client else None

    def all(self, name: str) -> list[str]:
        """Give every value of a header."""
        wanted = name.encode()
        return [value.decode("latin-1") for key, value in self._headers if key == wanted]

    def one(self, name: str) -> str | None:
        """Give a header's value, None where it is absent or there twice."""
        found = self.all(name)
        return found[0] if len(found) == 1 else None

    @property
    def has_body(self) -> bool:
        """Tell whether the head announces a body."""
        lengths = [length for length in self.all("content-length") if length.strip("0")]
        return bool(lengths or self.all("transfer-encoding"))

    @property
    def size(self) -> int:
        """Bytes of the head."""
        lines = sum(len(key) + len(value) + 4 for key, value in self._headers)
        return lines + len(self.raw) + len(self.scope.get("query_string", b"")) + 16

    @property
    def wants_json(self) -> bool:
        """Whether a program asks, not a person."""
        return self.path.startswith("/api")

    @property
    def changes(self) -> bool:
        """Whether it may change something, or takes work."""
        return self.method not in ("GET", "HEAD", "OPTIONS")

    def query(self, name: str) -> str | None:
        """Give a field of the query, None where it is absent or there twice."""
        text = self.scope.get("query_string", b"").decode("latin-1")
        found = parse_qs(text, keep_blank_values=True).get(name, []) if name in text else []
        return found[0] if len(found) == 1 else None

    def parts(self) -> list[bytes] | None:
        """Give the path's parts, unescaped once each; None where it does not begin with /."""
        if not self.raw.startswith(b"/"):
            return None
        return [unquote_to_bytes(part) for part in self.raw[1:].split(b"/")]


LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_HOST = re.compile(r"(?:\[([0-9a-f:.]{2,45})\]|([a-z0-9._-]{1,253}))(?::([0-9]{1,5}))?", re.A)


class Hosts:
    """Names that may stand in `Host`.

    A remote server is reached by addresses nobody can list, but an address cannot be rebound: any
    is taken then, and of names only this machine's.

    >>> Hosts().knows("localhost"), Hosts().knows("127.0.0.1.evil.example")
    (True, False)
    """

    def __init__(self, *, names: Collection[str] = LOOPBACK, remote: bool = False) -> None:
        own = {socket.gethostname().lower()} if remote else set()
        self._names = LOOPBACK | {name.lower() for name in names} | own
        self._remote = remote

    def knows(self, name: str) -> bool:
        """Tell whether a name, without its port, is this server's."""
        return name in self._names or (self._remote and _is_address(name))

    def check(self, request: RequestHead) -> None:
        """Refuse a request for another name, or for none."""
        host = request.one("host")
        name = None if host is None else _name(host)
        if name is None or not self.knows(name):
            raise Refused(
                "bad-host", "this server does not go by that name",
                fix="use the address that `coinhaze serve` printed",
            )  # fmt: skip

    def is_own_origin(self, origin: str, request: RequestHead) -> bool:
        """Tell whether an `Origin` is this server itself."""
        scheme, _, name = origin.lower().partition("://")
        return scheme in ("http", "https") and name == (request.one("host") or "").lower()


def _name(host: str) -> str | None:
    found = _HOST.fullmatch(host.lower())
    return None if found is None else found[1] or found[2]


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
