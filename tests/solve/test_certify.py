"""What certifies scores: laws that refuse, intervals that allow for each kind of rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coinhaze
from coinhaze.errors import AccuracyError
from coinhaze.measures.intervals import (
    ROUNDING,
    slack_from_each,
    slack_from_total,
    slack_from_walks,
)
from coinhaze.simulate import simulate_week
from coinhaze.solve.certify import certified, exposure_interval, intervals
from coinhaze.solve.exact.engines import add_missing
from coinhaze.solve.exact.rounding import Rounding, summing, terms_of
from coinhaze.solve.exact.stream import stream_sums
from coinhaze.solve.planner import thresholds
from coinhaze.solve.pool.limits import UNLIMITED
from coinhaze.solve.progress import silent
from coinhaze.solve.query import Query
from coinhaze.solve.structure.lump import LumpedChain, lump
from coinhaze.solve.sums import Sums
from coinhaze.solve.truncated.truncate import Truncation
from solve.economies import random_transfers


def question(**settings: Any) -> LumpedChain:
    graph = coinhaze.transaction_graph(random_transfers(30, 200, 1), **settings)
    chain = coinhaze.absorbing_chain(graph)
    return lump(Query.of(chain, np.flatnonzero(graph.sinks)), np.zeros(0))


@pytest.mark.parametrize("time", ["stationary", "temporal"])
@pytest.mark.parametrize("law", ["mass", "conservation"])
@pytest.mark.parametrize("off", [1e-8, -1e-8])
def test_a_broken_law_is_refused_without_scores(time: str, law: str, off: float) -> None:
    lumped = question(time=time)
    query, columns = lumped.query, lumped.columns
    counts, _ = lumped.sources()
    sums, weights = stream_sums(query, columns, np.zeros(0), budget=UNLIMITED, progress=silent)

    def certify() -> coinhaze.Scores:
        return certified(
            query, columns, sums, counts, by_fours=True, method="", width=np.inf, renyi=(),
            weights=weights,
        )  # fmt: skip

    assert len(certify()) > 0
    if law == "mass":
        sums.mass[len(counts) // 2] += off
    else:
        weights[len(columns) // 2] *= 1 + off
    with pytest.raises(
        AccuracyError, match="mass was lost" if law == "mass" else "differs from b"
    ) as e:
        certify()
    assert e.value.scores is None


def rows(bits: float) -> tuple[Sums, Any, Any]:
    sums = Sums.zeros(1, 0)
    sums.mass[0] = 1.0
    sums.top[0] = 0.5
    return sums, np.array([bits]), np.array([64.0])


@pytest.mark.parametrize("along_walks", [False, True])
def test_the_interval_allows_for_the_solve_by_the_narrower_proof(along_walks: bool) -> None:
    sums, bits, sources = rows(3.0)
    small, large = np.array([1e-9]), np.array([1e-4])
    no_terms = np.zeros(1)
    total = slack_from_walks if along_walks else slack_from_total

    def width(rounding: Rounding) -> float:
        low, high = intervals(sums, bits, sources, rounding, no_terms)
        return float((high - low)[0])

    if along_walks:  # what a walk errs on average is at most what the worst one does
        by_total = 2 * float(total(small, large, sources)[0])  # type: ignore[call-arg]
        assert width(Rounding(small, large, along_walks=True)) == pytest.approx(by_total, rel=1e-6)
    else:
        by_total = 2 * float(total(small, sources)[0])  # type: ignore[call-arg]
        assert width(Rounding(small, large, along_walks=False)) == pytest.approx(by_total, rel=1e-6)
    by_each = 2 * float(slack_from_each(small, bits)[0])
    assert by_each > 0
    assert width(Rounding(large, small, along_walks=along_walks)) == pytest.approx(
        by_each, rel=1e-6
    )


def test_the_interval_allows_for_adding_up() -> None:
    sums, bits, sources = rows(3.0)
    none = Rounding(np.zeros(1), np.zeros(1), along_walks=True)
    terms = np.array([1e6])
    low, high = intervals(sums, bits, sources, none, terms)
    assert high[0] - low[0] == pytest.approx(8 * 1e6 * ROUNDING * 5.0, rel=1e-5)
    assert summing(terms, bits)[0] == 4 * 1e6 * ROUNDING * 5.0
    columns = question().columns
    for by_fours in (True, False):
        # At least the terms of a tile, a logarithm's 38 times 4, and what shares err by.
        minimum = 64 + 38 + columns.inner_error + (1 if by_fours else 100)
        assert terms_of(columns, np.array([6400.0]), by_fours=by_fours)[0] >= minimum


def test_the_interval_of_exposure_allows_for_both_too() -> None:
    sums, _, _ = rows(3.0)
    sums.mass[0] = 0.25
    small, large, none = np.array([1e-9]), np.array([1e-4]), np.zeros(1)
    for rounding, slack in (
        (Rounding(small, large, along_walks=True), 1.01e-9),
        (Rounding(large, small, along_walks=True), 0.25e-9),
    ):
        low, high = exposure_interval(sums, rounding, none)
        assert high[0] - low[0] == pytest.approx(2 * slack, rel=1e-6)
    zero = Rounding(none, none, along_walks=True)
    low, high = exposure_interval(sums, zero, np.array([1e6]))
    assert high[0] - low[0] == pytest.approx(8 * 1e6 * ROUNDING * 0.25, rel=1e-5)


@pytest.mark.parametrize(
    "settings",
    [
        {"view": "coin"},
        {"view": "address", "time": "temporal"},
        {"view": "address", "time": "stationary"},
    ],
    ids=["coin", "address, temporal", "address, stationary"],
)
def test_truncated_intervals_hold_on_coins_and_addresses(settings: dict[str, Any]) -> None:
    graph = coinhaze.transaction_graph(simulate_week("bitcoin-week", size=0.0005), **settings)
    chain = coinhaze.absorbing_chain(graph)
    rows = np.flatnonzero(graph.sinks)
    truth = coinhaze.score(chain)
    lumped = lump(Query.of(chain, rows), np.zeros(0))
    for level in (0.1, 1e-2, 1e-3):
        found = Truncation.of(lumped, over="worst").attempt(level)
        assert np.count_nonzero(found.swept.sums.missing > level / 10) > 10  # it was dropped
        assert found.widths.worst > level / 10
        assert np.all(found.scores.bits_low <= truth.bits_high)
        assert np.all(found.scores.bits_high >= truth.bits_low)


@pytest.mark.parametrize("missing", [0.1, 1e-2, 1e-4])
def test_intervals_hold_where_sweeps_over_a_core_miss_something(
    missing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = coinhaze.transaction_graph(random_transfers(60, 400, 2))
    chain = coinhaze.absorbing_chain(graph)
    rows = np.flatnonzero(graph.sinks)
    truth = coinhaze.score(chain)
    monkeypatch.setattr(thresholds, "MAX_DENSE_CORE", 3)
    monkeypatch.setattr(thresholds, "MIN_CORE", 2)
    monkeypatch.setattr(thresholds, "MAX_ELIMINATION_WORK", 10)
    lumped = lump(Query.of(chain, rows, missing=missing), np.zeros(0))
    assert lumped.query.factor.sweeps
    assert lumped.query.factor.missing().max() > missing / 1000  # the core was iterated, not solved
    query, columns = lumped.query, lumped.columns
    counts, _ = lumped.sources()
    sums, _ = stream_sums(query, columns, np.zeros(0), budget=UNLIMITED, progress=silent)
    add_missing(query, sums, counts)
    found = certified(
        query, columns, sums, counts, by_fours=True, method="", width=np.inf, renyi=(), weights=None
    )
    assert found.width > missing / 1000
    assert np.all(found.bits_low <= truth.bits_high)
    assert np.all(found.bits_high >= truth.bits_low)
    assert np.all(found.bits_low <= found.bits)
    assert np.all(found.bits <= found.bits_high)
