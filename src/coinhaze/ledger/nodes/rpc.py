"""JSON-RPC and plain HTTP to a node, usually on loopback: http://127.0.0.1:8332.

Answers come back as the bytes the node wrote: money in them is exact only if the caller decodes
them with that in mind (msgspec, `Decimal`). Only reading is meant, so every request may be retried.
"""

from __future__ import annotations

import logging
import os
import random
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self
from urllib.parse import SplitResult, urlsplit

import msgspec

from coinhaze.errors import InputError, SourceUnreachable, UsageError, shorten

if TYPE_CHECKING:
    import httpx2

USER, PASSWORD, COOKIE = "COINHAZE_RPC_USER", "COINHAZE_RPC_PASSWORD", "COINHAZE_RPC_COOKIE"
LARGEST_ANSWER = 64 << 20
BUSY = {429, 502, 503, 504}
# Old nodes of Bitcoin's family say it with status 500.
QUEUE_FULL = b"work queue depth exceeded"
WARMING_UP = -28
LONGEST_PAUSE = 60.0

Call = tuple[str, Sequence[object] | Mapping[str, object]]


class RpcError(SourceUnreachable):
    """A node's own refusal of a call: `code` and `message` as it gave them."""

    def __init__(self, node: str, method: str, code: int, message: str) -> None:
        super().__init__(f"{node}: {method} refused: {shorten(message, 300)} (code {code})")
        self.method = method
        self.code = code
        self.message = message


class StatusError(SourceUnreachable):
    """An HTTP status that is no success: `status`, and what came with it as `text`."""

    def __init__(self, node: str, status: int, text: str, *, advice: str = "") -> None:
        said = f": {shorten(text)}" if text else ""
        super().__init__(f"{node}: HTTP status {status}{said}" + (f" ({advice})" if advice else ""))
        self.status = status
        self.text = text


class AnswerTooLarge(SourceUnreachable):
    """An answer above the limit; where it was to several calls, fewer may do."""


class AccessRefused(StatusError):
    """A node that wants other credentials, or none of this machine's."""


@dataclass(frozen=True)
class Credentials:
    """Who we are to a node; never shown. Monerod's `--rpc-login` wants `digest`."""

    user: str = field(repr=False)
    password: str = field(repr=False)
    digest: bool = False

    @classmethod
    def from_cookie(cls, path: Path) -> Credentials:
        """Read the file a node writes at its start, `user:password` in one line."""
        try:
            with open(path, encoding="utf-8") as file:
                user, colon, password = file.read(4096).strip().partition(":")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise InputError(f"{path}: the node's cookie cannot be read: {reason}") from None
        if not (user and colon and password):
            raise InputError(f"{path}: not a node's cookie: it should read user:password")
        return cls(user, password)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Credentials | None:
        """Take the cookie file, or else the user and password, that the environment names."""
        given = os.environ if environment is None else environment
        cookie, user, password = (given.get(name) for name in (COOKIE, USER, PASSWORD))
        if cookie and (user or password):
            raise UsageError(f"set {COOKIE}, or {USER} and {PASSWORD}, not both")
        if cookie:
            return cls.from_cookie(Path(cookie))
        if bool(user) != bool(password):
            raise UsageError(f"{USER} and {PASSWORD} go together: one of them is not set")
        return cls(user, password) if user and password else None


class _Answer(msgspec.Struct):
    id: object = None
    result: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


_answer = msgspec.json.Decoder(_Answer)
_answers = msgspec.json.Decoder(list[_Answer])


@dataclass(frozen=True)
class _Reply:
    status: int
    body: bytes
    pause: float | None = None  # what Retry-After asks for
    moved_to: str = ""


class JsonRpc:
    """A node. `call` and `batch` go to its URL itself, `get` and `post` to paths of its host.

    `timeout` is for silence; a whole answer may take ten times that. Failed connections and a node
    too busy are tried `retries` times more. Several threads may share it.
    """

    def __init__(
        self,
        url: str,
        *,
        credentials: Credentials | None = None,
        timeout: float = 30.0,
        retries: int = 5,
        largest: int = LARGEST_ANSWER,
    ) -> None:
        parts = _checked_url(url)
        # A key of a paid service stands in the path or query, so messages show the host alone.
        self.node = f"{parts.scheme}://{parts.netloc}"
        self._url = url
        self._timeout = timeout
        self._retries = retries
        self._largest = largest
        self._ids = count(1)
        self._client = _client(parts, credentials, timeout)

    def call(self, method: str, /, *params: object, **named: object) -> bytes:
        """Give the raw JSON of a method's result; parameters by place, or by name for monerod."""
        assert not (params and named)
        return self._send([(method, named or params)], listed=False)[0]

    def batch(self, calls: Sequence[Call]) -> list[bytes]:
        """Give the results of several calls made in one request, in their order.

        The first call refused is raised.
        """
        return self._send(calls, listed=True) if calls else []

    def get(self, path: str) -> bytes:
        """Give what stands at a path, such as /rest/chaininfo.json."""
        return self._success(self._patiently(self._at(path), None))

    def post(self, path: str, body: object) -> bytes:
        """Send JSON to a path and give the answer."""
        return self._success(self._patiently(self._at(path), msgspec.json.encode(body)))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _send(self, calls: Sequence[Call], *, listed: bool) -> list[bytes]:
        ids = [next(self._ids) for _ in calls]
        requests = [
            {"jsonrpc": "2.0", "id": i, "method": method, "params": params}
            for i, (method, params) in zip(ids, calls, strict=True)
        ]
        body = msgspec.json.encode(requests if listed else requests[0])
        for attempt in count():
            reply = self._patiently(self._url, body)
            try:
                return self._results(reply, ids, [method for method, _ in calls])
            except RpcError as error:
                if error.code != WARMING_UP or attempt >= self._retries:
                    raise
                time.sleep(_pause(attempt))
        raise AssertionError

    def _at(self, path: str) -> str:
        assert path.startswith("/"), path
        return self.node + path

    def _patiently(self, url: str, body: bytes | None) -> _Reply:
        """Send a request until it is answered, or the tries are used up."""
        for attempt in count():
            tried = self._once(url, body)
            if isinstance(tried, _Reply) and not _is_busy(tried):
                return tried
            if attempt >= self._retries:
                raise SourceUnreachable(_unanswered(self.node, tried, attempt + 1))
            asked = tried.pause if isinstance(tried, _Reply) else None
            time.sleep(_pause(attempt) if asked is None else min(asked, LONGEST_PAUSE))
        raise AssertionError

    def _once(self, url: str, body: bytes | None) -> _Reply | str:
        """Send a request; text says why there was no answer."""
        import httpx2

        kind = {"content-type": "application/json"} if body is not None else {}
        verb = "GET" if body is None else "POST"
        try:
            with self._client.stream(verb, url, content=body, headers=kind) as response:
                return _Reply(
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
                raise SourceUnreachable(f"{self.node}: an answer took {10 * self._timeout:g} s")
            parts.append(part)
        return self._unpack(b"".join(parts), response.headers.get("content-encoding", "identity"))

    def _unpack(self, body: bytes, encoding: str) -> bytes:
        """Unpack by ourselves: a small answer must not become one above the limit."""
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

    def _too_large(self) -> AnswerTooLarge:
        return AnswerTooLarge(f"{self.node}: an answer above the limit of {self._largest} bytes")

    def _success(self, reply: _Reply) -> bytes:
        if reply.status == 200:
            return reply.body
        raise self._refusal(reply)

    def _refusal(self, reply: _Reply) -> SourceUnreachable:
        if reply.status in (401, 403):
            advice = f"set {COOKIE}, or {USER} and {PASSWORD}; see the node's rpcallowip"
            return AccessRefused(self.node, reply.status, "", advice=advice)
        if 300 <= reply.status < 400:
            to = urlsplit(reply.moved_to).hostname or "another path"
            return StatusError(
                self.node, reply.status, "", advice=f"sent on to {to}, not followed: give that URL"
            )
        return StatusError(self.node, reply.status, _start(reply.body))

    def _results(self, reply: _Reply, ids: list[int], methods: list[str]) -> list[bytes]:
        if reply.status in (401, 403) or 300 <= reply.status < 400:
            raise self._refusal(reply)
        found = {a.id: a for a in self._answers(reply) if isinstance(a.id, int)}
        results = []
        for i, method in zip(ids, methods, strict=True):
            if i not in found:
                raise SourceUnreachable(f"{self.node}: no answer to {method} among those it gave")
            answer = found[i]
            self._raise_refusal(answer, method)
            results.append(bytes(answer.result))
        return results

    def _answers(self, reply: _Reply) -> list[_Answer]:
        """Decode one answer or a list; refuse what is none, by its status if that is no success."""
        try:
            if reply.body.lstrip()[:1] == b"[":
                return _answers.decode(reply.body)
            answer = _answer.decode(reply.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            if reply.status != 200:
                raise self._refusal(reply) from None
            raise SourceUnreachable(
                f"{self.node}: answers, but not in JSON-RPC: {shorten(_start(reply.body))}"
            ) from None
        if answer.id is None:  # the whole request was refused
            self._raise_refusal(answer, "request")
            raise self._refusal(reply)
        return [answer]

    def _raise_refusal(self, answer: _Answer, method: str) -> None:
        if bytes(answer.error) not in (b"", b"null"):
            code, message = _fault(bytes(answer.error))
            raise RpcError(self.node, method, code, message)
        if not bytes(answer.result):
            raise SourceUnreachable(f"{self.node}: neither result nor error for {method}")


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
            f"a node's URL begins with http:// or https:// and a host, not {shorten(url[:12])}..."
        )
    if any(ord(letter) <= 32 or ord(letter) == 127 for letter in url):
        raise UsageError(f"the URL of node {parts.hostname!r} holds a space or control character")
    return parts


def _client(parts: SplitResult, credentials: Credentials | None, timeout: float) -> httpx2.Client:
    try:
        import httpx2
    except ImportError:
        raise UsageError("nodes need httpx2: pip install 'coinhaze[nodes]'") from None
    # It logs whole URLs, keys of paid services with them, at level INFO.
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    auth: httpx2.Auth | None = None
    if credentials:
        kind: Callable[[str, str], httpx2.Auth] = (
            httpx2.DigestAuth if credentials.digest else httpx2.BasicAuth
        )
        auth = kind(credentials.user, credentials.password)
    return httpx2.Client(
        auth=auth,
        timeout=timeout,
        follow_redirects=False,
        headers={"accept-encoding": "gzip"},
        trust_env=not _is_loopback(parts.hostname or ""),  # no proxy to this very machine
    )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_busy(reply: _Reply) -> bool:
    return reply.status in BUSY or (reply.status >= 400 and QUEUE_FULL in reply.body[:400].lower())


def _unanswered(node: str, tried: _Reply | str, tries: int) -> str:
    times = f"{tries} {'try' if tries == 1 else 'tries'}"
    if isinstance(tried, str):
        return f"{node}: no answer in {times}: {tried} (is the node running there?)"
    seen = f"status {tried.status}, {shorten(_start(tried.body))}"
    return f"{node}: too busy in {times}: {seen} (wait, or ask it for less)"


def _pause(attempt: int) -> float:
    """Wait twice as long each time, give or take half, so that many askers spread out."""
    return float(min(0.25 * 2.0**attempt, LONGEST_PAUSE) * random.uniform(0.5, 1.5))


def _seconds(text: str) -> float | None:
    return float(text) if text.isascii() and text.isdigit() and len(text) < 9 else None


def _start(body: bytes) -> str:
    return body[:200].decode("utf-8", "replace").strip()


class _Fault(msgspec.Struct):
    code: int = 0
    message: str = ""


def _fault(error: bytes) -> tuple[int, str]:
    try:
        fault = msgspec.json.decode(error, type=_Fault)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return 0, _start(error)  # some servers put bare text there
    return fault.code, fault.message
