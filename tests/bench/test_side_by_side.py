from __future__ import annotations

import numpy as np
import pytest
from benchmarks.side_by_side import CASES, main


def test_the_benchmark_runs_and_ours_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    rows = main(size=0.004, seconds=0.5)
    assert len({row.case for row in rows}) == len([c for c in CASES if not c.long])
    out = capsys.readouterr().out
    assert "published rule" in out
    assert "of the mean" in out
    for row in rows:
        assert not row.run.error, row
        assert row.run.cpu > 0
        if row.method == "exact":
            assert row.worst_error == 0
        elif row.method == "preview":
            assert row.mean_error < 1
        elif "within" in row.method:
            asked = float(row.method.split()[-1])
            assert row.mean_error <= asked
            assert np.isfinite(row.worst_error)
