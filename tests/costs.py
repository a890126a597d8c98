"""What tests cost: CPU seconds of their process and programs they ran, and by the clock."""

from __future__ import annotations

import resource
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest


def spent() -> float:
    """CPU seconds of this process, its threads and the programs that it has waited for."""
    usages = (
        resource.getrusage(resource.RUSAGE_SELF),
        resource.getrusage(resource.RUSAGE_CHILDREN),
    )
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


class Compiling:
    """CPU seconds spent on compiling kernels, also what other tests would have compiled."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._begun: list[float] = []

    def listen(self) -> None:
        from numba.core import event

        compiling = self

        class Listener(event.Listener):  # type: ignore[misc]
            def on_start(self, event: object) -> None:
                compiling._begun.append(spent())

            def on_end(self, event: object) -> None:
                begun = compiling._begun.pop()
                if not compiling._begun:  # a kernel is compiled while another one is
                    compiling.seconds += spent() - begun

        event.register("numba:compile", Listener())


class Costs:
    """Writes a line for each part of each test, and shows a table of the files."""

    def __init__(self, path: Path, worker: bool) -> None:
        self._path = path
        self._worker = worker
        self._compiling = Compiling()
        self._last = (0.0, 0.0)
        if not worker:
            path.write_text("")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._compiling.listen()
        self._last = (spent(), 0.0)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now = spent(), self._compiling.seconds
        # Attributes of a report go with it from the process that tests to the one that shows.
        report.costs = [now[0] - self._last[0], now[1] - self._last[1]]  # type: ignore[attr-defined]
        self._last = now
        return report

    def pytest_runtest_logreport(self, report: Any) -> None:
        if self._worker:
            return  # it comes again, in the process that shows
        costs = [*report.costs, report.duration]
        with self._path.open("a") as lines:  # at once: a run that is ended has said what it knows
            lines.write("\t".join([*map("{:.3f}".format, costs), report.nodeid]) + "\n")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        files: dict[str, list[Any]] = defaultdict(lambda: [0.0, 0.0, 0.0, set()])
        for line in self._path.read_text().splitlines():
            *costs, name = line.split("\t", 3)
            cost = files[name.partition("::")[0]]
            for k, seconds in enumerate(costs):
                cost[k] += float(seconds)
            cost[-1].add(name)
        terminalreporter.section("CPU seconds, those of them for compiling, seconds, tests")
        for name, cost in sorted(files.items(), key=lambda pair: -pair[1][0]):
            seconds = " ".join(f"{value:8.1f}" for value in cost[:3])
            terminalreporter.line(f"{seconds} {len(cost[-1]):6} {name}")
