"""Amounts as people write them: read and written without losing a digit, on every surface."""

from __future__ import annotations

import html
import json
from dataclasses import replace
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import coinhaze
from coinhaze.cli import cli
from coinhaze.errors import UsageError
from coinhaze.formats.money import unit_of
from coinhaze.ledger.parquet import write_folder
from coinhaze.units import (
    ETHER,
    NOT_KNOWN,
    SMALLEST,
    TOKENS,
    UNITS,
    Unit,
    unit_named,
    unit_of_token,
)

BITCOIN = UNITS["bitcoin"]
DAI = "0x6b175474e89094c44da98b954eedeac495271d0f"
UNIT = st.builds(Unit, st.just("GEM"), st.integers(0, 77), st.just("bit"))


@given(UNIT, st.integers(0, 2**256 - 1))
def test_amounts_are_written_and_read_without_losing_a_digit(unit: Unit, amount: int) -> None:
    said = unit.words(amount)
    with localcontext(prec=200):
        number = Decimal(said.removesuffix(" GEM").replace(",", ""))
        assert number.scaleb(unit.decimals) == amount
    assert unit.read(said.replace(",", "")) == amount
    assert unit.read(f"{amount:_} bit") == amount


@given(UNIT, st.integers(1, 2**256 - 1), st.integers(1, 9))
def test_rounded_amounts_are_within_half_a_step(unit: Unit, amount: int, digits: int) -> None:
    said = unit.words(amount, significant=digits).removesuffix(" GEM").replace(",", "")
    with localcontext(prec=200):
        found = Decimal(said).scaleb(unit.decimals)
        step = 10 ** max(len(str(amount)) - digits, 0)
        assert abs(found - amount) * 2 <= step


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0.05", 5_000_000),
        (".05", 5_000_000),
        ("0.05 BTC", 5_000_000),
        ("0.05btc", 5_000_000),
        ("5_000_000 sat", 5_000_000),
        ("5000000 sats", 5_000_000),
        ("1 BTC", 100_000_000),
        ("0.050000000", 5_000_000),
        ("1.0", 100_000_000),
    ],
)
def test_amounts_are_read_as_people_write_them(text: str, amount: int) -> None:
    assert BITCOIN.read(text) == amount


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("5000000", "write 5000000 BTC, or 5000000 sat"),
        ("0,05 BTC", "an amount is a number such as 0.05 BTC"),
        ("0.000000001", "8 digits after the point"),
        ("0.5 sat", "no fraction"),
        ("1 ETH", "counts in BTC or sat"),
        ("-1 BTC", "an amount is a number"),
        ("1e3 BTC", "unknown unit e3 BTC"),
        (".", "an amount is a number"),
        ("", "an amount is a number"),
        ("BTC", "an amount is a number"),
    ],
)
def test_what_could_be_misread_is_refused(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        BITCOIN.read(text)


def test_without_a_known_money_whole_numbers_are_smallest_units() -> None:
    assert SMALLEST.read("5_000") == 5000
    with pytest.raises(UsageError, match="no fraction"):
        SMALLEST.read("0.05")
    with pytest.raises(UsageError, match="--unit"):
        SMALLEST.read("5 BTC")


@pytest.mark.parametrize("text", ["GEM", "GEM:", "GEM:x", "GEM:78", ":8", "a b:8", "GEM:-1"])
def test_units_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="NAME:DECIMALS"):
        unit_named(text)


def test_a_ledger_tells_its_money_by_addresses_token_or_option() -> None:
    address = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"
    ledger = coinhaze.AccountLedger.from_transfers([(address, address, 1)])
    assert unit_of(ledger) is BITCOIN
    assert unit_of(ledger, unit="smallest") == Unit("sat", 0, "sat")
    assert unit_of(ledger, unit="eth") is ETHER
    assert unit_of(replace(ledger, unit=TOKENS[DAI])).symbol == "DAI"
    assert unit_of_token(DAI.upper().replace("X", "x")) is TOKENS[DAI]
    assert unit_of_token("0x" + "1" * 40) is None
    assert unit_of(coinhaze.AccountLedger.from_transfers([("a", "b", 1)])) is SMALLEST
    assert all(token == token.lower() for token in TOKENS)


@pytest.fixture
def coins(tmp_path: Path) -> Path:
    """A ledger of two coins, the names of which tell no network."""
    ledger = coinhaze.CoinLedger.from_transactions(
        [
            {"txid": "a", "outputs": [{"value": 123_456_789, "address": "m"}]},
            {"txid": "b", "outputs": [{"value": 250_000_000, "address": "n"}]},
        ]
    )
    write_folder(ledger, tmp_path / "coins")
    (tmp_path / "list.txt").write_text("m\n")
    return tmp_path


def run(*words: object) -> Any:
    return CliRunner().invoke(cli, list(map(str, words)), terminal_width=200)


def surfaces(folder: Path, *unit: str, amount: str) -> dict[str, str]:
    """Run every command that shows amounts, on a terminal and into files."""
    wallet = ("wallet", folder / "coins", "--nodes", "a:0", "--nodes", "b:0", *unit)
    wallet += ("--spend", "b:0", "--amount", amount)
    screen = ("screen", folder / "coins", "--listed", folder / "list.txt", *unit)
    found = {"wallet": run(*wallet).stdout, "screen": run(*screen).stdout}
    for name, words in (("wallet", wallet), ("screen", screen)):
        for suffix in (".html", *((".txt",) if name == "wallet" else ())):
            file = folder / f"{name}{suffix}"
            done = run(*words, "-o", file)
            assert done.exit_code == 0, done.output
            found[name + suffix] = file.read_text()
    return found


def test_every_surface_shows_amounts_in_their_unit(coins: Path) -> None:
    for name, text in surfaces(coins, "--unit", "BTC", amount="2.0").items():
        text = " ".join(text.replace("│", " ").split())
        assert "1.23456789 BTC" in text, name
        assert "123,456,789" not in text, name
        assert "smallest unit, since" not in text, name


def test_without_a_unit_every_surface_says_so(coins: Path) -> None:
    for name, text in surfaces(coins, amount="200000000").items():
        assert "123,456,789" in text, name
        assert NOT_KNOWN[:40] in " ".join(html.unescape(text).split()), name


def test_files_of_values_hold_the_exact_integers(coins: Path) -> None:
    wallet = ("wallet", coins / "coins", "--nodes", "a:0", "--unit", "BTC", "--json")
    assert json.loads(run(*wallet).stdout)["total_value"] == 123_456_789
    screen = ("screen", coins / "coins", "--listed", coins / "list.txt", "--unit", "BTC", "--json")
    assert "123456789" in run(*screen).stdout
