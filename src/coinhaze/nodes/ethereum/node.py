"""An Ethereum node, over JSON-RPC: all movements of ether, or the transfers of one token.

Nodes do not report ether that has no sender, which must come from a file: the allocation of the
genesis block, and the DAO's at block 1,920,000. Rows of a block itself (withdrawals, rewards) have
its hash as transaction id and come after its transactions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext

import msgspec

from coinhaze.ledger.batches import Batch, Rows, gather
from coinhaze.nodes.best_chain import HIGHEST, ChainChanged, check_follows, check_heights
from coinhaze.nodes.ethereum.blocks import (
    MAINNET,
    BlockResponses,
    EthereumBlock,
    NotOffered,
    add_block,
    block_decoder,
)
from coinhaze.nodes.ethereum.fields import (
    EthereumHeader,
    block_places,
    decode,
    decode_block,
    deep_nesting,
    header_row,
    quantity,
)
from coinhaze.nodes.ethereum.logs import token_batches
from coinhaze.nodes.rpc import Call, JsonRpc, RpcError

__all__ = ["ChainChanged", "EthereumNode", "NotOffered"]

NO_SUCH_METHOD = -32601
ROWS_AT_ONCE, BLOCKS_AT_ONCE = 20_000, 1_000
FLAT, NESTED = "trace_block", "debug_traceBlockByNumber"

_header = msgspec.json.Decoder(EthereumHeader)
_text = msgspec.json.Decoder(str)


class EthereumNode:
    """A node of Ethereum or of a chain with its rules; `at_once` blocks are requested at a time.

    `lag` is how far the tip stays behind the latest block where the node reports no finalized one.
    """

    def __init__(self, rpc: JsonRpc, *, lag: int = 64, at_once: int = 4) -> None:
        self.rpc = rpc
        self.lag = lag
        self.at_once = at_once

    def tip(self) -> tuple[int, str]:
        """Return the height and hash of the last block that is considered final."""
        try:
            raw = self.rpc.call("eth_getBlockByNumber", "finalized", False)
        except RpcError:
            raw = b"null"
        if raw == b"null":
            latest = decode(_text, self.rpc.call("eth_blockNumber"), "the latest block")
            number = quantity(latest, "the latest block", field="number", maximum=HIGHEST)
            number = max(0, number - self.lag)
            raw = self.rpc.call("eth_getBlockByNumber", hex(number), False)
            header = decode_block(_header, raw, number)
        else:
            header = decode(_header, raw, "the last block")
        height = quantity(header.number, "the last block", field="number", maximum=HIGHEST)
        return height, str(header_row(header, height)["hash"])

    def common_ancestor(self, headers: Mapping[int, str]) -> int | None:
        """Walk back from the highest of known blocks to the last one still on the chain."""
        for height in sorted(headers, reverse=True):
            raw = self.rpc.call("eth_getBlockByNumber", hex(height), False)
            if raw != b"null":
                row = header_row(decode_block(_header, raw, height), height)
                if row["hash"] == headers[height].lower():
                    return height
        return None

    def batches(
        self,
        first: int,
        last: int,
        *,
        before: str = "",
        token: str | None = None,
        internal: bool = True,
        rewards: bool = True,
    ) -> Iterator[Batch]:
        """Read a range of blocks, both ends included: a token's transfers, or all moves of ether.

        The first follows the block `before`. Without `internal`, what contracts send is left out;
        without `rewards`, what miners earned by proof of work. Where these are included and a node
        cannot provide them, NotOffered is raised.
        """
        check_heights(first, last)
        if token is not None:
            yield from token_batches(self.rpc, first, last, token, before=before)
            return
        chain = quantity(
            decode(_text, self.rpc.call("eth_chainId"), "the chain"), "the chain", field="its id"
        )
        reader = _BlockReader(self.rpc, mainnet_rewards=rewards and chain == MAINNET)
        reader.find_methods(max(first, 1), last, internal)
        blocks, transfers, read = Rows("blocks"), Rows("transfers"), 0
        for height, answers in _ahead(reader.request, range(first, last + 1), self.at_once):
            read += sum(map(len, answers[:4]))
            add_block(answers, height, blocks, transfers, chain=chain, rewards=rewards)
            before = _check_link(blocks, before)
            if len(transfers) >= ROWS_AT_ONCE or len(blocks) >= BLOCKS_AT_ONCE or height == last:
                tables = gather([blocks, transfers])
                yield Batch(tables, block_places(tables), read)
                blocks, transfers = Rows("blocks"), Rows("transfers")


class _BlockReader:
    """Requests all there is about one block, with the methods the node has."""

    def __init__(self, rpc: JsonRpc, *, mainnet_rewards: bool) -> None:
        self.rpc = rpc
        self.mainnet_rewards = mainnet_rewards
        self.tracer = ""
        self.all_receipts = True

    def find_methods(self, first: int, last: int, internal: bool) -> None:
        """Try the methods on the first block that can be traced."""
        if first > last:
            return
        decode_block(_header, self.rpc.call("eth_getBlockByNumber", hex(first), False), first)
        try:
            self.rpc.call("eth_getBlockReceipts", hex(first))
        except RpcError as error:
            if error.code != NO_SUCH_METHOD:
                raise
            self.all_receipts = False
        if internal:
            self.tracer = self._find_tracer(first)

    def _find_tracer(self, height: int) -> str:
        refusals = []
        for method in (FLAT, NESTED):
            try:
                with deep_nesting():
                    self.rpc.call(method, *_trace_params(method, height))
            except RpcError as error:
                refusals.append(str(error))
            else:
                return method
        raise NotOffered(
            f"block {height}: the node gives no traces, so what contracts send is unknown: use a"
            f" node that traces, or leave it out (internal=False): {'; '.join(refusals)}"
        )

    def request(self, height: int) -> BlockResponses:
        """Request a block, its receipts, its trace and its uncles."""
        calls: list[Call] = [("eth_getBlockByNumber", [hex(height), True])]
        if self.all_receipts:
            calls.append(("eth_getBlockReceipts", [hex(height)]))
        traced = self.tracer and height > 0  # nodes refuse to trace the genesis block
        if traced:
            calls.append((self.tracer, _trace_params(self.tracer, height)))
        with deep_nesting() if self.tracer == NESTED else nullcontext():
            answers = self.rpc.batch(calls)
        trace = answers.pop() if traced else b""
        block = decode_block(block_decoder, answers[0], height)
        if self.tracer == NESTED:
            self._check_still_there(height, block)  # these traces do not name their block
        receipts = answers[1] if self.all_receipts else self._receipts_one_by_one(block)
        # Some nodes write null for the receipts of a block without transactions.
        if receipts == b"null" and not block.transactions:
            receipts = b"[]"
        return BlockResponses(
            answers[0],
            receipts,
            flat=trace if self.tracer == FLAT else b"",
            nested=trace if self.tracer == NESTED else b"",
            uncles=self._uncles(block) if self.mainnet_rewards else (),
        )

    def _check_still_there(self, height: int, block: EthereumBlock) -> None:
        raw = self.rpc.call("eth_getBlockByNumber", hex(height), False)
        now = decode_block(_header, raw, height).hash
        if now.lower() != block.hash.lower():
            raise ChainChanged(f"block {height}", "changed while it was read", value=now)

    def _receipts_one_by_one(self, block: EthereumBlock) -> bytes:
        calls: list[Call] = [("eth_getTransactionReceipt", [t.hash]) for t in block.transactions]
        return b"[" + b",".join(self.rpc.batch(calls)) + b"]"

    def _uncles(self, block: EthereumBlock) -> list[bytes]:
        method, count = "eth_getUncleByBlockHashAndIndex", len(block.uncles or ())
        return self.rpc.batch([(method, [block.hash, hex(k)]) for k in range(count)])


def _trace_params(method: str, height: int) -> list[object]:
    return [hex(height), {"tracer": "callTracer"}] if method == NESTED else [hex(height)]


def _ahead(
    request: Callable[[int], BlockResponses], heights: Iterable[int], at_once: int
) -> Iterator[tuple[int, BlockResponses]]:
    """Request blocks before they are needed."""
    waiting: deque[tuple[int, Future[BlockResponses]]] = deque()
    pool = ThreadPoolExecutor(at_once)
    try:
        for height in heights:
            waiting.append((height, pool.submit(request, height)))
            if len(waiting) > at_once:
                number, future = waiting.popleft()
                yield number, future.result()
        for number, future in waiting:
            yield number, future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _check_link(blocks: Rows, before: str) -> str:
    """Raise ChainChanged unless a block follows the one read before; return its hash."""
    columns = blocks.columns
    check_follows(columns["previous"][-1], before, f"block {columns['height'][-1]}")
    return str(columns["hash"][-1])
