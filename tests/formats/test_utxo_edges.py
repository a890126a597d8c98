"""Coins as edges between transactions."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from coinhaze.errors import InputError, LedgerError
from coinhaze.formats.tabular import utxo_edges
from formats.json_samples import READERS, Tables, rows, txid
from formats.test_json_fuzz import FEW, MANY, fuzz, obey

VERTICES = f"""\
id,note,tx_hash,block_height,block_hash,fee,temporal_index
11,tx,{txid(1)},7,{txid(70)},0,40
12,tx,{txid(2)},7,{txid(70)},0,41
13,tx,{txid(3)},8,{txid(80)},1,42
coinbase7,coinbase,"",-1,"",0,-1
UTXO1,UTXO,"",-1,"",0,-1
"""
EDGES = """\
src_id,dst_id,src_position,dst_position,address,value
coinbase7,11,4294967295,0,coinbase7,50
11,12,0,1,a,50
99,12,3,0,b,9
12,13,0,0,c,59
13,UTXO1,0,-1,d,40
13,77,1,5,e,18
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "vertices-1.csv").write_text(VERTICES)
    (tmp_path / "edges-1.csv").write_text(EDGES)
    return tmp_path


def read(folder: Path) -> Tables:
    return rows(utxo_edges.batches(folder))


def test_edges_are_coins_made_and_spent(folder: Path) -> None:
    found = read(folder)
    made = {(o["height"], o["txid"], o["vout"], o["value"], o["owner"]) for o in found["outputs"]}
    assert made == {
        (7, txid(1), 0, 50, "a"),
        (7, txid(2), 0, 59, "c"),
        (8, txid(3), 0, 40, "d"),
        (8, txid(3), 1, 18, "e"),
    }
    spent = {
        (i["txid"], i["vin"], i["spent_txid"], i["spent_vout"], i["value"]) for i in found["inputs"]
    }
    assert spent == {
        (txid(2), 1, txid(1), 0, 50),
        (txid(2), 0, "99", 3, 9),
        (txid(3), 0, txid(2), 0, 59),
    }


def test_the_transaction_that_new_money_goes_to_is_the_coinbase(folder: Path) -> None:
    found = read(folder)["transactions"]
    assert {(t["txid"], t["position"], t["coinbase"]) for t in found} == {
        (txid(1), 0, True),
        (txid(2), 1, False),
        (txid(3), 0, False),
    }


def test_file_by_file_is_the_same_as_the_folder(folder: Path) -> None:
    (folder / "edges-1.csv").unlink()
    head, *edges = EDGES.splitlines(keepends=True)
    for number, edge in enumerate(edges):
        (folder / f"edges-{number}.csv.gz").write_bytes(gzip.compress((head + edge).encode()))
    (folder / "edges-none.csv").write_text(head)
    parts = [b for file in sorted(folder.iterdir()) for b in utxo_edges.batches(file)]
    assert rows(parts) == read(folder)
    assert len(read(folder)["inputs"]) == 3


def test_rows_name_file_and_line(folder: Path) -> None:
    first, second = utxo_edges.batches(folder)
    assert first.where("transactions", 2) == f"{folder / 'vertices-1.csv'}:4"
    assert first.where("blocks", 1) == f"{folder / 'vertices-1.csv'}:4"
    assert second.where("inputs", 1) == f"{folder / 'edges-1.csv'}:4"


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("edges", "b,9", "b,-9", ":4: value is not a whole number.*-9"),
        ("edges", "b,9", "b,9.5", ":4: value is not a whole number"),
        ("edges", "b,9", "b,-1", ":4: value is negative"),
        ("edges", "b,9", "b,9223372036854775808", ":4: value is above"),
        ("edges", "b,9", "b,", ":4: value is not a whole number: ''"),
        ("edges", "b,9", ",9", ":4: address is missing"),
        ("edges", "b,9", "b", ":4: 5 fields"),
        ("edges", "99,12,3,0", "99,12,3,-1", ":4: dst_position is negative"),
        ("edges", "99,12,3,0", "99,12,4294967296,0", ":4: src_position is above"),
        ("edges", "src_id,", "source,", "no column 'src_id'"),
        ("vertices", "12,tx", "11,tx", ":3: a vertex given twice"),
        ("vertices", txid(2), "abc", ":3: tx_hash is not 64 hex digits"),
        ("vertices", f"{txid(2)},7", f"{txid(2)},2147483648", ":3: block_height is above"),
        ("vertices", "0,41", "0,-1", ":3: temporal_index is negative"),
    ],
)
def test_what_breaks_a_rule_is_refused(
    folder: Path, name: str, old: str, new: str, words: str
) -> None:
    path = folder / f"{name}-1.csv"
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(LedgerError, match=words):
        read(folder)


@pytest.mark.parametrize("name", ["vertices-1.csv", "edges-1.csv"])
def test_one_half_alone_is_refused(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(InputError, match="edges need vertices"):
        read(folder)


def test_the_reader_knows_its_own_files_only() -> None:
    assert utxo_edges.recognises(VERTICES.encode()[:200])
    assert utxo_edges.recognises(EDGES.encode())
    others = [text for _, text in READERS.values()] + [b"", b"address\nx\n", b"from,to,amount\n"]
    assert not any(utxo_edges.recognises(text) for text in others)


@pytest.mark.parametrize("count", [FEW // 2, pytest.param(MANY, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", ["vertices-1.csv", "edges-1.csv"])
def test_damaged_files_give_rows_that_obey_or_an_error(folder: Path, name: str, count: int) -> None:
    def read_all(path: Path) -> None:
        for batch in utxo_edges.batches(path):
            obey(dict(batch.tables))

    path = folder / name
    fuzz(read_all, path, path.read_bytes(), count)


def test_4001_blocks_of_2010_are_read_whole(data: Path) -> None:
    found = read(data / "btc_utxo_100000_104000")
    assert len(found["transactions"]) == 24194
    assert sum(t["coinbase"] for t in found["transactions"]) == 4001
    assert all(t["position"] == 0 for t in found["transactions"] if t["coinbase"])
    assert len(found["blocks"]) == 4001
    made = {(o["txid"], o["vout"]): o["value"] for o in found["outputs"]}
    spent = {(i["spent_txid"], i["spent_vout"]): i["value"] for i in found["inputs"]}
    assert len(found["outputs"]) == 25710 + 9925 + 1617
    assert len(found["inputs"]) == 25710 + 3785
    assert all(made[coin] == spent[coin] for coin in made.keys() & spent.keys())
    assert len(made.keys() & spent.keys()) == 25710
