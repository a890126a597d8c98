"""Wall and CPU seconds until a command has answered: help, and small ledgers cold and warm.

    python -m benchmarks.start_up [PATH]

PATH is another checkout, run in turn with this one. Cold is an empty NUMBA_CACHE_DIR, warm the same
one again. Ratios of one run count; seconds depend on the machine.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent.parent
COMMAND = "from coinhaze.cli import main; main()"


def seconds(words: list[str], source: Path, cache: Path) -> tuple[float, float]:
    """Run Python on a checkout; give wall and CPU seconds."""
    environment = os.environ | {"PYTHONPATH": str(source / "src"), "NUMBA_CACHE_DIR": str(cache)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.monotonic()
    subprocess.run([sys.executable, "-P", *words], env=environment, capture_output=True, check=True)
    wall = time.monotonic() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ledger(path: Path, rows: int) -> Path:
    """Write transfers between a third as many accounts, the same every time."""
    lines = [
        f"a{k * 7919 % (rows // 3 + 3)},b{k * 104729 % (rows // 2 + 2)},{k % 97 + 1}\n"
        f"b{k * 15485863 % (rows // 2 + 2)},a{k * 32452843 % (rows // 3 + 3)},{k % 89 + 1}"
        for k in range(rows // 2)
    ]
    path.write_text("\n".join(["from,to,amount", *lines]) + "\n")
    return path


def measured(sources: list[Path], times: int, folder: Path) -> dict[str, list[tuple[float, float]]]:
    """Measure every start, of all checkouts in turn: the median of wall and of CPU seconds."""
    four, thousand = ledger(folder / "four.csv", 4), ledger(folder / "thousand.csv", 1000)
    starts = {
        "import click": ["-c", "import click"],
        "coinhaze --version": ["-c", COMMAND, "--version"],
        "coinhaze --help": ["-c", COMMAND, "--help"],
        "coinhaze score --help": ["-c", COMMAND, "score", "--help"],
        "4 rows, cold": ["-c", COMMAND, "score", str(four)],
        "4 rows, warm": ["-c", COMMAND, "score", str(four)],
        "1,000 rows, warm": ["-c", COMMAND, "score", str(thousand)],
    }
    found: dict[str, list[tuple[float, float]]] = {}
    for name, words in starts.items():
        cold = name.endswith("cold")
        taken: list[list[tuple[float, float]]] = [[] for _ in sources]
        if name.startswith("1,000"):  # what they compile or cache is not counted
            for k, source in enumerate(sources):
                seconds(words, source, folder / f"cache{k}")
        for _ in range(1 if cold else times):
            for k, source in enumerate(sources):
                taken[k].append(seconds(words, source, folder / f"cache{k}"))
        found[name] = [
            (statistics.median(w for w, _ in each), statistics.median(c for _, c in each))
            for each in taken
        ]
    return found


def main(words: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", nargs="?", type=Path, help="another checkout")
    parser.add_argument("--times", type=int, default=5, help="runs of each start but the cold one")
    options = parser.parse_args(words)
    sources = [HERE, *([options.other.resolve()] if options.other else [])]
    with tempfile.TemporaryDirectory() as folder:
        found = measured(sources, options.times, Path(folder))
    click = [cpu for _, cpu in found["import click"]]
    print(f"{'':24}{'wall s':>8}{'CPU s':>8}{'x click':>9}", end="")
    print(f"{'other wall':>12}{'CPU':>8}{'x other':>9}" if options.other else "")
    for name, values in found.items():
        wall, cpu = values[0]
        print(f"{name:24}{wall:8.2f}{cpu:8.2f}{cpu / click[0]:9.2f}", end="")
        for other_wall, other_cpu in values[1:]:
            print(f"{other_wall:12.2f}{other_cpu:8.2f}{cpu / other_cpu:9.2f}", end="")
        print()


if __name__ == "__main__":
    main()
