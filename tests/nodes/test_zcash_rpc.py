from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

import pytest

from coinhaze.errors import CoinhazeError, LedgerError
from coinhaze.ledger.batches import SCHEMAS, Batch
from coinhaze.nodes.best_chain import NETWORKS as KNOWN
from coinhaze.nodes.best_chain import ChainChanged, WrongNetwork
from coinhaze.nodes.rpc import JsonRpc
from coinhaze.nodes.zcash import NETWORKS, ZcashNode, decode_block, zcash_batch
from nodes.chains import Row, Told
from nodes.fakes import Fake, FakeNode, mutated

Json = dict[str, Any]
Connect = Callable[..., JsonRpc]

GENESIS = {name: hash_ for hash_, name in KNOWN.items()}["zcash"]
# Pay to the hash of 20 zero bytes, as the transparent addresses of the main network write it.
SCRIPT = "76a914" + "00" * 20 + "88ac"
ADDRESS = "t1Hsc1LR8yKnbbe3twRp88p6vFfC5t7DLbs"


def name_of(number: int) -> str:
    return f"{number:064x}"


def coin(n: int, zat: int, script: str = SCRIPT) -> Json:
    # The decimal beside lies, as a float would: nobody may read it.
    return {"value": 0.1, "valueZat": zat, "n": n, "scriptPubKey": {"hex": script, "type": ""}}


def spend(txid: str, vout: int, **more: object) -> Json:
    return {"txid": txid, "vout": vout, "scriptSig": {"hex": ""}, "sequence": 1, **more}


def coinbase(number: int, *zats: int, **more: object) -> Json:
    made = [coin(n, zat) for n, zat in enumerate(zats)]
    return {
        "txid": name_of(number),
        "version": 5,
        "vin": [{"coinbase": "51", "sequence": 0}],
        "vout": made,
        **more,
    }


def block(height: int, *transactions: Json, **pools: int) -> Json:
    changes = {"transparent": 7, "sprout": 0, "sapling": 0, "orchard": 0, "lockbox": 3} | pools
    told = [{"id": i, "chainValueZat": 1, "valueDeltaZat": z} for i, z in changes.items()]
    return {
        "hash": name_of(10**6 + height),
        "confirmations": 1,
        "height": height,
        "time": 1_600_000_000 + height,
        "tx": list(transactions),
        "valuePools": told,
    }


def batch_of(*blocks: Json) -> Batch:
    decoded = [decode_block(json.dumps(b).encode(), f"block {b['height']}") for b in blocks]
    return zcash_batch(decoded, lambda n: f"block {blocks[n]['height']}", NETWORKS["zcash"])


def flows(*blocks: Json) -> dict[tuple[str, str], int]:
    told = Told.by([batch_of(*blocks)])
    return {(f["txid"], f["pool"]): f["into_pool"] for f in told["pool_flows"]}


def transaction(number: int, **parts: object) -> Json:
    return {"txid": name_of(number), "version": 5, "vin": [], "vout": [], **parts}


def test_coins_are_whole_zatoshi_and_the_decimals_beside_are_not_read() -> None:
    told = Told.by([batch_of(block(3, coinbase(1, 312_500_000, 1)))])
    assert [o["value"] for o in told["outputs"]] == [312_500_000, 1]
    assert [o["owner"] for o in told["outputs"]] == [ADDRESS, ADDRESS]


def test_what_a_joinsplit_takes_as_old_goes_in_and_what_it_gives_as_new_comes_out() -> None:
    joinsplits = [
        {"vpub_old": 9.9, "vpub_oldZat": 90_000, "vpub_new": 0.0, "vpub_newZat": 0},
        {"vpub_old": 0.0, "vpub_oldZat": 0, "vpub_new": 9.9, "vpub_newZat": 20_000},
    ]
    mixed = transaction(2, version=4, vin=[spend(name_of(9), 0)], vjoinsplit=joinsplits)
    assert flows(block(1, coinbase(1), mixed, sprout=70_000)) == {(name_of(2), "sprout"): 70_000}


def test_a_sapling_balance_above_zero_comes_out_of_the_pool() -> None:
    out = transaction(2, valueBalance=5.0, valueBalanceZat=500, vout=[coin(0, 400)])
    into = transaction(3, valueBalance=-5.0, valueBalanceZat=-800, vin=[spend(name_of(9), 0)])
    assert flows(block(1, coinbase(1), out, into, sapling=300)) == {
        (name_of(2), "sapling"): -500,
        (name_of(3), "sapling"): 800,
    }


@pytest.mark.parametrize("pool", ["orchard", "ironwood"])
def test_balances_of_the_newer_pools_have_the_same_sign(pool: str) -> None:
    out = transaction(2, **{pool: {"actions": [{}], "valueBalance": 1.0, "valueBalanceZat": 60}})
    told = block(1, coinbase(1), out, **{pool: -60})
    assert flows(told) == {(name_of(2), pool): -60}


def test_money_may_go_from_pool_to_pool_with_no_coin_at_all() -> None:
    moved = transaction(2, valueBalanceZat=1000, orchard={"actions": [], "valueBalanceZat": -990})
    told = block(1, coinbase(1), moved, sapling=-1000, orchard=990)
    assert flows(told) == {(name_of(2), "sapling"): -1000, (name_of(2), "orchard"): 990}
    tables = batch_of(told).tables
    assert "outputs" not in tables
    assert len(tables["transactions"]) == 2


def test_a_coinbase_may_be_shielded() -> None:
    mined = coinbase(1, valueBalanceZat=-312_500_000, vShieldedOutput=[{}])
    told = block(1, mined, sapling=312_500_000)
    assert flows(told) == {(name_of(1), "sapling"): 312_500_000}
    assert Told.by([batch_of(told)])["transactions"][0]["coinbase"] is True


def test_a_transaction_that_moves_no_pool_has_no_flow() -> None:
    still = transaction(2, valueBalanceZat=0, orchard={"actions": [{}], "valueBalanceZat": 0})
    assert flows(block(1, coinbase(1), still)) == {}


def test_the_lockbox_needs_no_transaction() -> None:
    assert flows(block(1, coinbase(1), lockbox=187_500_000)) == {}


def test_flows_that_are_not_the_change_of_the_pool_are_refused() -> None:
    out = transaction(2, valueBalanceZat=500)
    with pytest.raises(LedgerError, match=r"block 1: transactions bring -500 .*sapling.*says: 500"):
        batch_of(block(1, coinbase(1), out, sapling=500))


def test_a_node_that_leaves_joinsplits_out_is_caught_by_the_pool() -> None:
    old = transaction(2, version=2)
    with pytest.raises(LedgerError, match="bring 0 zatoshi into pool sprout, the block says: 5"):
        batch_of(block(1, coinbase(1), old, sprout=5))


def test_a_node_that_tells_neither_joinsplits_nor_the_pool_is_refused() -> None:
    silent = block(1, coinbase(1), transaction(2, version=4))
    silent["valuePools"] = []
    with pytest.raises(LedgerError, match="neither JoinSplits nor the change of pool sprout"):
        batch_of(silent)
    silent["tx"][1]["vjoinsplit"] = []
    assert batch_of(silent)


def test_a_pool_of_the_future_that_moves_is_refused() -> None:
    assert batch_of(block(1, coinbase(1), steelwood=0))
    with pytest.raises(LedgerError, match="into pool steelwood, the block says: 4"):
        batch_of(block(1, coinbase(1), steelwood=4))


@pytest.mark.parametrize(
    "parts",
    [
        {"vShieldedSpend": [{}]},
        {"vShieldedOutput": [{}], "valueBalance": 1.5},
        {"orchard": {"actions": [{}], "valueBalance": 1.5}},
        {"ironwood": {"actions": [{}]}},
    ],
)
def test_a_shielded_part_whose_zatoshi_are_not_reported_is_refused(parts: Json) -> None:
    with pytest.raises(LedgerError, match="does not tell valueBalanceZat"):
        batch_of(block(1, coinbase(1), transaction(2, **parts)))


def test_values_of_coins_spent_are_null_unless_the_node_tells() -> None:
    plain = spend(name_of(9), 4)
    told = spend(name_of(9), 5, value=9.9, valueSat=77, address=ADDRESS)
    rows = Told.by([batch_of(block(1, coinbase(1), transaction(2, vin=[plain, told])))])["inputs"]
    assert [(i["vin"], i["spent_vout"], i["value"], i["owner"]) for i in rows] == [
        (0, 4, None, None),
        (1, 5, 77, ADDRESS),
    ]


def test_data_is_no_coin_though_the_node_gives_no_type() -> None:
    rows = Told.by([batch_of(block(1, coinbase(1, 5), transaction(2, vout=[coin(0, 0, "6a00")])))])
    assert [o["spendable"] for o in rows["outputs"]] == [True, False]


def test_addresses_of_the_node_are_taken_on_a_network_that_is_not_known() -> None:
    paid = coin(0, 5)
    paid["scriptPubKey"]["addresses"] = ["tmB", "tmA"]
    raw = json.dumps(block(1, coinbase(1, 7), transaction(2, vout=[paid])))
    batch = zcash_batch([decode_block(raw.encode(), "block 1")], "block {}".format, None)
    assert [o["owner"] for o in Told.by([batch])["outputs"]] == [None, "tmA,tmB"]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda b: b.update(tx=[name_of(1)]), "verbosity 2"),
        (lambda b: b.update(tx=[]), "without transactions"),
        (lambda b: b["tx"].reverse(), "no coinbase"),
        (lambda b: b["tx"].append(coinbase(8, 1)), "a coinbase anywhere but first"),
        (lambda b: b["tx"][0]["vout"][0].update(valueZat=1.5), "valueZat"),
        (lambda b: b["tx"][0]["vout"][0].update(valueZat=-1), "negative"),
        (lambda b: b["tx"][0]["vout"][0].update(valueZat=2**63), "above"),
        (lambda b: b["tx"][0]["vout"][0].pop("valueZat"), "valueZat"),
        (lambda b: b["tx"][0]["vout"][0].update(n=2**32), "above"),
        (lambda b: b["tx"][0]["vout"][0]["scriptPubKey"].update(hex="zz"), "no hex"),
        (lambda b: b["tx"][1]["vin"][0].update(txid="ab"), "64 hex digits"),
        (lambda b: b["tx"][1]["vin"][0].pop("txid"), "missing"),
        (lambda b: b["tx"][1]["vin"][0].update(vout=-1), "negative"),
        (lambda b: b["tx"][1].update(txid="x\x00"), "id of the transaction"),
        (lambda b: b["tx"][1].update(valueBalanceZat="5"), "valueBalanceZat"),
        (lambda b: b["tx"][1].update(valueBalanceZat=10**30), "no block|sapling"),
        (lambda b: b["tx"][1].update(vjoinsplit=[{"vpub_old": 1.0}]), "vpub_"),
        (
            lambda b: b["tx"][1].update(vjoinsplit=[{"vpub_oldZat": -5, "vpub_newZat": 0}]),
            "negative",
        ),
        (lambda b: b.update(height=2**31), "above"),
        (lambda b: b.update(height=-1), "negative"),
        (lambda b: b.update(time=2**40), "above"),
        (lambda b: b.update(hash=""), "hash of the block"),
        (lambda b: b.pop("height"), "height"),
    ],
)
def test_a_malformed_block_is_refused(change: Callable[[Json], object], what: str) -> None:
    whole = block(1, coinbase(1, 5), transaction(2, vin=[spend(name_of(9), 0)], vout=[coin(0, 1)]))
    assert batch_of(whole)
    change(whole)
    raw = json.dumps(whole).encode()
    with pytest.raises(LedgerError, match=what):
        zcash_batch([decode_block(raw, "block 1")], "block {}".format, NETWORKS["zcash"])


@pytest.mark.parametrize("raw", [b"", b"null", b"[]", b"{", b'{"tx":NaN}', b"\xff", b"[" * 9999])
def test_what_is_no_block_is_refused(raw: bytes) -> None:
    with pytest.raises(LedgerError, match="block 1: no block of Zcash"):
        decode_block(raw, "block 1")


def random_block(random: Random, height: int) -> Json:
    """Make a block whose flows are right because its pools are counted as it is made."""
    pools = {"sprout": 0, "sapling": 0, "orchard": 0, "ironwood": 0}
    made = [coinbase(height * 100, *(random.randrange(9) for _ in range(random.randrange(4))))]
    for n in range(1, random.randint(1, 6)):
        t = transaction(height * 100 + n, version=random.choice([1, 4, 5, 6]))
        t["vin"] = [spend(name_of(random.randrange(99)), k) for k in range(random.randrange(4))]
        t["vout"] = [coin(k, random.randrange(10**12)) for k in range(random.randrange(4))]
        if t["version"] == 4:
            t["vjoinsplit"] = [
                {"vpub_oldZat": random.randrange(99), "vpub_newZat": random.randrange(99)}
                for _ in range(random.randrange(3))
            ]
            for joinsplit in t["vjoinsplit"]:
                pools["sprout"] += joinsplit["vpub_oldZat"] - joinsplit["vpub_newZat"]
        for pool, place in (("sapling", t), ("orchard", {}), ("ironwood", {})):
            if random.random() < 0.4:
                place["valueBalanceZat"] = random.randrange(-999, 999)
                pools[pool] -= place["valueBalanceZat"]
                if pool != "sapling":
                    t[pool] = place
        made.append(t)
    return block(height, *made, **pools)


def slowly(whole: Json) -> dict[str, list[Row]]:
    """Read a block the obvious way."""
    told: dict[str, list[Row]] = {name: [] for name in SCHEMAS}
    height = whole["height"]
    told["blocks"].append(
        {"height": height, "hash": whole["hash"], "previous": None, "time": whole["time"]}
    )
    for position, t in enumerate(whole["tx"]):
        key = {"height": height, "txid": t["txid"]}
        told["transactions"].append(
            key | {"coinbase": position == 0, "position": position, "time": whole["time"]}
        )
        for o in t["vout"]:
            coin_row = {"vout": o["n"], "spendable": True, "value": o["valueZat"], "owner": ADDRESS}
            told["outputs"].append(key | coin_row)
        for vin, i in enumerate(t["vin"] if position else []):
            spent = {"spent_txid": i["txid"], "spent_vout": i["vout"], "value": None, "owner": None}
            told["inputs"].append(key | {"vin": vin} | spent)
        into = {"sprout": 0}
        for j in t.get("vjoinsplit", []):
            into["sprout"] += j["vpub_oldZat"] - j["vpub_newZat"]
        into["sapling"] = -t.get("valueBalanceZat", 0)
        for pool in ("orchard", "ironwood"):
            into[pool] = -t.get(pool, {}).get("valueBalanceZat", 0)
        for pool, zat in into.items():
            if zat:
                told["pool_flows"].append(key | {"pool": pool, "into_pool": zat})
    return told


def test_random_blocks_read_as_the_obvious_way_reads_them() -> None:
    random = Random(1)
    for _ in range(200):
        blocks = [random_block(random, height + 1) for height in range(random.randint(1, 4))]
        wanted: dict[str, list[Row]] = {name: [] for name in SCHEMAS}
        for whole in blocks:
            for name, rows in slowly(whole).items():
                wanted[name] += rows
        assert Told.by([batch_of(*blocks)]).tables == wanted


def chain_of(random: Random, length: int) -> FakeNode:
    hashes, texts = [GENESIS], {}
    for height in range(length):
        whole = random_block(random, height)
        whole["hash"] = GENESIS if height == 0 else whole["hash"]
        if height:
            whole["previousblockhash"] = hashes[-1]
            hashes.append(whole["hash"])
        texts[whole["hash"]] = json.dumps(whole)
    return FakeNode(hashes, texts)


def test_a_node_is_read_block_after_block(fake: Fake, connect: Connect) -> None:
    chain = chain_of(Random(3), 40)
    fake.answer = chain
    node = ZcashNode(connect(fake.url), network="zcash")
    assert node.network == "zcash"
    assert node.tip() == (39, chain.hashes[-1])
    told = Told.by(node.batches(5, 39))
    assert told.headers() == {h: chain.hashes[h] for h in range(5, 40)}
    wanted = [
        t["txid"] for h in range(5, 40) for t in json.loads(chain.blocks[chain.hashes[h]])["tx"]
    ]
    assert [t["txid"] for t in told["transactions"]] == wanted


def test_rows_are_found_by_node_block_and_transaction(fake: Fake, connect: Connect) -> None:
    fake.answer = chain_of(Random(3), 3)
    (batch,) = ZcashNode(connect(fake.url)).batches(1, 2)
    assert batch.where("blocks", 1).startswith(f"{fake.url}: block 2")
    assert batch.read > 0


def test_a_reorganised_chain_is_found_by_its_common_ancestor(fake: Fake, connect: Connect) -> None:
    chain = chain_of(Random(3), 20)
    fake.answer = chain
    known = dict(enumerate(chain.hashes))
    chain.hashes[15:] = [name_of(5 * 10**6 + n) for n in range(3)]
    assert ZcashNode(connect(fake.url)).common_ancestor(known) == 14


def test_a_reorganisation_while_reading_is_an_error_of_its_own(
    fake: Fake, connect: Connect
) -> None:
    chain = chain_of(Random(3), 6)
    for change in ({"previousblockhash": name_of(1)}, {"confirmations": -1}):
        changed = deepcopy(chain)
        name = changed.hashes[4]
        changed.blocks[name] = json.dumps(json.loads(changed.blocks[name]) | change)
        fake.answer = changed
        with pytest.raises(ChainChanged, match="block 4"):
            list(ZcashNode(connect(fake.url)).batches(0, 5))


def test_another_block_than_the_one_requested_is_refused(fake: Fake, connect: Connect) -> None:
    chain = chain_of(Random(3), 6)
    chain.blocks[chain.hashes[3]] = chain.blocks[chain.hashes[2]]
    fake.answer = chain
    with pytest.raises(LedgerError, match="block 3: the node gave another block"):
        list(ZcashNode(connect(fake.url)).batches(0, 5))


def test_a_node_of_another_coin_is_refused(fake: Fake, connect: Connect) -> None:
    chain = chain_of(Random(3), 2)
    chain.hashes[0] = {name: hash_ for hash_, name in KNOWN.items()}["bitcoin"]
    fake.answer = chain
    with pytest.raises(WrongNetwork, match="a node of bitcoin, not of Zcash"):
        ZcashNode(connect(fake.url))


def check_mutants(times: int) -> None:
    random, good = Random(6), 0
    bodies = [json.dumps(random_block(random, h)).encode() for h in range(1, 5)]
    for _ in range(times):
        raw = mutated(random.choice(bodies), random)
        try:
            batch = zcash_batch([decode_block(raw, "b")], "block {}".format, NETWORKS["zcash"])
        except CoinhazeError:
            continue
        good += 1
        told = Told.by([batch])
        for row in told["outputs"]:
            assert 0 <= row["height"] < 2**31
            assert 0 <= row["value"] < 2**63
            assert 0 <= row["vout"] < 2**32
    assert 0 < good < times


def test_no_mutant_of_a_block_brings_out_another_kind_of_error() -> None:
    check_mutants(2000)


@pytest.mark.long
def test_no_mutant_of_many_brings_out_another_kind_of_error() -> None:
    check_mutants(20_000)
