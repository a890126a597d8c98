"""Bits as blocks go by, on CoinJoins that were really made and on simulated ones.

`python -m benchmarks.since DATA` prints the tables of docs/since.md: for outputs of CoinJoins the
mean change of bits by age to each observer, how many outputs later spends take apart, and mean
bits of the unspent ones at each moment.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import coinhaze
from benchmarks.observers import listed_coinjoins
from coinhaze import CoinLedger


def decay(name: str, ledger: CoinLedger, *, points: int) -> list[str]:
    """Tell what became known of outputs of CoinJoins."""
    begin = time.process_time()
    found = coinhaze.since(ledger, points=points, threads=1)
    spent = time.process_time() - begin
    shown = [
        f"{name}: {len(found.nodes):,} outputs of CoinJoins, {len(found.until)} moments, "
        f"{found.linked:,} outputs taken apart at the end, {spent:.1f} s"
    ]
    shown.append(f"  {found.sentence()}")
    shown += [f"  {row}" for row in found.decay().to_pylist()]
    shown += [f"  {row}" for row in found.series().to_pylist()[:: max(points // 4, 1)]]
    first = np.argmax(found.made < found.until[:, None], axis=0)
    unmixed = found.bits["unmixed"]
    change = unmixed[-1] - unmixed[first, np.arange(len(first))]
    shown.append(
        f"  to the unmixing observer {np.mean(change < -0.005):.2%} of the outputs fell since they "
        f"were made, by {-np.nanmin(change):.2f} bits at most; {np.mean(change > 0.005):.2%} rose"
    )
    return shown


def main(data: Path) -> list[str]:
    """Print the tables."""
    shown = []
    for name, ledger, _ in listed_coinjoins(data):
        shown += decay(name, ledger, points=15 if name.startswith("Whirlpool") else 6)
    print("\n".join(shown))
    return shown


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    given = parser.parse_args()
    main(given.data)
