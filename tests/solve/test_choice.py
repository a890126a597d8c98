"""Choosing a method, planning it, and keeping within limits."""

from __future__ import annotations

import itertools
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import coinhaze
from coinhaze import AbsorbingChain, absorbing_chain, transaction_graph
from coinhaze.errors import ResourceError, UsageError
from coinhaze.simulate import simulate_hubs
from coinhaze.solve.exact import stream
from coinhaze.solve.exact.stream_kernels import WIDTH
from coinhaze.solve.planner import plan as planner
from coinhaze.solve.planner import thresholds
from coinhaze.solve.pool.limits import Budget, bytes_of, in_words, memory_now, memory_peak
from solve.economies import random_transfers


@cache
def chain_of(time: str = "stationary", people: int = 600) -> AbsorbingChain:
    ledger = simulate_hubs(people=people, seed=1, transfers=4)
    return absorbing_chain(transaction_graph(ledger, time=time))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("time", "settings", "method"),
    [
        ("stationary", {}, "eliminate"),
        ("temporal", {}, "sweep"),
        ("stationary", {"accuracy": 0.1}, "eliminate"),
        ("temporal", {"accuracy": 0.1, "over": "mean"}, "sweep"),
        ("stationary", {"accuracy": "preview"}, "sketch of 256 draws"),
        ("temporal", {"method": "published"}, "series (published)"),
        ("temporal", {"accuracy": 0.1, "method": "eliminate"}, "eliminate"),
    ],
)
def test_a_plan_names_the_method_and_counts_the_work(
    time: str, settings: dict[str, Any], method: str
) -> None:
    chain = chain_of(time)
    plan = coinhaze.plan(chain, **settings)
    assert plan.method == method
    assert (plan.nodes, plan.edges) == (len(chain), len(chain.graph.tail))
    assert plan.rows == int(chain.graph.sinks.sum())
    assert 0 < plan.states <= plan.nodes
    assert 0 < plan.columns <= len(chain.outcomes)
    lines = "\n".join(plan.lines())
    assert method in lines
    assert ("unknown" in lines) == (method == "series (published)")


@pytest.mark.parametrize("time", ["stationary", "temporal"])
def test_small_probabilities_are_dropped_where_exact_scores_cost_more(
    time: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = chain_of(time)
    exact = coinhaze.score(chain)
    assert coinhaze.score(chain, accuracy=0.1).method == exact.method
    monkeypatch.setattr(thresholds, "TILE_NS_CACHED", (1e6, 1e6))
    monkeypatch.setattr(thresholds, "LIST_NS", 1e6)
    assert coinhaze.plan(chain, accuracy=0.1).method == "sweep, dropping what is small"
    rough = coinhaze.score(chain, accuracy=0.1)
    assert rough.method.startswith("sweep (dropping below")
    assert rough.width <= 0.1
    assert np.all(rough.bits_low <= exact.bits_high)
    assert np.all(rough.bits_high >= exact.bits_low)


def test_an_estimate_is_what_a_few_tiles_take_times_their_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By a clock that goes on by 3 s with each look; benchmarks.side_by_side has true figures."""
    clock = itertools.count(0.0, 3.0)
    for module in (stream, planner):
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    monkeypatch.setattr(planner, "time_tiles", partial(stream.time_tiles, sample=2))
    chain = chain_of(people=400)
    tiles = coinhaze.plan(chain, threads=1)
    every = -(-tiles.columns // WIDTH)
    assert every > 2
    assert tiles.seconds == 3 * every / 2
    preview = coinhaze.plan(chain, accuracy="preview", threads=1)
    assert preview.seconds == 3 * 256 / WIDTH


def test_a_solve_that_takes_too_long_is_refused_before_it_runs() -> None:
    with pytest.raises(ResourceError, match=r"would take about .* above the 1e-09 s allowed"):
        coinhaze.score(chain_of(), seconds=1e-9)
    assert coinhaze.score(chain_of(), seconds=1e6).width <= 1e-9


def test_memory_already_in_use_is_refused() -> None:
    with pytest.raises(ResourceError, match=r"take .* already, above the .* allowed"):
        coinhaze.score(chain_of(), memory="1MB")
    with pytest.raises(ResourceError, match=r"take .* already, above the .* allowed"):
        coinhaze.score(chain_of("temporal"), memory="1MB", accuracy=0.1)
    with pytest.raises(ResourceError, match=r"take .* already, above the .* allowed"):
        coinhaze.score(chain_of(), memory="1MB", accuracy="preview")


def test_a_tile_that_does_not_fit_is_refused() -> None:
    budget, tile = Budget(memory=memory_now() + (64 << 20)), 8 * 64 * 1_000_000
    with pytest.raises(ResourceError, match="a tile of columns would take"):
        budget.workers(10, room_bytes=tile, what="a tile of columns")
    roomy = Budget(memory=memory_now() + (3 << 29), threads=4)
    assert roomy.workers(10, room_bytes=tile, what="a tile of columns") in (2, 3)


def test_limits_change_no_bit() -> None:
    chain = chain_of()
    plain = coinhaze.score(chain)
    limited = coinhaze.score(chain, memory=memory_now() + (1 << 30), threads=1, seconds=1e5)
    assert np.array_equal(plain.bits, limited.bits)


def test_sizes_are_read_and_said() -> None:
    assert bytes_of("1.5 GiB") == 3 << 29
    assert bytes_of("20k") == 20480
    for bad in ("", "much", "-1GB", "nan", "0"):
        with pytest.raises(UsageError, match="memory is a size such as 4GB"):
            bytes_of(bad)
    assert in_words(3 << 29) == "1.5 GB"
    assert in_words(2048) == "2 kB"
    assert 0 < memory_now() <= memory_peak() * 1.01


def test_lists_and_tiles_agree_and_the_cheaper_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = absorbing_chain(transaction_graph(random_transfers(400, 3000, 2), time="temporal"))
    tiles = coinhaze.score(chain)
    monkeypatch.setattr(thresholds, "MIN_SECONDS_FOR_LISTS", 0.0)
    monkeypatch.setattr(thresholds, "LIST_NS", 1e-9)
    lists = coinhaze.score(chain)
    np.testing.assert_allclose(tiles.bits, lists.bits, atol=1e-11)
    assert np.array_equal(tiles.sources, lists.sources)


@pytest.mark.parametrize("setting", [{"over": "median"}, {"accuracy": -1}, {"accuracy": "good"}])
def test_settings_without_meaning_are_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        coinhaze.score(chain_of(people=50), **setting)
