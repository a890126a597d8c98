from __future__ import annotations

import pytest
from benchmarks.lots import FORWARD, main

from coinhaze import transaction_graph
from coinhaze.simulate import simulate_town


def test_the_benchmark_of_lots_runs(capsys: pytest.CaptureFixture[str]) -> None:
    rows = main(transaction_graph(simulate_town(transactions=300)))
    assert len(rows) == 2 + len(FORWARD)
    assert "bound" in rows[0].said
    assert "listed" in rows[-1].said
    assert "score, fifo" in capsys.readouterr().out
