"""Summaries over sinks: population variance, nulls and burns apart, means weighted by balance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import coinhaze
from coinhaze import AccountLedger
from coinhaze.measures.summary import Summary, summarise


def summary() -> Summary:
    return summarise(
        np.array([1.0, 2.0, 6.0, np.nan, 8.0]),
        np.array([2.0, 4.0, 6.0, np.nan, 1.0]),
        np.array([1.0, 1.0, 2.0, 5.0, 50.0]),
        nodes=9,
        edges=7,
        burnt=np.array([False, False, False, False, True]),
        widths=np.array([0.1, 0.3]),
        standard_error=None,
        method="sweep",
    )


def test_figures_are_those_of_sinks_with_an_answer() -> None:
    found = summary()
    assert (found.scored, found.nulls, found.burns) == (3, 1, 1)
    assert found.burns_bits_mean == 8
    assert (found.bits_mean, found.bits_median, found.bits_max) == (3, 2, 6)
    assert found.bits_variance == pytest.approx(14 / 3)
    assert found.steps_variance == pytest.approx(8 / 3)
    assert found.bits_weighted_mean == pytest.approx(15 / 4)
    assert found.widest_interval == 0.3
    assert found.mean_interval == pytest.approx(0.2)


def test_an_interval_is_as_wide_as_its_bounds_are_apart() -> None:
    scores = coinhaze.score(AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 1)]))
    wide = replace(scores, bits_low=scores.bits - 0.75, bits_high=scores.bits + 0.5)
    assert wide.widths.tolist() == [1.25]
    assert wide.width == wide.summary().widest_interval == 1.25


def test_rows_are_ordered_from_most_bits_and_without_nulls() -> None:
    rows = [("a", "c", 1), ("b", "c", 1), ("e", "d", 1), ("f", "h", 1), ("g", "h", 3)]
    scores = coinhaze.score(AccountLedger.from_transfers(rows))
    names = scores.chain.graph.names.of(scores.nodes).to_pylist()
    assert [names[row] for row in scores.order()] == ["c", "h", "d"]
    bits = np.where(scores.bits == 0, np.nan, scores.bits)
    assert [names[row] for row in replace(scores, bits=bits).order()] == ["c", "h"]


@pytest.mark.parametrize(("lost", "noted"), [(0.25, True), (1e-5, True), (1e-7, False)])
def test_probability_that_a_series_lost_is_noted(lost: float, noted: bool) -> None:
    scores = coinhaze.score(AccountLedger.from_transfers([("a", "c", 1)]), method="published")
    notes = replace(scores, mass=scores.mass - lost).notes
    assert any("lost up to" in note for note in notes) is noted
