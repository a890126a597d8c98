"""Keys of wallets on the command line: found, refused, and never shown again."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from coinhaze import cli
from coinhaze.ledger import CoinLedger
from coinhaze.ledger.parquet import write_folder

# BIP-84's account, its first, second and first change address.
ZPUB = (
    "zpub6rFR7y4Q2AijBEqTUquhVz398htDFrtymD9xYYfG1m4wAcvPhXNfE3EfH1r1ADqtfSdVCToUG868RvUUkgDKf3"
    "1mGDtKsAYz2oz2AGutZYs"
)
RECEIVE = (
    "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu",
    "bc1qnjg0jd8228aq7egyzacy8cys3knf9xvrerkf9g",
)
CHANGE = "bc1q8c6fshw2dlwun7ekn9qwf37cu2rn755upcp6el"
WIF = "L4rK1yDtCWekvXuE6oXD9jCYfFNV2cWRpVuPLBcCU2z8TrisoyY1"
XPRV = (
    "xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPGJxWUtg6LnF5kejMRNNU3"
    "TGtRBeJgk33yuGBxrMPHi"
)
SEED = "legal winner thank year wave sausage worth useful legal winner thank yellow"


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    mixed = {
        "txid": "mix",
        "inputs": [{"txid": "a", "vout": 0}, {"txid": "b", "vout": 0}],
        "outputs": [{"value": 30, "address": RECEIVE[1]}, {"value": 30, "address": CHANGE}],
    }
    mined = [
        {"txid": name, "outputs": [{"value": 30, "address": address}]}
        for name, address in (("a", RECEIVE[0]), ("b", "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"))
    ]
    write_folder(CoinLedger.from_transactions([*mined, mixed]), tmp_path / "town")
    return str(tmp_path / "town")


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["coinhaze", *words])
        with pytest.raises(SystemExit) as stop:
            cli.main()
    said = capsys.readouterr()
    return int(stop.value.code or 0), said.out, said.err


def test_a_key_finds_its_coins_in_a_ledger(
    ledger: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "wallet", ledger, "--nodes", ZPUB, "--json", "--amount", "30 sat")
    assert code == 0, err
    told = json.loads(out)
    assert [(c["coin"], c["bits"]) for c in told["coins"]] == [("mix:0", 1.0), ("mix:1", 1.0)]
    assert told["suggestion"]["spend"]["coins"] in (["mix:0"], ["mix:1"])
    assert ZPUB not in out + err
    assert "--nodes *** --json" in told["provenance"]["command"]
    for suffix in (".html", ".txt", ".json"):
        code, _, err = run(
            capsys, "wallet", ledger, "--nodes", ZPUB, "-o", str(tmp_path / f"r{suffix}")
        )
        assert code == 0, err
        assert ZPUB not in (tmp_path / f"r{suffix}").read_text() + err
    few, _, err = run(capsys, "wallet", ledger, "--nodes", ZPUB, "--gap-limit", "1")
    assert few == 0, err


@pytest.mark.parametrize("secret", [XPRV, WIF, SEED])
@pytest.mark.parametrize("source", ["{ledger}", "electrum+ssl://127.0.0.1:1"])
@pytest.mark.parametrize("in_file", [False, True])
def test_nothing_private_is_taken(
    ledger: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    secret: str, source: str, in_file: bool,
) -> None:  # fmt: skip
    (tmp_path / "mine.txt").write_text(f"{secret}\n")
    given = str(tmp_path / "mine.txt") if in_file else secret
    code, out, err = run(capsys, "wallet", source.format(ledger=ledger), "--nodes", given)
    assert (code, out) == (3, "")
    assert "neither stored nor shown" in err
    for piece in (XPRV, WIF, "sausage"):
        assert piece not in err


@pytest.mark.parametrize(
    "words",
    [
        ("score", "{ledger}", "--nodes", ZPUB),
        ("origins", "{ledger}", "--node", ZPUB),
        ("screen", "{ledger}", "--nodes", ZPUB),
        ("wallet", "{ledger}", "--nodes", "mix:0", "--spend", ZPUB),
        ("wallet", "{ledger}", "--nodes", "mix:0", "--psbt", ZPUB),
        ("wallet", ZPUB, "--nodes", "mix:0"),
        ("wallet", "{ledger}", "--nodes", ZPUB[:-1]),
        (ZPUB,),
        ("wallet", "{ledger}", "--nodes", "mix:0", "--limit", ZPUB),
    ],
)
def test_no_message_shows_a_key(
    ledger: str, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    code, out, err = run(capsys, *(word.format(ledger=ledger) for word in words))
    assert code in (2, 3), err
    assert ZPUB[:-1] not in out + err


def test_options_of_servers_are_for_servers(
    ledger: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    proxy = ("--proxy", "socks5://127.0.0.1:9050")
    code, _, err = run(capsys, "wallet", ledger, "--nodes", "mix:0", *proxy)
    assert code == 2
    assert "--proxy is for servers: electrum+ssl://host:port" in err
    code, _, err = run(capsys, "ingest", "electrum+ssl://127.0.0.1:1", "-o", str(tmp_path / "x"))
    assert code == 2
    assert "use it with coinhaze wallet" in err
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("command", ["info", "score"])
@pytest.mark.parametrize(
    ("text", "words"),
    [(ZPUB, "a wallet's keys, no ledger"), (WIF, "neither stored"), (SEED, "neither stored"),
     (f"mine,{XPRV}", "neither stored"), (f"mine,{ZPUB}", "no known format")],
)  # fmt: skip
def test_a_file_of_keys_is_no_ledger_and_is_not_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, text: str, words: str
) -> None:
    (tmp_path / "keys.txt").write_text(f"{text}\n{text}\n")
    code, out, err = run(capsys, command, str(tmp_path / "keys.txt"))
    if command == "info" and text == ZPUB:
        assert (code, err) == (0, "")
        assert "public keys of a wallet" in out
    else:
        assert (code, out) == (3, "")
        assert words in err
    for piece in (ZPUB[:30], WIF[:30], XPRV[:30], "sausage"):
        assert piece not in out + err
