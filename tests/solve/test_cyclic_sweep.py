"""Truncation on cyclic chains, unrolled: intervals hold, and estimates lie near the truth."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import coinhaze
from built_late import BuiltLate
from coinhaze import AbsorbingChain, absorbing_chain, transaction_graph
from coinhaze.simulate import simulate_town, simulate_week
from coinhaze.solve.pool.limits import Budget
from coinhaze.solve.query import Query
from coinhaze.solve.structure.lump import LumpedChain, lump
from coinhaze.solve.truncated.truncate import Over, Truncation
from solve.economies import random_transfers
from solve.test_core import lingering
from vectors import coins


def towns() -> AbsorbingChain:
    return absorbing_chain(transaction_graph(simulate_town(transactions=600), view="address"))


NO_ORDERS = np.zeros(0)
CHAINS = BuiltLate[AbsorbingChain](
    {
        "random": lambda: absorbing_chain(transaction_graph(random_transfers(120, 700, 3))),
        "sparse": lambda: absorbing_chain(transaction_graph(random_transfers(300, 500, 4))),
        "lingering": lambda: lingering(2),
        "town": towns,
        "hubs": lambda: absorbing_chain(transaction_graph(simulate_week("dai-week", size=0.02))),
        "bitcoin": lambda: absorbing_chain(
            transaction_graph(simulate_week("bitcoin-week", size=0.001), view="address")
        ),
        "history": lambda: absorbing_chain(
            transaction_graph(coins("pools"), view="address"), history={"sapling": [5, 4, 4, 1]}
        ),
    }
)


@cache
def lumped_and_exact(name: str) -> tuple[LumpedChain, coinhaze.Scores]:
    """Lump and score a chain: once, for all tests of it."""
    chain = CHAINS[name]
    return lump(Query.of(chain, np.flatnonzero(chain.graph.sinks)), NO_ORDERS), coinhaze.score(
        chain
    )


@pytest.mark.parametrize("over", ["worst", "mean"])
@pytest.mark.parametrize("name", CHAINS)
def test_intervals_hold_the_truth_at_every_level(name: str, over: Over) -> None:
    lumped, exact = lumped_and_exact(name)
    assert not lumped.query.reduced.acyclic or name == "history"
    question = Truncation.of(lumped, over=over)
    for level in (0.5, 0.1, 0.01, 1e-3, 1e-5):
        found = question.attempt(level).scores
        assert np.all(found.bits_low <= exact.bits + 1e-9), level
        assert np.all(exact.bits <= found.bits_high + 1e-9), level
        assert np.all((found.bits_low <= found.bits) & (found.bits <= found.bits_high))
        np.testing.assert_allclose(found.steps, exact.steps, rtol=1e-9)


@pytest.mark.parametrize("name", ["random", "lingering", "bitcoin"])
def test_the_requested_width_is_reached(name: str) -> None:
    chain = CHAINS[name]
    every = coinhaze.score(chain, accuracy=0.05)
    assert every.width <= 0.05
    mean = coinhaze.score(chain, accuracy=0.05, over="mean")
    assert float((mean.bits_high - mean.bits_low).mean()) <= 0.05


def test_threads_change_no_bit() -> None:
    question = Truncation.of(lumped_and_exact("bitcoin")[0], over="mean")
    one, two, four = (question.attempt(0.01, budget=Budget(threads=n)).scores for n in (1, 2, 4))
    for other in (two, four):
        assert np.array_equal(one.bits, other.bits)
        assert np.array_equal(one.bits_low, other.bits_low)
        assert np.array_equal(one.bits_high, other.bits_high)
