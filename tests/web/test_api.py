from __future__ import annotations

import asyncio
import csv
import io
import json
import threading
import time
from typing import Any
from urllib.parse import quote

import pytest

from coinhaze.explore.explorer import Explorer
from coinhaze.explore.models import CoinAnswer
from coinhaze.explore.query import CoinQuery, Settings
from coinhaze.solve.progress import Progress
from coinhaze.web.answers import Answers
from coinhaze.web.app import make_inner
from coinhaze.web.schema import Jobs
from coinhaze.web.security.guard import Guard
from web.asking import BEARER, PATIENCE, ask, client_of, made_app, run
from web.made import FORMULA, HOSTILE, NAMES, MadeExplorer, MadeRegistry, made_coin

API = "/api/v1"
TOWN = f"{API}/ledgers/town"


@pytest.fixture(scope="module")
def app() -> Guard:
    """Answers that no request changes."""
    return made_app(requests=1e6, changes=1e6)


@pytest.mark.parametrize(
    "path",
    [
        "/ledgers", "/ledgers/town", "/ledgers/town/histogram", "/ledgers/town/density",
        "/ledgers/town/search?q=a", "/ledgers/town/coins/a:0",
        "/ledgers/town/coins/a:0/comparators", "/ledgers/town/coins/a:0/origins",
        "/ledgers/town/addresses/a:0",
        "/ledgers/town/transactions/a:0", "/ledgers/town/blocks/a:0", "/ledgers/town/table",
        "/compare?l=town,lost", "/lists", "/jobs", "/openapi.json",
    ],
)  # fmt: skip
def test_every_page_s_data_is_there_as_json(app: Guard, path: str) -> None:
    found = ask(app, API + path)
    assert (found.status_code, found.headers["content-type"]) == (200, "application/json")
    assert found.json()


@pytest.mark.parametrize("name", NAMES)
def test_a_name_comes_back_as_it_is_whatever_it_holds(app: Guard, name: str) -> None:
    found = ask(app, f"{TOWN}/coins/{quote(name, safe='')}")
    assert found.json()["name"] == name
    assert found.json()["origins"][0]["label"] == HOSTILE
    assert found.headers["content-type"] == "application/json"


def test_amounts_are_digits_that_no_reader_rounds(app: Guard) -> None:
    assert json.loads(ask(app, f"{TOWN}/coins/a:0").text)["amount"]["smallest"] == str(2**70)


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/ledgers/none", 404, "unknown-ledger"),
        ("/ledgers/town/coins/none", 404, "unknown-name"),
        ("/ledgers/town/coins/none/origins.csv", 404, "unknown-name"),
        ("/ledgers/town/coins/a:0?policy=lifo", 422, "unsupported"),
        ("/ledgers/town/coins/a:0?policy=best", 400, "bad-request"),
        ("/ledgers/town/coins/a:0?colour=red", 400, "bad-request"),
        ("/ledgers/town/coins/a:0?top=0", 400, "bad-request"),
        ("/ledgers/town/coins/a:0?open=N%20", 400, "bad-request"),
        ("/ledgers/town/coins/dear", 503, "too-expensive"),
        ("/ledgers/town/coins/bug", 500, "bug"),
        ("/ledgers/town/table?limit=1001", 400, "bad-request"),
        ("/ledgers/town/table?sort=colour", 400, "bad-request"),
        ("/ledgers/town/table?bits_low=nan", 400, "bad-request"),
        ("/ledgers/raw/table", 409, "not-scored"),
        ("/ledgers/lost/coins/a:0", 409, "missing"),
        ("/ledgers/held/table.csv", 409, "locked"),
        ("/ledgers/UPPER", 400, "bad-request"),
        ("/compare?l=a,b,c,d,e,f", 400, "bad-request"),
        ("/jobs/0000000000000000", 404, "unknown-job"),
        ("/nowhere", 404, "unknown-address"),
    ],
)
def test_errors_have_a_code_a_message_and_a_fix(
    app: Guard, path: str, status: int, code: str
) -> None:
    found = ask(app, API + path)
    error = found.json()["error"]
    assert (found.status_code, error["code"]) == (status, code)
    assert error["message"]
    assert error["fix"]
    assert "secret inside" not in found.text


def test_no_request_is_reported_anywhere_whatever_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FASTAPI_OTEL_AUTO_CONFIGURE", "true")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://192.0.2.1:4318")
    inner = make_inner(Answers(MadeRegistry()))
    told = getattr(inner, "_telemetry", {})
    assert not [name for name, value in told.items() if value]


def test_a_wrong_method_says_which_are_right(app: Guard) -> None:
    found = ask(app, f"{API}/ledgers", method="PATCH")
    assert (found.status_code, found.json()["error"]["code"]) == (405, "wrong-method")
    assert found.headers["allow"] == "GET"


def test_a_ledger_that_is_not_ready_says_so_on_its_page(app: Guard) -> None:
    card = ask(app, f"{API}/ledgers/lost").json()["card"]
    assert (card["state"], card["fix"]) == ("missing", "put it back")


def test_what_the_asker_has_is_not_sent_again(app: Guard) -> None:
    first = ask(app, f"{TOWN}/coins/a:0")
    tag = first.headers["etag"]
    again = ask(app, f"{TOWN}/coins/a:0", headers={"if-none-match": tag})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == tag
    other = ask(app, f"{TOWN}/coins/a:0?policy=fifo", headers={"if-none-match": tag})
    assert other.status_code == 200
    assert other.headers["etag"] != tag


def test_an_answer_is_worked_out_once() -> None:
    explorer = MadeExplorer()
    app = made_app(MadeRegistry(explorer))

    async def often() -> None:
        async with client_of(app, headers=BEARER) as client:
            await asyncio.gather(*(client.get(f"{TOWN}/coins/a:0") for _ in range(10)))
            await client.get(f"{TOWN}/coins/a:0")

    run(often())
    assert explorer.calls == 1


def test_an_answer_that_comes_between_look_and_work_is_not_worked_out_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    explorer = MadeExplorer()
    answers = Answers(MadeRegistry(explorer))
    begin, one_at_a_time = answers._work, asyncio.Lock()

    async def in_turn(*given: Any) -> Any:  # all have looked before the first has its answer
        async with one_at_a_time:
            return await begin(*given)

    monkeypatch.setattr(answers, "_work", in_turn)

    async def both() -> list[Any]:
        looks = (answers.ask("town", Explorer.coin, "a:0", CoinQuery()) for _ in range(2))
        return await asyncio.gather(*looks)

    one, other = run(both())
    assert explorer.calls == 1
    assert one.body == other.body


def test_a_page_of_the_table_leads_to_the_next_until_the_last(app: Guard) -> None:
    names, more, pages = [], "", 0
    while True:
        found = ask(app, f"{TOWN}/table?limit=1000{more}").json()
        names += [row["name"] for row in found["rows"]]
        pages += 1
        if found["after"] is None:
            break
        more = f"&after={found['after']}"
    assert pages == 3
    assert len(set(names)) == found["total"] == 2_500


def test_csv_holds_all_rows_and_no_formula(app: Guard) -> None:
    found = ask(app, f"{TOWN}/table.csv?limit=1")
    rows = list(csv.reader(io.StringIO(found.text)))
    assert rows[0] == ["name", "bits"]
    assert len(rows) == 2_501
    assert rows[1][0] == "'" + FORMULA
    assert found.headers["content-type"].startswith("text/csv")
    assert found.headers["content-disposition"] == 'attachment; filename="town-table.csv"'


def test_hostile_names_stay_text_in_csv(app: Guard) -> None:
    found = ask(app, f"{TOWN}/coins/a:0/origins.csv")
    rows = list(csv.reader(io.StringIO(found.text)))
    assert [row[0] for row in rows[1:]] == ["'" + FORMULA, HOSTILE]
    assert found.headers["x-content-type-options"] == "nosniff"


def test_what_if_is_requested_by_post(app: Guard) -> None:
    found = ask(app, f"{TOWN}/what-if", method="POST", json={"coins": ["a:0", "b:1"]})
    assert found.json()["after"]["coins"] == ["a:0", "b:1"]
    assert found.json()["ownership"]


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b'{"coins": []}', b'{"coins": "a:0"}', b'{"coins": ["a:0"], "url": "x"}',
        b'{"coins": ["' + b"a" * 20_000 + b'"]}', b'{"coins": ["a\\u0000"]}', b"\xff\xfe",
        b'{"coins": [1]}', b"{" * 100_000,
    ],
    ids=range(11),
)  # fmt: skip
def test_a_body_that_is_no_question_is_refused(app: Guard, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    found = ask(app, f"{TOWN}/what-if", method="POST", content=body, headers=headers)
    assert (found.status_code, found.json()["error"]["code"]) == (400, "bad-request")


def test_a_hundred_and_one_coins_are_too_many(app: Guard) -> None:
    found = ask(app, f"{TOWN}/what-if", method="POST", json={"coins": ["a:0"] * 101})
    assert found.status_code == 400


def test_a_wallet_is_weighed_and_not_remembered(app: Guard) -> None:
    found = ask(app, f"{TOWN}/wallet", method="POST", json={"coins": "a:0\nb:1"})
    assert [coin["name"] for coin in found.json()["coins"]] == ["a:0", "b:1"]
    assert "etag" not in found.headers
    assert found.headers["cache-control"] == "no-store"


def test_a_screening_is_not_remembered(app: Guard) -> None:
    found = ask(app, f"{TOWN}/screen", method="POST", json={"listed": "thief", "nodes": "a:0"})
    assert found.json()["nodes"] == [{"node": "a:0", "balance": "5"}]
    assert "etag" not in found.headers
    assert found.headers["cache-control"] == "no-store"


def test_a_long_answer_becomes_a_job_that_can_be_cancelled() -> None:
    explorer = MadeExplorer()
    app = made_app(MadeRegistry(explorer), patience=0.1)

    async def story() -> None:
        async with client_of(app, headers=BEARER) as client:
            first = await client.get(f"{TOWN}/coins/slow")
            assert first.status_code == 202
            job = first.json()
            assert job["state"] in ("queued", "running")
            assert first.headers["location"] == f"{API}/jobs/{job['id']}"
            again = await client.get(f"{TOWN}/coins/slow")
            assert again.json()["id"] == job["id"], "asking again meets the same job"
            # Others are answered all the while, on a busy machine after more than the patience.
            while (quick := await client.get(f"{TOWN}/coins/a:0")).status_code == 202:
                await asyncio.sleep(0.02)
            assert quick.status_code == 200
            while not (seen := (await client.get(f"{API}/jobs/{job['id']}")).json())["share"]:
                await asyncio.sleep(0.02)
            assert seen["state"] == "running"
            assert 0 < seen["share"] < 1
            assert seen["seconds_left"] > 0
            assert (await client.get(f"{API}/jobs/{job['id']}/result")).status_code == 409
            stopped = (await client.delete(f"{API}/jobs/{job['id']}")).json()
            assert stopped["state"] == "cancelled"

    run(story())
    until = time.monotonic() + PATIENCE
    while explorer.slow_ended == 0 and time.monotonic() < until:
        time.sleep(0.01)
    assert explorer.slow_ended == 1, "its thread has ended"


def test_a_long_answer_is_there_when_its_job_is_done() -> None:
    class Later(MadeExplorer):
        def _slow(self) -> CoinAnswer:
            time.sleep(0.3)
            return made_coin("a:0", CoinQuery())

    app = made_app(MadeRegistry(Later()), patience=0.05)

    async def story() -> None:
        async with client_of(app, headers=BEARER) as client:
            job = (await client.get(f"{TOWN}/coins/slow")).json()
            while (now := (await client.get(f"{API}/jobs/{job['id']}")).json())["state"] != "done":
                await asyncio.sleep(0.02)
            assert now["page"] == "/l/town/coin/slow"
            result = await client.get(now["result"])
            while (direct := await client.get(f"{TOWN}/coins/slow")).status_code == 202:
                await asyncio.sleep(0.02)
            assert result.content == direct.content
            assert direct.status_code == 200

    run(story())


def test_scoring_is_a_job_and_the_ledger_s_card_names_it() -> None:
    seen = threading.Event()

    class Held(MadeRegistry):
        def prepare(self, ledger: str, settings: Settings, progress: Progress) -> None:
            assert seen.wait(PATIENCE)
            super().prepare(ledger, settings, progress)

    registry = Held()
    app = made_app(registry)

    async def story() -> None:
        async with client_of(app, headers=BEARER) as client:
            begun = await client.post(f"{API}/jobs", json={"ledger": "raw"})
            assert begun.status_code == 202
            card = (await client.get(f"{API}/ledgers/raw")).json()["card"]
            assert (card["state"], card["job"]) == ("loading", begun.json()["id"])
            twice = await client.post(f"{API}/jobs", json={"ledger": "raw"})
            assert twice.json()["id"] == begun.json()["id"]
            seen.set()
            while (await client.get(begun.headers["location"])).json()["state"] != "done":
                await asyncio.sleep(0.02)
            assert (await client.get(begun.headers["location"] + "/result")).status_code == 204
            jobs = Jobs.model_validate((await client.get(f"{API}/jobs")).json()).jobs
            assert [job.state for job in jobs] == ["done"]

    run(story())
    assert registry.prepared == 1


def test_more_than_so_many_at_work_are_refused() -> None:
    class Slow(MadeExplorer):
        def coin(self, name: str, query: object) -> CoinAnswer:
            return self._slow()

    app = made_app(MadeRegistry(Slow()), patience=0.02, queued=64)

    async def story() -> list[int]:
        async with client_of(app, headers=BEARER) as client:
            codes = []
            for k in range(70):
                codes.append((await client.get(f"{TOWN}/coins/{k}")).status_code)
            for job in (await client.get(f"{API}/jobs")).json()["jobs"]:
                await client.delete(f"{API}/jobs/{job['id']}")
            return codes

    codes = run(story())
    assert codes == [202] * 64 + [429] * 6


@pytest.mark.parametrize("path", ["what-if?list=known", "wallet?bogus=1", "screen?list=bad"])
def test_settings_in_the_address_of_a_post_are_refused(path: str) -> None:
    found = ask(made_app(), f"/api/v1/ledgers/town/{path}", method="POST", json={"coins": ["a:0"]})
    assert (found.status_code, found.json()["error"]["code"]) == (400, "bad-request")
    assert "in its body" in found.json()["error"]["message"]
