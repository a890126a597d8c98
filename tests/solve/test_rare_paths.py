"""Absorption so rare that single precision ends: every method answers or refuses."""

from __future__ import annotations

import numpy as np
import pytest

import coinhaze
from coinhaze import AbsorbingChain, AccountLedger, absorbing_chain, transaction_graph
from coinhaze.errors import AccuracyError
from coinhaze.solve.exact.factor import factorise
from coinhaze.solve.planner import thresholds
from coinhaze.solve.query import Query
from coinhaze.solve.sketch.sketch import sketch


def loop(power: int) -> AbsorbingChain:
    """Two accounts that pass money round and round, once in 2^power let any in or out."""
    big = 2**power
    rows = [("s", "a", 1), ("t", "b", 1), ("a", "b", big), ("b", "a", big)]
    rows += [("a", "x", 1), ("b", "y", 1)]
    return absorbing_chain(transaction_graph(AccountLedger.from_transfers(rows)))


@pytest.mark.parametrize("power", [100, 148, 152, 160, 200])
def test_no_method_gives_a_wrong_number(power: int) -> None:
    chain = loop(power)
    exact = coinhaze.score(chain)
    within = coinhaze.score(chain, accuracy=1e-3)
    assert within.width <= 1e-3
    assert not np.isnan(within.bits).any()
    np.testing.assert_allclose(within.bits, exact.bits, atol=1e-3)
    means = [sketch(chain, exact.nodes, seed=s).bits for s in range(20)]
    np.testing.assert_allclose(np.mean(means, axis=0), exact.bits, atol=4 * 0.16 / 20**0.5 + 0.1)


def test_a_small_loop_beyond_floats_is_refused_not_a_crash() -> None:
    big = 2**250
    names = [f"n{k}" for k in range(6)]
    rows = [(a, b, big) for a in names for b in names if a != b]
    rows += [("s", "n0", 1), ("n0", "m", 1)]
    rows += [("m", "n1", big), ("n1", "m", big), ("m", "end", 1), ("u", "m", 1)]
    chain = absorbing_chain(transaction_graph(AccountLedger.from_transfers(rows)))
    try:
        scores = coinhaze.score(chain)
    except AccuracyError:
        return
    assert scores.width <= 1e-9


def test_what_cores_in_series_miss_adds_up(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    rows = []
    for part in range(3):
        mine = [f"p{part}n{k}" for k in range(60)]
        for _ in range(900):
            a, b = rng.choice(60, 2, replace=False)
            rows.append((mine[a], mine[b], int(rng.integers(1, 1000))))
        rows += [(f"s{part}", mine[k], 5) for k in range(20)]
        if part:
            rows += [(f"p{part - 1}n{k}", mine[k], 400) for k in range(60)]
    chain = absorbing_chain(transaction_graph(AccountLedger.from_transfers(rows)))
    monkeypatch.setattr(thresholds, "MAX_DENSE_CORE", 3)
    query = Query.of(chain, np.flatnonzero(chain.graph.sinks))
    for tolerance in (0.1, 1e-3, 1e-6):
        part_solved = factorise(query.reduced, missing=tolerance)
        assert part_solved.sweeps
        found = part_solved.solve(query.reduced.own)
        np.testing.assert_allclose(found + part_solved.missing(), 1, rtol=1e-11)
