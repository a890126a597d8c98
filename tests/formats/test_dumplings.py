"""Dumplings text: rows, order, faults with their line, damage."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import coinhaze
from coinhaze.errors import LedgerError
from coinhaze.formats import registry as formats
from coinhaze.formats.json import dumplings
from formats.test_json_fuzz import FEW, MANY, fuzz, obey

BLOCK = "0" * 63 + "b"
KEY = "0014" + 20 * "11" + "+TxWitnessV0Keyhash"
OTHER = "76a914" + 20 * "22" + "88ac+TxPubkeyhash"
DATA = "6a0401020304+TxNullData"
EARLY, MIX, LATE = "e" * 64, "1" * 64, "2" * 64


def line(
    txid: str, time: int, spent: list[str], made: list[str], *, index: int = 3, block: str = BLOCK
) -> str:
    return ":::".join([txid, block, str(index), str(time), "}{".join(spent), "}{".join(made)])


GOOD = "\n".join(
    [
        line(MIX, 1_700_000_000, [f"{EARLY}-0-500+{KEY}", f"{EARLY}-1-700+{OTHER}"],
             [f"400+{KEY}", f"0+{DATA}", f"790+{OTHER}"]),
        line(LATE, 1_700_000_600, [f"{MIX}-2-790+{OTHER}"], [f"780+{KEY}"], index=0),
    ]
)  # fmt: skip


def test_a_file_is_a_ledger_with_values_and_owners_on_both_sides(tmp_path: Path) -> None:
    path = tmp_path / "CoinJoins.txt"
    path.write_text(GOOD)
    assert formats.format_of(path) == "dumplings"
    ledger = coinhaze.read(path)
    assert isinstance(ledger, coinhaze.CoinLedger)
    facts = ledger.facts()
    assert facts["transactions"] == 2
    assert facts["earlier_coins_spent"] == 2
    assert facts["unspent"] == 2  # data is no coin
    assert facts["unspent_value"] == 400 + 780
    names = dict(zip(ledger.output_names().to_pylist(), ledger.output_owner.tolist(), strict=True))
    owner = ledger.owners.to_pylist()
    assert owner[names[f"{MIX}:0"]] == owner[names[f"{LATE}:0"]]
    assert owner[names[f"{MIX}:0"]].startswith("bc1q")
    assert owner[names[f"{MIX}:2"]].startswith("1")
    assert ledger.heights.to_pylist()[-2:] == [1_700_000_000, 1_700_000_600]
    # Times stand in their place, and are never shown as blocks.
    assert ledger.block_heights.null_count == len(ledger.heights)
    assert facts["first_height"] is None


def test_packed_files_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    path = tmp_path / "f.txt.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode() + b"\r\n"))
    assert coinhaze.read(path).facts()["transactions"] == 2


def test_an_unknown_index_leaves_the_order_to_the_coins(tmp_path: Path) -> None:
    path = tmp_path / "f.txt"
    spender = line("0" * 64, 5, [f"{MIX}-0-400+{KEY}"], [f"400+{KEY}"], index=0)
    maker = line(MIX, 5, [f"{EARLY}-0-500+{KEY}"], [f"400+{KEY}"], index=0)
    path.write_text(f"{spender}\n{maker}\n")
    ledger = coinhaze.read(path)
    assert isinstance(ledger, coinhaze.CoinLedger)
    assert ledger.txids.to_pylist()[-2:] == [MIX, "0" * 64]


def test_one_transaction_in_two_files_counts_once(tmp_path: Path) -> None:
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    first.write_text(GOOD)
    # One list tells the index in the block, another does not.
    second.write_text(GOOD.replace(":::3:::", ":::0:::") + "\n")
    assert coinhaze.read([first, second]).facts()["transactions"] == 2


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        (GOOD.replace("-0-500+", "-0-5x0+"), r"f.txt:1: not an input: .*5x0"),
        (GOOD.replace("}{0+", "}{-1+"), r"f.txt:1: not an output"),
        (GOOD.replace(BLOCK, "b", 1), r"f.txt:1: hash of the block is not 64 hex digits: 'b'"),
        (GOOD + ":::", r"f.txt:2: 7 fields, not 6"),
        (GOOD.replace("1700000600", "4300000600"), r"f.txt:2: height is above"),
        (GOOD.replace("1700000600", "17e8"), r"f.txt:2: time is not a whole number: '17e8'"),
        (GOOD.replace(":::780", ":::9223372036854775808"), r"f.txt:2: value of an output"),
        (GOOD.replace(f"780+{KEY}", ""), r"f.txt:2: a transaction without inputs or outputs"),
        (GOOD.replace("TxPubkeyhash", "é"), r"f.txt:1: text that is not ASCII"),
    ],
    ids=["input", "output", "block", "fields", "late", "time", "value", "empty", "letters"],
)
def test_a_fault_is_named_with_its_line(tmp_path: Path, bad: str, fault: str) -> None:
    path = tmp_path / "f.txt"
    path.write_text(bad)
    with pytest.raises(LedgerError, match=fault):
        list(dumplings.batches(path))


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
def test_damaged_lines_give_rows_that_obey_or_an_error(tmp_path: Path, count: int) -> None:
    def read(path: Path) -> None:
        for batch in dumplings.batches(path):
            obey(dict(batch.tables))

    fuzz(read, tmp_path / "f.txt", GOOD.encode(), count)
