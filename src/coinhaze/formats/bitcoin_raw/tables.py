"""Columns of blocks -> tables of a batch, for readers of raw blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.formats.bitcoin_raw.wire import Ints, Octets, id_letters, text_column
from coinhaze.ledger.batches import Batch, Where, table_of


@dataclass(frozen=True)
class BlockColumns:
    """Blocks of a batch: one array entry each. A hash of zeros is one that is not known."""

    height: Ints
    time: Ints
    hash: Octets  # rows of 32
    previous: Octets
    sizes: Ints  # transactions
    root: Octets  # of the Merkle tree, as the header has it


@dataclass(frozen=True)
class TransactionColumns:
    """Transactions of a batch, block by block; the first of each block is its coinbase."""

    txid: Octets  # rows of 32
    inputs: Ints  # numbers of rows
    outputs: Ints


@dataclass(frozen=True)
class InputColumns:
    """Inputs of a batch, without those of coinbases."""

    spent_txid: Octets
    spent_vout: Ints
    value: pa.Array
    owner: pa.Array


@dataclass(frozen=True)
class OutputColumns:
    """Outputs of a batch."""

    value: Ints
    owner: pa.Array
    spendable: pa.Array


def make_batch(
    path: Path | str,
    read: int,
    blocks: BlockColumns,
    transactions: TransactionColumns,
    inputs: InputColumns,
    outputs: OutputColumns,
    flows: Mapping[str, Sequence[object]] | None = None,
) -> Batch:
    """Join columns to a batch. `flows` has columns tx (a number in this batch), pool, into_pool."""
    letters = id_letters(transactions.txid)
    height = np.repeat(blocks.height, blocks.sizes)
    position = steps(blocks.sizes)
    tables = {"blocks": _blocks(blocks), "stated_blocks": _stated(blocks)}
    tables["transactions"] = table_of(
        "transactions",
        {
            "height": height,
            "txid": text_column(letters),
            "coinbase": pa.array(position == 0),
            "position": position,
            "time": np.repeat(blocks.time, blocks.sizes),
        },
    )
    tx = np.repeat(np.arange(len(height)), transactions.outputs)
    names = {"height": height[tx], "txid": text_column(letters[tx])}
    tables["outputs"] = table_of(
        "outputs", names | {"vout": steps(transactions.outputs)} | vars(outputs)
    )
    tx = np.repeat(np.arange(len(height)), transactions.inputs)
    names = {"height": height[tx], "txid": text_column(letters[tx])}
    spent = {"spent_txid": text_column(id_letters(inputs.spent_txid))}
    tables["inputs"] = table_of(
        "inputs", vars(inputs) | names | spent | {"vin": steps(transactions.inputs)}
    )
    if flows and flows["tx"]:
        tx = np.array(flows["tx"], np.int64)
        names = {"height": height[tx], "txid": text_column(letters[tx])}
        columns = {"pool": flows["pool"], "into_pool": flows["into_pool"]}
        tables["pool_flows"] = table_of("pool_flows", names | columns)
    tables = {name: table for name, table in tables.items() if table.num_rows}
    return Batch(tables, _place_in(path, tables), read)


def steps(counts: Ints) -> Ints:
    """Count from 0 in each of several runs.

    >>> steps(np.array([2, 0, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    ends = np.cumsum(counts)
    last = int(ends[-1]) if len(ends) else 0
    return np.arange(last, dtype=np.int64) - np.repeat(ends - counts, counts)


def _blocks(blocks: BlockColumns) -> pa.Table:
    known = blocks.hash.any(axis=1)
    # The first block has none before it.
    none = pa.array(~blocks.previous[known].any(axis=1))
    previous = text_column(id_letters(blocks.previous[known]))
    return table_of(
        "blocks",
        {
            "height": blocks.height[known],
            "hash": text_column(id_letters(blocks.hash[known])),
            "previous": pc.if_else(none, pa.scalar(None, pa.string()), previous),
            "time": blocks.time[known],
        },
    )


def _stated(blocks: BlockColumns) -> pa.Table:
    root = text_column(id_letters(blocks.root))
    stated = {"height": blocks.height, "transaction_count": blocks.sizes, "merkle_root": root}
    return table_of("stated_blocks", stated)


def _place_in(path: Path | str, tables: Mapping[str, pa.Table]) -> Where:
    def place(table: str, row: int) -> str:
        of = tables[table]
        txid = f", transaction {of['txid'][row]}" if "txid" in of.column_names else ""
        return f"{path}: block {of['height'][row]}{txid}"

    return place
