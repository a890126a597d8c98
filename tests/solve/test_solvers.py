from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coinhaze
from coinhaze import absorbing_chain, transaction_graph
from coinhaze.errors import AccuracyError, UsageError
from coinhaze.simulate import simulate_hubs
from coinhaze.solve.structure.reduce import certain_nodes, reduce_chain
from coinhaze.solve.structure.reduce_kernels import strong_components
from solve.dense import absorption, entropy, reach
from solve.economies import random_transfers
from vectors import accounts


@pytest.mark.parametrize("time_", ["stationary", "temporal"])
@pytest.mark.parametrize("seed", range(4))
def test_every_row_agrees_with_a_dense_inverse(time_: Any, seed: int) -> None:
    chain = absorbing_chain(transaction_graph(random_transfers(60, 300, seed), time=time_))
    certain = certain_nodes(chain)
    b, steps = absorption(chain, certain)
    scores = coinhaze.score(chain, nodes="all", renyi=(0, 0.5, 1, 2, math.inf))
    assert np.array_equal(~np.isnan(scores.bits), certain)
    np.testing.assert_allclose(scores.bits[certain], entropy(b), atol=1e-11)
    np.testing.assert_allclose(scores.steps[certain], steps, rtol=1e-9)
    np.testing.assert_allclose(scores.top_probability[certain], b.max(axis=1), atol=1e-12)
    assert np.all(b[np.arange(len(b)), scores.top[certain]] >= b.max(axis=1) - 1e-12)
    np.testing.assert_allclose(scores.renyi[2][certain], -np.log2((b**2).sum(axis=1)), atol=1e-11)
    np.testing.assert_allclose(
        scores.renyi[0.5][certain], 2 * np.log2(np.sqrt(np.abs(b)).sum(axis=1)), atol=1e-6
    )
    np.testing.assert_allclose(scores.renyi[math.inf], scores.min_entropy, atol=1e-15)
    np.testing.assert_allclose(scores.renyi[0], scores.hartley, atol=1e-15)
    np.testing.assert_allclose(scores.renyi[1], scores.bits, atol=1e-12)
    np.testing.assert_allclose(scores.mass[certain], 1, atol=1e-12)


def test_possible_sources_are_counted_on_the_graph() -> None:
    chain = absorbing_chain(transaction_graph(random_transfers(80, 200, 5)))
    certain = certain_nodes(chain)
    counted = reach(chain.Q.toarray())[:, np.flatnonzero(chain.column >= 0)].sum(axis=1)
    scores = coinhaze.score(chain, nodes="all")
    assert np.array_equal(scores.sources[certain], counted[certain])


def test_a_source_too_unlikely_for_floats_still_counts() -> None:
    # Twenty times a part of 2^-60: the first source's share underflows, but it is possible.
    big = 2**60
    transfers = [("first", "n0", 1)]
    for k in range(20):
        transfers += [(f"s{k}", f"n{k}", big), (f"n{k}", f"n{k + 1}", 1)]
    scores = coinhaze.score(coinhaze.AccountLedger.from_transfers(transfers), nodes=["n20"])
    assert scores.sources[0] == 21


def test_strong_components_come_after_all_they_reach() -> None:
    for seed in range(5):
        q = absorbing_chain(transaction_graph(random_transfers(50, 120, seed))).Q
        count, component = strong_components(q.indptr, q.indices)
        can = reach(q.toarray())
        same = can & can.T
        assert np.array_equal(same, component[:, None] == component[None, :])
        assert count == len(np.unique(component))
        rows, columns = np.nonzero(q.toarray())
        assert np.all(component[columns] <= component[rows])


def test_threads_change_no_bit() -> None:
    chain = absorbing_chain(transaction_graph(random_transfers(600, 3000, 2)))
    one, two, four = (coinhaze.score(chain, threads=n) for n in (1, 2, 4))
    for other in (two, four):
        for name in ("bits", "bits_low", "bits_high", "steps", "top_probability", "mass"):
            assert np.array_equal(getattr(one, name), getattr(other, name)), name


def test_the_published_rule_loses_mass_and_its_interval_says_so() -> None:
    chain = absorbing_chain(transaction_graph(simulate_hubs(people=2000, seed=1, transfers=6)))
    exact = coinhaze.score(chain)
    published = coinhaze.score(chain, method="published")
    lost = 1 - published.mass
    assert lost.max() > 0.05
    assert np.all(published.bits_low <= exact.bits_high)
    assert np.all(published.bits_high >= exact.bits_low)
    careful = coinhaze.score(chain, method="series", accuracy=1e-6)
    assert np.abs(careful.bits - exact.bits).max() < 1e-6
    assert (1 - careful.mass).max() < 1e-8


def test_the_published_rule_depends_on_how_columns_are_sliced() -> None:
    chain = absorbing_chain(transaction_graph(simulate_hubs(people=2000, seed=1, transfers=6)))
    rows = np.flatnonzero(chain.graph.sinks)
    narrow = coinhaze.series(chain, rows, rule="published", columns=1)
    wide = coinhaze.series(chain, rows, rule="published", columns=256)
    assert np.abs(narrow.bits - wide.bits).max() > 0.01


def test_a_series_that_cannot_end_says_what_it_reached() -> None:
    big = 10**15
    loop = [("s", "a", 1), ("a", "b", big), ("b", "a", big - 1), ("b", "c", 1)]
    chain = absorbing_chain(transaction_graph(coinhaze.AccountLedger.from_transfers(loop)))
    rows = np.flatnonzero(chain.graph.sinks)
    with pytest.raises(AccuracyError, match="after 50 steps the worst row still misses"):
        coinhaze.series(chain, rows, rule="mass", max_steps=50)
    assert coinhaze.eliminate(chain, rows).width <= 1e-9


def test_an_accuracy_that_rounding_forbids_is_refused() -> None:
    chain = absorbing_chain(transaction_graph(random_transfers(60, 300, 1)))
    rows = np.flatnonzero(chain.graph.sinks)
    with pytest.raises(AccuracyError, match="proven interval is"):
        coinhaze.eliminate(chain, rows, width=1e-16)


def test_a_sweep_requested_by_name_refuses_cycles() -> None:
    chain = absorbing_chain(transaction_graph(accounts("graph_cycle")))
    with pytest.raises(UsageError, match="cycles"):
        coinhaze.score(chain, method="sweep")


def test_a_closed_loop_is_null_and_what_it_does_not_feed_is_not() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "b", 5), ("b", "a", 5), ("s", "t", 3)])
    scores = coinhaze.score(ledger, nodes="all").to_arrow().to_pylist()
    bits = {row["node"]: row["bits"] for row in scores}
    assert bits == {"a": None, "b": None, "s": 0.0, "t": 0.0}
    assert all(r["top_source"] is None and r["sources"] is None for r in scores[:2])


def test_reduction_keeps_only_the_past_of_what_is_requested() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "b", 5), ("c", "d", 5), ("d", "e", 5)])
    chain = absorbing_chain(transaction_graph(ledger))
    reduced = reduce_chain(chain, np.array([chain.graph.names.node("e")]))
    assert len(reduced) == 1
    assert reduced.retained.sum() == 3


def test_no_columns_and_no_rows_are_fine() -> None:
    scores = coinhaze.score(coinhaze.AccountLedger.from_transfers([]))
    assert len(scores) == 0
    assert scores.summary().line() == (
        "no scored node of 0; 0 without an answer; account view, time stationary, policy "
        "proportional"
    )
    assert scores.to_arrow().num_rows == 0


# In a process of its own, whose memory is nobody else's.
LARGE = """
import json, sys, time
import coinhaze
from coinhaze.simulate import simulate_hubs
from coinhaze.solve.pool.limits import memory_peak
from solve.economies import random_transfers
chain = coinhaze.absorbing_chain(
    coinhaze.transaction_graph(simulate_hubs(people=int(sys.argv[2]), seed=3), time=sys.argv[1])
)
coinhaze.score(random_transfers(20, 50, 1))  # compile first
began = time.process_time()
scores = coinhaze.score(chain)
took = time.process_time() - began
print(json.dumps([len(chain), scores.width, scores.conservation, took, memory_peak()]))
"""


@pytest.mark.long
@pytest.mark.parametrize(("time_", "users"), [("stationary", 125_000), ("temporal", 50_000)])
def test_a_hundred_thousand_nodes_are_comfortable(time_: str, users: int) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", LARGE, time_, str(users)],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    nodes, width, conservation, took, peak = json.loads(done.stdout)
    assert nodes >= 100_000
    assert width <= 1e-9
    assert conservation < 1e-11
    # Ten times what it takes on a slow shared core.
    assert took < 120
    assert peak < 2 * 1024**3
