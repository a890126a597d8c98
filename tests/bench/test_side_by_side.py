from __future__ import annotations

import pytest
from benchmarks.side_by_side import METHODS, main


def test_the_benchmark_runs_and_ours_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    rows = main(300)
    assert len(rows) == 4 * len(METHODS)
    assert "series, published rule" in capsys.readouterr().out
    by_method = {m: [r for r in rows if r.method == m] for m in METHODS}
    assert all(r.error == 0 for r in by_method["exact"])
    assert all(r.error <= 0.05 for r in by_method["interval of 0.05 bits"])
    assert all(r.error <= 1e-6 for r in by_method["series, to 1e-6 bits"])
