"""Transfers of an ERC-20 token, read as logs, in ranges of blocks as long as the node allows.

Services limit the number of blocks or of logs per request, each with its own error message (10,000
logs, 2,000 blocks, 5 on a trial): any refusal halves the range until a single block is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from coinhaze.errors import LedgerError, SourceUnreachable, UsageError
from coinhaze.ledger.batches import Batch, Rows, gather
from coinhaze.nodes.best_chain import HIGHEST, ChainChanged, check_follows
from coinhaze.nodes.ethereum.fields import (
    EthereumHeader,
    address,
    block_places,
    decode,
    decode_block,
    header_row,
    quantity,
    word,
)
from coinhaze.nodes.http import AccessRefused
from coinhaze.nodes.rpc import JsonRpc

TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
# EIP-7708 logs ether itself as if it were a token of this address.
ETHER_LOGGER = "0x" + "f" * 39 + "e"
FIRST_SPAN, LONGEST_SPAN = 2_000, 65_536
# The number of ranges that must succeed after a refusal before a longer one is tried.
CALM = 16
HEADERS_AT_ONCE = 100


class _Log(msgspec.Struct, rename="camel"):
    address: str
    topics: list[str]
    data: str
    block_number: str
    block_hash: str
    transaction_hash: str
    transaction_index: str
    log_index: str
    removed: bool = False


_logs = msgspec.json.Decoder(list[_Log])
_header = msgspec.json.Decoder(EthereumHeader)


def check_token(token: str) -> str:
    """Return a token's address in lower case; raise an error if it is not an address."""
    try:
        token = address(token, "token", field="it")
    except LedgerError as error:
        raise UsageError(f"{error} (name the contract: 0x and 40 hex digits)") from None
    if token == ETHER_LOGGER:
        raise UsageError(f"{token} logs ether (EIP-7708), it is no token: ask for none")
    return token


def token_batches(
    rpc: JsonRpc, first: int, last: int, token: str, *, before: str = ""
) -> Iterator[Batch]:
    """Read a token's transfers, with the headers of blocks that have some and of range ends.

    Transfers of zero and to oneself are included. A chain that changes would leave out the logs of
    its other branch: so a range must begin above the end of the one before, and its last block must
    be the same before and after its logs are read.
    """
    token = check_token(token)
    read = 0
    for start, end, raw, end_hash in log_ranges(rpc, first, last, token):
        read += len(raw)
        transfers, hashes = read_transfers(raw, token, start, end)
        lowest, blocks = _headers(rpc, [start]), _headers(rpc, sorted({*hashes, end}))
        check_follows(lowest.columns["previous"][0], before, f"block {start}")
        times = _check_hashes(blocks, {end: end_hash} | hashes)
        before = str(blocks.columns["hash"][-1])
        transfers.columns["time"] = [times[h] for h in transfers.columns["height"]]
        tables = gather([blocks, transfers])
        yield Batch(tables, block_places(tables), read)


def log_ranges(
    rpc: JsonRpc, first: int, last: int, token: str
) -> Iterator[tuple[int, int, bytes, str]]:
    """Yield raw logs for consecutive ranges of blocks.

    The hash is that of the last block, read before the logs.
    """
    span, calm = FIRST_SPAN, CALM
    while first <= last:
        end = min(last, first + span - 1)
        end_hash = str(_headers(rpc, [end]).columns["hash"][0])
        try:
            raw = _get_logs(rpc, first, end, token)
        except AccessRefused:
            raise
        except SourceUnreachable:
            if end == first:
                raise
            rpc.call("eth_chainId")  # a node that is gone raises here, once
            span, calm = (end - first + 1) // 2, 0
            continue
        yield first, end, raw, end_hash
        first, calm = end + 1, calm + 1
        if calm > CALM:
            span = min(2 * span, LONGEST_SPAN)


def _get_logs(rpc: JsonRpc, first: int, last: int, token: str) -> bytes:
    return rpc.call(
        "eth_getLogs",
        {"fromBlock": hex(first), "toBlock": hex(last), "address": token, "topics": [TRANSFER]},
    )


def read_transfers(raw: bytes, token: str, first: int, last: int) -> tuple[Rows, dict[int, str]]:
    """Convert raw logs to rows of `transfers`, and the hashes of the blocks they claim to be in."""
    where = f"logs of blocks {first} to {last}"
    rows = Rows("transfers")
    hashes: dict[int, str] = {}
    seen: set[tuple[int, object]] = set()
    for log in decode(_logs, raw, where):
        if log.removed or log.address.lower() == ETHER_LOGGER:
            continue
        height = quantity(log.block_number, where, field="blockNumber", maximum=HIGHEST)
        if not first <= height <= last:
            raise LedgerError(where, "a log of a block that was not requested", value=height)
        block_hash = word(log.block_hash, where, field="blockHash")
        if hashes.setdefault(height, block_hash) != block_hash:
            raise ChainChanged(where, f"block {height} with two hashes", value=block_hash)
        row = _transfer(log, token, height)
        if (height, row["step"]) in seen:
            raise LedgerError(where, f"two logs with one index in block {height}", value=log)
        seen.add((height, row["step"]))
        rows.add(**row)
    return rows, hashes


def _transfer(log: _Log, token: str, height: int) -> dict[str, int | str]:
    txid = word(log.transaction_hash, f"block {height}", field="transactionHash")
    where = f"block {height}, transaction {txid}"
    if address(log.address, where, field="address") != token:
        raise LedgerError(where, "a log of a token that was not requested", value=log.address)
    if len(log.topics) != 3 or log.topics[0].lower() != TRANSFER:
        fix = "an ERC-721 token has four topics and no amounts" if len(log.topics) == 4 else ""
        raise LedgerError(where, "no Transfer of ERC-20: topics", value=log.topics, fix=fix)
    return {
        "height": height,
        "position": quantity(
            log.transaction_index, where, field="transactionIndex", maximum=HIGHEST
        ),
        "step": quantity(log.log_index, where, field="logIndex", maximum=HIGHEST),
        "txid": txid,
        "token": token,
        "sender": _account(log.topics[1], where, field="from"),
        "recipient": _account(log.topics[2], where, field="to"),
        "amount": str(int(word(log.data, where, field="data"), 16)),
        "kind": "token",
    }


def _account(topic: str, where: str, *, field: str) -> str:
    """Extract the address from a 32-byte word, which must be zero elsewhere."""
    padded = word(topic, where, field=field)
    if padded[2:26] != "0" * 24:
        raise LedgerError(where, f"{field} is no address", value=topic)
    return "0x" + padded[26:]


def _headers(rpc: JsonRpc, heights: Sequence[int]) -> Rows:
    rows = Rows("blocks")
    for start in range(0, len(heights), HEADERS_AT_ONCE):
        some = heights[start : start + HEADERS_AT_ONCE]
        answers = rpc.batch([("eth_getBlockByNumber", [hex(h), False]) for h in some])
        for height, raw in zip(some, answers, strict=True):
            rows.add(**header_row(decode_block(_header, raw, height), height))
    return rows


def _check_hashes(blocks: Rows, hashes: dict[int, str]) -> dict[object, object]:
    """Raise an error for logs of blocks no longer in the chain; return the block times."""
    for height, block_hash in zip(blocks.columns["height"], blocks.columns["hash"], strict=True):
        if hashes.get(height, block_hash) != block_hash:  # type: ignore[call-overload]
            raise ChainChanged(
                f"block {height}", "changed while it was read", value=block_hash, fix="read again"
            )
    return dict(zip(blocks.columns["height"], blocks.columns["time"], strict=True))
