"""Coming in: one-time codes for addresses, and what a request brings to prove who sends it.

Browsers keep the token as an HTTP login, which goes to this address and port alone; a cookie would
go to every port of the host. A code stands for the token in an address, where history keeps it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
import time
from collections.abc import Callable

from coinhaze.web.security.headers import RequestHead

ENTER = "/enter"  # at the root, so that a browser sends the login everywhere below it
LOGIN = "coinhaze"  # the name of the login; its password is the token
CHALLENGE = {"www-authenticate": 'Basic realm="coinhaze", charset="UTF-8"'}
MAX_CODES = 100


class Codes:
    """Codes that open once, and not for long.

    >>> codes = Codes(within=60.0)
    >>> code = codes.new()
    >>> codes.take(code), codes.take(code), codes.take("guessed")
    (True, False, False)
    """

    def __init__(self, *, within: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._within = within
        self._clock = clock
        self._until: dict[bytes, float] = {}

    def new(self) -> str:
        """Make a code."""
        code = secrets.token_urlsafe(16)
        self._until[digest(code)] = self._clock() + self._within
        if len(self._until) > MAX_CODES:
            del self._until[next(iter(self._until))]
        return code

    def take(self, code: str) -> bool:
        """Use a code up; tell whether it was good."""
        until = self._until.pop(digest(code), None)
        return until is not None and self._clock() < until


def given_token(request: RequestHead) -> tuple[str | None, bool]:
    """Give what a request says is the token, and whether a program sent it.

    Browsers send the login of their own accord, whatever made them request; programs mean it.
    """
    kind, _, word = (request.one("authorization") or "").partition(" ")
    if kind.lower() == "bearer":
        return word.strip() or None, True
    if kind.lower() != "basic":
        return None, False
    try:
        login = base64.b64decode(word.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None, False
    return login.partition(":")[2] or None, False


def digest(text: str) -> bytes:
    """Make secrets the same length, so that comparing them tells nothing of where they differ."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
