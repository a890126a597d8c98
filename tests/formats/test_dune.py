"""Exports of Dune: exact amounts, order, a score by hand, and what mends likely mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import coinhaze
from coinhaze.errors import CoinhazeError
from coinhaze.formats.registry import format_of
from coinhaze.store.ingest import ingest
from coinhaze.store.read import read_store
from coinhaze.store.store import Store

ANN, BEN, CID, DAN, USD, EUR = ("0x" + letter * 40 for letter in "abcdef")
WIDE = 10**30 + 1
BITS = 0.8112781244591328  # -(3/4) log2(3/4) - (1/4) log2(1/4)
Row = dict[str, str]


def transfer(n: int, sender: str, to: str, amount: int, **more: str) -> Row:
    """A row of tokens.transfers: what it gives of an amount is rounded."""
    return {
        "block_time": f"2024-01-01 00:00:{n:02}.000 UTC",
        "block_number": str(100 + n),
        "tx_hash": f"0x{n:064x}",
        "evt_index": str(7 + n),
        "trace_address": "<nil>",
        "token_standard": "erc20",
        "tx_from": sender,
        "tx_to": USD,
        "tx_index": "3",
        "from": sender,
        "to": to,
        "contract_address": USD,
        "symbol": "USD",
        "amount_raw": str(amount),
        "amount": f"{amount / 1e6:.6g}",
        "price_usd": "<nil>",
        "amount_usd": "1",
    } | more


def event(n: int, sender: str, to: str, amount: int) -> Row:
    """A row of the events of one contract."""
    return {
        "contract_address": USD,
        "evt_tx_hash": f"0x{n:064x}",
        "evt_tx_from": sender,
        "evt_tx_to": USD,
        "evt_tx_index": "3",
        "evt_index": str(7 + n),
        "evt_block_time": f"2024-01-01 00:00:{n:02}.000 UTC",
        "evt_block_number": str(100 + n),
        "evt_block_date": "2024-01-01",
        "from": sender,
        "to": to,
        "value": str(amount),
    }


def write(path: Path, rows: list[Row], separator: str = ",") -> Path:
    lines = [separator.join(rows[0]), *(separator.join(row.values()) for row in rows)]
    file = path / "export.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


# Ann pays three parts of Cid's money and Ben one; Cid gives all to Dan.
MOVES = [(1, ANN, CID, 3 * WIDE), (2, BEN, CID, WIDE), (3, CID, DAN, 4 * WIDE)]


@pytest.mark.parametrize("make", [transfer, event])
@pytest.mark.parametrize("newest_first", [True, False])
def test_exact_amounts_are_read_and_scored_as_by_hand(
    tmp_path: Path, make: Any, newest_first: bool
) -> None:
    rows = [make(*move) for move in MOVES]
    path = write(tmp_path, rows[::-1] if newest_first else rows)
    assert format_of(path) == "dune"
    ledger = coinhaze.read(path)
    assert ledger.amounts.ints() == [amount for *_, amount in MOVES]  # type: ignore[union-attr]
    assert coinhaze.score(path)[DAN].bits == pytest.approx(BITS, abs=1e-12)
    used = ledger.columns["used"]
    assert {"contract_address", "evt_index"} <= set(used)
    assert "amount" not in used
    assert {"block_number", "evt_block_number"} & set(used)
    with Store(None) as store:
        ingest([path], store)
        assert read_store(store).amounts.ints() == [a for *_, a in MOVES]  # type: ignore[union-attr]


def test_headers_in_any_case_and_other_separators_are_read(tmp_path: Path) -> None:
    rows = [transfer(*move) for move in MOVES]
    spelt = [{name.replace("_", " ").title(): v for name, v in row.items()} for row in rows]
    assert format_of(write(tmp_path, spelt)) == "dune"
    assert len(coinhaze.read(write(tmp_path, spelt))) == 3


def test_the_same_row_in_two_exports_counts_once(tmp_path: Path) -> None:
    first = write(tmp_path, [transfer(*move) for move in MOVES])
    (other := tmp_path / "b").mkdir()
    second = write(other, [transfer(*move) for move in MOVES[1:]])
    assert len(coinhaze.read([first, second])) == 3


def changed(**values: str) -> list[Row]:
    return [transfer(*move) for move in MOVES[:-1]] + [transfer(*MOVES[-1]) | values]


def without(*names: str) -> list[Row]:
    rows = [transfer(*move) for move in MOVES]
    return [{name: v for name, v in row.items() if name not in names} for row in rows]


MISTAKES: dict[str, tuple[list[Row], dict[str, Any], str]] = {
    "the rounded amount alone": (without("amount_raw"), {}, r"rounded.*add amount_raw"),
    "the rounded amount and decimals": (
        without("amount_raw"), {"decimals": 6}, r"rounded.*add amount_raw"),
    "decimals beside exact amounts": (changed(), {"decimals": 6}, r"smallest unit.*leave out"),
    "ether among tokens": (
        changed(evt_index="<nil>"), {}, r":4: evt_index is missing.*token_standard = 'erc20'"),
    "amounts from a spreadsheet": (
        changed(amount_raw="1.5E+24"), {}, r":4: amount_raw is not a whole number.*spreadsheets"),
    "an amount that is missing": (changed(amount_raw="<nil>"), {},
        r":4: amount_raw is missing .leave out the rows"),
    "several tokens": (changed(contract_address=EUR), {}, r"hold 2 tokens.*--token"),
    "a token that is not there": (changed(), {"token": EUR}, r"hold no token.*they have 0xeee"),
    "two contents of one event": (
        [*changed(), transfer(1, ANN, CID, 5)], {}, r"the same id with another amount.*see .*:2"),
    "blocks against times": (
        changed(block_time="2023-01-01 00:00:00.000 UTC"), {}, r"block_time|block_number"),
    "a sender that is missing": (changed(**{"from": "<nil>"}), {}, r"from is missing"),
    "a row cut short": ([*changed(), {"a": "1"}], {}, r"export.csv:5"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_likely_mistake_is_named_with_its_fix(tmp_path: Path, mistake: str) -> None:
    rows, settings, message = MISTAKES[mistake]
    with pytest.raises(CoinhazeError, match=message):
        coinhaze.read(write(tmp_path, rows), **settings)
