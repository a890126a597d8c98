"""The paper's method and ours on the same made-up ledgers, in one run: `make bench`.

Times are CPU seconds of this process (all its threads) and wall seconds; kernels are compiled
before the clock starts. `error` is the largest difference in bits from the exact answer, `lost`
the largest part of a row's probability that is missing, `ratio` the CPU time against the
published rule. Nothing is extrapolated.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import coinhaze
from coinhaze import AbsorbingChain, Scores, absorbing_chain, transaction_graph
from coinhaze.simulate import simulate_hubs, simulate_town


@dataclass(frozen=True)
class Row:
    """One method on one ledger."""

    ledger: str
    method: str
    cpu: float
    wall: float
    error: float
    lost: float
    ratio: float

    def line(self) -> str:
        """Show it in columns."""
        return (
            f"{self.ledger:<22} {self.method:<28} {self.cpu:>9.3f} {self.wall:>9.3f} "
            f"{self.error:>9.1e} {self.lost:>9.1e} {self.ratio:>8.1f}"
        )


TITLES = ("cpu s", "wall s", "error", "lost")
HEAD = f"{'ledger':<22} {'method':<28} " + " ".join(f"{t:>9}" for t in TITLES) + f" {'ratio':>8}"


def ledgers(people: int) -> dict[str, AbsorbingChain]:
    """Make the ledgers to compare on."""
    hubs = simulate_hubs(people=people, transfers=3)
    town = simulate_town(transactions=people // 2, people=max(20, people // 20))
    return {
        "hubs, stationary": absorbing_chain(transaction_graph(hubs)),
        "hubs, temporal": absorbing_chain(transaction_graph(hubs, time="temporal")),
        "town, coins": absorbing_chain(transaction_graph(town)),
        "town, addresses": absorbing_chain(transaction_graph(town, view="address")),
    }


METHODS: dict[str, Callable[[AbsorbingChain], Scores]] = {
    "series, published rule": lambda c: coinhaze.score(c, method="published"),
    "series, to 1e-6 bits": lambda c: coinhaze.score(c, method="series", accuracy=1e-6),
    "exact": lambda c: coinhaze.score(c),
    "interval of 0.05 bits": lambda c: coinhaze.score(c, accuracy=0.05),
    "preview (sketch, k=256)": lambda c: coinhaze.score(c, accuracy="preview"),
}


def compare(name: str, chain: AbsorbingChain) -> list[Row]:
    """Run every method on one ledger."""
    exact = coinhaze.score(chain)
    rows: list[Row] = []
    for method, run in METHODS.items():
        cpu, wall = time.process_time(), time.perf_counter()
        scores = run(chain)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        rows.append(
            Row(
                ledger=name,
                method=method,
                cpu=cpu,
                wall=wall,
                error=float(np.nanmax(np.abs(scores.bits - exact.bits))),
                lost=max(0.0, float(np.nanmax(1 - scores.mass))),
                ratio=(rows[0].cpu if rows else cpu) / max(cpu, 1e-9),
            )
        )
    return rows


def main(people: int) -> list[Row]:
    """Print the table."""
    for chain in ledgers(200).values():
        compare("compile", chain)
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, {people} people")
    print(HEAD)
    rows = []
    for name, chain in ledgers(people).items():
        print(f"# {name}: {chain.graph}")
        for row in compare(name, chain):
            print(row.line())
            rows.append(row)
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=2_000)
    main(parser.parse_args().people)
