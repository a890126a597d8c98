from __future__ import annotations

import pytest
from benchmarks.one_coin import main

from coinhaze import absorbing_chain, transaction_graph
from coinhaze.simulate import simulate_town


def test_the_benchmark_runs_and_refuses_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    chain = absorbing_chain(transaction_graph(simulate_town(transactions=300)))
    results = main(chain, count=50, few=5)
    assert "bits to 0.05 bits, 50 sinks, seed 1, refused 0" in capsys.readouterr().out
    for result in results.values():
        assert result.refused == 0
        assert result.width.max() <= 0.05
