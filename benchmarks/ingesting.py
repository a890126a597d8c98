"""How fast dumps become a store, and a store a ledger: a simulated week as Blockchair writes it.

`text` is what the files hold unpacked. Every step runs in a process of its own; peak memory is that
of the process. `--scores` also scores the coins of the week that came back and of the week itself,
and compares them: a week that went through files and a store scores as the week itself.

Files do not tell in which order a block holds its transactions, so the week is also put into the
order that the store chooses (by id, makers of coins before their spenders), one row after the
other. That one and the one out of the store must be the same ledger and have the same scores, to
the last bit. Against the week in its own order, where sums are taken in another order, every pair
of proven intervals must overlap.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import coinhaze
from benchmarks.apart import Run, run_apart
from benchmarks.blockchair_files import write_blockchair
from coinhaze.formats.registry import formats
from coinhaze.ledger import CoinLedger
from coinhaze.ledger.text import repeated_row
from coinhaze.ledger.window import ALL, LedgerWindow
from coinhaze.simulate import simulate_week
from coinhaze.store.ingest import ingest
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
    maximum: float  # the largest difference of two estimates


def as_stored(ledger: CoinLedger) -> CoinLedger:
    """Put a ledger into the order of a store that knows no positions."""
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
        maximum=float(np.abs(np.subtract(stored["bits"], own["bits"])).max()),
    )
    print(found)
    return found


def _write(size: float, folder: Path) -> None:
    ledger = simulate_week("bitcoin-week", size=size)
    assert isinstance(ledger, CoinLedger)
    write_blockchair(ledger, folder)


def _text(folder: Path) -> tuple[int, float]:
    """Give the bytes of all files unpacked, and the seconds unpacking alone takes."""
    begin, total = time.perf_counter(), 0
    for path in folder.iterdir():
        with gzip.open(path) as file:
            while piece := file.read(1 << 20):
                total += len(piece)
    return total, time.perf_counter() - begin


def _ingest(folder: Path, path: Path) -> int:
    with Store(path) as store:
        return ingest([folder], store).rows


def _load(path: Path, window: LedgerWindow) -> tuple[int, int]:
    """Count the transactions of a window, and the bytes this process read on the way."""
    before = _bytes_read()
    with Store(path, read_only=True) as store:
        return len(read_store(store, window)), _bytes_read() - before


def _bytes_read() -> int:
    """Give what this process made the system read, from the disk or its cache."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["rchar"])


def _last_day(path: Path) -> LedgerWindow:
    with Store(path, read_only=True) as store:
        ((low, high),) = store.ask("SELECT min(height), max(height) FROM transactions")
    return LedgerWindow("height", high - (high - low) // 7, None)


def _say(what: str, run: Run) -> None:
    assert not run.error, run.error
    transactions, read = run.value
    print(
        f"{what}: {transactions:,} transactions, {run.wall:.1f} s wall, {run.cpu:.1f} s CPU, peak "
        f"{run.peak_mb:.0f} MB, {read / 1e6:.0f} MB read",
        flush=True,
    )


def main(size: float, *, scores: bool = False) -> dict[str, float]:
    """Print the steps; give megabytes a second of the ingest, and the peaks of memory."""
    with tempfile.TemporaryDirectory() as name:
        folder, path = Path(name) / "dump", Path(name) / "week.duckdb"
        folder.mkdir()
        run_apart(partial(_write, size, folder))
        text, unpacking = _text(folder)
        packed = sum(f.stat().st_size for f in folder.iterdir())
        print(
            f"{len(list(folder.iterdir()))} files, {packed / 1e6:.0f} MB packed, {text / 1e6:.0f} "
            f"MB of text; unpacking alone {text / 1e6 / unpacking:.0f} MB/s",
            flush=True,
        )
        _warm_up(Path(name))
        fed = run_apart(partial(_ingest, folder, path))
        assert not fed.error, fed.error
        speed = text / 1e6 / fed.wall
        print(
            f"ingest: {fed.value:,} rows, {fed.wall:.1f} s wall, {fed.cpu:.1f} s CPU, "
            f"{speed:.0f} MB/s of text, peak {fed.peak_mb:.0f} MB, store "
            f"{path.stat().st_size / 1e6:.0f} MB",
            flush=True,
        )
        loaded = run_apart(partial(_load, path, ALL))
        _say("store -> ledger", loaded)
        _say("store -> ledger, last seventh", run_apart(partial(_load, path, _last_day(path))))
        if scores:
            compare_scores(size, path, Path(name))
    return {"speed": speed, "peak_mb": fed.peak_mb, "load_peak_mb": loaded.peak_mb}


def _warm_up(home: Path) -> None:
    """Compile what has to be, apart: memory taken here would count in every child.

    Modules are loaded here, so that no child does it while it is timed.
    """
    for format in formats().values():
        format.recognises(b"")
    repeated_row(pa.array(["warm"]))

    def run() -> None:
        folder, path = home / "warm", home / "warm.duckdb"
        folder.mkdir()
        _write(0.002, folder)
        _ingest(folder, path)
        _load(path, ALL)

    run_apart(run)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=float, default=0.1, help="fraction of a week")
    parser.add_argument("--scores", action="store_true", help="compare scores, too")
    options = parser.parse_args()
    main(options.size, scores=options.scores)
