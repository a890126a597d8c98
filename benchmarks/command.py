"""A certified bitcoin-week on the command line, by two checkouts in turn.

    python -m benchmarks.command PATH --size 1 --runs 3

PATH is another checkout, such as a `git worktree` of an earlier commit. A week is simulated into a
folder once; both first score a part of it, so that kernels are compiled, and then by turns score
the whole of it to a mean width, from reading the folder to writing a CSV file. Printed are CPU
seconds of the process and of the system for it, wall seconds and peak memory of every run, and the
ratios of the least CPU and wall seconds. The system's part is mostly memory that is cleared for the
process: a virtual machine whose host has taken unused memory back pays for it forty times over.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent.parent
COMMAND = "from coinhaze.cli import main; main()"


class Run(NamedTuple):
    """What one command took."""

    user: float
    system: float
    wall: float
    peak_mb: float

    @property
    def cpu(self) -> float:
        """CPU seconds of the process and of the system for it."""
        return self.user + self.system

    def line(self, name: str) -> str:
        """Show it in columns."""
        return (
            f"{name:6} {self.cpu:8.2f} {self.user:8.2f} {self.system:8.2f} {self.wall:8.2f} "
            f"{self.peak_mb:8.0f}"
        )


def run(checkout: Path, words: list[str]) -> Run:
    """Run a command of a checkout."""
    environment = os.environ | {"PYTHONPATH": str(checkout / "src")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # what is imported would be compiled anew
    begun = time.monotonic()
    made = [sys.executable, "-P", "-c", COMMAND, *words]
    with subprocess.Popen(made, env=environment, stderr=subprocess.PIPE) as process:
        assert process.stderr
        said = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(said.decode(errors="replace"))
    wall = time.monotonic() - begun
    return Run(used.ru_utime, used.ru_stime, wall, used.ru_maxrss / 1024)


def main(words: list[str] | None = None) -> tuple[list[Run], list[Run]]:
    """Print every run, and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, help="another checkout")
    parser.add_argument("--size", type=float, default=1.0, help="a part of the week")
    parser.add_argument("--runs", type=int, default=3, help="pairs of runs")
    parser.add_argument("--threads", type=int, help="as many as there are cores, if left out")
    options = parser.parse_args(words)
    sources = {"other": options.other.resolve(), "here": HERE}
    runs: dict[str, list[Run]] = {name: [] for name in sources}
    more = [] if options.threads is None else ["--threads", str(options.threads)]
    print(f"{'':6} {'CPU s':>8} {'user':>8} {'system':>8} {'wall s':>8} {'peak MB':>8}")
    with tempfile.TemporaryDirectory() as home:
        first, whole, to = (str(Path(home) / name) for name in ("first", "whole", "scores.csv"))
        for path, size in ((first, min(options.size, 0.1)), (whole, options.size)):
            run(HERE, ["simulate", "bitcoin-week", "--size", str(size), "-o", path])
        how = ["--accuracy", "0.1", "--over", "mean", *more, "-o", to]
        for source in sources.values():
            run(source, ["score", first, *how])
        for _ in range(options.runs):
            for name, source in sources.items():
                runs[name].append(run(source, ["score", whole, *how]))
                print(runs[name][-1].line(name), flush=True)
    other, here = runs["other"], runs["here"]
    for what in ("cpu", "user", "wall", "peak_mb"):
        least = [min(getattr(found, what) for found in some) for some in (here, other)]
        print(f"{what:8} {least[0]:.2f} / {least[1]:.2f} = {least[0] / least[1]:.2f}")
    return other, here


if __name__ == "__main__":
    main()
