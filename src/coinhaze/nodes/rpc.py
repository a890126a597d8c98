"""JSON-RPC to a node, usually on loopback: http://127.0.0.1:8332.

Responses are returned as the bytes the node wrote: their amounts are exact only if the caller
decodes them accordingly (msgspec, `Decimal`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import count

import msgspec

from coinhaze.errors import NotAnswering, SourceUnreachable, shorten, without_secrets
from coinhaze.nodes.http import Connection, HttpResponse, pause_after, start_of

# Codes of Bitcoin's family, and of monerod.
WARMING_UP, CORE_BUSY = -28, -9

Call = tuple[str, Sequence[object] | Mapping[str, object]]

_numbers = count(1)  # of calls, so that responses cannot be confused


class RpcError(SourceUnreachable):
    """A call that the node refused, with its own `code` and `message`."""

    def __init__(self, node: str, method: str, code: int, message: str) -> None:
        message = without_secrets(message)
        super().__init__(f"{node}: {method} refused: {shorten(message, 300)} (code {code})")
        self.method = method
        self.code = code
        self.message = message


class WarmingUp(RpcError, NotAnswering):
    """The node is starting: it is loading or verifying its blocks."""


class RpcResult(msgspec.Struct):
    """What a node answers to a call: its result, or why it refused."""

    id: object = None
    result: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


_result = msgspec.json.Decoder(RpcResult)
_results = msgspec.json.Decoder(list[RpcResult])


class JsonRpc(Connection):
    """A node. `call` and `batch` go to its URL itself, `get` and `post` to paths on its host."""

    def call(self, method: str, /, *params: object, **named: object) -> bytes:
        """Return the raw JSON of a result; parameters by position, or by name for monerod."""
        assert not (params and named)
        return self._send([(method, named or params)], listed=False)[0]

    def batch(self, calls: Sequence[Call]) -> list[bytes]:
        """Return the results of several calls made in one request, in order.

        Raise the error of the first call that was refused.
        """
        return self._send(calls, listed=True) if calls else []

    def _send(self, calls: Sequence[Call], *, listed: bool) -> list[bytes]:
        ids = [next(_numbers) for _ in calls]
        requests = [
            {"jsonrpc": "2.0", "id": i, "method": method, "params": params}
            for i, (method, params) in zip(ids, calls, strict=True)
        ]
        body = msgspec.json.encode(requests if listed else requests[0])
        for attempt in count():
            reply = self.send(body)
            try:
                return self._results(reply, ids, [method for method, _ in calls])
            except WarmingUp:
                if attempt >= self.retries:
                    raise
                time.sleep(pause_after(attempt))
        raise AssertionError

    def _results(self, reply: HttpResponse, ids: list[int], methods: list[str]) -> list[bytes]:
        if reply.status in (401, 403) or 300 <= reply.status < 400:
            raise self.refusal(reply)
        found = {a.id: a for a in self._answers(reply) if isinstance(a.id, int)}
        results = []
        for i, method in zip(ids, methods, strict=True):
            if i not in found:
                raise SourceUnreachable(f"{self.node}: no answer to {method} among those it gave")
            answer = found[i]
            self._raise_refusal(answer, method)
            results.append(bytes(answer.result))
        return results

    def _answers(self, reply: HttpResponse) -> list[RpcResult]:
        """Decode one response or a list; raise an error for anything else, by its status."""
        try:
            if reply.body.lstrip()[:1] == b"[":
                return _results.decode(reply.body)
            answer = _result.decode(reply.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            if reply.status != 200:
                raise self.refusal(reply) from None
            raise SourceUnreachable(
                f"{self.node}: answers, but not in JSON-RPC: {shorten(start_of(reply.body))}"
            ) from None
        if answer.id is None:  # the whole request was refused
            self._raise_refusal(answer, "request")
            raise self.refusal(reply)
        return [answer]

    def _raise_refusal(self, answer: RpcResult, method: str) -> None:
        if bytes(answer.error) not in (b"", b"null"):
            raise refused(self.node, method, bytes(answer.error))
        if not bytes(answer.result):
            raise SourceUnreachable(f"{self.node}: neither result nor error for {method}")


class _Fault(msgspec.Struct):
    code: int = 0
    message: str = ""


def refused(node: str, method: str, error: bytes) -> RpcError:
    """Convert the error object of a refused call to an RpcError."""
    try:
        fault = msgspec.json.decode(error, type=_Fault)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return RpcError(node, method, 0, start_of(error))  # some servers put plain text there
    kind = WarmingUp if fault.code in (WARMING_UP, CORE_BUSY) else RpcError
    return kind(node, method, fault.code, fault.message)
