"""A simulated week that went through files and a store scores as the week itself.

Files do not tell in which order a block holds its transactions, so the week is also put into the
order that the store chooses (by id, makers of coins before their spenders), one row after the
other. That one and the one out of the store must be the same ledger and have the same scores, to
the last bit. Against the week in its own order, where sums are taken in another order, every pair
of proven intervals must overlap.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import coinhaze
from benchmarks.apart import run_apart
from coinhaze.ledger import CoinLedger
from coinhaze.simulate import simulate_week
from coinhaze.store.read import read_store
from coinhaze.store.store import Store

WIDTH = 0.1  # mean bits of an interval


@dataclass(frozen=True)
class Comparison:
    """How a week that went through a store compares with the week itself."""

    same_ledger: bool
    same_bits: bool
    same_nodes: bool
    apart: int  # pairs of intervals that do not overlap
    most: float  # the largest difference of two estimates


def as_stored(ledger: CoinLedger) -> CoinLedger:
    """Put a ledger into the order of a store that was told of no positions."""
    tables = ledger.tables()
    order = _transactions_in_order(ledger)
    place = _inverse(order)
    out_order = np.lexsort((ledger.output_vout, place[ledger.output_tx]))
    in_order = np.argsort(place[ledger.input_tx], kind="stable")
    owner = ledger.output_owner[out_order]
    _, first = np.unique(owner, return_index=True)
    met = owner[np.sort(first)]
    transactions = tables["transactions"].take(pa.array(order))
    nothing = pa.scalar(None, pa.int64())
    for k, name in ((3, "height"), (4, "time")):
        known = pc.if_else(transactions["inside"], transactions[name], nothing)
        transactions = transactions.set_column(k, name, known)
    outputs, inputs = tables["outputs"].take(pa.array(out_order)), tables["inputs"]
    spent = _inverse(out_order)[ledger.input_output[in_order]]
    return CoinLedger.from_columns(
        tables
        | {
            "transactions": transactions,
            "owners": tables["owners"].take(pa.array(met)),
            "outputs": outputs.set_column(
                0, "tx", pa.array(place[ledger.output_tx[out_order]])
            ).set_column(3, "owner", pa.array(_inverse(met)[owner])),
            "inputs": inputs.set_column(
                0, "tx", pa.array(place[ledger.input_tx[in_order]])
            ).set_column(1, "output", pa.array(spent)),
        }
    )


def _transactions_in_order(ledger: CoinLedger) -> np.typing.NDArray[np.int64]:
    """Earlier ones by id; then by height, makers of coins before spenders, and by id."""
    heights, inside = ledger.heights.to_pylist(), ledger.inside.tolist()
    level = [0] * len(heights)
    makers = ledger.output_tx[ledger.input_output].tolist()
    for spender, maker in zip(ledger.input_tx.tolist(), makers, strict=True):
        if inside[maker] and heights[maker] == heights[spender]:
            level[spender] = max(level[spender], level[maker] + 1)
    keys = {
        "inside": inside,
        "height": [h if i else 0 for h, i in zip(heights, inside, strict=True)],
        "level": level,
        "txid": ledger.txids,
    }
    return np.asarray(
        pc.sort_indices(pa.table(keys), sort_keys=[(k, "ascending") for k in keys]), dtype=np.int64
    )


def _inverse(order: np.typing.NDArray[np.int64]) -> np.typing.NDArray[np.int64]:
    place = np.empty(int(order.max(initial=-1)) + 1, dtype=np.int64)
    place[order] = np.arange(len(order))
    return place


def ledger_digest(ledger: CoinLedger) -> str:
    """Give a digest of all that a ledger holds, row by row."""
    digest = hashlib.sha256()
    for name, table in ledger.tables().items():
        digest.update(name.encode())
        for column in table.column_names:
            text = table[column].cast(pa.large_string())
            for first in range(0, len(text), 100_000):
                some = text[first : first + 100_000].to_pylist()
                digest.update("\n".join(v if v is not None else "\\N" for v in some).encode())
    return digest.hexdigest()


def _scored(ledger: CoinLedger, path: Path) -> str:
    digest = ledger_digest(ledger)
    scores = coinhaze.score(ledger, accuracy=WIDTH, over="mean")
    table = scores.to_arrow().select(["node", "balance", "bits", "bits_low", "bits_high", "steps"])
    pq.write_table(table.sort_by("node"), path)
    return digest


def _score_store(store_path: Path, path: Path) -> str:
    with Store(store_path, read_only=True) as store:
        ledger = read_store(store)
    assert isinstance(ledger, CoinLedger)
    return _scored(ledger, path)


def _score_week(size: float, path: Path, reorder: bool) -> str:
    ledger = simulate_week("bitcoin-week", size=size)
    assert isinstance(ledger, CoinLedger)
    return _scored(as_stored(ledger) if reorder else ledger, path)


def compare_scores(size: float, store: Path, home: Path) -> Comparison:
    """Score the week out of the store, in the store's order and in its own; print and compare."""
    work = {
        "out of the store": partial(_score_store, store),
        "the week in the store's order": partial(_score_week, size, reorder=True),
        "the week itself": partial(_score_week, size, reorder=False),
    }
    digests, tables = [], []
    for k, (what, task) in enumerate(work.items()):
        run = run_apart(partial(task, path=home / f"scores{k}.parquet"))
        assert not run.error, run.error
        digests.append(run.value)
        tables.append(pq.read_table(home / f"scores{k}.parquet"))
        print(
            f"{what}: {len(tables[-1]):,} sinks, {run.wall:.1f} s wall, {run.cpu:.1f} s CPU, peak "
            f"{run.peak_mb:.0f} MB, ledger {run.value[:16]}",
            flush=True,
        )
    stored, ordered, own = tables
    low = np.maximum(stored["bits_low"], own["bits_low"])
    high = np.minimum(stored["bits_high"], own["bits_high"])
    found = Comparison(
        same_ledger=digests[0] == digests[1],
        same_bits=stored.equals(ordered),
        same_nodes=stored.select(["node", "balance"]).equals(own.select(["node", "balance"])),
        apart=int((low > high).sum()),
        most=float(np.abs(np.subtract(stored["bits"], own["bits"])).max()),
    )
    print(found)
    return found
