"""Lists of names as people write them: comments, tables without a header, letter case."""

from __future__ import annotations

from pathlib import Path

import pytest

import coinhaze
from coinhaze.errors import CoinhazeError, LedgerError
from coinhaze.formats.lists.coins import parse_coin_list
from coinhaze.formats.lists.knowledge import parse_listed, read_listed
from coinhaze.formats.lists.labels import normal_address
from coinhaze.screening.screen import screen
from coinhaze.store.ingest import ingest
from coinhaze.store.read import read_store
from coinhaze.store.store import Store

ETHEREUM = "0x" + "aBcDeF0123" * 4
BECH32 = "BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4"


def test_a_comment_may_follow_a_name() -> None:
    text = "# sanctions\nalice  # since 2022\n\tbob\t#2\n  # nobody\ncarol#2\n#dave\n"
    assert parse_listed(text, "list") == ["alice", "bob", "carol#2"]
    coins = parse_coin_list(f"{'a' * 64}:0  # mine\n#{'c' * 64}:1\n".encode(), where="coins")
    assert [coin.coin for coin in coins] == ["a" * 64 + ":0"]


@pytest.mark.parametrize(
    "line", ["alice, Bad Alice", "alice;Bad Alice", '"alice"', "alice\tBad", '["alice", "bob"]']
)
def test_a_line_of_a_table_is_no_name(line: str, tmp_path: Path) -> None:
    file = tmp_path / "list.txt"
    file.write_text(f"bob\n{line}\n")
    with pytest.raises(LedgerError, match="one line of a list of names is one name") as error:
        read_listed(file)
    assert f"{file}:2" in str(error.value)
    assert "header" in str(error.value)


@pytest.mark.parametrize(("address", "other"), [(ETHEREUM, "0X" + "ABcdef0123" * 4)])
def test_one_account_has_one_name_in_whatever_case(
    address: str, other: str, tmp_path: Path
) -> None:
    file = tmp_path / "payments.csv"
    file.write_text(f"from,to,amount\nAnn,{address},3\nann,{other},1\n{address.lower()},shop,2\n")
    ledger = coinhaze.read(file)
    assert isinstance(ledger, coinhaze.AccountLedger)
    assert sorted(ledger.accounts.to_pylist()) == sorted(["Ann", "ann", address.lower(), "shop"])
    graph = coinhaze.transaction_graph(ledger)
    for listed in (address, other, address.lower()):
        assert screen(graph, [listed]).found == (address.lower(),)
    with Store(None) as store:
        ingest([file], store)
        again = read_store(store)
    assert isinstance(again, coinhaze.AccountLedger)
    assert sorted(again.accounts.to_pylist()) == sorted(ledger.accounts.to_pylist())


def test_bech32_in_capitals_is_the_same_address() -> None:
    coins = [{"txid": "x", "vout": 0, "value": 4, "address": BECH32.lower()}]
    ledger = coinhaze.CoinLedger.from_transactions(
        [{"txid": "t", "inputs": coins, "outputs": [{"value": 4, "address": "shop"}]}]
    )
    found = screen(coinhaze.transaction_graph(ledger), [BECH32])
    assert found.is_match
    assert normal_address("BC1") == "BC1"
    assert normal_address("Bc1" + BECH32[3:]) == "Bc1" + BECH32[3:]  # mixed case is no bech32


@pytest.mark.parametrize("decimals", [8, 18])
def test_decimals_that_a_token_does_not_have_are_refused(decimals: int, tmp_path: Path) -> None:
    usdc = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"
    dai = "0x6b175474e89094c44da98b954eedeac495271d0f"
    file = tmp_path / "payments.csv"
    rows = [f"ann,ben,2.5,{usdc},{'1':0>64}", f"ben,cid,1,{dai},{'2':0>64}"]
    file.write_text("\n".join(["from,to,amount,token,txid", *rows, ""]))
    with pytest.raises(CoinhazeError, match="USDC, which has 6 decimals"):
        coinhaze.read(file, token=usdc, decimals=decimals)
    ledger = coinhaze.read(file, token=usdc, decimals=6)
    assert isinstance(ledger, coinhaze.AccountLedger)
    assert ledger.tables()["transfers"]["amount"].to_pylist() == [2_500_000]


@pytest.mark.parametrize(
    ("first", "second", "what"),
    [
        ("20240301", "20240302", "date without signs"),
        ("45352", "45353", "as spreadsheets number it"),
    ],
)
def test_dates_that_would_be_seconds_of_1970_are_refused(
    first: str, second: str, what: str, tmp_path: Path
) -> None:
    file = tmp_path / "payments.csv"
    file.write_text(f"date,from,to,amount\n{first},a,b,5\n{second},b,c,3\n")
    with pytest.raises(CoinhazeError, match=what) as error:
        coinhaze.read(file)
    assert "write times like 2024-03-01" in str(error.value)
    # What cannot be such a date is a number of seconds, as before.
    file.write_text("date,from,to,amount\n20240399,a,b,5\n1700000000,b,c,3\n")
    assert len(coinhaze.read(file)) == 2
