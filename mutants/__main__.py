"""Check that the tests notice each mutant of the list.

`python -m mutants` (`make mutants`) runs, for each entry, the tests it names on a copy of the
package with that one change. Tests that fail, or take more than two minutes of CPU time, have
noticed: the mutant is killed. Ends with 1 if a mutant survives that is not listed as equivalent, if
an entry no longer applies, or if the tests fail without any change. `--only TEXT` takes the entries
with that text in them, `--from N` those from number N on, `--log FOLDER` writes what the tests
printed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutants.apply import DoesNotApply, missing_tests, mutated
from mutants.child import FAILED, PASSED, ROOT, TIMED_OUT, Outcome, pytest_on
from mutants.copies import Copy
from mutants.entries import Mutant, load

LIMIT = 120.0  # seconds of CPU time for one mutant
BASELINE_LIMIT = 900.0


def main() -> int:
    """Run the list, or a part of it."""
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("--only", default="", help="entries with this text in them")
    parser.add_argument("--from", dest="first", type=int, default=1, help="entries from here on")
    parser.add_argument("--to", dest="last", type=int, default=10**6, help="entries up to here")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--no-baseline", action="store_true", help="trust the tests to pass")
    parser.add_argument("--log", type=Path, help="a folder for what the tests printed")
    options = parser.parse_args()
    every = list(enumerate(load(), 1))
    chosen = [
        (number, mutant)
        for number, mutant in every
        if options.first <= number <= options.last and options.only in f"{mutant} {mutant.why}"
    ]
    lost = [problem for _, mutant in chosen if (problem := problem_of(mutant))]
    for problem in lost:
        print(f"does not apply: {problem}")
    if lost or not chosen:
        return 1
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        run = Run(Path(folder), options.workers, options.log)
        if not options.no_baseline and not run.unchanged([mutant for _, mutant in chosen]):
            return 1
        print(f"unchanged: {time.monotonic() - begun:.0f} s", flush=True)
        verdicts = run.all(chosen)
    minutes = (time.monotonic() - begun) / 60
    print(f"{len(chosen)} mutants in {minutes:.1f} minutes, {run.cpu / 60:.1f} minutes of CPU")
    counts = Counter(verdicts)
    for verdict in ("killed", "equivalent", "survived", "broken"):
        by_time = f", {run.timed_out} of them by time-out" if verdict == "killed" else ""
        print(f"{verdict:>11} {counts[verdict]:4d}{by_time}")
    return 1 if counts["survived"] or counts["broken"] else 0


def problem_of(mutant: Mutant) -> str:
    """Say why an entry cannot be run, if so."""
    try:
        mutated(mutant, ROOT / "src")
    except DoesNotApply as error:
        return str(error)
    missing = missing_tests(mutant, ROOT)
    return f"{mutant}: no test {missing[0]}" if missing else ""


class Run:
    """Copies of the package and the workers that change them."""

    def __init__(self, folder: Path, workers: int, log: Path | None) -> None:
        self.folder, self.workers, self.log = folder, workers, log
        self.plain = Copy(ROOT / "src", folder / "plain")
        self.mine = threading.local()
        self.made = iter(range(workers))
        self.cpu = 0.0
        self.timed_out = 0

    def unchanged(self, mutants: Sequence[Mutant]) -> bool:
        """Tell whether all tests named pass on the package as it is; compiles what they need."""
        parts = [
            (tests, interpreted)
            for interpreted in (False, True)
            for tests in self._shares([m for m in mutants if m.interpreted == interpreted])
        ]
        with ThreadPoolExecutor(self.workers) as pool:
            outcomes = list(pool.map(lambda part: self._baseline(*part), parts))
        for outcome in outcomes:
            if outcome.code != PASSED:
                print(f"the tests fail without any change:\n{outcome.text}")
        return all(outcome.code == PASSED for outcome in outcomes)

    def _shares(self, mutants: Sequence[Mutant]) -> list[list[str]]:
        """Share the tests named out among the workers, each test once."""
        files: dict[str, set[str]] = {}
        for test in (t for m in mutants for t in m.tests):
            files.setdefault(test.partition("::")[0], set()).add(test)
        # A file that is named as a whole needs no ids.
        tests = [{name} if name in ids else ids for name, ids in sorted(files.items())]
        shares = [tests[worker :: self.workers] for worker in range(self.workers)]
        return [[t for some in share for t in sorted(some)] for share in shares if share]

    def _baseline(self, tests: Sequence[str], interpreted: bool) -> Outcome:
        outcome = pytest_on(self.plain.source, tests, limit=BASELINE_LIMIT, interpreted=interpreted)
        self.cpu += outcome.cpu
        return outcome

    def all(self, chosen: Sequence[tuple[int, Mutant]]) -> list[str]:
        """Give the verdict on each mutant; prints them as they come."""
        with ThreadPoolExecutor(self.workers, initializer=self._begin) as pool:
            return list(pool.map(self._verdict, chosen))

    def _begin(self) -> None:
        # From the plain copy, which has all compiled.
        self.mine.copy = Copy(self.plain.source, self.folder / str(next(self.made)))

    def _verdict(self, numbered: tuple[int, Mutant]) -> str:
        number, mutant = numbered
        copy: Copy = self.mine.copy
        with copy.changed(mutant):
            outcome = pytest_on(
                copy.source, mutant.tests, limit=LIMIT, interpreted=mutant.interpreted
            )
        self.cpu += outcome.cpu
        if outcome.code == PASSED:
            verdict = "equivalent" if mutant.equivalent else "survived"
        else:
            # Below 0 it was ended by a signal, such as that of a crash. All else is a mistake in
            # the entry: the mutant cannot be imported.
            verdict = "killed" if outcome.code == FAILED or outcome.code < 0 else "broken"
        timed_out = outcome.code == TIMED_OUT
        self.timed_out += timed_out
        test = "(time-out)" if timed_out else outcome.failed_test
        took = f"{outcome.seconds:5.1f} s {outcome.cpu:5.1f} CPU"
        print(f"{number:4d} {verdict:10} {took}  {mutant}  {test}", flush=True)
        if self.log:
            self.log.mkdir(parents=True, exist_ok=True)
            self.log.joinpath(f"{number:03d}.txt").write_text(f"{mutant}\n{outcome.text}")
        return verdict


if __name__ == "__main__":
    sys.exit(main())
