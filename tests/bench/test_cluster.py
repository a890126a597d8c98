from __future__ import annotations

import numpy as np
import pytest
from benchmarks.cluster import compare, is_same, timed

from coinhaze import absorbing_chain, transaction_graph
from coinhaze.measures import Scores
from coinhaze.simulate import simulate_week
from coinhaze.solve.pool import Budget, WorkerCluster
from coinhaze.solve.progress import Progress
from coinhaze.solve.sketch.sketch import sketch


@pytest.mark.long
def test_the_benchmark_of_clusters_runs(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("distributed")
    chain = absorbing_chain(transaction_graph(simulate_week("dai-week", size=0.01)))
    rows = np.flatnonzero(chain.graph.sinks)

    def drawn(budget: Budget, progress: Progress) -> Scores:
        return sketch(chain, rows, draws=640, budget=budget, progress=progress)

    with WorkerCluster(2) as cluster:
        compare("preview", drawn, cluster, 1)
    said = capsys.readouterr().out
    assert said.count("same bytes") == 2
    assert "times the wall time of threads" in said


def test_the_benchmark_of_clusters_sees_other_bytes() -> None:
    chain = absorbing_chain(transaction_graph(simulate_week("dai-week", size=0.001)))
    rows = np.flatnonzero(chain.graph.sinks)
    one, taken = timed(lambda: sketch(chain, rows, draws=64, seed=1))
    assert taken.wall > 0
    assert is_same(one, sketch(chain, rows, draws=64, seed=1))
    assert not is_same(one, sketch(chain, rows, draws=64, seed=2))
