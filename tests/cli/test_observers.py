"""coinhaze score --observers, origins and shared: the same coins to observers who know more."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from coinhaze import CoinLedger
from coinhaze.cli import cli
from coinhaze.errors import UsageError
from coinhaze.ledger.parquet import write_folder


@pytest.fixture
def swept(tmp_path: Path) -> Path:
    """Four coins of four addresses swept into one, which pays two people."""
    old = [{"txid": x, "vout": 0, "value": 5, "address": f"old {x}"} for x in "wxyz"]
    records: list[dict[str, Any]] = [
        {"txid": "s", "inputs": old, "outputs": [{"value": 20, "address": "me"}]},
        {
            "txid": "p",
            "inputs": [
                {"txid": "s", "vout": 0},
                {"txid": "v", "vout": 0, "value": 20, "address": "old v"},
            ],
            "outputs": [{"value": 20, "address": "ann"}, {"value": 20, "address": "bob"}],
        },
    ]
    write_folder(CoinLedger.from_transactions(records), tmp_path / "swept")
    (tmp_path / "owners.csv").write_text("address,cluster\nold w,A\nold v,A\n")
    return tmp_path / "swept"


def run(*arguments: object) -> str:
    done = CliRunner().invoke(cli, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_observers_are_columns_with_intervals_and_named_with_their_confidence(swept: Path) -> None:
    document = json.loads(run("score", swept, "--observers", "--json"))
    row = {score["node"]: score for score in document["scores"]}["p:0"]
    assert row["bits"] == pytest.approx(2.0)  # 1/8 each of four, and 1/2
    assert row["bits_common_input_no_coinjoins"] == pytest.approx(1.0)
    assert row["bits_change_low"] <= row["bits_change"] <= row["bits_change_high"]
    names = [each["name"] for each in document["observers"]]
    assert names == ["common-input-no-coinjoins", "change"]
    assert document["observers"][0]["confidence_origin"] == "measured"
    told = swept.parent / "scores.csv"
    run("score", swept, "--observers", "--owners", swept.parent / "owners.csv", "-o", told)
    with told.open() as file:
        assert float(next(csv.DictReader(file))["bits_given"]) < 1e-9


def test_the_terminal_shows_every_observer(swept: Path) -> None:
    shown = run("score", swept, "--observers")
    assert "measured" in shown
    assert "Most haze, and what is left of it" in shown


def test_origins_begin_with_the_honest_sentence(swept: Path) -> None:
    lines = run("origins", swept, "p:0").splitlines()
    assert " ".join(lines[1:3]).startswith(
        "2.00 bits; 1.00 if its inputs had one owner, which most observers assume."
    )
    document = json.loads(run("origins", swept, "p:0", "--json"))
    assert [each["owners"] for each in document["observers"]] == [2, 2]


def test_two_coins_are_compared_for_every_observer(swept: Path) -> None:
    document = json.loads(run("shared", swept, "p:0", "s:0", "--json"))
    naive, informed = document["pairs"][:2]
    assert naive["overlap"] == pytest.approx(0.5)
    assert naive["collision"] == pytest.approx(4 / 8 / 4)
    assert informed["collision"] == pytest.approx(0.5)
    assert informed["evidence"] == pytest.approx(naive["evidence"])
    assert len(document["common"]["naive"]) == 4
    shown = run("shared", swept, "p:0", "s:0")
    assert "share 50.0% of their origins" in " ".join(shown.split())
    table = swept.parent / "pairs.csv"
    run("shared", swept, "--nodes", "p:0", "--nodes", "p:1", "--nodes", "s:0", "-o", table)
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 9
    assert {float(row["overlap"]) for row in rows} == {0.5, 1.0}


def test_what_cannot_be_compared_says_how_to_ask(swept: Path) -> None:
    with pytest.raises(UsageError, match="name a file and two coins"):
        run("shared", "p:0", "s:0")
    with pytest.raises(UsageError, match="name those to compare"):
        run("shared", swept, "--nodes", "all")
    with pytest.raises(UsageError, match="or --observers"):
        run("score", swept, "--part", "1/2", "-o", swept.parent / "part", "--observers")
