"""Blocks as getblock gives them."""

from __future__ import annotations

import json
import random
import tarfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from coinhaze.errors import InputError, LedgerError
from coinhaze.formats.bitcoin_etl import batches as bitcoin_etl_batches
from coinhaze.formats.json import bitcoin as bitcoin_json
from coinhaze.formats.json.bitcoin import block_tables, satoshi
from coinhaze.ledger.batches import Batch
from formats.json_samples import (
    BLOCKS,
    CORE_MINT,
    Record,
    Tables,
    block,
    core,
    lines,
    ordered,
    paid,
    rows,
    twin_of_blocks,
    txid,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "f.json"


def read(path: Path, records: list[Record] | bytes) -> Tables:
    path.write_bytes(records if isinstance(records, bytes) else lines(records))
    return rows(bitcoin_json.batches(path))


def unpack(archive: Path, folder: Path) -> Path:
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder


def test_rows_are_those_of_the_obvious_twin(path: Path) -> None:
    assert read(path, BLOCKS) == twin_of_blocks(lines(BLOCKS))


def test_random_blocks_are_read_as_the_obvious_twin_does(path: Path) -> None:
    chance = random.Random(2)
    for _ in range(20):
        blocks = []
        for height in range(chance.randrange(1, 6)):
            tx = [core(height, [CORE_MINT], [paid(chance.randrange(50))])]
            for number in range(chance.randrange(5)):
                coins = [paid(round(chance.random() * 21e6, 8), n) for n in range(3)]
                spends = [{"txid": txid(n), "vout": n, "prevout": coins[n]} for n in range(2)]
                tx.append(core(100 * height + number + 50, [*spends, spends[0]], coins))
            blocks.append(block(height, tx))
        assert read(path, blocks) == twin_of_blocks(lines(blocks))


def test_a_pretty_block_a_file_and_all_blocks_in_lines_are_one(tmp_path: Path, path: Path) -> None:
    folder = tmp_path / "blocks"
    folder.mkdir()
    for b in BLOCKS:
        (folder / f"block_{b['height']}.json").write_text(json.dumps(b, indent=2))
    assert rows(bitcoin_json.batches(folder)) == read(path, BLOCKS)


def test_tables_for_a_node_are_those_of_the_file(path: Path) -> None:
    texts = lines(BLOCKS).splitlines()
    dicts = [json.loads(text, parse_float=Decimal) for text in texts]
    assert rows([Batch(block_tables(texts))]) == read(path, BLOCKS)
    assert rows([Batch(block_tables(dicts))]) == read(path, BLOCKS)
    assert block_tables([]) == {}


def test_a_float_in_a_dict_is_refused() -> None:
    with pytest.raises(LedgerError, match=r"^here 1 transaction 0: .*without floats"):
        block_tables([lines(BLOCKS[:1]), BLOCKS[0]], "here {}".format)


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b"{", b"\xff", b"[" * 100_000])
def test_what_a_node_sends_that_is_no_block_is_refused(text: bytes) -> None:
    with pytest.raises(LedgerError, match=r"^block 0 of those given: "):
        block_tables([text])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("0.0", 0),
        ("50", 5_000_000_000),
        ("0.1", 10_000_000),
        ("1e-08", 1),
        ("1.5E-7", 15),
        ("0.00000546", 546),
        ("20999999.97690000", 2_099_999_997_690_000),
        ("0.10000000000000000000000000000", 10_000_000),
        ("92233720368.54775807", 2**63 - 1),
    ],
)
def test_decimals_are_read_digit_by_digit(path: Path, text: str, value: int) -> None:
    content = lines(BLOCKS[:1]).replace(b'"value":25.0', f'"value":{text}'.encode())
    assert sorted(o["value"] for o in read(path, content)["outputs"]) == sorted([0, value])


@pytest.mark.parametrize(
    "text",
    [
        "-0.1",
        "-1",
        "0.000000001",
        "0.100000000000000000000000000000000000000000000000000000000000000000000000000000001",
        "92233720368.54775808",
        "1e999",
        "1e999999999999999999999",
        "1e-999999999",
        "9" * 400,
        "null",
        "true",
        '"0.1"',
        '"NaN"',
        "[1]",
        "NaN",
        "Infinity",
        "0x10",
        "1_000",
        "",
    ],
)
def test_what_is_no_amount_of_bitcoin_is_refused(path: Path, text: str) -> None:
    content = lines(BLOCKS[:1]).replace(b'"value":25.0', f'"value":{text}'.encode())
    with pytest.raises(LedgerError) as refused:
        read(path, content)
    assert refused.value.where.startswith(f"{path}:1")


def test_no_value_is_rounded() -> None:
    chance = random.Random(3)
    for _ in range(2000):
        number = chance.randrange(2**63)
        text = f"{number // 10**8}.{number % 10**8:08d}"
        assert satoshi(Decimal(text), "") == number


def test_values_of_coins_spent_are_known_from_verbosity_3_only(path: Path) -> None:
    found = read(path, BLOCKS)["inputs"]
    assert {(i["vin"], i["value"], i["owner"]) for i in found} == {(0, None, None), (1, 1, "p")}


def test_several_addresses_are_one_owner(path: Path) -> None:
    found = read(path, BLOCKS)["outputs"]
    assert {o["owner"] for o in found} == {"a", None, "y,z"}


def test_data_and_the_coinbase_of_block_0_are_not_spendable(path: Path) -> None:
    genesis = block(0, [core(1, [CORE_MINT], [paid(50)])], previousblockhash=None)
    found = read(path, [genesis, *BLOCKS])["outputs"]
    lost = {(o["height"], o["vout"]) for o in found if not o["spendable"]}
    assert lost == {(0, 0), (7, 1)}


def test_the_two_coinbases_of_one_id_keep_it(path: Path) -> None:
    twice = [block(h, [core(1, [CORE_MINT], [paid(50)])]) for h in (91722, 91880)]
    assert [t["height"] for t in read(path, twice)["transactions"]] == [91722, 91880]


def second(**fields: Any) -> list[Record]:
    return [BLOCKS[0], BLOCKS[1] | fields]


def tx(*transactions: Record) -> list[Record]:
    made = [core(2, [CORE_MINT], [paid(25)]), *transactions]
    return second(tx=made, nTx=len(made))


SPEND = {"txid": txid(1), "vout": 0}


@pytest.mark.parametrize(
    ("records", "words"),
    [
        (second(tx=[txid(5)], nTx=1), "verbosity 2 or 3"),
        (second(tx=[], nTx=0), "0 transactions"),
        (second(nTx=3), "2 transactions in a block of: 3"),
        (second(confirmations=-1), "outside the best chain"),
        (second(finalsaplingroot=txid(0)), "Zcash"),
        (second(valuePools=[]), "Zcash"),
        (second(height=-1), "negative"),
        (second(height=2**31), "above"),
        (second(height=2**64), "above"),
        (second(height=1.5), "got `float`"),
        (second(time=2**32), "above"),
        (second(hash=""), "missing"),
        (second(hash="\x7f"), "control"),
        (second(previousblockhash=""), "missing"),
        (second(tx=[core(3, [SPEND], [])], nTx=1), "first transaction of a block is no coinbase"),
        (tx(core(3, [CORE_MINT], [])), "not the first"),
        (tx(core(3, [], [])), "no inputs"),
        (tx(core(3, [{"vout": 1}], [])), "missing"),
        (tx(core(3, [{"txid": txid(1)}], [])), "missing"),
        (tx(core(3, [{"txid": "xyz", "vout": 1}], [])), "64 hex digits"),
        (tx(core(3, [SPEND | {"vout": 2**32}], [])), "above"),
        (tx(core(3, [SPEND], [paid(1, -1)])), "negative"),
        (tx(core(3, [SPEND], [paid(1, 2**32)])), "above"),
        (tx(core(3, [SPEND], [paid(1, 0, "")])), "missing"),
        (tx(core(3, [SPEND], [paid(1, 0, "a\tb")])), "control"),
        (tx(core(3, [SPEND], [{"n": 0, "value": 1}])), "missing required field `scriptPubKey`"),
        (tx(core(3, [SPEND], []) | {"vjoinsplit": []}), "Zcash"),
        (tx(core(3, [SPEND], []) | {"txid": "1"}), "64 hex digits"),
    ],
)
def test_what_breaks_a_rule_is_refused_with_its_block(
    path: Path, records: list[Record], words: str
) -> None:
    with pytest.raises(LedgerError, match=words) as refused:
        read(path, records)
    assert refused.value.where.split()[0] == f"{path}:2"


def test_rows_name_file_line_and_transaction(path: Path) -> None:
    path.write_bytes(b"\n" + lines(BLOCKS))
    (batch,) = bitcoin_json.batches(path)
    assert batch.where("transactions", 2) == f"{path}:3 transaction 1"
    assert batch.where("outputs", 0) == f"{path}:2 transaction 0"
    assert batch.where("inputs", 1) == f"{path}:3 transaction 1"
    assert batch.where("blocks", 1) == f"{path}:3 transaction 0"


def test_wallets_of_the_emulation_find_their_coins_in_its_blocks(
    data: Path, tmp_path: Path
) -> None:
    (archive,) = (data / "btc_wasabi2_emulation_truth").glob("*.tar.xz")
    (folder,) = unpack(archive, tmp_path).iterdir()
    tables = rows(bitcoin_json.batches(folder / "data" / "btc-node"))
    assert sorted(b["height"] for b in tables["blocks"]) == list(range(324))
    outputs = {(o["txid"], o["vout"]): (o["value"], o["owner"]) for o in tables["outputs"]}
    wallets = json.loads((folder / "wallets_coins.json").read_text())
    coins = [coin for wallet in wallets.values() for coin in wallet if coin["confirmed"]]
    assert len(coins) == 255
    for coin in coins:
        known = outputs[coin["txid"], coin["index"]]
        assert known == (coin["amount"], coin["address"])
    inputs = [(i["spent_txid"], i["spent_vout"]) for i in tables["inputs"]]
    assert len(set(inputs)) == len(inputs)
    assert set(inputs) <= outputs.keys()


def test_recorded_blocks_are_what_bitcoin_etl_made_of_them(data: Path, tmp_path: Path) -> None:
    archive = data / "etl_fixtures" / "bitcoin-etl_tests_resources.tar.xz"
    job = unpack(archive, tmp_path) / "tests" / "resources" / "test_export_blocks_job"
    compared = 0
    for expected in sorted(job.glob("bitcoin/*/expected_transactions.json")):
        answers = sorted(expected.parent.glob("rpc_response_getblock_*_2.json"))
        blocks = rows([Batch(block_tables([a.read_bytes() for a in answers]))])
        etl = rows(bitcoin_etl_batches.batches(expected))
        for name in ("transactions", "outputs"):
            assert blocks[name] == etl[name]
            compared += len(etl[name])
        unvalued = [i | {"value": None, "owner": None} for i in etl.get("inputs", [])]
        assert blocks.get("inputs", []) == ordered(unvalued)
    assert compared > 20


def test_recorded_answers_of_verbosity_1_and_of_zcash_are_refused(
    data: Path, tmp_path: Path
) -> None:
    archive = data / "etl_fixtures" / "bitcoin-etl_tests_resources.tar.xz"
    job = unpack(archive, tmp_path) / "tests" / "resources" / "test_export_blocks_job"
    (short,) = (job / "bitcoin_cash").glob("*/rpc_response_getblock_*_True.json")
    with pytest.raises(InputError, match="verbosity 2 or 3"):
        list(bitcoin_json.batches(short))
    for shielded in (job / "zcash").glob("*/rpc_response_getblock_*_2.json"):
        assert not bitcoin_json.recognises(shielded.read_bytes()[:4096])
        with pytest.raises(InputError, match="Zcash"):
            list(bitcoin_json.batches(shielded))
