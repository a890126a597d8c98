"""Esplora transactions."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coinhaze.errors import CoinhazeError, InputError, LedgerError
from coinhaze.formats.json import esplora
from coinhaze.formats.json import records as json_records
from formats.json_samples import (
    ESPLORA,
    Record,
    coin,
    confirmed,
    lines,
    mint,
    payment,
    rows,
    spend,
    twin_of_esplora,
    txid,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "f.json"


def read(path: Path, records: object) -> dict[str, list[Record]]:
    content = records if isinstance(records, bytes) else lines(records)  # type: ignore[arg-type]
    path.write_bytes(content)
    return rows(esplora.batches(path))


def test_rows_are_those_of_the_obvious_twin(path: Path) -> None:
    assert read(path, ESPLORA) == twin_of_esplora(ESPLORA)


def test_random_transactions_are_read_as_the_obvious_twin_does(path: Path) -> None:
    chance = random.Random(1)
    for _ in range(30):
        records = []
        for number in range(1, chance.randrange(2, 40)):
            status = chance.choice([None, {"confirmed": False}, confirmed(chance.randrange(9))])
            known = chance.choice([None, coin(chance.randrange(2**63), "k"), coin(0, None)])
            vin = [spend(chance.randrange(99), chance.randrange(2**32), known)]
            if status is not None and status["confirmed"] and chance.random() < 0.3:
                vin = [mint()]
            script = chance.choice(["6a00", "0014"])
            vout = [coin(n, chance.choice([None, "x"]), script) for n in range(number % 4)]
            records.append(payment(number, vin, vout, status))
        assert read(path, records) == twin_of_esplora(records)


@pytest.mark.parametrize(
    "write",
    [
        lambda r: lines(r),
        lambda r: lines(r).rstrip(),
        lambda r: b"\xef\xbb\xbf" + lines(r),
        lambda r: lines(r).replace(b"\n", b"\r\n\r\n"),
        lambda r: json.dumps(r).encode(),
        lambda r: json.dumps(r, indent=2).encode(),
        lambda r: (json.dumps(r[:1]) + "\n[]\n" + json.dumps(r[1:])).encode(),
        lambda r: "\n".join(json.dumps(one, indent=2) for one in r).encode(),
    ],
    ids=["lines", "no last newline", "BOM", "CRLF", "array", "pretty", "pages", "objects"],
)
@pytest.mark.parametrize("piece", [7, 64, 1 << 20])
def test_lines_arrays_pages_and_pretty_objects_are_one(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write: Callable[[list[Record]], bytes],
    piece: int,
) -> None:
    monkeypatch.setattr(json_records, "PIECE", piece)
    assert read(path, write(ESPLORA)) == twin_of_esplora(ESPLORA)


def test_a_folder_with_one_file_for_each_transaction_is_one_ledger(tmp_path: Path) -> None:
    for record in ESPLORA:
        (tmp_path / f"{record['txid']}.json").write_text(json.dumps(record, indent=1))
    (tmp_path / "readme.txt").write_text("not mine")
    assert rows(esplora.batches(tmp_path)) == twin_of_esplora(ESPLORA)


def test_a_folder_without_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no JSON files"):
        list(esplora.batches(tmp_path))


def test_the_size_of_batches_changes_no_row(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(lines(ESPLORA))
    monkeypatch.setattr(esplora, "ROWS", 1)
    found = list(esplora.batches(path))
    assert len(found) == 4
    assert rows(found) == twin_of_esplora(ESPLORA)
    assert [b.read for b in found][:2] == [path.stat().st_size] * 2


def test_the_unconfirmed_stand_one_above_the_highest_block(path: Path) -> None:
    before = ESPLORA[2:] + ESPLORA[:2]
    heights = {t["txid"]: t["height"] for t in read(path, before)["transactions"]}
    assert [heights[txid(n)] for n in (1, 2, 3, 4)] == [7, 8, 9, 9]


def test_the_unconfirmed_alone_stand_at_height_0_without_position_or_time(path: Path) -> None:
    found = read(path, ESPLORA[2:])["transactions"]
    assert {(t["height"], t["position"], t["time"]) for t in found} == {(0, None, None)}


def test_the_unconfirmed_stand_above_a_tip_known_from_elsewhere(path: Path) -> None:
    path.write_bytes(lines(ESPLORA[2:]))
    found = rows(esplora.batches(path, tip=800_000))
    assert {r["height"] for table in found.values() for r in table} == {800_001}


def test_above_the_last_height_there_is_no_place(path: Path) -> None:
    with pytest.raises(InputError, match="no height is left"):
        read(path, [*ESPLORA[2:], payment(9, [spend(1)], [], confirmed(2**31 - 1))])


def test_a_coinbase_has_position_0_and_no_inputs(path: Path) -> None:
    found = read(path, ESPLORA[:1])
    assert "inputs" not in found
    assert [(t["coinbase"], t["position"]) for t in found["transactions"]] == [(True, 0)]


def test_data_and_the_coinbase_of_block_0_are_not_spendable(path: Path) -> None:
    found = read(path, [payment(1, [mint()], [coin(50)], confirmed(0)), ESPLORA[0]])["outputs"]
    spendable = {(o["height"], o["vout"]): o["spendable"] for o in found}
    assert spendable == {(0, 0): False, (7, 0): True, (7, 1): False}


def test_the_two_coinbases_of_one_id_keep_it(path: Path) -> None:
    twice = [payment(1, [mint()], [coin(50)], confirmed(h)) for h in (91722, 91880)]
    assert [t["height"] for t in read(path, twice)["transactions"]] == [91722, 91880]


def test_a_coin_of_unknown_value_has_none(path: Path) -> None:
    found = read(path, [payment(1, [spend(5)], [])])["inputs"]
    assert [(i["value"], i["owner"]) for i in found] == [(None, None)]


def test_ids_in_capitals_become_lower_case(path: Path) -> None:
    record = payment(171, [spend(205)], []) | {"txid": txid(171).upper()}
    found = read(path, [record])
    assert found["transactions"][0]["txid"] == txid(171)


def test_errors_and_rows_name_file_and_line(path: Path) -> None:
    path.write_bytes(b"\n" + lines(ESPLORA[:1]) + b"\n \n" + lines(ESPLORA[1:]))
    first, last = esplora.batches(path)
    assert first.where("transactions", 1) == f"{path}:5"
    assert first.where("outputs", 0) == f"{path}:2"
    assert last.where("inputs", 2) == f"{path}:7"
    assert last.where("outputs", 1) == f"{path}:7"


def changed(**fields: Any) -> list[Record]:
    return [ESPLORA[0], ESPLORA[1] | fields]


def prevout(**fields: object) -> list[Record]:
    return changed(vin=[spend(1, 0, coin(50) | fields)])


@pytest.mark.parametrize(
    ("records", "words"),
    [
        (changed(vout=[coin(-1)]), "negative.*-1"),
        (changed(vout=[coin(1.5)]), "got `float`.*1.5"),
        (changed(vout=[coin(1.0)]), "got `float`"),
        (changed(vout=[coin("20")]), "got `str`.*'20'"),
        (changed(vout=[coin(None)]), "got `null`"),
        (changed(vout=[coin(True)]), "got `bool`"),
        (changed(vout=[coin(2**63)]), f"{2**63}"),
        (changed(vout=[coin(10**400)]), "above"),
        (changed(vout=[coin(5, "")]), "address is missing"),
        (changed(vout=[coin(5, "a\0b")]), "control character"),
        (changed(vout=[coin(5) | {"asset": "6f02"}]), "Liquid"),
        (prevout(value=-3), "negative"),
        (prevout(scriptpubkey_address="\n"), "control character"),
        (changed(vin=[spend(1, -1)]), "negative"),
        (changed(vin=[spend(1, 2**32)]), "above"),
        (changed(vin=[{"txid": "", "vout": 0, "is_coinbase": False}]), "missing"),
        (changed(vin=[spend(1), mint()]), "coinbase with other inputs"),
        (changed(vin=[mint()], status=None), "a coinbase that is in no block"),
        (changed(vin=[{"vout": 0, "is_coinbase": False}]), "missing required field `txid`"),
        (changed(txid="abc"), "not 64 hex digits.*'abc'"),
        (changed(txid="x" * 64), "not 64 hex digits"),
        (changed(txid=""), "missing"),
        (changed(status={"confirmed": True}), "block_height.*missing"),
        (changed(status=confirmed(-1)), "negative"),
        (changed(status=confirmed(2**31)), "above"),
        (changed(status=confirmed(2**70)), "above"),
        (changed(status=confirmed(5, -1)), "negative"),
        (changed(status=confirmed(5, 2**32)), "above"),
        (changed(status=confirmed(5) | {"block_hash": "a\x1f"}), "control character"),
    ],
)
def test_what_breaks_a_rule_is_refused_with_its_line(
    path: Path, records: list[Record], words: str
) -> None:
    with pytest.raises(LedgerError, match=words) as refused:
        read(path, records)
    assert refused.value.where == f"{path}:2"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"txid":', "not even JSON"),
        (b"null", "got `null`"),
        (b"17", "got `int`"),
        (b'"text"', "got `str`"),
        (b"[[]]", "got `array`"),
        (b'{"txid": NaN}', "NaN is not a number"),
        (b'{"txid": -Infinity}', "-Infinity is not a number"),
        (b'{"txid": "\xff"}', "utf-8"),
        (b'{"txid": "\\ud800x"}', "not even JSON"),
        (b'{"x":' + b"[" * 100_000, "recursion"),
        (b"txid,vin,vout", "not even JSON"),
        (lines(ESPLORA[1:2])[:-9], "not even JSON"),
    ],
)
@pytest.mark.parametrize("after", [b"", b"\n" + lines(ESPLORA[2:])])
def test_a_line_that_is_no_transaction_is_refused_with_its_number(
    path: Path, line: bytes, words: str, after: bytes
) -> None:
    with pytest.raises(LedgerError, match=words) as refused:
        read(path, lines(ESPLORA[:1]) + line + after)
    assert refused.value.where == f"{path}:2"


def test_a_fault_in_a_pretty_object_names_a_line_near_it(path: Path) -> None:
    text = json.dumps(ESPLORA[0], indent=1).replace('"vin": [', '"vin": [,')
    with pytest.raises(LedgerError, match="malformed") as refused:
        read(path, text.encode())
    assert refused.value.where == f"{path}:4"


@pytest.mark.parametrize("tail", [b"", b"\n" + b" " * 900])
def test_a_value_over_many_lines_beyond_the_limit_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch, tail: bytes
) -> None:
    monkeypatch.setattr(json_records, "PIECE", 64)
    monkeypatch.setattr(json_records, "LONGEST", 512)
    with pytest.raises(LedgerError, match="more than 512 bytes"):
        read(path, b'{"txid": "' + b"a" * 900 + tail)
    with pytest.raises(LedgerError, match="more than 512 bytes"):
        read(path, b"[" + b"\n" * 900 + tail)


def test_the_mempool_of_2024_is_read_whole(data: Path) -> None:
    found = list(esplora.batches(data / "btc_mempool_esplora" / "mempool_8131.jsonl.xz"))
    tables = rows(found)
    assert {name: len(t) for name, t in tables.items()} == {
        "transactions": 8131,
        "inputs": 33534,
        "outputs": 19922,
    }
    coins = {(o["txid"], o["vout"]): (o["value"], o["owner"]) for o in tables["outputs"]}
    spent = {(i["spent_txid"], i["spent_vout"]): (i["value"], i["owner"]) for i in tables["inputs"]}
    inside = coins.keys() & spent.keys()
    assert len(inside) == 2128
    assert all(coins[c] == spent[c] for c in inside)
    assert sum(not o["spendable"] for o in tables["outputs"]) == 117
    assert {t["height"] for t in tables["transactions"]} == {0}


def test_only_coinhaze_errors_come_of_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(CoinhazeError):
        list(esplora.batches(tmp_path / "none.json"))
