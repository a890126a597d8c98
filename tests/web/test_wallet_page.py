"""The wallet's page: parties that know the same coins, and answers that take long."""

from __future__ import annotations

import re
import time
from pathlib import Path
from urllib.parse import urlencode

import httpx2
import pytest

import coinhaze
from coinhaze.explore.query import OF_JOB, page_of, wallet_link
from coinhaze.ledger.parquet import write_folder
from coinhaze.web.answers import Answers
from coinhaze.web.app import make_app
from coinhaze.web.jobs import JobQueue
from coinhaze.web.registry import LedgerRegistry
from coinhaze.web.security.guard import Guard
from coinhaze.web.security.headers import Hosts
from web.asking import TOKEN, ask

PAYERS = 9
FORM = {
    "content-type": "application/x-www-form-urlencoded",
    "sec-fetch-site": "same-origin",
    "origin": "http://127.0.0.1:8000",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A payment of many addresses to one person, who has a coin of somebody else's as well."""
    spent = [
        {"txid": f"{k:064x}", "vout": 0, "value": 10, "address": f"payer{k}"} for k in range(PAYERS)
    ]
    alone = {"txid": "f" * 64, "vout": 0, "value": 10, "address": "friend"}
    ledger = coinhaze.CoinLedger.from_transactions(
        [
            {"txid": "a" * 64, "inputs": spent, "outputs": [{"value": 90, "address": "mine"}]},
            {"txid": "b" * 64, "inputs": [alone], "outputs": [{"value": 9, "address": "also"}]},
        ]
    )
    made = tmp_path_factory.mktemp("wallet")
    write_folder(ledger, made / "pay")
    write_folder(ledger, made / "same")
    return made


def app_of(folder: Path, patience: float = 120.0) -> Guard:
    registry = LedgerRegistry([folder / "pay", folder / "same"])
    return make_app(Answers(registry, jobs=JobQueue(patience=patience)), token=TOKEN, hosts=Hosts())


def weigh(app: Guard, *coins: str, known: str = "") -> httpx2.Response:
    body = urlencode({"coins": "\n".join(coins), "known": known})
    return ask(app, "/l/pay/wallet", method="POST", content=body, headers=FORM)


def finished(app: Guard, path: str) -> httpx2.Response:
    until = time.monotonic() + 120
    while (page := ask(app, path)).status_code == 202:
        assert time.monotonic() < until
        time.sleep(0.05)
    return page


MINE = ("a" * 64 + ":0", "b" * 64 + ":0")


def test_parties_that_know_the_same_coins_share_a_row(folder: Path) -> None:
    known = "".join(f"payer{k},{MINE[0]}\n" for k in range(PAYERS))
    page = weigh(app_of(folder), *MINE, known=f"party,coin\n{known}friend,{MINE[1]}\n").text
    parties = page[page.index('id="parties"') :].split("</section>")[0]
    rows = re.findall(r'<tr><td data-head="Party">(.*?)</td>', parties)
    assert len(rows) == 2
    (many,) = (row for row in rows if "friend" not in row)
    assert [f"payer{k}" in many for k in range(PAYERS)] == [True] * PAYERS
    shown, folded = many.split("<details>")
    assert f"{PAYERS - 3} more parties" in folded
    assert shown.count("payer") == 3


def test_a_wallet_that_takes_long_comes_at_its_own_address(folder: Path) -> None:
    app = app_of(folder, patience=0.0)
    begun = weigh(app, *MINE)
    assert begun.status_code == 303
    at = begun.headers["location"]
    page = finished(app, at)
    assert page.status_code == 200
    assert 'id="wallet-answer"' in page.text
    assert "\n".join(MINE) + "</textarea>" in page.text
    assert f'href="{at}"' in ask(app, "/jobs").text
    assert ask(app, at.replace("/pay/", "/same/")).status_code == 404
    assert ask(app, wallet_link("pay", job="0123456789abcdef")).status_code == 404
    assert page_of("pay", "wallet", ()) == wallet_link("pay") + OF_JOB


def test_what_a_long_search_refuses_is_said(folder: Path) -> None:
    app = app_of(folder, patience=0.0)
    begun = weigh(app, "a" * 64 + ":7")
    page = begun if begun.status_code != 303 else finished(app, begun.headers["location"])
    assert page.status_code in (404, 422)
    assert "could not be weighed" in page.text
