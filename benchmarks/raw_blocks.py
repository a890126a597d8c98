"""How fast raw blocks are read: Merkle roots checked, scripts turned into owners, rows made.

Takes a file of blocks as nodes keep them (`blk*.dat`, packed or not). It is unpacked first, so that
only reading is timed; the first time also compiles.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from coinhaze.formats.bitcoin_raw.blocks import batches
from coinhaze.formats.compression import open_plain


def main(path: Path, *, times: int = 5) -> float:
    """Read the file several times; print and give the best speed in megabytes a second."""
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "blk00000.dat"
        with open_plain(path) as file:
            plain.write_bytes(file.read())
        size = plain.stat().st_size
        best = 0.0
        for _ in range(times):
            wall, cpu = time.perf_counter(), time.process_time()
            rows = sum(sum(table.num_rows for table in b.tables.values()) for b in batches(plain))
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            best = max(best, size / 1e6 / wall)
            print(
                f"{size / 1e6:.1f} MB of blocks, {rows:,} rows: {wall:.2f} s, {cpu:.2f} CPU s, "
                f"{size / 1e6 / wall:.0f} MB/s, {size / 1e6 / cpu:.0f} a CPU second",
                flush=True,
            )
    return best


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    main(parser.parse_args().path)
