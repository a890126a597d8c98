"""Walking agrees with solving."""

from __future__ import annotations

import numpy as np
from benchmarks.walks import estimate

from coinhaze import AccountLedger, absorbing_chain, score, transaction_graph
from coinhaze.simulate import simulate_hubs


def test_walks_find_what_the_exact_solver_finds() -> None:
    chain = absorbing_chain(transaction_graph(simulate_hubs(people=300, transfers=3)))
    scores = score(chain)
    rows = np.arange(0, len(scores), 5)
    bits, steps = estimate(chain, scores.nodes[rows], walks=20_000)
    # A walk's surprise varies by a few bits: 20 000 of them leave a hundredth or two.
    assert np.abs(bits - scores.bits[rows]).max() < 0.08
    assert abs(float(np.mean(bits - scores.bits[rows]))) < 0.02
    assert np.allclose(steps, scores.steps[rows], rtol=0.05)


def test_walks_are_the_same_for_the_same_seed() -> None:
    chain = absorbing_chain(transaction_graph(simulate_hubs(people=100, transfers=2)))
    rows = np.flatnonzero(chain.graph.sinks)
    one, again = (estimate(chain, rows, walks=100, seed=3) for _ in range(2))
    assert np.array_equal(one[0], again[0])
    assert not np.array_equal(one[0], estimate(chain, rows, walks=100, seed=4)[0])


def test_a_walk_that_never_ends_has_no_answer() -> None:
    ledger = AccountLedger.from_transfers([("a", "b", 5), ("b", "a", 5), ("c", "d", 1)])
    chain = absorbing_chain(transaction_graph(ledger))
    bits, steps = estimate(chain, np.arange(len(chain)), walks=10, max_steps=1000)
    assert np.isnan(bits).tolist() == [True, True, False, False]
    assert np.isnan(steps).tolist() == [True, True, False, False]
