"""A ledger written as Blockchair would: files of inputs, outputs and transactions."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Ints
from coinhaze.ledger import CoinLedger

OUTPUTS = """block_id transaction_hash index time value value_usd recipient type script_hex
is_from_coinbase is_spendable"""
INPUTS = f"""{OUTPUTS} spending_block_id spending_transaction_hash spending_index spending_time
spending_value_usd spending_sequence spending_signature_hex spending_witness lifespan cdd"""
TRANSACTIONS = """block_id hash time size weight version lock_time is_coinbase has_witness
input_count output_count input_total input_total_usd output_total output_total_usd fee fee_usd
fee_per_kb fee_per_kb_usd fee_per_kwu fee_per_kwu_usd cdd_total"""
AT_ONCE = 100_000  # rows made into text at a time


def write_blockchair(ledger: CoinLedger, folder: Path, *, days: int = 7) -> list[Path]:
    """Write the three tables, a file a day for each; days are stretches of blocks here."""
    texts = _Texts(ledger)
    headers = {"transactions": TRANSACTIONS, "outputs": OUTPUTS, "inputs": INPUTS}
    ends = np.quantile(texts.heights[ledger.inside], np.arange(1, days) / days)
    day_of = np.searchsorted(ends, texts.heights)
    files = []
    for day in range(days):
        now = ledger.inside & (day_of == day)
        rows_of = {
            "transactions": np.flatnonzero(now),
            "outputs": np.flatnonzero(now[ledger.output_tx]),
            "inputs": np.flatnonzero(now[ledger.input_tx]),
        }
        for name, rows in rows_of.items():
            path = folder / f"blockchair_bitcoin_{name}_{day}.tsv.gz"
            columns = headers[name].split()
            with gzip.open(path, "wb", compresslevel=1) as file:
                file.write("\t".join(columns).encode())
                for some in _stretches(rows):
                    _add_lines(file, columns, getattr(texts, name)(some), len(some))
            files.append(path)
    return files


def _stretches(rows: Ints) -> Iterator[Ints]:
    for first in range(0, len(rows), AT_ONCE):
        yield rows[first : first + AT_ONCE]


def _add_lines(file: gzip.GzipFile, columns: list[str], given: dict[str, pa.Array], n: int) -> None:
    # A newline stands before each line, none at the end: real files have none there.
    parts = [given.get(c, pa.repeat("\\N", n)) for c in columns]
    lines = pc.binary_join_element_wise(*(p.cast(pa.string()) for p in parts), "\t")
    file.write(("\n" + "\n".join(lines.to_pylist())).encode())


class _Texts:
    """The fields of some rows as text; those not given are null in the files."""

    def __init__(self, ledger: CoinLedger) -> None:
        self.ledger = ledger
        self.heights = np.asarray(pc.fill_null(ledger.heights, 0), dtype=np.int64)
        self.seconds = pc.fill_null(ledger.times, 0).cast(pa.timestamp("s"))
        starts = np.flatnonzero(np.diff(ledger.input_tx, prepend=-1))
        counts = np.diff(np.append(starts, len(ledger.input_tx)))
        n, value = len(ledger.txids), ledger.output_value
        assert value is not None
        # Blockchair counts one input of a coinbase, though no row tells it.
        inputs = np.bincount(ledger.input_tx, minlength=n) + ledger.coinbase
        self.counts = (inputs, np.bincount(ledger.output_tx, minlength=n))
        spent = value.take(ledger.input_output).total_by(ledger.input_tx, n)
        self.totals = (spent, value.total_by(ledger.output_tx, n))
        self.vin = np.arange(len(ledger.input_tx)) - np.repeat(starts, counts)

    def _time(self, tx: Ints) -> pa.Array:
        return pc.strftime(self.seconds.take(pa.array(tx)), format="%Y-%m-%d %H:%M:%S")

    def _coinbase(self, tx: Ints) -> pa.Array:
        return pa.array(self.ledger.coinbase[tx].astype(np.int8))

    def transactions(self, tx: Ints) -> dict[str, pa.Array]:
        return {
            "block_id": pa.array(self.heights[tx]),
            "hash": self.ledger.txids.take(pa.array(tx)),
            "time": self._time(tx),
            "is_coinbase": self._coinbase(tx),
            "input_count": pa.array(self.counts[0][tx]),
            "output_count": pa.array(self.counts[1][tx]),
            "input_total": self.totals[0].take(tx).to_arrow(),
            "output_total": self.totals[1].take(tx).to_arrow(),
        }

    def outputs(self, rows: Ints) -> dict[str, pa.Array]:
        ledger = self.ledger
        assert ledger.output_value is not None
        tx, owner = ledger.output_tx[rows], ledger.output_owner[rows]
        spendable = pa.array(ledger.output_spendable[rows])
        return {
            "block_id": pa.array(self.heights[tx]),
            "transaction_hash": ledger.txids.take(pa.array(tx)),
            "index": pa.array(ledger.output_vout[rows]),
            "time": self._time(tx),
            "value": ledger.output_value.take(rows).to_arrow(),
            "value_usd": pa.repeat("1.5e-7", len(rows)),
            "recipient": pc.if_else(
                pa.array(ledger.owner_is_coin[owner]), "\\N", ledger.owners.take(pa.array(owner))
            ),
            "type": pc.if_else(spendable, "witness_v0_keyhash", "nulldata"),
            "script_hex": pa.repeat("0014", len(rows)),
            "is_from_coinbase": self._coinbase(tx),
            "is_spendable": pc.if_else(spendable, "-1", "0"),
        }

    def inputs(self, rows: Ints) -> dict[str, pa.Array]:
        spender = self.ledger.input_tx[rows]
        return self.outputs(self.ledger.input_output[rows]) | {
            "spending_block_id": pa.array(self.heights[spender]),
            "spending_transaction_hash": self.ledger.txids.take(pa.array(spender)),
            "spending_index": pa.array(self.vin[rows]),
            "spending_time": self._time(spender),
        }
