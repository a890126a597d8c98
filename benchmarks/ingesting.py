"""How fast dumps become a store, and a store a ledger: a simulated week as Blockchair writes it.

`text` is what the files hold unpacked. Every step runs in a process of its own; peak memory is that
of the process.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
import time
from functools import partial
from pathlib import Path

from benchmarks.apart import run_apart
from benchmarks.blockchair_files import write_blockchair
from coinhaze.ledger import CoinLedger
from coinhaze.ledger.ingest import ingest
from coinhaze.ledger.store import Store
from coinhaze.ledger.stored import read_store
from coinhaze.simulate import simulate_week


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


def _load(path: Path) -> int:
    with Store(path, read_only=True) as store:
        return len(read_store(store))


def main(size: float) -> dict[str, float]:
    """Print the steps; give megabytes a second of the ingest."""
    with tempfile.TemporaryDirectory() as name:
        folder, path = Path(name) / "dump", Path(name) / "week.duckdb"
        folder.mkdir()
        run_apart(partial(_write, size, folder))
        text, unpacking = _text(folder)
        packed = sum(f.stat().st_size for f in folder.iterdir())
        print(
            f"{len(list(folder.iterdir()))} files, {packed / 1e6:.0f} MB packed, {text / 1e6:.0f} "
            f"MB of text; unpacking alone {text / 1e6 / unpacking:.0f} MB/s"
        )
        small = Path(name) / "warm"
        small.mkdir()
        _write(0.002, small)
        _ingest(small, Path(name) / "warm.duckdb")
        fed = run_apart(partial(_ingest, folder, path))
        speed = text / 1e6 / fed.wall
        print(
            f"ingest: {fed.value:,} rows, {fed.wall:.1f} s wall, {fed.cpu:.1f} s CPU, "
            f"{speed:.0f} MB/s of text, peak {fed.peak_mb:.0f} MB, store "
            f"{path.stat().st_size / 1e6:.0f} MB"
        )
        loaded = run_apart(partial(_load, path))
        print(
            f"store -> ledger: {loaded.value:,} transactions, {loaded.wall:.1f} s wall, "
            f"{loaded.cpu:.1f} s CPU, peak {loaded.peak_mb:.0f} MB"
        )
    return {"speed": speed, "peak_mb": fed.peak_mb}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=float, default=0.1, help="fraction of a week")
    main(parser.parse_args().size)
