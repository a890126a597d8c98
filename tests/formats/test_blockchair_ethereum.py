from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Any

import pytest

from coinhaze.errors import InputError, LedgerError
from coinhaze.formats.blockchair import bitcoin as blockchair
from coinhaze.formats.blockchair import ethereum as blockchair_ethereum
from coinhaze.formats.ethereum import etl as ethereum_etl
from coinhaze.formats.ethereum import traces
from coinhaze.formats.tabular import delimited
from formats import trace_twin
from formats.ethereum_files import (
    ZERO,
    Row,
    address,
    bare,
    blockchair_transaction,
    call,
    coinbase_call,
    erc20,
    transfers,
    tsv_text,
    txid,
    write,
)


def of(tmp_path: Path, rows: list[Row]) -> list[Row]:
    return transfers(blockchair_ethereum, write(tmp_path / "rows.tsv", tsv_text(rows)))


def amounts(tmp_path: Path, rows: list[Row]) -> list[str]:
    return [row["amount"] for row in of(tmp_path, rows)]


@pytest.mark.parametrize("name", ["rows.tsv", "rows.tsv.gz"])
def test_a_call_is_read_with_its_hex_prefixed(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, tsv_text([call()]))
    assert transfers(blockchair_ethereum, path) == [
        {
            "height": 100,
            "position": 0,
            "step": 0,
            "txid": txid(1),
            "token": "",
            "sender": address("ann"),
            "recipient": address("bob"),
            "amount": "5",
            "kind": "call",
            "time": 1576108857,
        }
    ]


def test_hex_of_the_api_has_its_prefix_already(tmp_path: Path) -> None:
    row = call(transaction_hash=txid(1), sender=address("ann").upper())
    assert of(tmp_path, [row]) == of(tmp_path, [call()])


def test_tables_are_recognised_and_distinguished_from_those_of_coins() -> None:
    for row in (call(), blockchair_transaction(), erc20()):
        head = tsv_text([row])
        assert blockchair_ethereum.recognises(head)
        assert not blockchair.recognises(head)
        assert not ethereum_etl.recognises(head)
    for head in (b"", b"block_id\thash\ttime\tis_coinbase\n", b"\xff\xfe", b"PAR1"):
        assert not blockchair_ethereum.recognises(head)


# Calls


def test_blocks_are_read_with_their_hashes_prefixed(tmp_path: Path) -> None:
    row = {
        "id": "100", "hash": bare(txid(9)), "time": "2019-12-12 00:00:57", "size": "5",
        "miner": bare(address("mia")), "uncle_count": "0",
    }  # fmt: skip
    path = write(tmp_path / "blocks.tsv", tsv_text([row]))
    assert blockchair_ethereum.recognises(path.read_bytes())
    assert not blockchair.recognises(path.read_bytes())
    (batch,) = blockchair_ethereum.batches(path)
    assert batch.tables["blocks"].to_pylist() == [
        {"height": 100, "hash": txid(9), "previous": None, "time": 1576108857}
    ]


def test_rewards_have_no_sender_and_come_from_the_zero_address(tmp_path: Path) -> None:
    found = of(tmp_path, [call(), coinbase_call(value=2), coinbase_call(value=2)])
    assert [(r["txid"], r["step"], r["position"], r["sender"]) for r in found[1:]] == [
        ("reward:100", 0, traces.AFTER_ALL, ZERO),
        ("reward:100", 1, traces.AFTER_ALL, ZERO),
    ]
    assert {r["kind"] for r in found[1:]} == {"reward"}


def test_no_node_is_called_null(tmp_path: Path) -> None:
    for row in of(tmp_path, [call(), coinbase_call()]):
        assert "N" not in row["sender"] + row["recipient"] + row["txid"]


def test_null_where_something_must_be_is_refused(tmp_path: Path) -> None:
    for column in ("transaction_hash", "index", "sender", "recipient", "value", "failed", "type"):
        with pytest.raises(LedgerError, match=rf"rows\.tsv:2: {column} is missing"):
            of(tmp_path, [call() | {column: None}])


@pytest.mark.parametrize("how", ["delegatecall", "callcode", "staticcall"])
def test_borrowed_code_repeats_a_value_and_moves_none(tmp_path: Path, how: str) -> None:
    assert amounts(tmp_path, [call(), call(index="0.0", type=how, value=6)]) == ["5"]


def test_what_was_not_transferred_moves_nothing(tmp_path: Path) -> None:
    assert amounts(tmp_path, [call(), call(index="0.0", transferred=0, value=6)]) == ["5"]


def test_failure_goes_down_the_tree(tmp_path: Path) -> None:
    rows = [
        call(value=1),
        call(index="0.1", value=2, failed=1, transferred=0),
        call(index="0.1.0", value=3),
        call(index="0.1.0.4", value=4, type="selfdestruct"),
        call(index="0.1.0", value=3),
        call(index="0.11", value=5),
    ]
    rows.insert(3, call(index="0.2", value=0))
    with pytest.raises(LedgerError, match="caller is not in the file"):
        of(tmp_path, [*rows, call(index="0.3.1")])
    assert amounts(tmp_path, rows) == ["1", "5"]


def test_the_index_is_sorted_as_numbers(tmp_path: Path) -> None:
    rows = [call(index=i, value=k + 1) for k, i in enumerate(["0.10", "0.2", "0", "0.2.0"])]
    assert amounts(tmp_path, rows) == ["3", "2", "4", "1"]


@pytest.mark.parametrize("index", ["1", "0.", "0..1", ".0", "0,1", "x", "-0", "00", "0.-1"])
def test_an_index_that_is_no_place_is_refused(tmp_path: Path, index: str) -> None:
    with pytest.raises(LedgerError, match=r"rows\.tsv:3: index "):
        of(tmp_path, [call(), call(index=index)])


def test_kinds_of_calls_are_separate(tmp_path: Path) -> None:
    types = ["call", "create", "create2", "selfdestruct"]
    rows = [call(index=".".join("0" * (k + 1)), type=how) for k, how in enumerate(types)]
    assert [r["kind"] for r in of(tmp_path, rows)] == ["call", "create", "create", "selfdestruct"]
    with pytest.raises(LedgerError, match="type is none of"):
        of(tmp_path, [call(type="gift")])


def test_rows_given_twice_count_once(tmp_path: Path) -> None:
    assert len(of(tmp_path, [call(), call(index="0.0"), call()])) == 2
    with pytest.raises(LedgerError, match="two calls at one place"):
        of(tmp_path, [call(), call(value=6)])


def test_transactions_are_numbered_as_the_file_has_them(tmp_path: Path) -> None:
    hashes = [bare(txid(n)) for n in (9, 3, 7)]
    rows = [call(transaction_hash=h, block_id=b) for b in (100, 101) for h in hashes]
    rows.insert(1, call(transaction_hash=hashes[0], index="0.0"))
    found = {(r["height"], r["txid"]): r["position"] for r in of(tmp_path, rows)}
    assert found == {(b, txid(n)): k for b in (100, 101) for k, n in enumerate((9, 3, 7))}


def test_rows_of_the_mempool_are_left_out(tmp_path: Path) -> None:
    rows = [call(block_id=-1, failed=None, value="?"), call(transaction_hash=bare(txid(2)))]
    assert [r["txid"] for r in of(tmp_path, rows)] == [txid(2)]
    with pytest.raises(LedgerError, match=r"rows\.tsv:3: value"):
        of(tmp_path, [rows[0], call(value="?")])


def random_calls(chance: random.Random) -> list[Row]:
    rows = []
    for number in range(40):
        places: list[tuple[int, ...]] = [()]
        for _ in range(chance.randrange(25)):
            above = chance.choice(places[-5:])
            places.append((*above, sum(p[:-1] == above for p in places if p)))
        for place in dict.fromkeys(places):
            failed = chance.random() < 0.15
            how = chance.choice(("call", "call", "delegatecall", "staticcall"))
            rows.append(
                call(
                    transaction_hash=bare(txid(number)),
                    block_id=number // 4,
                    index=".".join(map(str, (0, *place))),
                    failed=int(failed),
                    value=chance.choice((0, 1, 2**200)),
                    type=how,
                    transferred=int(how == "call"),
                )
                | {"place": place}
            )
    return rows


def test_random_trees_move_what_the_slow_twin_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "BLOCK", 20_000)
    monkeypatch.setattr(
        blockchair_ethereum, "BlockBuffer", lambda path: traces.BlockBuffer(path, 200)
    )
    for seed in range(8):
        rows = random_calls(random.Random(seed))
        names = {"transaction_hash": "transaction_hash", "type": "call_type"}
        plain: list[dict[str, Any]] = [
            {name: row[column] for column, name in names.items()}
            | {"from_address": "a", "to_address": "b", "value": row["value"]}
            | {"place": row["place"], "status": 1 - row["failed"], "error": None}
            for row in rows
        ]
        expected = {"0x" + t: [v for _, _, v in m] for t, m in trace_twin.moved(plain).items()}
        found: dict[str, list[str]] = {}
        for row in of(tmp_path, rows):
            assert row["step"] == len(found.setdefault(row["txid"], []))
            found[row["txid"]].append(row["amount"])
        assert found == expected


# Transactions and tokens


def test_failed_transactions_move_nothing(tmp_path: Path) -> None:
    rows = [
        blockchair_transaction(failed=1),
        blockchair_transaction(hash=bare(txid(2)), value=0),
        blockchair_transaction(hash=bare(txid(3)), type="create_tree", index=5),
    ]
    (found,) = of(tmp_path, rows)
    assert (found["txid"], found["position"], found["step"]) == (txid(3), 5, 0)
    assert found["kind"] == "transaction"


def test_a_reward_among_transactions_has_neither_hash_nor_index(tmp_path: Path) -> None:
    fields = {"hash": None, "index": None, "sender": None, "type": "synthetic_coinbase"}
    rewards = [blockchair_transaction(**fields), blockchair_transaction(**fields)]
    found = of(tmp_path, rewards)
    assert [(r["txid"], r["step"], r["kind"]) for r in found] == [
        ("reward:100", 0, "reward"),
        ("reward:100", 1, "reward"),
    ]
    with pytest.raises(LedgerError, match="hash is missing"):
        of(tmp_path, [blockchair_transaction(hash=None)])


def test_a_transaction_and_its_call_have_one_key(tmp_path: Path) -> None:
    (whole,), (part,) = of(tmp_path, [blockchair_transaction()]), of(tmp_path, [call()])
    assert all(whole[k] == part[k] for k in ("height", "txid", "token", "step"))
    assert whole["kind"] != part["kind"]


def test_tokens_without_a_log_index_are_counted_in_their_transaction(tmp_path: Path) -> None:
    rows = [
        erc20(value=1),
        erc20(value=2, transaction_hash=bare(txid(9))),
        erc20(value=3, token_address=bare(address("other"))),
        erc20(value=1),
        erc20(value=2**256 - 1, transaction_hash=bare(txid(9)), sender=bare(ZERO)),
    ]
    found = of(tmp_path, rows)
    assert [(r["txid"], r["position"], r["step"], r["amount"]) for r in found] == [
        (txid(1), 0, 0, "1"),
        (txid(1), 0, 1, "3"),
        (txid(1), 0, 2, "1"),
        (txid(9), 1, 0, "2"),
        (txid(9), 1, 1, str(2**256 - 1)),
    ]
    assert found[1]["token"] == address("other")
    assert found[4]["sender"] == ZERO


def test_quotes_in_token_names_are_letters(tmp_path: Path) -> None:
    rows = [erc20(token_name='"', value=1), erc20(token_name='say ""hi', value=2)]
    assert amounts(tmp_path, rows) == ["1", "2"]


# Files


def test_a_header_without_rows_is_an_empty_day(tmp_path: Path) -> None:
    header = tsv_text([call()]).split(b"\n")[0]
    for text in (header, header + b"\n"):
        assert transfers(blockchair_ethereum, write(tmp_path / "a.tsv", text)) == []


GOOD = tsv_text([call(), call(index="0.0")])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        GOOD.replace(b"\t5\t", b"\t"),
        GOOD.replace(b"\t5\t", b"\t5\t\t"),
        GOOD + b"\n" + GOOD,
        GOOD.replace(b"\t5\t", b"\t\xff\t"),
        GOOD.replace(b"value_usd", b"value"),
        GOOD.replace(b"\tvalue\t", b"\tworth\t"),
        GOOD.replace(b"\t5\t", b"\t1e+18\t"),
        GOOD.replace(b"\t5\t", b"\t1.5\t"),
        GOOD.replace(b"\t5\t", b"\t-5\t"),
        GOOD.replace(b"\t5\t", b"\t\t"),
        GOOD.replace(b"\t5\t", b"\t%d\t" % 2**256),
        GOOD.replace(b"\tcall\t", b"\tcall\0\t"),
        GOOD.replace(b"2019-12-12", b"2019-02-30"),
        GOOD.replace(b"\n100\t", b"\n2147483648\t"),
        GOOD.replace(b"\n100\t", b"\n\\N\t"),
    ],
)
def test_malformed_files_are_refused(tmp_path: Path, content: bytes) -> None:
    assert content != GOOD
    with pytest.raises(InputError, match="rows"):
        list(blockchair_ethereum.batches(write(tmp_path / "rows.tsv", content)))


def test_damaged_gzip_is_refused(tmp_path: Path) -> None:
    packed = gzip.compress(GOOD)
    cut, wrong = packed[: len(packed) // 2], packed[:-8] + b"\0\0\0\0" + packed[-4:]
    for content in (cut, wrong, b"", GOOD):
        path = tmp_path / "rows.tsv.gz"
        path.write_bytes(content)
        with pytest.raises(InputError, match="rows"):
            list(blockchair_ethereum.batches(path))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        list(blockchair_ethereum.batches(tmp_path / "none.tsv"))


def test_rows_without_an_index_are_turned_round_in_a_file_newest_first(tmp_path: Path) -> None:
    rows = [erc20(block_id=100 + k // 3, value=str(k + 1)) for k in range(9)]
    keep = ("height", "position", "step", "amount")
    found = [
        [[row[name] for name in keep] for row in of(tmp_path, given)]
        for given in (rows, rows[::-1])
    ]
    assert sorted(found[0]) == sorted(found[1])


def test_a_file_that_is_not_sorted_says_so(tmp_path: Path) -> None:
    rows = [erc20(block_id=height, value="1") for height in (100, 102, 101)]
    path = write(tmp_path / "rows.tsv", tsv_text(rows))
    notes = [note for batch in blockchair_ethereum.batches(path) for note in batch.notes]
    assert len(notes) == 1
    assert "keep the order of the file" in notes[0]
