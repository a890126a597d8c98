from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coinhaze
from coinhaze import AbsorbingChain, absorbing_chain, transaction_graph
from coinhaze.simulate import simulate_week
from coinhaze.solve.planner.cost import ExactCost
from coinhaze.solve.planner.mean import score_for_mean
from coinhaze.solve.query import Query
from coinhaze.solve.structure.lump import lump


def chain_of(week: str, size: float, **settings: Any) -> AbsorbingChain:
    return absorbing_chain(transaction_graph(simulate_week(week, size=size), **settings))


def sinks(chain: AbsorbingChain) -> np.typing.NDArray[np.int64]:
    return np.flatnonzero(chain.graph.sinks)


def test_what_is_soon_exact_is_exact() -> None:
    chain = chain_of("dai-week", 0.02)
    found = score_for_mean(chain, sinks(chain))
    assert found.method == "eliminate"
    assert np.array_equal(found.bits, coinhaze.score(chain).bits)


def test_without_time_for_it_cycles_are_left_to_draws() -> None:
    chain = chain_of("dai-week", 0.02)
    found = score_for_mean(chain, sinks(chain), seconds=0.0, mean_error=0.04)
    assert found.method.startswith("sketch")
    assert found.mean_error is not None
    assert found.mean_error <= 0.04


def test_what_cannot_be_proven_exactly_is_left_to_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = chain_of("dai-week", 0.005)
    monkeypatch.setattr("coinhaze.solve.exact.rounding.ROUNDING", 1e-3)
    assert score_for_mean(chain, sinks(chain)).method.startswith("sketch")


def test_an_interval_as_narrow_as_the_mean_may_err_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chain = chain_of("dai-week", 0.005)
    monkeypatch.setattr("coinhaze.solve.exact.rounding.ROUNDING", 1e-6)
    found = score_for_mean(chain, sinks(chain))
    assert (found.method, found.shortfall) == ("eliminate", None)
    assert 1e-6 < found.widths.mean() <= 0.05


def test_coins_get_intervals_as_narrow_on_average_as_the_mean_may_err(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chain = chain_of("bitcoin-week", 0.01)
    exact = score_for_mean(chain, sinks(chain))
    monkeypatch.setattr(ExactCost, "within", lambda self, seconds: False)
    found = score_for_mean(chain, sinks(chain), mean_error=0.03)
    assert found.method.startswith("sweep (dropping")
    assert 1e-6 < found.widths.mean() <= 0.03
    assert np.all(found.bits_low <= exact.bits + 1e-9)
    assert np.all(found.bits_high >= exact.bits - 1e-9)
    assert abs(found.bits.mean() - exact.bits.mean()) <= 0.03
    # Intervals that cannot be had in that time are not waited for.
    drawn = score_for_mean(chain, sinks(chain), mean_error=0.03, seconds=1e-4)
    assert drawn.method.startswith("sketch")


def test_a_list_is_scored_exactly_whatever_time_there_is() -> None:
    graph = transaction_graph(simulate_week("dai-week", size=0.005))
    source = graph.names.of(np.flatnonzero(graph.sources)[:1]).to_pylist()
    chain = absorbing_chain(graph, listed=source)
    found = score_for_mean(chain, sinks(chain), seconds=0.0)
    assert found.method == "eliminate"
    assert found.exposure is not None


@pytest.mark.parametrize(
    ("week", "settings"),
    [("dai-week", {}), ("dai-week", {"time": "temporal"}), ("bitcoin-week", {})],
    ids=["cycles", "snapshots", "coins"],
)
def test_time_is_counted_until_it_is_too_long(week: str, settings: dict[str, str]) -> None:
    chain = chain_of(week, 0.05 if week == "dai-week" else 0.03, **settings)
    cost = lump(Query.of(chain, sinks(chain)), np.zeros(0)).cost
    assert cost.within(1.01 * cost.seconds)
    assert not cost.within(0.0)
    assert not ExactCost(cost.query, cost.columns).within(0.5 * cost.seconds)
