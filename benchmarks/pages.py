"""A cached ledger's first page, and coin pages on their first request, over HTTP.

`coinhaze simulate bitcoin-week -o week`, `coinhaze score week --accuracy 0.1 --over mean --keep`,
then `python -m benchmarks.pages week`.
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path

import httpx2
import numpy as np

from benchmarks.served import serving

SETTLE = 6.0  # seconds in which a large ledger's indexes are made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ledger", type=Path)
    parser.add_argument("--coins", type=int, default=200)
    options = parser.parse_args()
    began = time.perf_counter()
    with (
        serving(options.ledger) as served,
        httpx2.Client(base_url=served.address, headers=served.bearer, timeout=60) as client,
    ):
        client.get("/").raise_for_status()
        print(f"first page {time.perf_counter() - began:.2f} s after the command")
        (card,) = client.get("/api/v1/ledgers").json()["ledgers"]
        ledger = card["id"]
        client.get(f"/l/{ledger}").raise_for_status()
        print(f"the ledger's page {time.perf_counter() - began:.2f} s after it")
        time.sleep(SETTLE)
        taken = [timed(client, f"/l/{ledger}/coin/{n}") for n in names(client, ledger, options)]
    low, high, maximum = 1000 * np.quantile(taken, [0.5, 0.95, 1.0])
    print(
        f"{len(taken)} coin pages: {low:.0f} ms (50 %), {high:.0f} ms (95 %), "
        f"{maximum:.0f} ms (all)"
    )


def names(client: httpx2.Client, ledger: str, options: argparse.Namespace) -> list[str]:
    """Choose coins evenly over bits, so that those with long pasts are not rare."""
    found: dict[str, None] = {}
    for low in np.arange(0.0, 8.0, 0.25):
        rows = client.get(
            f"/api/v1/ledgers/{ledger}/table",
            params={"sort": "bits", "bits_low": str(low), "limit": "8"},
        ).json()
        found |= dict.fromkeys(row["name"] for row in rows["rows"])
    some = list(found)
    random.Random(1).shuffle(some)
    return some[: options.coins]


def timed(client: httpx2.Client, path: str) -> float:
    began = time.perf_counter()
    client.get(path).raise_for_status()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
