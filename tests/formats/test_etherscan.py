"""Exports of Etherscan: rows, failed ones, a score by hand, and what mends likely mistakes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import coinhaze
from coinhaze.errors import CoinhazeError, LedgerError
from coinhaze.formats.registry import format_of
from coinhaze.formats.transfers.etherscan import MARK
from coinhaze.ledger import AccountLedger
from coinhaze.store.ingest import ingest
from coinhaze.store.read import read_store
from coinhaze.store.store import Store

ANN, BEN, CID, DAN, USD = ("0x" + letter * 40 for letter in "abcde")
ETHER = 10**18
TOKENS = [
    "Transaction Hash", "Blockno", "UnixTimestamp", "DateTime (UTC)", "From", "To", "TokenValue",
    "USDValueDayOfTx", "ContractAddress", "TokenName", "TokenSymbol",
]  # fmt: skip
NORMAL = [
    "Transaction Hash", "Blockno", "UnixTimestamp", "DateTime (UTC)", "From", "To",
    "ContractAddress", "Value_IN(ETH)", "Value_OUT(ETH)", "CurrentValue @ $3000/Eth",
    "TxnFee(ETH)", "TxnFee(USD)", "Historical $Price/Eth", "Status", "ErrCode", "Method",
]  # fmt: skip
INTERNAL = [
    "Transaction Hash", "Blockno", "UnixTimestamp", "DateTime (UTC)", "ParentTxFrom", "ParentTxTo",
    "ParentTxETH_Value", "From", "TxTo", "ContractAddress", "Value_IN(ETH)", "Value_OUT(ETH)",
    "CurrentValue @ $3000/Eth", "Historical $Price/Eth", "Status", "ErrCode", "Type",
]  # fmt: skip
Row = dict[str, str]


def start(n: int) -> Row:
    seconds = 1_600_000_000 + 12 * n
    return {
        "Transaction Hash": f"0x{n:064x}",
        "Blockno": str(100 + n),
        "UnixTimestamp": str(seconds),
        "DateTime (UTC)": "2020-09-13 12:26:40",
    }


def token(n: int, sender: str, to: str, value: str, contract: str = USD) -> Row:
    row = {"From": sender, "To": to, "TokenValue": value, "ContractAddress": contract}
    del (made := start(n))["DateTime (UTC)"]  # would have to agree with the other time
    return made | row | {"TokenName": "US, dollars", "TokenSymbol": "USD", "USDValueDayOfTx": "$1"}


def ether(n: int, sender: str, to: str, came: str, went: str, **more: str) -> Row:
    row = {"From": sender, "To": to, "TxTo": to, "Value_IN(ETH)": came, "Value_OUT(ETH)": went}
    return start(n) | row | more


def write(path: Path, header: list[str], rows: list[Row]) -> Path:
    lines = [",".join(f'"{name}"' for name in header)]
    lines += [",".join(f'"{row.get(name, "")}"' for name in header) for row in rows]
    path.write_text("\ufeff" + "\n".join(lines) + "\n")
    return path


def accounts(path: Path, **settings: object) -> AccountLedger:
    ledger = coinhaze.read(path, **settings)  # type: ignore[arg-type]
    assert isinstance(ledger, AccountLedger)
    return ledger


def moved(ledger: AccountLedger) -> list[tuple[str, str, int]]:
    names = ledger.accounts.to_pylist()
    rows = zip(ledger.sender.tolist(), ledger.receiver.tolist(), ledger.amounts.ints(), strict=True)
    return [(names[a], names[b], amount) for a, b, amount in rows]


# Ann pays 1,500 and Ben 500 to Cid, who pays Dan: three parts of four were Ann's.
PAID = [
    token(1, ANN, CID, "1,500"),
    token(2, BEN, CID, "500.000000"),
    token(3, CID, DAN, "2,000.0"),
]


def test_tokens_are_read_and_scored_as_by_hand(tmp_path: Path) -> None:
    path = write(tmp_path / "export.csv", TOKENS, PAID)
    assert format_of(path) == "etherscan"
    ledger = accounts(path, decimals=6)
    assert moved(ledger) == [
        (ANN, CID, 1500 * 10**6),
        (BEN, CID, 500 * 10**6),
        (CID, DAN, 2 * 10**9),
    ]
    scores = coinhaze.score(path, decimals=6)
    # -(3/4) log2(3/4) - (1/4) log2(1/4)
    assert scores[DAN].bits == pytest.approx(0.8112781244591328, abs=1e-12)
    assert f"read as given: decimals 6; {MARK}" in scores.notes


def test_the_currency_in_the_header_is_the_unit_where_its_decimals_agree(tmp_path: Path) -> None:
    rows = [ether(1, ANN, BEN, "1.5", "0")]
    path = write(tmp_path / "ether.csv", NORMAL, rows)
    unit = accounts(path, decimals=18).unit
    assert unit is not None
    assert unit.words(15 * ETHER // 10) == "1.5 ETH"
    assert accounts(path, decimals=6).unit is None  # ether has 18
    header = [name.replace("(ETH)", "(GEM)") for name in NORMAL]
    gems = [{name.replace("(ETH)", "(GEM)"): value for name, value in rows[0].items()}]
    unit = accounts(write(tmp_path / "gem.csv", header, gems), decimals=9).unit
    assert unit is not None
    assert unit.spelling == "GEM:9"
    assert accounts(write(tmp_path / "usd.csv", TOKENS, PAID), decimals=6).unit is None


def test_rows_in_any_order_and_identical_ones_all_count(tmp_path: Path) -> None:
    rows = [*PAID, PAID[0]]
    random.Random(3).shuffle(rows)
    ledger = accounts(write(tmp_path / "export.csv", TOKENS, rows), decimals=6)
    assert [amount for _, _, amount in moved(ledger)] == [
        n * 10**6 for n in (1500, 1500, 500, 2000)
    ]
    assert any("2 rows are each identical to another" in note for note in ledger.notes)


def test_of_several_tokens_one_is_chosen(tmp_path: Path) -> None:
    path = write(tmp_path / "export.csv", TOKENS, [*PAID, token(4, ANN, BEN, "7", "0x" + "9" * 40)])
    assert len(accounts(path, decimals=6, token=USD)) == 3
    with pytest.raises(CoinhazeError, match=r"hold 2 tokens .*--token"):
        accounts(path, decimals=6)


def test_ether_comes_in_or_goes_out_and_what_failed_moves_nothing(tmp_path: Path) -> None:
    rows = [
        ether(1, ANN, CID, "1.5", "0"),
        ether(2, CID, BEN, "0", "0.25"),
        ether(3, CID, DAN, "0", "9", Status="Error(0)", ErrCode="out of gas"),
        ether(4, CID, "", "0", "1", ContractAddress=USD),
        ether(5, CID, CID, "2", "2"),
        ether(6, CID, DAN, "0", "0"),
    ]
    ledger = accounts(write(tmp_path / "export.csv", NORMAL, rows), decimals=18)
    assert moved(ledger) == [
        (ANN, CID, 3 * ETHER // 2),
        (CID, BEN, ETHER // 4),
        (CID, USD, ETHER),
        (CID, CID, 2 * ETHER),
        (CID, DAN, 0),
    ]
    assert not any("Status" in note or "Value_OUT" in note for note in ledger.notes)


def test_internal_transactions_are_read(tmp_path: Path) -> None:
    rows = [
        ether(1, ANN, CID, "0.000000000000000001", "0", Status="0", Type="call"),
        ether(2, CID, BEN, "0", "3", Status="1", ErrCode="Reverted"),
    ]
    path = write(tmp_path / "export.csv", INTERNAL, rows)
    assert moved(accounts(path, decimals=18)) == [(ANN, CID, 1)]


def test_a_store_holds_the_same_rows_and_the_mark(tmp_path: Path) -> None:
    path = write(tmp_path / "export.csv", TOKENS, list(reversed(PAID)))
    with Store(None) as store:
        done = ingest([path], store, decimals=6)
        ledger = read_store(store)
        assert [s.format for s in store.sources()] == ["etherscan, decimals 6"]
    assert isinstance(ledger, AccountLedger)
    assert moved(ledger) == moved(accounts(path, decimals=6))
    assert any(MARK in note for note in done.notes)


MISTAKES: dict[str, tuple[list[str], list[Row], dict[str, object], str]] = {
    "decimals left out": (TOKENS, PAID, {}, "nothing says how many decimals.*--decimals: 18 for"),
    "too few decimals": (
        TOKENS, [token(1, ANN, BEN, "0.0000001")], {"decimals": 6},
        r"csv:2: TokenValue has more than 6 places after the point: '0\.0000001'",
    ),
    "a rounded exponent": (
        TOKENS, [*PAID, token(4, ANN, BEN, "1.2E+21")], {"decimals": 18},
        r"csv:5: TokenValue is not a decimal number >= 0: '1\.2E\+21' .*spreadsheet",
    ),
    "commas elsewhere": (
        TOKENS, [token(1, ANN, BEN, "1,5")], {"decimals": 6}, "'1,5' .*a point before decimals",
    ),
    "no value": (TOKENS, [token(1, ANN, BEN, "")], {"decimals": 6}, "csv:2: TokenValue is missing"),
    "no sender": (TOKENS, [token(1, "", BEN, "1")], {"decimals": 6}, "csv:2: .*from.*missing"),
    "both ways": (
        NORMAL, [ether(1, ANN, BEN, "1", "2")], {"decimals": 18},
        r"csv:2: Value_IN\(ETH\) and Value_OUT\(ETH\) both say that something moved: '1'",
    ),
    "a status nobody knows": (
        NORMAL, [ether(1, ANN, BEN, "1", "0", Status="Pending")], {"decimals": 18},
        "csv:2: Status is none of those that are known",
    ),
    "a block that is none": (
        TOKENS, [token(1, ANN, BEN, "1") | {"Blockno": "1,234"}], {"decimals": 6},
        "csv:2: Blockno is not a whole number",
    ),
    "the wrong format": (TOKENS, PAID, {"decimals": 6, "format": "ethereum-etl"},
        "this is etherscan: leave out --format"),
    "tokens without their contract": (
        [n for n in TOKENS if n != "ContractAddress"], PAID, {"decimals": 6},
        "without ContractAddress: export it again, with all its columns",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_answered_by_what_mends_it(tmp_path: Path, mistake: str) -> None:
    header, rows, settings, words = MISTAKES[mistake]
    path = write(tmp_path / "export.csv", header, rows)
    with pytest.raises(CoinhazeError, match=f"(?i){words}"):
        accounts(path, **settings)


def test_lines_are_those_of_the_file_where_rows_are_left_out(tmp_path: Path) -> None:
    rows = [ether(n, ANN, BEN, "1", "0", Status="Error(0)") for n in range(3)]
    path = write(tmp_path / "export.csv", NORMAL, [*rows, ether(4, ANN, BEN, "x", "0")])
    with pytest.raises(LedgerError, match=r"csv:5: Value_IN\(ETH\) is not a decimal number"):
        accounts(path, decimals=18)


def test_damaged_exports_give_a_ledger_or_an_error_of_ours(tmp_path: Path) -> None:
    chance = random.Random(5)
    whole = write(tmp_path / "export.csv", NORMAL, [ether(n, ANN, BEN, "1", "0") for n in range(4)])
    content, read = whole.read_bytes(), 0
    for _ in range(150):
        damaged = bytearray(content)
        for _ in range(chance.randrange(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.choice(b'",\n0;\xff-.eE')
        whole.write_bytes(damaged[: chance.randrange(len(damaged) // 2, len(damaged) + 1)])
        try:
            coinhaze.read(whole, decimals=18)
            read += 1
        except CoinhazeError as error:
            assert str(whole) in str(error)  # noqa: PT017
    assert 0 < read < 150
