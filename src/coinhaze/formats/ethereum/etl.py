"""ethereum-etl, BigQuery and AWS: transactions, traces, token transfers and blocks of Ethereum.

CSV, JSON lines or Parquet, by column name. What one cannot guess:

- Transactions tell nothing of the money that contracts move, and without receipts (`status` or
  `receipt_status`; empty before Byzantium) not which failed: those count as done. Take traces where
  there are any. Never both: the call that a transaction makes has the key of that transaction, so
  that the store refuses it.
- A contract made by a transaction whose receipt is not there is called `created by <hash>`.
- Token transfers of ERC-721 look the same, with the number of the token as the amount: choose by
  token. Their log index counts in the block, so it stands for the transaction's index too.
- The day files of ethereum-datafarm (`txfrom`, `txto`, ...) do not say which token they are of.
- AWS has amounts as doubles, which lose digits: a file is read only as far as they are exact.
- Traces of geth have no transaction hash: `<block>:<index>` is used. They do not tell what a
  selfdestruct moved, so one that did not fail itself is refused.
- Withdrawals from staking, in the rows of blocks, are in Gwei; here they are wei, as all else is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.errors import LedgerError
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
from coinhaze.formats.ethereum.withdrawals import LAST_PLACE, withdrawals
from coinhaze.formats.tabular.column_use import in_small_letters
from coinhaze.formats.tabular.delimited import Piece
from coinhaze.formats.tabular.table_rows import (
    TableLayout,
    column_names,
    names_in,
    pieces,
)
from coinhaze.ledger.batches import NUMBER, TEXT, Batch, table_of, with_columns
from coinhaze.ledger.columns import HIGHEST_BLOCK, CheckedColumns

UNNAMED_TOKEN = "unnamed"
# The address that is to log moves of ether as if it were a token (EIP-7708).
ETHER_LOGGER = "0x" + "f" * 39 + "e"
TRANSACTIONS = TableLayout(
    "transactions",
    ("hash", "block_number", "transaction_index", "from_address", "to_address", "value"),
    ("receipt_status", "status", "receipt_contract_address", "block_timestamp", "block_hash"),
)
TRACES = TableLayout(
    "traces",
    (
        "block_number", "transaction_hash", "transaction_index", "from_address", "to_address",
        "value", "trace_type", "call_type", "trace_address",
    ),
    ("reward_type", "error", "status", "trace_id", "block_timestamp", "block_hash"),
)  # fmt: skip
TOKENS = TableLayout(
    "token_transfers",
    (
        "token_address", "from_address", "to_address", "value", "transaction_hash", "log_index",
        "block_number",
    ),
    ("block_timestamp", "block_hash"),
)  # fmt: skip
DATAFARM = TableLayout(
    "datafarm",
    ("blocknumber", "txhash", "txindex", "logindex", "txfrom", "txto", "txvalue"),
    ("timestamp",),
)
BLOCKS = TableLayout("blocks", ("number", "hash", "parent_hash", "timestamp"), ("withdrawals",))
LAYOUTS = (TRACES, TOKENS, DATAFARM, TRANSACTIONS, BLOCKS)
# Columns that the tables have and that are not needed.
UNNEEDED = (
    "nonce", "gas", "gas_price", "input", "max_fee_per_gas", "max_priority_fee_per_gas",
    "transaction_type", "max_fee_per_blob_gas", "blob_versioned_hashes", "status", "error",
    "receipt_cumulative_gas_used", "receipt_gas_used", "receipt_effective_gas_price",
    "receipt_root", "receipt_blob_gas_price", "receipt_blob_gas_used", "receipt_l1_fee",
    "receipt_l1_gas_used", "receipt_l1_gas_price", "receipt_l1_fee_scalar", "output",
    "gas_used", "subtraces", "trace_id", "reward_type", "sha3_uncles", "logs_bloom",
    "transactions_root", "state_root", "receipts_root", "miner", "difficulty",
    "total_difficulty", "size", "extra_data", "gas_limit", "transaction_count",
    "base_fee_per_gas", "withdrawals_root", "blob_gas_used", "excess_blob_gas", "date",
    "last_modified", "item_id", "item_timestamp", "type", "r", "s", "v", "access_list",
)  # fmt: skip
KINDS = {
    "call": "call",
    "create": "create",
    "suicide": "selfdestruct",
    "selfdestruct": "selfdestruct",
    "reward": "reward",
    "genesis": "genesis",
    # The irregular change of 2016 took from some accounts for another, as calls do.
    "daofork": "call",
}
MADE = ("reward", "genesis")
OUTSIDE = (*MADE, "daofork")  # of any transaction


def recognises(head: bytes) -> bool:
    """Tell by the first line whether it is one of the tables, in CSV or JSON lines.

    The columns of Parquet stand at its end: ask `recognises_columns`.
    """
    if _fits(names_in(head, any_case=True)):
        return True
    # A line of JSON longer than the head; bitcoin-etl has no such name.
    start = head.lstrip()
    return start.startswith(b"{") and b"\n" not in start and b'"from_address"' in start


def recognises_columns(names: Sequence[str]) -> bool:
    """Tell by the names of its columns whether a file has the format."""
    return _fits(in_small_letters(names))


def _fits(names: Sequence[str]) -> bool:
    return any(layout.fits(names) for layout in LAYOUTS)


def needs(names: Sequence[str]) -> list[tuple[list[str], list[str]]]:
    """Give for each table the columns it needs that are there, and those that are not."""
    return [layout.present(in_small_letters(names)) for layout in LAYOUTS]


def batches(path: Path) -> Iterator[Batch]:
    """Read one file."""
    names = column_names(path, any_case=True)
    layout = next((layout for layout in LAYOUTS if layout.fits(names)), None)
    if layout is None:
        what = "no table of ethereum-etl" if any(names) else "nothing tells which table this is"
        known = "; ".join(f"{known.name}: {', '.join(known.needed)}" for known in LAYOUTS)
        raise LedgerError(f"{path}:1", what, value=names[:40], fix=f"columns of {known}")
    yield from with_columns(_table_batches(path, layout, names), layout.use(names, UNNEEDED))


def _table_batches(path: Path, layout: TableLayout, names: Sequence[str]) -> Iterator[Batch]:
    if layout is TRACES:
        if "status" not in names and "error" not in names:
            what = "traces with neither `status` nor `error`: nothing tells which calls failed"
            raise LedgerError(f"{path}:1", what, value=list(names)[:40])
        yield from trace_batches(path, pieces(path, TRACES, any_case=True))
        return
    convert: Callable[[CheckedColumns], pa.Table] = {
        TRANSACTIONS: _transactions, TOKENS: _tokens, DATAFARM: _datafarm, BLOCKS: _withdrawn,
    }[layout]  # fmt: skip
    for piece in pieces(path, layout, any_case=True):
        yield table_batch(piece, layout, convert(piece.columns))


def table_batch(piece: Piece, layout: TableLayout, transfers: pa.Table) -> Batch:
    """Put transfers, with the rows they stand on, and the blocks described in one batch."""
    rows = {"transfers": transfers["row"]}
    tables = {"transfers": transfers.drop_columns(["row"])}
    blocks = stated_blocks(piece.columns, layout)
    if blocks is not None:
        rows["blocks"] = blocks["row"]
        tables["blocks"] = blocks.drop_columns(["row"])

    def where(table: str, row: int) -> str:
        return piece.columns.where(rows[table][row].as_py())

    return Batch(tables, where, piece.read)


def transfers_of(columns: dict[str, pa.Array], kept: pa.Array) -> pa.Table:
    """Make transfers of the rows that are kept, and add which rows they were."""
    table = table_of("transfers", columns)
    table = table.append_column("row", pa.array(np.arange(len(table))))
    return table.filter(kept)


def stated_blocks(columns: CheckedColumns, layout: TableLayout) -> pa.Table | None:
    """List the blocks that rows tell of, if any, each once, with the row it was met on first."""
    if layout is BLOCKS:
        names, parent = ("number", "hash", "timestamp"), columns.hashes("parent_hash")
    elif columns.has("block_hash"):
        names, parent = ("block_number", "block_hash", "block_timestamp"), None
    else:
        return None
    height, name, time = names
    table = pa.table(
        {
            "height": columns.numbers(height, HIGHEST_BLOCK),
            "hash": columns.hashes(name, optional=layout is not BLOCKS),
            "previous": pa.nulls(len(columns), TEXT) if parent is None else parent,
            "time": columns.moments(time),
            "row": pa.array(np.arange(len(columns))),
        }
    )
    table = table.filter(pc.is_valid(table["hash"]))
    if len(table) == 0:
        return None
    keys = ["height", "hash", "previous", "time"]
    table = table.group_by(keys, use_threads=False).aggregate([("row", "min")])
    blocks = table_of("blocks", {name: table[name] for name in keys})
    return blocks.append_column("row", table["row_min"])


def _repeat(value: object, n: int) -> pa.Array:
    return pa.repeat(pa.scalar(value), n)


def has_moved(amount: pa.Array) -> pa.Array:
    """Tell which amounts are above 0."""
    return pc.fill_null(pc.not_equal(amount, "0"), False)


def _transactions(columns: CheckedColumns) -> pa.Table:
    n = len(columns)
    txid = columns.hashes("hash")
    created = pc.binary_join_element_wise("created by ", txid, "")
    contract = columns.addresses("receipt_contract_address", optional=True)
    amount = columns.amounts("value")
    done = columns.numbers("status", 1, optional=True)
    done = pc.coalesce(columns.numbers("receipt_status", 1, optional=True), done)
    return transfers_of(
        {
            "height": columns.numbers("block_number", HIGHEST_BLOCK),
            "position": columns.numbers("transaction_index", LAST_PLACE),
            "step": _repeat(0, n),
            "txid": txid,
            "token": _repeat("", n),
            "sender": columns.addresses("from_address"),
            "recipient": pc.coalesce(
                columns.addresses("to_address", optional=True), contract, created
            ),
            "amount": amount,
            "kind": _repeat("transaction", n),
            "time": columns.moments("block_timestamp"),
        },
        pc.and_(has_moved(amount), pc.fill_null(pc.not_equal(done, 0), True)),
    )


def _tokens(columns: CheckedColumns) -> pa.Table:
    log = columns.numbers("log_index", LAST_PLACE)
    token, amount = columns.addresses("token_address"), columns.amounts("value")
    return transfers_of(
        {
            "height": columns.numbers("block_number", HIGHEST_BLOCK),
            "position": log,
            "step": log,
            "txid": columns.hashes("transaction_hash"),
            "token": token,
            "sender": columns.addresses("from_address"),
            "recipient": columns.addresses("to_address"),
            "amount": amount,
            "kind": _repeat("token", len(columns)),
            "time": columns.moments("block_timestamp"),
        },
        pc.and_(has_moved(amount), pc.not_equal(token, ETHER_LOGGER)),
    )


def _datafarm(columns: CheckedColumns) -> pa.Table:
    amount = columns.amounts("txvalue")
    return transfers_of(
        {
            "height": columns.numbers("blocknumber", HIGHEST_BLOCK),
            "position": columns.numbers("txindex", LAST_PLACE),
            "step": columns.numbers("logindex", LAST_PLACE),
            "txid": columns.hashes("txhash"),
            "token": _repeat(UNNAMED_TOKEN, len(columns)),
            "sender": columns.addresses("txfrom"),
            "recipient": columns.addresses("txto"),
            "amount": amount,
            "kind": _repeat("token", len(columns)),
            "time": columns.moments("timestamp"),
        },
        has_moved(amount),
    )


def _withdrawn(columns: CheckedColumns) -> pa.Table:
    paid = withdrawals(columns)
    row = paid["row"]
    height = columns.numbers("number", HIGHEST_BLOCK).take(row)
    n = len(row)
    transfers = {
        "height": height,
        "position": _repeat(AFTER_ALL, n),
        "step": paid["index"],
        "txid": outside_name(_repeat("withdrawal", n), height),
        "token": _repeat("", n),
        "sender": _repeat(ZERO_ADDRESS, n),
        "recipient": paid["address"],
        "amount": paid["wei"],
        "kind": _repeat("withdrawal", n),
        "time": columns.moments("timestamp").take(row),
    }
    return table_of("transfers", transfers).append_column("row", row).filter(has_moved(paid["wei"]))


def outside_name(what: pa.Array, height: pa.Array) -> pa.Array:
    """Name money that no transaction moved after what did and its block."""
    return pc.binary_join_element_wise(what, pc.cast(height, TEXT), ":")


def trace_batches(path: Path, found: Iterable[Piece]) -> Iterator[Batch]:
    """Settle traces, in the columns of this format, block by block."""
    pool = BlockBuffer(path)
    read = 0
    for piece in found:
        read = piece.read
        blocks = stated_blocks(piece.columns, TRACES)
        if blocks is not None:
            rows = blocks["row"]

            def where(_: str, row: int, piece: Piece = piece, rows: pa.Array = rows) -> str:
                return piece.columns.where(rows[row].as_py())

            yield Batch({"blocks": blocks.drop_columns(["row"])}, where, read)
        yield from pool.add(trace_rows(piece), read)
    yield from pool.rest(read)


def trace_rows(piece: Piece) -> pa.Table:
    """Bring traces to the form in which they are held; what can tell nothing is left out."""
    columns = piece.columns
    kind = columns.texts("trace_type")
    known = pc.is_in(kind, value_set=pa.array(list(KINDS)))
    columns.refuse("trace_type", pc.invert(known), "is none of " + ", ".join(KINDS))
    outside = pc.is_in(kind, value_set=pa.array(OUTSIDE))
    height = columns.numbers("block_number", HIGHEST_BLOCK)
    row = pa.array(np.arange(piece.first, piece.first + len(columns)))
    status = columns.numbers("status", 1, optional=True)
    failed = pc.or_(pc.fill_null(pc.equal(status, 0), False), pc.is_valid(columns.texts("error")))
    amount = columns.amounts("value", optional=True)
    moves = _moving(columns, kind, amount, failed)
    stated = pc.or_(pc.is_valid(status), outside)
    table = pa.table(
        {
            "height": height,
            "row": row,
            "txid": _trace_txid(columns, kind, outside, height),
            "position": _trace_position(columns, kind, outside),
            "place": _trace_place(columns, outside, row),
            "failed": failed,
            "stated": stated,
            "moves": moves,
            "token": _repeat("", len(columns)),
            **_parties(columns, kind, moves),
            "amount": amount,
            "kind": _trace_kind(columns, kind),
            "time": columns.moments("block_timestamp"),
        },
        schema=HELD_SCHEMA,
    )
    return telling(table)


def _moving(
    columns: CheckedColumns, kind: pa.Array, amount: pa.Array, failed: pa.Array
) -> pa.Array:
    """Tell which rows move money, if nothing above them failed."""
    how = columns.texts("call_type")
    alive = pc.invert(failed)
    silent = pc.and_(pc.is_null(amount), alive)
    fix = "geth does not tell what a selfdestruct moved; export traces from a node that does"
    columns.refuse("value", silent, "is missing", fix)
    calls = pc.and_(pc.equal(kind, "call"), pc.and_(has_moved(amount), alive))
    columns.require("call_type", how, calls)
    strange = pc.invert(pc.is_in(how, value_set=pa.array(["call", *IDLE_CALLS])))
    columns.refuse("call_type", pc.and_(calls, strange), "is not known")
    idle = pc.and_(pc.equal(kind, "call"), pc.is_in(how, value_set=pa.array(IDLE_CALLS)))
    return pc.and_(pc.and_(has_moved(amount), alive), pc.invert(idle))


def _parties(columns: CheckedColumns, kind: pa.Array, moves: pa.Array) -> dict[str, pa.Array]:
    sender = columns.addresses("from_address", optional=True)
    recipient = columns.addresses("to_address", optional=True)
    made = pc.is_in(kind, value_set=pa.array(MADE))
    sender = pc.if_else(made, ZERO_ADDRESS, sender)
    columns.require("from_address", sender, moves)
    columns.require("to_address", recipient, moves)
    return {"sender": sender, "recipient": recipient}


def _trace_kind(columns: CheckedColumns, kind: pa.Array) -> pa.Array:
    numbers = pc.index_in(kind, value_set=pa.array(list(KINDS)))
    names = pa.array(list(KINDS.values())).take(numbers)
    uncle = pc.and_(pc.equal(kind, "reward"), pc.equal(columns.texts("reward_type"), "uncle"))
    return pc.if_else(pc.fill_null(uncle, False), "uncle", names)


def _trace_txid(
    columns: CheckedColumns, kind: pa.Array, outside: pa.Array, height: pa.Array
) -> pa.Array:
    index = columns.numbers("transaction_index", LAST_PLACE, optional=True)
    columns.require("transaction_index", index, pc.invert(outside))
    unnamed = pc.binary_join_element_wise(pc.cast(height, TEXT), pc.cast(index, TEXT), ":")
    inside = pc.coalesce(columns.hashes("transaction_hash", optional=True), unnamed)
    return pc.if_else(outside, outside_name(kind, height), inside)


def _trace_position(columns: CheckedColumns, kind: pa.Array, outside: pa.Array) -> pa.Array:
    index = columns.numbers("transaction_index", LAST_PLACE, optional=True)
    last = pc.if_else(pc.equal(kind, "reward"), pa.scalar(AFTER_ALL, NUMBER), pa.scalar(0, NUMBER))
    return pc.if_else(outside, last, index)


def _trace_place(columns: CheckedColumns, outside: pa.Array, row: pa.Array) -> pa.Array:
    """Give the place in the tree; outside of one, the number in the trace's id, else its row."""
    place = places(columns, "trace_address", ",", DEEPEST)
    if not pc.any(outside).as_py():
        return place
    number = pc.struct_field(
        pc.extract_regex(columns.texts("trace_id"), r"_(?P<n>[0-9]{1,9})$"), "n"
    )
    number = pc.coalesce(pc.cast(number, NUMBER), row)
    wide = np.stack([np.asarray(number) >> 31, np.asarray(number) & LAST_PLACE], axis=1).astype(
        ">u4"
    )
    named = pa.Array.from_buffers(pa.binary(8), len(row), [None, pa.py_buffer(wide.tobytes())])
    return pc.if_else(outside, pc.cast(named, pa.binary()), place)
