from __future__ import annotations

import pytest
from benchmarks import start_up


def test_every_start_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    start_up.main(["--times", "1"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 8
    assert all(float(line[24:32]) > 0 and float(line[32:40]) > 0 for line in lines[1:])
