"""What approaches to traceability cost as a ledger grows, and how many coins they answer.

`python -m benchmarks.desiderata --sizes 0.01,0.02,0.04` takes some minutes.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from functools import partial

import numpy as np

import coinhaze
from coinhaze.amounts import Floats
from coinhaze.ledger import CoinLedger
from coinhaze.measures.comparators.registry import COMPARATORS
from coinhaze.measures.comparators.side_by_side import compare_measures
from coinhaze.simulate import simulate_week

# Transaction by transaction, some seconds each: timed on ledgers so many times smaller.
DEAR, SMALLER = ("boltzmann", "efficiency", "link-bits"), 40
STEPS = 1_000_000  # on each transaction: what takes more is refused
# Read off scores that are there already; rings are another ledger's.
OF_SCORES = ("degree", "effective-sources", "possible-sources", "matching")


def approaches(ledger: CoinLedger) -> dict[str, Callable[[], Floats]]:
    graph = coinhaze.transaction_graph(ledger)
    chain = coinhaze.absorbing_chain(graph)
    scores = coinhaze.score(chain)
    people = [name for name in ledger.owners.to_pylist() if name]
    owners = dict(zip(people, people, strict=True))

    def compared(name: str) -> Floats:
        known = owners if name == "wasabi" else None
        return compare_measures(scores, [name], owners=known, steps=STEPS).comparators[name]

    def tainted(policy: str) -> Floats:
        return coinhaze.taint(graph, people[:1], policies=[policy]).amounts(policy).floats()

    found: dict[str, Callable[[], Floats]] = {
        "bits, with possible sources": lambda: coinhaze.score(chain).bits,
        "bits, preview": lambda: coinhaze.score(chain, accuracy="preview", seed=0).bits,
        "fifo-bits": lambda: coinhaze.score(graph, policy="fifo").bits,
    }
    found |= {
        name: partial(compared, name) for name in COMPARATORS.names() if name not in OF_SCORES
    }
    return found | {f"taint, {p}": partial(tainted, p) for p in ("poison", "fifo", "lifo", "tiho")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="0.01,0.02,0.04")
    sizes = [float(size) for size in parser.parse_args().sizes.split(",")]
    print("bitcoin-week, coins, seed 1")
    tell(sizes, lambda name: name not in DEAR)
    tell([size / SMALLER for size in sizes], lambda name: name in DEAR)


def tell(sizes: list[float], options: Callable[[str], bool]) -> None:
    """Time some approaches at several sizes, and print a line each."""
    seconds: dict[str, list[float]] = {}
    answered: dict[str, float] = {}
    rows = []
    for size in sizes:
        ledger = simulate_week("bitcoin-week", size=size)
        assert isinstance(ledger, CoinLedger)
        rows.append(len(ledger))
        for name, measure in approaches(ledger).items():
            if not options(name):
                continue
            if size == sizes[0]:
                measure()  # the first call may compile
            start = time.process_time()
            values = measure()
            seconds.setdefault(name, []).append(time.process_time() - start)
            answered[name] = float(np.mean(~np.isnan(values)))
    columns = "".join(f"{n:>10,}" for n in rows)
    print(f"{'CPU s at so many transactions':<30}{columns} {'exponent':>9} {'answered':>9}")
    for name, taken in seconds.items():
        growth = math.log(taken[-1] / taken[0]) / math.log(rows[-1] / rows[0])
        columns = "".join(f"{second:>10.3g}" for second in taken)
        print(f"{name:<30}{columns} {growth:9.2f} {answered[name]:9.1%}")


if __name__ == "__main__":
    main()
