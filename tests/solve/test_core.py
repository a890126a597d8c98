"""Sparse cores: elimination stops early, clusters are solved, sweeps do the rest."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import coinhaze
from coinhaze import AbsorbingChain, absorbing_chain, transaction_graph
from coinhaze.amounts import Floats
from coinhaze.errors import AccuracyError
from coinhaze.measures.intervals import slack_from_total
from coinhaze.solve.exact import core
from coinhaze.solve.exact.core import multiplied_back
from coinhaze.solve.exact.core_kernels import heavy_components, invert, multiply, multiply_vector
from coinhaze.solve.exact.engines import score_exactly
from coinhaze.solve.exact.factor import factorise
from coinhaze.solve.exact.rounding import Rounding
from coinhaze.solve.planner import thresholds
from coinhaze.solve.query import Query
from coinhaze.solve.sketch.sketch import sketch
from solve.economies import random_transfers


@pytest.fixture
def sparse_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave a core of every component, however small."""
    monkeypatch.setattr(thresholds, "MAX_DENSE_CORE", 3)


def chain_of(seed: int, accounts: int = 150, transfers: int = 1200) -> AbsorbingChain:
    return absorbing_chain(transaction_graph(random_transfers(accounts, transfers, seed)))


def lingering(seed: int) -> AbsorbingChain:
    """Make groups of wallets that pass money round and round and seldom let it out."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[str, str, int]] = []
    for g in range(12):
        wallets = [f"g{g}w{k}" for k in range(5)]
        rows += [(a, b, int(rng.integers(10**6, 10**7))) for a in wallets for b in wallets]
        for k in range(25):
            rows.append((f"u{int(rng.integers(60))}", wallets[k % 5], int(rng.integers(1, 100))))
            rows.append((wallets[(k + 1) % 5], f"u{int(rng.integers(60))}", 40))
    return absorbing_chain(transaction_graph(coinhaze.AccountLedger.from_transfers(rows)))


@pytest.mark.usefixtures("sparse_cores")
@pytest.mark.parametrize(
    "seed", [pytest.param(k, marks=[pytest.mark.long] if k else []) for k in range(4)]
)
@pytest.mark.parametrize("make", [chain_of, lingering])
def test_sweeps_give_the_scores_that_elimination_gives(
    make: Any, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = make(seed)
    rows = np.flatnonzero(chain.graph.sinks)
    assert Query.of(chain, rows).factor.sweeps
    swept = coinhaze.score(chain)
    monkeypatch.setattr(thresholds, "MAX_DENSE_CORE", 4000)
    whole = coinhaze.score(chain)
    np.testing.assert_allclose(swept.bits, whole.bits, rtol=0, atol=1e-9)
    np.testing.assert_allclose(swept.steps, whole.steps, rtol=1e-9)
    assert np.all((swept.bits_low <= whole.bits) & (whole.bits <= swept.bits_high))
    assert swept.width <= 1e-9


def test_intervals_over_sweeps_rest_on_walks_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps round anew each time they pass a state: no bound holds for each probability."""
    chain = absorbing_chain(transaction_graph(random_transfers(150, 1500, 7)))
    rows = np.flatnonzero(chain.graph.sinks)
    eliminated = score_exactly(chain, rows)
    assert np.all(np.isfinite(Rounding.of_factor(Query.of(chain, rows), by_fours=True).each))
    monkeypatch.setattr(thresholds, "MAX_DENSE_CORE", 10)
    query = Query.of(chain, rows)
    assert query.factor.sweeps
    rounding = Rounding.of_factor(query, by_fours=True)
    assert np.all(np.isinf(rounding.each))
    shares = np.linspace(0.0, 1.0, len(rounding.total))
    assert np.array_equal(rounding.of_share(shares), 1.01 * rounding.total)
    sources = np.full(len(rounding.total), 50.0)
    assert np.array_equal(
        rounding.of_bits(shares, sources), slack_from_total(rounding.total, sources)
    )
    swept = score_exactly(chain, rows)
    assert swept.width <= 1e-9
    assert np.all(
        (swept.bits_low <= eliminated.bits_high) & (eliminated.bits_low <= swept.bits_high)
    )


@pytest.mark.usefixtures("sparse_cores")
@pytest.mark.parametrize("make", [chain_of, lingering])
def test_what_sweeps_miss_is_known(make: Any) -> None:
    chain = make(7)
    query = Query.of(chain, np.flatnonzero(chain.graph.sinks))
    for tolerance in (0.1, 1e-3, 1e-9):
        part = factorise(query.reduced, missing=tolerance)
        found = part.solve(query.reduced.own)
        np.testing.assert_allclose(found + part.missing(), 1, rtol=1e-12)
        assert part.missing().max() <= tolerance * (1 + 1e-9)
        assert part.missing().max() > 0


@pytest.mark.usefixtures("sparse_cores")
def test_clusters_spare_most_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = lingering(1)
    query = Query.of(chain, np.flatnonzero(chain.graph.sinks))

    def sweeps() -> int:
        cores = factorise(query.reduced).cores.values()
        return max(c.sweeps for c in cores if isinstance(c, core.SparseCore))

    with_clusters = sweeps()
    monkeypatch.setattr(core, "HEAVY", ())
    assert 10 * with_clusters < sweeps()


@pytest.mark.usefixtures("sparse_cores")
def test_a_sketch_over_sweeps_is_the_sketch_over_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = lingering(3)
    rows = np.flatnonzero(chain.graph.sinks)
    swept = sketch(chain, rows, draws=64, seed=4)
    monkeypatch.setattr(thresholds, "MAX_DENSE_CORE", 4000)
    whole = sketch(chain, rows, draws=64, seed=4)
    np.testing.assert_allclose(swept.bits, whole.bits, atol=2e-3)


@pytest.mark.usefixtures("sparse_cores")
def test_a_core_that_does_not_settle_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "MAX_PASSES", 3)
    with pytest.raises(AccuracyError, match=r"after 3 sweeps .* the worst row still misses"):
        coinhaze.score(chain_of(1))


def test_a_cluster_is_inverted_without_subtraction() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        c = int(rng.integers(1, 12))
        moves = rng.random((c, c)) * (rng.random((c, c)) < 0.6)
        np.fill_diagonal(moves, 0)
        out = rng.random(c) * 10.0 ** rng.integers(-3, 1, c)
        exact = np.linalg.inv(np.diag(moves.sum(axis=1) + out) - moves)
        np.testing.assert_allclose(invert(moves, out), exact, rtol=1e-9, atol=1e-12)


def test_heavy_moves_hold_states_together() -> None:
    indptr = np.array([0, 1, 2, 3, 4, 4])
    indices = np.array([1, 0, 3, 4])
    data = np.array([0.5, 0.01, 0.2, 0.3])
    assert heavy_components(indptr, indices, data, 0.1).tolist() == [0, 0, 2, 2, 2]
    assert heavy_components(indptr, indices, data, 0.4).tolist() == [0, 0, 2, 3, 4]


def test_an_inverse_multiplied_back_bounds_where_walks_end() -> None:
    chance = np.random.default_rng(5)
    n = 12
    moves = chance.integers(0, 50, (n, n)).astype(float)
    np.fill_diagonal(moves, 0.0)
    out = np.full(n, 0.25)  # the same everywhere: totals are 0.25 times plain sums
    exact = exact_inverse(moves, out)
    for noise in (0.0, 1e-13, 1e-9):
        rough = np.linalg.inv(np.diag(out + moves.sum(axis=1)) - moves)
        rough *= 1 + noise * chance.standard_normal((n, n))
        bound = multiplied_back(moves, out, rough) * 2.0**-53
        # What the bound promises: each row of the inverse times the ways out, in total.
        promised = exact.astype(float) @ bound
        for i in range(n):
            off = [abs(exact[i, j] - Fraction(float(rough[i, j]))) for j in range(n)]
            assert float(sum(off)) * 0.25 <= promised[i]
        # A walk visits about 1 200 states, each with some 160 roundings.
        assert np.all(promised < 1e-10 + 1e5 * noise)


def test_products_are_those_of_fractions_to_their_roundings() -> None:
    chance = np.random.default_rng(6)
    for n, depth, width, block in ((1, 1, 1, 1), (3, 5, 2, 4), (7, 130, 9, 128), (5, 16, 4, 3)):
        left, right = chance.random((n, depth)), chance.random((depth, width))
        left[chance.random((n, depth)) < 0.3] = 0.0
        for found, times in (
            (multiply(left, right, block), right),
            (multiply_vector(left, right[:, 0])[:, None], right[:, :1]),
        ):
            for i, j in np.ndindex(*found.shape):
                terms = [
                    Fraction(float(a)) * Fraction(float(b))
                    for a, b in zip(left[i], times[:, j], strict=True)
                ]
                true = sum(terms, Fraction(0))
                assert abs(Fraction(float(found[i, j])) - true) <= true * (depth + 2) / 2**53


def exact_inverse(moves: Floats, out: Floats) -> Any:
    """Give (D - M)^-1 in fractions, by Gauss and Jordan."""
    n = len(out)
    left = [[Fraction(-int(v)) for v in row] for row in moves]
    for i in range(n):
        left[i][i] = sum((Fraction(int(v)) for v in moves[i]), Fraction(float(out[i])))
    right = [[Fraction(int(i == j)) for j in range(n)] for i in range(n)]
    for k in range(n):
        pivot = left[k][k]
        left[k] = [v / pivot for v in left[k]]
        right[k] = [v / pivot for v in right[k]]
        for i in range(n):
            if i != k and left[i][k]:
                f = left[i][k]
                left[i] = [a - f * b for a, b in zip(left[i], left[k], strict=True)]
                right[i] = [a - f * b for a, b in zip(right[i], right[k], strict=True)]
    return np.array(right, dtype=object)
