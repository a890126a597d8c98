from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import command


@pytest.mark.long
def test_two_checkouts_score_by_turns(capsys: pytest.CaptureFixture[str]) -> None:
    here = Path(command.__file__).parent.parent
    other, mine = command.main([str(here), "--size", "0.001", "--runs", "2", "--threads", "1"])
    assert len(other) == len(mine) == 2
    assert all(run.cpu > 0 and run.wall > 0 and run.peak_mb > 0 for run in [*other, *mine])
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in said[1:5]] == ["other", "here"] * 2
    assert [line.split()[0] for line in said[5:]] == ["cpu", "user", "wall", "peak_mb"]
