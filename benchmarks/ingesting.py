"""How fast dumps become a store, and a store a ledger: a simulated week as Blockchair writes it.

`text` is what the files hold unpacked. Every step runs in a process of its own; peak memory is that
of the process. `--scores` also scores the coins of the week that came back and of the week itself,
and compares them.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
import time
from functools import partial
from pathlib import Path

import pyarrow as pa

from benchmarks.apart import Run, run_apart
from benchmarks.blockchair_files import write_blockchair
from benchmarks.stored_scores import compare_scores
from coinhaze.formats.registry import formats
from coinhaze.ledger import CoinLedger
from coinhaze.ledger.text import repeated_row
from coinhaze.ledger.window import ALL, LedgerWindow
from coinhaze.simulate import simulate_week
from coinhaze.store.ingest import ingest
from coinhaze.store.read import read_store
from coinhaze.store.store import Store


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
    """Give what this process asked the system to read, from the disk or its cache."""
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
    asked = parser.parse_args()
    main(asked.size, scores=asked.scores)
