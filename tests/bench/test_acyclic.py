"""The benchmark of acyclic chains runs, and its exact rows are those of the exact solver."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.acyclic import exact_bits, main

from coinhaze import absorbing_chain, score, transaction_graph
from coinhaze.simulate import simulate_hubs, simulate_town


def test_pushing_back_finds_what_the_exact_solver_finds() -> None:
    for graph in (
        transaction_graph(simulate_town(transactions=300)),
        transaction_graph(simulate_hubs(people=200, transfers=3), time="temporal"),
    ):
        chain = absorbing_chain(graph)
        scores = score(chain)
        some = np.arange(0, len(scores), 7)
        np.testing.assert_allclose(
            exact_bits(chain, scores.nodes[some]), scores.bits[some], atol=1e-11
        )


def test_the_benchmark_keeps_what_it_promises(capsys: pytest.CaptureFixture[str]) -> None:
    rows = main(None, size=0.002, seed=1, width=0.01, over="mean", sinks=50)
    assert rows[-1].mean <= 0.01
    assert rows[-1].error <= 0.01
    assert all(row.outside == 0 for row in rows)
    assert "peak memory" in capsys.readouterr().out
