"""What becomes of the columns of files in other people's formats."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from coinhaze.formats.registry import format_of, is_parquet, reader_of
from coinhaze.formats.tabular.column_use import Use, plain_name, use_of
from coinhaze.formats.tabular.delimited import header_of
from coinhaze.formats.tabular.table_rows import column_names

# Columns that the tables of a format have and that are not needed.
_KNOWN = {
    "ethereum-etl": (
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
    ),
    "bitcoin-etl": (
        "size", "stripped_size", "virtual_size", "version", "lock_time", "input_count",
        "output_count", "input_value", "output_value", "fee", "block_timestamp_month", "date",
        "last_modified", "join_splits", "value_balance", "type", "item_id", "item_timestamp",
    ),
    "blockchair": (
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
    ),
    "blockchair-ethereum": (
        "call_count", "internal_value", "fee", "gas_used", "gas_limit", "gas_price", "input_hex",
        "output_hex", "nonce", "v", "r", "s", "depth", "fail_reason", "child_call_count",
        "token_name", "token_symbol", "token_decimals", "size", "extra_data_hex", "difficulty",
        "logs_bloom", "mix_hash", "receipts_root", "sha3_uncles", "state_root", "total_difficulty",
        "transactions_root", "transaction_count", "synthetic_transaction_count",
        "synthetic_call_count", "value_total", "internal_value_total", "generation",
        "uncle_generation", "fee_total", "reward", "base_fee_per_gas",
    ),
    "utxo-edges": (
        "amount_input", "amount_output", "timestamp", "count_input", "count_output", "is_coinbase",
    ),
}  # fmt: skip


def columns_of(path: Path, format: str | None = None) -> Use:
    """Sort the columns of a file into used, known and unused, unknown; {} if it is no table."""
    format = format or format_of(path)
    reader = reader_of(format)
    if format == "plain":
        use: Use = reader.columns(path)
        return use
    if format == "bitcoin-etl" and is_parquet(path):
        from coinhaze.formats.bitcoin_etl.parquet import NEEDED, OPTIONAL

        names, used = list(pq.read_schema(path).names), (*NEEDED, *OPTIONAL)
    elif format == "utxo-edges":
        names = header_of(path, ",")
        used = next(c for c in (reader.VERTEX, reader.EDGE) if set(c) <= set(names))
    elif hasattr(reader, "LAYOUTS"):
        tabs = format.startswith("blockchair")
        names = header_of(path, "\t") if tabs else column_names(path)
        layout = next(layout for layout in reader.LAYOUTS if layout.fits(names))
        used = (*layout.needed, *layout.optional)
    else:
        return {}
    known = {plain_name(name) for name in _KNOWN[format]}
    dollars = [name for name in names if name.endswith("_usd")]
    return use_of(names, used, known, dollars)
