"""coinhaze info: what a file is, what it holds, and the command to run next."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from coinhaze import CoinLedger
from coinhaze.ledger.parquet import write_folder
from formats.block_samples import pay_to_key_hash
from formats.snapshot_samples import snapshot

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
    path = tmp_path / "history.json"
    history = {"summary": {}, "transactions": [{"txid": TX, "bc_value": "0.5", "incoming": True}]}
    path.write_text(json.dumps(history))
    code, _, err = run("info", path)
    assert (code, "electrum listunspent > coins.json" in err) == (3, True)
    path.write_text(json.dumps([{"txid": TX, "vout": 0, "category": "send"}]))
    code, _, err = run("info", path)
    assert (code, "lists no coin" in err) == (3, True)
    path.write_text(json.dumps([{"txid": TX, "vout": 0, "category": "receive"}]))
    assert facts(run, path)["coins"] == 1


def test_an_unknown_file_is_refused_as_before(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("colour,size\nred,5\n")
    code, _, err = run("info", path)
    assert code == 3
    assert "no known format" in err


def test_a_utxo_snapshot_is_described(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "utxo.dat"
    path.write_bytes(snapshot({b"\1" * 32: [(0, 5, pay_to_key_hash(1), 7)]}, b"\7" * 32))
    found = facts(run, path)
    assert str(found["format"]).startswith("utxo-snapshot: ")
    assert (found["network"], found["after_block"], found["coins"]) == ("bitcoin", "07" * 32, 1)
    assert found["next"] == f"coinhaze score blk*.dat {path}"


ZPUB = (
    "zpub6rFR7y4Q2AijBEqTUquhVz398htDFrtymD9xYYfG1m4wAcvPhXNfE3EfH1r1ADqtfSdVCToUG868RvUUkgDK"
    "f31mGDtKsAYz2oz2AGutZYs"
)


def test_keys_of_a_wallet_are_named_and_not_shown(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("wallycore")
    path = tmp_path / "zpub.txt"
    path.write_text(f"# mine\n{ZPUB[:-1]}\n")
    assert run("info", path)[0] == 3  # mistyped
    path.write_text(f"# mine\n{ZPUB}\n")
    code, out, err = run("info", path)
    assert code == 0, err
    assert "public keys of a wallet" in out
    assert f"--nodes {path}" in out
    assert ZPUB[:20] not in out + err


@pytest.mark.parametrize(
    "text",
    ["# listed\n1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa\n", "0x" + "aB" * 20, "Name;Address\nx;1A\n"],
)
def test_a_list_of_addresses_is_named_with_its_command(run: Run, tmp_path: Path, text: str) -> None:
    path = tmp_path / "listed.txt"
    path.write_text(text)
    found = facts(run, path)
    assert found["format"] == "a list of addresses"
    assert found["next"] == f"coinhaze screen LEDGER --listed {path}"


def test_a_history_is_described(run: Run, tmp_path: Path) -> None:
    ledger = CoinLedger.from_transactions([{"txid": TX, "height": 3, "outputs": [{"value": 5}]}])
    folder = write_folder(ledger, tmp_path / "ledger")
    assert run("history", "index", tmp_path / "x.history", folder)[0] == 0
    found = facts(run, tmp_path / "x.history")
    assert found["format"] == "a history of all coins"
    assert found["transactions"] == 1
    assert found["next"] == f"coinhaze history score {tmp_path / 'x.history'}"
