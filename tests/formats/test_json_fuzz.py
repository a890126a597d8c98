"""Damaged files: whatever the bytes, rows that obey the rules or an error of ours."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import random
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coinhaze.errors import CoinhazeError, InputError
from coinhaze.formats.bitcoin_etl import batches as bitcoin_etl_batches
from coinhaze.formats.json import bitcoin as bitcoin_json
from coinhaze.formats.lists import labels
from coinhaze.ledger.batches import SCHEMAS
from formats.json_samples import BLOCKS, ESPLORA, ETL, READERS, lines, rows
from formats.test_bitcoin_etl_batches import AWS_END, aws, write_parquet
from formats.test_labels import TAGPACK
from ledger.mutants import mutants as damaged

FEW, MANY = 250, 20_000
PIECES = [
    b"",
    b"\n",
    b"\r\n",
    b",",
    b'"',
    b"\0",
    b"\xff",
    b"\xc3",
    b"-",
    b".",
    b"e9",
    b"e-9",
    b"E999999999999",
    b"9" * 30,
    b"9223372036854775808",
    b"4294967296",
    b"2147483648",
    b"NaN",
    b"null",
    b"true",
    b"{",
    b"}",
    b"[]",
    b"{}",
    b"[[[[",
    b"\\ud800",
    b"\\u0000",
    b'""',
    b"0x",
    b"&a ",
    b"*a",
    b": ",
    b"- ",
    b"\x1f\x8b",
    b"PAR1",
]


mutants = partial(damaged, pieces=PIECES, cuts=(0, 0, 1, 1, 2, 5, 40), repeats=(5, 30, 300))


def obey(tables: dict[str, pa.Table]) -> None:
    """Hold the rows of one batch against the rules, one by one."""
    for name, table in tables.items():
        table.validate(full=True)
        assert table.schema.equals(SCHEMAS[name])
        for row in table.to_pylist():
            for field in SCHEMAS[name]:
                value = row[field.name]
                assert field.nullable or value is not None, (name, row)
                if isinstance(value, str):
                    assert value, (name, row)
                    assert not any(c < " " or c == "\x7f" for c in value), (name, row)
                    value.encode()
            assert 0 <= row["height"] < 2**31, row
            for key in ("vout", "vin", "spent_vout", "position", "time"):
                assert row.get(key) is None or 0 <= row[key] < 2**32, row
            assert row.get("value") is None or 0 <= row["value"] < 2**63, row


def is_read(read: Callable[[Path], object], path: Path, text: bytes) -> bool:
    path.write_bytes(text)
    refused = ""
    try:
        read(path)
    except CoinhazeError as error:
        refused = str(error)
    except BaseException as stray:
        stray.add_note(f"reading {text!r}")
        raise
    assert not refused or str(path) in refused
    return not refused


def fuzz(read: Callable[[Path], object], path: Path, good: bytes, count: int) -> None:
    assert is_read(read, path, good)
    kept = sum(is_read(read, path, text) for text in mutants(good, count, seed=count))
    assert 0 < kept < count  # else nothing was tried


def reading(name: str) -> Callable[[Path], None]:
    def read(path: Path) -> None:
        for batch in READERS[name][0].batches(path):
            obey(dict(batch.tables))
            for table, of in batch.tables.items():
                assert str(path) in batch.where(table, len(of) - 1)

    return read


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", list(READERS))
def test_damaged_json_gives_rows_that_obey_or_an_error(
    tmp_path: Path, name: str, count: int
) -> None:
    fuzz(reading(name), tmp_path / "f.json", READERS[name][1], count)


@pytest.mark.parametrize("count", [FEW // 4, pytest.param(MANY, marks=pytest.mark.long)])
def test_damaged_pretty_arrays_give_rows_that_obey_or_an_error(tmp_path: Path, count: int) -> None:
    fuzz(reading("esplora"), tmp_path / "f.json", json.dumps(ESPLORA, indent=1).encode(), count)


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
@pytest.mark.parametrize("shape", ["bigquery", "aws"])
def test_damaged_parquet_gives_rows_that_obey_or_an_error(
    tmp_path: Path, shape: str, count: int
) -> None:
    path = tmp_path / "f.parquet"
    if shape == "aws":
        write_parquet(path, aws(ETL), end=AWS_END)
    else:
        write_parquet(path, ETL)
    fuzz(reading("etl"), path, path.read_bytes(), count)


@pytest.mark.parametrize("count", [FEW // 4, pytest.param(MANY, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("l.yaml", TAGPACK),
        ("l.csv", 'address,name\na1,"Alice, jr."\nb2,\n'),
        ("l.txt", "# list\na1\nb2 # note\n"),
        ("l.json", '{"a1": "Alice", "b2": null}'),
    ],
)
def test_damaged_labels_give_names_or_an_error(
    tmp_path: Path, name: str, text: str, count: int
) -> None:
    def read(path: Path) -> None:
        found = labels.read_labels(path)
        assert len(set(found.addresses)) == len(found.addresses)
        assert found.names.keys() <= set(found.addresses)
        for word in [*found.addresses, *found.names.values()]:
            assert word
            assert not any(c < " " or c == "\x7f" for c in word)

    fuzz(read, tmp_path / name, text.encode(), count)


def test_dicts_of_a_node_with_anything_in_them_are_tables_or_refused() -> None:
    chance = random.Random(7)
    numbers = [-1, 2**70, 0.5, Decimal("NaN"), Decimal("1e9999"), Decimal("1e-99")]
    odd: list[object] = [None, True, *numbers, "", "\ud800", [], {}, b"x"]
    text = lines(BLOCKS)
    kept = 0
    for _ in range(FEW):
        blocks = [json.loads(line, parse_float=Decimal) for line in text.splitlines()]
        for _ in range(chance.choice((1, 1, 2))):
            at: object = blocks
            while isinstance(at, dict | list) and at:
                keys = list(at) if isinstance(at, dict) else list(range(len(at)))
                key = chance.choice(keys)
                inner = at[key]
                if not inner or not isinstance(inner, dict | list) or chance.random() < 0.1:
                    at[key] = chance.choice(odd)
                    break
                at = inner
        try:
            obey(bitcoin_json.block_tables(blocks))
            kept += 1
        except CoinhazeError:
            pass
        except BaseException as stray:
            stray.add_note(f"reading {blocks!r}")
            raise
    assert 0 < kept < FEW


@pytest.mark.parametrize("name", list(READERS))
def test_each_reader_knows_its_own_files_only(name: str, tmp_path: Path) -> None:
    ethereum = b'{"hash": "0x1", "block_number": 5, "from_address": "0x2", "is_coinbase": 0}'
    parquet = tmp_path / "f.parquet"
    write_parquet(parquet, ETL)
    for other, (_, text) in READERS.items():
        for written in (text, json.dumps([json.loads(x) for x in text.splitlines()]).encode()):
            assert READERS[name][0].recognises(written[:4096]) == (name == other)
            assert READERS[name][0].recognises(b"\n " + written[:4000]) == (name == other)
    for text in (b"", b"{", b"from,to,amount\n", ethereum, parquet.read_bytes()[:4096], b"\xff"):
        assert not READERS[name][0].recognises(text)


def packed(how: str, text: bytes) -> bytes:
    if how == "zst":
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, "zstd") as stream:
            stream.write(text)
        return bytes(sink.getvalue())
    return gzip.compress(text) if how == "gz" else lzma.compress(text)


@pytest.mark.parametrize("name", list(READERS))
@pytest.mark.parametrize("how", ["gz", "xz", "zst"])
def test_packed_files_are_read_as_plain_ones_and_refused_when_cut(
    tmp_path: Path, name: str, how: str
) -> None:
    reader, text = READERS[name]
    plain, path = tmp_path / "f.json", tmp_path / f"f.json.{how}"
    plain.write_bytes(text)
    path.write_bytes(packed(how, text))
    assert rows(reader.batches(path)) == rows(reader.batches(plain))
    path.write_bytes(packed(how, text)[: len(packed(how, text)) // 2])
    with pytest.raises(InputError, match="cannot be read"):
        list(reader.batches(path))


@pytest.mark.parametrize("name", list(READERS))
def test_a_packed_file_with_a_wrong_checksum_is_refused(tmp_path: Path, name: str) -> None:
    reader, text = READERS[name]
    path = tmp_path / "f.json.gz"
    broken = bytearray(gzip.compress(text))
    broken[-6] ^= 1
    path.write_bytes(broken)
    with pytest.raises(InputError, match="cannot be read"):
        list(reader.batches(path))


@pytest.mark.parametrize("name", list(READERS))
@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("f.json", b""),
        ("f.json", b" \n\n"),
        ("f.json.gz", gzip.compress(b"", mtime=0)),
        ("f.json.gz", b"{}"),
    ],
    ids=["empty", "blank", "empty gz", "plain named gz"],
)
def test_an_empty_or_misnamed_file_is_refused(
    tmp_path: Path, name: str, file: str, text: bytes
) -> None:
    (tmp_path / file).write_bytes(text)
    with pytest.raises(InputError, match=r"is empty|cannot be read"):
        list(READERS[name][0].batches(tmp_path / file))


@pytest.mark.parametrize("name", list(READERS))
def test_a_missing_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="no such file"):
        list(READERS[name][0].batches(tmp_path / "none.json"))


def test_a_parquet_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    write_parquet(path, ETL)
    good = path.read_bytes()
    for size in range(4, len(good), 97):
        path.write_bytes(good[:size])
        with pytest.raises(InputError, match="cannot be read as Parquet"):
            list(bitcoin_etl_batches.batches(path))
    assert pq.read_table(io.BytesIO(good)).num_rows == 2


@pytest.mark.parametrize("name", list(READERS))
def test_a_line_of_50_megabytes_is_read_or_refused_by_its_limit_alone(
    tmp_path: Path, name: str
) -> None:
    reader, text = READERS[name]
    path = tmp_path / "f.json"
    wide = text.replace(b"{", b'{"junk":"' + b"x" * 50_000_000 + b'",', 1)
    path.write_bytes(wide)
    plain = tmp_path / "plain.json"
    plain.write_bytes(text)
    assert rows(reader.batches(path)) == rows(reader.batches(plain))
