"""A progress call that raises stops a solve: its threads end, and the next one is as ever."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

import coinhaze
from coinhaze import absorbing_chain, transaction_graph
from coinhaze.simulate import simulate_week


class Stop(Exception):
    pass


@pytest.fixture(scope="module")
def chains() -> dict[str, coinhaze.AbsorbingChain]:
    bitcoin, dai = simulate_week("bitcoin-week", size=0.001), simulate_week("dai-week", size=0.005)
    return {
        "without loops": absorbing_chain(transaction_graph(bitcoin)),
        "with loops": absorbing_chain(transaction_graph(dai)),
    }


@pytest.mark.parametrize("shape", ["without loops", "with loops"])
@pytest.mark.parametrize(
    "scoring",
    [{}, {"accuracy": 0.1, "over": "mean"}, {"accuracy": "preview", "seed": 1}],
    ids=["exact", "mean", "preview"],
)
def test_raising_from_progress_stops_a_solve(
    chains: dict[str, coinhaze.AbsorbingChain], shape: str, scoring: dict[str, Any]
) -> None:
    chain = chains[shape]
    expected = coinhaze.score(chain, **scoring).bits.tobytes()
    shares: list[float] = []
    coinhaze.score(chain, progress=shares.append, **scoring)
    assert shares[0] == 0.0
    assert shares == sorted(shares)
    threads = threading.active_count()
    for call in {0, len(shares) // 2, len(shares) - 1}:
        told: list[float] = []

        def progress(share: float, /, call: int = call, told: list[float] = told) -> None:
            told.append(share)
            if len(told) > call:
                raise Stop

        with pytest.raises(Stop):
            coinhaze.score(chain, progress=progress, **scoring)
        assert len(told) == call + 1  # nobody is told anything after that
        for _ in range(6_000):  # a minute, on a busy machine
            if threading.active_count() <= threads:
                break
            time.sleep(0.01)
        assert threading.active_count() <= threads
    assert coinhaze.score(chain, **scoring).bits.tobytes() == expected
