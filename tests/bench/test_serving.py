"""The benchmarks of the server run; what they promise is for a machine that does nothing else."""

from __future__ import annotations

import pytest
from benchmarks import serving, soak


def test_a_server_answers_every_request(capsys: pytest.CaptureFixture[str]) -> None:
    loads = serving.main(None, rate=20, seconds=1, size=0.0005)
    assert [load.wrong for load in loads] == [0, 0]
    assert (loads[0].requests, loads[0].refused) == (20, 0)
    # A fast machine asks for more than the server allows in a second: that is refused, not wrong.
    assert loads[1].requests > 0
    assert "p99" in capsys.readouterr().out


def test_a_soak_asks_for_everything_and_meets_no_bug(capsys: pytest.CaptureFixture[str]) -> None:
    soak.main(seconds=5, size=0.0005)
    assert "answers by status" in capsys.readouterr().out
