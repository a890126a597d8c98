"""Forty ways out of the folders that are served, and none of them leads anywhere."""

from __future__ import annotations

import pytest

from coinhaze.explore.query import Id
from coinhaze.web.registry import id_of
from coinhaze.web.security.guard import Guard
from web.asking import BEARER, made_app, run

UP = [
    "..", "../..", "%2e%2e", "%2e%2e%2f", "..%2f..%2f", "%2e%2e/%2e%2e", ".%2e", "%2e.",
    "..%5c", "..%5c..%5c", "%5c..%5c", "..\\..", "....//", "..;/", "..%00/", "%00", "a%00.css",
    "%252e%252e%252f", "..%252f", "%c0%ae%c0%ae/", "%e0%80%ae/", "%ff", "..%c0%af", "%uff0e",
    "/etc/passwd", "//etc/passwd", "%2fetc%2fpasswd", "file:///etc/passwd", "C:%5cwindows", "~root",
    "%0a", "%0d%0aSet-Cookie:%20a=b", "%7f", "%1f", "app.css%00.html", "app.css/..", "./app.css",
    "app.css/../../app.py", "..%2fapp.py", "%2e%2e%2fapp.py", "..%2f..%2f..%2fpyproject.toml",
    "%2e%2e%2f%2e%2e%2fcli%2f__init__.py",
]  # fmt: skip
SECRETS = ("root:", "[project]", "make_app", "import click")


@pytest.fixture(scope="module")
def app() -> Guard:
    return made_app(requests=1e6)


@pytest.mark.parametrize(
    "prefix", ["/static/", "/l/", "/api/v1/ledgers/", "/api/v1/ledgers/town/coins/"]
)
@pytest.mark.parametrize("way", UP, ids=[str(k) for k in range(len(UP))])
def test_no_path_leads_out(app: Guard, prefix: str, way: str) -> None:
    found: dict[str, object] = {"body": b""}

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, object]) -> None:
        found["status"] = message.get("status", found.get("status"))
        found["body"] = found["body"] + message.get("body", b"")  # type: ignore[operator]

    # As the server hands it over: no client has tidied the path up.
    from urllib.parse import unquote

    raw = (prefix + way).encode()
    scope = {
        "type": "http", "method": "GET", "path": unquote(prefix + way), "raw_path": raw,
        "query_string": b"", "scheme": "http", "http_version": "1.1", "server": ("127.0.0.1", 1),
        "root_path": "",
        "headers": [(b"host", b"localhost"), (b"authorization", BEARER["authorization"].encode())],
    }  # fmt: skip
    run(app(scope, receive, send))  # type: ignore[arg-type]
    assert found["status"] in (400, 404)
    body = bytes(found["body"]).decode()  # type: ignore[call-overload]
    assert not [word for word in SECRETS if word in body]


def test_there_are_forty_ways() -> None:
    assert len(set(UP)) >= 40


@pytest.mark.parametrize("way", UP, ids=[str(k) for k in range(len(UP))])
def test_a_ledger_s_id_is_never_a_path(way: str) -> None:
    import re

    pattern = Id.__metadata__[0].pattern  # type: ignore[attr-defined]
    assert re.fullmatch(pattern, id_of(way))
