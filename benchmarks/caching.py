"""The cache of a week of Bitcoin: how long writing takes, how large it is, how fast it opens.

`python -m benchmarks.caching` makes a folder of the ledger (`--size` 1 is a whole week) in a
temporary place, or takes FOLDER. It is built, scored and cached by one process and opened by
another; the private memory of that one is what it shares with nobody.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.apart import run_apart
from coinhaze.cache.layers import LedgerCache
from coinhaze.cache.place import homes_of
from coinhaze.ledger import write_folder
from coinhaze.simulate import simulate_week
from coinhaze.solve.local.origins import local_row
from coinhaze.solve.pool.limits import in_words

NEARLY: dict[str, Any] = {"accuracy": 0.1, "over": "mean"}


@dataclass(frozen=True)
class Opened:
    """Seconds to open, to answer a first and a second coin, to find names; private bytes."""

    look: float
    open: float
    first_row: float
    next_rows: float
    names: float
    private: int
    scored: int


def build(folder: Path) -> None:
    """Build, score and keep."""
    assert not LedgerCache(folder).build(**NEARLY).notes


def open_again(folder: Path, *, count: int = 100) -> Opened:
    """Open the cache and query a few coins."""
    begin = time.perf_counter()
    keeper = LedgerCache(folder)
    assert keeper.facts() is not None
    looked = time.perf_counter() - begin
    cached = keeper.open()
    opened = time.perf_counter() - begin
    assert cached is not None
    drawn = np.random.default_rng(1).choice(cached.scores.nodes, count)
    rows = [_seconds(partial(local_row, cached.structure, int(node), width=0.05)) for node in drawn]
    names = cached.graph.names.of(drawn.astype(np.int64)).to_pylist()
    found = [_seconds(partial(cached.graph.names.node, name)) for name in names]
    return Opened(
        look=looked,
        open=opened,
        first_row=rows[0],
        next_rows=float(np.median(rows[1:])),
        names=float(np.median(found)),
        private=_private(),
        scored=len(cached.scores),
    )


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _private() -> int:
    """Give the bytes that this process shares with no file and no other process."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty"))


def main(folder: Path) -> Opened:
    """Print the table."""
    for home in homes_of([folder]):
        shutil.rmtree(home, ignore_errors=True)
    built = run_apart(partial(build, folder))
    assert not built.error, built.error
    disk = sum(f.stat().st_size for h in homes_of([folder]) for f in h.rglob("*") if f.is_file())
    print(
        f"built, scored to {NEARLY} and cached: {built.wall:.1f} s wall, {built.cpu:.1f} s CPU, "
        f"peak {built.peak_mb:.0f} MB; {in_words(disk)} on disk"
    )
    opened = run_apart(partial(open_again, folder))
    assert not opened.error, opened.error
    found: Opened = opened.value
    print(
        f"opened by another process: {found.open:.2f} s (known after {found.look:.3f} s), "
        f"{found.scored:,} scores\nfirst coin {1e3 * found.first_row:.1f} ms, then "
        f"{1e3 * found.next_rows:.2f} ms; a name {1e3 * found.names:.3f} ms; "
        f"private memory {in_words(found.private)}"
    )
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--size", type=float, default=0.01)
    given = parser.parse_args()
    if given.folder is not None:
        main(given.folder)
    else:
        with tempfile.TemporaryDirectory() as place:
            main(write_folder(simulate_week("bitcoin-week", size=given.size), Path(place) / "week"))
