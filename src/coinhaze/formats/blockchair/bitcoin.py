"""Blockchair dumps of Bitcoin and its relatives, a file a day: coins, transactions and blocks.

The index of a transaction in its block is not given, nor the block before a block. Recipients that
are no addresses (`d-...` for data, `m-...`, `s-...`) stand for themselves. Zcash's transactions
tell what went into all shielded pools together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.formats.blockchair.rows import Mined, blocks_batch, is_one_of, needs_of, read_dump
from coinhaze.formats.tabular.table_rows import TableLayout
from coinhaze.ledger.batches import Batch, table_of, with_columns
from coinhaze.ledger.columns import HIGHEST_BLOCK, CheckedColumns

INPUTS = TableLayout(
    "inputs",
    (
        "spending_block_id", "transaction_hash", "index", "value", "recipient",
        "spending_transaction_hash", "spending_index", "spending_time",
    ),
)  # fmt: skip
OUTPUTS = TableLayout(
    "outputs",
    (
        "block_id", "transaction_hash", "index", "time", "value", "recipient", "type",
        "is_from_coinbase", "is_spendable",
    ),
)  # fmt: skip
TRANSACTIONS = TableLayout(
    "transactions",
    ("block_id", "hash", "time", "is_coinbase", "input_count", "output_count"),
    ("shielded_value_delta", "input_total", "output_total"),
)
BLOCKS = TableLayout(
    "blocks", ("id", "hash", "time", "merkle_root", "nonce", "bits"), ("transaction_count",)
)
LAYOUTS = (INPUTS, OUTPUTS, TRANSACTIONS, BLOCKS)
# Columns that the tables have and that are not needed.
UNNEEDED = (
    "size", "stripped_size", "weight", "version", "version_hex", "version_bits", "lock_time",
    "has_witness", "median_time", "difficulty", "chainwork", "coinbase_data_hex",
    "transaction_count", "witness_count", "input_count", "output_count", "input_total",
    "output_total", "fee", "fee_total", "fee_per_kb", "fee_per_kwu", "cdd_total", "generation",
    "reward", "guessed_miner", "script_hex", "type", "time", "block_id", "is_spendable",
    "is_from_coinbase", "spending_sequence", "spending_signature_hex", "spending_witness",
    "lifespan", "cdd", "is_overwintered", "version_group_id", "expiry_height",
    "join_split_raw", "shielded_input_raw", "shielded_output_raw", "binding_signature",
    "final_sapling_root", "solution", "anchor", "shielded_value_delta_total", "nonce", "bits",
    "merkle_root", "value", "index",
)  # fmt: skip
_LAST_INDEX = 2**32 - 1
_MAXIMUM = 2**63 - 1


def recognises(head: bytes) -> bool:
    """Tell whether the first line is the header of one of the tables."""
    return is_one_of(LAYOUTS, head)


def needs(names: Sequence[str]) -> list[tuple[list[str], list[str]]]:
    """Give for each table the columns it needs that are there, and those that are not."""
    return needs_of(LAYOUTS, names)


def batches(path: Path) -> Iterator[Batch]:
    """Read one file."""
    what = "Blockchair table of coins or blocks"
    layout, names, chunks = read_dump(path, LAYOUTS, what=what)
    yield from with_columns(_batches(layout, chunks), layout.use(names, UNNEEDED))


def _batches(layout: TableLayout, chunks: Iterator[Mined]) -> Iterator[Batch]:
    if layout is BLOCKS:
        for mined in chunks:
            batch = blocks_batch(mined, mined.columns.hashes("hash", start=""))
            tables = {**batch.tables, "stated_blocks": _stated_blocks(mined.columns)}
            yield replace(batch, tables=tables)
        return
    convert: Callable[[CheckedColumns], dict[str, pa.Table]] = {
        INPUTS: _inputs, OUTPUTS: _outputs, TRANSACTIONS: _transactions,
    }[layout]  # fmt: skip
    for mined in chunks:
        where = mined.columns.where
        yield Batch(convert(mined.columns), lambda _, row, w=where: w(row), mined.read)  # type: ignore[misc]


def _inputs(columns: CheckedColumns) -> dict[str, pa.Table]:
    height = columns.numbers("spending_block_id", HIGHEST_BLOCK)
    txid = columns.hashes("spending_transaction_hash", start="")
    inputs = {
        "height": height,
        "txid": txid,
        "vin": columns.numbers("spending_index", _LAST_INDEX),
        "spent_txid": columns.hashes("transaction_hash", start=""),
        "spent_vout": columns.numbers("index", _LAST_INDEX),
        "value": columns.numbers("value", _MAXIMUM),
        "owner": columns.plain("recipient"),
    }
    spenders = {
        "height": height,
        "txid": txid,
        "coinbase": pa.repeat(False, len(txid)),
        "time": _moments(columns, "spending_time"),
    }
    return {"inputs": table_of("inputs", inputs), "transactions": _each_once(spenders)}


def _outputs(columns: CheckedColumns) -> dict[str, pa.Table]:
    height = columns.numbers("block_id", HIGHEST_BLOCK)
    txid = columns.hashes("transaction_hash", start="")
    dead = pc.or_(
        pc.equal(pc.fill_null(columns.plain("is_spendable"), ""), "0"),
        pc.equal(pc.fill_null(columns.plain("type"), ""), "nulldata"),
    )
    outputs = {
        "height": height,
        "txid": txid,
        "vout": columns.numbers("index", _LAST_INDEX),
        "spendable": pc.invert(dead),
        "value": columns.numbers("value", _MAXIMUM),
        "owner": columns.plain("recipient"),
    }
    makers = {
        "height": height,
        "txid": txid,
        "coinbase": columns.flags("is_from_coinbase"),
        "time": _moments(columns, "time"),
    }
    return {"outputs": table_of("outputs", outputs), "transactions": _each_once(makers)}


def _transactions(columns: CheckedColumns) -> dict[str, pa.Table]:
    height = columns.numbers("block_id", HIGHEST_BLOCK)
    txid = columns.hashes("hash", start="")
    made = {
        "height": height,
        "txid": txid,
        "coinbase": columns.flags("is_coinbase"),
        "time": _moments(columns, "time"),
    }
    tables = {"transactions": table_of("transactions", made)}
    tables["stated_transactions"] = _stated_transactions(columns, height, txid, made["coinbase"])
    if columns.has("shielded_value_delta"):
        delta = columns.signed("shielded_value_delta")
        flows = {"height": height, "txid": txid, "into_pool": delta}
        moved = pa.table(flows).filter(pc.not_equal(delta, 0))
        pool = pa.repeat("shielded", len(moved))
        tables["pool_flows"] = table_of("pool_flows", {n: moved[n] for n in flows} | {"pool": pool})
    return tables


def _stated_blocks(columns: CheckedColumns) -> pa.Table:
    stated = {
        "height": columns.numbers("id", HIGHEST_BLOCK),
        "transaction_count": columns.numbers("transaction_count", _LAST_INDEX, optional=True),
        "merkle_root": columns.plain("merkle_root"),
    }
    return table_of("stated_blocks", stated)


def _stated_transactions(
    columns: CheckedColumns, height: pa.Array, txid: pa.Array, coinbase: pa.Array
) -> pa.Table:
    """Take counts and totals; a coinbase counts an input that is in no table of inputs."""
    number, amount = pa.scalar(None, pa.int64()), columns.numbers
    totals = {n: amount(n, _MAXIMUM, optional=True) for n in ("input_total", "output_total")}
    if columns.has("shielded_value_delta"):
        # Whether totals count what came out of pools or went into them is not documented.
        shielded = pc.not_equal(columns.signed("shielded_value_delta"), 0)
        totals = {n: pc.if_else(shielded, number, total) for n, total in totals.items()}
    inputs = {"input_count": amount("input_count", _LAST_INDEX, optional=True)}
    inputs["input_total"] = totals.pop("input_total")
    stated = {"height": height, "txid": txid}
    stated |= {n: pc.if_else(coinbase, number, column) for n, column in inputs.items()}
    stated |= {"output_count": amount("output_count", _LAST_INDEX, optional=True)} | totals
    return table_of("stated_transactions", stated)


def _moments(columns: CheckedColumns, name: str) -> pa.Array:
    time = columns.moments(name)
    columns.require(name, time)
    return time


def _each_once(columns: Mapping[str, pa.Array]) -> pa.Table:
    """Tell of a transaction once where its rows stand together, as they do."""
    table = table_of("transactions", columns)
    txid = columns["txid"]
    new = pc.not_equal(txid[1:], txid[:-1])
    return table.filter(pa.concat_arrays([pa.repeat(True, min(1, len(txid))), new]))
