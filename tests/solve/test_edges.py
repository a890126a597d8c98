"""What solvers do at their edges: what exact means, and what is never truncated or forgotten."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import coinhaze
from coinhaze.solve.certify import _unmodified, exposure_interval
from coinhaze.solve.exact.engines import add_missing, width_of
from coinhaze.solve.exact.rounding import Rounding, terms_of
from coinhaze.solve.query import Query
from coinhaze.solve.structure.columns import _inner
from coinhaze.solve.sums import Sums
from coinhaze.solve.truncated.truncate import may_drop


def test_exact_means_a_billionth_of_a_bit() -> None:
    assert width_of("exact") == 1e-9


def test_renyi_entropies_and_exposure_are_never_truncated() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 1)])
    chain, listed = (
        coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger), listed=names)
        for names in (None, ["a"])
    )
    rows = np.flatnonzero(chain.graph.sinks)
    assert may_drop(Query.of(chain, rows), 0.1, ())
    assert not may_drop(Query.of(chain, rows), 0.1, (2.0,))
    assert not may_drop(Query.of(listed, rows), 0.1, ())
    assert not may_drop(Query.of(chain, rows), 1e-9, ())


def test_what_sweeps_over_cores_miss_is_spread_over_all_sources_at_most() -> None:
    missing = np.array([0.0, 0.25])
    factor = SimpleNamespace(sweeps=3, missing=lambda: missing)
    sums, counts = Sums.zeros(2, 0), np.array([4.0, 16.0])
    query: Any = SimpleNamespace(factor=factor, scored=np.arange(2))
    add_missing(query, sums, counts)
    assert sums.missing.tolist() == [0, 0.25]
    assert sums.above.tolist() == [0, 0.25 * 2 + 0.25 * 4]


def test_a_series_tells_what_is_listed_from_elsewhere() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    scores = coinhaze.score(ledger, listed=["a"], method="series", accuracy=1e-6)
    assert scores.exposure == pytest.approx([0.25])


def test_sinks_are_scored_unless_others_are_named() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("c", "d", 1)])
    scores = coinhaze.score(ledger)
    assert scores.chain.graph.names.of(scores.nodes).to_pylist() == ["d"]
    assert len(coinhaze.score(ledger, nodes="all")) == 3


def test_what_is_given_overrides_a_preset() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("0x" + "0" * 40, "c", 1), ("a", "c", 1)])
    chain = coinhaze.score(ledger, preset="paper", mint="each").chain
    assert chain.settings["mint"] == "each"
    assert chain.settings["sinks"] == "paper"


def test_the_largest_probability_is_that_of_an_origin_inside_a_history() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("y", "x", 10)])
    scores = coinhaze.score(ledger, nodes=["x"], history={"y": [1, 1]})
    assert scores.top_probability.tolist() == [0.5]
    assert scores.min_entropy.tolist() == [1.0]


def test_bits_without_histories_are_reported_only_of_whole_rows() -> None:
    sums = Sums.zeros(2, 0)
    sums.entropy[:] = 1.5
    sums.missing[1] = 1e-6
    assert np.array_equal(_unmodified(sums), [1.5, np.nan], equal_nan=True)


def test_what_was_dropped_may_all_be_exposed() -> None:
    sums, nothing = Sums.zeros(1, 0), np.zeros(1)
    sums.mass[:], sums.missing[:] = 0.5, 0.25
    low, high = exposure_interval(sums, Rounding(nothing, nothing, along_walks=False), nothing)
    assert low[0] == 0.5
    assert high[0] == pytest.approx(0.75)
    assert high[0] >= 0.75


def test_a_column_is_named_by_its_likeliest_outcome() -> None:
    column, outcome = np.array([0, 0, 1]), np.array([5, 6, 7])
    likeliest, priors = _inner(column, np.array([1.0, 3.0, 2.0]), outcome, 2, np.zeros(0))
    assert likeliest.tolist() == [6, 7]
    assert priors.top.tolist() == [0.75, 1.0]


def test_roundings_inside_columns_count() -> None:
    rough, fine = (
        terms_of(SimpleNamespace(inner_error=e), np.ones(1), by_fours=True)  # type: ignore[arg-type]
        for e in (1000.0, 0.0)
    )
    assert rough[0] - fine[0] == 1000
