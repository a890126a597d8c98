"""Columns of bitcoin-etl transactions, from JSON or Parquet -> batches.

Zcash exports show what goes into shielded pools as outputs of type "shielded" and what comes out as
inputs; which pool it was is not stated, so all goes to the pool named `shielded`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.errors import LedgerError
from coinhaze.formats.tabular.coin_rows import (
    MAXIMUM,
    InputRows,
    OutputRows,
    Place,
    RowNumbers,
    StatedBlock,
    TransactionRows,
    at_parents,
    check_range,
    coin_batch,
    numbered,
    take,
)
from coinhaze.ledger.batches import FLAG, NUMBER, Batch, table_of

POOL = "shielded"
NO_HASH = "0" * 64


@dataclass(frozen=True, eq=False)
class Heads:
    """One row a transaction; only hash and block_number are never null."""

    place: Place
    hash: pa.Array
    block_number: pa.Array
    block_hash: pa.Array
    block_timestamp: pa.Array
    index: pa.Array
    is_coinbase: pa.Array
    stated: Mapping[str, pa.Array]  # counts and totals of inputs and outputs, shielded ones too


@dataclass(frozen=True, eq=False)
class Ends:
    """One row an input or output; `parent` is the row of its transaction, in order.

    `script` is for outputs only, `spent_hash` and `spent_index` for inputs only.
    """

    parent: RowNumbers
    index: pa.Array
    value: pa.Array
    owner: pa.Array
    type: pa.Array
    script: pa.Array | None = None
    spent_hash: pa.Array | None = None
    spent_index: pa.Array | None = None

    def some(self, chosen: pa.Array) -> Ends:
        """Give the chosen rows."""
        rows = {name: getattr(self, name) for name in self.__dataclass_fields__}
        parent = rows.pop("parent")[chosen.to_numpy(zero_copy_only=False)]
        return Ends(parent, **{k: None if v is None else v.filter(chosen) for k, v in rows.items()})


def etl_batch(heads: Heads, inputs: Ends, outputs: Ends, read: int) -> Batch:
    """Check the columns and make a batch of them."""
    coinbase = _coinbases(heads, inputs)
    transactions = TransactionRows(
        heads.place,
        height=heads.block_number,
        txid=heads.hash,
        coinbase=coinbase,
        position=_positions(heads, coinbase),
        time=heads.block_timestamp,
    )
    hidden_inputs, hidden_outputs = _is(inputs.type, POOL), _is(outputs.type, POOL)
    flows = _flows(inputs.some(hidden_inputs), outputs.some(hidden_outputs), heads.place)
    batch = coin_batch(
        transactions,
        _outputs(outputs.some(pc.invert(hidden_outputs))),
        _inputs(inputs, pc.invert(hidden_inputs), coinbase, heads.place),
        blocks=_blocks(heads),
        flows=flows,
        read=read,
    )
    stated = _stated(heads, inputs, outputs, coinbase)
    if not stated:
        return batch
    made = batch.tables["transactions"]
    stated |= {"height": made["height"], "txid": made["txid"]}
    tables = {**batch.tables, "stated_transactions": table_of("stated_transactions", stated)}
    where = batch.where  # a transaction is stated in its own row

    def place(table: str, row: int) -> str:
        return where("transactions" if table == "stated_transactions" else table, row)

    return Batch(tables, place, batch.read)


def _stated(heads: Heads, inputs: Ends, outputs: Ends, coinbase: pa.Array) -> dict[str, object]:
    """Take what transactions say of their transparent inputs and outputs, coinbases' inputs apart.

    Before `enrich_transactions` inputs have no values, and their total means nothing.
    """
    found: dict[str, object] = {}
    for ends, count, total in (
        (inputs, "input_count", "input_total"),
        (outputs, "output_count", "output_total"),
    ):
        shielded = _is(ends.type, POOL).to_numpy(zero_copy_only=False)
        unvalued = ends.value.is_null().to_numpy(zero_copy_only=False)
        n = len(heads.hash)
        hidden = np.bincount(ends.parent[shielded], minlength=n)
        worth = np.zeros(n, dtype=np.int64)
        np.add.at(worth, ends.parent[shielded], np.asarray(ends.value.fill_null(0))[shielded])
        unknown = pa.array(np.bincount(ends.parent[unvalued], minlength=n) > 0)
        none = pa.scalar(None, NUMBER)
        for name, less in ((count, hidden), (total, worth)):
            if name not in heads.stated or heads.stated[name].null_count == n:
                continue
            column = pc.subtract(heads.stated[name], pa.array(less))
            column = pc.if_else(unknown, none, column) if name == total else column
            found[name] = pc.if_else(coinbase, none, column) if ends is inputs else column
    return found


def _coinbases(heads: Heads, inputs: Ends) -> pa.Array:
    if not heads.is_coinbase.null_count:
        return heads.is_coinbase
    with_inputs = set(inputs.parent.tolist())
    flags = heads.is_coinbase.to_pylist()
    for row, (flag, index) in enumerate(zip(flags, heads.index.to_pylist(), strict=True)):
        if flag is None:
            # Orchard, unknown to bitcoin-etl, leaves transactions of Zcash without inputs, so that
            # only the place in the block tells a coinbase for sure.
            if row not in with_inputs and index is None:
                raise LedgerError(heads.place(row), "is_coinbase and index are both missing")
            flags[row] = row not in with_inputs and index == 0
    return pa.array(flags, FLAG)


def _positions(heads: Heads, coinbase: pa.Array) -> pa.Array:
    wrong = pc.and_(coinbase, pc.fill_null(pc.not_equal(heads.index, 0), False))
    row = pc.index(wrong, True).as_py()
    if row >= 0:
        what = "index of a coinbase is not 0"
        raise LedgerError(heads.place(row), what, value=heads.index[row].as_py())
    return pc.if_else(coinbase, pa.scalar(0, NUMBER), heads.index)


def _flows(inputs: Ends, outputs: Ends, place: Place) -> Sequence[tuple[int, str, int]]:
    into: dict[int, int] = {}
    for ends, sign in ((outputs, 1), (inputs, -1)):
        check_range(
            ends.value, at_parents(ends.parent, place), field="shielded value", maximum=MAXIMUM
        )
        for row, value in zip(ends.parent.tolist(), ends.value.to_pylist(), strict=True):
            into[row] = into.get(row, 0) + sign * value
    return [(row, POOL, into[row]) for row in sorted(into) if into[row]]


def _outputs(outputs: Ends) -> OutputRows:
    is_data = _is(outputs.type, "nulldata")
    if outputs.script is not None:
        # Of a script too long for its column only the beginning counts.
        script = pc.fill_null(pc.starts_with(outputs.script, "6a"), False)
        is_data = pc.or_(is_data, script)
    return OutputRows(outputs.parent, outputs.index, outputs.value, outputs.owner, is_data)


def _inputs(inputs: Ends, shown: pa.Array, coinbase: pa.Array, place: Place) -> InputRows:
    assert inputs.spent_hash is not None
    of_coinbase = pc.and_(take(coinbase, inputs.parent), shown)
    nothing = pc.fill_null(pc.equal(inputs.spent_hash, NO_HASH), True)
    _refuse(pc.and_(of_coinbase, pc.invert(nothing)), inputs, place, "a coinbase spends a coin")
    real = pc.and_(shown, pc.invert(of_coinbase))
    _refuse(pc.and_(real, nothing), inputs, place, "an input that names no coin")
    vin = pc.coalesce(inputs.index, pa.array(numbered(inputs.parent)))
    kept = inputs.some(real)
    return InputRows(
        kept.parent, vin.filter(real), kept.spent_hash, kept.spent_index, kept.value, kept.owner
    )


def _refuse(wrong: pa.Array, inputs: Ends, place: Place, what: str) -> None:
    row = pc.index(wrong, True).as_py()
    if row >= 0:
        assert inputs.spent_hash is not None
        raise LedgerError(
            place(int(inputs.parent[row])), what, value=inputs.spent_hash[row].as_py()
        )


def _blocks(heads: Heads) -> dict[StatedBlock, int]:
    blocks: dict[StatedBlock, int] = {}
    stated = (heads.block_number, heads.block_hash, heads.block_timestamp)
    for row, (height, name, time) in enumerate(
        zip(*(column.to_pylist() for column in stated), strict=True)
    ):
        if name is not None and height is not None:
            blocks.setdefault(StatedBlock(height, name, None, time), row)
    return blocks


def _is(column: pa.Array, value: str) -> pa.Array:
    return pc.fill_null(pc.equal(column, value), False)


def owner_of(addresses: Sequence[str] | None) -> str | None:
    """Name an owner by its address, or the sorted set of several.

    >>> owner_of(["b", "a", "b"]), owner_of(["c"]), owner_of([]), owner_of(None)
    ('a,b', 'c', None, None)
    """
    if not addresses:
        return None
    return addresses[0] if len(addresses) == 1 else ",".join(sorted(set(addresses)))
