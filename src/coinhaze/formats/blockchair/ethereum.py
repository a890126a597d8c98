"""Blockchair dumps of Ethereum: calls, transactions, ERC-20 transfers and blocks, a file a day.

Hexadecimal has no 0x. What one cannot guess:

- Rewards are rows of type synthetic_coinbase, without sender and hash; which are for uncles is not
  given. They come from the zero address here.
- Calls do not tell the index of their transaction, ERC-20 transfers neither that nor their log
  index: the order of the rows in the file stands for them. Two equal rows of ERC-20 are two
  transfers; two calls at one place of a transaction are one call.
- Transactions tell nothing of the money that contracts move. Take calls where there are any, never
  both: the call that a transaction makes has the key of that transaction, so that the store
  refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.formats.blockchair.rows import Mined, blocks_batch, is_one_of, needs_of, read_dump
from coinhaze.formats.ethereum.etl import ETHER_LOGGER
from coinhaze.formats.ethereum.traces import (
    AFTER_ALL,
    DEEPEST,
    HELD_SCHEMA,
    IDLE_CALLS,
    ZERO_ADDRESS,
    BlockBuffer,
    places,
    telling,
)
from coinhaze.formats.tabular.table_rows import TableLayout
from coinhaze.ledger.batches import NUMBER, TEXT, Batch, with_columns
from coinhaze.ledger.columns import HIGHEST_BLOCK, CheckedColumns

CALLS = TableLayout(
    "calls",
    (
        "block_id", "transaction_hash", "index", "time", "failed", "type", "sender", "recipient",
        "value", "transferred",
    ),
)  # fmt: skip
TRANSACTIONS = TableLayout(
    "transactions",
    ("block_id", "index", "hash", "time", "failed", "type", "sender", "recipient", "value"),
)
TOKENS = TableLayout(
    "erc-20 transactions",
    ("block_id", "transaction_hash", "time", "token_address", "sender", "recipient", "value"),
)
BLOCKS = TableLayout("blocks", ("id", "hash", "time", "miner", "uncle_count"))
LAYOUTS = (CALLS, TOKENS, TRANSACTIONS, BLOCKS)
# Columns that the tables have and that are not needed.
UNNEEDED = (
    "call_count", "internal_value", "fee", "gas_used", "gas_limit", "gas_price", "input_hex",
    "output_hex", "nonce", "v", "r", "s", "depth", "fail_reason", "child_call_count",
    "token_name", "token_symbol", "token_decimals", "size", "extra_data_hex", "difficulty",
    "logs_bloom", "mix_hash", "receipts_root", "sha3_uncles", "state_root", "total_difficulty",
    "transactions_root", "transaction_count", "synthetic_transaction_count",
    "synthetic_call_count", "value_total", "internal_value_total", "generation",
    "uncle_generation", "fee_total", "reward", "base_fee_per_gas",
)  # fmt: skip
COINBASE = "synthetic_coinbase"
KINDS = {
    "call": "call",
    "create": "create",
    "create2": "create",
    "selfdestruct": "selfdestruct",
    COINBASE: "reward",
}
TRANSACTION_TYPES = ("call", "create", "call_tree", "create_tree", COINBASE)
_MAXIMUM = 2**31 - 1
_ROWS = 2**62 - 1
_MIXED = (
    "blocks rise and fall through the file, and calls and ERC-20 transfers tell no index: in their "
    "block they keep the order of the file"
)


def recognises(head: bytes) -> bool:
    """Tell whether the first line is the header of one of the tables."""
    return is_one_of(LAYOUTS, head)


def needs(names: Sequence[str]) -> list[tuple[list[str], list[str]]]:
    """Give for each table the columns it needs that are there, and those that are not."""
    return needs_of(LAYOUTS, names)


def batches(path: Path) -> Iterator[Batch]:
    """Read one file."""
    what = "Blockchair table of Ethereum's calls, transactions, ERC-20 transfers or blocks"
    layout, names, chunks = read_dump(path, LAYOUTS, what=what)
    found = _batches(path, layout, chunks)
    yield from with_columns(found, layout.use(names, UNNEEDED))


def _batches(path: Path, layout: TableLayout, chunks: Iterator[Mined]) -> Iterator[Batch]:
    if layout is BLOCKS:
        for mined in chunks:
            yield blocks_batch(mined, mined.columns.hashes("hash"))
        return
    convert: Callable[[Mined], dict[str, pa.Array]] = {
        CALLS: _calls, TRANSACTIONS: _transactions, TOKENS: _tokens,
    }[layout]  # fmt: skip
    pool, read = BlockBuffer(path), 0
    direction = _Direction()
    for given in chunks:
        mined, read = direction.oldest_first(given), given.read
        table = pa.table(convert(mined) | {"row": mined.row})
        table = table.select(HELD_SCHEMA.names).cast(HELD_SCHEMA)
        yield from pool.add(telling(table), read)
    yield from pool.rest(read)
    if direction.mixed and layout is not TRANSACTIONS:
        yield Batch({}, read=read, notes=(_MIXED,))


class _Direction:
    """Whether a file runs oldest or newest first: nothing but the rows orders those of a block."""

    def __init__(self) -> None:
        self.height = -1
        self.falls = self.rises = False
        self.sign = 0

    @property
    def mixed(self) -> bool:
        return self.falls and self.rises

    def oldest_first(self, mined: Mined) -> Mined:
        """Number rows so that they rise in time; the first blocks tell which way."""
        heights = np.asarray(mined.columns.numbers("block_id", HIGHEST_BLOCK))
        before = self.height if self.height >= 0 or not len(heights) else int(heights[0])
        change = np.diff(heights, prepend=before)
        self.falls |= bool((change < 0).any())
        self.rises |= bool((change > 0).any())
        self.height = int(heights[-1]) if len(heights) else self.height
        if not self.sign:
            self.sign = -1 if self.falls and not self.rises else 1 if self.rises else 0
        if self.sign >= 0:
            return mined
        row = pa.array(_ROWS - np.asarray(mined.row))
        return Mined(mined.columns, row, mined.read)


def _calls(mined: Mined) -> dict[str, pa.Array]:
    columns = mined.columns
    how, amount = columns.texts("type"), columns.amounts("value")
    reward = _rewards(mined, how, (*KINDS, *IDLE_CALLS))
    failed = columns.flags("failed")
    idle = pc.is_in(how, value_set=pa.array(IDLE_CALLS))
    moves = pc.and_(columns.flags("transferred"), pc.and_not(pc.not_equal(amount, "0"), idle))
    kind = pa.array(list(KINDS.values())).take(pc.index_in(how, value_set=pa.array(list(KINDS))))
    shared = _shared(mined, "transaction_hash", reward, pc.and_not(moves, failed))
    return shared | {
        "position": pc.if_else(reward, pa.scalar(AFTER_ALL), pa.scalar(None, NUMBER)),
        "place": _call_place(mined, reward),
        "failed": failed,
        # Nothing says that a call inside a failed one is marked as failed.
        "stated": reward,
        "moves": pc.and_not(moves, failed),
        "token": mined.repeat(""),
        "amount": amount,
        "kind": kind,
    }


def _transactions(mined: Mined) -> dict[str, pa.Array]:
    columns = mined.columns
    how, amount = columns.texts("type"), columns.amounts("value")
    reward = _rewards(mined, how, TRANSACTION_TYPES)
    failed = columns.flags("failed")
    index = columns.numbers("index", _MAXIMUM, optional=True)
    columns.require("index", index, pc.invert(reward))
    moves = pc.and_not(pc.not_equal(amount, "0"), failed)
    shared = _shared(mined, "hash", reward, moves)
    return shared | {
        "position": pc.if_else(reward, pa.scalar(AFTER_ALL), index),
        "place": pc.if_else(reward, _row_place(mined), pa.scalar(b"")),
        "failed": failed,
        "stated": mined.repeat(True),
        "moves": moves,
        "token": mined.repeat(""),
        "amount": amount,
        "kind": pc.if_else(reward, "reward", "transaction"),
    }


def _tokens(mined: Mined) -> dict[str, pa.Array]:
    columns = mined.columns
    amount, token = columns.amounts("value"), columns.addresses("token_address")
    moves = pc.and_(pc.not_equal(amount, "0"), pc.not_equal(token, ETHER_LOGGER))
    shared = _shared(mined, "transaction_hash", mined.repeat(False), moves)
    return shared | {
        "position": pa.nulls(len(columns), NUMBER),
        "place": _row_place(mined),
        "failed": mined.repeat(False),
        "stated": mined.repeat(True),
        "moves": moves,
        "token": token,
        "amount": amount,
        "kind": mined.repeat("token"),
    }


def _rewards(mined: Mined, how: pa.Array, types: tuple[str, ...]) -> pa.Array:
    """Tell which rows are rewards, refusing types that are not known."""
    mined.columns.require("type", how, mined.repeat(True))
    known = pc.is_in(how, value_set=pa.array(types))
    mined.columns.refuse("type", pc.invert(known), "is none of " + ", ".join(types))
    return pc.equal(how, COINBASE)


def _shared(mined: Mined, txid: str, reward: pa.Array, moves: pa.Array) -> dict[str, pa.Array]:
    """Give what is the same in all tables: when, in what, from whom and to whom."""
    columns = mined.columns
    height = columns.numbers("block_id", HIGHEST_BLOCK)
    hashes = columns.hashes(txid, optional=True)
    columns.require(txid, hashes, pc.invert(reward))
    rewarded = pc.binary_join_element_wise("reward", pc.cast(height, TEXT), ":")
    sender = columns.addresses("sender", optional=True)
    sender = pc.if_else(reward, ZERO_ADDRESS, sender)
    recipient = columns.addresses("recipient", optional=True)
    columns.require("sender", sender, moves)
    columns.require("recipient", recipient, moves)
    return {
        "height": height,
        "txid": pc.if_else(reward, rewarded, hashes),
        "sender": sender,
        "recipient": recipient,
        "time": columns.moments("time"),
    }


def _row_place(mined: Mined) -> pa.Array:
    """Make the row in the file stand for the place in the transaction."""
    row = np.asarray(mined.row)
    wide = np.stack([row >> 31, row & _MAXIMUM], axis=1).astype(">u4")
    fixed = pa.Array.from_buffers(pa.binary(8), len(row), [None, pa.py_buffer(wide.tobytes())])
    return pc.cast(fixed, pa.binary())


def _call_place(mined: Mined, reward: pa.Array) -> pa.Array:
    """Give the place below the call that the transaction makes, which has the index 0."""
    columns = mined.columns
    index = columns.texts("index")
    columns.require("index", index, pc.invert(reward))
    rooted = pc.match_substring_regex(index, r"^0(\.[0-9]+)*$")
    wrong = pc.and_not(pc.invert(rooted), reward)
    columns.refuse("index", wrong, "does not begin with 0, the transaction's own call")
    below = pc.replace_substring_regex(index, r"^0(\.|$)", "")
    inside = pc.if_else(reward, pa.scalar(None, TEXT), below)
    column = columns.table.column_names.index("index")
    inner = CheckedColumns(columns.table.set_column(column, "index", inside), columns.where)
    return pc.if_else(reward, _row_place(mined), places(inner, "index", ".", DEEPEST))
