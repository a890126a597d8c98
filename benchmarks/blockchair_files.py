"""A ledger written as Blockchair would: files of inputs, outputs and transactions."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.ledger import CoinLedger

OUTPUTS = """block_id transaction_hash index time value value_usd recipient type script_hex
is_from_coinbase is_spendable"""
INPUTS = f"""{OUTPUTS} spending_block_id spending_transaction_hash spending_index spending_time
spending_value_usd spending_sequence spending_signature_hex spending_witness lifespan cdd"""
TRANSACTIONS = """block_id hash time size weight version lock_time is_coinbase has_witness
input_count output_count input_total input_total_usd output_total output_total_usd fee fee_usd
fee_per_kb fee_per_kb_usd fee_per_kwu fee_per_kwu_usd cdd_total"""


def write_blockchair(ledger: CoinLedger, folder: Path, *, days: int = 7) -> list[Path]:
    """Write the three tables, a file a day for each; days are stretches of blocks here."""
    table = ledger.tables()
    tx, outputs, inputs = table["transactions"], table["outputs"], table["inputs"]
    seconds = np.asarray(pc.fill_null(tx["time"], 0).to_numpy(), dtype=np.int64)
    heights = np.asarray(pc.fill_null(tx["height"], 0).to_numpy(), dtype=np.int64)
    times = pc.strftime(pa.array(seconds).cast(pa.timestamp("s")), format="%Y-%m-%d %H:%M:%S")
    rows = {
        "block_id": pa.array(heights).cast(pa.string()),
        "hash": tx["txid"].combine_chunks(),
        "time": times,
        "is_coinbase": pc.cast(tx["coinbase"].combine_chunks().cast(pa.int8()), pa.string()),
    }
    made_by = pa.array(ledger.output_tx)
    owner = ledger.owners.take(pa.array(ledger.output_owner))
    alone = pa.array(ledger.owner_is_coin[ledger.output_owner])
    spendable = outputs["spendable"].combine_chunks()
    coins = {
        "block_id": rows["block_id"].take(made_by),
        "transaction_hash": rows["hash"].take(made_by),
        "index": pc.cast(pa.array(ledger.output_vout), pa.string()),
        "time": times.take(made_by),
        "value": pc.cast(outputs["value"].combine_chunks(), pa.string()),
        "value_usd": pa.repeat("1.5e-7", len(outputs)),
        "recipient": pc.if_else(alone, "\\N", owner),
        "type": pc.if_else(spendable, "witness_v0_keyhash", "nulldata"),
        "script_hex": pa.repeat("0014", len(outputs)),
        "is_from_coinbase": rows["is_coinbase"].take(made_by),
        "is_spendable": pc.if_else(spendable, "-1", "0"),
    }
    spender, spent = pa.array(ledger.input_tx), pa.array(ledger.input_output)
    starts = np.flatnonzero(np.diff(ledger.input_tx, prepend=-1))
    vin = np.arange(len(inputs)) - np.repeat(starts, np.diff(np.append(starts, len(inputs))))
    spendings = {
        "spending_block_id": rows["block_id"].take(spender),
        "spending_transaction_hash": rows["hash"].take(spender),
        "spending_index": pc.cast(pa.array(vin), pa.string()),
        "spending_time": times.take(spender),
    }
    inside = ledger.inside
    ends = np.quantile(heights[inside], np.arange(1, days) / days)
    day_of = np.searchsorted(ends, heights)
    files = []
    for day in range(days):
        now = inside & (day_of == day)
        chosen = {
            "transactions": (TRANSACTIONS, rows, np.flatnonzero(now)),
            "outputs": (OUTPUTS, coins, np.flatnonzero(now[ledger.output_tx])),
        }
        for name, (columns, given, some) in chosen.items():
            files.append(_write(folder, name, day, columns, given, some))
        some = np.flatnonzero(now[ledger.input_tx])
        both = {k: v.take(spent) for k, v in coins.items()} | spendings
        files.append(_write(folder, "inputs", day, INPUTS, both, some))
    return files


def _write(
    folder: Path, name: str, day: int, header: str, given: dict[str, pa.Array], some: object
) -> Path:
    columns = header.split()
    rows = pa.array(some)
    empty = pa.repeat("\\N", len(rows))
    parts = [given[c].take(rows) if c in given else empty for c in columns]
    lines = pc.binary_join_element_wise(*(p.cast(pa.string()) for p in parts), "\t").to_pylist()
    path = folder / f"blockchair_bitcoin_{name}_{day}.tsv.gz"
    # Real files have no newline at their end.
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write("\n".join(["\t".join(columns), *lines]))
    return path
