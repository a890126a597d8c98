"""What it costs to read a ledger folder and build its graphs and chains.

    python -m benchmarks.building [FOLDER]

Each row runs in a process of its own, kernels compiled beforehand: wall and CPU seconds of the
last step alone, and the peak memory of all of it. Without a folder a small town stands in.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coinhaze.graph import transaction_graph
from coinhaze.ledger import CoinLedger, Ledger, read_folder, write_folder
from coinhaze.observer import absorbing_chain
from coinhaze.simulate import simulate_hubs, simulate_town, simulate_week
from coinhaze.working_folder import python_command, python_environment

COINS: dict[str, dict[str, Any]] = {"coin": {}, "address": {"view": "address"}}
ACCOUNTS: dict[str, dict[str, Any]] = {"stationary": {}, "temporal": {"time": "temporal"}}
HEAD = f"{'step':<18} {'wall s':>8} {'cpu s':>8} {'peak GB':>8}  what"


@dataclass(frozen=True)
class Row:
    """One step: what it took."""

    step: str
    wall: float
    cpu: float
    peak: float
    what: str

    def line(self) -> str:
        """Show it in columns."""
        return f"{self.step:<18} {self.wall:>8.2f} {self.cpu:>8.2f} {self.peak:>8.2f}  {self.what}"


def views(ledger: Ledger) -> dict[str, dict[str, Any]]:
    """Name the graphs to build of a ledger."""
    return COINS if isinstance(ledger, CoinLedger) else ACCOUNTS


def measure(step: str, folder: str) -> Row:
    """Run one step, and what it needs first, in this process."""
    for warm in (simulate_town(transactions=20, people=5), simulate_hubs(people=20)):
        with tempfile.TemporaryDirectory() as home:
            ledger = read_folder(write_folder(warm, f"{home}/warm"))
        for settings in views(ledger).values():
            absorbing_chain(transaction_graph(ledger, **settings))
    if step == "read":
        return timed(step, lambda: read_folder(folder))
    ledger = read_folder(folder)
    kind, view = step.split(" ", 1)
    settings = views(ledger)[view]
    if kind == "graph":
        return timed(step, lambda: transaction_graph(ledger, **settings))
    graph = transaction_graph(ledger, **settings)
    return timed(step, lambda: absorbing_chain(graph))


def timed(step: str, run: Callable[[], object]) -> Row:
    """Run something once and say what it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    made = run()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    what = f"{made.facts()}" if hasattr(made, "facts") else repr(made)
    return Row(step, wall, cpu, peak, what)


def measure_apart(step: str, folder: str) -> Row:
    """Run one step in a fresh process, so that peaks do not add up."""
    code = (
        "import json, dataclasses, sys; from benchmarks.building import measure; "
        "print(json.dumps(dataclasses.asdict(measure(*sys.argv[1:]))))"
    )
    here = str(Path(__file__).resolve().parents[1])
    done = subprocess.run(
        python_command("-c", code, step, folder),
        check=True, capture_output=True, text=True, env=python_environment() | {"PYTHONPATH": here},
    )  # fmt: skip
    return Row(**json.loads(done.stdout))


def main(folder: str) -> list[Row]:
    """Print the table."""
    kind = json.loads((Path(folder) / "ledger.json").read_text())["kind"]
    names = COINS if kind == "coins" else ACCOUNTS
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, {folder}")
    print(HEAD)
    rows = []
    for step in ("read", *(f"{what} {view}" for view in names for what in ("graph", "chain"))):
        rows.append(measure_apart(step, folder))
        print(rows[-1].line())
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", help="a ledger; without one a week is simulated")
    parser.add_argument("--size", type=float, default=0.01, help="of the simulated bitcoin-week")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "bitcoin-week"
        if given.folder is None:
            write_folder(simulate_week("bitcoin-week", size=given.size), path)
        main(given.folder or str(path))
