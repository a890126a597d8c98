"""coinhaze score --with: other measures beside the bits."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from coinhaze import CoinLedger
from coinhaze.cli import cli
from coinhaze.errors import UsageError
from coinhaze.ledger.parquet import write_folder


@pytest.fixture
def mix(tmp_path: Path) -> Path:
    ledger = CoinLedger.from_transactions(
        [
            {
                "txid": "j",
                "inputs": [
                    {"txid": "x", "vout": 0, "value": 10, "address": "alice"},
                    {"txid": "y", "vout": 0, "value": 14, "address": "bob"},
                ],
                "outputs": [
                    {"value": 10, "address": "alice 2"},
                    {"value": 10, "address": "bob 2"},
                    {"value": 4, "address": "bob 3"},
                ],
            }
        ]
    )
    write_folder(ledger, tmp_path / "mix")
    (tmp_path / "owners.csv").write_text(
        "address,cluster\nalice,A\nalice 2,A\nbob,B\nbob 2,B\nbob 3,B\n"
    )
    return tmp_path / "mix"


def run(*arguments: object) -> str:
    done = CliRunner().invoke(cli, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_measures_are_columns_of_the_table_and_correlations_stand_below(mix: Path) -> None:
    owners = mix.parent / "owners.csv"
    shown = run("score", mix, "--with", "boltzmann, wasabi", "--owners", owners)
    assert "Measures side by side" in shown
    assert "Correlations" in shown
    assert "wasabi: the score the coin's own wallet would give it" in shown


def test_measures_are_columns_of_a_file(mix: Path) -> None:
    path = mix.parent / "scores.csv"
    run("score", mix, "--with", "boltzmann,k-anonymity", "-o", path)
    with open(path, newline="") as file:
        rows = {row["node"]: row for row in csv.DictReader(file)}
    assert float(rows["j:2"]["boltzmann"]) == pytest.approx(1.584962500721156)
    assert float(rows["j:0"]["k_anonymity"]) == 2


def test_json_has_the_correlations_and_names_the_owners_file(mix: Path) -> None:
    owners = mix.parent / "owners.csv"
    document = json.loads(run("score", mix, "--with", "wasabi", "--owners", owners, "--json"))
    assert document["correlations"][0]["with"] == "wasabi"
    assert [row["wasabi"] for row in document["scores"]] == [2.0, 2.0, 1.0]
    assert "owners.csv" in [i["file"] for i in document["provenance"]["inputs"]]


def test_a_measure_nobody_knows_is_refused_before_any_work(mix: Path) -> None:
    with pytest.raises(UsageError, match="no measure 'k-anonimity'"):
        run("score", mix.parent / "nothing here", "--with", "k-anonimity")
    with pytest.raises(UsageError, match="name a table of owners"):
        run("score", mix.parent / "nothing here", "--with", "wasabi")


def test_a_measure_of_coins_is_named_where_there_are_none(tmp_path: Path) -> None:
    paid = tmp_path / "paid.csv"
    paid.write_text("from,to,amount\na,b,5\n")
    result = CliRunner().invoke(cli, ["score", str(paid), "--with", "degree,k-anonymity"])
    assert isinstance(result.exception, UsageError)
    assert str(result.exception).startswith("k-anonymity: a measure of single coins")
