"""cryo's datasets erc20_transfers, native_transfers and traces, in Parquet or CSV.

Addresses and hashes are bytes, or text after `--hex`. An amount is in up to three columns: 32 bytes
(`value_binary`), digits (`value_string`) and a double (`value_f64`), of which only the first two
are exact. What a file cannot show, and so is said and never mended:

- Collected by transaction, erc20_transfers are approvals instead of transfers.
- native_transfers lists failed calls, unless `--exclude-failed` was given, and code that is
  borrowed (delegatecall) with its caller's value, as if money had moved.
- In some published native_transfers senders and recipients are swapped.

Traces say which calls failed or borrow code: what moved is found as in other traces. The author of
a block stands where the sender should be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.errors import LedgerError
from coinhaze.formats.ethereum import etl
from coinhaze.formats.ethereum.traces import AFTER_ALL, ZERO_ADDRESS
from coinhaze.formats.tabular.column_use import in_small_letters
from coinhaze.formats.tabular.delimited import Piece
from coinhaze.formats.tabular.table_rows import (
    TableLayout,
    column_names,
    names_in,
    pieces,
)
from coinhaze.formats.transfers.columns import AS_NAMED, ColumnChoice
from coinhaze.ledger.batches import NUMBER, Batch, with_columns
from coinhaze.ledger.columns import HASH_DIGITS, HIGHEST_BLOCK, CheckedColumns

EXACT = ("value_binary", "value_string")  # the better one first
LOSSY = ("value_f64", "value_f32", "value_u64", "value_u32")
_SHARED = ("block_number", "transaction_hash", "transaction_index", "from_address", "to_address")
ERC20 = TableLayout("erc20_transfers", (*_SHARED, "log_index", "erc20"), ("block_hash",))
NATIVE = TableLayout("native_transfers", (*_SHARED, "transfer_index"), ("block_hash",))
TRACES = TableLayout(
    "traces",
    (
        "block_number", "transaction_hash", "trace_address", "action_from", "action_to",
        "action_value", "action_type", "action_call_type", "result_address", "error",
    ),
    ("transaction_index", "transaction_position", "action_reward_type", "block_hash"),
)  # fmt: skip
# What tells each from the others, so that one that lacks a column is still known.
_MARKS: dict[TableLayout, tuple[str, ...]] = {
    TRACES: ("action_from", "action_type"),
    ERC20: ("erc20", "to_address"),
    NATIVE: ("transfer_index", "to_address"),
}
# Datasets that tell no transfers, by what marks them, and what to collect instead.
_OTHERS: dict[str, tuple[tuple[str, ...], str]] = {
    "transactions": (("transaction_hash", "from_address", "gas_price"), "traces"),
    "erc721_transfers": (("erc721", "to_address"), "erc20_transfers"),
    "erc20_approvals": (("erc20", "spender_address"), "erc20_transfers"),
    "logs": (("topic0", "topic1", "log_index"), "erc20_transfers"),
}
UNNEEDED = (
    *EXACT, *LOSSY, "chain_id", "subtraces", "action_gas", "action_input", "action_init",
    "result_gas_used", "result_output", "result_code",
)  # fmt: skip
SWAP = "--format cryo --columns from=to_address,to=from_address"
_NO_ADDRESS = "0x" + "0" * HASH_DIGITS  # of a contract whose creation failed
_NOTES = {
    ERC20: "cryo's erc20_transfers: collected by transaction they would be approvals, not "
    "transfers, which a file cannot show; collect them by block",
    NATIVE: "cryo's native_transfers also list delegatecalls and, without --exclude-failed, failed "
    "calls as if money had moved: collect traces, which tell them apart; published files "
    f"with senders and recipients swapped are read by {SWAP}",
}


def recognises(head: bytes) -> bool:
    """Tell by its header whether a file is one of cryo's tables, in CSV."""
    return not head.lstrip().startswith((b"{", b"[")) and recognises_columns(names_in(head))


def recognises_columns(names: Sequence[str]) -> bool:
    """Tell by the names of its columns whether a file is one of cryo's."""
    names = in_small_letters(names)
    marks = [*_MARKS.values()]
    if any(name.startswith("value_") for name in names) or "topic0" in names:
        marks += [marks for marks, _ in _OTHERS.values()]
    elif "chain_id" not in names:
        marks = [_MARKS[TRACES]]
    return any(set(mark) <= set(names) for mark in marks)


def needs(names: Sequence[str]) -> list[tuple[list[str], list[str]]]:
    """Give for each table the columns it needs that are there, and those that are not."""
    return [layout.present(in_small_letters(names)) for layout in _MARKS]


def batches(path: Path, *, choice: ColumnChoice = AS_NAMED) -> Iterator[Batch]:
    """Read one file; columns that a user names replace those of sender and recipient."""
    names = column_names(path, any_case=True)
    layout = _layout(path, names)
    if layout is TRACES:
        if choice:
            fix = "leave out --columns and --decimals"
            raise LedgerError(f"{path}:1", "the columns of cryo's traces are known", fix=fix)
        found = etl.trace_batches(path, map(_as_etl, pieces(path, TRACES, any_case=True)))
    else:
        found = _transfers(path, layout, names, choice)
    yield from with_columns(found, layout.use(names, UNNEEDED))


def _layout(path: Path, names: Sequence[str]) -> TableLayout:
    where = f"{path}:1"
    layout = next((known for known, mark in _MARKS.items() if set(mark) <= set(names)), None)
    if layout is None:
        for name, (mark, instead) in _OTHERS.items():
            if set(mark) <= set(names):
                fix = f"collect {instead}: cryo {instead} --blocks as before"
                raise LedgerError(where, f"cryo's {name} do not say what moved", fix=fix)
        raise LedgerError(where, "no table of cryo", value=list(names)[:20])
    _, gone = layout.present(names)
    if layout is TRACES and not {"transaction_index", "transaction_position"} & set(names):
        gone.append("transaction_index")
    if gone:
        what = f"cryo's {layout.name} without {', '.join(gone)}"
        raise LedgerError(where, what, fix="collect it again with all its columns")
    return layout


def _transfers(
    path: Path, layout: TableLayout, names: Sequence[str], choice: ColumnChoice
) -> Iterator[Batch]:
    chosen = choice.found(names, f"{path}:1")
    other = [what for what in chosen if what not in ("from", "to", "amount")]
    if other or choice.decimals:
        what = f"cryo's {layout.name} are in the smallest unit and have known columns"
        fix = "leave out --decimals; of --columns only from, to and amount can be given"
        raise LedgerError(f"{path}:1", what, fix=fix)
    amount = chosen.get("amount") or next((name for name in EXACT if name in names), "")
    if amount not in EXACT:
        others = [amount] if amount else [name for name in names if name.startswith("value")]
        what = f"with {', '.join(others)} for the amount, which loses digits"
        what = f"cryo's {layout.name} {what if others else 'without an amount'}"
        fix = "collect it again with --u256-types binary"
        raise LedgerError(f"{path}:1", what, fix=fix)
    sender, recipient = (
        chosen.get(*pair) for pair in (("from", "from_address"), ("to", "to_address"))
    )
    needed = dict.fromkeys((*layout.needed, sender, recipient, amount))
    every = replace(layout, needed=tuple(needed))
    notes = (_NOTES[layout], *([f"read as given: {choice}"] if choice else []))
    for piece in pieces(path, every, any_case=True):
        table = _rows(piece.columns, layout, sender, recipient, amount)
        yield replace(etl.table_batch(piece, layout, table), notes=notes)
        notes = ()


def _rows(
    columns: CheckedColumns, layout: TableLayout, sender: str, recipient: str, amount: str
) -> pa.Table:
    native = layout is NATIVE
    height = columns.numbers("block_number", HIGHEST_BLOCK)
    txid = columns.hashes("transaction_hash", optional=native)
    position = columns.numbers("transaction_index", AFTER_ALL, optional=native)
    rewards = etl.outside_name(pa.repeat("reward", len(columns)), height)
    value = (columns.packed_amounts if amount == EXACT[0] else columns.amounts)(amount)
    moved = etl.has_moved(value)
    if native:
        token = pa.repeat("", len(columns))
        kind = pc.if_else(pc.is_null(txid), "reward", "call")
        to, moved = _created(columns, recipient, moved)
    else:
        token = columns.addresses("erc20")
        kind = pa.repeat("token", len(columns))
        to = columns.addresses(recipient)
        moved = pc.and_(moved, pc.not_equal(token, etl.ETHER_LOGGER))
    return etl.transfers_of(
        {
            "height": height,
            "position": pc.fill_null(position, pa.scalar(AFTER_ALL, NUMBER)),
            "step": columns.numbers("transfer_index" if native else "log_index", AFTER_ALL),
            "txid": pc.coalesce(txid, rewards),
            "token": token,
            "sender": columns.addresses(sender),
            "recipient": to,
            "amount": value,
            "kind": kind,
            "time": pa.nulls(len(columns), NUMBER),
        },
        moved,
    )


def _created(columns: CheckedColumns, recipient: str, moved: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Give recipients; a contract whose creation failed has none, and nothing moved."""
    names = columns.names(recipient)
    failed = pc.equal(names, _NO_ADDRESS)
    if not pc.any(failed).as_py():
        return columns.addresses(recipient), moved
    names = pc.if_else(failed, ZERO_ADDRESS, names)
    at = columns.table.column_names.index(recipient)
    named = CheckedColumns(columns.table.set_column(at, recipient, names), columns.where)
    return named.addresses(recipient), pc.and_(moved, pc.invert(failed))


def _as_etl(piece: Piece) -> Piece:
    """Call the columns of traces as ethereum-etl does."""
    columns = piece.columns
    kind, paid, to = (
        columns.texts("action_type"),
        *(columns.names(name, optional=True) for name in ("action_from", "action_to")),
    )
    created = columns.names("result_address", optional=True)
    to = pc.if_else(pc.equal(kind, "reward"), paid, pc.coalesce(to, created))
    index = "transaction_index"
    index = index if columns.has(index) else "transaction_position"
    place = columns.plain("trace_address")
    if not pa.types.is_string(place.type):
        raise columns.refused_type("trace_address", place, "places such as 0_1")
    table = {
        "block_number": columns.plain("block_number"),
        "transaction_hash": columns.names("transaction_hash", optional=True),
        "transaction_index": columns.plain(index),
        "from_address": paid,
        "to_address": to,
        "value": columns.plain("action_value"),
        "trace_type": kind,
        "call_type": pc.replace_substring(columns.texts("action_call_type"), "_", ""),
        "trace_address": pc.replace_substring(place, "_", ","),
        "reward_type": columns.texts("action_reward_type"),
        "error": columns.texts("error"),
    }
    if columns.has("block_hash"):
        table["block_hash"] = columns.names("block_hash", optional=True)
    return replace(piece, columns=CheckedColumns(pa.table(table), columns.where))
