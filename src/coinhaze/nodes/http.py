"""Plain HTTP to a node, usually on loopback: retries a busy one, and bounds response sizes.

All requests only read, so every request may be retried. Credentials come from a cookie file or the
environment, never from argv, and are never shown.
"""

from __future__ import annotations

import logging
import os
import random
import time
import zlib
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from itertools import count
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Self
from urllib.parse import SplitResult, parse_qsl, urlsplit

import msgspec

from coinhaze.errors import (
    InputError,
    NotAnswering,
    SourceUnreachable,
    UsageError,
    keep_secret,
    shorten,
    without_secrets,
)
from coinhaze.nodes.sockets import read_proxy, refuse_onion

if TYPE_CHECKING:
    import httpx2

USER, PASSWORD, COOKIE = "COINHAZE_RPC_USER", "COINHAZE_RPC_PASSWORD", "COINHAZE_RPC_COOKIE"

LARGEST_ANSWER = 64 << 20
BUSY = {429, 502, 503, 504}
# Old nodes of Bitcoin's family answer "busy" with status 500.
QUEUE_FULL = b"work queue depth exceeded"
LONGEST_PAUSE = 60.0
# The shortest path component that may be a key: shorter ones are versions and names.
SHORTEST_KEY = 8


@dataclass(frozen=True)
class Credentials:
    """Credentials for a node, never shown. Monerod's `--rpc-login` needs `digest`."""

    user: str = field(repr=False)
    password: str = field(repr=False)
    digest: bool = False
    cookie: Path | None = field(default=None, compare=False)  # where they were read

    def __post_init__(self) -> None:
        pair = f"{self.user}:{self.password}"
        keep_secret(self.password, pair, b64encode(pair.encode()).decode())

    @classmethod
    def from_cookie(cls, path: Path) -> Credentials:
        """Read the file a node writes when it starts: `user:password` on one line."""
        try:
            with open(path, encoding="utf-8") as file:
                user, colon, password = file.read(4096).strip().partition(":")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise InputError(f"{path}: the node's cookie cannot be read: {reason}") from None
        if not (user and colon and password):
            raise InputError(f"{path}: not a node's cookie: it should read user:password")
        return cls(user, password, cookie=path)

    def renewed(self) -> Credentials | None:
        """Read the cookie file again: a restarted node writes a new one. None if it is unchanged.

        Also None where the credentials came from elsewhere, or the file is gone.
        """
        if self.cookie is None:
            return None
        try:
            now = replace(Credentials.from_cookie(self.cookie), digest=self.digest)
        except InputError:
            return None
        return None if now == self else now

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Credentials | None:
        """Use the cookie file, or else the user and password, that the environment names."""
        given = os.environ if environment is None else environment
        cookie, user, password = (given.get(name) for name in (COOKIE, USER, PASSWORD))
        if cookie and (user or password):
            raise UsageError(f"set {COOKIE}, or {USER} and {PASSWORD}, not both")
        if cookie:
            return cls.from_cookie(Path(cookie))
        if bool(user) != bool(password):
            raise UsageError(f"{USER} and {PASSWORD} go together: one of them is not set")
        return cls(user, password) if user and password else None


class StatusError(SourceUnreachable):
    """An HTTP status other than success: `status`, and the body as `text`."""

    def __init__(self, node: str, status: int, text: str, *, advice: str = "") -> None:
        text = without_secrets(text)
        said = f": {shorten(text)}" if text else ""
        super().__init__(f"{node}: HTTP status {status}{said}" + (f" ({advice})" if advice else ""))
        self.status = status
        self.text = text


class ResponseTooLarge(SourceUnreachable):
    """A response above the limit; fewer calls per request may avoid it."""


class AccessRefused(StatusError):
    """The node requires other credentials, or admits none from this machine."""


@dataclass(frozen=True)
class HttpResponse:
    """The HTTP status and the body of a response."""

    status: int
    body: bytes
    pause: float | None = None  # the delay that Retry-After requests
    moved_to: str = ""


class RequestRate:
    """A limit of requests a second; None is no limit."""

    def __init__(self, rate: float | None) -> None:
        if rate is not None and not rate > 0:
            raise UsageError(f"a rate is a number of requests a second above 0, not {rate}")
        self._pause = 0.0 if rate is None else 1 / rate
        self._next = 0.0
        self._waiting = Lock()

    def wait(self) -> None:
        """Wait until the next request may be made."""
        if not self._pause:
            return
        with self._waiting:
            now = time.monotonic()
            self._next = max(self._next, now) + self._pause
            pause = self._next - self._pause - now
        time.sleep(max(pause, 0.0))


class Connection:
    """A node's host. `get` and `post` request paths on it.

    `timeout` bounds silence; a whole response may take ten times that. Failed connections and
    requests to a busy node are retried `retries` times. Several threads may share it. `proxy` is a
    SOCKS5 proxy, which also resolves the host; `rate` bounds how many requests a second are made.
    """

    def __init__(
        self,
        url: str,
        *,
        credentials: Credentials | None = None,
        timeout: float = 30.0,
        retries: int = 5,
        largest: int = LARGEST_ANSWER,
        proxy: str | None = None,
        rate: float | None = None,
    ) -> None:
        parts = _checked_url(url)
        refuse_onion(parts.hostname or "", proxy)
        _hide_keys(parts)
        # The path or query may contain a key of a paid service, so messages show the host alone.
        self.node = f"{parts.scheme}://{parts.netloc}"
        self._url = url
        self._timeout = timeout
        self.retries = retries
        self._largest = largest
        self._credentials = credentials
        self._renewing = Lock()
        self._pace = RequestRate(rate)
        self._client = _client(parts, credentials, timeout, proxy)

    def get(self, path: str) -> bytes:
        """Return the content at a path, such as /rest/chaininfo.json."""
        return self._success(self._patiently(self._at(path), None))

    def post(self, path: str, body: object) -> bytes:
        """Post JSON to a path and return the response."""
        return self._success(self._patiently(self._at(path), msgspec.json.encode(body)))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, body: bytes) -> HttpResponse:
        """Post JSON to the URL itself and return the response, whatever its status."""
        return self._patiently(self._url, body)

    def _at(self, path: str) -> str:
        assert path.startswith("/"), path
        return self.node + path

    def _patiently(self, url: str, body: bytes | None) -> HttpResponse:
        """Send a request until it is answered or all tries are used up."""
        for attempt in count():
            sent = self._credentials
            tried = self._once(url, body)
            if isinstance(tried, HttpResponse) and tried.status == 401 and self._renewed(sent):
                tried = self._once(url, body)
            if isinstance(tried, HttpResponse) and not _is_busy(tried):
                return tried
            if attempt >= self.retries:
                raise NotAnswering(_unanswered(self.node, tried, attempt + 1))
            requested = tried.pause if isinstance(tried, HttpResponse) else None
            time.sleep(pause_after(attempt) if requested is None else min(requested, LONGEST_PAUSE))
        raise AssertionError

    def _renewed(self, sent: Credentials | None) -> bool:
        """Switch to a new cookie if the node, restarted, has written one since."""
        with self._renewing:
            if sent is self._credentials:
                now = sent.renewed() if sent else None
                if now is None:
                    return False
                self._client.auth = _auth(now)
                self._credentials = now
            return True  # or another thread has

    def _once(self, url: str, body: bytes | None) -> HttpResponse | str:
        """Send a request; a string says why there was no response."""
        import httpx2

        self._pace.wait()
        kind = {"content-type": "application/json"} if body is not None else {}
        verb = "GET" if body is None else "POST"
        try:
            with self._client.stream(verb, url, content=body, headers=kind) as response:
                return HttpResponse(
                    response.status_code,
                    self._read(response),
                    _seconds(response.headers.get("retry-after", "")),
                    response.headers.get("location", ""),
                )
        except httpx2.TimeoutException:
            return f"silent for {self._timeout:g} s"
        except httpx2.TransportError as error:
            return str(error) or type(error).__name__
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            raise SourceUnreachable(f"{self.node}: {type(error).__name__}") from None

    def _read(self, response: httpx2.Response) -> bytes:
        parts, size, end = [], 0, time.monotonic() + 10 * self._timeout
        for part in response.iter_raw():
            size += len(part)
            if size > self._largest:
                raise self._too_large()
            if time.monotonic() > end:
                raise NotAnswering(f"{self.node}: an answer took {10 * self._timeout:g} s")
            parts.append(part)
        return self._unpack(b"".join(parts), response.headers.get("content-encoding", "identity"))

    def _unpack(self, body: bytes, encoding: str) -> bytes:
        """Decompress within the size limit: a small body must not expand beyond it."""
        if encoding == "identity":
            return body
        if encoding != "gzip":
            raise SourceUnreachable(f"{self.node}: an unknown packing: {shorten(encoding)}")
        unpacker = zlib.decompressobj(wbits=31)
        try:
            plain = unpacker.decompress(body, self._largest + 1)
        except zlib.error as error:
            raise SourceUnreachable(f"{self.node}: a damaged gzip answer: {error}") from None
        if len(plain) > self._largest:
            raise self._too_large()
        if not unpacker.eof:
            raise SourceUnreachable(f"{self.node}: a gzip answer that is cut short")
        return plain

    def _too_large(self) -> ResponseTooLarge:
        return ResponseTooLarge(f"{self.node}: an answer above the limit of {self._largest} bytes")

    def _success(self, reply: HttpResponse) -> bytes:
        if reply.status == 200:
            return reply.body
        raise self.refusal(reply)

    def refusal(self, reply: HttpResponse) -> SourceUnreachable:
        """Convert a status other than success to the matching error."""
        if reply.status in (401, 403):
            advice = f"set {COOKIE}, or {USER} and {PASSWORD}; see the node's rpcallowip"
            return AccessRefused(self.node, reply.status, "", advice=advice)
        if 300 <= reply.status < 400:
            to = _host_of(reply.moved_to) or "another path"
            return StatusError(
                self.node, reply.status, "", advice=f"sent on to {to}, not followed: give that URL"
            )
        return StatusError(self.node, reply.status, start_of(reply.body))


def _checked_url(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise UsageError(
            "the node's URL is malformed: it reads like http://127.0.0.1:8332"
        ) from None
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            f"{parts.scheme}://***@{parts.hostname}: no user or password in a node's URL: "
            f"set {USER} and {PASSWORD}, or {COOKIE}"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(
            f"a node's URL begins with http:// or https:// and a host, not {parts.scheme[:12]!r}"
        )
    if any(ord(letter) <= 32 or ord(letter) == 127 for letter in url):
        raise UsageError(f"the URL of node {parts.hostname!r} holds a space or control character")
    return parts


def _hide_keys(parts: SplitResult) -> None:
    """Hide what may be a key of a paid service, in path or query, from messages."""
    keys = [part for part in parts.path.split("/") if len(part) >= SHORTEST_KEY]
    keys += [value for _, value in parse_qsl(parts.query) if len(value) > 3]
    keep_secret(parts.query, *keys)


def shown_url(url: str) -> str:
    """Return a node's URL without possible secrets: user and password, path and query.

    >>> shown_url("https://me:hunter2@example.org/v3/0123456789")
    'https://***@example.org/***'
    """
    scheme, there, rest = url.partition("://")
    rest, _, fragment = rest.partition("#")
    rest, _, query = rest.partition("?")
    host, _, path = rest.partition("/")
    _, at, host = host.rpartition("@")
    hidden = "/***" if path or query or fragment else ""
    return f"{scheme}{there}{'***@' if at else ''}{host}{hidden}"


def _auth(credentials: Credentials) -> httpx2.Auth:
    import httpx2

    kind: Callable[[str, str], httpx2.Auth] = (
        httpx2.DigestAuth if credentials.digest else httpx2.BasicAuth
    )
    return kind(credentials.user, credentials.password)


def _client(
    parts: SplitResult, credentials: Credentials | None, timeout: float, proxy: str | None
) -> httpx2.Client:
    try:
        import httpx2
    except ImportError:
        raise UsageError("nodes need httpx2: pip install 'coinhaze[nodes]'") from None
    # These loggers write whole URLs, including service keys, and headers, which may echo a
    # password.
    for name in ("httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.WARNING)
    if proxy is not None:
        _need_socks()
    return httpx2.Client(
        auth=_auth(credentials) if credentials else None,
        timeout=timeout,
        follow_redirects=False,
        headers={"accept-encoding": "gzip"},
        proxy=None if proxy is None else f"socks5h://{read_proxy(proxy)}",
        # No proxy to the same machine, nor one beside the one that was given.
        trust_env=proxy is None and not is_loopback(parts.hostname or ""),
    )


def _need_socks() -> None:
    from importlib.util import find_spec

    if find_spec("socksio") is None:
        raise UsageError("proxies need socksio: pip install 'coinhaze[nodes]'")


def _host_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_busy(reply: HttpResponse) -> bool:
    return reply.status in BUSY or (reply.status >= 400 and QUEUE_FULL in reply.body[:400].lower())


def _unanswered(node: str, tried: HttpResponse | str, tries: int) -> str:
    times = f"{tries} {'try' if tries == 1 else 'tries'}"
    if isinstance(tried, str):
        return f"{node}: no answer in {times}: {tried} (is the node running there?)"
    seen = f"status {tried.status}, {shorten(start_of(tried.body))}"
    return f"{node}: too busy in {times}: {seen} (wait, or ask it for less)"


def pause_after(attempt: int) -> float:
    """Return a delay that doubles with each attempt, varied by half to spread clients out."""
    return float(min(0.25 * 2.0**attempt, LONGEST_PAUSE) * random.uniform(0.5, 1.5))


def _seconds(text: str) -> float | None:
    return float(text) if text.isascii() and text.isdigit() and len(text) < 9 else None


def start_of(body: bytes) -> str:
    """Return the beginning of a response as text, for errors."""
    text = without_secrets(body[:4096].decode("utf-8", "replace"))  # before truncation
    return text[:200].strip()
