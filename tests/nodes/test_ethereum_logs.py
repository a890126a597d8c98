"""Transfers of tokens read as logs, through services with limits of their own."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from coinhaze.errors import LedgerError, SourceUnreachable
from coinhaze.nodes.ethereum.logs import read_transfers
from coinhaze.nodes.ethereum.node import ChainChanged, EthereumNode
from coinhaze.nodes.http import AccessRefused
from coinhaze.nodes.rpc import RpcError
from nodes.ethereum_fixtures import FakeNode, account, hash_of, made_block, made_log

TOKEN = account(0x70)
OTHER = hash_of(77)


class Chain(FakeNode):
    """A node with one transfer of the token in each block, and a service's limits."""

    def __init__(self, *, blocks: int = 10**9, logs: int = 10**9) -> None:
        super().__init__()
        self.max_blocks, self.max_logs = blocks, logs
        self.asked: list[tuple[int, int]] = []
        self.status: Exception | None = None
        self.forked = 10**9

    def eth_chainId(self) -> str:
        return "0x1"

    def eth_getBlockByNumber(self, number: str, full: bool) -> dict[str, Any]:
        block = made_block(int(number, 16))
        return block if int(number, 16) < self.forked else block | {"hash": hash_of(5)}

    def logs_of(self, height: int) -> list[dict[str, Any]]:
        return [made_log(height, 0)]

    def eth_getLogs(self, wanted: dict[str, Any]) -> list[dict[str, Any]]:
        first, last = int(wanted["fromBlock"], 16), int(wanted["toBlock"], 16)
        assert wanted["address"] == TOKEN
        self.asked.append((first, last))
        if self.status:
            raise self.status
        if last - first + 1 > self.max_blocks:
            raise RpcError(self.node, "eth_getLogs", -32600, "block range is too wide")
        logs = [log for height in range(first, last + 1) for log in self.logs_of(height)]
        if len(logs) > self.max_logs:
            raise RpcError(self.node, "eth_getLogs", -32005, "query returned more than 10000")
        return logs


def heights(node: Chain, first: int, last: int) -> list[int]:
    found: list[int] = []
    for batch in EthereumNode(node).batches(first, last, token=TOKEN):
        if "transfers" in batch.tables:
            found += batch.tables["transfers"]["height"].to_pylist()
    return found


@pytest.mark.parametrize("maximum", [1, 5, 333, 2000, 10_000])
def test_ranges_are_halved_until_the_service_answers(maximum: int) -> None:
    last = 40 * min(maximum, 250) + 3
    for node in (Chain(blocks=maximum), Chain(logs=maximum)):
        assert heights(node, 3, last) == list(range(3, last + 1))
        # One refusal in 17 stretches at most, besides those that found the limit.
        assert len(node.asked) < 1.2 * (last / min(maximum, 2000)) * 2 + 40


def test_a_service_that_refuses_one_block_is_not_requested_ever() -> None:
    node = Chain(blocks=0)
    with pytest.raises(RpcError, match="too wide"):
        heights(node, 0, 10**6)
    assert len(node.asked) < 15


def test_missing_credentials_are_reported_at_once() -> None:
    node = Chain()
    node.status = AccessRefused("http://fake", 401, "")
    with pytest.raises(AccessRefused):
        heights(node, 0, 1000)
    assert len(node.asked) == 1


def test_a_node_that_is_gone_is_reported_at_once() -> None:
    class Gone(Chain):
        def eth_chainId(self) -> str:
            raise SourceUnreachable("http://fake: no answer")

    node = Gone()
    node.status = SourceUnreachable("http://fake: no answer")
    with pytest.raises(SourceUnreachable):
        heights(node, 0, 1000)
    assert len(node.asked) == 1


def test_removed_logs_and_those_of_ether_itself_are_dropped() -> None:
    logs = [
        made_log(5, 0),
        made_log(5, 1, removed=True),
        made_log(5, 2, address="0x" + "F" * 39 + "e"),
    ]
    rows, hashes = read_transfers(msgspec.json.encode(logs), TOKEN, 5, 5)
    assert rows.columns["step"] == [0]
    assert hashes == {5: hash_of(1005)}
    row = rows.table().to_pylist()[0]
    assert (row["sender"], row["recipient"], row["amount"]) == (account(1), account(2), "10")
    assert (row["token"], row["kind"], row["position"]) == (TOKEN, "token", 0)


BAD_LOGS = {
    "an ERC-721 token has four topics": made_log(5, 0, topics=[*made_log(5, 0)["topics"], OTHER]),
    "no Transfer of ERC-20": made_log(5, 0, topics=[OTHER, hash_of(1), hash_of(2)]),
    "data is not 32 bytes": made_log(5, 0, data="0x"),
    "from is no address": made_log(5, 0, topics=[made_log(5, 0)["topics"][0], "0x" + "1" * 64,
    hash_of(2)]),
    "a token that was not requested": made_log(5, 0, address=account(0x71)),
    "a block that was not requested": made_log(6, 0),
    "two logs with one index": made_log(5, 1, logIndex="0x0"),
    "block 5 with two hashes": made_log(5, 1, blockHash=OTHER),
    "logIndex is no hex": made_log(5, 1, logIndex=""),
    "transactionHash is not 32": made_log(5, 1, transactionHash="0x12"),
}  # fmt: skip


@pytest.mark.parametrize("fault", BAD_LOGS)
def test_logs_that_are_no_transfers_of_the_token_are_refused(fault: str) -> None:
    good = [] if fault.startswith(("an ERC", "no Tr", "data", "from")) else [made_log(5, 0)]
    with pytest.raises(LedgerError, match=fault):
        read_transfers(msgspec.json.encode([*good, BAD_LOGS[fault]]), TOKEN, 5, 5)


def test_logs_of_a_block_that_was_replaced_are_refused() -> None:
    node = Chain()
    node.forked = 8
    with pytest.raises(ChainChanged, match="block 8"):
        heights(node, 0, 20)
