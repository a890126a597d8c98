"""Servers that answer as a test tells them to, and damaged copies of good answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random


@dataclass
class Reply:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Request:
    verb: str
    path: str
    headers: dict[str, str]
    body: bytes

    def result(self, value: str) -> Reply:
        """Answer the one call in it."""
        return Reply(body=b'{"result":%s,"error":null,"id":%d}' % (value.encode(), self.id))

    @property
    def id(self) -> int:
        return int(json.loads(self.body)["id"])


class Fake:
    """An HTTP server that answers each request by `answer`, and remembers them."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answer: Callable[[Request], Reply] = lambda request: request.result("1")
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 16  # one write an answer, or each waits 40 ms for its other half

            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Request(self.command, self.path, headers, body)
                fake.requests.append(request)
                reply = fake.answer(request)
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body)

            do_POST = do_GET

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def then(self, *replies: Reply) -> None:
        """Answer with these first, and as before afterwards."""
        left, usual = list(replies), self.answer
        self.answer = lambda request: left.pop(0) if left else usual(request)

    def always(self, reply: Reply) -> None:
        self.answer = lambda request: reply

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class FakeNode:
    """Answers of a node of Bitcoin's family that holds these blocks, the first at height 0."""

    def __init__(self, hashes: Sequence[str], blocks: Mapping[str, str], **info: object) -> None:
        self.hashes = list(hashes)
        self.blocks = dict(blocks)
        self.info = info

    def __call__(self, request: Request) -> Reply:
        calls = json.loads(request.body)
        if isinstance(calls, dict):
            return Reply(body=self._answer(calls).encode())
        return Reply(body=f"[{','.join(map(self._answer, calls))}]".encode())

    def _answer(self, call: dict[str, object]) -> str:
        method, params = call["method"], call["params"]
        assert isinstance(params, list)
        if method == "getblockchaininfo":
            tip = {"blocks": len(self.hashes) - 1, "bestblockhash": self.hashes[-1]}
            return self._result(call, json.dumps({"chain": "main", **tip, **self.info}))
        if method == "getnetworkinfo":
            return self._result(call, '{"version":220000,"subversion":"/fake/"}')
        if method == "getblockhash" and params[0] < len(self.hashes):
            return self._result(call, json.dumps(self.hashes[params[0]]))
        if method == "getblock" and params[0] in self.blocks:
            return self._result(call, self.blocks[params[0]])
        fault = {"code": -8, "message": f"cannot {method} {params}"}
        return json.dumps({"id": call["id"], "error": fault})

    def _result(self, call: dict[str, object], raw: str) -> str:
        return f'{{"result":{raw},"error":null,"id":{call["id"]}}}'


def mutated(body: bytes, random: Random) -> bytes:
    """Flip, cut, insert or repeat a few bytes."""
    whole = bytearray(body)
    for _ in range(random.randint(1, 4)):
        at, until = sorted(random.randrange(len(whole) + 1) for _ in range(2))
        kind = random.randrange(4)
        if kind == 0 and at < len(whole):
            whole[at] ^= 1 << random.randrange(8)
        elif kind == 1:
            del whole[at:until]
        elif kind == 2:
            whole[at:at] = random.randbytes(random.randint(1, 5))
        else:
            whole[at:at] = whole[at:until]
    return bytes(whole)
