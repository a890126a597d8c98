"""Screening on the page: the figures and files of `coinhaze screen`, and what it refuses."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import coinhaze
from coinhaze.cli import cli
from coinhaze.errors import UsageError
from coinhaze.explore.explorer import Explorer
from coinhaze.explore.query import MAX_TEXT, ScreenQuery
from coinhaze.explore.screening import MAX_NODES
from coinhaze.ledger.parquet import write_folder
from coinhaze.simulate import simulate_town
from coinhaze.solve.planner import thresholds
from coinhaze.web.answers import Answers
from coinhaze.web.app import make_app
from coinhaze.web.jobs import JobQueue
from coinhaze.web.registry import LedgerRegistry
from coinhaze.web.security.guard import Guard
from coinhaze.web.security.headers import Hosts
from web.asking import BASE, TOKEN, answered, ask

SAME = {"sec-fetch-site": "same-origin", "origin": BASE}
# carol is paid by the thief after she paid the shop: only stationary gives the shop any of it.
PAY = (
    "from,to,value\nthief,dave,2\ndave,carol,1\nbob,carol,3\ncarol,shop,2\nthief,carol,4\n"
    "carol,eve,1\nshop,bob,1\n"
)
HOSTILE = "<b onclick=n>\" onclick='n"
DATE = "1700000000"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger of coins, one of accounts, one with a hostile name, and lists."""
    found = tmp_path_factory.mktemp("screening")
    write_folder(simulate_town(transactions=200, people=20), found / "town")
    (found / "pay.csv").write_text(PAY)
    (found / "bad.txt").write_text("# made up\nthief\nzoe\nminer0\nperson3\n")
    (found / "named.csv").write_text("address,name,programme\nthief,A Group,CYBER2\n")
    rows = [(HOSTILE, "shop", 5), ("shop", f"{HOSTILE}2", 3)]
    write_folder(coinhaze.AccountLedger.from_transfers(rows), found / "evil")
    return found


@pytest.fixture(scope="module")
def app(folder: Path) -> Guard:
    return made(folder)


def made(folder: Path, patience: float = 120.0) -> Guard:
    registry = LedgerRegistry(
        [folder / "town", folder / "pay.csv", folder / "evil"],
        lists={"bad": folder / "bad.txt", "named": folder / "named.csv"},
    )
    answers = Answers(registry, jobs=JobQueue(patience=patience))
    return make_app(answers, token=TOKEN, hosts=Hosts())


def command(monkeypatch: pytest.MonkeyPatch, *words: object) -> str:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", DATE)
    found = CliRunner().invoke(cli, ["screen", *map(str, words)])
    assert found.exit_code in (0, 10), found.output
    return found.stdout


def by_api(app: Guard, ledger: str, **given: Any) -> Any:
    path = f"/api/v1/ledgers/{ledger}/screen"
    return ask(app, path, method="POST", json=given)


def by_form(app: Guard, ledger: str, **given: str) -> Any:
    return ask(app, f"/l/{ledger}/screen", method="POST", data=given, headers=SAME)


def without_command(document: Any) -> Any:
    del document["provenance"]["command"]
    return document


def a_transaction(folder: Path) -> str:
    ledger = coinhaze.read(folder / "town")
    assert isinstance(ledger, coinhaze.CoinLedger)
    return str(ledger.txids[-1])


# What is requested of the API, and the same of the command.
CASES: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "accounts": ("pay", {}, ()),
    "accounts, all at once": ("pay", {"time": "stationary"}, ("--time", "stationary")),
    "one account": ("pay", {"nodes": "carol\n"}, ("--nodes", "carol")),
    "limit and case": (
        "pay",
        {"limit": 0.01, "dust": "1", "case": "7/26", "analyst": "A. B."},
        ("--limit", "0.01", "--dust", "1", "--case", "7/26", "--analyst", "A. B."),
    ),
    "coins": ("town", {}, ()),
    "an address and a hash": (
        "town",
        {"nodes": "person1\nHASH"},
        ("--nodes", "person1", "--nodes", "HASH"),
    ),
    "addresses": ("town", {"view": "address"}, ("--view", "address")),
}


@pytest.mark.parametrize("name", CASES)
def test_the_api_gives_what_the_command_prints(
    app: Guard, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    ledger, given, words = CASES[name]
    hashed = a_transaction(folder)
    given = {k: v.replace("HASH", hashed) if k == "nodes" else v for k, v in given.items()}
    words = tuple(hashed if word == "HASH" else word for word in words)
    source = folder / ("town" if ledger == "town" else "pay.csv")
    printed = command(monkeypatch, source, "--listed", folder / "bad.txt", *words, "--json")
    expected = without_command(json.loads(printed))
    assert expected["match"], "a case that finds nothing compares little"
    reply = by_api(app, ledger, list="bad", **given)
    assert reply.status_code == 200, reply.text
    assert without_command(reply.json()) == expected


def test_shares_are_temporal_unless_another_time_is_chosen(app: Guard) -> None:
    def share(**given: Any) -> float:
        rows = by_api(app, "pay", list="bad", nodes="shop", **given).json()["nodes"]
        return float(rows[0]["haircut_share"])

    assert share() < share(time="stationary")


@pytest.mark.parametrize("kind", ["html", "csv", "json"])
@pytest.mark.parametrize("ledger", ["pay", "town"])
def test_files_are_those_that_the_command_writes(
    app: Guard,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ledger: str,
    kind: str,
) -> None:
    path = tmp_path / f"statement.{kind}"
    source = folder / ("town" if ledger == "town" else "pay.csv")
    listed = {"pay": "named.csv", "town": "bad.txt"}[ledger]
    command(monkeypatch, source, "--listed", folder / listed, "-o", path)
    reply = by_form(app, ledger, list=listed.partition(".")[0], kind=kind)
    assert reply.status_code == 200
    assert reply.headers["content-disposition"].startswith(f'attachment; filename="{ledger}-')
    if kind == "csv":
        assert reply.content == path.read_bytes()
    elif kind == "json":
        assert without_command(reply.json()) == without_command(json.loads(path.read_text()))
    else:
        made = re.compile(r"(?<=<p>)coinhaze [0-9.]+: [^<]+")
        assert made.sub("", reply.text) == made.sub("", path.read_text())
        assert "on its page; the same: coinhaze screen " in reply.text


def text_of(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


def test_the_page_has_the_statement_with_the_verdict_first(app: Guard) -> None:
    page = by_form(app, "pay", list="named", limit="0.01", case="7/26", analyst="A. B.").text
    said = text_of(page[page.index('id="screen-answer"') :])
    expected = by_api(app, "pay", list="named", limit=0.01).json()
    order = [
        *expected["verdict"],
        "case 7/26 analyst A. B. date",
        f"SHA-256 of the list {expected['provenance']['list']['sha256']}",
        "completeness not checkable",
        "method haircut, poison, fifo, lifo; account view, time temporal",
        "haircut: money mixes",
        "poison: one listed unit",
        "no share is off by more than",
        "Annex: ",
        "A Group",
        "It is no proof that the holder",
    ]
    places = [said.find(words) for words in order]
    assert -1 not in places, dict(zip(order, places, strict=True))
    assert places == sorted(places)
    assert 'data-above="true"' in page
    for row in expected["nodes"]:
        assert f"{row['haircut_share']:.2%}" in said
    assert "annex" not in said[: said.index("Annex")]
    assert re.search(r'<details class="[^"]*" id="annex">', page), "the annex is folded"


def test_no_match_is_a_result(app: Guard) -> None:
    reply = by_form(app, "pay", listed="nobody\r\nnowhere\r\n")
    assert reply.status_code == 200
    assert "No match: none of the 2 listed names is in this ledger" in text_of(reply.text)
    assert 'data-match="false"' in reply.text
    document = by_api(app, "pay", listed="nobody").json()
    assert document["match"] is False
    assert {row["haircut_share"] for row in document["nodes"]} == {0.0}


def test_a_pasted_list_has_the_digest_of_its_file(app: Guard, folder: Path) -> None:
    text = (folder / "bad.txt").read_text()
    by_name = by_api(app, "pay", list="bad").json()
    for sent in (text, text.replace("\n", "\r\n")):
        pasted = by_api(app, "pay", listed=sent).json()
        lists = [found["provenance"]["list"] for found in (pasted, by_name)]
        assert lists[0]["sha256"] == lists[1]["sha256"]
        assert pasted["nodes"] == by_name["nodes"]
    digest = by_name["provenance"]["list"]["sha256"]
    assert digest in by_form(app, "pay", listed=text.replace("\n", "\r\n")).text


def test_a_file_of_the_ledger_that_changed_is_not_stated(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text(PAY)
    app = make_app(
        Answers(LedgerRegistry([tmp_path / "own.csv"]), jobs=JobQueue(patience=120)), token=TOKEN
    )
    stated = by_api(app, "own", listed="thief").json()["provenance"]["inputs"]
    assert [found["file"] for found in stated] == ["own.csv"]
    explorer = app.app.state.answers.registry.explorer("own")  # type: ignore[attr-defined]
    (tmp_path / "own.csv").write_text(PAY + "eve,dan,1\n")
    found = explorer.screen(ScreenQuery(listed="thief"))
    assert found.provenance["inputs"] == []


def test_the_unit_that_was_named_is_used(folder: Path) -> None:
    registry = LedgerRegistry([folder / "pay.csv"], units={"pay": "GEM:1"})
    app = make_app(Answers(registry, jobs=JobQueue(patience=120)), token=TOKEN)
    rows = by_api(app, "pay", listed="thief", nodes="carol", dust="9.9").json()
    assert rows["dust"] == 99
    assert rows["nodes"][0]["balance_shown"] == "0.5 GEM"
    # The form reads a plain number in the unit that it names.
    page = by_form(app, "pay", listed="thief", dust="9.9").text
    assert "dust, below 9.9 GEM each" in text_of(page)


# What is refused, and by which words.
WRONG: dict[str, tuple[dict[str, str], int, str]] = {
    "no list": ({}, 422, "no list: choose one"),
    "two lists": ({"list": "bad", "listed": "thief"}, 422, "two lists"),
    "a list that is not there": ({"list": "other"}, 404, "no list 'other'"),
    "a node that is not there": ({"list": "bad", "nodes": "carol\nnobody"}, 404, "nobody"),
    "a limit that is none": ({"list": "bad", "limit": "2"}, 400, "limit"),
    "dust that is none": ({"list": "bad", "dust": "much"}, 400, "dust"),
    "another network": ({"listed": "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "nodes": "x"}, 404, "x"),
    "only comments": ({"listed": "# none\n"}, 422, "lists no name"),
    "a kind of file that is none": ({"list": "bad", "kind": "exe"}, 400, "kind"),
    "too many nodes": (
        {"list": "bad", "nodes": "\n".join(f"n{k}" for k in range(MAX_NODES + 1))},
        422,
        "501 names",
    ),
    "too long a list": ({"listed": "x" * (MAX_TEXT + 1)}, 400, "listed"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named_and_the_form_stays(app: Guard, name: str) -> None:
    given, status, words = WRONG[name]
    reply = by_form(app, "pay", **given)
    assert reply.status_code == status, reply.text[:500]
    assert 'role="alert"' in reply.text
    assert words in text_of(reply.text)
    assert 'id="screen-answer"' not in reply.text
    if "kind" not in given:
        api = by_api(app, "pay", **given)
        assert api.status_code == status
        assert words in api.json()["error"]["message"]


def test_a_body_above_the_limit_is_refused(app: Guard) -> None:
    assert by_form(app, "pay", listed="x\n" * (2 << 20)).status_code == 413


def test_another_site_cannot_screen(app: Guard) -> None:
    for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}):
        for path in ("/l/pay/screen", "/api/v1/ledgers/pay/screen"):
            reply = ask(app, path, method="POST", data={"list": "bad"}, headers=headers)
            assert reply.status_code == 403
    assert ask(app, "/l/pay/screen", token=False).status_code == 401


def test_names_are_text(app: Guard) -> None:
    given = {"listed": HOSTILE, "nodes": f"{HOSTILE}2", "case": HOSTILE, "analyst": HOSTILE}
    page = by_form(app, "evil", **given)
    assert page.status_code == 200
    assert 'id="screen-answer"' in page.text
    wrong = by_form(app, "evil", **{**given, "nodes": f"{HOSTILE}3"})
    prefilled = ask(app, "/l/evil/screen", params={"nodes": HOSTILE, "list": HOSTILE})
    paper = by_form(app, "evil", **given, kind="html")
    for reply in (page, wrong, prefilled, paper):
        assert "onclick" in reply.text
        assert "<b onclick" not in reply.text
        assert not re.search(r"""<[a-z][^>]*["'] onclick='""", reply.text)
    assert paper.headers["content-disposition"].startswith("attachment")


def test_what_is_pasted_stays_out_of_addresses(app: Guard) -> None:
    page = by_form(app, "pay", listed="thief", nodes="carol").text
    assert not re.search(r'(href|action)="[^"]*(listed=|nodes=)', page)
    # What was requested is with the buttons of its files, whatever the form says by then.
    form = page[page.index('class="row downloads"') :]
    assert '<input type="hidden" name="nodes" value="carol">' in form
    assert '<input type="hidden" name="listed" value="thief">' in form


def test_pages_lead_to_it(app: Guard) -> None:
    assert 'href="/l/pay/screen"' in ask(app, "/l/pay").text
    coin = ask(app, "/l/pay/coin/carol?time=stationary").text
    found = re.search(r'href="(/l/pay/screen\?[^"]*)">screening statement', coin)
    assert found
    form = ask(app, html.unescape(found[1])).text
    assert ">carol</textarea>" in form
    assert re.search(r'<option value="bad@[0-9a-f]+" selected>', form)
    assert '<option value="stationary" selected>' in form


def test_a_statement_that_takes_long_comes_at_its_own_address(folder: Path) -> None:
    app = made(folder, patience=0.0)
    begun = by_form(app, "town", list="bad")
    assert begun.status_code == 303
    page = answered(lambda: ask(app, begun.headers["location"]))
    assert page.status_code == 200
    assert 'id="verdict"' in page.text
    assert f'href="{begun.headers["location"]}"' in ask(app, "/jobs").text
    assert ask(app, "/l/pay/screen?job=0123456789abcdef").status_code == 404
    other = begun.headers["location"].replace("/town/", "/pay/")
    assert ask(app, other).status_code == 404


def test_a_job_that_met_an_error_says_it(folder: Path) -> None:
    app = made(folder, patience=0.0)
    begun = by_form(app, "town", list="bad", nodes="nobody at all")
    assert begun.status_code == 303
    page = answered(lambda: ask(app, begun.headers["location"]))
    assert "nobody at all" in text_of(page.text)


def test_a_large_ledger_is_screened_by_names(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    explorer = Explorer(coinhaze.read(folder / "pay.csv"))
    monkeypatch.setattr(thresholds, "MAX_VIEW_NODES", 3)
    with pytest.raises(UsageError, match="name those to screen"):
        explorer.screen(ScreenQuery(listed="thief"))
    assert explorer.screen(ScreenQuery(listed="thief", nodes="carol")).match


def test_a_ledger_that_hides_amounts_has_no_form(tmp_path: Path) -> None:
    ledger = coinhaze.CoinLedger.from_transactions(
        [{"txid": "m", "outputs": 2}, {"txid": "t", "rings": [["m:0", "m:1"]], "outputs": 1}]
    )
    write_folder(ledger, tmp_path / "rings")
    registry = LedgerRegistry([tmp_path / "rings"])
    app = make_app(Answers(registry, jobs=JobQueue(patience=120)), token=TOKEN)
    assert ask(app, "/l/rings").status_code == 200
    page = ask(app, "/l/rings/screen").text
    assert 'id="no-screening"' in page
    assert "<textarea" not in page
    assert "/l/rings/screen" not in ask(app, "/l/rings").text
    assert "hides amounts" in by_api(app, "rings", listed="x").json()["error"]["message"]
