from __future__ import annotations

import pytest
from benchmarks import ingesting


def test_the_benchmark_of_ingesting_runs(capsys: pytest.CaptureFixture[str]) -> None:
    found = ingesting.main(0.003)
    said = capsys.readouterr().out
    assert found["speed"] > 0
    assert found["peak_mb"] < 1500
    assert "MB/s of text" in said
    assert "store -> ledger" in said
