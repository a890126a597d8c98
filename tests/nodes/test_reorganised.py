"""Chains of every kind of node that change between two answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from coinhaze.nodes import best_chain, monero
from coinhaze.nodes.best_chain import BlockMissing, ChainChanged
from coinhaze.nodes.bitcoin import PLAIN, BitcoinNode
from coinhaze.nodes.ethereum import logs as ethereum_logs
from coinhaze.nodes.ethereum import node as ethereum
from coinhaze.nodes.ethereum.node import EthereumNode
from coinhaze.nodes.monero import MoneroNode
from coinhaze.nodes.rpc import JsonRpc, RpcError
from coinhaze.nodes.zcash import ZcashNode
from coinhaze.store import sync as follow
from coinhaze.store.store import Store
from coinhaze.store.sync import catch_up
from nodes.ethereum_fixtures import (
    Anvil,
    FakeNode,
    account,
    hash_of,
    made_block,
    made_log,
    running_anvil,
    token_creation,
    token_payment,
)
from nodes.fakes import Fake
from nodes.fakes import FakeNode as FakeCoins
from nodes.monero_fixtures import MadeUpNode, txid_of
from nodes.test_bitcoin_node import fake_chain
from nodes.test_zcash_rpc import chain_of

TOKEN = account(0x70)


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "pause_after", lambda attempt: 0.0)


class Branching:
    """Which branch the block at each height is of; it may change after any answer."""

    def __init__(self, length: int) -> None:
        self.branch = [0] * length
        self.forks = 0
        self.between: Callable[[], None] = lambda: None

    def fork(self, height: int, length: int) -> None:
        self.forks += 1
        self.branch[height:] = [self.forks] * length

    def number(self, height: int) -> int:
        """Give a number that no other block has, of any branch."""
        return 10_000_000 * self.branch[height] + 1000 + height

    def race(self, random: Random, forks: int) -> None:
        """Fork so many times, each time after an answer that chance chooses."""
        left = [forks]

        def between() -> None:
            if left[0] and random.random() < 0.08:
                left[0] -= 1
                depth = random.randint(1, len(self.branch) // 2)
                self.fork(len(self.branch) - depth, random.randint(1, depth + 4))

        self.between = between


class Ether(FakeNode, Branching):
    """An Ethereum node without a transaction; its token moves in blocks of even numbers."""

    tracer = "debug_traceBlockByNumber"

    def __init__(self, length: int) -> None:
        FakeNode.__init__(self)
        Branching.__init__(self, length)

    def call(self, method: str, /, *params: object, **named: object) -> bytes:
        answer = super().call(method, *params)
        self.between()
        return answer

    def eth_chainId(self) -> str:
        return "0x5"

    def eth_blockNumber(self) -> str:
        return hex(len(self.branch) - 1)

    def eth_getBlockByNumber(self, number: str, full: bool) -> dict[str, Any] | None:
        if number == "finalized":
            raise RpcError("", "eth_getBlockByNumber", -32602, "unknown tag")
        height = int(number, 16)
        if height >= len(self.branch):
            return None
        names = {"hash": hash_of(self.number(height))}
        names["parentHash"] = hash_of(self.number(height - 1) if height else 0)
        reward = [{"address": account(9), "amount": hex(1 + self.branch[height])}]
        return made_block(height, transactions=[], withdrawals=reward, **names)

    def eth_getBlockReceipts(self, number: str) -> list[Any] | None:
        return [] if int(number, 16) < len(self.branch) else None

    def trace_block(self, number: str) -> Any:
        raise RpcError("", "trace_block", -32601, "no such method")

    def debug_traceBlockByNumber(self, number: str, options: Any) -> list[Any]:
        return []

    def eth_getLogs(self, wanted: dict[str, Any]) -> list[dict[str, Any]]:
        first, last = int(wanted["fromBlock"], 16), int(wanted["toBlock"], 16)
        return [
            made_log(h, 0, blockHash=hash_of(self.number(h)), data=hash_of(self.number(h)))
            for h in range(first, min(last + 1, len(self.branch)))
            if (h + self.branch[h]) % 2 == 0
        ]


class Rings(MadeUpNode, Branching):
    """A Monero node."""

    def __init__(self, length: int) -> None:
        MadeUpNode.__init__(self)
        Branching.__init__(self, length)

    def post(self, path: str, body: Any) -> bytes:
        height = body.get("params", {}).get("height", 0)
        if height < len(self.branch):
            answer = super().post(path, body)
        else:
            answer = b'{"error":{"code":-2,"message":"Requested block height is too big"}}'
        self.between()
        return answer

    def get_info(self) -> dict[str, Any]:
        return {"height": len(self.branch)}

    def get_block_header_by_height(self, height: int) -> dict[str, Any]:
        header = super().get_block_header_by_height(height)["block_header"]
        before = txid_of(self.number(height - 1) if height else 0)
        names = {"hash": txid_of(self.number(height)), "prev_hash": before}
        return {"block_header": header | names}


Kind = tuple[Callable[[int], Any], Callable[[Any], Any], dict[str, Any]]
KINDS: dict[str, Kind] = {
    "ether": (Ether, lambda rpc: EthereumNode(rpc, lag=0, at_once=1), {}),
    "ether, read ahead": (Ether, lambda rpc: EthereumNode(rpc, lag=0), {}),
    "token": (Ether, lambda rpc: EthereumNode(rpc, lag=0), {"token": TOKEN}),
    "monero": (Rings, lambda rpc: MoneroNode(rpc, lag=0, at_once=1), {}),
}


def content(store: Store, table: str) -> list[Any]:
    return store.ask(f"SELECT * FROM {table} ORDER BY ALL")


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(n, marks=pytest.mark.long) for n in range(2, 20))]
)
@pytest.mark.parametrize("kind", KINDS)
def test_races_leave_a_store_equal_to_a_fresh_one(
    kind: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(seed)
    monkeypatch.setattr(follow, "ROWS", random.choice([1, 10, 1000]))
    monkeypatch.setattr(ethereum, "BLOCKS_AT_ONCE", 3)
    monkeypatch.setattr(ethereum_logs, "FIRST_SPAN", 4)
    monkeypatch.setattr(monero, "BLOCKS_AT_ONCE", 4)
    make_chain, make_node, asking = KINDS[kind]
    chain = make_chain(random.randint(10, 25))
    node = make_node(chain)
    with Store(None) as store, Store(None) as fresh:
        for _ in range(2):
            chain.race(random, forks=2)
            catch_up(store, node, name="node", first=2, **asking)
            if kind != "token":  # of tokens not every header is stored
                links = store.ask("SELECT hash, previous FROM blocks ORDER BY height")
                assert all(link[1] == below[0] for below, link in pairwise(links))
        chain.between = lambda: None
        catch_up(store, node, name="node", first=2, **asking)
        catch_up(fresh, node, name="node", first=2, **asking)
        if kind == "token":
            assert content(store, "transfers") == content(fresh, "transfers")
            assert max(store.headers()) == max(fresh.headers()) == len(chain.branch) - 1
        else:
            assert store.digest() == fresh.digest()


def zcash(fake: Fake, rpc: JsonRpc) -> tuple[Any, list[str], dict[str, Any]]:
    chain = chain_of(Random(3), 12)
    fake.answer = chain
    return ZcashNode(rpc), chain.hashes, {}


def bitcoin(fake: Fake, rpc: JsonRpc) -> tuple[Any, list[str], dict[str, Any]]:
    chain = fake_chain(12)
    fake.answer = chain
    return BitcoinNode(rpc, way=PLAIN), chain.hashes, {}


def made(kind: str) -> Callable[[Fake, JsonRpc], tuple[Any, list[str], dict[str, Any]]]:
    def make(fake: Fake, rpc: JsonRpc) -> tuple[Any, list[str], dict[str, Any]]:
        make_chain, make_node, asking = KINDS[kind]
        chain = make_chain(12)
        name = txid_of if kind == "monero" else hash_of
        return make_node(chain), [name(chain.number(h)) for h in range(12)], asking

    return make


@pytest.mark.parametrize(
    "make", [bitcoin, zcash, made("ether"), made("token"), made("monero")],
    ids=["bitcoin", "zcash", "ether", "token", "monero"],
)  # fmt: skip
def test_the_first_block_must_follow_the_one_before_it(
    make: Any, fake: Fake, connect: Callable[..., JsonRpc]
) -> None:
    node, hashes, asking = make(fake, connect(fake.url))
    assert sum(len(b.tables["blocks"]) for b in node.batches(5, 9, before=hashes[4], **asking))
    for wrong in (hashes[3], hashes[5]):
        with pytest.raises(ChainChanged, match="block 5: does not follow the block before"):
            list(node.batches(5, 9, before=wrong, **asking))


@pytest.mark.parametrize("kind", ["bitcoin", "zcash"])
def test_a_chain_that_became_shorter_is_read_again(
    kind: str, fake: Fake, connect: Callable[..., JsonRpc], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(best_chain, "IN_FLIGHT", 1)
    node, hashes, _ = (bitcoin if kind == "bitcoin" else zcash)(fake, connect(fake.url))
    chain = fake.answer
    assert isinstance(chain, FakeCoins)
    cut = [False]

    def answer(request: Any) -> Any:
        if b'"getblock"' in request.body and not cut[0]:
            cut[0] = True
            del chain.hashes[6:]
            for name in hashes[6:]:
                chain.blocks.pop(name, None)
        return chain(request)

    fake.answer = answer
    hashes = list(hashes)
    with pytest.raises(BlockMissing, match="is not there"):
        list(node.batches(0, 11))
    cut[0] = False
    chain.hashes[:] = hashes
    whole = fake_chain(12).blocks if kind == "bitcoin" else chain_of(Random(3), 12).blocks
    chain.blocks = dict(whole)
    with Store(None) as store:
        assert catch_up(store, node, name="node").last == 5
        assert sorted(store.headers()) == list(range(6))


def test_traces_of_another_block_are_refused() -> None:
    """Traces by number do not say of which block they are: the block is looked at again."""
    chain = Ether(12)
    plain = chain.debug_traceBlockByNumber

    def trace(number: str, options: Any) -> list[Any]:
        if number == hex(7):
            chain.fork(7, 5)
        return plain(number, options)

    chain.debug_traceBlockByNumber = trace  # type: ignore[method-assign]
    with pytest.raises(ChainChanged, match="block 7: changed while it was read"):
        list(EthereumNode(chain, at_once=1).batches(7, 7))


def test_logs_of_another_branch_than_the_last_header_are_refused() -> None:
    """Without a log in the blocks that changed nothing else would show that they did."""
    chain = Ether(12)
    plain = chain.eth_getLogs

    def logs(wanted: dict[str, Any]) -> list[dict[str, Any]]:
        found = plain(wanted)
        chain.fork(11, 1)  # block 11 had no log, and has one now
        return found

    chain.eth_getLogs = logs  # type: ignore[method-assign]
    with pytest.raises(ChainChanged, match="block 11: changed while it was read"):
        list(EthereumNode(chain).batches(3, 11, token=TOKEN))


def test_rings_numbered_by_another_branch_are_refused() -> None:
    chain = Rings(12)
    plain = chain.get_outs

    def outs(outputs: list[dict[str, int]], **more: object) -> dict[str, Any]:
        chain.fork(11, 1)
        return plain(outputs, **more)

    chain.get_outs = outs  # type: ignore[method-assign]
    with pytest.raises(ChainChanged, match="block 11: changed while it was read"):
        list(MoneroNode(chain).batches(8, 11))


@pytest.fixture(scope="module")
def anvil(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Anvil]:
    with running_anvil(tmp_path_factory.mktemp("anvil")) as chain:
        yield chain


@pytest.mark.parametrize("what", ["ether", "token"])
@pytest.mark.parametrize("after", [3, 12])
def test_a_real_ethereum_node_reorganised_in_mid_read(
    anvil: Anvil, what: str, after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ethereum_logs, "FIRST_SPAN", 3)
    a, b, *_ = anvil.accounts
    token = anvil.create(a, token_creation(1000))
    asking: dict[str, Any] = {"token": token} if what == "token" else {}
    first = anvil.height()
    snapshot = anvil("evm_snapshot")

    def extend(blocks: int, amount: int) -> None:
        for number in range(blocks):
            anvil.transact(a, to=token, data=token_payment(b, amount + number))
            anvil.mine()

    requests = [0]

    class Hooked(JsonRpc):
        def _send(self, calls: Any, *, listed: bool) -> list[bytes]:
            if "finalized" in calls[0][1]:
                raise RpcError("", "eth_getBlockByNumber", -32602, "unknown tag")
            requests[0] += 1
            if requests[0] == after:
                anvil("evm_revert", snapshot)
                extend(10, 50)
            return super()._send(calls, listed=listed)

    extend(9, 1)
    with Hooked(anvil.rpc.node, retries=0) as rpc, Store(None) as store, Store(None) as fresh:
        node = EthereumNode(rpc, lag=0, at_once=1)
        catch_up(store, node, name="node", first=first, **asking)
        assert requests[0] > after
        catch_up(store, node, name="node", **asking)
        catch_up(fresh, node, name="node", first=first, **asking)
        assert content(store, "transfers") == content(fresh, "transfers")
        assert len(content(store, "transfers")) >= 10
        assert max(store.headers().items()) == max(fresh.headers().items())
