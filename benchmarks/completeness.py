"""What checking a ledger for completeness adds to reading it, with and without in turn.

A simulated week is written as Blockchair writes it and ingested, with what the files say of their
transactions and without; the store is then read, with the checks and without. For the last line it
gets the Merkle roots of its blocks in their place, as stores of raw blocks and of nodes have them.
Figures are CPU seconds, the median of the runs.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa

from benchmarks.blockchair_files import write_blockchair
from coinhaze.formats.bitcoin_raw.wire import id_text, merkle_root
from coinhaze.formats.blockchair import bitcoin as blockchair
from coinhaze.ledger import CoinLedger
from coinhaze.ledger.batches import STATEMENTS, Batch, table_of
from coinhaze.ledger.completeness import Completeness
from coinhaze.simulate import simulate_week
from coinhaze.store import coins as store_coins
from coinhaze.store.ingest import ingest
from coinhaze.store.read import read_store
from coinhaze.store.store import Store


def _without_statements(batches: Callable[[Path], object]) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        for batch in batches(path):  # type: ignore[attr-defined]
            tables = {n: t for n, t in batch.tables.items() if n not in STATEMENTS}
            yield replace(batch, tables=tables)

    return read


def _ingest(folder: Path, path: Path, *, checks: bool) -> None:
    path.unlink(missing_ok=True)
    read = blockchair.batches if checks else _without_statements(blockchair.batches)
    with mock.patch.object(blockchair, "batches", read), Store(path) as store:
        ingest([folder], store)


def _load(path: Path, *, checks: bool) -> None:
    nothing: dict[str, Any] = {
        "coin_completeness": lambda *_: Completeness(),
        "read_stated": lambda *_: None,
    }
    with contextlib.ExitStack() as stack:
        if not checks:
            stack.enter_context(mock.patch.multiple(store_coins, **nothing))
        read_store(stack.enter_context(Store(path, read_only=True)))


def _add_roots(path: Path, ledger: CoinLedger) -> None:
    """State indexes and Merkle roots of blocks, as raw blocks do, and nothing of transactions."""
    rows = np.flatnonzero(ledger.inside)
    heights = np.asarray(ledger.heights.take(pa.array(rows)))
    place = np.arange(len(rows)) - np.searchsorted(heights, heights)
    order = pa.table({"txid": ledger.txids.take(pa.array(rows)), "place": place})
    with Store(path) as store:
        store.connection.register("listed", order)
        store.ask(
            "UPDATE transactions SET position = place FROM listed WHERE "
            "transactions.txid = listed.txid"
        )
        store.ask("DELETE FROM stated_transactions")
        found = store.table("SELECT height, txid FROM transactions ORDER BY height, position")
        heights = np.asarray(found["height"])
        ids = [bytes.fromhex(txid)[::-1] for txid in found["txid"].to_pylist()]
        first = np.flatnonzero(np.diff(heights, prepend=-1))
        after = [*first[1:].tolist(), len(ids)]
        roots = [id_text(merkle_root(ids[a:b])) for a, b in zip(first, after, strict=True)]
        stated = {
            "height": heights[first],
            "transaction_count": np.diff([*first, len(ids)]),
            "merkle_root": pa.array(roots),
        }
        with store.transaction():
            store.append(Batch({"stated_blocks": table_of("stated_blocks", stated)}))


def _compare(what: str, runs: int, work: Callable[[bool], None]) -> float:
    """Time work with checks and without, in turn; print both, and give what checks add."""
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(runs):
        for checks in (False, True):
            begin = time.process_time()
            work(checks)
            seconds[checks].append(time.process_time() - begin)
    without, with_ = (statistics.median(seconds[checks]) for checks in (False, True))
    print(
        f"{what}: {without:.2f} s without, {with_:.2f} s with: {with_ / without - 1:+.0%}",
        flush=True,
    )
    return with_ / without - 1


def main(size: float, runs: int) -> dict[str, float]:
    """Print the steps; give the shares that checks add."""
    ledger = simulate_week("bitcoin-week", size=size)
    assert isinstance(ledger, CoinLedger)
    with tempfile.TemporaryDirectory() as name:
        folder, path = Path(name) / "dump", Path(name) / "week.duckdb"
        folder.mkdir()
        write_blockchair(ledger, folder)
        print(f"{len(ledger):,} transactions, {len(ledger.input_tx):,} inputs", flush=True)
        added = {
            "ingest": _compare(
                "files -> store", runs, lambda checks: _ingest(folder, path, checks=checks)
            )
        }
        _load(path, checks=True)
        added["read"] = _compare(
            "store -> ledger, counts and totals", runs, lambda checks: _load(path, checks=checks)
        )
        _add_roots(path, ledger)
        added["merkle"] = _compare(
            "store -> ledger, Merkle roots", runs, lambda checks: _load(path, checks=checks)
        )
    return added


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=float, default=0.05, help="fraction of a week")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    main(options.size, options.runs)
