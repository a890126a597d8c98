from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from coinhaze.errors import LedgerError
from coinhaze.formats.ethereum import etl as ethereum_etl
from coinhaze.formats.ethereum import traces
from coinhaze.formats.tabular import table_rows
from formats import trace_twin
from formats.ethereum_files import (
    ZERO,
    Row,
    address,
    columns_of,
    csv_text,
    json_text,
    parquet,
    read,
    reward,
    trace,
    transaction,
    transfers,
    txid,
    write,
)


def of(tmp_path: Path, rows: list[Row]) -> list[Row]:
    return transfers(ethereum_etl, write(tmp_path / "rows.csv", csv_text(rows)))


def kept(tmp_path: Path, rows: list[Row]) -> list[tuple[str, str]]:
    return [(row["recipient"], row["amount"]) for row in of(tmp_path, rows)]


def test_children_of_a_failed_call_move_nothing_though_they_bear_no_error(tmp_path: Path) -> None:
    rows = [
        trace(value=1),
        trace(trace_address="0", value=2, status=0, error="Reverted"),
        trace(trace_address="0,0", value=3),
        trace(trace_address="0,0,5", value=4),
        trace(trace_address="1", value=5),
    ]
    assert [amount for _, amount in kept(tmp_path, rows)] == ["1", "5"]


def test_errors_count_where_there_is_no_status(tmp_path: Path) -> None:
    rows = [
        trace(value=1),
        trace(trace_address="0", value=2, error="out of gas"),
        trace(trace_address="0,0", value=3),
        trace(trace_address="1", value=4),
    ]
    for row in rows:
        row["status"] = None
    assert [amount for _, amount in kept(tmp_path, rows)] == ["1", "4"]
    for row in rows:
        del row["status"]
    assert [amount for _, amount in kept(tmp_path, rows)] == ["1", "4"]


def test_without_status_a_call_whose_caller_is_missing_is_refused(tmp_path: Path) -> None:
    rows = [trace(status=None), trace(trace_address="0,0", status=None)]
    with pytest.raises(LedgerError, match=f"block 100, transaction {txid(1)}: a call whose caller"):
        of(tmp_path, rows)
    # With a status, which minds what is above, rows without value may have been left out.
    assert len(of(tmp_path, [trace(), trace(trace_address="0,0")])) == 2


def test_traces_that_cannot_tell_failures_are_refused(tmp_path: Path) -> None:
    row = trace()
    del row["status"], row["error"]
    with pytest.raises(LedgerError, match="nothing tells which calls failed"):
        of(tmp_path, [row])


@pytest.mark.parametrize("call_type", ["delegatecall", "callcode", "staticcall", "DELEGATECALL"])
def test_borrowed_code_moves_nothing(tmp_path: Path, call_type: str) -> None:
    rows = [trace(), trace(trace_address="0", call_type=call_type)]
    assert len(of(tmp_path, rows)) == 1


def test_an_unknown_kind_of_call_that_has_a_value_is_refused(tmp_path: Path) -> None:
    for call_type, fault in (("authcall", "call_type is not known"), ("", "call_type is missing")):
        with pytest.raises(LedgerError, match=fault):
            of(tmp_path, [trace(call_type=call_type)])
        assert of(tmp_path, [trace(call_type=call_type, value=0)]) == []
    with pytest.raises(LedgerError, match="trace_type is none of"):
        of(tmp_path, [trace(trace_type="gift")])


def test_creations_and_selfdestructs_move_money(tmp_path: Path) -> None:
    rows = [
        trace(trace_type="create", call_type=None),
        trace(trace_type="suicide", call_type=None, trace_address="0"),
    ]
    kinds = [(r["kind"], r["step"]) for r in of(tmp_path, rows)]
    assert kinds == [("create", 0), ("selfdestruct", 1)]


def test_the_irregular_change_of_2016_took_from_one_for_another(tmp_path: Path) -> None:
    change = {"transaction_hash": None, "transaction_index": None, "call_type": None}
    (found,) = of(tmp_path, [trace(trace_type="daofork", trace_id="daofork_100_0", **change)])
    assert (found["txid"], found["sender"]) == ("daofork:100", address("ann"))


def test_rewards_and_genesis_come_from_the_zero_address(tmp_path: Path) -> None:
    rows = [
        reward(trace_id="reward_100_1", reward_type="uncle", value=3),
        reward(),
        reward(block_number=0, trace_type="genesis", reward_type=None, trace_id="genesis_0_9"),
    ]
    found = of(tmp_path, rows)
    assert {r["sender"] for r in found} == {ZERO}
    assert [(r["txid"], r["step"], r["position"], r["kind"]) for r in found] == [
        ("genesis:0", 0, 0, "genesis"),
        ("reward:100", 0, traces.AFTER_ALL, "reward"),
        ("reward:100", 1, traces.AFTER_ALL, "uncle"),
    ]


def test_equal_rewards_are_two_unless_their_id_is_one(tmp_path: Path) -> None:
    assert len(of(tmp_path, [reward(), reward()])) == 1
    assert len(of(tmp_path, [reward(trace_id="reward_100_1"), reward()])) == 2
    assert len(of(tmp_path, [reward(trace_id=None), reward(trace_id=None)])) == 2


def test_places_are_sorted_as_numbers(tmp_path: Path) -> None:
    places = ["10", "2", "2,0", "", "256"]
    rows = [trace(trace_address=p, value=k + 1) for k, p in enumerate(places)]
    assert [amount for _, amount in kept(tmp_path, rows)] == ["4", "2", "3", "1", "5"]
    assert [r["step"] for r in of(tmp_path, rows)] == [0, 1, 2, 3, 4]


def test_places_may_be_lists_in_json_and_parquet(tmp_path: Path) -> None:
    rows = [trace(trace_address=p, value=k + 1) for k, p in enumerate([[10], [2], [2, 0], []])]
    path = write(tmp_path / "a.json", json_text(rows))
    assert [r["amount"] for r in transfers(ethereum_etl, path)] == ["4", "2", "3", "1"]
    path = parquet(tmp_path / "a.parquet", columns_of(rows))
    assert [r["amount"] for r in transfers(ethereum_etl, path)] == ["4", "2", "3", "1"]


@pytest.mark.parametrize(
    "place", ["a", "0.1", "0,,1", "-1", "0,1,", "9" * 10, ",".join(["0"] * 1026)]
)
def test_a_place_that_is_none_is_refused(tmp_path: Path, place: str) -> None:
    with pytest.raises(LedgerError, match=r"rows\.csv:3: trace_address is"):
        of(tmp_path, [trace(), trace(trace_address=place)])


@pytest.mark.parametrize("places", [[[None]], [[-1]], [[2**31]], [["0"]], [[[0]]]])
def test_a_list_that_is_no_place_is_refused(tmp_path: Path, places: Any) -> None:
    path = parquet(tmp_path / "a.parquet", columns_of([trace()], trace_address=places))
    with pytest.raises(LedgerError, match="trace_address"):
        list(ethereum_etl.batches(path))


def test_a_trace_given_twice_counts_once(tmp_path: Path) -> None:
    assert len(of(tmp_path, [trace(), trace(), trace(trace_address="0"), trace()])) == 2


def test_two_traces_at_one_place_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="two calls at one place that differ in their amount"):
        of(tmp_path, [trace(), trace(value=6)])
    with pytest.raises(LedgerError, match="two calls at one place that differ in their failed"):
        of(tmp_path, [trace(), trace(status=0)])


def test_traces_of_geth_are_named_by_block_and_index(tmp_path: Path) -> None:
    rows = [trace(transaction_hash=None, status=None)]
    assert of(tmp_path, rows)[0]["txid"] == "100:2"
    with pytest.raises(LedgerError, match="transaction_index is missing"):
        of(tmp_path, [trace(transaction_hash=None, transaction_index=None)])


def test_a_selfdestruct_that_does_not_tell_its_value_is_refused(tmp_path: Path) -> None:
    end = trace(trace_type="suicide", trace_address="0", value=None, call_type=None)
    with pytest.raises(LedgerError, match=r"rows\.csv:3: value is missing.*geth"):
        of(tmp_path, [trace(), end])


def test_money_without_an_owner_is_refused(tmp_path: Path) -> None:
    for column in ("from_address", "to_address"):
        with pytest.raises(LedgerError, match=f"{column} is missing"):
            of(tmp_path, [trace() | {column: None}])
        assert of(tmp_path, [trace(value=0) | {column: None}]) == []


def test_the_call_of_a_transaction_has_the_key_of_that_transaction(tmp_path: Path) -> None:
    (whole,) = of(tmp_path, [transaction()])
    (part,) = of(tmp_path, [trace(value=10**20)])
    key = ("height", "txid", "token", "step")
    assert [whole[k] for k in key] == [part[k] for k in key]
    assert whole["kind"] != part["kind"]  # so that a store refuses to hold both


def random_traces(chance: random.Random, blocks: int) -> list[Row]:
    rows = []
    for number in range(blocks):
        for index in range(chance.randrange(4)):
            places: list[tuple[int, ...]] = [()]
            for _ in range(chance.randrange(30)):
                above = chance.choice(places[-4:])
                places.append((*above, sum(p[:-1] == above for p in places if p)))
            for place in dict.fromkeys(places):
                failed = chance.random() < 0.15
                row = trace(
                    block_number=number,
                    transaction_hash=txid(4 * number + index + 1),
                    transaction_index=index,
                    from_address=address(chance.choice("abc")),
                    to_address=address(chance.choice("abc")),
                    value=chance.choice((0, 1, 2**200)),
                    call_type=chance.choice(("call", "call", "delegatecall", "staticcall")),
                    trace_address=",".join(map(str, place)),
                    error="Reverted" if failed else None,
                    status=int(not failed),
                )
                rows.append(row | {"place": place})
    return rows


@pytest.mark.parametrize("told", [True, False])
def test_random_trees_move_what_the_slow_twin_says(tmp_path: Path, told: bool) -> None:
    for seed in range(12):
        chance = random.Random(seed)
        rows = random_traces(chance, 20)
        expected = trace_twin.moved(rows)
        for row in rows:
            row["status"] = row["status"] if told else None
        chance.shuffle(rows)
        found: dict[str, list[tuple[str, str, str]]] = {}
        for r in of(tmp_path, rows):
            assert r["step"] == len(found.setdefault(r["txid"], []))
            found[r["txid"]].append((r["sender"], r["recipient"], r["amount"]))
        assert found == expected


def test_blocks_are_settled_as_the_file_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = random_traces(random.Random(3), 50)
    whole = of(tmp_path, rows)
    monkeypatch.setattr(ethereum_etl, "BlockBuffer", lambda path: traces.BlockBuffer(path, 50))
    monkeypatch.setattr(table_rows, "AT_ONCE", 37)
    # Neighbours change places, as rows do that several workers write at once.
    for k in range(0, len(rows) - 20, 20):
        rows[k : k + 20] = reversed(rows[k : k + 20])
    path = write(tmp_path / "a.json", json_text(rows))
    found = [b for b in read(ethereum_etl, path) if "transfers" in b.tables]
    assert len(found) > 5
    assert transfers(ethereum_etl, path) == whole


def test_a_block_that_comes_back_after_it_was_settled_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [trace(block_number=n, transaction_hash=txid(n)) for n in range(1, 200)]
    rows.append(trace(block_number=5, transaction_hash=txid(5), trace_address="0"))
    monkeypatch.setattr(ethereum_etl, "BlockBuffer", lambda path: traces.BlockBuffer(path, 20))
    monkeypatch.setattr(table_rows, "AT_ONCE", 10)
    path = write(tmp_path / "rows.json", json_text(rows))
    with pytest.raises(LedgerError, match=r"block 5: comes back long after block .*sort the file"):
        list(ethereum_etl.batches(path))


def test_one_block_larger_than_what_is_held_is_settled_whole(tmp_path: Path) -> None:
    pool = traces.BlockBuffer(tmp_path, 4)
    rows = [trace(trace_address=str(k)) for k in range(30)]
    path = write(tmp_path / "a.json", json_text(rows))
    given = []
    for piece in table_rows.pieces(path, ethereum_etl.TRACES):
        for k in range(30):
            given += list(pool.add(ethereum_etl.trace_rows(piece).slice(k, 1)))
    assert given == []
    assert sum(len(b.tables["transfers"]) for b in pool.rest()) == 30
