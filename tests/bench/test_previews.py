from __future__ import annotations

import pytest
from benchmarks.previews import main


def test_more_draws_narrow_intervals_as_the_law_says(capsys: pytest.CaptureFixture[str]) -> None:
    few, many = main(size=0.002, draws=(256, 4096))
    assert many.width <= 0.52
    assert few.width <= 2.1
    assert "4096 draws: 0.51" in capsys.readouterr().out
