"""What checks add to reading is measured, and two checkouts are solved in turn."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import alternating, completeness


def test_the_benchmark_of_checks_runs(capsys: pytest.CaptureFixture[str]) -> None:
    added = completeness.main(0.0005, 1)
    assert list(added) == ["ingest", "read", "merkle"]
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert all(" without, " in line for line in lines[1:])


def test_a_checkout_is_solved_in_a_process_of_its_own() -> None:
    here = Path(alternating.__file__).resolve().parent.parent
    solver = alternating.Solver(here, "dai temporal", 0.002)
    seconds, width = solver.solve()
    solver.close()
    assert seconds > 0
    assert isinstance(width, float)
    assert width <= 1e-10
