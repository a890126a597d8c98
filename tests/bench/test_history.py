"""The benchmark of histories runs, and its figures hang together."""

from __future__ import annotations

import pytest
from benchmarks import history


def test_its_figures_hang_together(capsys: pytest.CaptureFixture[str]) -> None:
    (run,) = history.main((20,), list_blocks=20)
    assert run.transactions > 10_000
    assert 0 < run.tape_bytes < run.all_bytes
    assert run.coin_bytes == pytest.approx(256 * run.slots_a_coin)
    assert min(run.simulated, run.indexed, run.passed, run.gathered) > 0
    printed = capsys.readouterr().out
    assert "numbering: " in printed
    lists = printed.split("lists: ")[1].splitlines()[1:4]
    widths = [float(line.split()[1]) for line in lists]
    assert widths == sorted(widths, reverse=True)  # longer lists prove more
