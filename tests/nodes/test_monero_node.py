from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from random import Random
from typing import Any

import msgspec
import pyarrow as pa
import pytest

import coinhaze
from coinhaze.errors import CoinhazeError, LedgerError, SourceUnreachable, UsageError
from coinhaze.ledger import CoinLedger
from coinhaze.ledger.batches import KEYS, SCHEMAS, Batch
from coinhaze.nodes.best_chain import BlockMissing, ChainChanged
from coinhaze.nodes.monero import MoneroNode, UntrustedNode
from coinhaze.nodes.rpc import JsonRpc
from coinhaze.store.store import Store
from coinhaze.store.sync import catch_up
from nodes.daemons import quick_folder
from nodes.monero_fixtures import MadeUpNode, Monero, running_monero, txid_of


def tables_of(batches: Iterator[Batch]) -> dict[str, list[dict[str, Any]]]:
    given = list(batches)
    return {
        name: pa.concat_tables([b.tables[name] for b in given if name in b.tables]).to_pylist()
        if any(name in b.tables for b in given)
        else []
        for name in ("blocks", "transactions", "outputs", "rings")
    }


def ledger_of(tables: dict[str, list[dict[str, Any]]]) -> CoinLedger:
    """Build the ledger the slow way, transaction by transaction."""
    records = []
    for t in tables["transactions"]:
        rings: dict[int, list[str]] = {}
        for r in tables["rings"]:
            if r["txid"] == t["txid"]:
                member = f"{r['member_txid']}:{r['member_vout']}"
                rings.setdefault(r["vin"], []).append(member)
        outputs = [o for o in tables["outputs"] if o["txid"] == t["txid"]]
        records.append(
            {
                "txid": t["txid"],
                "rings": [rings[vin] for vin in sorted(rings)],
                "outputs": len(outputs),
                "height": t["height"],
            }
        )
    return CoinLedger.from_transactions(records)


# A real node

SENDS = 4


@pytest.fixture(scope="module")
def monero() -> Iterator[Monero]:
    with quick_folder() as folder, running_monero(folder) as node:
        yield node


@pytest.fixture(scope="module")
def sent(monero: Monero) -> list[str]:
    """Mine more than a hundred blocks, then pay a few times with blocks in between."""
    monero.mine(112)
    txids = []
    for k in range(SENDS):
        txids.append(monero.send((k + 1) * 10**11))
        monero.mine(3)
    return txids


@pytest.fixture(scope="module")
def tables(monero: Monero, sent: list[str]) -> dict[str, list[dict[str, Any]]]:
    last = int(monero.ask("get_info")["height"]) - 1
    return tables_of(MoneroNode(monero.rpc).batches(0, last))


def test_a_real_chain_has_its_blocks_coinbases_and_payments(
    monero: Monero, sent: list[str], tables: dict[str, list[dict[str, Any]]]
) -> None:
    last = int(monero.ask("get_info")["height"]) - 1
    assert [b["height"] for b in tables["blocks"]] == list(range(last + 1))
    for before, after in zip(tables["blocks"], tables["blocks"][1:], strict=False):
        assert after["previous"] == before["hash"]
    assert sum(t["coinbase"] for t in tables["transactions"]) == last + 1 >= 111
    assert {t["txid"] for t in tables["transactions"] if not t["coinbase"]} == set(sent)
    assert [t["position"] for t in tables["transactions"] if t["txid"] in sent] == [1] * SENDS
    assert all(o["value"] is None and o["owner"] is None for o in tables["outputs"])
    for name, rows in tables.items():
        keys = [tuple(row[c] for c in KEYS[name]) for row in rows]
        assert len(set(keys)) == len(keys)


def test_real_rings_have_sixteen_members_that_are_earlier_outputs(
    sent: list[str], tables: dict[str, list[dict[str, Any]]]
) -> None:
    made = {(o["txid"], o["vout"]): o["height"] for o in tables["outputs"]}
    sizes = Counter((r["txid"], r["vin"]) for r in tables["rings"])
    assert set(sizes.values()) == {16}
    assert {txid for txid, _ in sizes} == set(sent)
    for row in tables["rings"]:
        assert made[row["member_txid"], row["member_vout"]] < row["height"]


def test_real_rings_are_those_the_node_names_by_key(
    monero: Monero, sent: list[str], tables: dict[str, list[dict[str, Any]]]
) -> None:
    """Look each member up by its one-time key, which no numbering can mix up."""
    hashes = [t["txid"] for t in tables["transactions"]]
    entries = []
    for start in range(0, len(hashes), 50):
        wanted = {"txs_hashes": hashes[start : start + 50], "decode_as_json": True}
        entries += msgspec.json.decode(monero.rpc.post("/get_transactions", wanted))["txs"]
    bodies = {e["tx_hash"]: msgspec.json.decode(e["as_json"]) for e in entries}
    keys = {}
    for txid, body in bodies.items():
        for vout, output in enumerate(body["vout"]):
            target = output["target"]
            key = target["tagged_key"]["key"] if "tagged_key" in target else target["key"]
            keys[key] = (txid, vout)
    assert len(keys) == len(tables["outputs"])
    for txid in sent:
        for vin, spent in enumerate(bodies[txid]["vin"]):
            numbers = accumulate(spent["key"]["key_offsets"])
            wanted = {"outputs": [{"amount": 0, "index": n} for n in numbers]}
            outs = msgspec.json.decode(monero.rpc.post("/get_outs", wanted))["outs"]
            read = [
                (r["member_txid"], r["member_vout"])
                for r in tables["rings"]
                if (r["txid"], r["vin"]) == (txid, vin)
            ]
            assert read == [keys[o["key"]] for o in outs]


def test_a_window_of_a_real_chain_names_ring_members_before_it(
    monero: Monero, sent: list[str], tables: dict[str, list[dict[str, Any]]]
) -> None:
    first = min(t["height"] for t in tables["transactions"] if t["txid"] == sent[-1])
    late = tables_of(MoneroNode(monero.rpc).batches(first, first))
    assert late["rings"] == [r for r in tables["rings"] if r["height"] == first]
    assert [b["height"] for b in late["blocks"]] == [first]


def test_a_real_ledger_with_rings_is_scored(tables: dict[str, list[dict[str, Any]]]) -> None:
    ledger = ledger_of(tables)
    assert ledger.has_rings
    assert ledger.output_value is None
    scores = coinhaze.score(ledger)
    rows = scores.to_arrow().to_pylist()
    assert rows
    assert max(row["bits"] for row in rows) > 3, "a ring of sixteen hides up to four bits"


def test_the_tip_of_a_real_chain_lags_and_its_ancestor_is_found(
    monero: Monero, sent: list[str], tables: dict[str, list[dict[str, Any]]]
) -> None:
    known = {b["height"]: b["hash"] for b in tables["blocks"]}
    node = MoneroNode(monero.rpc)
    assert node.tip() == (len(known) - 61, known[len(known) - 61])
    assert node.common_ancestor(known) == len(known) - 1
    top = len(known) - 1
    forked = known | {top: txid_of(1), top - 1: txid_of(2), top + 1: txid_of(3)}
    assert node.common_ancestor(forked) == top - 2
    assert node.common_ancestor({top: txid_of(1)}) is None
    with pytest.raises(BlockMissing, match="get_block refused"):
        list(node.batches(top, top + 3))


def test_a_real_chain_reorganised_in_mid_read_leaves_a_store_equal_to_a_fresh_one(
    monero: Monero, tables: dict[str, list[dict[str, Any]]]
) -> None:
    top = tables["blocks"][-1]["height"]
    requests = [0]

    class Hooked(JsonRpc):
        def post(self, path: str, body: object) -> bytes:
            requests[0] += 1
            if requests[0] == 12:  # in the middle of the first batch
                monero.rpc.post("/pop_blocks", {"nblocks": 4})
                monero.mine(6)
            return super().post(path, body)

    with Hooked(monero.url) as rpc, Store(None) as store, Store(None) as fresh:
        node = MoneroNode(rpc, lag=0)
        catch_up(store, node, name="node", first=top - 12, last=top)
        assert requests[0] > 12
        catch_up(store, node, name="node")
        catch_up(fresh, node, name="node", first=top - 12)
        assert max(store.headers()) == top + 2
        assert store.headers()[top] != tables["blocks"][-1]["hash"]
        assert store.digest() == fresh.digest()


# A made-up one


def test_relative_offsets_become_the_coins_that_bear_the_numbers() -> None:
    made = tables_of(MoneroNode(MadeUpNode()).batches(0, 60))
    rows = [r for r in made["rings"] if r["height"] == 40]
    assert [(r["member_txid"], r["member_vout"]) for r in rows] == [
        (txid_of(100 + n), 0) for n in (37, 38, 39)
    ]
    assert len(made["transactions"]) == 61 + 56
    assert len(made["outputs"]) == 61 + 2 * 56


def test_members_already_seen_are_not_requested_again() -> None:
    node = MadeUpNode()
    list(MoneroNode(node).batches(0, 60))
    assert "/get_outs" not in node.asked
    list(MoneroNode(node).batches(50, 60))
    assert node.asked.count("/get_outs") == 1


def test_a_member_named_twice_counts_once() -> None:
    def change(path: str, answer: Any) -> Any:
        for entry in answer.get("txs", ()):
            entry["as_json"] = entry["as_json"].replace(",1,1]", ",0,1]")
        return answer

    node = MadeUpNode()
    node.change = change
    rows = tables_of(MoneroNode(node).batches(30, 30))["rings"]
    assert [r["member_txid"] for r in rows] == [txid_of(127), txid_of(128)]


def test_coins_of_old_transactions_are_numbered_by_amount() -> None:
    """The coin 0 of amount 70 is the first block's; of hidden amounts that number is another's."""

    def change(path: str, answer: Any) -> Any:
        for entry in answer.get("txs", ()):
            if entry["tx_hash"] == txid_of(510):
                entry["as_json"] = entry["as_json"].replace(
                    '"amount":0,"key_offsets":[7,1,1]', '"amount":70,"key_offsets":[0,1]'
                )
        return answer

    node = MadeUpNode()
    node.change = change
    rows = tables_of(MoneroNode(node).batches(0, 10))["rings"]
    assert [r["member_txid"] for r in rows if r["height"] == 10] == [txid_of(100), txid_of(101)]


def test_batches_are_of_a_few_blocks_and_count_what_was_read() -> None:
    batches = list(MoneroNode(MadeUpNode()).batches(0, 60))
    assert [len(b.tables["blocks"]) for b in batches] == [50, 11]
    assert 0 < batches[0].read < batches[1].read
    assert batches[1].where("rings", 0) == "block 50"


def only(path: str, **changes: Any) -> Any:
    return lambda name, answer: answer | changes if name == path else answer


def in_first(path: str, key: str, **changes: Any) -> Any:
    def change(name: str, answer: Any) -> Any:
        if name == path and answer.get(key):
            part = answer[key][0] if isinstance(answer[key], list) else answer[key]
            part |= changes
        return answer

    return change


WRONG: dict[str, tuple[type[CoinhazeError], Any]] = {
    "bootstrap": (UntrustedNode, only("get_block", untrusted=True)),
    "may be false": (UntrustedNode, only("/get_transactions", untrusted=True)),
    "passes on": (UntrustedNode, only("/get_outs", untrusted=True)),
    "says 'BUSY'": (SourceUnreachable, only("get_block", status="BUSY")),
    "says 'Failed'": (SourceUnreachable, only("/get_outs", status="Failed")),
    "no longer has": (ChainChanged, only("/get_transactions", missed_tx=[txid_of(9)])),
    "the node left out": (LedgerError, only("/get_transactions", txs=[])),
    "returned 0 coins, not": (LedgerError, only("/get_outs", outs=[])),
    "did not make the ring member": (ChainChanged, in_first("/get_outs", "outs", height=3)),
    "in no block any more": (ChainChanged, in_first("/get_transactions", "txs", in_pool=True)),
    "is in another block by now": (
        ChainChanged, in_first("/get_transactions", "txs", block_height=31)),
    "gave another block": (LedgerError, in_first("get_block", "block_header", height=31)),
    "no hash of 64": (LedgerError, in_first("get_block", "block_header", hash="ab")),
    "does not follow": (
        ChainChanged, in_first("get_block", "block_header", prev_hash=txid_of(5))),
    "1 outputs with 2 numbers": (
        LedgerError, in_first("/get_transactions", "txs", output_indices=[1, 2])),
    "it has no inputs": (
        LedgerError,
        in_first(
            "/get_transactions", "txs", as_json='{"version":2,"vin":[],"vout":[{"amount":0}]}')),
    "neither rings nor": (
        LedgerError,
        in_first(
            "/get_transactions", "txs", as_json='{"version":2,"vin":[{}],"vout":[{"amount":0}]}')),
    "names no coins": (
        LedgerError,
        in_first("/get_transactions", "txs", as_json='{"version":2,"vin":[{"key":{"amount":0,'
                 '"key_offsets":[5,-1]}}],"vout":[{"amount":0}]}')),
    "a coinbase is the first": (
        LedgerError,
        in_first("/get_transactions", "txs", as_json='{"version":2,"vin":[{"key":{"amount":0,'
                 '"key_offsets":[5,1]}}],"vout":[{"amount":0}]}')),
    "another shape": (LedgerError, in_first("/get_transactions", "txs", as_json="")),
}  # fmt: skip


@pytest.mark.parametrize("fault", WRONG)
def test_answers_that_do_not_fit_are_refused(fault: str) -> None:
    kind, change = WRONG[fault]
    node = MadeUpNode()
    node.change = change
    with pytest.raises(kind, match=fault):
        list(MoneroNode(node).batches(30, 31))


def test_blocks_outside_the_calendar_of_heights_are_refused() -> None:
    with pytest.raises(UsageError):
        list(MoneroNode(MadeUpNode()).batches(-1, 3))
    with pytest.raises(UsageError):
        list(MoneroNode(MadeUpNode()).batches(0, 2**31))


def mutated(raw: bytes, random: Random) -> bytes:
    """Flip bits, cut, insert or double a part."""
    text = bytearray(raw)
    at = random.randrange(len(text))
    end = at + random.choice((1, 4, 40, 4000))
    how = random.randrange(4)
    if how == 0:
        text[at] ^= 1 << random.randrange(8)
    elif how == 1:
        del text[at:end]
    elif how == 2:
        text[at:at] = random.choice((b"null", b"-1", b'"', b"[", b'"\\ud800"', b"1e99", b"\xff"))
    else:
        text[at:at] = text[at:end]
    return bytes(text)


def fuzz(times: int) -> tuple[int, int]:
    random = Random(1312)
    good = refused = 0
    for _ in range(times):
        node = MadeUpNode()
        spoilt = random.randrange(5)

        def spoil(raw: bytes, node: MadeUpNode = node, spoilt: int = spoilt) -> bytes:
            return mutated(raw, random) if len(node.asked) == spoilt + 1 else raw

        node.spoil = spoil
        try:
            batches = list(MoneroNode(node, at_once=1).batches(30, 31))
        except CoinhazeError:
            refused += 1
            continue
        good += 1
        for batch in batches:
            for name, table in batch.tables.items():
                for field in SCHEMAS[name]:
                    assert field.nullable or table[field.name].null_count == 0
                for row in table.to_pylist():
                    assert 0 <= row["height"] < 2**31
                    for column in ("txid", "hash", "member_txid"):
                        assert len(row.get(column, "0" * 64)) == 64
    return good, refused


def test_damaged_answers_give_rows_or_our_own_errors() -> None:
    good, refused = fuzz(400)
    assert good > 10
    assert refused > 200


@pytest.mark.long
def test_many_damaged_answers_give_rows_or_our_own_errors() -> None:
    fuzz(20_000)
