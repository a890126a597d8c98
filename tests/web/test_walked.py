"""A node or server being served: its coins are walked back when somebody asks, and not before."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from coinhaze.errors import UsageError
from coinhaze.nodes.servers import Claim
from coinhaze.web.registry import LedgerRegistry
from coinhaze.web.security.guard import Guard
from nodes.test_servers import ADDRESS, SCRIPT, Told, transaction
from web.asking import ask, made_app
from web.browsing import DESKTOP, PHONE, Browsing, expect, width_of
from web.conftest import Site, running

SOURCE = "electrum+ssl://told:50002"
ID = "electrum-ssl-told-50002"
HERE = {"origin": "http://127.0.0.1:8000", "sec-fetch-site": "same-origin"}


def chain(length: int) -> tuple[list[tuple[str, bytes]], str]:
    """Make a chain of payments, each of which spends the last one and a newly mined coin."""
    made = [transaction([], (50, SCRIPT))]
    for k in range(length):
        mined = transaction([], (51 + k, SCRIPT))
        last = made[-1][0]
        paid = transaction([(last, 0), (mined[0], 0)], (60 + k, SCRIPT), (30, SCRIPT))
        made += [mined, paid]
    return made, made[-1][0]


MADE, LAST = chain(12)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    server = Told(bodies=dict(MADE), claims=[Claim(LAST, 0, 71)], tip=500)
    monkeypatch.setattr("coinhaze.web.walked_state.open_server", lambda *_, **__: server)
    return server


def registry(folder: Path, maximum: int = 2_000, **more: Any) -> LedgerRegistry:
    reach = {"cache": str(folder / "cache"), "max_transactions": maximum}
    return LedgerRegistry([SOURCE], reach=reach, **more)


@pytest.fixture
def app(told: Told, tmp_path: Path) -> Guard:
    return made_app(registry(tmp_path, maximum=12))


def post(app: Guard, **form: str) -> Any:
    body = "&".join(f"{key}={quote(value)}" for key, value in form.items())
    headers = {**HERE, "content-type": "application/x-www-form-urlencoded"}
    return ask(app, f"/l/{ID}/walk", method="POST", content=body, headers=headers)


def test_nothing_is_requested_before_somebody_asks(app: Guard, told: Told) -> None:
    assert "Nothing of this chain has been walked back yet" in ask(app, f"/l/{ID}").text
    found = ask(app, f"/search?q={LAST}&l={ID}")
    assert found.status_code == 404
    assert f'value="{LAST}"' in found.text
    assert "which learns what is looked at" in found.text
    assert ask(app, f"/l/{ID}/coin/{LAST}:0").status_code == 409
    assert told.requests == 0


def test_a_pasted_transaction_is_walked_back_and_shown(app: Guard) -> None:
    done = post(app, coin=f" https://mempool.space/tx/{LAST} ")
    assert done.status_code == 303, done.text
    assert done.headers["location"] == f"/l/{ID}/tx/{LAST}"
    assert ask(app, f"/l/{ID}/tx/{LAST}").status_code == 200
    page = ask(app, f"/l/{ID}/coin/{LAST}:0").text
    assert "not followed further" in page
    assert "Walk further back" in page
    assert "other rules" not in page


def test_walking_further_narrows_the_interval_until_all_is_followed(app: Guard) -> None:
    widths = []
    for _ in range(4):
        assert post(app, coin=f"{LAST}:0", further="1").status_code == 303
        coin = ask(app, f"/api/v1/ledgers/{ID}/coins/{LAST}:0").json()
        widths.append(coin["bits_high"] - coin["bits_low"])
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 0.1 > 1e-6 > widths[-1]
    assert coin["not_followed"] == 0
    assert coin["sources"] == 13
    assert "All of its money was followed" in ask(app, f"/l/{ID}/coin/{LAST}:0").text


def test_the_api_walks_back_too(app: Guard) -> None:
    body = {"coins": [f"{LAST}:1"], "accuracy": 0.1}
    path = f"/api/v1/ledgers/{ID}/walk"
    found = ask(app, path, method="POST", json=body).json()
    (coin,) = found["coins"]
    assert coin["name"] == f"{LAST}:1"
    assert 0 < coin["not_followed"] <= 1
    assert coin["bits_low"] <= coin["bits"] <= coin["bits_high"]
    assert found["transactions"] >= 1
    refused = ask(app, path, method="POST", json={"coins": ["bc1q"]})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "bad-input")
    assert ask(app, f"/l/{ID}").text.count(f'href="/l/{ID}/coin/') == 1


def test_a_wallet_of_addresses_is_found_and_walked_back(told: Told, tmp_path: Path) -> None:
    app = made_app(registry(tmp_path))
    headers = {**HERE, "content-type": "application/x-www-form-urlencoded"}
    page = ask(app, f"/l/{ID}/wallet", method="POST", content=f"coins={ADDRESS}", headers=headers)
    assert page.status_code == 200, page.text
    answer = re.search(r'id="wallet-answer".*', page.text, re.DOTALL)
    assert answer is not None
    assert f'title="{LAST}:0"' in answer[0]


def test_files_are_not_walked_back_and_other_chains_are_refused(tmp_path: Path) -> None:
    (tmp_path / "pay.csv").write_text("from,to,amount\na,b,1\n")
    app = made_app(LedgerRegistry([tmp_path / "pay.csv"]))
    path = "/api/v1/ledgers/pay/walk"
    refused = ask(app, path, method="POST", json={"coins": ["ab" * 32]})
    assert refused.json()["error"]["code"] == "unsupported"
    with pytest.raises(UsageError, match=r"electrum\+ssl"):
        LedgerRegistry(["monero+http://127.0.0.1:18081"])


@pytest.fixture
def site(told: Told, tmp_path: Path) -> Iterator[Site]:
    with running(registry(tmp_path, maximum=12)) as found:
        yield found


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
@pytest.mark.parametrize("dark", [False, True])
def test_people_walk_a_coin_back_in_a_browser(
    site: Site, browsing: Browsing, axe: str, size: tuple[int, int], dark: bool
) -> None:
    page = browsing.open(site, f"/l/{ID}", size=size, dark=dark)
    page.fill("#walk-coin", f"{LAST}:0")
    page.click("#walk button")
    page.wait_for_url(f"**/coin/{LAST}:0")
    expect(page.locator("#origins")).to_contain_text("not followed further")
    assert width_of(page) <= size[0]
    page.evaluate(axe)
    found = page.evaluate("() => axe.run()")
    assert [(v["id"], v["nodes"][0]["html"]) for v in found["violations"]] == []
    before = page.inner_text("#frontier")
    page.click("#frontier button")
    expect(page.locator("#frontier")).not_to_have_text(before, use_inner_text=True)
    page.wait_for_load_state()
    assert page.goto(f"{site.address}/l/{ID}").status == 200
    assert page.locator("#followed tbody tr").count() == 1
    assert width_of(page) <= size[0]
