"""The guard: all that is checked of a request before the app sees it, and of answers; its limits.

Against other sites in the same browser: the name requested (a rebound DNS name is not ours), the
token, and where the browser says the request comes from. Against too much: sizes, counts, times.
"""

from __future__ import annotations

import asyncio
import hmac
import html
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode

from coinhaze.explore.query import SLASH
from coinhaze.web.schema import Refused
from coinhaze.web.security.codes import CHALLENGE, ENTER, Codes, digest, given_token
from coinhaze.web.security.headers import ALWAYS, NO_STORE, Hosts, RequestHead

Clock = Callable[[], float]


@dataclass(frozen=True)
class Limits:
    """What one server allows; times in seconds, sizes in bytes."""

    body: int = 2 << 20
    headers: int = 8 << 10
    concurrent: int = 16
    waiting: int = 64
    # Open at once. One more closes the one that has been open for longest without the token.
    connections: int = 200
    code_within: float = 600.0  # a printed address can be opened, once
    headers_within: float = 10.0  # a request's head, or else the connection is closed
    body_within: float = 30.0
    sent_within: float = 30.0  # each piece of an answer that its reader must take
    requests: float = 1_000.0  # a second, from one address ...
    changes: float = 20.0  # ... of them what changes something or takes work: POST and DELETE
    bad_tokens: float = 1.0  # a second: nobody guesses 256 bits, but nobody shall try


class RateLimit:
    """Tells whether something comes too often: `rate` a second, and some at once.

    >>> pace = RateLimit(1.0, at_once=2, clock=lambda: 0.0)
    >>> [pace.allows("a") for _ in range(3)], pace.allows("b")
    ([True, True, False], True)
    """

    def __init__(self, rate: float, *, at_once: float, clock: Clock = time.monotonic) -> None:
        self._rate, self._at_once = rate, at_once
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}

    def allows(self, who: str) -> bool:
        """Count one more, unless it is one too many."""
        now = self._clock()
        left, since = self._left.pop(who, (self._at_once, now))
        left = min(self._at_once, left + (now - since) * self._rate)
        allowed = left >= 1
        self._left[who] = (left - 1 if allowed else left, now)
        if len(self._left) > 10_000:  # the one not heard of for longest
            del self._left[next(iter(self._left))]
        return allowed


Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]
Show = Callable[[Refused], bytes]

OWN = ("same-origin", "none")  # our pages, or what a person typed
CODE_BODY = 1 << 10  # bytes of a request that brings a code
OPEN = "/static/"  # styles and scripts: the same for everybody, no secret in them


class Guard:
    """Stands before an ASGI app; `show` draws the page of a refusal for people."""

    def __init__(
        self,
        app: App,
        *,
        token: str,
        hosts: Hosts,
        limits: Limits | None = None,
        show: Show | None = None,
    ) -> None:
        self.app = app
        self.limits = limits or Limits()
        self.codes = Codes(within=self.limits.code_within)
        self.trusted: set[tuple[str, int]] = set()  # ends of connections that brought the token
        self._token = token
        self._hosts = hosts
        self._show = show or plain_page
        limit = self.limits
        self._requests = RateLimit(limit.requests, at_once=2 * limit.requests)
        # Strangers have a pace of their own: a client without the token cannot use up the owner's.
        self._strangers = RateLimit(limit.requests, at_once=2 * limit.requests)
        self._changes = RateLimit(limit.changes, at_once=3 * limit.changes)
        self._bad_tokens = RateLimit(limit.bad_tokens, at_once=20)
        self._slots = asyncio.Semaphore(limit.concurrent)
        self._waiting = 0

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        request = RequestHead(scope)
        send = self._sending(send)
        try:
            self._check(request)
            if request.path == ENTER:
                await self._enter(request, receive, send)
                return
            if self._used_up(request):
                await _redirect(send, without_code(request))
                return
            body = await self._body(request, receive)
            async with self._slot():
                await self.app(_with_slashes(scope, request), _replay(body, receive), send)
        except Refused as refused:
            await self._refuse(request, refused, send)

    def _check(self, request: RequestHead) -> None:
        """Refuse what must not come further; the order is from cheap and telling nothing."""
        self._check_size(request)
        self._hosts.check(request)
        _check_path(request)
        _check_origin(request, self._hosts)
        if request.path.startswith(OPEN):
            _check_no_body(request)
            pace = self._strangers
        elif request.path == ENTER:
            pace = self._strangers
        else:
            self._check_token(request)
            pace = self._requests
        if not pace.allows(request.who) or (
            request.changes and not self._changes.allows(request.who)
        ):
            raise _too_many()

    def _check_size(self, request: RequestHead) -> None:
        if request.size > self.limits.headers:
            limit = f"{self.limits.headers:,} bytes"
            raise Refused("headers-too-large", f"headers above {limit}", fix="send fewer headers")
        for length in request.all("content-length"):
            if not length.isdigit() or len(length) > 18:
                raise Refused("bad-request", "a length that is no number", fix="send a length")
            if int(length) > self.limits.body:
                raise _too_large(self.limits.body)

    def _check_token(self, request: RequestHead) -> None:
        given, by_program = given_token(request)
        if given is not None and hmac.compare_digest(digest(given), digest(self._token)):
            if request.changes and not by_program and not _says_where_from(request):
                raise _other_site("nothing says where it comes from")
            if request.client is not None:
                self.trusted.add(request.client)
            return
        if given is not None and not self._bad_tokens.allows(request.who):
            raise Refused("too-many", "too many wrong tokens", fix="wait, then use the right one")
        if not self._strangers.allows(request.who):
            raise _too_many()
        raise Refused(
            "no-token",
            "this server answers only with its token" if not given else "that is not the token",
            fix="paste the token that `coinhaze serve` printed, or send Authorization: Bearer",
        )

    def _used_up(self, request: RequestHead) -> bool:
        """Use up the code of an address that somebody who is in already opens."""
        if request.method != "GET" or request.wants_json or request.path.startswith(OPEN):
            return False
        code = request.query("code")
        if code is not None:
            self.codes.take(code)
        return code is not None

    async def _enter(self, request: RequestHead, receive: Receive, send: Send) -> None:
        """Give the token for a code; let a browser keep it as its login for this address."""
        if request.method == "POST":
            body = await self._body(
                request, receive, maximum=CODE_BODY, within=self.limits.headers_within
            )
            if not self.codes.take(_code_in(body)):
                if not self._bad_tokens.allows(request.who):
                    raise _too_many()
                raise Refused(
                    "no-token", "that code was used already, or is too old",
                    fix="paste the token that `coinhaze serve` printed",
                )  # fmt: skip
            answer = json.dumps({"token": self._token}).encode()
            await _respond(send, 200, answer, "application/json", {})
            return
        if request.method not in ("GET", "HEAD"):
            raise Refused(
                "wrong-method", f"not {request.method} here", fix="GET it, or POST a code"
            )
        _check_no_body(request)
        try:
            self._check_token(request)
        except Refused as refused:
            if refused.status != 401 or request.all("authorization"):
                raise
            page = self._show(refused)
            await _respond(send, 401, page, "text/html; charset=utf-8", CHALLENGE)
            return
        if request.one("sec-fetch-mode") == "navigate":
            await _redirect(send, "/")
        else:
            await _respond(send, 200, b"{}", "application/json", {})

    async def _body(
        self,
        request: RequestHead,
        receive: Receive,
        *,
        maximum: int | None = None,
        within: float | None = None,
    ) -> bytes:
        if not request.changes and not request.has_body:
            return b""
        found = bytearray()
        maximum, within = maximum or self.limits.body, within or self.limits.body_within
        try:
            async with asyncio.timeout(within):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise Refused("too-slow", "the request broke off", fix="send all of it")
                    found += message.get("body", b"")
                    if len(found) > maximum:
                        raise _too_large(maximum)
                    if not message.get("more_body"):
                        return bytes(found)
        except TimeoutError:
            words = f"no whole request within {within:g} s"
            raise Refused("too-slow", words, fix="send it") from None

    @asynccontextmanager
    async def _slot(self) -> AsyncIterator[None]:
        """Hold a place among the requests that are answered at once; a few may wait for one."""
        if self._slots.locked() and self._waiting >= self.limits.waiting:
            raise Refused("too-many", "too many requests wait already", fix="try again soon")
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._slots.release()

    def _sending(self, send: Send) -> Send:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": _all_headers(message.get("headers", []))}
            # A reader who takes nothing must not hold a place for ever.
            async with asyncio.timeout(self.limits.sent_within):
                await send(message)

        return guarded

    async def _refuse(self, request: RequestHead, refused: Refused, send: Send) -> None:
        headers = {**refused.headers, **_closing(request)}
        if refused.status in (408, 413, 431):
            headers["connection"] = "close"
        by_program = request.wants_json or (request.path == ENTER and request.changes)
        if by_program:
            await _respond(send, refused.status, refused.body, "application/json", headers)
        else:
            page = self._show(refused)
            await _respond(send, refused.status, page, "text/html; charset=utf-8", headers)


def plain_page(refused: Refused) -> bytes:
    """Draw a refusal without any style."""
    problem = refused.problem
    said = html.escape(f"{problem.message}: {problem.fix}")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>coinhaze</title></head>'
        f"<body><h1>{refused.status}</h1><p>{said}</p></body></html>"
    ).encode()


def without_code(request: RequestHead) -> str:
    """Give the same address without its code."""
    query = request.scope.get("query_string", b"").decode("latin-1")
    rest = [(k, v) for k, v in parse_qsl(query, keep_blank_values=True) if k != "code"]
    path = request.raw.decode("ascii", "replace")
    # Two slashes at the beginning, of either kind, would name another site.
    return "/" + path.lstrip("/\\") + (f"?{urlencode(rest)}" if rest else "")


def _code_in(body: bytes) -> str:
    """Read the code somebody comes in by."""
    try:
        code = json.loads(body)["code"]
    except (ValueError, KeyError, TypeError, RecursionError):
        code = None
    if not isinstance(code, str):
        raise Refused("bad-request", "no code is there", fix='send {"code": "..."}')
    return code


def _closing(request: RequestHead) -> dict[str, str]:
    """Close a connection whose request is answered before its body is read: the rest may dawdle."""
    return {"connection": "close"} if request.has_body else {}


def _too_large(maximum: int) -> Refused:
    return Refused("too-large", f"a body above {maximum:,} bytes", fix="send less at once")


def _too_many() -> Refused:
    return Refused("too-many", "too many requests at once", fix="ask more slowly")


def _check_no_body(request: RequestHead) -> None:
    """Refuse to take in what nobody will read, from those who need no token."""
    if request.has_body:
        raise Refused("bad-request", "a body where none is read", fix="send none")


def _check_path(request: RequestHead) -> None:
    """Refuse paths that lead up, or hold what no name holds; nothing is ever unescaped twice.

    A name of a ledger may hold slashes of either kind, a file that is served may not.
    """
    parts = request.parts()
    bad = parts is None or any(
        part in (b".", b"..") or min(part, default=32) < 32 or 127 in part for part in parts
    )
    if parts and request.path.startswith(OPEN):
        bad = bad or any(b"/" in part or b"\\" in part for part in parts)
    try:
        _ = None if parts is None else b"/".join(parts).decode()
    except UnicodeDecodeError:
        bad = True
    if bad:
        raise Refused("bad-path", "no such address can be", fix="use the links of the pages")


def _check_origin(request: RequestHead, hosts: Hosts) -> None:
    """Refuse what another site makes the browser ask; leading here by a link is allowed."""
    site = request.one("sec-fetch-site")
    if site is not None and site not in OWN and not _is_link(request):
        raise _other_site(f"it comes from another site (Sec-Fetch-Site: {site[:20]})")
    for origin in request.all("origin"):
        if not hosts.is_own_origin(origin, request) and (request.changes or request.wants_json):
            raise _other_site("its Origin is another site")


def _is_link(request: RequestHead) -> bool:
    """Tell whether a person was led to a page by another site's link."""
    return (
        request.one("sec-fetch-site") not in (None, *OWN)
        and request.one("sec-fetch-mode") == "navigate"
        and request.one("sec-fetch-dest") in (None, "document")
        and request.method == "GET"
        and not request.wants_json
    )


def _says_where_from(request: RequestHead) -> bool:
    return request.one("sec-fetch-site") is not None or request.one("origin") is not None


def _other_site(why: str) -> Refused:
    return Refused("other-site", f"refused: {why}", fix="use the pages of this server")


def _with_slashes(
    scope: MutableMapping[str, Any], request: RequestHead
) -> MutableMapping[str, Any]:
    """Keep a slash inside a name apart from those between parts of a path."""
    if b"%2f" not in request.raw.lower():
        return scope
    parts = request.parts() or []
    path = "/" + "/".join(part.decode().replace("/", SLASH) for part in parts)
    return {**scope, "path": path}


def _replay(body: bytes, receive: Receive) -> Receive:
    replayed = False

    async def replay() -> Message:
        nonlocal replayed
        if replayed:
            return await receive()
        replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _all_headers(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    given = {key.lower() for key, _ in headers}
    more = {**ALWAYS, "cache-control": NO_STORE}
    return [
        *headers,
        *((k.encode(), v.encode()) for k, v in more.items() if k.encode() not in given),
    ]


async def _redirect(send: Send, to: str) -> None:
    await _respond(send, 303, b"", "text/plain", {"location": to})


async def _respond(
    send: Send, status: int, body: bytes, media: str, headers: dict[str, str]
) -> None:
    sent = {"content-type": media, "content-length": str(len(body)), **headers}
    lines = [(key.encode("latin-1"), value.encode("latin-1")) for key, value in sent.items()]
    await send({"type": "http.response.start", "status": status, "headers": lines})
    await send({"type": "http.response.body", "body": body})
