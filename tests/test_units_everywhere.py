"""Every surface shows money in its unit: all commands, their files, all routes of the page.

Commands and routes are walked, so that a new one that nobody has looked at fails here. The ledger
is so small that no other number on it reaches a million, so that one that does is an amount that
was left in the smallest unit.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from click.testing import CliRunner
from fastapi.routing import APIRoute

import coinhaze
from coinhaze.cli import cli
from coinhaze.explore.query import Settings
from coinhaze.ledger.parquet import write_folder
from coinhaze.units import NOT_KNOWN, unit_named
from coinhaze.web import api
from coinhaze.web.answers import Answers
from coinhaze.web.app import make_app
from coinhaze.web.jobs import JobQueue
from coinhaze.web.pages import forms
from coinhaze.web.pages import routes as pages
from coinhaze.web.registry import LedgerRegistry
from coinhaze.web.security.headers import Hosts
from web.asking import TOKEN, ask

A, B, C, D = ("a" * 64, "b" * 64, "c" * 64, "d" * 64)
MILLIONS = re.compile(r"(?<![\w.])(?:\d{1,3}(?:,\d{3}){2,}|\d{7,})(?![\w.])")
IN_UNIT = re.compile(r"\d BTC\b")
# What each command is asked, and whether it shows amounts. FOLDER is where the ledger is.
LINES: dict[str, tuple[str, bool]] = {
    "compare": ("compare LEDGER -o FOLDER/compared --no-figures", True),
    "desiderata": ("desiderata bits haircut --seeds 2", False),
    "destinations": (f"destinations LEDGER {A}:0", True),
    "growth": ("growth LEDGER --length 2 --walks 5", False),
    "history index": ("history index FOLDER/made.history LEDGER", False),
    "history score": ("history score FOLDER/chain.history --seed 1", True),
    "history show": (f"history show FOLDER/chain.history {D}:0", True),
    "history table": ("history table FOLDER/chain.history --group-by value", True),
    "info": ("info LEDGER", True),
    "knowledge": ("knowledge LEDGER", False),
    "merge": ("merge FOLDER/part.bin", True),
    "origins": (f"origins LEDGER {D}:0", True),
    "robustness": ("robustness LEDGER --tries 2 --seed 1", False),
    "score": ("score LEDGER", True),
    "screen": ("screen LEDGER --listed FOLDER/list.txt", True),
    "shared": (f"shared LEDGER {D}:0 {C}:1", False),
    "sensitivity": ("sensitivity LEDGER", False),
    "since": (f"since LEDGER {D}:0", False),
    "verify": ("verify FOLDER/chain.duckdb", True),
    "wallet": (f"wallet LEDGER --nodes {D}:0 --nodes {C}:1 --amount 1.0", True),
}
# These have no amounts of the ledger to show, or are shown below: what serve serves.
# `history follow` writes JSON with the unit beside balances; its own tests need a node.
NO_LEDGER = {"demo", "lab", "simulate", "ingest", "serve", "history follow"}
FILES = {
    "score": ("score LEDGER -o", (".csv", ".parquet", ".json")),
    "screen": ("screen LEDGER --listed FOLDER/list.txt -o", (".csv", ".parquet", ".json")),
    "history score": ("history score FOLDER/chain.history --seed 1 -o", (".csv", ".parquet")),
    "history table": ("history table FOLDER/chain.history -o", (".csv", ".parquet", ".json")),
    "origins": (f"origins LEDGER {D}:0 -o", (".json",)),
    "destinations": (f"destinations LEDGER {A}:0 -o", (".json",)),
    "wallet": (f"wallet LEDGER --nodes {D}:0 -o", (".json",)),
}
PAPERS = {
    "destinations": (f"destinations LEDGER {A}:0 -o", (".html", ".txt")),
    "origins": (f"origins LEDGER {D}:0 -o", (".html", ".txt")),
    "screen": ("screen LEDGER --listed FOLDER/list.txt -o", (".html",)),
    "wallet": (f"wallet LEDGER --nodes {D}:0 --amount 1.0 -o", (".html", ".txt")),
}


def coins() -> coinhaze.CoinLedger:
    """Two coinbases, one payment that joins them, one on: values that look like no other number."""
    return coinhaze.CoinLedger.from_transactions(
        [
            _paid(1, A, (), [(123_456_789, "ann")]),
            _paid(2, B, (), [(250_000_007, "bob")]),
            _paid(3, C, ((A, 0), (B, 0)), [(211_111_113, "cat"), (150_000_001, "dan")]),
            _paid(4, D, ((C, 0),), [(201_000_009, "eve")]),
        ],
        complete=True,
    )


def _paid(height: int, txid: str, spent: Any, made: Any) -> dict[str, Any]:
    return {
        "txid": txid,
        "height": height,
        "time": 1_000 * height,
        "coinbase": not spent,
        "inputs": [{"txid": t, "vout": v} for t, v in spent],
        "outputs": [{"value": value, "address": owner} for value, owner in made],
    }


def commands(group: click.Command, path: str = "") -> Iterator[str]:
    if not isinstance(group, click.Group):
        yield path
        return
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if not found.hidden:
            yield from commands(found, f"{path} {name}".strip())


def run(line: str, folder: Path) -> Any:
    words = [w.replace("FOLDER", str(folder)) for w in line.split()]
    words = [str(folder / "ledger") if w == "LEDGER" else w for w in words]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, (line, done.output, done.exception)
    return done


def written(folder: Path, unit: str | None) -> Path:
    ledger = coins() if unit is None else replace(coins(), unit=unit_named(unit))
    write_folder(ledger, folder / "ledger")
    (folder / "list.txt").write_text("ann\n")
    run("history index FOLDER/chain.history LEDGER", folder)
    run("history score FOLDER/chain.history --seed 1", folder)
    run("score LEDGER --part 1/1 -o FOLDER/part.bin", folder)
    _ingest(folder)
    return folder


ADDRESS = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"


def _ingest(folder: Path) -> None:
    """Make a store, which is verified: its one address tells its money, or its name nothing."""
    plain = {
        "transactions": {"height": [1], "txid": [A], "coinbase": [True]},
        "outputs": {
            "height": [1], "txid": [A], "vout": [0], "value": [123_456_789], "spendable": [True],
            "owner": [ADDRESS if "unknown" not in folder.name else "ann"],
        },
    }  # fmt: skip
    paths = []
    for name, table in plain.items():
        path = folder / f"{name}.parquet"
        pa.parquet.write_table(pa.table(table), path)
        paths.append(str(path))
    done = CliRunner().invoke(cli, ["ingest", *paths, "-o", str(folder / "chain.duckdb")])
    assert done.exit_code == 0, done.output


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("known"), "BTC")


@pytest.fixture(scope="module")
def unknown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("unknown"), None)


def test_every_command_is_looked_at() -> None:
    found = {name for name in commands(cli) if name not in NO_LEDGER}
    assert found == LINES.keys(), "say what amounts a new command shows, and in what unit"


@pytest.mark.parametrize("name", LINES)
def test_commands_show_amounts_in_their_unit(name: str, known: Path) -> None:
    line, shows = LINES[name]
    done = run(line, known)
    text = " ".join(done.stdout.replace("│", " ").split())
    assert not MILLIONS.findall(text), text
    assert bool(IN_UNIT.search(text)) == shows, text
    assert NOT_KNOWN[:40] not in text


# `history score` says one line, and the table says it.
@pytest.mark.parametrize(
    "name", [name for name, (_, shows) in LINES.items() if shows and name != "history score"]
)
def test_commands_say_that_the_unit_is_not_known(name: str, unknown: Path) -> None:
    line = LINES[name][0].replace("--amount 1.0", "--amount 100000000")
    text = " ".join(run(line, unknown).stdout.replace("│", " ").split())
    assert MILLIONS.search(text), text
    assert NOT_KNOWN[:40] in text, text


@pytest.mark.parametrize(
    ("name", "suffix"), [(name, s) for name, (_, suffixes) in FILES.items() for s in suffixes]
)
def test_files_have_the_exact_integer_and_the_unit(name: str, suffix: str, known: Path) -> None:
    path = known / f"{name.replace(' ', '-')}{suffix}"
    run(f"{FILES[name][0]} {path}", known)
    if suffix == ".json":
        document = json.loads(path.read_text())
        assert "BTC:8" in {document.get("unit"), document["provenance"].get("unit")}
        assert MILLIONS.search(path.read_text().replace('"', " "))
        return
    table = pa.parquet.read_table(path) if suffix == ".parquet" else pa.csv.read_csv(path)
    about = path.with_name(path.name + ".provenance.json")
    text = about.read_text() if suffix == ".csv" else table.schema.metadata[b"coinhaze"].decode()
    assert json.loads(text)["unit"] == "BTC:8"
    amounts = [c for c in table.column_names if _is_money(table[c])]
    assert amounts
    for column in amounts:
        shown = table[f"{column}_shown"].to_pylist()
        exact = [int(v) if v is not None else None for v in table[column].to_pylist()]
        unit = unit_named("BTC")
        assert shown == [None if v is None else f"{unit.number(v)} BTC" for v in exact]


def _is_money(column: pa.ChunkedArray) -> bool:
    values = [str(v) for v in column.to_pylist() if v is not None]
    return any(v.isdigit() and int(v) >= 1_000_000 for v in values)


@pytest.mark.parametrize(
    ("name", "suffix"), [(name, s) for name, (_, suffixes) in PAPERS.items() for s in suffixes]
)
def test_statements_show_amounts_in_their_unit(name: str, suffix: str, known: Path) -> None:
    path = known / f"paper-{name}{suffix}"
    run(f"{PAPERS[name][0]} {path}", known)
    text = html.unescape(re.sub(r"<style>.*?</style>", "", path.read_text(), flags=re.S))
    assert IN_UNIT.search(text)
    assert not MILLIONS.findall(text.replace("1000000", ""))


# The page and its API.


def _app(folder: Path) -> Any:
    registry = LedgerRegistry([folder / "ledger"], lists={"bad": folder / "list.txt"})
    registry.prepare("ledger", Settings(), lambda *_: None)
    return make_app(Answers(registry, jobs=JobQueue(patience=600)), token=TOKEN, hosts=Hosts())


def routes() -> set[str]:
    found = (*pages.router.routes, *forms.router.routes, *api.router.routes)
    return {route.path for route in found if isinstance(route, APIRoute)}


@pytest.fixture(scope="module")
def site(known: Path) -> Any:
    return _app(known)


OTHER = quote(f"{C}:1", safe="")
COIN, PAGE, API = quote(f"{D}:0", safe=""), "/l/ledger", "/api/v1/ledgers/ledger"
# Every route with what to ask of it; None: it has no figures of a ledger, or begins work.
PATHS: dict[str, tuple[str, ...] | None] = {
    "/": ("/",),
    "/search": (f"/search?q={COIN}&l=ledger",),
    "/compare": ("/compare?l=ledger",),
    "/compare.json": ("/compare.json?l=ledger",),
    "/l/{ledger}": (PAGE,),
    "/l/{ledger}/table": (f"{PAGE}/table",),
    "/l/{ledger}/table.{kind}": (f"{PAGE}/table.json", f"{PAGE}/table.csv"),
    "/l/{ledger}/score": None,
    "/l/{ledger}/walk": None,
    "/investigation": None,
    "/l/{ledger}/coin/{name}": (f"{PAGE}/coin/{COIN}", f"{PAGE}/coin/{COIN}?list=bad"),
    "/l/{ledger}/coin/{name}/comparators": (f"{PAGE}/coin/{COIN}/comparators",),
    "/l/{ledger}/coin/{name}/destinations": (f"{PAGE}/coin/{OTHER}/destinations",),
    "/l/{ledger}/coin/{name}/destinations.json": (f"{PAGE}/coin/{OTHER}/destinations.json",),
    "/l/{ledger}/coin/{name}/shared": (f"{PAGE}/coin/{COIN}/shared?other={OTHER}",),
    "/l/{ledger}/{thing}/{name}": (f"{PAGE}/tx/{C}", f"{PAGE}/address/dan", f"{PAGE}/block/3"),
    "/l/{ledger}/wallet": (f"{PAGE}/wallet",),
    "/l/{ledger}/screen": (f"{PAGE}/screen",),  # its answer below
    "/jobs": ("/jobs",),
    "/jobs/{job}/cancel": None,
    "/api/v1/ledgers": ("/api/v1/ledgers",),
    "/api/v1/lists": ("/api/v1/lists",),
    "/api/v1/ledgers/{ledger}": (API,),
    "/api/v1/ledgers/{ledger}/histogram": (f"{API}/histogram",),
    "/api/v1/ledgers/{ledger}/density": (f"{API}/density",),
    "/api/v1/compare": ("/api/v1/compare?l=ledger",),
    "/api/v1/ledgers/{ledger}/coins/{name}": (f"{API}/coins/{COIN}?list=bad",),
    "/api/v1/ledgers/{ledger}/coins/{name}/comparators": (f"{API}/coins/{COIN}/comparators",),
    "/api/v1/ledgers/{ledger}/coins/{name}/origins": (f"{API}/coins/{COIN}/origins",),
    "/api/v1/ledgers/{ledger}/coins/{name}/origins.csv": (f"{API}/coins/{COIN}/origins.csv",),
    "/api/v1/ledgers/{ledger}/coins/{name}/destinations": (f"{API}/coins/{OTHER}/destinations",),
    "/api/v1/ledgers/{ledger}/coins/{name}/shared": (f"{API}/coins/{COIN}/shared?other={OTHER}",),
    "/api/v1/ledgers/{ledger}/search": (f"{API}/search?q={COIN}",),
    "/api/v1/ledgers/{ledger}/addresses/{name}": (f"{API}/addresses/dan",),
    "/api/v1/ledgers/{ledger}/transactions/{name}": (f"{API}/transactions/{C}",),
    "/api/v1/ledgers/{ledger}/blocks/{name}": (f"{API}/blocks/3",),
    "/api/v1/ledgers/{ledger}/table": (f"{API}/table",),
    "/api/v1/ledgers/{ledger}/table.csv": (f"{API}/table.csv",),
    "/api/v1/ledgers/{ledger}/walk": None,
    "/api/v1/ledgers/{ledger}/what-if": (),  # below
    "/api/v1/ledgers/{ledger}/wallet": (),  # below
    "/api/v1/ledgers/{ledger}/screen": (),  # below
    "/api/v1/jobs": None,
    "/api/v1/jobs/{job}": None,
    "/api/v1/jobs/{job}/result": None,
}
TITLE = re.compile(r' title="\d+ of the smallest unit"')
SAME = {"sec-fetch-site": "same-origin", "origin": "http://127.0.0.1:8000"}


def test_every_route_is_looked_at() -> None:
    assert routes() == PATHS.keys(), "say what amounts a new route shows, and in what unit"


@pytest.mark.parametrize("path", [p for paths in PATHS.values() for p in paths or ()])
def test_routes_show_amounts_in_their_unit(path: str, site: Any) -> None:
    found = ask(site, path, follow_redirects=True)
    assert found.status_code == 200, found.text
    assert_in_unit(found)


def assert_in_unit(found: Any) -> None:
    kind = found.headers["content-type"]
    if kind.startswith("text/html"):
        assert not MILLIONS.findall(TITLE.sub("", found.text))
    elif kind.startswith("text/csv"):
        table = pa.csv.read_csv(pa.BufferReader(found.content))
        for column in filter(lambda name: _is_money(table[name]), table.column_names):
            assert all(text.endswith(" BTC") for text in table[f"{column}_shown"].to_pylist())
    else:
        assert kind.startswith("application/json"), kind
        assert not list(_without_unit(found.json()))


def _without_unit(value: Any, unit: str | None = None) -> Iterator[object]:
    """Find numbers of a million and more that have no unit beside them."""
    if isinstance(value, dict):
        for part in value.values():
            yield from _without_unit(part, value.get("unit"))
    elif isinstance(value, list):
        for part in value:
            yield from _without_unit(part)
    elif isinstance(value, int | str) and MILLIONS.fullmatch(str(value)) and unit != "BTC":
        yield value


@pytest.mark.parametrize("amount", ["1.0 BTC", "0.5", "100_000_000 sat", "100000000 sat"])
def test_wallets_take_and_show_amounts_in_their_unit(amount: str, site: Any) -> None:
    question = {"coins": f"{D}:0\n{C}:1", "amount": amount}
    found = ask(site, f"{API}/wallet", method="POST", json=question)
    assert found.status_code == 200, found.text
    assert_in_unit(found)
    expected = "50000000" if amount == "0.5" else "100000000"
    assert found.json()["suggestion"]["amount"]["smallest"] == expected


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        ("1", "'1': write 1 BTC, or 1 sat, to tell which"),
        ("100000000", "write 100000000 BTC, or 100000000 sat, to tell which"),
        ("0,4", "an amount is a number such as 0.05 BTC, not '0,4'"),
    ],
)
def test_an_amount_that_could_be_either_unit_is_refused(amount: str, said: str, site: Any) -> None:
    for path, question in (
        (f"{API}/wallet", {"coins": f"{D}:0", "amount": amount}),
        (f"{API}/screen", {"listed": "nobody", "dust": amount}),
    ):
        found = ask(site, path, method="POST", json=question)
        assert found.status_code == 422, found.text
        assert said in found.json()["error"]["message"]


def test_the_form_reads_plain_numbers_in_the_unit_it_names(site: Any) -> None:
    for amount in ("1", "1.0", "1 BTC", "100_000_000 sat"):
        form = {"coins": f"{D}:0\n{C}:1", "amount": amount}
        page = ask(site, f"{PAGE}/wallet", method="POST", data=form, headers=SAME)
        assert page.status_code == 200, page.text
        assert_in_unit(page)
        assert 'title="100000000 of the smallest unit"' in page.text
    page = ask(site, f"{PAGE}/wallet", method="POST", data=form | {"amount": "1 ETH"}, headers=SAME)
    assert page.status_code == 422
    assert "counts in BTC or sat" in page.text


def test_what_if_shows_amounts_in_their_unit(site: Any) -> None:
    found = ask(site, f"{API}/what-if", method="POST", json={"coins": [f"{D}:0", f"{C}:1"]})
    assert found.status_code == 200, found.text
    assert_in_unit(found)


def test_a_page_of_unknown_money_says_so(unknown: Path) -> None:
    site = _app(unknown)
    for path in (PAGE, f"{PAGE}/coin/{COIN}", f"{PAGE}/table"):
        assert "smallest unit, since it does not say" in html.unescape(ask(site, path).text)


def test_a_served_ledger_can_be_given_its_unit(unknown: Path) -> None:
    registry = LedgerRegistry([unknown / "ledger"], units={"ledger": "GEM:2"})
    registry.prepare("ledger", Settings(), lambda *_: None)
    assert registry.card("ledger").unit == "GEM"
    app = make_app(Answers(registry, jobs=JobQueue(patience=600)), token=TOKEN, hosts=Hosts())
    assert "GEM" in ask(app, f"{PAGE}/coin/{COIN}").text
    with pytest.raises(coinhaze.UsageError, match="no ledger 'other'"):
        LedgerRegistry([unknown / "ledger"], units={"other": "GEM:2"})


def test_screenings_take_and_show_amounts_in_their_unit(site: Any) -> None:
    # Nobody holds so little listed money by any rule but poison: it is dust.
    for dust in ("1.5", "1.5 BTC", "150_000_000 sat"):
        form = {"list": "bad", "nodes": f"{D}:0\n{C}:1", "dust": dust}
        page = ask(site, f"{PAGE}/screen", method="POST", data=form, headers=SAME)
        assert page.status_code == 200, page.text
        assert_in_unit(page)
        assert "below 1.5 BTC each" in page.text
        assert "2.01000009 BTC" in page.text
        paper = ask(
            site, f"{PAGE}/screen", method="POST", data={**form, "kind": "html"}, headers=SAME
        )
        text = re.sub(r"<style>.*?</style>", "", paper.text, flags=re.S)
        # What was typed is in the command that makes the same.
        assert not MILLIONS.findall(text.replace("150_000_000", ""))
    reply = ask(site, f"{API}/screen", method="POST", json={"list": "bad", "dust": "1.5 BTC"})
    document = reply.json()
    assert document["dust"] == 150_000_000
    assert document["provenance"]["unit"] == "BTC:8"
    for row in document["nodes"]:
        assert row["balance_shown"] == f"{unit_named('BTC').number(int(row['balance']))} BTC"
