"""The benchmark of histories runs, and its figures hang together."""

from __future__ import annotations

import pytest
from benchmarks import history


def test_its_figures_hang_together(capsys: pytest.CaptureFixture[str]) -> None:
    (run,) = history.main((20,))
    assert run.transactions > 10_000
    assert 0 < run.tape_bytes < run.all_bytes
    assert run.coin_bytes == pytest.approx(256 * run.slots_a_coin)
    assert min(run.simulated, run.indexed, run.passed, run.gathered) > 0
    assert "hold" in capsys.readouterr().out
