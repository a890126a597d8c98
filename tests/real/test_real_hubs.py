"""Ledgers with hubs are exact by default, and how exact is known before the solve."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import coinhaze
from coinhaze.simulate import simulate_week
from coinhaze.solve.exact.engines import foreseen
from coinhaze.solve.query import Query
from coinhaze.solve.structure.lump import lump

DATA = os.environ.get("COINHAZE_DATA")


def bound_of(ledger: coinhaze.AccountLedger | coinhaze.CoinLedger) -> float:
    """Bound the widest interval of default scores in the order of time, without a solve."""
    graph = coinhaze.transaction_graph(ledger, time="temporal")
    chain = coinhaze.absorbing_chain(graph)
    return foreseen(lump(Query.of(chain, np.flatnonzero(graph.sinks)), np.zeros(0)))


@pytest.mark.skipif(DATA is None, reason="COINHAZE_DATA is not set")
def test_a_tornado_pool_is_proven_to_1e_10() -> None:
    folder = Path(str(DATA)) / "tornado_events"
    files = [folder / f"{side}_1_eth_0.1.json.gz" for side in ("deposits", "withdrawals")]
    scores = coinhaze.score(files, time="temporal")
    assert scores.width <= 1e-10
    assert scores.shortfall is None
    assert np.all(scores.bits_low <= scores.bits)
    assert np.all(scores.bits <= scores.bits_high)


def test_a_part_of_an_ethereum_week_is_proven_to_1e_10() -> None:
    ledger = simulate_week("ethereum-week", size=0.005)
    reached = coinhaze.score(ledger, time="temporal").width
    assert reached <= bound_of(ledger) <= 1e-10


@pytest.mark.long
@pytest.mark.parametrize("size", [0.1, 1.0])
def test_an_ethereum_week_will_be_proven_to_1e_10(size: float) -> None:
    assert bound_of(simulate_week("ethereum-week", size=size)) <= 1e-10


@pytest.mark.long
def test_a_tenth_of_an_ethereum_week_is_scored_exactly_by_default() -> None:
    scores = coinhaze.score(simulate_week("ethereum-week", size=0.1), time="temporal")
    assert scores.shortfall is None
    assert scores.width <= 1e-10
