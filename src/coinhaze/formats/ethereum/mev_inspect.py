"""mev-inspect: one block a file, in JSON, with its traces as a node gives them (trace_block).

Amounts are hexadecimal wei. No time is given. What the rules of traces say holds here too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from coinhaze.errors import LedgerError
from coinhaze.formats.compression import BOM, errors_of_reading, open_plain
from coinhaze.formats.ethereum.etl import TRACES, stated_blocks, trace_rows
from coinhaze.formats.ethereum.traces import BlockBuffer
from coinhaze.formats.tabular.delimited import Piece
from coinhaze.ledger.batches import TEXT, Batch
from coinhaze.ledger.columns import CheckedColumns

LARGEST_FILE = 1 << 30  # bytes, unpacked; a block has some millions
_QUANTITY = re.compile("0x[0-9a-fA-F]{1,64}")


class TraceAction(msgspec.Struct, rename="camel"):
    """What a call, creation, destruction or reward did, as nodes tell it."""

    sender: str | None = msgspec.field(default=None, name="from")
    to: str | None = None
    value: str | None = None
    call_type: str | None = None
    address: str | None = None
    refund_address: str | None = None
    balance: str | None = None
    author: str | None = None
    reward_type: str | None = None


class TraceResult(msgspec.Struct):
    """What came of it: the address of a contract that was made."""

    address: str | None = None


class _Trace(msgspec.Struct):
    action: TraceAction
    type: str
    block_number: int
    trace_address: list[int]
    block_hash: str | None = None
    result: TraceResult | None = None
    transaction_hash: str | None = None
    transaction_position: int | None = None
    error: str | None = None


class _Block(msgspec.Struct):
    block_number: int
    traces: list[_Trace]


_decoder = msgspec.json.Decoder(_Block)


def recognises(head: bytes) -> bool:
    """Tell whether a file begins with a block that goes on with traces."""
    start = head.lstrip()
    keys = (b'"block_number"', b'"miner"', b'"traces"', b'"action"')
    return start.startswith(b"{") and all(key in start for key in keys)


def batches(path: Path) -> Iterator[Batch]:
    """Read one file."""
    block = _block(path)
    rows = [_row(trace, k, path, block.block_number) for k, trace in enumerate(block.traces)]
    if not rows:
        return
    table = pa.table({name: pa.array([row[name] for row in rows], TEXT) for name in rows[0]})

    def where(row: int) -> str:
        return _where(path, row)

    read = path.stat().st_size
    piece = Piece(CheckedColumns(table, where), 0, read)
    blocks = stated_blocks(piece.columns, TRACES)
    if blocks is not None:
        first = blocks["row"].to_pylist()
        stated = blocks.drop_columns(["row"])
        yield Batch({"blocks": stated}, lambda _, row: where(first[row]), read)
    pool = BlockBuffer(path)
    yield from pool.add(trace_rows(piece), read)
    yield from pool.rest(read)


def _where(path: Path, row: int) -> str:
    return f"{path}: trace {row + 1}"


def _block(path: Path) -> _Block:
    with errors_of_reading(path), open_plain(path) as file:
        content = bytes(file.read(LARGEST_FILE)).removeprefix(BOM)
    try:
        return _decoder.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        what = f"no block of mev-inspect: {error}"
        raise LedgerError(str(path), what, value=content[:80]) from None


def _row(trace: _Trace, number: int, path: Path, height: int) -> dict[str, Any]:
    """Write a trace as ethereum-etl does."""
    if trace.block_number != height:
        what = f"a trace of another block than {height}"
        raise LedgerError(_where(path, number), what, value=trace.block_number)
    action, made = trace.action, trace.result.address if trace.result else None
    sender, to, value = {
        "create": (action.sender, made, action.value),
        "suicide": (action.address, action.refund_address, action.balance),
        "reward": (None, action.author, action.value),
    }.get(trace.type, (action.sender, action.to, action.value))
    position = trace.transaction_position
    return {
        "block_number": str(trace.block_number),
        "block_hash": trace.block_hash,
        "transaction_hash": trace.transaction_hash,
        "transaction_index": None if position is None else str(position),
        "from_address": sender,
        "to_address": to,
        "value": None if value is None else str(_quantity(value, number, path)),
        "trace_type": trace.type,
        "call_type": action.call_type,
        "reward_type": action.reward_type,
        "trace_address": ",".join(map(str, trace.trace_address)),
        "error": trace.error,
    }


def _quantity(text: str, number: int, path: Path) -> int:
    if not _QUANTITY.fullmatch(text):
        raise LedgerError(_where(path, number), "value is no hexadecimal amount", value=text)
    return int(text, 16)
