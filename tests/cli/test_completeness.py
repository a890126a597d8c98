"""Every output says in a line whether the ledger is complete; --strict and verify refuse a hole."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ledger.etl_chain import five_blocks, name, write_etl

from .conftest import Run

LINE = "incomplete: heights contiguous failed 1 time, first at height 3"
WHOLE = "completeness: 5 of 8 checks passed, the rest not checkable"
COIN, OTHER = f"{name(4, 1)}:0", f"{name(5, 0)}:0"


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    return write_etl(tmp_path / "whole.json", five_blocks())


@pytest.fixture
def hole(tmp_path: Path) -> Path:
    return write_etl(tmp_path / "hole.json", five_blocks(), without=(3,))


def test_info_shows_every_check(run: Run, whole: Path, hole: Path) -> None:
    code, out, _ = run("info", hole)
    assert code == 0
    assert LINE in out
    assert "heights contiguous: failed 1 time, first at height 3: no transactions of 3" in out
    assert "blocks linked by previous hash: not checkable: " in out
    assert "one coinbase in every block: passed: 4 blocks" in out
    code, out, _ = run("info", hole, "--json")
    record = json.loads(out)["completeness"]
    assert record["missing_heights"] == [[3, 3]]
    assert {check["status"] for check in record["checks"]} == {"passed", "failed", "not checkable"}
    assert WHOLE in run("info", whole)[1]


def test_info_says_once_why_several_checks_could_not_be_made(run: Run, tmp_path: Path) -> None:
    paid = tmp_path / "paid.csv"
    paid.write_text("from,to,amount\na,b,5\n")
    out = run("info", paid)[1]
    assert out.count("the source lists transfers, not blocks") == 1
    (line,) = (line for line in out.splitlines() if "not blocks" in line)
    names = ("heights contiguous", "blocks linked by previous hash", "log indexes in order")
    assert line.strip().startswith("not checkable, since the source lists transfers")
    assert [name in line for name in names] == [True] * 3


def test_every_output_of_score_has_the_line_and_provenance_has_all(
    run: Run, whole: Path, hole: Path, tmp_path: Path
) -> None:
    code, out, err = run("score", hole)
    assert (code, out.count(LINE)) == (0, 1)
    assert f"note: {LINE}; 1 of 5 nodes has a share of money that may have been made" in err
    code, out, err = run("score", hole, "--json")
    document = json.loads(out)
    assert document["completeness"] == LINE
    assert document["provenance"]["completeness"]["missing_heights"] == [[3, 3]]
    assert any(note.startswith(LINE) for note in document["provenance"]["notes"])
    assert f"note: {LINE}; " in err
    for suffix in ("csv", "json", "parquet"):
        _, _, err = run("score", hole, "-o", f"scores.{suffix}")
        assert f"\n{LINE}\n" in err
    beside = json.loads((tmp_path / "scores.csv.provenance.json").read_text())
    inside = json.loads(pq.read_schema("scores.parquet").metadata[b"coinhaze"])
    for made in (beside, inside):
        assert len(made["completeness"]["checks"]) == 8
    code, out, err = run("score", whole)
    assert WHOLE in out
    assert "note:" not in err


def test_strict_refuses_a_hole_and_writes_nothing(
    run: Run, whole: Path, hole: Path, tmp_path: Path
) -> None:
    listed, coins = tmp_path / "listed.txt", tmp_path / "coins.txt"
    listed.write_text("4.1.0\n")
    coins.write_text(f"{COIN}\n")
    before = {p for p in tmp_path.rglob("*") if p.is_file()}
    for command in (
        ("score", hole, "-o", "out.csv"),
        ("score", hole, "--keep"),
        ("score", hole, "--policy", "fifo", "-o", "out.csv"),
        ("screen", hole, "--listed", listed, "-o", "out.csv"),
        ("wallet", hole, "--coins", coins, "-o", "out.json"),
        ("origins", hole, COIN, "-o", "out.txt"),
        ("compare", f"x={hole}", "-o", "out", "--no-figures"),
    ):
        code, out, err = run(*command, "--strict")
        assert (code, out) == (3, ""), command
        assert LINE in err
        assert {p for p in tmp_path.rglob("*") if p.is_file()} == before, command
    assert run("score", whole, "--strict")[0] == 0


def test_screen_wallet_origins_and_compare_have_the_line(
    run: Run, hole: Path, tmp_path: Path
) -> None:
    listed, coins = tmp_path / "listed.txt", tmp_path / "coins.txt"
    listed.write_text("4.1.0\n")
    coins.write_text(f"{COIN}\n")
    code, out, _ = run("screen", hole, "--listed", listed)
    assert code == 0
    assert "incomplete: heights contiguous failed 1 time" in " ".join(out.split())
    document = json.loads(run("screen", hole, "--listed", listed, "--json")[1])
    assert document["completeness"] == LINE
    assert document["provenance"]["completeness"]["missing_heights"] == [[3, 3]]
    assert any("a share of money" in n for n in document["provenance"]["notes"])
    code, out, err = run("wallet", hole, "--coins", coins)
    assert code == 0
    assert "incomplete: heights contiguous failed 1 time" in " ".join(out.split())
    assert "1 of 1 node has a share of money" in err
    document = json.loads(run("wallet", hole, "--coins", coins, "--as", "json")[1])
    assert document["provenance"]["completeness"]["missing_heights"] == [[3, 3]]
    code, _, err = run("origins", hole, COIN)
    assert (code, LINE in err) == (0, True)
    code, out, err = run("compare", f"x={hole}", "-o", "report", "--no-figures", "--walks", "0")
    assert code == 0
    assert f"x: {LINE}" in err
    assert f"x: {LINE}" in " ".join(out.split())
    shutil.rmtree("report")


def test_verify_prints_all_it_found_and_exits_with_3(run: Run, whole: Path, hole: Path) -> None:
    assert run("ingest", hole, "-o", "hole.duckdb")[0] == 0
    code, out, err = run("verify", "hole.duckdb")
    assert code == 3
    assert "heights contiguous: failed 1 time, first at height 3" in out
    assert "ledger: 5 transactions" in out
    assert "digest " in out
    assert (err.count("\n"), LINE in err) == (1, True)
    assert run("ingest", whole, "-o", "whole.duckdb")[0] == 0
    code, out, err = run("verify", "whole.duckdb")
    assert (code, err) == (0, "")
    assert "as many inputs and outputs as the transaction says: passed: 7 of 7" in out


def test_complete_works_on_stores(run: Run, whole: Path, hole: Path) -> None:
    for source, code in ((whole, 0), (hole, 3)):
        run("ingest", source, "-o", f"{source.stem}.duckdb")
        for command in ("score", "info"):
            found, _, err = run(command, f"{source.stem}.duckdb", "--complete")
            assert found == code
            assert ("an unknown coin in a complete ledger" in err) == bool(code)


@pytest.mark.parametrize(
    "command",
    [
        ("origins", "{hole}", COIN),
        ("destinations", "{hole}", COIN),
        ("shared", "{hole}", COIN, OTHER),
        ("since", "{hole}", COIN),
    ],
    ids=lambda command: command[0],
)
def test_what_is_reported_of_single_coins_has_the_line_notes_and_reading(
    run: Run, whole: Path, hole: Path, command: tuple[str, ...]
) -> None:
    words = [str(hole) if word == "{hole}" else word for word in command]
    code, out, err = run(*words)
    assert code == 0
    assert (out.count(LINE), err.count(f"note: {LINE}; ")) == (1, 1)
    assert "coin view, policy proportional" in " ".join(out.split())
    code, out, _ = run(*words, "--json")
    document = json.loads(out)
    assert document["completeness"] == LINE
    assert document["provenance"]["completeness"]["missing_heights"] == [[3, 3]]
    assert any(note.startswith(LINE) for note in document["provenance"]["notes"])
    assert (document.get("settings") or document)["view"] == "coin"
    code, out, err = run(*words, "--strict")
    assert (code, out) == (3, "")
    assert LINE in err
    code, out, err = run(*[str(whole) if word == str(hole) else word for word in words])
    assert (code, out.count(WHOLE)) == (0, 1)
    assert LINE not in err


@pytest.mark.parametrize("command", ["shared", "since"])
def test_tables_of_coins_have_it_in_their_provenance(
    run: Run, hole: Path, command: str, tmp_path: Path
) -> None:
    named = (COIN, OTHER) if command == "shared" else (COIN,)
    assert run(command, hole, *named, "-o", "out.parquet")[0] == 0
    made = json.loads(pq.read_schema("out.parquet").metadata[b"coinhaze"])
    assert made["completeness"]["missing_heights"] == [[3, 3]]
    assert any(note.startswith(LINE) for note in made["notes"])
    assert made["settings"]["view"] == "coin"


def test_histories_refuse_a_hole_and_have_the_line_and_the_reading(
    run: Run, whole: Path, hole: Path, tmp_path: Path
) -> None:
    code, _, err = run("history", "index", "chain.history", hole)
    assert code == 3
    assert LINE in err
    code, out, _ = run("history", "index", "chain.history", whole)
    assert (code, out.count(WHOLE)) == (0, 1)
    for words in (("score", "chain.history"), ("show", "chain.history", COIN),
                  ("table", "chain.history", "--group-by", "height")):  # fmt: skip
        code, out, err = run("history", *words)
        assert code == 0, err
        said = " ".join(out.split())
        assert said.count(WHOLE) == 1, words
        assert "coin view, policy proportional" in said, words
        document = json.loads(run("history", *words, "--json")[1])
        assert len(document["provenance"]["completeness"]["checks"]) == 8
        assert document["provenance"]["settings"] == {"view": "coin", "policy": "proportional"}
