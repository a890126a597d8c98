"""Draw docs/sensitivity-*.png and print the table of docs/sensitivity.md.

Simulated weeks are made here; real sets are read from the folder that COINHAZE_DATA names.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coinhaze
from coinhaze.ledger import Ledger
from coinhaze.robustness.report import save_sensitivity
from coinhaze.robustness.sensitivity import Sensitivity, sensitivity
from coinhaze.simulate import simulate_week

DOCS = Path(__file__).parents[1]
SECONDS = 120.0
# The figures that are drawn; the table has all.
DRAWN = {
    "dai-week, 20 %": "sensitivity-dai.png",
    "Bitcoin, 4 001 blocks": "sensitivity-bitcoin.png",
}


def ledgers() -> Iterator[tuple[str, Ledger, dict[str, Any]]]:
    """Give each ledger with its name and the settings of its table as it is."""
    yield "dai-week, 20 %", simulate_week("dai-week", size=0.2), {}
    yield "usdc-week, 5 %", simulate_week("usdc-week", size=0.05), {}
    yield "bitcoin-week, 0.2 %", simulate_week("bitcoin-week", size=0.002), {"view": "address"}
    yield "zcash-week, 2 %", simulate_week("zcash-week", size=0.02), {"view": "address"}
    folder = os.environ.get("COINHAZE_DATA")
    if not folder:
        print("COINHAZE_DATA is not set: no real sets", file=sys.stderr)
        return
    data = Path(folder)
    yield "DAI, 12 December 2019", coinhaze.read(_dai(data)), {}
    yield "Bitcoin, 4 001 blocks", coinhaze.read(_bitcoin(data)), {"view": "address"}


def _dai(data: Path) -> list[Path]:
    return [data / "erc20_dai_2019_12_12" / "dai_transfers.csv.gz"]


def _bitcoin(data: Path) -> list[Path]:
    return sorted((data / "btc_utxo_100000_104000").glob("[ve]*.csv.gz"))


def line(name: str, found: Sensitivity) -> str:
    moved = {one.choice.name: found.moved(one) for one in found.varied if one.summary}
    stated = [f"{value:+.2f}" for value in moved.values()]
    return f"{name}: {found.base.bits_mean:.2f}; " + ", ".join(
        f"{choice} {value}" for choice, value in zip(moved, stated, strict=True)
    )


def main() -> None:
    for name, ledger, settings in ledgers():
        found = sensitivity(ledger, seconds=SECONDS, **settings)
        print(line(name, found), flush=True)
        for one in found.varied:
            if one.refused:
                print(f"  {one.choice.name}: {one.refused}", flush=True)
        if name in DRAWN:
            save_sensitivity(found.to_arrow(), DOCS / DRAWN[name], title=name)


if __name__ == "__main__":
    main()
