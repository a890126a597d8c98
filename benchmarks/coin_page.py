"""A coin's page of a week of Bitcoin, not remembered from before: how long its answer takes.

`python -m benchmarks.coin_page` makes the ledger (`--size` 1 is a whole week), or reads FOLDER.
Sinks are drawn by `--seed`; hubs are the sinks whose transactions spend most coins. Every coin is
requested once, after a first one that makes the chain ready and whose time is printed apart.
Wall milliseconds, and CPU milliseconds beside them for a machine that is busy with other things.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

import coinhaze
from coinhaze import AbsorbingChain, CoinLedger, Scores, absorbing_chain, transaction_graph
from coinhaze.amounts import Floats, Ints
from coinhaze.explore.explorer import Explorer
from coinhaze.explore.query import CoinQuery, Settings, TableQuery, WhatIfQuery
from coinhaze.simulate import simulate_week

QUANTILES = (0.5, 0.95, 0.99, 1.0)
HUBS = 20


def timed(questions: Sequence[Callable[[], object]]) -> tuple[Floats, Floats]:
    """Ask each question once; give wall and CPU milliseconds."""
    taken = np.empty((2, len(questions)))
    for k, question in enumerate(questions):
        wall, cpu = time.perf_counter(), time.process_time()
        question()
        taken[:, k] = time.perf_counter() - wall, time.process_time() - cpu
    return 1e3 * taken[0], 1e3 * taken[1]


def report(name: str, questions: Sequence[Callable[[], object]]) -> Floats:
    """Print a line of quantiles; give the CPU milliseconds."""
    wall, cpu = timed(questions)
    cells = " ".join(
        f"{np.quantile(values, q, method='higher'):>9.1f}"
        for values in (wall, cpu)
        for q in QUANTILES
    )
    print(f"{name:<34}{len(questions):>5} {cells}", flush=True)
    return cpu


def hubs(chain: AbsorbingChain, count: int) -> list[str]:
    """Name the sinks whose transactions spend most coins."""
    ledger = chain.graph.ledger
    assert isinstance(ledger, CoinLedger)
    sinks = np.flatnonzero(chain.graph.sinks)
    sinks = sinks[chain.graph.names.party[sinks] < len(ledger.output_tx)]
    inputs = np.bincount(ledger.input_tx, minlength=len(ledger.txids))
    size = inputs[ledger.output_tx[chain.graph.names.party[sinks]]]
    maximum = sinks[np.argsort(-size, kind="stable")[:count]]
    names: list[str] = chain.graph.names.of(maximum).to_pylist()
    return names


def main(
    chain: AbsorbingChain, scores: Scores | None, *, count: int = 200, seed: int = 1
) -> dict[str, Floats]:
    """Print the table."""
    graph = chain.graph
    ledger = graph.ledger
    assert isinstance(ledger, CoinLedger)
    rng = np.random.default_rng(seed)
    sinks = rng.choice(np.flatnonzero(graph.sinks), count, replace=False)
    names = graph.names.of(sinks).to_pylist()
    owners = _addresses(ledger, graph.names.party[sinks])
    explorer = Explorer(chain, scores, names_of=lambda _: owners)
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores; {chain}")
    wall, cpu = timed([lambda: explorer.coin(names[0], CoinQuery())])
    print(f"made ready by the first question in {wall[0]:,.0f} ms ({cpu[0]:,.0f} ms CPU)")
    explorer.coin(names[0], CoinQuery(list="l"))
    head = " ".join(f"{f'{q:.0%}':>9}" for q in QUANTILES)
    print(f"{'':<40}{'wall, ms':>9}{'CPU, ms':>40}\n{'':<40}{head} {head}")

    def coins(some: Sequence[str], **ask: Any) -> list[Callable[[], object]]:
        return [lambda n=n: explorer.coin(n, CoinQuery(**ask)) for n in some]  # type: ignore[misc]

    found = {
        "coin": report("coin", coins(names[1:])),
        "hub": report("coin, most inputs", coins(hubs(chain, HUBS))),
        "listed": report("coin, with a list", coins(names[1:51], list="l")),
        "opened": report("coin, opened", coins(names[1:51], open=("d", "h2x", "h3x"))),
        "search": report("search by a beginning", _searches(explorer, names[:50])),
        "comparators": report(
            "other measures",
            [lambda n=n: explorer.comparators(n, Settings()) for n in names[-50:]],  # type: ignore[misc]
        ),
        "what-if": report(
            "what-if of two coins",
            [
                lambda k=k: explorer.what_if(WhatIfQuery(coins=(names[k], names[k + 1])))  # type: ignore[misc]
                for k in range(20)
            ],
        ),
        "address": report(
            "address",
            [
                lambda o=o: explorer.group("address", o, Settings(), after=None, limit=100)  # type: ignore[misc]
                for o in owners[:50]
            ],
        ),
    }
    if scores is not None:
        found["ledger"] = report("ledger", [lambda: explorer.ledger(Settings())] * 2)
        found["density"] = report("bits and steps", [lambda: explorer.density(Settings())])
        sorts = ["-bits", "-amount", "steps", "-sources"]
        pages = [TableQuery(sort=sort, bits_low=1.0) for sort in sorts for _ in range(2)]
        found["table"] = report(
            "table, each order twice",
            [lambda a=ask: explorer.table(a) for ask in pages],  # type: ignore[misc]
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"at most {peak / 2**20:.2f} GiB of memory")
    return found


def _addresses(ledger: CoinLedger, coins: Ints) -> list[str]:
    """Name the addresses of some coins, where they have one."""
    owner = np.unique(ledger.output_owner[coins])
    names: list[str] = ledger.owners.take(pa.array(owner[~ledger.owner_is_coin[owner]])).to_pylist()
    return names


def _searches(explorer: Explorer, names: Sequence[str]) -> list[Callable[[], object]]:
    explorer.search(names[0][:6])
    return [lambda n=n: explorer.search(n[:7]) for n in names]  # type: ignore[misc]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", help="a ledger of coins; made if not given")
    parser.add_argument("--size", type=float, default=0.01)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--preview", action="store_true", help="score all coins first, roughly")
    given = parser.parse_args()
    made = (
        simulate_week("bitcoin-week", size=given.size)
        if given.folder is None
        else coinhaze.read(given.folder)
    )
    own = absorbing_chain(transaction_graph(made))
    rough = coinhaze.score(own, accuracy="preview", seed=0) if given.preview else None
    main(own, rough, count=given.count, seed=given.seed)
