from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import pytest

from coinhaze.web.guard import Guard
from coinhaze.web.headers import CSP
from coinhaze.web.hosts import Hosts
from coinhaze.web.limits import Limits
from web.asking import BASE, BEARER, TOKEN, ask, client_of, made_app, run

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
def test_nothing_is_told_without_the_token(app: Guard, path: str) -> None:
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


def test_the_first_address_leaves_a_cookie_and_leads_on_without_the_token(app: Guard) -> None:
    found = ask(app, f"/l/town?policy=fifo&token={TOKEN}", token=False)
    assert found.status_code == 200
    assert 'url=/l/town?policy=fifo"' in found.text
    assert TOKEN not in found.text
    cookie = found.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert found.headers["cache-control"] == "no-store"
    name, _, value = cookie.partition(";")[0].partition("=")
    assert value == TOKEN
    assert ask(app, LEDGERS, token=False, headers={"cookie": f"{name}={TOKEN}"}).status_code == 200
    assert ask(app, LEDGERS, token=False, headers={"cookie": f"{name}=x"}).status_code == 401
    assert ask(app, LEDGERS, token=False, headers={"cookie": f"other={TOKEN}"}).status_code == 401


def test_a_first_address_never_leads_to_another_site(app: Guard) -> None:
    found = ask(app, f"{BASE}//evil.example/x?token={TOKEN}", token=False)
    assert 'url=/evil.example/x"' in found.text


def test_a_wrong_token_in_the_address_is_never_kept(app: Guard) -> None:
    name = app.cookie
    found = ask(app, "/?token=wrong", token=False, headers={"cookie": f"{name}={TOKEN}"})
    assert "set-cookie" not in found.headers
    assert ask(app, "/?token=wrong", token=False).status_code == 401


def test_the_api_takes_no_token_from_an_address(app: Guard) -> None:
    assert ask(app, f"{LEDGERS}?token={TOKEN}", token=False).status_code == 401


def test_two_servers_have_cookies_of_two_names() -> None:
    assert made_app().cookie == made_app().cookie
    other = Guard(made_app(), token="another", hosts=Hosts())
    assert other.cookie != made_app().cookie


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


def test_a_link_on_another_site_leads_on_to_itself_once(app: Guard) -> None:
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    found = ask(app, "/l/town?policy=fifo", token=False, headers=link)
    assert found.status_code == 401
    assert 'content="0; url=/l/town?policy=fifo"' in found.text
    again = ask(app, "/l/town?policy=fifo", token=False, headers={"sec-fetch-site": "same-origin"})
    assert again.status_code == 401
    assert "refresh" not in again.text


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:9", "x", ""])
def test_a_change_from_another_origin_is_refused(app: Guard, origin: str) -> None:
    found = ask(app, WHAT_IF, method="POST", json=COINS, headers={"origin": origin})
    assert found.status_code == 403


def test_a_change_by_cookie_must_say_where_it_comes_from(app: Guard) -> None:
    cookie = {"cookie": f"{app.cookie}={TOKEN}"}
    own = [{"origin": BASE}, {"sec-fetch-site": "same-origin"}]
    assert (
        ask(app, WHAT_IF, method="POST", token=False, json=COINS, headers=cookie).status_code == 403
    )
    for more in own:
        headers = {**cookie, **more}
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
    app = made_app(changes=2.0)

    async def many() -> list[int]:
        async with client_of(app, headers=BEARER) as client:
            return [(await client.post(WHAT_IF, json=COINS)).status_code for _ in range(10)]

    codes = run(many())
    assert codes[:6] == [200] * 6
    assert codes[-1] == 429


def test_strangers_and_other_sites_use_up_nothing_of_the_owners() -> None:
    app = made_app(requests=5.0, changes=2.0)
    evil = {"sec-fetch-site": "cross-site", "origin": "http://evil.example"}
    for _ in range(60):
        assert ask(app, WHAT_IF, method="POST", json=COINS, headers=evil).status_code == 403
        ask(app, LEDGERS, token=False)
    assert ask(app, LEDGERS, token=False).status_code == 429
    assert ask(app, LEDGERS).status_code == 200
    assert ask(app, WHAT_IF, method="POST", json=COINS).status_code == 200


def test_so_many_are_answered_at_once_some_wait_and_the_rest_are_refused() -> None:
    busy: list[int] = []
    most = 0

    async def slow(scope: object, receive: object, send: object) -> None:
        nonlocal most
        busy.append(1)
        most = max(most, len(busy))
        await asyncio.sleep(0.02)
        busy.pop()
        await send({"type": "http.response.start", "status": 200, "headers": []})  # type: ignore[operator]
        await send({"type": "http.response.body", "body": b""})  # type: ignore[operator]

    app = Guard(slow, token=TOKEN, hosts=Hosts(), limits=Limits(concurrent=16, waiting=64))

    async def many() -> list[int]:
        async with client_of(app, headers=BEARER) as client:
            found = await asyncio.gather(*(client.get("/") for _ in range(100)))
        return [response.status_code for response in found]

    codes = run(many())
    assert most == 16
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
