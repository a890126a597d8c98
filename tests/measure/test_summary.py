"""Summaries over sinks: population variance, nulls and burns apart, means weighted by balance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import coinhaze
from coinhaze import AccountLedger
from coinhaze.measure.summary import Summary, summarise


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
