"""Two checkouts on the same solves, in turn: `python -m benchmarks.alternating PATH`.

PATH is another checkout, such as a `git worktree` of an earlier commit. Each of the two has a
process of its own, in which kernels are compiled and loaded and the chain is built; then they solve
it by turns, so that a busy machine is busy for both. Times are CPU seconds of the solve alone (all
threads). What is printed is the median over several such pairs and the ratio. Solves of less than a
second are run twenty times by each: how much memory one must touch anew differs from process to
process and from solve to solve.
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
import coinhaze
from coinhaze.simulate import simulate_week
try:
    from coinhaze import kernels
    kernels.SMALL = -1  # the first, small solve compiles, too
except ImportError:
    pass  # a checkout that always compiles
week, size, graph, solve, warm = json.loads(sys.argv[1])
def chain(size):
    ledger = simulate_week(week, size=size)
    return coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger, **graph))
def run(chain):
    begin = time.process_time()
    try:
        width = coinhaze.score(chain, **solve).width
    except coinhaze.CoinhazeError as error:
        width = str(error)
    return time.process_time() - begin, width
run(chain(warm))
whole = chain(size)
print("ready", flush=True)
for _ in sys.stdin:
    print(json.dumps(run(whole)), flush=True)
"""


class Solver:
    """A process that solves one case with the code of a checkout, again and again."""

    def __init__(self, checkout: Path, case: str, scale: float) -> None:
        week, size, graph, solve = CASES[case]
        given = json.dumps([week, size * scale, graph, solve, min(size * scale, 0.002)])
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", ONE, given],
            env=os.environ | {"PYTHONPATH": str(checkout / "src")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._next_line()

    def solve(self) -> tuple[float, float | str]:
        """Solve once; give CPU seconds and the widest interval."""
        assert self._process.stdin
        print(file=self._process.stdin, flush=True)
        seconds, width = json.loads(self._next_line())
        return seconds, width

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def _next_line(self) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("a checkout could not solve: see above")
        return line


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
        times: tuple[list[float], list[float]] = [], []
        for _ in range(options.runs):
            solvers = [Solver(at, case, options.scale) for at in (options.other.resolve(), here)]
            pair: tuple[list[float], list[float]] = [], []
            while not pair[0] or (len(pair[0]) < 20 and max(pair[0]) < 1):
                for solver, found in zip(solvers, pair, strict=True):
                    seconds, width = solver.solve()
                    found.append(seconds)
            for solver, found, all_found in zip(solvers, pair, times, strict=True):
                solver.close()
                all_found.append(median(found))
        old, new = (median(found) for found in times)
        print(f"{case:26} {old:8.3f} s {new:8.3f} s  ratio {new / old:.3f}  {width}", flush=True)


if __name__ == "__main__":
    main()
