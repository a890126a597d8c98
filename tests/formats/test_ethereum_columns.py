from __future__ import annotations

import datetime
import random
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from coinhaze.errors import InputError, LedgerError
from coinhaze.formats.ethereum import etl as ethereum_etl
from formats.ethereum_files import (
    EXPECTED,
    Row,
    address,
    columns_of,
    csv_text,
    json_text,
    parquet,
    transaction,
    transfers,
    txid,
    write,
)


def of(tmp_path: Path, rows: list[Row]) -> list[Row]:
    return transfers(ethereum_etl, write(tmp_path / "rows.csv", csv_text(rows)))


def kept(tmp_path: Path, rows: list[Row]) -> list[tuple[str, str]]:
    return [(row["recipient"], row["amount"]) for row in of(tmp_path, rows)]


MOMENT = datetime.datetime(2015, 11, 3, 14, 44, 40, 999_999, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    "changes",
    [
        {"value": pa.array([str(10**20)])},
        {"value": pa.array([str(10**20)]).dictionary_encode()},
        {"value": pa.array([str(10**20)], pa.large_string())},
        {"value": pa.array([Decimal(10**20)], pa.decimal128(38, 9))},
        {"value": pa.array([Decimal(10**20)], pa.decimal256(76, 38))},
        {"block_timestamp": pa.array([MOMENT], pa.timestamp("us", "UTC"))},
        {"block_timestamp": pa.array([MOMENT], pa.timestamp("ns"))},
        {"block_timestamp": pa.array(["2015-11-03T14:44:40Z"])},
        {"block_timestamp": pa.array(["2015-11-03 14:44:40.000 UTC"])},
        {"transaction_index": pa.array([2.0])},
        {"block_number": pa.array([100], pa.uint64())},
    ],
)
def test_parquet_may_have_any_type_that_is_exact(tmp_path: Path, changes: Any) -> None:
    columns = columns_of([transaction(value=str(10**20))], **changes)
    assert transfers(ethereum_etl, parquet(tmp_path / "a.parquet", columns)) == [EXPECTED]
    assert ethereum_etl.recognises_columns(list(columns))


def test_parquet_may_have_whole_numbers_as_amounts(tmp_path: Path) -> None:
    columns = columns_of([transaction(value=2**53), transaction(value=9, hash=txid(2))])
    found = transfers(ethereum_etl, parquet(tmp_path / "a.parquet", columns))
    assert [row["amount"] for row in found] == [str(2**53), "9"]


def test_aws_doubles_are_read_where_they_are_exact(tmp_path: Path) -> None:
    rows = [transaction(value=float(2**53 - 1)), transaction(value=0.0, hash=txid(2))]
    found = transfers(ethereum_etl, parquet(tmp_path / "a.parquet", columns_of(rows)))
    assert [row["amount"] for row in found] == [str(2**53 - 1)]


@pytest.mark.parametrize("value", [float(2**53), 1e20, 0.5, -1.0, float("nan"), float("inf")])
def test_aws_doubles_that_lost_digits_are_refused_by_row(tmp_path: Path, value: float) -> None:
    rows = [transaction(value=1.0), transaction(value=value, hash=txid(2))]
    path = parquet(tmp_path / "a.parquet", columns_of(rows))
    with pytest.raises(LedgerError, match=r"a\.parquet: row 2: value is a double .* BigQuery"):
        list(ethereum_etl.batches(path))


@pytest.mark.parametrize(
    ("column", "value", "fault"),
    [
        ("value", pa.array([b"5"]), "value is not 32 bytes"),
        ("value", pa.array([True]), "column value holds bool"),
        ("value", pa.array([Decimal("1.5")]), "value is not whole"),
        ("value", pa.array([Decimal("-1")]), "value is negative"),
        ("value", pa.array([-1]), "value is negative"),
        ("hash", pa.array([7]), "column hash holds int64"),
        ("block_number", pa.array([2**63], pa.uint64()), "block_number is not a whole number"),
        ("block_number", pa.array([1.5]), "block_number is not a whole number"),
        ("block_number", pa.array([True]), "column block_number holds bool"),
        ("block_number", pa.array([None], pa.int64()), "block_number is missing"),
        ("block_timestamp", pa.array([-1], pa.timestamp("us")), "not a time from 1970"),
        ("block_timestamp", pa.array([2**50], pa.timestamp("ms")), "not a time from 1970"),
        ("block_timestamp", pa.array([2**62], pa.timestamp("us", "Mars/Base")), "not a time"),
        ("block_timestamp", pa.array([1446561880000]), "block_timestamp is not a whole number"),
    ],
)
def test_parquet_of_wrong_types_is_refused(
    tmp_path: Path, column: str, value: Any, fault: str
) -> None:
    path = parquet(tmp_path / "a.parquet", columns_of([transaction(value="1")], **{column: value}))
    with pytest.raises(LedgerError, match=fault):
        list(ethereum_etl.batches(path))


def test_parquet_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    bad = pa.array([b"\xff\xfe"], pa.binary()).view(pa.string())
    path = parquet(tmp_path / "a.parquet", columns_of([transaction(value="1")], hash=bad))
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        list(ethereum_etl.batches(path))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("1446561880", 1446561880),
        ("2015-11-03 14:44:40", 1446561880),
        ("2015-11-03T14:44:40Z", 1446561880),
        ("2015-11-03 14:44:40 UTC", 1446561880),
        ("2015-11-03 14:44:40.999 UTC", 1446561880),
        ("2015-11-03 14:44:40+00:00", 1446561880),
        ("", None),
    ],
)
def test_times_are_seconds_or_text_in_utc(tmp_path: Path, text: str, seconds: int | None) -> None:
    # A row of seconds beside it: files mix them only if somebody glued them together.
    rows = [transaction(block_timestamp=text), transaction(hash=txid(2))]
    assert [r["time"] for r in of(tmp_path, rows)] == [seconds, 1446561880]


@pytest.mark.parametrize(
    "text",
    ["2015-02-30 00:00:00", "2015-13-01 00:00:00", "2015-11-03", "1969-12-31 23:59:59", "noon",
     "2015-11-03 14:44:40+01:00", "1446561880000", "-1", "1e9"],
)  # fmt: skip
def test_times_that_are_none_are_refused_by_line(tmp_path: Path, text: str) -> None:
    rows = [transaction(), transaction(hash=txid(2), block_timestamp=text)]
    with pytest.raises(LedgerError, match=r"rows\.csv:3: block_timestamp is no"):
        of(tmp_path, rows)


def test_random_times_are_those_of_the_calendar(tmp_path: Path) -> None:
    chance = random.Random(5)
    seconds = [chance.randrange(253_402_300_800) for _ in range(300)]
    epoch = datetime.datetime(1970, 1, 1)
    rows = [
        transaction(
            hash=txid(k), block_timestamp=str(epoch + datetime.timedelta(seconds=s)) + " UTC"
        )
        for k, s in enumerate(seconds)
    ]
    assert [r["time"] for r in of(tmp_path, rows)] == seconds


def test_amounts_are_exact_to_the_largest_of_256_bits(tmp_path: Path) -> None:
    values = [2**256 - 1, 2**256 - 2, 2**127, 10**77, 1]
    rows = [transaction(value=v, hash=txid(k)) for k, v in enumerate(values)]
    assert [int(a) for _, a in kept(tmp_path, rows)] == values
    path = write(tmp_path / "a.json", json_text(rows))
    assert [int(r["amount"]) for r in transfers(ethereum_etl, path)] == values


def test_leading_zeros_are_no_part_of_an_amount(tmp_path: Path) -> None:
    rows = [transaction(value="007"), transaction(value="000", hash=txid(2))]
    assert kept(tmp_path, rows) == [(address("bob"), "7")]


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("1e+18", "not a whole number"),
        ("1.5", "not a whole number"),
        ("1_000", "not a number"),
        ("", "is missing"),
        ("-5", "is negative"),
        ("NaN", "not a number"),
        ("0x10", "not a number"),
        (str(2**256), "above 2^256 - 1"),
        ("9" * 400, "above 2^256 - 1"),
        ("\uff19", "not a number"),
        ("1\x00", "not a number"),
        (" 1", "not a"),
    ],
)
def test_an_amount_that_is_no_plain_number_is_refused(
    tmp_path: Path, value: str, fault: str
) -> None:
    rows = [transaction(), transaction(hash=txid(2), value=value)]
    with pytest.raises(LedgerError, match=r"rows\.csv:3: value " + f".*{re.escape(fault)}"):
        of(tmp_path, rows)
