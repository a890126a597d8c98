import gzip
import json
from functools import partial
from pathlib import Path

import pytest

from coinhaze.errors import CoinhazeError
from coinhaze.ledger import AccountLedger, CoinLedger
from coinhaze.readers import read
from ledger.mutants import mutants as damaged

MUTANTS = 300
MANY = 20_000

TRANSFERS = (
    b"from,to,amount,time\n"
    b"alice,bob,5,1612180800\n"
    b'"bob, jr.",carol,%d,\n'
    b"carol,0x0000000000000000000000000000000000000000,0,1612180801\n"
) % (2**256 - 1)
TRANSACTIONS = "".join(
    json.dumps(record, separators=(",", ":")) + "\n"
    for record in (
        {
            "hash": "aa",
            "block_number": 1,
            "index": 0,
            "block_timestamp": 9,
            "is_coinbase": True,
            "inputs": [],
            "outputs": [{"index": 0, "value": 50, "type": "pubkey", "addresses": ["m"]}],
        },
        {
            "hash": "bb",
            "block_number": 2,
            "index": 1,
            "block_timestamp": 10,
            "is_coinbase": False,
            "inputs": [
                {"spent_transaction_hash": "aa", "spent_output_index": 0, "value": None},
                {"spent_transaction_hash": "ee", "spent_output_index": 3, "value": 7},
                {"type": "shielded", "value": 4, "addresses": []},
            ],
            "outputs": [
                {"index": 0, "value": 20, "script_hex": "6a", "addresses": ["a", "b"]},
                {"index": 1, "value": 30, "type": "multisig", "addresses": []},
                {"index": 2, "value": 9, "type": "shielded", "addresses": []},
            ],
        },
    )
).encode()
PIECES = [
    b"",
    b"\n",
    b"\r",
    b"\r\n",
    b",",
    b'"',
    b"\0",
    b"\x1f\x8b",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\xc3",
    b"-",
    b"+",
    b".",
    b"e9",
    b"9" * 30,
    b"18446744073709551616",
    b"NaN",
    b"null",
    b"true",
    b"{",
    b"}",
    b"[]",
    b"{}",
    b"\\ud800",
    b"\\u0000",
    b"from,to,amount\n",
]


mutants = partial(damaged, pieces=PIECES, cuts=(0, 0, 1, 1, 2, 5, 40), repeats=(30,))


def is_ledger_or_refused(path: Path, data: bytes, format: str | None) -> bool:
    path.write_bytes(data)
    try:
        ledger = read(path, format=format)
        assert isinstance(ledger, AccountLedger | CoinLedger)
        assert ledger.tables()
    except CoinhazeError:
        return False
    except BaseException as stray:
        stray.add_note(f"reading {data!r} as {format}")
        raise
    return True


@pytest.mark.parametrize("count", [MUTANTS, pytest.param(MANY, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("format", "good"), [("transfers", TRANSFERS), ("bitcoin-etl", TRANSACTIONS)]
)
def test_damaged_files_give_a_ledger_or_an_error_of_ours(
    tmp_path: Path, format: str, good: bytes, count: int
) -> None:
    path = tmp_path / "file"
    assert is_ledger_or_refused(path, good, format)
    assert is_ledger_or_refused(path, good, None)
    read_well = 0
    for number, data in enumerate(mutants(good, count, seed=count)):
        read_well += is_ledger_or_refused(path, data, format if number % 4 else None)
    assert 0 < read_well < count


@pytest.mark.parametrize(
    ("name", "good"), [("transfers.csv.gz", TRANSFERS), ("transactions.json.gz", TRANSACTIONS)]
)
@pytest.mark.parametrize("count", [MUTANTS // 5, pytest.param(500, marks=pytest.mark.long)])
def test_damaged_gzip_gives_a_ledger_or_an_error_of_ours(
    tmp_path: Path, name: str, good: bytes, count: int
) -> None:
    packed = gzip.compress(good, mtime=0)
    assert is_ledger_or_refused(tmp_path / name, packed, None)
    for data in mutants(packed, count, seed=2):
        is_ledger_or_refused(tmp_path / name, data, None)
