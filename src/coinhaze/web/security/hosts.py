"""Which names this server answers to: its own. A rebound DNS name is another."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Collection

from coinhaze.web.problems import Refused
from coinhaze.web.security.headers import Asked

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

    def check(self, asked: Asked) -> None:
        """Refuse a request for another name, or for none."""
        host = asked.one("host")
        name = None if host is None else _name(host)
        if name is None or not self.knows(name):
            raise Refused(
                "bad-host", "this server does not go by that name",
                fix="use the address that `coinhaze serve` printed",
            )  # fmt: skip

    def is_own_origin(self, origin: str, asked: Asked) -> bool:
        """Tell whether an `Origin` is the very server that is asked."""
        scheme, _, name = origin.lower().partition("://")
        return scheme in ("http", "https") and name == (asked.one("host") or "").lower()


def _name(host: str) -> str | None:
    found = _HOST.fullmatch(host.lower())
    return None if found is None else found[1] or found[2]


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
