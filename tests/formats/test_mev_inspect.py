from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from coinhaze.errors import InputError, LedgerError
from coinhaze.formats.bitcoin_etl import batches as bitcoin_etl
from coinhaze.formats.ethereum import etl as ethereum_etl
from coinhaze.formats.ethereum import mev_inspect
from formats.ethereum_files import ZERO, Row, address, blocks, transfers, txid, write
from formats.ethereum_mutants import is_read_or_refused, mutants


def call(*place: int, **changes: Any) -> Row:
    action = {"from": address("ann"), "to": address("bob"), "callType": "call", "value": "0x5"}
    row: Row = {
        "action": action | changes.pop("action", {}),
        "block_hash": txid(7),
        "block_number": 7,
        "result": {"gasUsed": "0x0", "output": "0x"},
        "subtraces": 0,
        "trace_address": list(place),
        "transaction_hash": txid(1),
        "transaction_position": 3,
        "type": "call",
        "error": None,
    }
    return row | changes


def reward(**action: Any) -> Row:
    action = {"author": address("miner"), "rewardType": "block", "value": "0x2"} | action
    none = {"transaction_hash": None, "transaction_position": None, "result": None}
    return call(type="reward", **none) | {"action": action}


def text(*traces: Row, number: int = 7) -> bytes:
    block = {"block_number": number, "miner": ZERO, "base_fee_per_gas": 0, "traces": traces}
    return json.dumps(block | {"receipts": []}, indent=4).encode()


def of(tmp_path: Path, *traces: Row) -> list[Row]:
    return transfers(mev_inspect, write(tmp_path / "7.json", text(*traces)))


def test_calls_creations_selfdestructs_and_rewards_move_money(tmp_path: Path) -> None:
    create = call(0, type="create", result={"address": address("new")}, action={"to": None})
    gone = {"address": address("new"), "refundAddress": address("bob"), "balance": "0x10"}
    found = of(tmp_path, call(), create, call(1, type="suicide") | {"action": gone}, reward())
    assert [(r["kind"], r["sender"], r["recipient"], r["amount"], r["step"]) for r in found] == [
        ("call", address("ann"), address("bob"), "5", 0),
        ("create", address("ann"), address("new"), "5", 1),
        ("selfdestruct", address("new"), address("bob"), "16", 2),
        ("reward", ZERO, address("miner"), "2", 0),
    ]
    assert {r["position"] for r in found[:3]} == {3}
    assert blocks(mev_inspect, tmp_path / "7.json") == [
        {"height": 7, "hash": txid(7), "previous": None, "time": None}
    ]


def test_children_of_a_failed_call_move_nothing_though_they_bear_no_error(tmp_path: Path) -> None:
    rows = [call(), call(0, error="Reverted", result=None), call(0, 0), call(1, action={})]
    assert [r["step"] for r in of(tmp_path, *rows)] == [0, 1]
    with pytest.raises(LedgerError, match="caller is not in the file"):
        of(tmp_path, call(), call(0, 0))


def test_borrowed_code_moves_nothing(tmp_path: Path) -> None:
    rows = [call(k, action={"callType": t}) for k, t in enumerate(("delegatecall", "staticcall"))]
    assert len(of(tmp_path, call(), *rows)) == 1


@pytest.mark.parametrize(
    ("trace", "fault"),
    [
        (call(action={"value": "5"}), "trace 1: value is no hexadecimal amount"),
        (call(action={"value": "0x" + "f" * 65}), "no hexadecimal amount"),
        (call(action={"value": None}), "trace 1: value is missing"),
        (call(action={"to": None}), "trace 1: to_address is missing"),
        (call(action={"from": "0x1"}), "from_address is not 40"),
        (call(action={"callType": "authcall"}), "call_type is not known"),
        (call(type="gift"), "trace_type is none of"),
        (call(block_number=8), "a trace of another block than 7"),
        (call(transaction_hash="0x1"), "transaction_hash is not 64"),
        (call(transaction_position=-1), "transaction_index is not a whole number"),
        (call(-1), "trace_address is no place"),
        (call(trace_address="0"), "no block of mev-inspect"),
        (call(action={"value": 5}), "no block of mev-inspect"),
    ],
)
def test_a_trace_that_breaks_a_rule_is_refused(tmp_path: Path, trace: Row, fault: str) -> None:
    with pytest.raises(LedgerError, match=fault):
        of(tmp_path, trace)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff", text()[:-3], b"[" * 9999])
def test_malformed_files_are_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InputError, match="rows"):
        list(mev_inspect.batches(write(tmp_path / "rows", content)))


def test_a_block_without_traces_has_no_rows(tmp_path: Path) -> None:
    assert of(tmp_path) == []


def test_the_format_is_distinguished_from_others() -> None:
    head = text(call())
    assert mev_inspect.recognises(head)
    assert not ethereum_etl.recognises(head)
    assert not bitcoin_etl.recognises(head)
    assert not mev_inspect.recognises(b'{"hash": "aa", "block_number": 1}')


@pytest.mark.parametrize("count", [250, pytest.param(20_000, marks=pytest.mark.long)])
def test_a_damaged_file_gives_rows_or_an_error_of_ours(tmp_path: Path, count: int) -> None:
    good = text(call(), call(0, error="Reverted"), call(0, 1), reward())
    path = tmp_path / "7.json"
    assert is_read_or_refused(mev_inspect, path, good)
    outcomes = [is_read_or_refused(mev_inspect, path, m) for m in mutants(good, count, seed=8)]
    assert 0 < sum(outcomes) < count


def slow(path: Path) -> list[tuple[str, str, str, int]]:
    """Read a real file the obvious way."""
    rows = []
    traces = json.loads(lzma.decompress(path.read_bytes()))["traces"]
    for trace in traces:
        place, action = tuple(trace["trace_address"]), trace["action"]
        dead = any(
            other["error"]
            and other["transaction_hash"] == trace["transaction_hash"]
            and tuple(other["trace_address"]) == place[: len(other["trace_address"])]
            for other in traces
        )
        if dead or action.get("callType") in ("delegatecall", "staticcall", "callcode"):
            continue
        amount = int(action.get("value") or action["balance"], 16)
        sender = action.get("from") or action.get("address") or ZERO
        to = action.get("to") or action.get("refundAddress") or action.get("author")
        to = trace["result"]["address"] if trace["type"] == "create" else to
        if amount:
            rows.append((trace["transaction_hash"] or "", sender, to, amount))
    return rows


def owners(row: Row) -> tuple[str, str, str]:
    return "" if row["kind"] == "reward" else row["txid"], row["sender"], row["recipient"]


def test_real_blocks_move_what_the_slow_twin_says(data: Path) -> None:
    paths = sorted((data / "eth_blocks_traces").glob("*.xz"))
    assert len(paths) == 5
    for path in paths:
        found = transfers(mev_inspect, path)
        plain = [(*owners(r), int(r["amount"])) for r in found]
        assert sorted(plain) == sorted(slow(path))
        assert len(found) > 100
