"""What nodes of Ethereum say, made up and real, turned into rows or refused."""

from __future__ import annotations

import json
import lzma
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from coinhaze.errors import CoinhazeError, LedgerError
from coinhaze.ledger.batches import SCHEMAS, Rows
from coinhaze.nodes.ethereum.blocks import BlockResponses, add_block
from coinhaze.nodes.ethereum.fields import deep_nesting, quantity
from coinhaze.nodes.ethereum.logs import read_transfers
from coinhaze.nodes.ethereum.node import ChainChanged, NotOffered
from coinhaze.nodes.ethereum.traces import movements, read_flat, read_nested
from nodes.ethereum_fixtures import (
    account,
    hash_of,
    made_block,
    made_calls,
    made_log,
    made_receipts,
    made_trace,
)

TOKEN = account(0x70)
MINER = account(0xAA)


def answers(
    block: Any = None, receipts: Any = None, *, flat: Any = None, nested: Any = None, **rest: Any
) -> BlockResponses:
    return BlockResponses(
        msgspec.json.encode(made_block() if block is None else block),
        msgspec.json.encode(made_receipts() if receipts is None else receipts),
        flat=b"" if flat is None else msgspec.json.encode(flat),
        nested=b"" if nested is None else msgspec.json.encode(nested),
        **rest,
    )


def read(
    given: BlockResponses, height: int = 7, *, chain: int = 1, rewards: bool = True
) -> list[dict[str, Any]]:
    blocks, transfers = Rows("blocks"), Rows("transfers")
    add_block(given, height, blocks, transfers, chain=chain, rewards=rewards)
    assert len(blocks) == 1
    rows: list[dict[str, Any]] = transfers.table().to_pylist()
    return rows


def paid(rows: list[dict[str, Any]]) -> list[tuple[int, int, int, str]]:
    return [
        (int(r["sender"], 16), int(r["recipient"], 16), int(r["amount"]), r["kind"]) for r in rows
    ]


EXPECTED = [
    (1, 2, 500, "transaction"),
    (2, 6, 1, "call"),
    (1, 0xAA, 200, "fee"),
    (1, 0, 1000, "fee"),
    (1, 0, 4000, "fee"),
    (3, 4, 60, "create"),
    (4, 6, 5, "call"),
    (4, 8, 55, "selfdestruct"),
    (3, 0xAA, 200, "fee"),
    (3, 0, 1000, "fee"),
    (0, 9, 3 * 10**9, "withdrawal"),
]


def test_both_kinds_of_trace_give_the_same_rows_in_order() -> None:
    flat = read(answers(flat=made_trace()))
    assert flat == read(answers(nested=made_calls()))
    assert paid(flat) == EXPECTED
    assert [(r["position"], r["step"]) for r in flat] == [
        *((0, k) for k in range(5)),
        *((1, k) for k in range(5)),
        (2, 0),
    ]
    assert [r["txid"] for r in flat] == [hash_of(1)] * 5 + [hash_of(2)] * 5 + [hash_of(1007)]
    assert {r["time"] for r in flat} == {0x65000000}


def test_the_order_of_flat_traces_is_by_their_paths() -> None:
    shuffled = made_trace()
    Random(1).shuffle(shuffled)
    assert paid(read(answers(flat=shuffled))) == EXPECTED


def test_paths_sort_as_numbers_not_as_text() -> None:
    def call(k: int) -> dict[str, Any]:
        one = dict(made_trace()[4])
        return one | {"traceAddress": [k], "action": one["action"] | {"value": hex(k + 1)}}

    trace = made_trace()[:1] + [call(k) for k in (10, 9, 2, 11, 0)] + made_trace()[5:]
    amounts = [amount for _, _, amount, kind in paid(read(answers(flat=trace))) if kind == "call"]
    assert amounts == [1, 3, 10, 11, 12, 5]


def test_withdrawals_are_in_gwei() -> None:
    rows = read(answers(made_block(withdrawals=[{"address": account(9), "amount": "0x1"}])))
    assert (0, 9, 10**9, "withdrawal") in paid(rows)


def test_a_failed_transaction_pays_its_fee_whatever_its_trace_says() -> None:
    rows = read(answers(receipts=made_receipts(status="0x0"), flat=made_trace()))
    assert paid(rows)[:3] == EXPECTED[2:5]


def test_before_byzantium_the_trace_says_whether_it_failed() -> None:
    receipts = made_receipts(status=None)
    assert paid(read(answers(receipts=receipts, flat=made_trace()))) == EXPECTED
    trace = made_trace()
    trace[0]["error"] = "Out of gas"
    assert paid(read(answers(receipts=receipts, flat=trace)))[:3] == EXPECTED[2:5]
    with pytest.raises(NotOffered, match="before Byzantium"):
        read(answers(receipts=receipts))


def test_without_an_effective_price_the_transactions_own_counts() -> None:
    block = made_block(baseFeePerGas=None)
    block["transactions"][0]["gasPrice"] = hex(20)
    rows = read(answers(block, made_receipts(effectiveGasPrice=None, blobGasUsed=None)))
    assert paid(rows)[1] == (1, 0xAA, 2000, "fee")


def test_amounts_are_exact_to_2_256_minus_1() -> None:
    block = made_block()
    block["transactions"][0]["value"] = hex(2**256 - 1)
    assert paid(read(answers(block)))[0][2] == 2**256 - 1
    with pytest.raises(LedgerError, match="no hex quantity"):
        quantity(hex(2**256), "here", field="value")


@pytest.mark.parametrize(
    "odd", ["", "0x", "12", "-0x1", "0x-1", "0x1.5", "0x1_0", " 0x1", "0x1\n", "1e18", "0xg", None]
)
def test_what_is_no_hex_number_is_refused(odd: str | None) -> None:
    with pytest.raises(LedgerError, match="no hex quantity"):
        quantity(odd, "here", field="value")


@pytest.mark.parametrize(
    ("height", "reward"),
    [(1, 5), (4_369_999, 5), (4_370_000, 3), (7_279_999, 3), (7_280_000, 2), (15_000_000, 2)],
)
def test_mainnets_rewards_before_the_merge_are_its_rule(height: int, reward: int) -> None:
    block = made_block(height, difficulty="0x2", transactions=[], withdrawals=None)
    assert paid(read(answers(block, []), height)) == [(0, 0xAA, reward * 10**18, "reward")]
    assert read(answers(block, []), height, rewards=False) == []


def test_uncles_and_who_includes_them_are_rewarded() -> None:
    block = made_block(8_000_000, difficulty="0x2", transactions=[], withdrawals=None)
    block["uncles"] = [hash_of(50), hash_of(51)]
    uncles = [
        msgspec.json.encode({"miner": account(0xB0 + k), "number": hex(8_000_000 - k)})
        for k in (1, 3)
    ]
    whole = 2 * 10**18
    assert paid(read(answers(block, [], uncles=uncles), 8_000_000)) == [
        (0, 0xAA, whole + 2 * whole // 32, "reward"),
        (0, 0xB1, whole * 7 // 8, "uncle"),
        (0, 0xB3, whole * 5 // 8, "uncle"),
    ]
    with pytest.raises(LedgerError, match="uncles"):
        read(answers(block, []), 8_000_000)
    block["uncles"] = [hash_of(50)]
    old = msgspec.json.encode({"miner": account(1), "number": hex(7_999_992)})
    with pytest.raises(LedgerError, match="last seven"):
        read(answers(block, [], uncles=[old]), 8_000_000)


def test_rewards_in_the_trace_are_taken_as_they_are() -> None:
    block = made_block(difficulty="0x2", transactions=[], withdrawals=None)
    trace = [
        {
            "type": "reward",
            "traceAddress": [],
            "blockHash": hash_of(1007),
            "action": {"author": account(0xB0), "value": hex(5), "rewardType": kind},
        }
        for kind in ("block", "uncle")
    ]
    assert paid(read(answers(block, [], flat=trace))) == [
        (0, 0xB0, 5, "reward"),
        (0, 0xB0, 5, "uncle"),
    ]


def test_rewards_of_other_chains_are_refused_where_nobody_tells_them() -> None:
    block = made_block(difficulty="0x2", transactions=[], withdrawals=None)
    with pytest.raises(NotOffered, match="rewards=False"):
        read(answers(block, []), chain=5)
    assert read(answers(block, []), chain=5, rewards=False) == []
    assert read(answers(block, [], flat=[]), chain=5) == []


def changed(what: list[dict[str, Any]], at: int, **changes: Any) -> list[dict[str, Any]]:
    return [row | changes if k == at else row for k, row in enumerate(what)]


OTHER = hash_of(77)
WRONG = {
    "receipts of another block": answers(receipts=made_receipts(blockHash=OTHER)),
    "traces of another block": answers(flat=changed(made_trace(), 2, blockHash=OTHER)),
    "traces of other transactions": answers(flat=changed(made_trace(), 2, transactionHash=OTHER)),
    "traces of 1 transactions, not 2": answers(nested=made_calls()[:1]),
    "2 receipts are not those": answers(receipts=made_receipts(transactionHash=OTHER)),
    "1 receipts are not those": answers(receipts=made_receipts()[:1]),
    "it has no trace": answers(flat=made_trace()[:5]),
    "without the one that called it": answers(flat=made_trace()[:3] + made_trace()[4:][:0]
    + made_trace()[5:] + [made_trace()[4]]),
    "two traces at one place": answers(flat=made_trace() + made_trace()[-1:]),
    "a trace of no transaction": answers(flat=changed(made_trace(), 1, transactionPosition=2)),
    "begins with another payment": answers(
        flat=changed(made_trace(), 0, action=made_trace()[0]["action"] | {"value": "0x1"})
    ),
    "failed by its trace": answers(flat=changed(made_trace(), 0, error="Reverted")),
    "unknown kind of trace": answers(flat=changed(made_trace(), 2, type="gift")),
    "unknown kind of call: 'EOFCREATE'": answers(
        nested=changed(made_calls(), 0, result=made_calls()[0]["result"] | {"type": "EOFCREATE"})
    ),
    "was not traced": answers(nested=changed(made_calls(), 0, result=None, error="timeout")),
    "gas price below the base fee": answers(receipts=made_receipts(effectiveGasPrice="0x9")),
    "a fee for another chain": answers(receipts=made_receipts(l1Fee="0x9")),
    "status is above 1": answers(receipts=made_receipts(status="0x2")),
    "gave another block": answers(made_block(number="0x8")),
    "miner is no address": answers(made_block(miner="0x12")),
    "selfdestruct by another": answers(
        flat=changed(
            made_trace(),
            7,
            action={"address": account(3), "refundAddress": account(8), "balance": "0x1"},
        )
    ),
    "another shape": answers(receipts={"error": "busy"}),
}  # fmt: skip


@pytest.mark.parametrize("fault", WRONG)
def test_answers_that_do_not_fit_each_other_are_refused(fault: str) -> None:
    with pytest.raises(LedgerError, match=fault) as refusal:
        read(WRONG[fault])
    assert "block 7" in str(refusal.value)
    if fault.startswith(("receipts of", "traces of")):
        assert isinstance(refusal.value, ChainChanged)


def test_a_call_tree_beyond_the_machines_depth_is_refused_not_a_crash() -> None:
    deep = 100_000
    start = b'{"type":"CALL","from":"%s","to":"%s","value":"0x0","calls":[' % (
        account(1).encode(),
        account(2).encode(),
    )
    raw = b'[{"result":' + start * deep + b"]}" * deep + b"}]"
    with pytest.raises(LedgerError):
        read_nested(raw, [hash_of(1)], "block 7")


def test_deep_nesting_ends_with_its_last_user() -> None:
    import sys

    usual = sys.getrecursionlimit()
    with deep_nesting():
        with deep_nesting():
            pass
        assert sys.getrecursionlimit() >= 4000
    assert sys.getrecursionlimit() == usual


def slow_movements(traces: list[dict[str, Any]]) -> Counter[tuple[str, str, int]]:
    """Go by each trace alone: it counts if neither it nor any that led to it failed."""
    failed = {(t["transactionHash"], tuple(t["traceAddress"])) for t in traces if t.get("error")}
    moved: Counter[tuple[str, str, int]] = Counter()
    for t in traces:
        path, action = t["traceAddress"], t["action"]
        ways = [tuple(path[:k]) for k in range(len(path) + 1)]
        if any((t["transactionHash"], way) in failed for way in ways):
            continue
        if t["type"] == "call" and action["callType"] == "call":
            moved[action["from"], action["to"], int(action["value"], 16)] += 1
        elif t["type"] == "create":
            moved[action["from"], t["result"]["address"], int(action["value"], 16)] += 1
        elif t["type"] == "suicide":
            moved[action["address"], action["refundAddress"], int(action["balance"], 16)] += 1
    return Counter({k: n for k, n in moved.items() if k[2]})


def random_tree(random: Random, sender: int, depth: int = 0) -> dict[str, Any]:
    """Make up a call and those it makes; borrowed code runs on the caller's money."""
    kind = random.choice(("CALL", "CALL", "CREATE", "DELEGATECALL", "CALLCODE", "STATICCALL"))
    to = random.randrange(2, 9) if depth else 2
    kind = kind if depth else "CALL"
    call = {
        "type": kind,
        "from": account(sender),
        "to": account(to),
        "value": hex(random.randrange(5) if depth else 500),
    }
    if depth and random.random() < 0.3:
        call["error"] = "execution reverted"
    runs = to if kind in ("CALL", "CREATE") else sender
    if depth < 4:
        calls = [random_tree(random, runs, depth + 1) for _ in range(random.randrange(4))]
        return call | {"calls": calls}
    return call


def flattened(call: dict[str, Any], path: tuple[int, ...] = ()) -> list[dict[str, Any]]:
    """Write a tree of callTracer as trace_block does."""
    kind = call["type"].lower()
    trace: dict[str, Any] = {
        "type": "create" if kind == "create" else "call",
        "traceAddress": list(path),
        "transactionPosition": 0,
        "transactionHash": hash_of(1),
        "blockHash": hash_of(1007),
        "action": {k: call[k] for k in ("from", "to", "value")} | {"callType": kind},
        "result": {"address": call["to"]},
    }
    if "error" in call:
        trace |= {"error": "Reverted", "result": None}
    inner = [flattened(c, (*path, k)) for k, c in enumerate(call.get("calls", ()))]
    return [trace, *(t for some in inner for t in some)]


def test_random_calls_move_what_a_slow_reading_says() -> None:
    random = Random(7)
    inherited = 0
    for _ in range(200):
        tree = random_tree(random, 1)
        flat = flattened(tree)
        nested = msgspec.json.encode([{"txHash": hash_of(1), "result": tree}])
        (frames,) = read_nested(nested, [hash_of(1)], "block 7")
        ((same,), _) = read_flat(msgspec.json.encode(flat), hash_of(1007), [hash_of(1)], "block 7")
        assert frames == same
        moved = movements(frames, "block 7", destroys=True)
        slow = slow_movements(flat)
        assert Counter((m.sender, m.recipient, m.amount) for m in moved) == slow
        alone = slow_movements([t for t in flat if not t.get("error")])
        inherited += sum((alone - slow).values())
    assert inherited > 100, "payments that failed only with the call that led to them"


def real_traces(path: Path) -> list[dict[str, Any]]:
    """Give a block's traces in the node's own spelling."""
    spelling = {
        "block_hash": "blockHash",
        "trace_address": "traceAddress",
        "transaction_hash": "transactionHash",
        "transaction_position": "transactionPosition",
    }
    with lzma.open(path) as file:
        block = json.load(file)
    return [{spelling.get(k, k): v for k, v in t.items()} for t in block["traces"]]


def test_real_blocks_move_what_a_slow_reading_says(data: Path) -> None:
    paths = sorted((data / "eth_blocks_traces").glob("*.json.xz"))
    assert len(paths) == 5
    for path in paths:
        traces = real_traces(path)
        numbers = {
            t["transactionPosition"]: t["transactionHash"] for t in traces if t["type"] != "reward"
        }
        txids = [numbers.get(k, hash_of(0)) for k in range(max(numbers) + 1)]
        hash_ = traces[0]["blockHash"]
        frames, rewards = read_flat(msgspec.json.encode(traces), hash_, txids, str(path))
        moved = Counter(
            (m.sender, m.recipient, m.amount)
            for some in frames
            for m in movements(some, str(path), destroys=True)
        )
        slow = slow_movements(traces)
        assert moved == slow
        assert len(rewards) == sum(t["type"] == "reward" for t in traces)
        assert len(moved) > 10


def mutated(raw: bytes, random: Random) -> bytes:
    """Flip bits, cut, insert or double a part."""
    text = bytearray(raw)
    for _ in range(random.randint(1, 3)):
        at, end = sorted((random.randrange(len(text) + 1), random.randrange(len(text) + 1)))
        end = min(end, at + random.choice((1, 4, 40, 4000)))
        how = random.randrange(4)
        if how == 0 and at < len(text):
            text[at] ^= 1 << random.randrange(8)
        elif how == 1:
            del text[at:end]
        elif how == 2:
            piece = random.choice(
                (b"null", b"-1", b'"', b"[", b'"\\ud800"', b"1e99", b"\xff", b"{}")
            )
            text[at:at] = piece
        else:
            text[at:at] = text[at:end]
    return bytes(text)


def assert_rows_obey(rows: Rows) -> None:
    table = rows.table()
    for field in SCHEMAS[rows.name]:
        column = table[field.name]
        assert field.nullable or column.null_count == 0
    for row in table.to_pylist():
        assert 0 <= row["height"] < 2**31
        if rows.name == "transfers":
            assert 0 <= int(row["amount"]) < 2**256
            assert row["amount"].isdigit()
            for name in ("sender", "recipient"):
                assert len(row[name]) == 42
                assert row[name] == row[name].lower()
            assert len(row["txid"]) == 66


def fuzz(times: int) -> tuple[int, int]:
    random = Random(20240229)
    good = refused = 0
    whole = [
        answers(flat=made_trace()),
        answers(nested=made_calls()),
        answers(made_block(difficulty="0x2"), flat=made_trace()),
    ]
    logs = msgspec.json.encode([made_log(5, 0), made_log(5, 1), made_log(6, 0)])
    for _ in range(times):
        blocks, transfers = Rows("blocks"), Rows("transfers")
        try:
            if random.random() < 0.25:
                transfers, _ = read_transfers(mutated(logs, random), TOKEN, 5, 6)
            else:
                given = random.choice(whole)
                names = [
                    name for name in ("block", "receipts", "flat", "nested") if getattr(given, name)
                ]
                name = random.choice(names)
                parts = given._asdict() | {name: mutated(getattr(given, name), random)}
                given = BlockResponses(**parts)
                add_block(given, 7, blocks, transfers, chain=1, rewards=True)
        except CoinhazeError:
            refused += 1
        else:
            good += 1
            assert_rows_obey(blocks)
            assert_rows_obey(transfers)
    return good, refused


def test_damaged_answers_give_rows_or_our_own_errors() -> None:
    good, refused = fuzz(2000)
    assert good > 50
    assert refused > 1000


@pytest.mark.long
def test_many_damaged_answers_give_rows_or_our_own_errors() -> None:
    fuzz(20_000)
