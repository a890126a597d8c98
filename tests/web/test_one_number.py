"""The same account and list have one exposure wherever they are looked at, and say how."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import coinhaze
from coinhaze.cli import cli
from coinhaze.screening.screen import screen
from coinhaze.web.registry import LedgerRegistry
from web.asking import ask, made_app

# carol is paid by the thief after she paid the shop: only stationary gives the shop any of it.
TOWN = (
    "from,to,value\nthief,dave,2\ndave,carol,1\nbob,carol,3\ncarol,shop,2\nthief,carol,4\n"
    "carol,eve,1\nshop,bob,1\n"
)
DAI = "0x39755357759ce0d7f32dc8dc45414cca409ae24e"
DAI_LISTED = "0x3e5d6e1472c9331b5695b428d8006040e2e8a754"


@dataclass(frozen=True)
class Case:
    """A ledger, a list, an account, and its exposure in order of time and all at once."""

    ledger: Path
    listed: Path
    account: str
    temporal: float
    stationary: float

    @property
    def name(self) -> str:
        return self.listed.read_text().strip()


@pytest.fixture(scope="module", params=["town", pytest.param("dai", marks=pytest.mark.long)])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    folder = tmp_path_factory.mktemp("one")
    listed = folder / "bad.txt"
    path = folder / "ledger.csv"
    if request.param == "town":
        path.write_text(TOWN)
        account, name = "shop", "thief"
    else:
        data = os.environ.get("COINHAZE_DATA")
        if not data:
            pytest.skip("COINHAZE_DATA is not set: no day of DAI to read")
        source = Path(data, "erc20_dai_2019_12_12", "dai_transfers.csv.gz")
        path.write_bytes(gzip.decompress(source.read_bytes()))
        account, name = DAI, DAI_LISTED
    listed.write_text(name + "\n")
    ledger = coinhaze.read(path)
    shares = []
    for time in ("temporal", "stationary"):
        graph = coinhaze.transaction_graph(ledger, time=time)
        exposure = coinhaze.score(graph, listed=[name], nodes=[account]).exposure
        assert exposure is not None
        shares.append(float(exposure[0]))
    assert abs(shares[0] - shares[1]) > 0.02, "the two readings must differ"
    return Case(path, listed, account, shares[0], shares[1])


def command(*words: object) -> Any:
    found = CliRunner().invoke(cli, [str(word) for word in words])
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)


def by_screen(case: Case, *more: str) -> float:
    found = command(
        "screen", case.ledger, "--listed", case.listed, "--nodes", case.account, "--json", *more
    )
    return float(found["nodes"][0]["haircut_share"])


def by_score(case: Case, *more: str) -> float:
    rows = command("score", case.ledger, "--listed", case.listed, "--all", "--json", *more)
    scores = rows["scores"]
    return float(next(row["exposure"] for row in scores if row["node"] == case.account))


def by_origins(case: Case, *more: str) -> float:
    found = command("origins", case.ledger, case.account, "--listed", case.listed, "--json", *more)
    return 1 - float(
        sum(row["probability"] for row in found["sources"] if row["source"] == "elsewhere")
    )


def by_python(case: Case, **more: Any) -> float:
    found = coinhaze.score(case.ledger, listed=[case.name], nodes=[case.account], **more)
    assert found.exposure is not None
    return float(found.exposure[0])


def by_python_screen(case: Case, **more: Any) -> float:
    found = screen(str(case.ledger), [case.name], nodes=[case.account], paths=0, **more)
    return float(found.shares["haircut"][0])


@pytest.fixture(scope="module")
def options(case: Case) -> Callable[[str], Any]:
    """Ask a server of the ledger for an address."""
    registry = LedgerRegistry([case.ledger], lists={"bad": case.listed})
    app = made_app(registry)

    def found(path: str) -> Any:
        answer = ask(app, path)
        assert answer.status_code == 200, answer.text
        return answer

    return found


def fact(html: str) -> str:
    """Give the words of the page's fact on exposure."""
    found = re.search(r'id="fact-exposure".*?</div>', html, re.S)
    assert found is not None
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", found[0]))


def test_exposure_is_one_number_everywhere(case: Case, options: Callable[[str], Any]) -> None:
    told = {
        "screen": by_screen(case),
        "score --listed": by_score(case),
        "origins --listed": by_origins(case),
        "Python score": by_python(case),
        "Python screen": by_python_screen(case),
    }
    api = "/api/v1/ledgers/ledger"
    coin = options(f"{api}/coins/{case.account}?list=bad").json()["exposure"]
    told["API"] = coin["share"]
    rows = options(f"{api}/table?list=bad&limit=1000").json()["rows"]
    table = {row["name"]: row["exposure"] for row in rows}
    if case.account in table:
        told["API table"] = table[case.account]
    group = options(f"{api}/addresses/{case.account}?list=bad").json()
    told["API address"] = group["exposure"]["share"]
    rules = options(f"{api}/coins/{case.account}/comparators?list=bad").json()["rules"]
    told["API rules"] = next(r["exposure"] for r in rules if r["policy"] == "haircut")
    assert told == pytest.approx(dict.fromkeys(told, case.temporal), abs=1e-9)
    page = options(f"/l/ledger/coin/{case.account}").text  # the page asks of the first list itself
    words = fact(page)
    assert f"{100 * case.temporal:.1f} %" in words
    assert "accounts, in order of time, haircut" in words
    assert f"{100 * case.stationary:.1f} %" not in words


def test_a_time_that_is_chosen_rules(case: Case, options: Callable[[str], Any]) -> None:
    told = {
        "screen": by_screen(case, "--time", "stationary"),
        "score": by_score(case, "--time", "stationary"),
        "origins": by_origins(case, "--time", "stationary"),
        "Python": by_python(case, time="stationary"),
    }
    answer = options(f"/api/v1/ledgers/ledger/coins/{case.account}?list=bad&time=stationary").json()
    told["API"] = answer["exposure"]["share"]
    assert told == pytest.approx(dict.fromkeys(told, case.stationary), abs=1e-9)
    assert answer["exposure"]["time"] == "stationary"
    words = fact(options(f"/l/ledger/coin/{case.account}?time=stationary").text)
    assert f"{100 * case.stationary:.1f} %" in words
    assert "all at once" in words


def test_a_list_leaves_bits_as_they_are(case: Case, options: Callable[[str], Any]) -> None:
    path = f"/api/v1/ledgers/ledger/coins/{case.account}"
    alone, beside = options(path).json(), options(f"{path}?list=bad").json()
    own = coinhaze.score(case.ledger, nodes=[case.account])
    assert alone["bits"] == beside["bits"] == pytest.approx(float(own.bits[0]), abs=1e-9)
    assert beside["settings"]["time"] == "stationary"
    assert (beside["exposure"]["view"], beside["exposure"]["time"]) == ("account", "temporal")
    page = options(f"/l/ledger/coin/{case.account}").text
    assert "Read by accounts, all at once, haircut" in page
    # What the flow does not follow it does not draw, and it says where to see it.
    assert not any(node["listed"] for node in beside["flow"]["nodes"])
    assert any("exposure follows them in order of time" in note for note in beside["notes"])
    in_time = options(f"{path}?list=bad&time=temporal").json()
    assert any(node["listed"] for node in in_time["flow"]["nodes"])


def test_poison_is_in_order_of_time_too(case: Case, options: Callable[[str], Any]) -> None:
    found = command(
        "screen", case.ledger, "--listed", case.listed, "--nodes", case.account, "--json",
        "--policy", "poison",
    )  # fmt: skip
    touched = float(found["nodes"][0]["poison_share"]) > 0
    path = f"/api/v1/ledgers/ledger/coins/{case.account}"
    answer = options(f"{path}?list=bad&policy=poison").json()
    assert answer["exposure"]["touched"] is touched
    assert answer["exposure"]["time"] == "temporal"
    rules = options(f"{path}/comparators?list=bad").json()["rules"]
    assert next(r["touched"] for r in rules if r["policy"] == "poison") is touched


def test_every_output_says_how_it_is_read(case: Case) -> None:
    runner = CliRunner()
    files = [str(case.ledger), "--listed", str(case.listed)]
    reading = "account view, time temporal"
    for words in (
        ["screen", *files, "--nodes", case.account],
        ["score", *files],
        ["origins", str(case.ledger), case.account, "--listed", str(case.listed)],
    ):
        found = runner.invoke(cli, words, env={"COLUMNS": "300"})
        assert found.exit_code == 0, found.output
        assert reading in found.stdout, words[0]
    for words in (
        ["screen", *files, "--nodes", case.account, "--json"],
        ["origins", str(case.ledger), case.account, "--listed", str(case.listed), "--json"],
    ):
        document = command(*words)
        assert (document["view"], document["time"]) == ("account", "temporal")
        assert document["policy"] in ("proportional", ["haircut", "poison", "fifo", "lifo"])
    summary = command("score", *files, "--json")["summary"]
    told = summary["view"], summary["time"], summary["policy"]
    assert told == ("account", "temporal", "proportional")


def test_what_is_assumed_is_called_so(case: Case, options: Callable[[str], Any]) -> None:
    graph = coinhaze.transaction_graph(coinhaze.read(case.ledger), time="temporal")
    holds = graph.closing[graph.names.node(case.account)]  # type: ignore[index]
    # By a slow twin: the lowest the account ever stood without it.
    ledger = graph.ledger
    assert isinstance(ledger, coinhaze.AccountLedger)
    me, stands, lowest = ledger.accounts.to_pylist().index(case.account), 0, 0
    ends = ledger.sender.tolist(), ledger.receiver.tolist()
    moves = zip(*ends, ledger.amounts.ints(), strict=True)
    for sender, receiver, amount in moves:
        stands += (receiver == me) * amount - (sender == me) * amount
        lowest = min(lowest, stands)
    assumed = -lowest
    assert holds == stands + assumed
    found = command(
        "screen", case.ledger, "--listed", case.listed, "--nodes", case.account, "--json"
    )["nodes"][0]
    assert (found["balance"], found["assumed"]) == (str(holds), str(assumed))
    path = f"/api/v1/ledgers/ledger/coins/{case.account}?list=bad"
    exposure = options(path).json()["exposure"]
    assert exposure["holds"]["smallest"] == str(holds)
    assert (exposure["assumed"] or {"smallest": "0"})["smallest"] == str(assumed)
    in_time = options(f"{path}&time=temporal").json()
    assert (in_time["assumed"] or {"smallest": "0"})["smallest"] == str(assumed)
    words = "assumed to have been there before the window"
    text = CliRunner().invoke(
        cli,
        ["screen", str(case.ledger), "--listed", str(case.listed), "--nodes", case.account],
        env={"COLUMNS": "300"},
    )
    pages = [
        fact(options(f"/l/ledger/coin/{case.account}").text),
        options(f"/l/ledger/coin/{case.account}?time=temporal").text,
    ]
    for told in (text.stdout, *pages):
        assert (words in told) is bool(assumed)


@pytest.mark.long
@pytest.mark.parametrize("case", ["dai"], indirect=True)
def test_a_day_of_dai_holds_more_than_payments_show(case: Case) -> None:
    found = screen(str(case.ledger), [case.name], nodes=[case.account], paths=0)
    dai = 10**18
    assert found.taint.balance[0] // dai == 242_386
    assert found.assumed[0] // dai == 136_701


def test_a_table_of_balances_is_not_assumed() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "b", 5), ("c", "a", 7)])
    listed = ["c"]
    told = screen(ledger, listed, nodes=["a"], opening={"a": 9, "c": 7})
    assert (told.taint.balance[0], told.assumed[0]) == (11, 0)
    assert screen(ledger, listed, nodes=["a"]).assumed[0] == 5


def test_addresses_are_in_order_of_time_too() -> None:
    ledger = coinhaze.CoinLedger.from_transactions(
        [
            {"txid": "m1", "outputs": [{"value": 4, "address": "a"}]},
            {
                "txid": "p1",
                "inputs": [{"txid": "m1", "vout": 0}],
                "outputs": [{"value": 4, "address": "b"}],
            },
            {"txid": "m2", "outputs": [{"value": 4, "address": "thief"}]},
            {
                "txid": "p2",
                "inputs": [{"txid": "m2", "vout": 0}],
                "outputs": [{"value": 4, "address": "a"}],
            },
        ]
    )
    times: list[dict[str, Any]] = [{}, {"time": "temporal"}, {"time": "stationary"}]
    shares = [
        coinhaze.score(ledger, view="address", listed=["thief"], nodes=["b"], **more).exposure
        for more in times
    ]
    assert [float(share[0]) for share in shares if share is not None] == [0.0, 0.0, 0.5]
    told = screen(ledger, ["thief"], view="address", nodes=["b"], paths=0)
    assert float(told.shares["haircut"][0]) == 0.0
