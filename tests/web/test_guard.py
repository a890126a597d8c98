from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from coinhaze.web.schema import Refused
from coinhaze.web.security.codes import Codes
from coinhaze.web.security.guard import Guard, Limits, RateLimit, plain_page
from coinhaze.web.security.headers import CSP, Hosts
from web.asking import BASE, BEARER, TOKEN, ask, client_of, made_app, run
from web.browsing import login_of

LEDGERS = "/api/v1/ledgers"
WHAT_IF = "/api/v1/ledgers/town/what-if"
COINS = {"coins": ["a:0", "b:1"]}


@pytest.fixture
def app() -> Guard:
    return made_app()


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "127.0.0.1.evil.com", "localhost.evil.com", "evil.example:8000", "",
        "127.0.0.1@evil.example", "127.0.0.1 evil", "127.0.0.2", "0.0.0.0", "[::1", "[::2]:8000",
        "localhost:99999999", "10.0.0.1",
    ],
)  # fmt: skip
def test_only_its_own_names_are_answered(app: Guard, host: str) -> None:
    found = ask(app, LEDGERS, headers={"host": host})
    assert (found.status_code, found.json()["error"]["code"]) == (400, "bad-host")


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:1", "LocalHost", "[::1]:8000"])
def test_its_own_names_are(app: Guard, host: str) -> None:
    assert ask(app, LEDGERS, headers={"host": host}).status_code == 200


def test_a_remote_server_takes_addresses_which_cannot_be_rebound_but_no_other_name() -> None:
    hosts = Hosts(names=["0.0.0.0"], remote=True)
    assert hosts.knows("192.0.2.7")
    assert hosts.knows("2001:db8::1")
    assert not hosts.knows("evil.example")


def test_two_host_headers_are_none(app: Guard) -> None:
    headers = [("host", "127.0.0.1"), ("host", "127.0.0.1"), *BEARER.items()]

    async def twice() -> int:
        async with client_of(app) as client:
            return (await client.get(LEDGERS, headers=headers)).status_code

    assert run(twice()) == 400


@pytest.mark.parametrize("path", ["/", "/l/town", LEDGERS, "/api/v1/openapi.json", "/nowhere"])
def test_nothing_is_reported_without_the_token(app: Guard, path: str) -> None:
    found = ask(app, path, token=False)
    assert found.status_code == 401
    assert found.headers["www-authenticate"].startswith("Bearer")
    assert "town" not in found.text


@pytest.mark.parametrize(
    "given",
    ["Bearer", "Bearer x", "Basic " + TOKEN, TOKEN, f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}"],
)
def test_only_the_whole_token_is_the_token(app: Guard, given: str) -> None:
    assert ask(app, LEDGERS, token=False, headers={"authorization": given}).status_code == 401


def code_for_token(app: Guard, code: str, **headers: str) -> httpx2.Response:
    return ask(app, "/enter", method="POST", token=False, json={"code": code}, headers=headers)


def login(token: str) -> dict[str, str]:
    return {"authorization": login_of(token)}


def test_a_code_opens_once_and_gives_the_token(app: Guard) -> None:
    code = app.codes.new()
    page = ask(app, f"/l/town?policy=fifo&code={code}", token=False)
    assert page.status_code == 401  # to look at the address uses nothing up, and tells nothing
    assert TOKEN not in page.text
    assert code not in page.text
    assert "set-cookie" not in page.headers
    found = code_for_token(app, code)
    assert (found.status_code, found.json()) == (200, {"token": TOKEN})
    assert found.headers["cache-control"] == "no-store"
    assert code_for_token(app, code).status_code == 401
    assert code_for_token(app, "guessed").status_code == 401


def test_a_code_dies_by_time() -> None:
    now = [0.0]
    codes = Codes(within=600.0, clock=lambda: now[0])
    early, late = codes.new(), codes.new()
    now[0] = 599.0
    assert codes.take(early)
    now[0] = 601.0
    assert not codes.take(late)


def test_codes_that_are_guessed_soon_come_too_often(app: Guard) -> None:
    assert 429 in [code_for_token(app, "guessed").status_code for _ in range(30)]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"code": 1}', b'{"kode": "x"}', b"[" * 999])
def test_what_is_no_code_is_refused(app: Guard, body: bytes) -> None:
    found = ask(app, "/enter", method="POST", token=False, content=body)
    assert found.status_code == 400
    large = ask(app, "/enter", method="POST", token=False, content=b" " * 1100)
    assert large.status_code == 413


def test_another_site_cannot_bring_a_code(app: Guard) -> None:
    code = app.codes.new()
    for headers in ({"sec-fetch-site": "cross-site"}, {"origin": "http://127.0.0.1:9"}):
        assert code_for_token(app, code, **headers).status_code == 403
    assert code_for_token(app, code, origin=BASE).status_code == 200


def test_a_browser_is_requested_its_login_in_one_place(app: Guard) -> None:
    found = ask(app, "/enter", token=False)
    assert found.status_code == 401
    assert found.headers["www-authenticate"].startswith("Basic")
    for path in ("/", "/l/town", LEDGERS):  # everywhere else the page itself says what to do
        assert ask(app, path, token=False).headers["www-authenticate"].startswith("Bearer")
    wrong = ask(app, "/enter", token=False, headers=login("wrong"))
    assert wrong.headers["www-authenticate"].startswith("Bearer")
    assert ask(app, "/enter", token=False, headers=login(TOKEN)).status_code == 200
    there = {**login(TOKEN), "sec-fetch-mode": "navigate"}
    led = ask(app, "/enter", token=False, headers=there)
    assert (led.status_code, led.headers["location"]) == (303, "/")
    assert ask(app, "/enter", method="DELETE").status_code == 405


def test_a_login_opens_pages_and_api_and_a_cookie_opens_nothing(app: Guard) -> None:
    for path in ("/", "/l/town", LEDGERS):
        assert ask(app, path, token=False, headers=login(TOKEN)).status_code == 200
        assert ask(app, path, token=False, headers=login("wrong")).status_code == 401
        for cookie in (f"coinhaze={TOKEN}", f"token={TOKEN}"):
            assert ask(app, path, token=False, headers={"cookie": cookie}).status_code == 401


@pytest.mark.parametrize("path", ["/", "/l/town"])
def test_no_address_holds_what_opens_it(app: Guard, path: str) -> None:
    for name in ("token", "code"):
        assert ask(app, f"{path}?{name}={TOKEN}", token=False).status_code == 401


def test_somebody_who_is_in_is_led_to_the_address_without_its_code(app: Guard) -> None:
    code = app.codes.new()
    found = ask(app, f"{BASE}//evil.example/x?a=1&code={code}")
    assert (found.status_code, found.headers["location"]) == (303, "/evil.example/x?a=1")
    assert code_for_token(app, code).status_code == 401  # and the code is used up


def test_the_api_takes_no_token_from_an_address(app: Guard) -> None:
    assert ask(app, f"{LEDGERS}?token={TOKEN}", token=False).status_code == 401


def test_wrong_tokens_soon_come_too_often(app: Guard) -> None:
    async def many() -> list[int]:
        async with client_of(app, headers={"authorization": "Bearer wrong"}) as client:
            return [(await client.get(LEDGERS)).status_code for _ in range(30)]

    codes = run(many())
    assert codes[:20] == [401] * 20
    assert 429 in codes


@pytest.mark.parametrize("site", ["cross-site", "same-site", "weird"])
@pytest.mark.parametrize("mode", ["cors", "no-cors", "navigate"])
def test_another_site_asks_the_api_nothing(app: Guard, site: str, mode: str) -> None:
    headers = {"sec-fetch-site": site, "sec-fetch-mode": mode}
    assert ask(app, LEDGERS, headers=headers).status_code == 403
    found = ask(app, WHAT_IF, method="POST", json=COINS, headers=headers)
    assert (found.status_code, found.json()["error"]["code"]) == (403, "other-site")


def test_another_site_may_lead_to_a_page_but_not_frame_or_fetch_it(app: Guard) -> None:
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert ask(app, "/nowhere", headers={**link, "sec-fetch-dest": "document"}).status_code == 404
    assert ask(app, "/", headers={**link, "sec-fetch-dest": "iframe"}).status_code == 403
    assert ask(app, "/", headers={**link, "sec-fetch-mode": "no-cors"}).status_code == 403


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:9", "x"])
@pytest.mark.parametrize("how", ["bearer", "login"])
def test_the_api_gives_nothing_to_another_origin(app: Guard, origin: str, how: str) -> None:
    headers = {"origin": origin, **(BEARER if how == "bearer" else login(TOKEN))}
    found = ask(app, LEDGERS, token=False, headers=headers)
    assert (found.status_code, found.json()["error"]["code"]) == (403, "other-site")
    assert "town" not in found.text
    own = ask(app, LEDGERS, token=False, headers={**headers, "origin": BASE})
    assert own.status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:9", "x", ""])
def test_a_change_from_another_origin_is_refused(app: Guard, origin: str) -> None:
    found = ask(app, WHAT_IF, method="POST", json=COINS, headers={"origin": origin})
    assert found.status_code == 403


def test_a_change_by_login_must_say_where_it_comes_from(app: Guard) -> None:
    own_login = login(TOKEN)
    own = [{"origin": BASE}, {"sec-fetch-site": "same-origin"}]
    assert (
        ask(app, WHAT_IF, method="POST", token=False, json=COINS, headers=own_login).status_code
        == 403
    )
    for more in own:
        headers = {**own_login, **more}
        found = ask(app, WHAT_IF, method="POST", token=False, json=COINS, headers=headers)
        assert found.status_code == 200


@pytest.mark.parametrize("path", ["/", LEDGERS, "/nowhere", "/api/nowhere", "/static/nowhere"])
@pytest.mark.parametrize("token", [True, False])
def test_every_answer_tells_the_browser_what_it_may_not_do(
    app: Guard, path: str, token: bool
) -> None:
    headers = ask(app, path, token=token).headers
    assert headers["content-security-policy"] == CSP
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


def test_the_policy_lets_no_inline_script_or_style_or_other_host_in() -> None:
    assert "unsafe" not in CSP
    assert "'self'" in CSP
    assert not re.search(r"https?:|\*|data:", CSP)
    for rule in ("object-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"):
        assert rule in CSP


def test_a_preflight_gets_no_leave(app: Guard) -> None:
    headers = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    found = ask(app, WHAT_IF, method="OPTIONS", token=False, headers=headers)
    assert found.status_code in (401, 403)
    assert not [name for name in found.headers if name.startswith("access-control")]


def test_a_body_above_two_mebibytes_is_refused_by_its_length_and_by_its_bytes(app: Guard) -> None:
    large = b"x" * ((2 << 20) + 1)
    assert ask(app, WHAT_IF, method="POST", content=large).status_code == 413

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(33):
            yield b"x" * (1 << 16)

    async def send() -> int:
        async with client_of(app, headers=BEARER) as client:
            return (await client.post(WHAT_IF, content=pieces())).status_code

    assert run(send()) == 413


def test_a_length_above_the_limit_is_refused_before_a_byte_is_read(app: Guard) -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        raise AssertionError("the body was read")

    async def send(message: Any) -> None:
        sent.append(message)

    given = {"host": "127.0.0.1:8000", "content-length": str((2 << 20) + 1), **BEARER}
    headers = [(name.encode(), value.encode()) for name, value in given.items()]
    scope = {"type": "http", "method": "POST", "path": WHAT_IF, "headers": headers}
    run(app(scope, receive, send))
    assert sent[0]["status"] == 413


def test_a_plain_refusal_is_text() -> None:
    page = plain_page(Refused("bad-path", "<b>no</b>", fix="go & see"))
    assert b"&lt;b&gt;no&lt;/b&gt;: go &amp; see" in page


def test_headers_above_eight_kibibytes_are_refused(app: Guard) -> None:
    found = ask(app, LEDGERS, headers={"x-long": "x" * 8200})
    assert (found.status_code, found.json()["error"]["code"]) == (431, "headers-too-large")
    assert ask(app, "/api/v1/ledgers?x=" + "y" * 8200).status_code == 431
    assert ask(app, LEDGERS, headers={"x-long": "x" * 7000}).status_code == 200


def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    app = made_app(body_within=0.05)

    async def never() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(5)

    async def send() -> int:
        async with client_of(app, headers=BEARER) as client:
            return (await client.post(WHAT_IF, content=never())).status_code

    assert run(send()) == 408


def test_too_many_changes_from_one_place_are_refused() -> None:
    app = made_app()
    app._changes = RateLimit(2.0, at_once=6, clock=lambda: 0.0)

    async def many() -> list[int]:
        async with client_of(app, headers=BEARER) as client:
            return [(await client.post(WHAT_IF, json=COINS)).status_code for _ in range(10)]

    assert run(many()) == [200] * 6 + [429] * 4


def test_strangers_and_other_sites_use_up_nothing_of_the_owners() -> None:
    app = made_app(requests=5.0, changes=2.0)
    for limited in (app._requests, app._strangers, app._changes):
        limited._clock = lambda: 0.0
    evil = {"sec-fetch-site": "cross-site", "origin": "http://evil.example"}
    for _ in range(60):
        assert ask(app, WHAT_IF, method="POST", json=COINS, headers=evil).status_code == 403
        ask(app, LEDGERS, token=False)
    assert ask(app, LEDGERS, token=False).status_code == 429
    assert ask(app, LEDGERS).status_code == 200
    assert ask(app, WHAT_IF, method="POST", json=COINS).status_code == 200


def test_so_many_are_answered_at_once_some_wait_and_the_rest_are_refused() -> None:
    busy: list[int] = []
    maximum = 0
    refused = asyncio.Event()

    async def slow(scope: object, receive: object, send: object) -> None:
        nonlocal maximum
        busy.append(1)
        maximum = max(maximum, len(busy))
        await refused.wait()
        busy.pop()
        await send({"type": "http.response.start", "status": 200, "headers": []})  # type: ignore[operator]
        await send({"type": "http.response.body", "body": b""})  # type: ignore[operator]

    app = Guard(slow, token=TOKEN, hosts=Hosts(), limits=Limits(concurrent=16, waiting=64))

    async def many() -> list[int]:
        async with client_of(app, headers=BEARER) as client:
            asked = [asyncio.ensure_future(client.get("/")) for _ in range(100)]
            for _ in range(3_000):  # half a minute
                if sum(one.done() for one in asked) >= 100 - 16 - 64:
                    break
                await asyncio.sleep(0.01)
            refused.set()
            found = await asyncio.gather(*asked)
        return [response.status_code for response in found]

    codes = run(many())
    assert maximum == 16
    assert codes.count(200) == 16 + 64
    assert codes.count(429) == 20


def test_a_reader_who_takes_nothing_holds_no_place() -> None:
    async def answers(scope: object, receive: object, send: object) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})  # type: ignore[operator]

    app = Guard(answers, token=TOKEN, hosts=Hosts(), limits=Limits(sent_within=0.05))
    scope = {
        "type": "http", "method": "GET", "path": "/", "raw_path": b"/", "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"authorization", BEARER["authorization"].encode())],
    }  # fmt: skip

    async def stuck(message: object) -> None:
        await asyncio.sleep(60)

    async def nothing() -> dict[str, object]:
        return {"type": "http.request"}

    with pytest.raises(TimeoutError):
        run(app(scope, nothing, stuck))


def test_no_socket_but_http(app: Guard) -> None:
    sent: list[object] = []

    async def send(message: object) -> None:
        sent.append(message)

    async def nothing() -> dict[str, object]:
        return {}

    run(app({"type": "websocket"}, nothing, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]
