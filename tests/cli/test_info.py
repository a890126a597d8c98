"""coinhaze info: what a file is, what it holds, and the command to run next."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from coinhaze import CoinLedger
from coinhaze.ledger.parquet import write_folder

Run = Callable[..., tuple[int, str, str]]
TX = "ab" * 32


def facts(run: Run, *words: object) -> dict[str, object]:
    code, out, err = run("info", *words, "--json")
    assert code == 0, err
    found: dict[str, object] = json.loads(out)
    return found


def test_a_ledger_is_named_and_its_next_command_runs(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "my transfers.csv"
    path.write_text("payer;payee;total\na;b;1.5\nb;c;0.5\n")
    words = (path, "--columns", "from=payer,to=payee,amount=total", "--decimals", "2")
    found = facts(run, *words)
    assert str(found["format"]).startswith("transfers: ")
    assert found["total_moved"] == 200
    code, out, _ = run("info", *words)
    assert code == 0
    assert out.splitlines()[0].startswith("format ")
    assert any(line.startswith("next ") and "coinhaze score" in line for line in out.splitlines())


def test_folders_and_stores_are_named(run: Run, tmp_path: Path) -> None:
    ledger = CoinLedger.from_transactions([{"txid": TX, "outputs": [{"value": 5}]}])
    folder = write_folder(ledger, tmp_path / "ledger")
    assert facts(run, folder)["format"] == "a ledger folder"
    path = tmp_path / "t.csv"
    path.write_text("from,to,amount\na,b,1\n")
    assert run("ingest", path, "-o", tmp_path / "s.duckdb")[0] == 0
    assert facts(run, tmp_path / "s.duckdb")["format"] == "a store"


BESIDE = {
    "sparrow.csv": (f"Date (UTC),Output,Address,Label,Value\n,{TX}:1,1A,,5\n", "a list of coins"),
    "coins.txt": (f"{TX}:1\n", "a list of coins"),
    "unspent.json": (json.dumps([{"txid": TX, "vout": 1, "amount": 1}]), "a list of coins"),
    "electrum.json": (json.dumps([{"prevout_hash": TX, "prevout_n": 1}]), "a list of coins"),
    "labels.jsonl": (
        json.dumps({"type": "output", "ref": f"{TX}:1", "label": "rent"}) + "\n",
        "labels of a wallet (BIP-329)",
    ),
}


@pytest.mark.parametrize("name", BESIDE)
def test_a_file_that_goes_with_a_ledger_is_named_with_its_command(
    run: Run, tmp_path: Path, name: str
) -> None:
    text, what = BESIDE[name]
    path = tmp_path / name
    path.write_text(text)
    found = facts(run, path)
    assert (found["format"], found["coins"]) == (what, 1)
    assert str(found["next"]).startswith(f"coinhaze wallet LEDGER --nodes {path}")
    code, _, err = run("score", path)
    assert code == 3
    assert f"no ledger: this is {what}" in err
    assert f"--nodes {path}" in err


def test_a_transaction_to_be_signed_is_named(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "pay.psbt"
    path.write_bytes(b"psbt\xff" + bytes(20))
    assert str(facts(run, path)["next"]).endswith(f"--psbt {path}")


def test_what_lists_no_coins_says_what_to_run(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "listtransactions.json"
    path.write_text(json.dumps([{"txid": TX, "vout": 0, "category": "receive"}]))
    code, _, err = run("info", path)
    assert (code, "bitcoin-cli listunspent" in err) == (3, True)


def test_an_unknown_file_is_refused_as_before(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("colour,size\nred,5\n")
    code, _, err = run("info", path)
    assert code == 3
    assert "no known format" in err
