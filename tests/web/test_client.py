from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import httpx2
import pytest

from coinhaze.errors import (
    CoinhazeError,
    InputError,
    ResourceError,
    SourceUnreachable,
    UnknownName,
    UsageError,
)
from coinhaze.explore.models import CoinAnswer
from coinhaze.explore.query import CoinQuery
from coinhaze.web.client import Client
from coinhaze.web.security.guard import Guard
from web.asking import BASE, TOKEN, made_app
from web.made import NAMES, MadeExplorer, MadeRegistry, made_coin


class Bridge(httpx2.BaseTransport):
    """Carries a client's requests to an app that lives in another thread's loop."""

    def __init__(self, app: Guard) -> None:
        self._inner = httpx2.ASGITransport(app=app)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        async def send() -> httpx2.Response:
            body = request.read()
            requested = httpx2.Request(
                request.method, request.url, headers=request.headers, content=body
            )
            found = await self._inner.handle_async_request(requested)
            return httpx2.Response(
                found.status_code, headers=found.headers, content=await found.aread()
            )

        return asyncio.run_coroutine_threadsafe(send(), self._loop).result(30)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()


def client_of(app: Guard, **settings: float) -> Client:
    return Client(BASE, token=TOKEN, transport=Bridge(app), **settings)


@pytest.fixture
def client() -> Iterator[Client]:
    with client_of(made_app()) as found:
        yield found


def test_every_answer_comes_as_its_model(client: Client) -> None:
    assert [card.id for card in client.ledgers()] == ["town", "raw", "lost", "held"]
    assert client.lists()[0].name == "bad"
    assert client.ledger("town").summary is not None
    assert client.histogram("town").zeros == 1
    assert client.density("town").counts == (3, 1)
    assert client.coin("town", "a:0", policy="fifo", open=("n1", "n2")).settings.open == (
        "n1",
        "n2",
    )
    assert client.comparators("town", "a:0").name == "a:0"
    assert [curve.card.state for curve in client.compare(["town", "lost"]).curves] == [
        "ready",
        "missing",
    ]
    assert client.search("town", "a").hits[0].name == "a:0"
    assert client.address("town", "b:1").kind == "address"
    assert client.transaction("town", "b:1").kind == "transaction"
    assert client.block("town", "b:1").kind == "block"
    assert client.what_if("town", ["a:0", "b:1"]).after.coins == ("a:0", "b:1")
    assert client.wallet("town", "a:0 b:1").total is not None
    screened = client.screen("town", listed="thief", nodes="a:0", limit=0.5)
    assert (screened.limit, screened.nodes[0]["node"]) == (0.5, "a:0")
    assert client.jobs() == ()


@pytest.mark.parametrize("name", NAMES)
def test_a_name_may_hold_anything(client: Client, name: str) -> None:
    assert client.coin("town", name).name == name
    assert [origin.name for origin in client.origins("town", name)] == ["tx:m"]


def test_a_table_is_followed_from_page_to_page(client: Client) -> None:
    rows = list(client.table("town", limit=700))
    assert len(rows) == len({row.name for row in rows}) == 2_500


@pytest.mark.parametrize(
    ("ask", "kind"),
    [
        (lambda c: c.coin("town", "none"), UnknownName),
        (lambda c: c.coin("none", "a:0"), UnknownName),
        (lambda c: c.coin("town", "a:0", policy="lifo"), UsageError),
        (lambda c: c.coin("town", "dear"), ResourceError),
        (lambda c: c.coin("lost", "a:0"), ResourceError),
        (lambda c: c.coin("a b", "a:0"), InputError),
    ],
    ids=range(6),
)
def test_a_refusal_is_raised_as_the_library_would(
    client: Client, ask: object, kind: type[CoinhazeError]
) -> None:
    with pytest.raises(kind):
        ask(client)  # type: ignore[operator]


def test_a_job_is_waited_for() -> None:
    registry = MadeRegistry()
    with client_of(made_app(registry)) as client:
        job = client.wait(client.score("raw"))
        assert job.state == "done"
        assert job.page == "/l/raw"
    assert registry.prepared == 1


def test_an_answer_that_becomes_a_job_is_waited_for_and_given() -> None:
    class Later(MadeExplorer):
        def _slow(self) -> CoinAnswer:
            threading.Event().wait(0.2)
            return made_coin("a:0", CoinQuery())

    with client_of(made_app(MadeRegistry(Later()), patience=0.05)) as client:
        assert client.coin("town", "slow").name == "a:0"


def test_a_job_that_is_cancelled_or_takes_too_long_is_an_error() -> None:
    with client_of(made_app(patience=0.05), patience=0.3) as client:
        with pytest.raises(ResourceError, match="not done within"):
            client.coin("town", "slow")
        job = client.jobs()[0]
        assert client.cancel(job).state == "cancelled"
        with pytest.raises(ResourceError, match="cancelled"):
            client.wait(job)


def test_a_client_gives_the_code_of_a_printed_address_for_the_token() -> None:
    app = made_app()
    address = f"{BASE}/?code={app.codes.new()}"
    with Client(address, transport=Bridge(app)) as client:
        assert client.ledgers()
        assert client.lists() is not None
    with Client(address, transport=Bridge(app)) as late, pytest.raises(InputError, match="used"):
        late.ledgers()


def test_a_client_never_shows_its_token_and_cannot_be_without() -> None:
    with Client(f"{BASE}/?token={TOKEN}") as found:
        assert TOKEN not in repr(found)
    with pytest.raises(UsageError, match="token"):
        Client(BASE)


def test_a_server_that_is_not_there_is_named() -> None:
    absent = Client("http://127.0.0.1:9", token="x", timeout=1)
    with absent as client, pytest.raises(SourceUnreachable, match="does it run"):
        client.ledgers()
