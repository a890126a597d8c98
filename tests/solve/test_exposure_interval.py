"""Proven bounds of exposure: exact fractions always lie inside, on loops and in order of time."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coinhaze
import twin
from properties import strategies
from properties.comparison import node_names
from solve.economies import random_transfers


@given(strategies.transfers(zero=False, dropped=False), st.data())
@pytest.mark.parametrize("time", ["stationary", "temporal"])
@settings(max_examples=60, deadline=None)
def test_the_exact_exposure_lies_inside(
    time: Literal["stationary", "temporal"], rows: list[twin.Transfer], data: st.DataObject
) -> None:
    expected = twin.account_graph(rows, time=time)
    ledger = coinhaze.AccountLedger.from_transfers(rows)
    graph = coinhaze.transaction_graph(ledger, time=time)
    listed = [data.draw(st.sampled_from(sorted({row[0] for row in rows if row[0] != row[1]})))]
    chain = coinhaze.absorbing_chain(graph, listed=listed)
    scores = coinhaze.score(chain, nodes="all")
    answers = twin.solve(twin.with_sources(expected, twin.proportional(expected), listed))
    assert scores.exposure is not None
    assert scores.exposure_low is not None
    assert scores.exposure_high is not None
    for row, name in enumerate(node_names(graph, expected)):
        answer = answers[name]
        low, high = float(scores.exposure_low[row]), float(scores.exposure_high[row])
        if answer is None:
            assert math.isnan(low)
            continue
        exact = sum(p for k, p in answer.distribution.items() if k != twin.ELSEWHERE)
        assert low <= scores.exposure[row] <= high
        # Python compares a float with a fraction exactly.
        assert low <= exact <= high
        assert high - low < 1e-11


def test_exposure_never_touched_is_zero_without_doubt() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "b", 1), ("c", "d", 1)])
    scores = coinhaze.score(ledger, listed=["a"])
    assert scores.exposure_high is not None
    assert scores.exposure_high.tolist() == [1.0, 0.0]


def test_poison_is_certain_and_bits_alone_have_no_exposure() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "b", 1), ("c", "b", 1), ("c", "d", 1)])
    scores = coinhaze.score(ledger, listed=["a"], policy="poison")
    assert scores.exposure_low is not None
    assert scores.exposure_low == pytest.approx([1.0, 0.0], abs=1e-12)
    assert coinhaze.score(ledger).exposure_low is None


def test_wide_intervals_hold_what_was_dropped() -> None:
    graph = coinhaze.transaction_graph(random_transfers(300, 4000, 5), time="temporal")
    chain = coinhaze.absorbing_chain(graph, listed=["a1", "a7"])
    exact, wide = coinhaze.score(chain), coinhaze.score(chain, accuracy=0.5)
    assert exact.exposure is not None
    assert wide.exposure_low is not None
    assert wide.exposure_high is not None
    assert np.all(wide.exposure_low <= exact.exposure + 1e-12)
    assert np.all(wide.exposure_high >= exact.exposure - 1e-12)
