"""bitcoin-etl transactions as batches: JSON lines, BigQuery's and AWS's Parquet."""

from __future__ import annotations

import copy
import json
import random
import tarfile
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import coinhaze
from coinhaze.errors import InputError, LedgerError
from coinhaze.formats.bitcoin_etl import (
    batches as bitcoin_etl_batches,
)
from coinhaze.formats.bitcoin_etl import (
    parquet as bitcoin_etl_parquet,
)
from coinhaze.ledger import CoinLedger, Ledger
from coinhaze.ledger.coins import Input, Output, Transaction
from formats.json_samples import (
    ETL,
    Record,
    Tables,
    etl,
    etl_end,
    etl_input,
    lines,
    rows,
    twin_of_etl,
    txid,
)

NUMERIC = pa.decimal128(38, 9)
HEAD = {
    "hash": pa.string(),
    "block_number": pa.int64(),
    "block_hash": pa.string(),
    "block_timestamp": pa.timestamp("us", "UTC"),
    "is_coinbase": pa.bool_(),
    "index": pa.int64(),
}
END = {
    "index": pa.int64(),
    "script_hex": pa.string(),
    "type": pa.string(),
    "addresses": pa.list_(pa.string()),
    "value": NUMERIC,
}
SPENT = {"spent_transaction_hash": pa.string(), "spent_output_index": pa.int64()}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "f.json"


def read(path: Path, records: list[Record] | bytes) -> Tables:
    path.write_bytes(records if isinstance(records, bytes) else lines(records))
    return rows(bitcoin_etl_batches.batches(path))


def moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def write_parquet(
    path: Path, records: list[Record], head: dict[str, Any] = HEAD, end: dict[str, Any] = END
) -> None:
    """Write what BigQuery would export, or with other types what somebody else would."""
    made = copy.deepcopy(records)
    for record in made:
        if isinstance(record.get("block_timestamp"), int):
            record["block_timestamp"] = moment(record["block_timestamp"])
        if pa.types.is_decimal(end["value"]):
            for side in record["inputs"] + record["outputs"]:
                side["value"] = None if side["value"] is None else Decimal(side["value"])
    sides = {
        "inputs": pa.list_(pa.struct([*end.items(), *SPENT.items()])),
        "outputs": pa.list_(pa.struct([*end.items()])),
    }
    schema = pa.schema([*head.items(), *sides.items()])
    pq.write_table(pa.Table.from_pylist(made, schema), path, row_group_size=2)


def aws(records: list[Record]) -> list[Record]:
    made = copy.deepcopy(records)
    for record in made:
        for end in record["inputs"] + record["outputs"]:
            end["value"] = None if end["value"] is None else end["value"] / 1e8
            end["address"] = end["addresses"][0] if end["addresses"] else None
    return made


AWS_END = {k: v for k, v in END.items() if k != "addresses"} | {
    "address": pa.string(),
    "value": pa.float64(),
}


def random_records(chance: random.Random) -> list[Record]:
    records = []
    for number in range(1, chance.randrange(2, 30)):
        kinds = ["pubkeyhash", "nulldata", "shielded", "nonstandard"]
        many = [["a"], [], ["c", "b"], ["d", "d"]]
        inputs = [
            etl_input(number + n, n, chance.choice([None, 5]), *chance.choice(many), index=n)
            for n in range(chance.randrange(3))
        ]
        outputs = [
            etl_end(
                chance.randrange(2**40), *chance.choice(many), index=n, type=chance.choice(kinds)
            )
            for n in range(chance.randrange(4))
        ]
        records.append(etl(number, number // 3, inputs, outputs, block_hash=f"h{number // 3}"))
        # Height 0 has a rule of its own, which the twin does not know.
        records[-1]["block_number"] += 1
    return records


def test_rows_are_those_of_the_obvious_twin(path: Path) -> None:
    assert read(path, ETL) == twin_of_etl(ETL)


def test_random_transactions_are_read_as_the_obvious_twin_does_from_json_and_parquet(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bitcoin_etl_parquet, "AT_ONCE", 3)
    chance = random.Random(4)
    for _ in range(25):
        records = random_records(chance)
        twin = twin_of_etl(records)
        assert read(path, records) == twin
        write_parquet(path, records)
        assert rows(bitcoin_etl_batches.batches(path)) == twin


def chain_of_records(chance: random.Random) -> list[Record]:
    """Make a window of an enriched export: some coins spent are from before it."""
    coins: list[tuple[int, int, int, str]] = [(900 + n, 0, 40, f"old{n}") for n in range(4)]
    records = []
    for number in range(1, 40):
        height, place = 1 + number // 4, number % 4
        spent = [coins.pop(chance.randrange(len(coins))) for _ in range(min(place, len(coins)))]
        inputs = [
            etl_input(t, v, worth, who, index=n) for n, (t, v, worth, who) in enumerate(spent)
        ]
        left, outputs = sum(worth for _, _, worth, _ in spent) if place else 50, []
        for n in range(chance.randrange(1, 4) if spent or not place else 0):
            kind = chance.choice(["pubkeyhash", "pubkeyhash", "nulldata", "shielded"])
            outputs.append(etl_end(left // 3, f"a{chance.randrange(9)}", index=n, type=kind))
            if kind == "pubkeyhash":
                coins.append((number, n, left // 3, outputs[-1]["addresses"][0]))
        made = etl(number, height, inputs, outputs, index=place, is_coinbase=not place)
        records += [made] if spent or not place else []
    return records


def transaction(record: Record) -> Transaction:
    shown = [o for o in record["outputs"] if o["type"] != "shielded"]
    hidden = sum(o["value"] for o in record["outputs"] if o["type"] == "shielded")
    return Transaction(
        record["hash"],
        tuple(
            Input(i["spent_transaction_hash"], i["spent_output_index"], i["value"], *i["addresses"])
            for i in record["inputs"]
        ),
        tuple(
            Output(o["value"], o["addresses"][0], o["index"], o["type"] != "nulldata")
            for o in shown
        ),
        pools=(("shielded", hidden),) if hidden else (),
        coinbase=record["is_coinbase"],
        height=record["block_number"],
        time=record["block_timestamp"],
    )


def described(ledger: Ledger) -> dict[str, list[Any]]:
    """Give what a ledger says by name, whatever the order of its earlier coins."""
    assert isinstance(ledger, CoinLedger)
    assert ledger.output_value is not None
    ids, coins = ledger.txids.to_pylist(), ledger.output_names().to_pylist()
    owners = ledger.owners.take(pa.array(ledger.output_owner)).to_pylist()
    told = zip(coins, ledger.output_value.ints(), owners, ledger.output_spendable, strict=True)
    spends = zip(ledger.input_tx, ledger.input_output, strict=True)
    flows = zip(ledger.flow_tx, ledger.flow_into.ints(), strict=True)
    made = zip(ids, ledger.inside, ledger.coinbase, ledger.heights.to_pylist(), strict=True)
    return {
        "transactions": [t for t in made if t[1]],
        "coins": sorted(told),
        "spends": [(ids[t], coins[c]) for t, c in spends],
        "flows": [(ids[t], value) for t, value in flows],
    }


def test_whole_files_give_the_ledger_of_the_obvious_twin(path: Path) -> None:
    chance = random.Random(8)
    for _ in range(20):
        records = chain_of_records(chance)
        twin = CoinLedger.from_transactions(map(transaction, records))
        path.write_bytes(lines(records))
        found = coinhaze.read(path)
        assert isinstance(found, CoinLedger)
        assert described(found) == described(twin)
        assert len(found.flow_tx)
        assert not found.inside.all()
        write_parquet(path, records)
        assert described(coinhaze.read(path)) == described(twin)


def test_bigquery_writes_whole_numbers_and_times_as_text_in_json(path: Path) -> None:
    made = copy.deepcopy(ETL)
    for record in made:
        record["block_timestamp"] = "2009-01-03 18:15:05 UTC"
        for side in [record, *record["inputs"], *record["outputs"]]:
            for key in ("block_number", "index", "value", "spent_output_index"):
                if side.get(key) is not None:
                    side[key] = str(side[key])
    assert read(path, made) == twin_of_etl(ETL)


@pytest.mark.parametrize(
    "text", ["2009-01-03T18:15:05Z", "2009-01-03 18:15:05.000000 UTC", "2009-01-03T20:15:05+02:00"]
)
def test_times_in_words_become_seconds(path: Path, text: str) -> None:
    found = read(path, [ETL[0] | {"block_timestamp": text}])
    assert found["transactions"][0]["time"] == 1231006505


def test_bigquery_tables_have_no_index_in_the_block(path: Path) -> None:
    head = {k: v for k, v in HEAD.items() if k != "index"}
    write_parquet(path, ETL, head)
    found = rows(bitcoin_etl_batches.batches(path))
    assert sorted((t["height"], t["position"]) for t in found["transactions"]) == [
        (5, 0),
        (6, None),
    ]
    assert found["outputs"] == twin_of_etl(ETL)["outputs"]


def test_a_table_loaded_without_list_inference_is_the_same(path: Path) -> None:
    wide = [*END.items()]
    wide[3] = ("addresses", pa.struct([("list", pa.list_(pa.struct([("item", pa.string())])))]))
    sides = {"inputs": pa.struct([*wide, *SPENT.items()]), "outputs": pa.struct(wide)}
    made = copy.deepcopy(ETL)
    for record in made:
        record["block_timestamp"] = moment(record["block_timestamp"])
        for name in sides:
            for side in record[name]:
                side["value"] = None if side["value"] is None else Decimal(side["value"])
                side["addresses"] = {"list": [{"item": a} for a in side["addresses"]]}
            record[name] = {"list": [{"element": side} for side in record[name]]}
    wrapped = {
        k: pa.struct([("list", pa.list_(pa.struct([("element", v)])))]) for k, v in sides.items()
    }
    schema = pa.schema([*HEAD.items(), *wrapped.items()])
    pq.write_table(pa.Table.from_pylist(made, schema), path)
    assert rows(bitcoin_etl_batches.batches(path)) == twin_of_etl(ETL)


def test_doubles_of_aws_are_rounded_to_satoshi_not_cut(path: Path) -> None:
    chance = random.Random(5)
    values = [29, 57, 113, 2**51, *(chance.randrange(21 * 10**14) for _ in range(3000))]
    assert sum(int(v / 1e8 * 1e8) != v for v in values) > 100  # cutting would be wrong
    records = [etl(1, 5, [], [etl_end(v, "a", index=n) for n, v in enumerate(values)])]
    write_parquet(path, aws(records), end=AWS_END)
    found = rows(bitcoin_etl_batches.batches(path))["outputs"]
    assert {o["vout"]: o["value"] for o in found} == dict(enumerate(values))
    assert {o["owner"] for o in found} == {"a"}


def test_unknown_values_and_addresses_of_aws_stay_unknown(path: Path) -> None:
    write_parquet(path, aws(ETL), end=AWS_END)
    found = rows(bitcoin_etl_batches.batches(path))
    twin = twin_of_etl(ETL)
    assert found["inputs"] == twin["inputs"]
    assert found["pool_flows"] == twin["pool_flows"]


@pytest.mark.parametrize(
    "value", [-1e-8, float("nan"), float("inf"), 2**51 / 1e8 + 1e-7, 1e300, 0.123456789, 1e-9]
)
def test_doubles_that_are_no_satoshi_are_refused(path: Path, value: float) -> None:
    records = aws([ETL[0], etl(4, 9, [], [etl_end(1)])])
    records[1]["outputs"][0]["value"] = value
    write_parquet(path, records, end=AWS_END)
    with pytest.raises(LedgerError, match="transaction 2: value in outputs is no whole number"):
        list(bitcoin_etl_batches.batches(path))


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (END | {"value": pa.float64()}, "unit is not known"),
        (AWS_END | {"value": pa.int64()}, "unit is not known"),
        (END | {"value": pa.string()}, "stored as string"),
        (END | {"type": pa.int64()}, "stored as int64, not as text"),
    ],
)
def test_columns_of_another_type_are_refused(path: Path, end: dict[str, Any], words: str) -> None:
    records = copy.deepcopy(ETL)
    for record in records:
        for side in record["inputs"] + record["outputs"]:
            side["address"] = "a"
            if pa.types.is_string(end["value"]):
                side["value"] = "5"
            side["type"] = 3 if pa.types.is_integer(end["type"]) else "x"
    write_parquet(path, records, end=end)
    with pytest.raises(LedgerError, match=words):
        list(bitcoin_etl_batches.batches(path))


@pytest.mark.parametrize("value", ["1.5", "-1", "9223372036854775808", "99999999999999999999999"])
def test_numeric_values_that_are_no_satoshi_are_refused(path: Path, value: str) -> None:
    write_parquet(path, [ETL[0], etl(4, 9, [], [etl_end(value)])])
    with pytest.raises(LedgerError, match=r"transaction 2: value.*" + value[:6]):
        list(bitcoin_etl_batches.batches(path))


@pytest.mark.parametrize("name", ["hash", "block_number", "inputs", "outputs"])
def test_parquet_without_a_needed_column_is_refused(path: Path, name: str) -> None:
    write_parquet(path, ETL)
    pq.write_table(pq.read_table(path).drop_columns(name), path)
    with pytest.raises(LedgerError, match=f"no column '{name}'"):
        list(bitcoin_etl_batches.batches(path))


def test_parquet_without_rows_is_an_empty_day(path: Path) -> None:
    write_parquet(path, [])
    (batch,) = bitcoin_etl_batches.batches(path)
    assert batch.tables == {}
    assert "hash" in batch.columns["used"]


def test_text_in_parquet_that_is_not_utf8_is_refused(path: Path) -> None:
    write_parquet(path, ETL)
    table = pq.read_table(path)
    broken = pa.array([b"\xff\xfe", b"b"]).view(pa.string())
    pq.write_table(table.set_column(2, "block_hash", broken), path)
    with pytest.raises(InputError, match="UTF8"):
        list(bitcoin_etl_batches.batches(path))


def test_parquet_is_reported_by_its_columns(path: Path) -> None:
    write_parquet(path, ETL)
    assert bitcoin_etl_batches.recognises_columns(pq.read_schema(path).names)
    assert not bitcoin_etl_batches.recognises_columns(["hash", "block_number", "from_address"])
    assert not bitcoin_etl_batches.recognises(path.read_bytes()[:4096])


def test_inputs_have_no_value_before_they_are_enriched(path: Path) -> None:
    found = read(path, [etl(2, 6, [etl_input(1, 0, None, type=None)], [])])["inputs"]
    assert [(i["value"], i["owner"]) for i in found] == [(None, None)]


def test_shielded_outputs_go_into_the_pool_and_inputs_come_out_of_it(path: Path) -> None:
    into = etl(1, 5, [etl_input(9, 0, 30)], [etl_end(20, type="shielded")])
    out = etl(2, 6, [etl_end(7, type="shielded")], [etl_end(6, "a")], is_coinbase=False)
    still = etl(3, 7, [etl_end(4, type="shielded")], [etl_end(4, type="shielded")])
    found = read(path, [into, out, still])
    flows = [(f["txid"], f["pool"], f["into_pool"]) for f in found["pool_flows"]]
    assert sorted(flows) == [(txid(1), "shielded", 20), (txid(2), "shielded", -7)]
    assert len(found["inputs"]) == len(found["outputs"]) == 1


def test_a_coinbase_without_index_has_position_0(path: Path) -> None:
    found = read(path, [ETL[0] | {"index": None}, ETL[1] | {"index": None}])["transactions"]
    assert sorted((t["coinbase"], t["position"]) for t in found) == [(False, None), (True, 0)]


def test_a_coinbase_is_known_by_its_place_where_nothing_else_tells(path: Path) -> None:
    records = [
        ETL[0] | {"is_coinbase": None},
        ETL[1] | {"is_coinbase": None, "index": 0},
        etl(7, 9, [], [etl_end(5)], is_coinbase=None, index=2),
    ]
    found = read(path, records)["transactions"]
    assert {t["txid"]: t["coinbase"] for t in found} == {
        txid(1): True,
        txid(2): False,
        txid(7): False,
    }


def test_an_input_of_a_coinbase_that_names_nothing_is_none(path: Path) -> None:
    nothing = [etl_input(0, 2**32 - 1, None), etl_input(0, 0, None, spent_transaction_hash=None)]
    assert "inputs" not in read(path, [ETL[0] | {"inputs": nothing}])


def test_the_coinbase_of_block_0_is_not_spendable(path: Path) -> None:
    found = read(path, [etl(1, 0, [], [etl_end(50)]), ETL[0]])["outputs"]
    assert [(o["height"], o["spendable"]) for o in found] == [(0, False), (5, True)]


def test_the_two_coinbases_of_one_id_keep_it(path: Path) -> None:
    twice = [etl(1, h, [], [etl_end(50)]) for h in (91722, 91880)]
    assert [t["height"] for t in read(path, twice)["transactions"]] == [91722, 91880]


def test_two_hashes_of_one_block_are_both_reported(path: Path) -> None:
    fork = [ETL[0], ETL[0] | {"hash": txid(6), "block_hash": "other"}]
    assert len(read(path, fork)["blocks"]) == 2


def test_names_that_are_no_hex_stay_and_hex_loses_capitals_and_0x(path: Path) -> None:
    found = read(path, [ETL[0] | {"hash": n} for n in ("t1", "0xAB", "Cd", "T1")])["transactions"]
    assert sorted(t["txid"] for t in found) == ["T1", "ab", "cd", "t1"]


def changed(**fields: Any) -> list[Record]:
    return [ETL[0], ETL[1] | fields]


@pytest.mark.parametrize(
    ("records", "words"),
    [
        (changed(outputs=[etl_end(-1)]), "negative"),
        (changed(outputs=[etl_end(None)]), "missing"),
        (changed(outputs=[etl_end(1.5)]), "got `float`"),
        (changed(outputs=[etl_end(50.0)]), "got `float`"),
        (changed(outputs=[etl_end("1e18")]), "not a whole number.*'1e18'"),
        (changed(outputs=[etl_end("1.5")]), "not a whole number"),
        (changed(outputs=[etl_end("")]), "not a whole number"),
        (changed(outputs=[etl_end("-1")]), "not a whole number"),
        (changed(outputs=[etl_end("1_000")]), "not a whole number"),
        (changed(outputs=[etl_end("٣")]), "not a whole number"),
        (changed(outputs=[etl_end(True)]), "got `bool`"),
        (changed(outputs=[etl_end(2**63)]), "above"),
        (changed(outputs=[etl_end(str(2**63))]), "above"),
        (changed(outputs=[etl_end(5, "")]), "missing"),
        (changed(outputs=[etl_end(5, "a\0")]), "control"),
        (changed(outputs=[etl_end(5, address="a")]), "AWS"),
        (changed(outputs=[etl_end(5, index=None)]), "missing"),
        (changed(outputs=[etl_end(5, index=2**32)]), "above"),
        (changed(outputs=[etl_end(None, type="shielded")]), "shielded value is missing"),
        (changed(outputs=[etl_end(-4, type="shielded")]), "shielded value is negative"),
        (changed(outputs=[etl_end(2**62, type="shielded")] * 3), "beyond"),
        (changed(outputs=None), "got `null`"),
        (changed(inputs=[etl_input(1, None, 5)]), "missing"),
        (changed(inputs=[etl_input(1, -1, 5)]), "negative"),
        (changed(inputs=[etl_input(1, 0, -5)]), "negative"),
        (changed(inputs=[etl_input(1, 0, 5, spent_transaction_hash=None)]), "names no coin"),
        (changed(inputs=[etl_input(1, 0, 5, spent_transaction_hash="")]), "missing"),
        (changed(inputs=[etl_input(0, 0, 5)]), "names no coin"),
        (changed(is_coinbase=True, index=0), "a coinbase spends a coin"),
        (changed(is_coinbase=True, inputs=[]), "index of a coinbase is not 0"),
        (changed(is_coinbase=None, index=None, inputs=[]), "both missing"),
        (changed(is_coinbase="yes"), "got `str`"),
        (changed(hash=""), "missing"),
        (changed(hash="a\nb"), "control"),
        (changed(hash=None), "got `null`"),
        (changed(block_number=-1), "negative"),
        (changed(block_number=2**31), "above"),
        (changed(block_number=None), "got `null`"),
        (changed(block_timestamp="yesterday"), "not a time"),
        (changed(block_timestamp=-1), "negative"),
        (changed(block_timestamp="0001-01-01T00:00:00+23:59"), "not a time|negative"),
        (changed(block_timestamp=2**32), "above"),
        (changed(block_hash=""), "missing"),
    ],
)
def test_what_breaks_a_rule_is_refused_with_its_line(
    path: Path, records: list[Record], words: str
) -> None:
    with pytest.raises(LedgerError, match=words) as refused:
        read(path, records)
    assert refused.value.where == f"{path}:2"


def fixtures(data: Path, folder: Path) -> Path:
    with tarfile.open(data / "etl_fixtures" / "bitcoin-etl_tests_resources.tar.xz") as tar:
        tar.extractall(folder, filter="data")
    return folder / "tests" / "resources" / "test_export_blocks_job"


def test_every_recorded_export_is_read(data: Path, tmp_path: Path) -> None:
    files = sorted(fixtures(data, tmp_path).glob("*/*/expected_transactions.json"))
    assert len(files) == 11
    for file in files:
        records = [json.loads(line) for line in file.read_text().splitlines()]
        found = rows(bitcoin_etl_batches.batches(file))
        assert bitcoin_etl_batches.recognises(file.read_bytes()[:4096])
        assert len(found["transactions"]) == len(records)
        assert sum(t["coinbase"] for t in found["transactions"]) == len(found["blocks"])
        shown = [o for r in records for o in r["outputs"] if o["type"] != "shielded"]
        assert sorted(o["value"] for o in found["outputs"]) == sorted(o["value"] for o in shown)


@pytest.mark.parametrize("name", ["block_with_shielded_addresses", "block_with_value_balance"])
def test_flows_of_zcash_are_those_its_node_reported(data: Path, tmp_path: Path, name: str) -> None:
    folder = fixtures(data, tmp_path) / "zcash" / name
    (answer,) = folder.glob("rpc_response_getblock_*_2.json")
    expected = {}
    for t in json.loads(answer.read_text(), parse_float=Decimal)["tx"]:
        joins = sum(j["vpub_old"] - j["vpub_new"] for j in t.get("vjoinsplit", []))
        into = joins - t.get("valueBalance", 0)
        if into:
            expected[t["txid"]] = int(into * 10**8)
    found = rows(bitcoin_etl_batches.batches(folder / "expected_transactions.json"))
    assert expected
    assert {f["txid"]: f["into_pool"] for f in found["pool_flows"]} == expected
    if name == "block_with_shielded_addresses":
        assert 20240000 in expected.values()
