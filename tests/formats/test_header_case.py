"""Tables of ethereum-etl whose headers are in capitals, or parted by semicolons or tabs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from coinhaze.errors import LedgerError
from coinhaze.formats.ethereum import etl
from coinhaze.formats.registry import format_of
from formats import ethereum_files as files

SPELLINGS: dict[str, Callable[[str], str]] = {
    "capitals": str.upper,
    "titles": lambda name: name.title(),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("table", ["transactions", "traces", "token_transfers"])
def test_a_header_in_any_case_is_the_same_table(
    tmp_path: Path, table: str, separator: str, spelling: str
) -> None:
    make = {
        "transactions": files.transaction,
        "traces": files.trace,
        "token_transfers": files.token_transfer,
    }[table]
    text = files.csv_text([make(), make(block_number=7)])
    head, _, rest = text.partition(b"\n")
    plain = files.write(tmp_path / "plain.csv", text)
    spelt = SPELLINGS[spelling](head.decode()).encode() + b"\n" + rest
    other = files.write(tmp_path / "spelt.csv", spelt.replace(b",", separator.encode()))
    assert format_of(other) == format_of(plain) == "ethereum-etl"
    assert files.transfers(etl, other) == files.transfers(etl, plain) != []


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_columns_of_parquet_in_any_case_are_the_same(tmp_path: Path, spelling: str) -> None:
    rows = [files.token_transfer(), files.token_transfer(block_number=7)]
    columns = files.columns_of(rows)
    plain = files.parquet(tmp_path / "plain.parquet", columns)
    spelt = {SPELLINGS[spelling](name): column for name, column in columns.items()}
    other = files.parquet(tmp_path / "spelt.parquet", spelt)
    assert format_of(other) == "ethereum-etl"
    assert files.transfers(etl, other) == files.transfers(etl, plain) != []


def test_two_columns_that_differ_in_case_alone_are_distinguished(tmp_path: Path) -> None:
    row = files.token_transfer() | {"VALUE": "999"}
    path = files.write(tmp_path / "t.csv", files.csv_text([row]))
    plain = files.write(tmp_path / "p.csv", files.csv_text([files.token_transfer()]))
    assert files.transfers(etl, path) == files.transfers(etl, plain)
    both = {"Value" if n == "value" else n: v for n, v in row.items()}
    path = files.write(tmp_path / "b.csv", files.csv_text([both]))
    with pytest.raises(LedgerError, match="value"):
        files.transfers(etl, path)
