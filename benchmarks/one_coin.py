"""One coin of a week of Bitcoin: how long a question takes, and how narrow its answer is.

`python -m benchmarks.one_coin` makes the ledger (`--size` 1 is a whole week), or reads FOLDER.
Sinks are drawn by `--seed`. A refusal counts as over the limit. Times are of one question after
the chain was made ready, which is printed apart: wall seconds, and CPU seconds beside them for a
machine that is busy with other things.
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
from coinhaze import (
    AbsorbingChain,
    AccuracyError,
    CoinhazeError,
    absorbing_chain,
    transaction_graph,
)
from coinhaze.amounts import Floats, Ints
from coinhaze.simulate import simulate_town, simulate_week
from coinhaze.solve.local.origins import local_row
from coinhaze.solve.structure.structure import Structure

QUANTILES = (0.25, 0.5, 0.75, 0.95, 0.99, 1.0)


@dataclass(frozen=True)
class Answered:
    """What the questions took: seconds, CPU seconds and width of each; refusals are infinite."""

    wall: Floats
    cpu: Floats
    width: Floats

    @property
    def refused(self) -> int:
        """How many questions had no answer."""
        return int(np.isinf(self.wall).sum())

    def lines(self) -> list[str]:
        """Show quantiles in columns."""
        head = f"{'':<14}" + " ".join(f"{f'{q:.0%}':>10}" for q in QUANTILES)
        rows = (
            ("wall, ms", 1e3 * self.wall),
            ("CPU, ms", 1e3 * self.cpu),
            ("width, bits", self.width),
        )
        return [
            head,
            *(
                f"{name:<14}"
                + " ".join(f"{v:>10.4f}" for v in np.quantile(values, QUANTILES, method="higher"))
                for name, values in rows
            ),
        ]


def ask(question: Callable[[int], tuple[float, float]], nodes: Ints) -> Answered:
    """Put a question to each node; it gives the interval's two ends."""
    taken = np.full((3, len(nodes)), np.inf)
    for k, node in enumerate(nodes.tolist()):
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            low, high = question(node)
        except CoinhazeError as error:
            print(f"refused: {error}")
            continue
        taken[:, k] = time.perf_counter() - wall, time.process_time() - cpu, high - low
    return Answered(*taken)


def questions(
    chain: AbsorbingChain | Structure, width: float
) -> dict[str, Callable[[int], tuple[float, float]]]:
    """Name the questions: bits alone, and where the money came from as well."""

    def bits(node: int) -> tuple[float, float]:
        row = local_row(chain, node, width=width)
        if row.shortfall is not None:
            raise AccuracyError(row.shortfall)
        return row.bits_low, row.bits_high

    def origins(node: int) -> tuple[float, float]:
        found = coinhaze.origins(chain, node, accuracy=width)
        return found.bits_low, found.bits_high

    return {"bits": bits, "origins": origins}


def main(
    chain: AbsorbingChain, *, width: float = 0.05, count: int = 1000, few: int = 50, seed: int = 1
) -> dict[str, Answered]:
    """Print the table; origins are computed for `few` sinks."""
    small = absorbing_chain(transaction_graph(simulate_town(transactions=50)))
    for question in questions(small, width).values():
        ask(question, np.flatnonzero(small.graph.sinks)[:3])
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores")
    wall, cpu = time.perf_counter(), time.process_time()
    structure = Structure(chain)
    bounded = structure.bounded
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(
        f"{chain}\nmade ready in {wall:.2f} s ({cpu:.2f} s CPU): {len(bounded):,} states, "
        f"{len(bounded.to):,} moves, {len(bounded.ends):,} shared ends"
    )
    sinks = np.flatnonzero(chain.graph.sinks)
    drawn = np.random.default_rng(seed).choice(sinks, min(count, len(sinks)), replace=False)
    results = {}
    for name, question in questions(structure, width).items():
        nodes = drawn if name == "bits" else drawn[:few]
        result = results[name] = ask(question, nodes)
        print(f"{name} to {width} bits, {len(nodes)} sinks, seed {seed}, refused {result.refused}")
        print("\n".join(result.lines()))
    return results


def _chain(folder: str | None, size: float, seed: int, view: str) -> AbsorbingChain:
    ledger = (
        simulate_week("bitcoin-week", size=size, seed=seed)
        if folder is None
        else coinhaze.read(folder)
    )
    return absorbing_chain(transaction_graph(ledger, view=view))  # type: ignore[arg-type]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--size", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--width", type=float, default=0.05)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--view", choices=("coin", "address"), default="coin")
    given = parser.parse_args()
    made = _chain(given.folder, given.size, given.seed, given.view)
    main(made, width=given.width, count=given.count, seed=given.seed)
