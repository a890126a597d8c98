from __future__ import annotations

import pytest
from benchmarks.growth import SETTINGS, main


def test_the_benchmark_of_growth_runs(capsys: pytest.CaptureFixture[str]) -> None:
    rows = main((0.001, 0.002))
    assert [(size, method) for size, method, _ in rows] == [
        (size, method) for size in (0.001, 0.002) for method in SETTINGS
    ]
    assert all(each > 0 for _, _, each in rows)
    assert "us/tx" in capsys.readouterr().out
