from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from coinhaze.errors import CoinhazeError, LedgerError, SourceUnreachable, UsageError
from coinhaze.ledger.batches import SCHEMAS
from coinhaze.nodes import best_chain
from coinhaze.nodes.best_chain import (
    ChainChanged,
    MissingUndo,
    PrunedBlocks,
    RawBlock,
    WrongNetwork,
    read_ahead,
)
from coinhaze.nodes.bitcoin import (
    NETWORKS,
    PLAIN,
    PREVOUTS,
    REST,
    BitcoinNode,
    raw_tables,
    spent_coins,
)
from coinhaze.nodes.http import AccessRefused, Credentials
from coinhaze.nodes.mweb import Holder
from coinhaze.nodes.rpc import JsonRpc
from nodes.chains import Told
from nodes.daemons import Daemon, bitcoin_daemon, free_port
from nodes.fakes import Fake, FakeNode, Reply, Request, mutated

COIN = 100_000_000
KEYS = (
    "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798",
    "02c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5",
)
# The address of the first key's hash, on test networks: known from any wallet that holds key 1.
FIRST_KEY_ADDRESS = "mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r"


def exact(daemon: Daemon, method: str, *params: object) -> Any:
    """Ask a node, reading its decimals as they stand."""
    return json.loads(daemon.rpc.call(method, *params), parse_float=Decimal)


def read(daemon: Daemon, way: str | None = None, first: int = 0, last: int | None = None) -> Told:
    node = BitcoinNode(daemon.rpc, way=way)
    return Told.by(node.batches(first, node.tip()[0] if last is None else last))


class Payments:
    """A chain with all kinds of outputs, and what its payments were."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        daemon.mine(101)
        kinds = ("legacy", "p2sh-segwit", "bech32", "bech32m")
        addresses = [daemon.text("getnewaddress", "", kind) for kind in kinds]
        self.single_to = addresses[0]
        self.single = daemon.send(self.single_to, "1.50000001")
        daemon.mine(1)
        self.several_to = {a: (n + 1) * 10_000_019 for n, a in enumerate(addresses)}
        amounts = {a: f"0.{sat:08}" for a, sat in self.several_to.items()}
        self.several = daemon.text("sendmany", "", amounts)
        # Spends coins of the payment before, in the same block.
        self.after = daemon.send(daemon.text("getnewaddress"), "47.9")
        self.data = self.send_data("00ff" * 20)
        daemon.mine(1)
        self.mine_to(f"pk({KEYS[0]})")
        self.mine_to(f"multi(1,{KEYS[0]},{KEYS[1]})")

    def send_data(self, data: str) -> str:
        raw = self.daemon.text("createrawtransaction", [], [{"data": data}])
        funded = exact(self.daemon, "fundrawtransaction", raw)["hex"]
        signed = exact(self.daemon, "signrawtransactionwithwallet", funded)["hex"]
        return self.daemon.text("sendrawtransaction", signed)

    def mine_to(self, descriptor: str) -> None:
        whole = exact(self.daemon, "getdescriptorinfo", descriptor)["descriptor"]
        self.daemon.ask("generatetodescriptor", 1, whole)


@pytest.fixture(scope="module")
def payments(bitcoin: Daemon) -> Payments:
    return Payments(bitcoin)


@pytest.mark.parametrize("way", [REST, PREVOUTS, PLAIN])
def test_coins_are_worth_what_was_sent_to_whom_it_was_sent(payments: Payments, way: str) -> None:
    told = read(payments.daemon, way)
    single, several = told.coins_of(payments.single), told.coins_of(payments.several)
    assert single.pop(payments.single_to) == 150_000_001
    fee = -exact(payments.daemon, "gettransaction", payments.single)["fee"] * COIN
    assert list(single.values()) == [50 * COIN - 150_000_001 - fee]  # the change
    assert payments.several_to.items() <= several.items()
    assert len(several) == len(payments.several_to) + 1


@pytest.mark.parametrize("way", [REST, PREVOUTS, PLAIN])
def test_coins_left_unspent_are_those_of_the_node(payments: Payments, way: str) -> None:
    unspent = read(payments.daemon, way).unspent()
    known = exact(payments.daemon, "gettxoutsetinfo")
    assert len(unspent) == known["txouts"]
    assert sum(unspent.values()) == known["total_amount"] * COIN
    mine = exact(
        payments.daemon, "listunspent", 1, 9_999_999, [], True, {"include_immature_coinbase": True}
    )
    assert {(c["txid"], c["vout"]): c["amount"] * COIN for c in mine}.items() <= unspent.items()


@pytest.mark.parametrize("way", [REST, PREVOUTS])
def test_values_of_coins_spent_are_those_they_were_made_with(payments: Payments, way: str) -> None:
    told = read(payments.daemon, way)
    made = {(o["txid"], o["vout"]): (o["value"], o["owner"]) for o in told["outputs"]}
    assert len(told["inputs"]) >= 4
    for spent in told["inputs"]:
        assert (spent["value"], spent["owner"]) == made[spent["spent_txid"], spent["spent_vout"]]


def test_all_ways_tell_the_same(payments: Payments) -> None:
    by_rest, by_json, plain = (read(payments.daemon, way) for way in (REST, PREVOUTS, PLAIN))
    assert by_rest.tables == by_json.tables
    assert plain.tables == by_json.without_spent()
    assert plain.tables != by_json.tables


def test_the_best_way_offered_is_taken(payments: Payments) -> None:
    assert BitcoinNode(payments.daemon.rpc).way == REST
    with bitcoin_daemon("bitcoind") as without_rest:
        assert BitcoinNode(without_rest.rpc).way == PREVOUTS


@pytest.mark.parametrize("way", [REST, PREVOUTS])
def test_a_coin_that_pays_to_a_key_belongs_to_its_address(payments: Payments, way: str) -> None:
    height = BitcoinNode(payments.daemon.rpc).tip()[0]
    told = read(payments.daemon, way, height - 1)
    to_key, to_both = (o["owner"] for o in told["outputs"] if o["spendable"])
    assert to_key == FIRST_KEY_ADDRESS
    assert FIRST_KEY_ADDRESS in to_both.split(",")
    assert len(to_both.split(",")) == 2


def test_data_is_no_coin(payments: Payments) -> None:
    rows = [o for o in read(payments.daemon)["outputs"] if o["txid"] == payments.data]
    assert [o["owner"] is None for o in rows] == [not o["spendable"] for o in rows]
    assert sorted(o["spendable"] for o in rows) == [False, True]


@pytest.mark.parametrize("way", [REST, PREVOUTS])
def test_the_first_blocks_reward_cannot_be_spent(payments: Payments, way: str) -> None:
    told = read(payments.daemon, way, 0, 0)
    assert [o["spendable"] for o in told["outputs"]] == [False]
    assert told["blocks"][0]["previous"] is None


def test_order_and_positions_are_the_nodes(payments: Payments) -> None:
    told = read(payments.daemon)
    for block in told["blocks"]:
        known = exact(payments.daemon, "getblock", block["hash"], 1)
        rows = [t for t in told["transactions"] if t["height"] == block["height"]]
        assert [t["txid"] for t in rows] == known["tx"]
        assert [t["position"] for t in rows] == list(range(len(known["tx"])))
        assert [t["coinbase"] for t in rows] == [n == 0 for n in range(len(rows))]
        assert block["time"] == known["time"] == rows[0]["time"]
        assert block["previous"] == known.get("previousblockhash")
    assert [b["height"] for b in told["blocks"]] == list(range(len(told["blocks"])))


def test_a_row_is_found_by_node_and_block(payments: Payments) -> None:
    (batch,) = BitcoinNode(payments.daemon.rpc).batches(3, 5)
    assert batch.where("blocks", 1) == f"{payments.daemon.url}: block 4"
    assert batch.read > 0


def test_blocks_come_in_their_order_up_to_the_last(payments: Payments) -> None:
    heights: list[int] = []
    for batch in BitcoinNode(payments.daemon.rpc).batches(0, 50):
        heights += batch.tables["blocks"]["height"].to_pylist()
    assert heights == list(range(51))


def test_a_part_of_the_chain_is_that_part_of_the_whole(payments: Payments) -> None:
    whole, part = read(payments.daemon), read(payments.daemon, None, 90, 103)
    for name, rows in part.tables.items():
        assert rows == [row for row in whole[name] if 90 <= row["height"] <= 103]


def test_a_reorganised_chain_is_followed_from_the_common_ancestor(own_bitcoin: Daemon) -> None:
    own_bitcoin.mine(103)
    sent = own_bitcoin.send(own_bitcoin.text("getnewaddress"), "2")
    own_bitcoin.mine(3)
    before = read(own_bitcoin)
    own_bitcoin.ask("invalidateblock", before.headers()[104])
    own_bitcoin.mine(5)
    node = BitcoinNode(own_bitcoin.rpc)
    assert node.common_ancestor(before.headers()) == 103
    after = read(own_bitcoin)
    assert node.common_ancestor(after.headers()) == 108 == node.tip()[0]
    assert {h: n for h, n in after.headers().items() if h <= 103} == {
        h: n for h, n in before.headers().items() if h <= 103
    }
    assert after.headers()[104] != before.headers()[104]
    # The payment was mined again, or waits; what is unspent agrees with the node either way.
    assert sent in {t["txid"] for t in before["transactions"]}
    known = exact(own_bitcoin, "gettxoutsetinfo")
    assert sum(after.unspent().values()) == known["total_amount"] * COIN


def test_known_blocks_of_another_chain_have_no_common_ancestor(payments: Payments) -> None:
    node = BitcoinNode(payments.daemon.rpc)
    assert node.common_ancestor({5: "00" * 32, 6: "11" * 32}) is None
    assert node.common_ancestor({}) is None
    assert node.common_ancestor({10**6: "00" * 32}) is None


def test_known_blocks_may_be_written_in_capitals_and_have_gaps(payments: Payments) -> None:
    node = BitcoinNode(payments.daemon.rpc)
    at_seven = payments.daemon.text("getblockhash", 7)
    assert node.common_ancestor({7: at_seven.upper(), 40: "00" * 32}) == 7


@pytest.mark.parametrize("way", [REST, PREVOUTS])
def test_a_reorganisation_while_reading_is_an_error_of_its_own(
    own_bitcoin: Daemon, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(best_chain, "BLOCKS_AT_ONCE", 1)
    own_bitcoin.mine(60)
    batches = BitcoinNode(own_bitcoin.rpc, way=way).batches(0, 60)
    next(batches)
    own_bitcoin.ask("invalidateblock", own_bitcoin.text("getblockhash", 2))
    own_bitcoin.mine(70)
    with pytest.raises(ChainChanged, match=r"reorganised|left the best chain"):
        list(batches)


def test_a_cookie_file_opens_the_node(bitcoin: Daemon) -> None:
    found = Credentials.from_environment({"COINHAZE_RPC_COOKIE": str(bitcoin.cookie)})
    with JsonRpc(bitcoin.url, credentials=found) as rpc:
        assert BitcoinNode(rpc).network == "bitcoin regtest"


@pytest.mark.parametrize("credentials", [None, Credentials("me", "wrong")])
def test_a_wrong_password_is_reported(bitcoin: Daemon, credentials: Credentials | None) -> None:
    with (
        JsonRpc(bitcoin.url, credentials=credentials) as rpc,
        pytest.raises(AccessRefused, match=r"status 401.*COINHAZE_RPC_PASSWORD") as caught,
    ):
        BitcoinNode(rpc)
    assert caught.value.exit_code == 4


def test_a_closed_port_is_reported() -> None:
    with (
        JsonRpc(f"http://127.0.0.1:{free_port()}", retries=0) as rpc,
        pytest.raises(SourceUnreachable, match="is the node running there"),
    ):
        BitcoinNode(rpc)


def test_another_network_than_requested_is_refused(bitcoin: Daemon) -> None:
    assert BitcoinNode(bitcoin.rpc, network="bitcoin regtest").network == "bitcoin regtest"
    with pytest.raises(WrongNetwork, match="of the network bitcoin regtest, not bitcoin:"):
        BitcoinNode(bitcoin.rpc, network="bitcoin")


def test_a_block_that_is_not_there_yet_is_reported(payments: Payments) -> None:
    node = BitcoinNode(payments.daemon.rpc)
    with pytest.raises(SourceUnreachable, match="block 9999 is not there yet: the last one is"):
        next(node.batches(0, 9999))


@pytest.mark.parametrize(("first", "last"), [(-1, 5), (0, 2**31), (2**40, 2**40)])
def test_heights_that_are_none_are_refused(payments: Payments, first: int, last: int) -> None:
    with pytest.raises(UsageError, match="counted from 0"):
        next(BitcoinNode(payments.daemon.rpc).batches(first, last))


def test_a_pruned_node_says_from_where_it_keeps_blocks() -> None:
    with bitcoin_daemon("bitcoind", "-rest", "-prune=1", "-fastprune") as daemon:
        daemon.mine(600)
        daemon.ask("pruneblockchain", 300)
        kept = exact(daemon, "getblockchaininfo")["pruneheight"]
        assert 0 < kept <= 301
        for way in (REST, PREVOUTS, PLAIN):
            node = BitcoinNode(daemon.rpc, way=way)
            with pytest.raises(PrunedBlocks, match=f"block 5 is gone .*from {kept} on"):
                next(node.batches(5, 600))
            # As if it was pruned while it was read.
            ask = node._request_rest if way == REST else node._request_json
            with pytest.raises(PrunedBlocks, match="block 5 is gone"):
                ask(range(5, 6))
            assert len(Told.by(node.batches(kept, 600))["blocks"]) == 601 - kept


@pytest.mark.parametrize("way", [REST, PREVOUTS])
def test_missing_undo_data_is_an_error_of_its_own(own_bitcoin: Daemon, way: str) -> None:
    own_bitcoin.mine(101)
    own_bitcoin.ask("sendtoaddress", own_bitcoin.text("getnewaddress"), "1")
    own_bitcoin.mine(1)
    node = BitcoinNode(own_bitcoin.rpc, way=way)
    own_bitcoin.ask("gettxoutsetinfo")  # writes all to disk
    for undo in (own_bitcoin.folder / "regtest" / "blocks").glob("rev*.dat"):
        undo.unlink()
    with pytest.raises(MissingUndo, match=r"the coins spent by block .* are not known"):
        list(node.batches(100, 102))


class Recorded:
    """Blocks of the shared node as it gave them."""

    def __init__(self, daemon: Daemon) -> None:
        self.node = BitcoinNode(daemon.rpc)
        height = self.node.tip()[0]
        self.raw = self.node._request_rest(range(height - 2, height + 1))
        self.json = self.node.getblocks(range(height - 2, height + 1), 3)


@pytest.fixture(scope="module")
def recorded(payments: Payments) -> Recorded:
    return Recorded(payments.daemon)


def check_schema(tables: dict[str, Any]) -> None:
    for name, table in tables.items():
        assert table.schema.equals(SCHEMAS[name])
        table.validate(full=True)
    for row in tables["outputs"].to_pylist() + tables.get("inputs", tables["outputs"]).to_pylist():
        assert 0 <= row["height"] < 2**31
        assert row["value"] is None or 0 <= row["value"] < 2**63
        assert row["owner"] is None or row["owner"].isprintable()


def check_mutants(recorded: Recorded, times: int) -> None:
    random = Random(4)
    node, network = recorded.node, NETWORKS["bitcoin regtest"]
    by_json = BitcoinNode(node.rpc, way=PREVOUTS)
    good = 0
    for n in range(times):
        raw, text = (random.choice(blocks) for blocks in (recorded.raw, recorded.json))
        kind = n % 3
        try:
            if kind == 0:
                bad = raw._replace(spent=mutated(raw.spent, random))
                tables = raw_tables([bad], network, "node")
            elif kind == 1:
                bad = raw._replace(body=raw.body[:80] + mutated(raw.body[80:], random))
                tables = raw_tables([bad], network, "node")
            else:
                bad = text._replace(body=mutated(text.body, random))
                tables = by_json._json_tables([bad], Holder())[0]
        except CoinhazeError:
            continue
        check_schema(tables)
        good += 1
    assert 0 < good < times


def test_no_mutant_of_a_block_brings_out_another_kind_of_error(recorded: Recorded) -> None:
    check_mutants(recorded, 2000)


@pytest.mark.long
def test_no_mutant_of_many_brings_out_another_kind_of_error(recorded: Recorded) -> None:
    check_mutants(recorded, 20_000)


def test_raw_blocks_must_be_those_requested(recorded: Recorded) -> None:
    network = NETWORKS["bitcoin regtest"]
    one, other = recorded.raw[:2]
    with pytest.raises(LedgerError, match="not those of block"):
        raw_tables([one._replace(body=other.body)], network, "node")
    with pytest.raises(LedgerError, match="other numbers of coins spent"):
        raw_tables([one._replace(spent=other.spent)], network, "node")


@pytest.mark.parametrize(
    ("octets", "what"),
    [
        (b"", "cannot be read"),
        (b"\x02\x00", "cannot be read"),
        (b"\x01\x01" + b"\xff" * 8 + b"\x00", "no amount of bitcoin"),
        (b"\x01\x01" + (21_000_001 * 10**8).to_bytes(8, "little") + b"\x00", "no amount"),
        (b"\x01\x01" + bytes(8) + b"\xfe\xff\xff\xff\xff", "cannot be read"),
        (b"\xff" + b"\xff" * 8, "cannot be read"),
        (b"\x01\x00\x00", "left over"),
    ],
)
def test_coins_spent_that_are_malformed_are_refused(octets: bytes, what: str) -> None:
    with pytest.raises(LedgerError, match=what):
        spent_coins(octets, "block 1")


def test_coins_spent_are_read_by_transaction() -> None:
    coin = (5).to_bytes(8, "little") + b"\x01\x51"
    assert spent_coins(b"\x03\x00\x02" + coin + coin + b"\x01" + coin, "block 1") == [
        [],
        [(5, b"\x51")] * 2,
        [(5, b"\x51")],
    ]


def small_block(height: int, previous: str | None) -> tuple[str, str]:
    """Give the hash and JSON of a block with a coinbase only."""
    name = f"{height + 1:064x}"
    script = {"hex": "51", "type": "nonstandard"}
    block = {
        "hash": name,
        "height": height,
        "time": 1_700_000_000 + height,
        "nTx": 1,
        "confirmations": 1,
        "tx": [
            {
                "txid": f"{height + 1:064x}",
                "vin": [{"coinbase": "51"}],
                "vout": [{"value": 50.0, "n": 0, "scriptPubKey": script}],
            }
        ],
    }
    return name, json.dumps(block | ({"previousblockhash": previous} if previous else {}))


def fake_chain(length: int) -> FakeNode:
    hashes: list[str] = []
    blocks: dict[str, str] = {}
    for height in range(length):
        name, blocks[name] = small_block(height, hashes[-1] if hashes else None)
        hashes.append(name)
    return FakeNode(hashes, blocks)


@pytest.fixture
def node_of(fake: Fake, connect: Callable[..., JsonRpc]) -> Callable[..., BitcoinNode]:
    """Makes the node that a chain is read from."""

    def make(chain: FakeNode, **options: int) -> BitcoinNode:
        fake.answer = chain
        return BitcoinNode(connect(fake.url, **options), way=PLAIN)

    return make


NodeOf = Callable[..., BitcoinNode]


def test_an_unknown_network_is_called_so(node_of: NodeOf) -> None:
    assert node_of(fake_chain(2)).network == "unknown (main)"


def test_a_node_of_zcash_is_refused(node_of: NodeOf) -> None:
    chain = fake_chain(1)
    (chain.hashes[0],) = (n for n, name in best_chain.NETWORKS.items() if name == "zcash")
    with pytest.raises(WrongNetwork, match="a node of Zcash"):
        node_of(chain)


def test_blocks_too_large_together_are_requested_one_by_one(fake: Fake, node_of: NodeOf) -> None:
    chain = fake_chain(80)
    size = max(len(text) for text in chain.blocks.values())
    node = node_of(chain, largest=15 * size)
    assert len(Told.by(node.batches(0, 79))["blocks"]) == 80
    singles = [r for r in fake.requests if r.body.startswith(b"{") and b'"getblock"' in r.body]
    assert singles


def test_stretches_grow_while_answers_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(best_chain, "WANTED", 1000)
    asked: list[range] = []

    def ask(heights: range) -> list[RawBlock]:
        asked.append(heights)
        return [RawBlock(h, "", b"x" * (1 if h < 2000 else 800)) for h in heights]

    heights = [b.height for blocks in read_ahead(ask, 0, 3000) for b in blocks]
    assert heights == list(range(3001))
    assert max(map(len, asked)) == best_chain.MAX_BLOCKS
    assert len(sorted(asked, key=lambda r: r.start)[-1]) == 1  # large blocks come alone


def test_few_requests_are_in_flight() -> None:
    now, maximum, lock, full = 0, 0, threading.Lock(), threading.Event()

    def ask(heights: range) -> list[RawBlock]:
        nonlocal now, maximum
        with lock:
            now += 1
            maximum = max(maximum, now)
            if now == best_chain.IN_FLIGHT:
                full.set()
        full.wait(60)
        with lock:
            now -= 1
        return [RawBlock(h, "", b"x") for h in heights]

    assert len(list(read_ahead(ask, 0, 500))) > 3
    assert maximum == best_chain.IN_FLIGHT


def test_an_error_of_a_request_comes_out_in_its_turn() -> None:
    def ask(heights: range) -> list[RawBlock]:
        if heights[0] >= 5:
            raise SourceUnreachable("gone")
        return [RawBlock(h, "", b"x") for h in heights]

    blocks: list[int] = []

    def drain() -> Iterator[None]:
        for some in read_ahead(ask, 0, 100):
            blocks.extend(b.height for b in some)
            yield

    with pytest.raises(SourceUnreachable, match="gone"):
        list(drain())
    assert blocks == list(range(len(blocks)))
    assert len(blocks) >= 3


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"height": 7}, SourceUnreachable),
        ({"hash": "ab" * 32}, SourceUnreachable),
        ({"confirmations": -1}, ChainChanged),
        ({"previousblockhash": "cd" * 32}, ChainChanged),
        ({"tx": []}, LedgerError),
        ({"tx": "none"}, CoinhazeError),
        ({"valuePools": []}, LedgerError),
    ],
)
def test_a_block_other_than_the_one_requested_is_refused(
    node_of: NodeOf, change: dict[str, object], error: type[CoinhazeError]
) -> None:
    chain = fake_chain(3)
    name = chain.hashes[2]
    chain.blocks[name] = json.dumps(json.loads(chain.blocks[name]) | change)
    node = node_of(chain)
    with pytest.raises(error, match="block 2"):
        list(node.batches(0, 2))


def test_a_server_that_is_no_node_is_refused(fake: Fake, connect: Callable[..., JsonRpc]) -> None:
    fake.answer = lambda request: request.result('{"chain": 5}')
    with pytest.raises(SourceUnreachable, match="is it a node of Bitcoin's family"):
        BitcoinNode(connect(fake.url))


def test_money_is_exact_to_the_last_satoshi(node_of: NodeOf) -> None:
    chain = fake_chain(1)
    chain.blocks[chain.hashes[0]] = chain.blocks[chain.hashes[0]].replace(
        "50.0", "20999999.97690001"
    )
    told = Told.by(node_of(chain).batches(0, 0))
    assert told["outputs"][0]["value"] == 2_099_999_997_690_001


def test_a_fault_of_rest_is_reported_by_its_status(
    fake: Fake, connect: Callable[..., JsonRpc]
) -> None:
    chain = fake_chain(2)

    def answer(request: Request) -> Reply:
        return Reply(500, b"disk broken") if request.verb == "GET" else chain(request)

    fake.answer = answer
    node = BitcoinNode(connect(fake.url), way=REST)
    with pytest.raises(SourceUnreachable, match="disk broken"):
        list(node.batches(0, 1))
