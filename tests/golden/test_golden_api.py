"""The API's schema and its answers on small ledgers, against those that are stored."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coinhaze.web.app import make_app
from coinhaze.web.registry import LedgerRegistry
from coinhaze.web.security.guard import Guard
from web.asking import TOKEN, answered, ask

COIN = f"{8:064x}:0"
SAVED = f"{5:064x}:1"

COINS = f"""
/ledgers
/lists
/ledgers/coins
/ledgers/coins?policy=uniform
/ledgers/coins/histogram
/ledgers/coins/density
/ledgers/coins/coins/{COIN}
/ledgers/coins/coins/{COIN}?policy=poison&list=known
/ledgers/coins/coins/{COIN}?policy=fifo&by=time
/ledgers/coins/coins/{COIN}?policy=lifo&top=1
/ledgers/coins/coins/{COIN}?policy=uniform&list=known
/ledgers/coins/coins/dave?view=address
/ledgers/coins/coins/{COIN}/comparators
/ledgers/coins/coins/{SAVED}/destinations
/ledgers/coins/coins/{COIN}/origins
/ledgers/coins/coins/{COIN}/origins?limit=1
/ledgers/coins/coins/{COIN}/origins.csv
/ledgers/coins/search?q=bob
/ledgers/coins/search?q={COIN}
/ledgers/coins/search?q=nothing
/ledgers/coins/addresses/bob
/ledgers/coins/transactions/{4:064x}
/ledgers/coins/blocks/4
/ledgers/coins/table
/ledgers/coins/table?sort=amount&limit=2&bits_low=0.5
/ledgers/coins/table.csv
/compare?l=coins,pay
/ledgers/coins/coins/nobody
/ledgers/coins/what-if {{"coins": ["{COIN}", "{SAVED}"], "list": "known"}}
/ledgers/coins/wallet {{"coins": "{COIN}\\n{SAVED}", "exposed": "miner2", "amount": "40000"}}
"""

ACCOUNTS = """
/ledgers/pay
/ledgers/pay?time=stationary
/ledgers/pay/coins/carol
/ledgers/pay/coins/carol?time=temporal
/ledgers/pay/coins/carol?policy=fifo
/ledgers/pay/coins/carol?policy=poison&list=thefts
/ledgers/pay/coins/carol/comparators
/ledgers/pay/search?q=shop
/ledgers/pay/addresses/shop
/ledgers/pay/table
/ledgers/pay/table?policy=haircut&list=thefts&sort=name
"""


@pytest.fixture
def app(folder: Path) -> Guard:
    """Two ledgers with lists and labels, both scored."""
    registry = LedgerRegistry(
        [folder / "coins", folder / "pay.csv"],
        lists={"known": folder / "coins_listed.txt", "thefts": folder / "pay_listed.txt"},
        labels=[folder / "coins_labels.csv", folder / "pay_labels.csv"],
    )
    return make_app(registry, token=TOKEN)


def answers(app: Guard, lines: str) -> dict[str, Any]:
    return {line: answer(app, line) for line in lines.strip().splitlines()}


def answer(app: Guard, line: str) -> dict[str, Any]:
    """Send a request, with a body if the line has one, until no job works on it any more."""
    path, _, body = line.partition(" ")
    more: dict[str, Any] = {"method": "POST", "json": json.loads(body)} if body else {}
    got = answered(lambda: ask(app, f"/api/v1{path}", **more))
    is_json = got.headers["content-type"].startswith("application/json")
    return {"status": got.status_code, "shown": got.json() if is_json else got.text.splitlines()}


def score(app: Guard, ledger: str) -> None:
    """Have a ledger scored, and wait for it."""
    job = ask(app, "/api/v1/jobs", method="POST", json={"ledger": ledger}).json()
    until = time.monotonic() + 600
    while (found := ask(app, f"/api/v1/jobs/{job['id']}").json())["state"] != "done":
        assert found["error"] is None, found
        assert time.monotonic() < until
        time.sleep(0.05)


def test_answers_are_those_stored(app: Guard, agree: Callable[[str, Any], None]) -> None:
    for ledger in ("coins", "pay"):
        score(app, ledger)
    agree("api_coins", answers(app, COINS))
    agree("api_accounts", answers(app, ACCOUNTS))


def test_the_schema_is_the_one_stored(app: Guard, agree: Callable[[str, Any], None]) -> None:
    agree("api_schema", ask(app, "/api/v1/openapi.json").json())
