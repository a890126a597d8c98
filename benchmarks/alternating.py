"""Two checkouts on the same solves, in turn: `python -m benchmarks.alternating PATH`.

PATH is another checkout, such as a `git worktree` of an earlier commit. Each solve runs in a
process of its own that imports one of them, old and new by turns, so that a busy machine is busy
for both. Times are CPU seconds of the solve alone (all threads), kernels compiled and loaded
before; a solve of less than a second is repeated, and its least time counts. What is printed is the
median of each and their ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

# Name: week, part of it, settings of the graph, settings of the solve.
CASES: dict[str, tuple[str, float, dict[str, Any], dict[str, Any]]] = {
    "dai stationary": ("dai-week", 1.0, {"time": "stationary"}, {}),
    "dai temporal": ("dai-week", 1.0, {"time": "temporal"}, {}),
    "usdc stationary": ("usdc-week", 1.0, {"time": "stationary"}, {}),
    "usdc temporal": ("usdc-week", 1.0, {"time": "temporal"}, {}),
    "bitcoin 10% coins, 0.05": ("bitcoin-week", 0.1, {"view": "coin"}, {"accuracy": 0.05}),
    "zcash 10%": ("zcash-week", 0.1, {"view": "coin"}, {}),
    "ethereum 2% temporal": ("ethereum-week", 0.02, {"time": "temporal"}, {}),
}

ONE = """
import json, sys, time
import numpy as np
import coinhaze
from coinhaze.simulate import simulate_week
week, size, graph, solve, warm = json.loads(sys.argv[1])
def chain(size):
    ledger = simulate_week(week, size=size)
    return coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger, **graph))
def run(chain):
    try:
        return coinhaze.score(chain, **solve).width
    except coinhaze.CoinhazeError as error:
        return str(error)
run(chain(warm))
whole = chain(size)
def timed():
    begin = time.process_time()
    width = run(whole)
    return time.process_time() - begin, width
found = [timed()]
if found[0][0] < 1:
    found = [timed() for _ in range(9)]
print(json.dumps(min(found)))
"""


def run_one(checkout: Path, case: str, scale: float) -> tuple[float, float | str]:
    """Solve one case with the code of a checkout; give CPU seconds and the widest interval."""
    week, size, graph, solve = CASES[case]
    given = json.dumps([week, size * scale, graph, solve, min(size * scale, 0.002)])
    done = subprocess.run(
        [sys.executable, "-P", "-c", ONE, given],
        env=os.environ | {"PYTHONPATH": str(checkout / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, width = json.loads(done.stdout.splitlines()[-1])
    return seconds, width


def main() -> None:
    """Compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, help="another checkout")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="a part of each case")
    parser.add_argument("--case", action="append", choices=[*CASES], help="some cases only")
    options = parser.parse_args()
    here = Path(__file__).resolve().parent.parent
    for case in options.case or CASES:
        old, new, width = [], [], []
        for _ in range(options.runs):
            old.append(run_one(options.other.resolve(), case, options.scale)[0])
            seconds, reached = run_one(here, case, options.scale)
            new.append(seconds)
            width.append(reached)
        ratio = median(new) / median(old)
        print(
            f"{case:26} {median(old):8.2f} s {median(new):8.2f} s  ratio {ratio:.3f}  {width[-1]}",
            flush=True,
        )


if __name__ == "__main__":
    main()
