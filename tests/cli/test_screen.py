from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from coinhaze import CoinLedger
from coinhaze.ledger.parquet import write_folder

Run = Callable[..., tuple[int, str, str]]
BITCOIN = "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"
ETHEREUM = "0x" + "ab" * 20


@pytest.fixture
def payments(tmp_path: Path) -> Path:
    path = tmp_path / "payments.csv"
    path.write_text("from,to,amount\nalice,shop,5\nbob,shop,3\nshop,carol,6\ndave,carol,2\n")
    (tmp_path / "list.txt").write_text("# made up\nalice\nzoe\n")
    return path


def flat(text: str) -> str:
    """Undo the breaking of lines."""
    return " ".join(text.split())


def test_a_reader_finds_the_answers_in_the_output_alone(run: Run, payments: Path) -> None:
    code, out, err = run("screen", payments, "--listed", "list.txt")
    assert code == 0
    assert err == ""
    words = flat(out)
    # What was found.
    assert (
        "Of 2 nodes holding money at the end, 2 hold or held money from the list by some rule."
        in words
    )
    assert "haircut 5.00 (50.00%); poison 10 (100.00%); fifo 5 (50.00%)" in words
    # By which rule, and which way.
    for rule in ("haircut: money mixes", "poison: one listed unit", "first in, first out"):
        assert rule in words
    assert words.count("accounts have no outputs") == 1
    assert "alice → shop → carol" in words
    # How sure, what would change it, what it is not.
    assert "haircut: no share is off by more than" in words
    assert "poison, fifo, lifo: exact" in words
    assert "another rule: the columns show by how much" in words
    assert "It is no proof that the holder" in words
    digest = hashlib.sha256(Path("list.txt").read_bytes()).hexdigest()
    assert f"list list.txt: SHA-256 {digest}" in words
    assert "1 in the ledger, 1 not in it (zoe)" in words
    assert "heights not known; times not known" in words


def test_large_amounts_are_rounded_on_a_screen_and_whole_in_a_file(run: Run) -> None:
    Path("wei.csv").write_text("from,to,amount\nalice,shop,1234567890123456789012\n")
    Path("list.txt").write_text("alice\n")
    out = run("screen", "wei.csv", "--listed", "list.txt")[1]
    assert "1.23457e+21" in out
    assert "a .csv has every digit" in out
    run("screen", "wei.csv", "--listed", "list.txt", "-o", "s.csv")
    assert '"1234567890123456789012"' in Path("s.csv").read_text()


def test_the_page_says_the_same_and_runs_nothing(run: Run, payments: Path) -> None:
    with payments.open("a") as file:
        file.write("alice,<script>x</script>,1\n")
    code, out, err = run("screen", payments, "--listed", "list.txt", "-o", "s.html")
    assert (code, out) == (0, "")
    assert err.splitlines() == [
        "wrote s.html",
        "Match: 3 of 3 nodes screened hold or held money from the list by some rule.",
        "completeness: not checkable in this format",
    ]
    page = Path("s.html").read_text()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    for words in ("What was found", "By which rule", "What it is not", "How it was made"):
        assert f"<h2>{words}</h2>" in page
    assert "coinhaze screen" in page


def test_csv_has_every_node_and_no_formula(run: Run, payments: Path) -> None:
    with payments.open("a") as file:
        file.write("alice,=HYPERLINK(1),1\n")
    code, _, err = run("screen", payments, "--listed", "list.txt", "-o", "s.csv")
    assert code == 0
    assert "wrote s.csv.provenance.json" in err
    with open("s.csv", newline="") as file:
        rows = {row["node"]: row for row in csv.DictReader(file)}
    assert sorted(rows) == ["'=HYPERLINK(1)", "carol", "shop"]
    assert rows["carol"]["fifo_amount"] == "5"
    assert rows["carol"]["tiho_share"] == ""
    low, high = (float(rows["carol"][f"haircut_share_{side}"]) for side in ("low", "high"))
    assert low <= float(rows["carol"]["haircut_share"]) <= high
    about = json.loads(Path("s.csv.provenance.json").read_text())
    assert about["list"]["sha256"] == hashlib.sha256(Path("list.txt").read_bytes()).hexdigest()
    assert about["list"]["names_not_found"] == 1
    assert about["software"].startswith("coinhaze ")
    assert about["haircut_margin"] < 1e-12


def test_json_carries_totals_nodes_and_paths(run: Run, payments: Path) -> None:
    code, out, _ = run(
        "screen", payments, "--listed", "list.txt", "--nodes", "carol", "--policy", "lifo, haircut",
        "--json",
    )  # fmt: skip
    assert code == 0
    document = json.loads(out)
    assert sorted(document) == [
        "above_limit", "completeness", "dust", "limit", "listed", "match", "nodes", "paths",
        "policy", "provenance", "time", "totals", "verdict", "view",
    ]  # fmt: skip
    assert [row["policy"] for row in document["totals"]] == ["haircut", "lifo"]
    assert [row["node"] for row in document["nodes"]] == ["carol"]
    assert "fifo_share" not in document["nodes"][0]
    assert document["paths"][0]["names"] == ["alice", "shop", "carol"]


def test_nodes_come_from_a_file_too(run: Run, payments: Path) -> None:
    Path("asked.txt").write_text("carol\n")
    args = ("screen", payments, "--listed", "list.txt", "--json")
    one = json.loads(run(*args, "--nodes", "asked.txt", "--nodes", "shop")[1])
    assert [row["node"] for row in one["nodes"]] == ["carol", "shop"]


@pytest.mark.parametrize(
    ("listed", "more", "code", "words"),
    [
        pytest.param("# none\n", [], 3, "lists no name", id="empty list"),
        pytest.param("alice\n", ["--nodes", "carl"], 3, "did you mean 'carol'?", id="unknown node"),
        pytest.param("alice\n", ["--policy", "fefo"], 2, "haircut, poison", id="unknown policy"),
        pytest.param("alice\n", ["-o", "s.txt"], 2, ".html, .csv", id="suffix"),
        pytest.param("alice\n", ["-o", "list.txt.csv/x.csv"], 3, "no folder", id="folder"),
    ],
)  # fmt: skip
def test_what_cannot_be_answered_is_one_line(
    run: Run, payments: Path, listed: str, more: list[str], code: int, words: str
) -> None:
    Path("list.txt").write_text(listed)
    found, out, err = run("screen", payments, "--listed", "list.txt", *more)
    assert found == code
    assert out == ""
    assert words in err
    assert err.count("\n") == 1


def test_shares_of_what_is_spent_are_of_what_it_held(run: Run, payments: Path) -> None:
    coins = [
        {"txid": "a", "outputs": [{"value": 50, "address": "dark"}]},
        {"txid": "b", "inputs": [{"txid": "a", "vout": 0}]}
        | {"outputs": [{"value": 30, "address": "x"}, {"value": 20, "address": "y"}]},
        {"txid": "c", "inputs": [{"txid": "b", "vout": 1}], "outputs": [{"value": 20}]},
    ]
    write_folder(CoinLedger.from_transactions(coins), Path("coins"))
    Path("list.txt").write_text("dark\n")
    asked = ("screen", "coins", "--listed", "list.txt", "--nodes")
    out = " ".join(run(*asked, "b:1")[1].split())
    assert "b:1: 100.00% by every rule, of the 20 it held before it was spent." in out
    out = " ".join(run(*asked, "b:0")[1].split())
    assert "b:0: 100.00% by every rule, of the 30 it holds." in out
    out = " ".join(run(*asked, "y", "--view", "address")[1].split())
    assert "of what it held before; it holds nothing at the end of the window." in out


def test_policies_go_by_the_names_of_their_columns(run: Run, payments: Path) -> None:
    Path("list.txt").write_text("alice\n")
    asked = ("screen", payments, "--listed", "list.txt", "--json", "--policy")
    for policies in ("haircut,fifo", "haircut, fifo", "proportional,fifo"):
        code, out, err = run(*asked, policies)
        assert (code, json.loads(out)["policy"]) == (0, ["haircut", "fifo"])
        assert "is now" not in err
    code, out, err = run(*asked, "haircut,FIFO,tiho, fefo")
    assert (code, out) == (2, "")
    known = "haircut, poison, fifo, lifo, tiho"
    assert err == f"coinhaze: policies are some of {known}, not 'FIFO', 'fefo'\n"


def test_an_empty_json_list_is_refused(run: Run, payments: Path) -> None:
    Path("list.json").write_text("[]")
    code, _, err = run("screen", payments, "--listed", "list.json")
    assert code == 3
    assert "list.json" in err
    assert "names nothing" in err


def test_addresses_of_another_network_are_reported(run: Run, tmp_path: Path) -> None:
    Path("ether.csv").write_text(f"from,to,amount\n{ETHEREUM},0x{'cd' * 20},1\n")
    Path("list.txt").write_text(f"{BITCOIN}\n")
    words = f"{BITCOIN} is an address of bitcoin or bitcoin cash, the ledger's are of ethereum"
    code, _, err = run("screen", "ether.csv", "--listed", "list.txt")
    assert code == 3
    assert words in err
    Path("list.txt").write_text(f"{ETHEREUM}\n")
    code, _, err = run("screen", "ether.csv", "--listed", "list.txt", "--nodes", BITCOIN)
    assert code == 3
    assert words in err
    code, _, err = run("origins", "ether.csv", BITCOIN)
    assert code == 3
    assert words in err


def test_no_match_is_a_statement_with_all_that_it_rests_on(
    run: Run, payments: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767225600")
    Path("list.txt").write_text("zoe\nyan\n")
    asked = ("--case", "2026-17", "--analyst", "A. Analyst", "--limit", "0")
    code, out, err = run("screen", payments, "--listed", "list.txt", *asked)
    assert (code, err) == (0, "")
    words = flat(out)
    assert "No match: none of the 2 listed names is in this ledger" in words
    assert "Nothing is above the limit of 0.00% by haircut." in words
    digest = hashlib.sha256(Path("list.txt").read_bytes()).hexdigest()
    for part in (
        "2026-17",
        "A. Analyst",
        "2026-01-01 00:00 UTC",
        digest,
        "heights not known",
        "not checkable in this format",
        "haircut, poison, fifo, lifo; account view",
    ):
        assert part in words
    code, out, _ = run("screen", payments, "--listed", "list.txt", *asked, "--json")
    assert code == 0
    document = json.loads(out)
    assert document["match"] is False
    assert document["above_limit"] == []
    assert document["provenance"]["case"] == "2026-17"
    assert document["provenance"]["analyst"] == "A. Analyst"
    assert document["provenance"]["date"] == "2026-01-01 00:00 UTC"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "today")
    assert run("screen", payments, "--listed", "list.txt")[0] == 2


@pytest.mark.parametrize(("limit", "code"), [("0", 10), ("0.62", 10), ("0.63", 0)])
def test_above_the_limit_the_exit_code_is_10(
    run: Run, payments: Path, limit: str, code: int
) -> None:
    asked = ("screen", payments, "--listed", "list.txt", "--limit", limit)
    assert run(*asked)[0] == code
    found, out, _ = run(*asked, "--json")
    assert found == code
    assert bool(json.loads(out)["above_limit"]) is (code == 10)
    assert run(*asked, "-o", "s.html")[0] == code
    assert Path("s.html").exists()


def test_a_limit_in_percent_is_refused_with_the_number(run: Run, payments: Path) -> None:
    for written, number in (("5%", "0.05"), ("12.5 %", "0.125")):
        code, out, err = run("screen", payments, "--listed", "list.txt", "--limit", written)
        assert (code, out) == (2, "")
        assert f"'{written}' is no number: write {number}" in err
    _, _, err = run("screen", payments, "--listed", "list.txt", "--limit", "%")
    assert "'%' is not a valid float" in err


def test_entities_of_the_list_dust_and_the_annex(run: Run, payments: Path) -> None:
    Path("list.csv").write_text("address,name,program\nalice,Alice Group,CYBER2\n")
    asked = (
        "screen",
        payments,
        "--listed",
        "list.csv",
        "--dust",
        "2",
        "--policy",
        "haircut,poison",
    )
    assert run(*asked, "-o", "s.html")[0] == 0
    page = Path("s.html").read_text()
    first, annex = page.split('<div class="annex">')
    assert "<h2>Statement</h2>" in first
    assert "1 node, dust, below 2 each" in first
    assert "Alice Group (CYBER2): alice" in annex
    assert "break-before: page" in page
    document = json.loads(run(*asked, "--json")[1])
    assert document["listed"] == [{"name": "alice", "entity": "Alice Group", "programme": "CYBER2"}]
    assert [row["dust"] for row in document["nodes"]] == [True, False]


def test_names_that_are_not_found_are_counted(run: Run, payments: Path) -> None:
    Path("many.txt").write_text("alice\n" + "".join(f"nobody{k}\n" for k in range(6)))
    out = " ".join(run("screen", payments, "--listed", "many.txt")[1].split())
    assert "1 of 7; not found: nobody0, nobody1, nobody2 and 3 more." in out
