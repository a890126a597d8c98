"""Blockchair dumps: their traps, and files that break the rules."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from benchmarks.blockchair_files import INPUTS, OUTPUTS, TRANSACTIONS

from coinhaze.errors import CoinhazeError, InputError
from coinhaze.formats.blockchair import bitcoin as blockchair
from coinhaze.formats.compression import open_plain
from coinhaze.formats.registry import format_of
from coinhaze.formats.tabular import delimited
from coinhaze.ledger.batches import SCHEMAS, Batch
from coinhaze.store.ingest import ingest
from coinhaze.store.read import read_store
from coinhaze.store.store import Store

Row = dict[str, Any]

A, B, C = "a" * 64, "b" * 64, "c" * 64
NOON = "2021-04-01 12:00:00"
COIN = {
    "block_id": "5", "transaction_hash": A, "index": "0", "time": NOON, "value": "50",
    "recipient": "alice", "type": "pubkeyhash", "is_from_coinbase": "1", "is_spendable": "-1",
}  # fmt: skip
SPENDING = {
    "spending_block_id": "6", "spending_transaction_hash": B, "spending_index": "2",
    "spending_time": NOON,
}  # fmt: skip
BLOCK = {
    "id": "5", "hash": C, "time": NOON, "merkle_root": A, "nonce": "1", "bits": "421305826",
    "guessed_miner": "AntPool",
}  # fmt: skip
BLOCKS = "id hash time median_time size merkle_root nonce bits transaction_count guessed_miner cbtx"
MADE = {"block_id": "5", "hash": A, "time": NOON, "is_coinbase": "1"}


def text(header: str, *rows: dict[str, str]) -> bytes:
    columns = header.split()
    lines = ["\t".join(row.get(c, "\\N") for c in columns) for row in rows]
    return "\n".join(["\t".join(columns), *lines]).encode()


def tables(
    tmp_path: Path, content: bytes, name: str = "file.tsv"
) -> dict[str, list[dict[str, object]]]:
    path = tmp_path / name
    path.write_bytes(content)
    found: dict[str, list[Row]] = {}
    for batch in blockchair.batches(path):
        for table, rows in batch.tables.items():
            found.setdefault(table, []).extend(rows.to_pylist())
    return found


def test_outputs_are_coins_and_tell_of_their_transactions(tmp_path: Path) -> None:
    found = tables(tmp_path, text(OUTPUTS, COIN, COIN | {"index": "1", "is_from_coinbase": "1"}))
    assert found["outputs"][0] == {
        "height": 5, "txid": A, "vout": 0, "spendable": True, "value": 50, "owner": "alice",
    }  # fmt: skip
    assert found["transactions"][0] == {
        "height": 5, "txid": A, "coinbase": True, "position": None, "time": 1617278400,
    }  # fmt: skip


def test_inputs_are_spendings_with_the_values_of_what_is_spent(tmp_path: Path) -> None:
    found = tables(tmp_path, text(INPUTS, COIN | SPENDING))
    assert found["inputs"] == [
        {
            "height": 6, "txid": B, "vin": 2, "spent_txid": A, "spent_vout": 0, "value": 50,
            "owner": "alice",
        }
    ]  # fmt: skip
    assert [t["coinbase"] for t in found["transactions"]] == [False]


def test_backslash_n_is_null_and_not_an_owner(tmp_path: Path) -> None:
    found = tables(tmp_path, text(OUTPUTS, COIN | {"recipient": "\\N"}))
    assert found["outputs"][0]["owner"] is None


def test_quotes_are_letters(tmp_path: Path) -> None:
    found = tables(tmp_path, text(OUTPUTS, COIN | {"recipient": '"bob', "script_hex": '"'}))
    assert found["outputs"][0]["owner"] == '"bob'


def test_data_can_never_be_spent(tmp_path: Path) -> None:
    rows = [
        COIN | {"type": "nulldata", "recipient": "d-1"},
        COIN | {"index": "1", "is_spendable": "0"},
    ]
    found = tables(tmp_path, text(OUTPUTS, *rows))
    assert [o["spendable"] for o in found["outputs"]] == [False, False]


def test_rows_of_the_mempool_are_left_out(tmp_path: Path) -> None:
    found = tables(tmp_path, text(OUTPUTS, COIN | {"block_id": "-1"}, COIN))
    assert len(found["outputs"]) == 1
    bad = text(OUTPUTS, COIN | {"block_id": "-1"}, COIN | {"value": "x"})
    with pytest.raises(InputError, match=r"file\.tsv:3: value is not a whole number .*: 'x'"):
        tables(tmp_path, bad)


def test_what_goes_into_pools_is_above_zero(tmp_path: Path) -> None:
    header = TRANSACTIONS + " shielded_value_delta join_split_raw"
    rows = [
        MADE | {"shielded_value_delta": d, "hash": h} for d, h in (("7", A), ("-9", B), ("0", C))
    ]
    found = tables(tmp_path, text(header, *rows))
    assert [(f["txid"], f["into_pool"], f["pool"]) for f in found["pool_flows"]] == [
        (A, 7, "shielded"),
        (B, -9, "shielded"),
    ]
    assert len(found["transactions"]) == 3


def test_blocks_are_reported_without_the_block_before_them(tmp_path: Path) -> None:
    rows = [BLOCK | {"cbtx": '{"version":2}'}, BLOCK | {"id": "6", "hash": B.upper()}]
    found = tables(tmp_path, text(BLOCKS, *rows))
    assert found == {
        "blocks": [
            {"height": 5, "hash": C, "previous": None, "time": 1617278400},
            {"height": 6, "hash": B, "previous": None, "time": 1617278400},
        ],
        "stated_blocks": [
            {"height": 5, "transaction_count": None, "merkle_root": A},
            {"height": 6, "transaction_count": None, "merkle_root": A},
        ],
    }
    assert format_of(tmp_path / "file.tsv") == "blockchair"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"hash": "\\N"}, "hash is missing"),
        ({"hash": A[1:]}, "hash is not 64 hexadecimal digits"),
        ({"id": "x"}, "id is not a whole number"),
        ({"id": str(2**31)}, "id is not a whole number"),
        ({"time": "\\N"}, "time is missing"),
        ({"time": "2021-02-30 12:00:00"}, "time is no time"),
        ({"time": "yesterday"}, "time is no time"),
    ],
    ids=range(7),
)
def test_blocks_that_break_a_rule_are_refused(
    tmp_path: Path, changes: dict[str, str], says: str
) -> None:
    with pytest.raises(InputError, match=rf"file\.tsv:3: {says}"):
        tables(tmp_path, text(BLOCKS, BLOCK, BLOCK | {"id": "6"} | changes))


def test_a_store_of_blocks_alone_says_that_transactions_are_missing(tmp_path: Path) -> None:
    blocks, outputs = tmp_path / "blocks.tsv", tmp_path / "outputs.tsv"
    blocks.write_bytes(text(BLOCKS, BLOCK))
    outputs.write_bytes(text(OUTPUTS, COIN))
    with Store(tmp_path / "store") as store:
        assert ingest([blocks], store).rows == 1
        with pytest.raises(InputError, match="holds blocks but no transactions: ingest those too"):
            read_store(store)
        ingest([outputs], store)
        assert len(read_store(store)) == 1
        assert store.headers() == {5: C}


def test_two_dumps_that_differ_on_a_block_are_refused(tmp_path: Path) -> None:
    for name, hashed in (("one", A), ("two", B)):
        (tmp_path / name).write_bytes(text(BLOCKS, BLOCK | {"hash": hashed}))
    with Store(None) as store:
        ingest([tmp_path / "one"], store)
        with pytest.raises(InputError, match="blocks: another row is in the store already"):
            ingest([tmp_path / "two"], store)


def test_the_header_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []

    def counting(path: Path, **how: Any) -> BinaryIO:
        opened.append(path)
        return open_plain(path, **how)

    monkeypatch.setattr(delimited, "open_plain", counting)
    tables(tmp_path, text(OUTPUTS, COIN))
    assert len(opened) == 1


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    turned = " ".join(reversed(OUTPUTS.split()))
    assert tables(tmp_path, text(turned, COIN)) == tables(tmp_path, text(OUTPUTS, COIN))


def test_a_day_without_rows_is_a_valid_file(tmp_path: Path) -> None:
    for end in (b"", b"\n"):
        assert tables(tmp_path, text(OUTPUTS) + end) == {}


@pytest.mark.parametrize("kind", ["gz", "xz", "zst"])
def test_packed_files_are_unpacked_by_their_content(tmp_path: Path, kind: str) -> None:
    import lzma

    import pyarrow as pa

    plain = text(OUTPUTS, COIN)
    pack: dict[str, Callable[[bytes], bytes]] = {
        "gz": gzip.compress,
        "xz": lzma.compress,
        "zst": lambda b: pa.Codec("zstd").compress(b, asbytes=True),
    }
    assert len(tables(tmp_path, pack[kind](plain), "odd.name")["outputs"]) == 1
    assert format_of(tmp_path / "odd.name") == "blockchair"


def spoilt(old: bytes, new: bytes) -> bytes:
    whole = text(OUTPUTS, COIN, COIN | {"index": "1"})
    assert old in whole
    return whole.replace(old, new)


BAD: dict[str, bytes] = {
    "a row too short": spoilt(b"\t-1", b""),
    "a row too long": spoilt(b"-1", b"-1\t5"),
    "text that is not UTF-8": spoilt(b"alice", b"al\xffce"),
    "a NUL byte in a hash": spoilt(A.encode(), b"\0" + b"a" * 63),
    "an empty value": spoilt(b"\t50\t", b"\t\t"),
    "no value": spoilt(b"\t50\t", b"\t\\N\t"),
    "a negative value": spoilt(b"\t50\t", b"\t-50\t"),
    "a fraction": spoilt(b"\t50\t", b"\t5.0\t"),
    "a power of ten": spoilt(b"\t50\t", b"\t1e+18\t"),
    "grouped digits": spoilt(b"\t50\t", b"\t1_000\t"),
    "a value beyond 64 bits": spoilt(b"\t50\t", b"\t18446744073709551616\t"),
    "a day that is none": spoilt(NOON.encode(), b"2021-02-30 12:00:00"),
    "a flag that is none": spoilt(b"\t1\t-1", b"\tyes\t-1"),
    "the header again": spoilt(b"\n5\t", b"\n" + "\t".join(OUTPUTS.split()).encode() + b"\n5\t"),
    "a column twice": text(OUTPUTS + " value", COIN),
    "bad gzip checksum": (lambda b: b[:-8] + bytes([b[-8] ^ 1]) + b[-7:])(
        gzip.compress(text(OUTPUTS, COIN))
    ),
    "gzip cut in half": (lambda b: b[: len(b) // 2])(gzip.compress(text(OUTPUTS, *[COIN] * 50))),
}


@pytest.mark.parametrize("name", BAD)
def test_files_that_break_a_rule_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError) as caught:
        tables(tmp_path, BAD[name])
    assert "file.tsv" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"plain text"])
def test_what_is_called_packed_and_is_not_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file.tsv.gz"
    path.write_bytes(content)
    with pytest.raises(InputError), Store(None) as store:
        ingest([path], store)


def mutants(seed: int, count: int) -> list[bytes]:
    chance = random.Random(seed)
    valid = [
        text(OUTPUTS, COIN, COIN | {"index": "1", "recipient": "\\N"}),
        text(INPUTS, COIN | SPENDING),
        text(TRANSACTIONS + " shielded_value_delta", MADE | {"shielded_value_delta": "-3"}),
        text(BLOCKS, BLOCK, BLOCK | {"id": "6"}),
    ]
    valid += [gzip.compress(v, mtime=0) for v in valid]
    pieces = [
        b"\t",
        b"\n",
        b"\r",
        b"\0",
        b"\\N",
        b'"',
        b"-",
        b"9" * 20,
        b"\xff",
        b"1e5",
        b"\x1f\x8b",
    ]
    made = []
    for _ in range(count):
        body = bytearray(chance.choice(valid))
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(body) + 1)
            kind = chance.randrange(4)
            if kind == 0 and at < len(body):
                body[at] ^= 1 << chance.randrange(8)
            elif kind == 1:
                del body[at : at + chance.randrange(12)]
            elif kind == 2:
                body[at:at] = chance.choice(pieces)
            else:
                body[at:at] = body[at : at + chance.randrange(40)]
        made.append(bytes(body))
    return made


def check(batch: Batch) -> None:
    for name, table in batch.tables.items():
        assert table.schema.equals(SCHEMAS[name])
        for row in table.to_pylist():
            assert row["height"] >= 0
            if name != "stated_blocks":
                assert len(row["hash" if name == "blocks" else "txid"]) == 64
            assert row.get("value") is None or 0 <= row["value"] < 2**63


@pytest.mark.parametrize("count", [250, pytest.param(20000, marks=pytest.mark.long)])
def test_mutants_give_rows_or_errors_of_ours(tmp_path: Path, count: int) -> None:
    path = tmp_path / "mutant"
    refused = 0
    for body in mutants(count, count):
        path.write_bytes(body)
        try:
            if format_of(path) != "blockchair":
                continue
            for batch in blockchair.batches(path):
                check(batch)
        except CoinhazeError:
            refused += 1
    assert refused > count / 4
