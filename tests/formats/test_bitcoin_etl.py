import gc
import gzip
import json
import lzma
import os
import tarfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from coinhaze.errors import CoinhazeError, InputError, LedgerError
from coinhaze.graph import transaction_graph
from coinhaze.ledger import CoinLedger
from coinhaze.readers import read

GENESIS = "4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b"
TWICE = {
    "e3bf3d07d4b0375638d5f1db5255fe07ba2c4cb067cd81b84ee974b6585fb468": (91722, 91880),
    "d5d27987d2a3dfc724e359870c6644b40e497bdc0589a033220fe15429d88599": (91812, 91842),
}
Record = dict[str, Any]


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # Not tmp_path: it is named after the test, whose words could pass for words of the message.
    return tmp_path_factory.mktemp("f")


@pytest.fixture
def path(folder: Path) -> Path:
    return folder / "transactions.json"


def spend(txid: str | None, vout: int | None, value: object = None, *addresses: str) -> Record:
    return {
        "index": 0,
        "spent_transaction_hash": txid,
        "spent_output_index": vout,
        "script_asm": "",
        "script_hex": "",
        "sequence": 4294967295,
        "required_signatures": None,
        "type": None if value is None else "pubkeyhash",
        "addresses": list(addresses),
        "value": value,
    }


def pay(value: object, *addresses: str, index: int = 0, type: str = "pubkeyhash") -> Record:
    return {
        "index": index,
        "script_asm": "",
        "script_hex": "76a9",
        "required_signatures": 1,
        "type": type,
        "addresses": list(addresses),
        "value": value,
    }


def pool(value: object, index: int = 0) -> Record:
    record = pay(value, index=index, type="shielded")
    return record | {"spent_transaction_hash": None, "spent_output_index": None}


def tx(
    txid: str,
    block: int = 1,
    *,
    inputs: Sequence[Record] = (),
    outputs: Sequence[Record] = (),
    **changes: Any,
) -> Record:
    return {
        "type": "transaction",
        "hash": txid,
        "size": 200,
        "virtual_size": 200,
        "version": 1,
        "lock_time": 0,
        "block_number": block,
        "block_hash": f"{block:064x}",
        "block_timestamp": 1231006505 + block,
        "is_coinbase": not inputs,
        "index": 0,
        "inputs": list(inputs),
        "outputs": list(outputs),
        "input_count": len(inputs),
        "output_count": len(outputs),
        "input_value": 0,
        "output_value": 0,
        "fee": 0,
    } | changes


MINED = tx("mined", 1, outputs=[pay(50, "miner")])
PAID = tx(
    "paid",
    2,
    inputs=[spend("mined", 0, 50, "miner")],
    outputs=[pay(20, "shop"), pay(29, "miner", index=1)],
)


def lines(*records: Record | str) -> str:
    return "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records)


def load(path: Path, *records: Record | str, complete: bool = False) -> CoinLedger:
    path.write_text(lines(*records))
    return coins(path, complete=complete)


def coins(paths: Path | list[Path], *, complete: bool = False) -> CoinLedger:
    ledger = read(paths, complete=complete)
    assert isinstance(ledger, CoinLedger)
    return ledger


def values(ledger: CoinLedger) -> dict[str, int]:
    assert ledger.output_value is not None
    names = ledger.output_names().to_pylist()
    return dict(zip(names, ledger.output_value.ints(), strict=True))


def owners(ledger: CoinLedger) -> dict[str, str]:
    names = ledger.owners.to_pylist()
    outputs = ledger.output_names().to_pylist()
    return {o: names[k] for o, k in zip(outputs, ledger.output_owner.tolist(), strict=True)}


def made(ledger: CoinLedger) -> list[str]:
    every = zip(ledger.txids.to_pylist(), ledger.inside.tolist(), strict=True)
    return [txid for txid, inside in every if inside]


def sinks(ledger: CoinLedger, view: str = "coin") -> set[str]:
    graph = transaction_graph(ledger, view="address" if view == "address" else "coin")
    return {n["node"] for n in graph.tables()["nodes"].to_pylist() if n["sink"]}


def refused(
    path: Path, *records: Record | str, line: int, says: Sequence[str], complete: bool = False
) -> None:
    path.write_text(lines(*records))
    with pytest.raises(CoinhazeError) as caught:
        read(path, format="bitcoin-etl", complete=complete)
    assert isinstance(caught.value, LedgerError)
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}: ")
    for words in says:
        assert words in message


# Good files


def test_an_enriched_export_is_read(path: Path) -> None:
    ledger = load(path, MINED, PAID)
    assert values(ledger) == {"mined:0": 50, "paid:0": 20, "paid:1": 29}
    assert owners(ledger) == {"mined:0": "miner", "paid:0": "shop", "paid:1": "miner"}
    assert ledger.coinbase.tolist() == [True, False]
    assert ledger.heights.to_pylist() == [1, 2]
    assert len(ledger) == 2
    assert sinks(ledger) == {"paid:0", "paid:1"}


def test_an_input_value_left_null_is_taken_from_the_output_it_spends(path: Path) -> None:
    bare = PAID | {"inputs": [spend("mined", 0)], "fee": -49}
    assert values(load(path, MINED, bare)) == values(load(path, MINED, PAID))


def test_a_coin_from_before_the_window_is_known_by_its_input(path: Path) -> None:
    ledger = load(path, PAID)
    assert values(ledger) == {"mined:0": 50, "paid:0": 20, "paid:1": 29}
    assert owners(ledger)["mined:0"] == "miner"
    assert ledger.inside.tolist() == [False, True]
    assert len(ledger) == 1


def test_gzip_is_unpacked(folder: Path, path: Path) -> None:
    packed = folder / "transactions.json.gz"
    packed.write_bytes(gzip.compress(lines(MINED, PAID).encode()))
    assert values(coins(packed)) == values(load(path, MINED, PAID))


def test_gzip_is_known_by_its_content_not_its_name(path: Path) -> None:
    path.write_bytes(gzip.compress(lines(MINED, PAID).encode()))
    assert len(coins(path)) == 2


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_reading_leaves_no_file_open(path: Path, pack: Callable[[bytes], bytes]) -> None:
    path.write_bytes(pack(lines(MINED, PAID).encode()))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        read(path)
        gc.collect()
    assert [str(w.message) for w in seen] == []


def test_a_byte_order_mark_is_skipped(path: Path) -> None:
    path.write_bytes(b"\xef\xbb\xbf" + lines(MINED, PAID).encode())
    assert len(coins(path)) == 2


def test_carriage_returns_blank_lines_and_a_missing_newline_do_no_harm(path: Path) -> None:
    path.write_text("\n" + lines(MINED, "", PAID).replace("\n", "\r\n").rstrip(), newline="")
    assert len(coins(path)) == 2


def test_the_order_is_by_block_and_index_not_by_line(path: Path) -> None:
    a = tx("a", 1, outputs=[pay(5, "x")], index=0)
    b = tx("b", 2, inputs=[spend("a", 0)], outputs=[pay(5, "y")], index=1)
    c = tx("c", 2, inputs=[spend("b", 0)], outputs=[pay(5, "z")], index=2)
    d = tx("d", 10, outputs=[pay(5, "x")], index=0)
    for order in ([a, b, c, d], [d, c, b, a], [c, a, d, b]):
        assert made(load(path, *order)) == ["a", "b", "c", "d"]


def test_the_order_does_not_depend_on_timestamps(path: Path) -> None:
    early = tx("a", 1, outputs=[pay(5, "x")], block_timestamp=900)
    late = tx("b", 2, inputs=[spend("a", 0)], outputs=[pay(5, "y")], block_timestamp=100)
    assert made(load(path, late, early)) == ["a", "b"]


def test_without_an_index_a_block_is_ordered_by_what_is_spent(path: Path) -> None:
    a = tx("z", 1, outputs=[pay(5, "x")], index=None)
    b = tx("a", 1, inputs=[spend("z", 0)], outputs=[pay(5, "y")], index=None)
    assert made(load(path, a, b)) == ["z", "a"]
    assert made(load(path, b, a)) == ["z", "a"]


def test_several_files_are_one_ledger_in_any_order(folder: Path) -> None:
    first, second = folder / "1.json", folder / "2.json.gz"
    first.write_text(lines(MINED))
    second.write_bytes(gzip.compress(lines(PAID).encode()))
    assert made(coins([first, second])) == made(coins([second, first])) == ["mined", "paid"]


def test_several_addresses_are_one_owner_sorted_and_joined(path: Path) -> None:
    ledger = load(path, tx("t", outputs=[pay(5, "c", "a", "b"), pay(6, "b", "c", "a", index=1)]))
    assert owners(ledger) == {"t:0": "a,b,c", "t:1": "a,b,c"}


def test_an_output_without_an_address_is_its_own_owner(path: Path) -> None:
    ledger = load(path, tx("t", outputs=[pay(5), pay(6, index=1) | {"addresses": None}]))
    assert owners(ledger) == {"t:0": "t:0", "t:1": "t:1"}
    assert ledger.owner_is_coin.tolist() == [True, True]


def test_outputs_keep_their_numbers_where_some_are_left_out(path: Path) -> None:
    ledger = load(path, tx("t", outputs=[pay(6, "b", index=3), pay(5, "a", index=1)]))
    assert values(ledger) == {"t:3": 6, "t:1": 5}


def test_amounts_up_to_63_bits_are_exact_and_no_more_is_taken(path: Path) -> None:
    for value in (2**53 + 1, 2**62, 2**63 - 1):
        assert values(load(path, tx("t", outputs=[pay(value, "a")]))) == {"t:0": value}
    for value in (2**63, 2**64 + 1, 2**256 - 1):
        says = ["value of an output is above 9223372036854775807", str(value)]
        refused(path, tx("t", outputs=[pay(value, "a")]), line=1, says=says)


def test_data_outputs_are_not_sinks(path: Path) -> None:
    by_type = pay(3, "x", index=1, type="nulldata")
    by_script = pay(4, "y", index=2, type="nonstandard") | {"script_hex": "6a0568656c6c6f"}
    ledger = load(path, tx("t", outputs=[pay(5, "a"), by_type, by_script]))
    assert sinks(ledger) == {"t:0"}
    assert sinks(ledger, "address") == {"a"}


def test_the_genesis_coinbase_is_not_a_sink(path: Path) -> None:
    ledger = load(path, tx(GENESIS, 0, outputs=[pay(50, "satoshi")]), MINED)
    assert sinks(ledger) == {"mined:0"}
    assert sinks(ledger, "address") == {"miner"}


def test_spending_a_data_output_is_refused(path: Path) -> None:
    data = tx("t", outputs=[pay(3, type="nulldata")])
    bad = tx("u", 2, inputs=[spend("t", 0, 3)])
    refused(path, data, bad, line=2, says=["can never be spent", "t:0", "transaction u"])


def test_zero_value_coins_are_retained_in_the_ledger_and_are_no_nodes(path: Path) -> None:
    ledger = load(path, tx("t", outputs=[pay(0, "a"), pay(5, "b", index=1)]))
    assert values(ledger) == {"t:0": 0, "t:1": 5}
    nodes = transaction_graph(ledger).tables()["nodes"]["node"].to_pylist()
    assert set(nodes) == {"tx:t", "t:1"}


def test_unknown_fields_and_types_do_no_harm(path: Path) -> None:
    record = tx("t", outputs=[pay(5, "a", type="witness_v9_future")], extra={"a": [1, 2.5, None]})
    assert values(load(path, record)) == {"t:0": 5}


# Shielded pools


def flows(ledger: CoinLedger) -> list[tuple[str, str, int]]:
    txids = ledger.txids.to_pylist()
    table = ledger.tables()["pool_flows"].to_pylist()
    return [(txids[r["tx"]], r["pool"], int(r["into_pool"])) for r in table]


def test_a_shielded_output_is_a_flow_into_the_pool(path: Path) -> None:
    shield = tx("s", 2, inputs=[spend("mined", 0, 50)], outputs=[pay(9, "a"), pool(40, 1)])
    ledger = load(path, MINED, shield)
    assert flows(ledger) == [("s", "shielded", 40)]
    assert values(ledger) == {"mined:0": 50, "s:0": 9}
    assert sinks(ledger) == {"s:0", "pool:shielded"}


def test_a_shielded_input_is_a_flow_out_of_the_pool(path: Path) -> None:
    ledger = load(path, tx("d", inputs=[pool(40)], outputs=[pay(39, "a")]))
    assert flows(ledger) == [("d", "shielded", -40)]
    assert ledger.coinbase.tolist() == [False]


def test_shielded_inputs_and_outputs_of_one_transaction_are_netted(path: Path) -> None:
    both = tx("n", inputs=[pool(40), pool(5, 1)], outputs=[pay(9, "a"), pool(30, 1)])
    assert flows(load(path, both)) == [("n", "shielded", -15)]


def test_a_fully_shielded_transfer_shows_only_its_fee(path: Path) -> None:
    ledger = load(path, tx("f", inputs=[pool(1)]))
    assert flows(ledger) == [("f", "shielded", -1)]
    edges = transaction_graph(ledger).tables()["edges"].to_pylist()
    assert [(e["to"], e["amount"]) for e in edges] == [("tx:f", "1")]


def test_a_coinbase_may_shield(path: Path) -> None:
    ledger = load(path, tx("c", outputs=[pay(10, "miner"), pool(40, 1)]))
    assert ledger.coinbase.tolist() == [True]
    nodes = {n["node"]: n for n in transaction_graph(ledger).tables()["nodes"].to_pylist()}
    assert nodes["tx:c"]["opening"] == "50"


def test_more_out_than_the_pool_and_the_coins_gave_is_refused(path: Path) -> None:
    bad = tx("d", inputs=[pool(40)], outputs=[pay(41, "a")])
    refused(path, bad, line=1, says=["outputs above inputs", "41", "40", "transaction d"])


def test_a_shielded_input_without_a_value_is_refused(path: Path) -> None:
    bad = tx("d", inputs=[pool(None)], outputs=[pay(5, "a")])
    refused(path, bad, line=1, says=["shielded value", "missing"])


def test_a_negative_shielded_input_is_refused(path: Path) -> None:
    bad = tx("d", inputs=[spend("x", 0, 100), pool(-50)], outputs=[pay(40, "a")])
    refused(path, bad, line=1, says=["negative", "-50"])


def test_a_negative_shielded_output_is_refused(path: Path) -> None:
    bad = tx("d", inputs=[spend("x", 0, 100)], outputs=[pay(120, "a"), pool(-50, 1)])
    refused(path, bad, line=1, says=["negative", "-50"])


# Identical rows, overlapping files, and the two pairs of BIP30


def test_identical_lines_are_merged(path: Path) -> None:
    once, twice = load(path, MINED, PAID), load(path, MINED, PAID, PAID, MINED)
    assert twice.tables() == once.tables()


def test_overlapping_files_are_merged(folder: Path, path: Path) -> None:
    last = tx("last", 3, inputs=[spend("paid", 0)], outputs=[pay(20, "end")])
    first, second = folder / "1.json", folder / "2.json"
    first.write_text(lines(MINED, PAID))
    second.write_text(lines(PAID, last))
    once = load(path, MINED, PAID, last)
    assert coins([first, second]).tables() == once.tables()
    assert coins([second, first]).tables() == once.tables()


def test_one_id_with_two_contents_is_refused(folder: Path) -> None:
    first, second = folder / "1.json", folder / "2.json"
    first.write_text(lines(MINED))
    second.write_text(lines(PAID, tx("mined", 1, outputs=[pay(51, "miner")])))
    with pytest.raises(LedgerError) as caught:
        read([first, second])
    message = str(caught.value)
    assert message.startswith(f"{second}:2: ")
    for words in (
        "another row is in the store already",
        "1 mined 0: value 50 and 51",
        f"{first}:1",
    ):
        assert words in message


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"block_number": 7}, "transaction mined: one id at two heights"),
        ({"block_timestamp": 7}, "two rows of one key differ: '1 mined: time 1231006506 and 7'"),
    ],
)
def test_one_id_in_two_blocks_is_refused(path: Path, changes: Record, says: str) -> None:
    refused(path, MINED, MINED | changes, line=2, says=[says])


@pytest.mark.parametrize("txid", TWICE)
def test_the_bip30_pairs_are_retained(path: Path, txid: str) -> None:
    lost, later = TWICE[txid]
    pair = [tx(txid, height, outputs=[pay(50, "miner")]) for height in (lost, later)]
    spent = tx("s", later + 1, inputs=[spend(txid, 0, 50)], outputs=[pay(50, "a")])
    for order in ([*pair, spent], [spent, *reversed(pair)], [*pair, spent, *pair]):
        ledger = load(path, *order)
        assert made(ledger) == [f"{txid}@{lost}", txid, "s"]
        assert list(values(ledger)) == [f"{txid}@{lost}:0", f"{txid}:0", "s:0"]
        assert ledger.output_spendable.tolist() == [False, True, True]
        assert ledger.coinbase.tolist() == [True, True, False]
        assert sinks(ledger) == {"s:0"}
        assert sinks(ledger, "address") == {"a"}


@pytest.mark.parametrize("txid", TWICE)
def test_the_lost_coinbase_alone_is_named_by_its_height_too(path: Path, txid: str) -> None:
    ledger = load(path, tx(txid, TWICE[txid][0], outputs=[pay(50, "miner")]))
    assert list(values(ledger)) == [f"{txid}@{TWICE[txid][0]}:0"]
    assert sinks(ledger) == set()


@pytest.mark.parametrize("txid", TWICE)
def test_the_later_coinbase_alone_goes_by_its_id(path: Path, txid: str) -> None:
    ledger = load(path, tx(txid, TWICE[txid][1], outputs=[pay(50, "miner")]))
    assert sinks(ledger) == {f"{txid}:0"}


@pytest.mark.parametrize("txid", TWICE)
def test_the_bip30_pairs_leave_the_order_of_their_blocks(path: Path, txid: str) -> None:
    lost, later = TWICE[txid]
    records = []
    for height in (lost, later):
        other = tx(f"o{height}", height, outputs=[pay(5, "x")], index=1)
        other |= {"inputs": [spend(f"e{height}", 0, 5)], "is_coinbase": False}
        records += [tx(txid, height, outputs=[pay(50, "miner")]), other]
    assert made(load(path, *records)) == [f"{txid}@{lost}", f"o{lost}", txid, f"o{later}"]


@pytest.mark.parametrize("txid", TWICE)
def test_a_bip30_id_with_a_third_content_is_refused(path: Path, txid: str) -> None:
    lost, later = TWICE[txid]
    pair = [tx(txid, height, outputs=[pay(50, "miner")]) for height in (lost, later)]
    for height in (lost, later):
        third = tx(txid, height, outputs=[pay(49, "thief")])
        path.write_text(lines(*pair, third))
        with pytest.raises(
            LedgerError, match=f":3: outputs: .*{txid} 0: value 49 and 50|50 and 49"
        ):
            read(path)


@pytest.mark.parametrize("txid", TWICE)
def test_a_bip30_id_in_any_other_block_is_refused(path: Path, txid: str) -> None:
    pair = [tx(txid, height, outputs=[pay(50, "miner")]) for height in (TWICE[txid][0], 91999)]
    refused(path, *pair, line=2, says=[txid, "one id at two heights", "91999"])


# Values that are none


@pytest.mark.parametrize("value", ["5.5", "5.0", "1e3", "0.1"])
def test_a_fractional_output_value_is_refused(path: Path, value: str) -> None:
    bad = json.dumps(tx("t", outputs=[pay(777, "a")])).replace("777", value)
    refused(path, MINED, bad, line=2, says=["value", str(float(value))])


@pytest.mark.parametrize("value", ["5.5", "50.0"])
def test_a_fractional_input_value_is_refused(path: Path, value: str) -> None:
    bad = json.dumps(tx("t", inputs=[spend("x", 0, 777)])).replace("777", value)
    refused(path, MINED, bad, line=2, says=["value", value])


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
def test_a_literal_that_is_no_number_is_refused(path: Path, value: str) -> None:
    bad = json.dumps(tx("t", outputs=[pay(777, "a")])).replace("777", value)
    refused(path, MINED, bad, line=2, says=[value])


def test_a_negative_output_value_is_refused(path: Path) -> None:
    bad = tx("t", outputs=[pay(-5, "a")])
    refused(path, MINED, bad, line=2, says=["value of an output is negative: -5"])


def test_a_negative_input_value_is_refused(path: Path) -> None:
    bad = tx("t", inputs=[spend("x", 0, -5)])
    refused(path, MINED, bad, line=2, says=["value of an input is negative: -5"])


def test_a_value_of_thousands_of_digits_is_refused(path: Path) -> None:
    bad = json.dumps(tx("t", outputs=[pay(777, "a")])).replace("777", "9" * 10_000)
    refused(path, bad, line=1, says=[])


def test_a_value_as_text_is_read_if_it_is_digits(path: Path) -> None:
    assert values(load(path, tx("t", outputs=[pay("5", "a")]))) == {"t:0": 5}
    refused(
        path, tx("t", outputs=[pay("5.0", "a")]), line=1, says=["value", "5.0", "export it again"]
    )


def test_a_missing_output_value_is_refused(path: Path) -> None:
    without = {k: v for k, v in pay(5, "a").items() if k != "value"}
    for output in (pay(None, "a"), without):
        bad = tx("t", outputs=[output])
        refused(path, bad, line=1, says=["value of an output is missing"])


def test_an_unknown_input_without_a_value_is_refused(path: Path) -> None:
    path.write_text(lines(tx("t", inputs=[spend("gone", 3)], outputs=[pay(5, "a")])))
    says = (
        r"transactions\.json: the values of 1 coins .* not known \(gone:3\)\. .*--unknown leave-out"
    )
    with pytest.raises(InputError, match=says):
        read(path)


def test_an_input_value_that_differs_from_its_output_is_refused(path: Path) -> None:
    bad = tx("t", 2, inputs=[spend("mined", 0, 49)])
    refused(path, MINED, bad, line=2, says=["transaction t", "mined:0", "49", "50"])


# Rules of the ledger


def test_a_coin_spent_twice_is_refused(path: Path) -> None:
    again = tx("again", 3, inputs=[spend("mined", 0, 50)])
    says = ["transaction again", "spent twice", "mined:0", "paid"]
    refused(path, MINED, PAID, again, line=3, says=says)


def test_a_coin_spent_twice_in_one_transaction_is_refused(path: Path) -> None:
    again = spend("mined", 0, 50) | {"index": 1}
    bad = tx("t", 2, inputs=[spend("mined", 0, 50), again])
    refused(path, MINED, bad, line=2, says=["transaction t", "spent twice", "mined:0"])
    bad = tx("t", 2, inputs=[spend("mined", 0, 50)] * 2)
    refused(path, MINED, bad, line=2, says=["two inputs with one number: 0"])


def test_an_earlier_coin_spent_twice_is_refused(path: Path) -> None:
    again = tx("again", 3, inputs=[spend("mined", 0, 50)])
    refused(path, PAID, again, line=2, says=["transaction again", "spent twice", "mined:0"])


def test_a_coin_spent_before_it_is_made_is_refused(path: Path) -> None:
    bad = PAID | {"block_number": 0}
    refused(path, MINED, bad, line=2, says=["transaction paid", "before it is made", "mined:0"])


def test_a_transaction_that_spends_itself_is_refused(path: Path) -> None:
    bad = tx("t", inputs=[spend("t", 0, 5)], outputs=[pay(5, "a")])
    refused(path, bad, line=1, says=["transaction t", "t:0", "its own"])


def test_outputs_above_inputs_are_refused(path: Path) -> None:
    bad = PAID | {"outputs": [pay(51, "shop")]}
    refused(path, MINED, bad, line=2, says=["transaction paid", "outputs above inputs", "51", "50"])


def test_outputs_above_inputs_are_compared_beyond_float_precision(path: Path) -> None:
    big = tx("big", outputs=[pay(2**62, "a")])
    bad = tx("bad", 2, inputs=[spend("big", 0)], outputs=[pay(2**62, "b"), pay(1, "c", index=1)])
    refused(path, big, bad, line=2, says=["transaction bad", "outputs above inputs"])


def test_a_transaction_without_inputs_that_is_no_coinbase_is_refused(path: Path) -> None:
    bad = MINED | {"is_coinbase": False}
    refused(
        path, bad, line=1, says=["transaction mined", "no inputs, but not marked as a coinbase"]
    )


def test_a_coinbase_with_inputs_is_refused(path: Path) -> None:
    refused(path, PAID | {"is_coinbase": True}, line=1, says=["a coinbase spends a coin", "mined"])


def test_an_unknown_coin_in_a_complete_ledger_is_refused(path: Path) -> None:
    says = ["transaction paid, input 0", "unknown coin", "complete", "mined"]
    refused(path, PAID, line=1, says=says, complete=True)


def test_a_complete_ledger_without_unknown_coins_is_read(path: Path) -> None:
    assert load(path, MINED, PAID, complete=True).complete


def test_an_output_number_the_transaction_does_not_have_is_refused(path: Path) -> None:
    path.write_text(lines(MINED, tx("t", 2, inputs=[spend("mined", 1, 5)])))
    with pytest.raises(InputError, match=r"transactions\.json: 1 inputs spend .* such as mined:1"):
        read(path)


def test_two_outputs_with_one_number_are_refused(path: Path) -> None:
    bad = tx("t", outputs=[pay(5, "a"), pay(6, "b")])
    refused(path, bad, line=1, says=["two outputs with one number: 0"])
    alike = tx("t", outputs=[pay(5, "a"), pay(5, "a")])  # would be taken for one
    refused(path, alike, line=1, says=["two outputs with one number: 0"])


@pytest.mark.parametrize("number", [-1, 2**32, 2**40, 2**70])
def test_an_output_number_out_of_range_is_refused(path: Path, number: int) -> None:
    bad = tx("t", outputs=[pay(5, "a", index=number)])
    refused(path, bad, line=1, says=["index of an output is", str(number)])


@pytest.mark.parametrize("number", [-1, 2**32, 2**40, 2**70])
def test_a_spent_output_number_out_of_range_is_refused(path: Path, number: int) -> None:
    bad = tx("t", inputs=[spend("x", number, 5)])
    refused(
        path, bad, line=1, says=["spent", "is negative" if number < 0 else "above", str(number)]
    )


@pytest.mark.parametrize("number", [-1, 2**63, 2**64, 10**30])
def test_a_block_number_out_of_range_is_refused(path: Path, number: int) -> None:
    bad = tx("t", outputs=[pay(5, "a")]) | {"block_number": number}
    says = ["height is negative" if number < 0 else "block_number is above", str(number)]
    refused(path, bad, line=1, says=says)


def test_a_negative_index_is_refused_and_shown(path: Path) -> None:
    refused(path, tx("t", 5, index=-77777), line=1, says=["index", "not 0", "-77777"])


@pytest.mark.parametrize("time", [2**63, 10**30])
def test_a_time_out_of_range_is_refused(path: Path, time: int) -> None:
    refused(path, tx("t", block_timestamp=time), line=1, says=["time", str(time)])


# Lines that are none


@pytest.mark.parametrize("field", ["hash", "block_number", "inputs", "outputs"])
def test_a_missing_field_is_refused(path: Path, field: str) -> None:
    bad = {k: v for k, v in PAID.items() if k != field}
    refused(path, MINED, bad, line=2, says=[field, "missing"])


@pytest.mark.parametrize("field", ["hash", "block_number", "inputs", "outputs"])
def test_a_null_field_is_refused(path: Path, field: str) -> None:
    refused(path, MINED, PAID | {field: None}, line=2, says=[field, "null"])


def test_an_empty_hash_is_refused(path: Path) -> None:
    refused(path, MINED, tx(""), line=2, says=["id of the transaction is missing"])


@pytest.mark.parametrize(("txid", "vout"), [(None, 0), ("x", None), ("", 0)])
def test_an_input_that_names_no_coin_is_refused(
    path: Path, txid: str | None, vout: int | None
) -> None:
    refused(path, MINED, tx("t", inputs=[spend(txid, vout, 5)]), line=2, says=["coin"])


def test_a_truncated_line_is_refused(path: Path) -> None:
    for end in (-1, -20, 30, 2):
        refused(path, MINED, json.dumps(PAID)[:end], line=2, says=["not a bitcoin-etl transaction"])


@pytest.mark.parametrize("line", ["5", "null", '"text"', "hello", "{", "{}", "}"])
def test_a_line_that_is_no_transaction_is_refused(path: Path, line: str) -> None:
    refused(path, MINED, line, line=2, says=["not a bitcoin-etl transaction"])


def test_arrays_and_transactions_on_one_line_are_read(path: Path) -> None:
    once = values(load(path, MINED, PAID))
    assert values(load(path, json.dumps([MINED, PAID]))) == once
    assert values(load(path, json.dumps(MINED) + json.dumps(PAID))) == once


def test_invalid_utf8_is_refused(path: Path) -> None:
    path.write_bytes(lines(MINED, PAID).encode().replace(b'"shop"', b'"sh\xffop"'))
    with pytest.raises(LedgerError, match=r"(?i)utf-8") as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}:2: ")


def test_a_lone_surrogate_is_refused(path: Path) -> None:
    refused(path, MINED, json.dumps(PAID).replace("shop", "\\ud800"), line=2, says=[])


def test_a_control_character_in_an_id_is_refused(path: Path) -> None:
    says = ["control character", "\\x01"]
    refused(path, MINED, tx("t\x01", outputs=[pay(5, "a")]), line=2, says=says)


def test_a_control_character_in_a_spent_id_is_refused(path: Path) -> None:
    says = ["control character", "\\x01"]
    refused(path, MINED, tx("t", inputs=[spend("x\x01", 0, 5)]), line=2, says=says)


def test_a_control_character_in_an_address_is_refused(path: Path) -> None:
    says = ["control character", "a\\x00"]
    refused(path, MINED, tx("t", outputs=[pay(5, "a\0")]), line=2, says=says)


def test_a_line_nested_without_end_is_refused(path: Path) -> None:
    deep = json.dumps(PAID)[:-1] + ', "x": ' + "[" * 100_000 + "]" * 100_000 + "}"
    refused(path, MINED, deep, line=2, says=[])


# Files that are none


def test_a_file_without_lines_is_refused_without_a_format(path: Path) -> None:
    path.write_text("\n")
    with pytest.raises(InputError, match="no known format") as caught:
        read(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("text", ['{"a": 1}\n', '[{"hash": "t", "block_number": 1}]\n'])
def test_other_json_is_refused(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(InputError, match="no known format") as caught:
        read(path)
    assert str(path) in str(caught.value)


def packed() -> bytes:
    return gzip.compress(
        lines(*(tx(f"{k:064x}", k, outputs=[pay(k, "a")]) for k in range(900))).encode()
    )


@pytest.mark.parametrize("name", [None, "bitcoin-etl"])
@pytest.mark.parametrize("keep", ["half", "all but the trailer", "all but one byte"])
def test_gzip_cut_short_is_refused(path: Path, name: str | None, keep: str) -> None:
    data = packed()
    end = {"half": len(data) // 2, "all but the trailer": -8, "all but one byte": -1}[keep]
    path.write_bytes(data[:end])
    with pytest.raises(InputError) as caught:
        read(path, format=name)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", [None, "bitcoin-etl"])
@pytest.mark.parametrize("spot", [-6, -2, 3000])
def test_damaged_gzip_is_refused(path: Path, name: str | None, spot: int) -> None:
    data = bytearray(packed())
    data[spot] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        read(path, format=name)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", [None, "bitcoin-etl"])
def test_gzip_that_cannot_be_unpacked_is_refused(path: Path, name: str | None) -> None:
    data = packed()
    path.write_bytes(data[:10] + b"\xff\xff\xff" + data[13:])
    with pytest.raises(InputError) as caught:
        read(path, format=name)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", [None, "bitcoin-etl"])
def test_a_missing_file_or_a_directory_is_refused(folder: Path, name: str | None) -> None:
    with pytest.raises(InputError, match=r"(?i)no such file.*"):
        read(folder / "nothing.json", format=name)
    with pytest.raises(InputError, match=r"is a folder|no files in this folder"):
        read(folder, format=name)


def test_transfers_read_as_bitcoin_etl_are_refused(path: Path) -> None:
    refused(path, "from,to,amount", "a,b,5", line=1, says=["not a bitcoin-etl transaction"])


# The exporter's own fixtures

WORTHLESS = "zcash/block_0"  # the one coin of its genesis block is worth nothing
COUNTS = {
    "bitcoin/block_0": 1,
    "bitcoin/block_1": 1,
    "bitcoin/block_with_transactions": 4,
    "bitcoin/block_without_transactions": 1,
    "bitcoin/stream_50001_50002": 4,
    "bitcoin_cash/block_with_duplicate_txid": 1,
    "dogecoin/block_with_float_precision_loss": 6,
    "dogecoin/block_without_transactions": 1,
    "zcash/block_0": 1,
    "zcash/block_with_shielded_addresses": 4,
    "zcash/block_with_value_balance": 10,
}


@pytest.fixture(scope="session")
def exports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    if "COINHAZE_DATA" not in os.environ:
        pytest.skip("COINHAZE_DATA is unset: it names the folder of real ledgers")
    archive = Path(os.environ["COINHAZE_DATA"], "etl_fixtures/bitcoin-etl_tests_resources.tar.xz")
    target = tmp_path_factory.mktemp("etl")
    with lzma.open(archive) as unpacked, tarfile.open(fileobj=unpacked) as tar:
        tar.extractall(target, filter="data")
    found = sorted(target.rglob("expected_transactions.json"))
    return {"/".join(p.parts[-3:-1]): p for p in found}


def test_every_fixture_of_the_exporter_is_known(exports: dict[str, Path]) -> None:
    assert exports.keys() == COUNTS.keys()


@pytest.mark.parametrize("name", COUNTS)
def test_a_fixture_of_the_exporter_is_read_or_refused_by_name(
    exports: dict[str, Path], name: str
) -> None:
    path = exports[name]
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(records) == COUNTS[name]
    own = {r["hash"] for r in records}
    bare = [
        f"{i['spent_transaction_hash']}:{i['spent_output_index']}"
        for r in records
        for i in r["inputs"]
        if i["type"] != "shielded" and i["value"] is None and i["spent_transaction_hash"] not in own
    ]
    if bare:
        with pytest.raises(InputError, match="coins spent in the window are not known") as caught:
            read(path)
        assert str(caught.value).startswith(f"{path}:")
        assert any(coin in str(caught.value) for coin in bare)
        return
    if name == WORTHLESS:
        with pytest.raises(InputError, match="nothing moves: every coin is worth 0"):
            read(path)
        return
    ledger = read(path)
    assert isinstance(ledger, CoinLedger)
    assert len(ledger) == COUNTS[name]
    transparent = sum(o["type"] != "shielded" for r in records for o in r["outputs"])
    assert int(ledger.inside[ledger.output_tx].sum()) == transparent


@pytest.mark.parametrize("name", [name for name in COUNTS if name != WORTHLESS])
def test_a_fixture_with_values_filled_in_is_read(
    exports: dict[str, Path], name: str, path: Path
) -> None:
    records = [json.loads(line) for line in exports[name].read_text().splitlines()]
    for record in records:
        bare = [i for i in record["inputs"] if i["value"] is None]
        paid = sum(o["value"] for o in record["outputs"])
        for i in bare:
            i["value"] = paid
    ledger = load(path, *records)
    assert len(ledger) == COUNTS[name]
    pooled = {
        r["hash"]: sum(o["value"] for o in r["outputs"] if o["type"] == "shielded")
        - sum(i["value"] for i in r["inputs"] if i["type"] == "shielded")
        for r in records
    }
    assert {t: f for t, _, f in flows(ledger)} == {t: f for t, f in pooled.items() if f}


def test_the_real_coinbase_of_bip30_is_read_by_its_height(exports: dict[str, Path]) -> None:
    ledger = coins(exports["bitcoin_cash/block_with_duplicate_txid"])
    (txid,) = made(ledger)
    assert txid == "e3bf3d07d4b0375638d5f1db5255fe07ba2c4cb067cd81b84ee974b6585fb468@91722"
    assert sinks(ledger) == set()


def test_the_real_genesis_coinbase_is_not_a_sink(exports: dict[str, Path]) -> None:
    assert sinks(coins(exports["bitcoin/block_0"])) == set()
