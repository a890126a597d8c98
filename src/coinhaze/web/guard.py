"""The guard: everything that is checked of a request before any of ours sees it, and of answers.

Against other sites in the same browser: the name asked for (a rebound DNS name is not ours), the
token, and where the browser says the request comes from. Against too much: sizes, counts, times.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import html
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl, urlencode

from coinhaze.web.asks import SLASH
from coinhaze.web.headers import ALWAYS, NO_STORE, Asked
from coinhaze.web.hosts import Hosts
from coinhaze.web.limits import Limits, Pace
from coinhaze.web.problems import Refused

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]
Show = Callable[[Refused], bytes]

OWN = ("same-origin", "none")  # our pages, or what a person typed
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
        self.cookie = f"coinhaze_{_hash(token).hex()[:8]}"  # servers on other ports have others
        self._token = _hash(token)
        self._hosts = hosts
        self._show = show or plain_page
        limit = self.limits
        self._requests = Pace(limit.requests, at_once=2 * limit.requests)
        # Strangers have a pace of their own: whoever has no token cannot use up the owner's.
        self._strangers = Pace(limit.requests, at_once=2 * limit.requests)
        self._changes = Pace(limit.changes, at_once=3 * limit.changes)
        self._bad_tokens = Pace(limit.bad_tokens, at_once=20)
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
        asked = Asked(scope)
        send = self._sending(send)
        try:
            self._check(asked)
            if self._first(asked) is not None:
                await self._welcome(asked, send)
                return
            body = await self._body(asked, receive)
            async with _Slot(self):
                await self.app(_with_slashes(scope, asked), _replay(body, receive), send)
        except Refused as refused:
            await self._refuse(asked, refused, send)

    def _check(self, asked: Asked) -> None:
        """Refuse what must not come further; the order is from cheap and telling nothing."""
        self._check_size(asked)
        self._hosts.check(asked)
        _check_path(asked)
        _check_origin(asked, self._hosts)
        if asked.path.startswith(OPEN):
            _check_no_body(asked)
            pace = self._strangers
        else:
            self._check_token(asked)
            pace = self._requests
        if not pace.allows(asked.who) or (asked.changes and not self._changes.allows(asked.who)):
            raise _too_many()

    def _check_size(self, asked: Asked) -> None:
        if asked.size > self.limits.headers:
            limit = f"{self.limits.headers:,} bytes"
            raise Refused("headers-too-large", f"headers above {limit}", fix="send fewer headers")
        for length in asked.all("content-length"):
            if not length.isdigit() or len(length) > 18:
                raise Refused("bad-request", "a length that is no number", fix="send a length")
            if int(length) > self.limits.body:
                raise self._too_large()

    def _check_token(self, asked: Asked) -> None:
        bearer = asked.one("authorization") or ""
        kind, _, word = bearer.partition(" ")
        given = [
            word.strip() if kind.lower() == "bearer" else None,
            asked.cookie(self.cookie),
            self._first(asked),
        ]
        known = [text for text in given if text]
        if any(self._is_token(text) for text in known):
            if asked.changes and not bearer and not _says_where_from(asked):
                raise _other_site("nothing says where it comes from")
            return
        if known and not self._bad_tokens.allows(asked.who):
            raise Refused("too-many", "too many wrong tokens", fix="wait, then use the right one")
        if not self._strangers.allows(asked.who):
            raise _too_many()
        raise Refused(
            "no-token",
            "this server answers only with its token" if not known else "that is not the token",
            fix="open the address that `coinhaze serve` printed, or send Authorization: Bearer",
        )

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(_hash(text), self._token)

    def _first(self, asked: Asked) -> str | None:
        """Give the token of a first address; nowhere else is it taken from there."""
        if asked.method != "GET" or asked.wants_json or asked.path.startswith(OPEN):
            return None
        return asked.query("token")

    async def _welcome(self, asked: Asked, send: Send) -> None:
        """Keep the token in a cookie, and lead to the same page without it.

        A page of our own that leads on, not a redirect: after a redirect a browser still takes
        the request for the other site's that linked here, and would hold the cookie back.
        """
        token = self._first(asked) or ""
        cookie = f"{self.cookie}={token}; Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000"
        headers = {"set-cookie": cookie} if self._is_token(token) else {}
        headers |= _closing(asked)
        await _respond(send, 200, leading_on(asked), "text/html; charset=utf-8", headers)

    async def _body(self, asked: Asked, receive: Receive) -> bytes:
        if not asked.changes and not asked.has_body:
            return b""
        found = bytearray()
        try:
            async with asyncio.timeout(self.limits.body_within):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise Refused("too-slow", "the request broke off", fix="send all of it")
                    found += message.get("body", b"")
                    if len(found) > self.limits.body:
                        raise self._too_large()
                    if not message.get("more_body"):
                        return bytes(found)
        except TimeoutError:
            within = f"{self.limits.body_within:g} s"
            raise Refused("too-slow", f"no whole request within {within}", fix="send it") from None

    def _too_large(self) -> Refused:
        limit = f"{self.limits.body:,} bytes"
        return Refused("too-large", f"a body above {limit}", fix="send less at once")

    def _sending(self, send: Send) -> Send:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": _all_headers(message.get("headers", []))}
            # A reader who takes nothing must not hold a place for ever.
            async with asyncio.timeout(self.limits.sent_within):
                await send(message)

        return guarded

    async def _refuse(self, asked: Asked, refused: Refused, send: Send) -> None:
        headers = {**refused.headers, **_closing(asked)}
        if refused.status in (408, 413, 431):
            headers["connection"] = "close"
        if asked.wants_json:
            await _respond(send, refused.status, refused.body, "application/json", headers)
        else:
            # A link on another site: the browser held our cookie back, and sends it from here.
            linked = refused.status == 401 and _is_link(asked)
            page = leading_on(asked) if linked else self._show(refused)
            await _respond(send, refused.status, page, "text/html; charset=utf-8", headers)


class _Slot:
    """A place among the requests that are answered at once; a few may wait for one."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def __aenter__(self) -> None:
        guard = self._guard
        if guard._slots.locked() and guard._waiting >= guard.limits.waiting:
            raise Refused("too-many", "too many requests wait already", fix="try again soon")
        guard._waiting += 1
        try:
            await guard._slots.acquire()
        finally:
            guard._waiting -= 1

    async def __aexit__(self, *_: object) -> None:
        self._guard._slots.release()


def plain_page(refused: Refused) -> bytes:
    """Draw a refusal without any style."""
    problem = refused.problem
    said = html.escape(f"{problem.message}: {problem.fix}")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>coinhaze</title></head>'
        f"<body><h1>{refused.status}</h1><p>{said}</p></body></html>"
    ).encode()


def leading_on(asked: Asked) -> bytes:
    """Draw a page that leads on to the same address without its token."""
    query = asked.scope.get("query_string", b"").decode("latin-1")
    rest = [(k, v) for k, v in parse_qsl(query, keep_blank_values=True) if k != "token"]
    path = asked.raw.decode("ascii", "replace")
    # Two slashes at the beginning, of either kind, would name another site.
    clean = html.escape("/" + path.lstrip("/\\") + (f"?{urlencode(rest)}" if rest else ""))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>coinhaze</title>'
        f'<meta http-equiv="refresh" content="0; url={clean}"></head>'
        f'<body><a href="{clean}">Go on</a></body></html>'
    ).encode()


def _closing(asked: Asked) -> dict[str, str]:
    """Close a connection whose request is answered before its body is read: the rest may dawdle."""
    return {"connection": "close"} if asked.has_body else {}


def _too_many() -> Refused:
    return Refused("too-many", "too many requests at once", fix="ask more slowly")


def _check_no_body(asked: Asked) -> None:
    """Refuse to take in what nobody will read, from those who need no token."""
    if asked.has_body:
        raise Refused("bad-request", "a body where none is read", fix="send none")


def _check_path(asked: Asked) -> None:
    """Refuse paths that lead up, or hold what no name holds; nothing is ever unescaped twice.

    A name of a ledger may hold slashes of either kind, a file that is served may not.
    """
    parts = asked.parts()
    bad = parts is None or any(
        part in (b".", b"..") or min(part, default=32) < 32 or 127 in part for part in parts
    )
    if parts and asked.path.startswith(OPEN):
        bad = bad or any(b"/" in part or b"\\" in part for part in parts)
    try:
        _ = None if parts is None else b"/".join(parts).decode()
    except UnicodeDecodeError:
        bad = True
    if bad:
        raise Refused("bad-path", "no such address can be", fix="use the links of the pages")


def _check_origin(asked: Asked, hosts: Hosts) -> None:
    """Refuse what another site makes the browser ask; leading here by a link is allowed."""
    site = asked.one("sec-fetch-site")
    if site is not None and site not in OWN and not _is_link(asked):
        raise _other_site(f"it comes from another site (Sec-Fetch-Site: {site[:20]})")
    for origin in asked.all("origin"):
        if not hosts.is_own_origin(origin, asked) and (asked.changes or asked.wants_json):
            raise _other_site("its Origin is another site")


def _is_link(asked: Asked) -> bool:
    """Tell whether a person was led to a page by another site's link."""
    return (
        asked.one("sec-fetch-site") not in (None, *OWN)
        and asked.one("sec-fetch-mode") == "navigate"
        and asked.one("sec-fetch-dest") in (None, "document")
        and asked.method == "GET"
        and not asked.wants_json
    )


def _says_where_from(asked: Asked) -> bool:
    return asked.one("sec-fetch-site") is not None or asked.one("origin") is not None


def _other_site(why: str) -> Refused:
    return Refused("other-site", f"refused: {why}", fix="use the pages of this server")


def _with_slashes(scope: MutableMapping[str, Any], asked: Asked) -> MutableMapping[str, Any]:
    """Keep a slash inside a name apart from those between parts of a path."""
    if b"%2f" not in asked.raw.lower():
        return scope
    parts = asked.parts() or []
    path = "/" + "/".join(part.decode().replace("/", SLASH) for part in parts)
    return {**scope, "path": path}


def _replay(body: bytes, receive: Receive) -> Receive:
    told = False

    async def replay() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _all_headers(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    given = {key.lower() for key, _ in headers}
    more = {**ALWAYS, "cache-control": NO_STORE}
    return [
        *headers,
        *((k.encode(), v.encode()) for k, v in more.items() if k.encode() not in given),
    ]


async def _respond(
    send: Send, status: int, body: bytes, media: str, headers: dict[str, str]
) -> None:
    sent = {"content-type": media, "content-length": str(len(body)), **headers}
    lines = [(key.encode("latin-1"), value.encode("latin-1")) for key, value in sent.items()]
    await send({"type": "http.response.start", "status": status, "headers": lines})
    await send({"type": "http.response.body", "body": body})


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
