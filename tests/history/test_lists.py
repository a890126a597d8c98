"""Proven lists of sources: their intervals hold, and are exact where every source is listed."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coinhaze import CoinLedger, History, ResourceError, UsageError
from coinhaze.history.scores.lists import bounds_by_lists, narrowed
from coinhaze.history.scores.score import RowScores, score_rows
from coinhaze.simulate.history import bitcoin_history
from history.tape_twin import Distribution, twin_of
from history.test_tape import LARGEST, largest, named
from properties.comparison import profile
from properties.strategies import transactions


def bits_of(distribution: Distribution) -> float:
    return -sum(float(p) * math.log2(p) for p in distribution.values())


def mixed(merges: int, seed: int) -> list[dict[str, Any]]:
    """Make a ledger of coinbases, and of merges of two or three of its coins."""
    draw = np.random.default_rng(seed)
    coins = [(f"s{k}", int(draw.integers(1, 100))) for k in range(12)]
    ledger: list[dict[str, Any]] = [
        {"txid": name, "inputs": [], "outputs": [{"value": value}]} for name, value in coins
    ]
    for k in range(merges):
        order = draw.permutation(len(coins))
        spent = [coins[j] for j in order[: draw.integers(2, 4)]]
        whole = sum(value for _, value in spent)
        left = whole // 3
        ledger.append(
            {
                "txid": f"m{k}",
                "inputs": [
                    {"txid": n.split(":")[0], "vout": int((n + ":0").split(":")[1])}
                    for n, _ in spent
                ],
                "outputs": [{"value": whole - left}, {"value": left}],
            }
        )
        coins = [c for c in coins if c not in spent]
        coins += [(f"m{k}:0", whole - left)] + [(f"m{k}:1", left)] * (left > 0)
    return ledger


def check(ledger: list[dict[str, Any]], home: Path, maximum: int) -> None:
    """Hold bounds of every row against its distribution in exact fractions."""
    history = History.index(home / "x.history", CoinLedger.from_transactions(ledger))
    rows = twin_of(named(ledger)).rows
    bits = np.array([bits_of(row.distribution) for row in rows])
    low, high = bounds_by_lists(history.tape, np.arange(len(rows)), maximum)
    assert np.all(low <= bits + 1e-12)
    assert np.all(high >= bits - 1e-12)
    sizes = np.array([len(row.distribution) for row in rows])
    # Nothing is dropped on the way to a row whose sources all fit, so it is known exactly.
    assert np.all((high - low)[sizes <= maximum] <= 1e-9)


@profile(100)
@given(transactions(maximum=12), st.integers(1, 6))
def test_bounds_hold_on_random_ledgers(ledger: list[dict[str, Any]], maximum: int) -> None:
    if largest(named(ledger)) > LARGEST:
        return
    with TemporaryDirectory() as home:
        check(ledger, Path(home), maximum)


@pytest.mark.parametrize("maximum", [1, 2, 3, 5, 8, 20])
def test_bounds_hold_where_coins_mix_again_and_again(maximum: int, tmp_path: Path) -> None:
    for seed in range(6):
        (tmp_path / str(seed)).mkdir()
        check(mixed(40, seed), tmp_path / str(seed), maximum)


def test_ties_at_the_cut_leave_no_room_unused(tmp_path: Path) -> None:
    # One large coin among four equal small ones: two sources are listed, the large one first.
    ledger: list[dict[str, Any]] = [
        {"txid": f"s{k}", "inputs": [], "outputs": [{"value": 4 if k == 2 else 1}]}
        for k in range(5)
    ]
    spent = [{"txid": f"s{k}", "vout": 0} for k in range(5)]
    ledger.append({"txid": "m", "inputs": spent, "outputs": [{"value": 8}]})
    history = History.index(tmp_path / "x.history", CoinLedger.from_transactions(ledger))
    low, high = bounds_by_lists(history.tape, np.array([5]), 2)
    half, eighth = Fraction(1, 2), Fraction(1, 8)
    parts = [half] + 4 * [eighth]
    truth = -sum(float(p) * math.log2(p) for p in parts)
    # Listed: 1/2 and 1/8; the rest is 3/8, in entries of at most 1/8 each.
    listed, rest = [half, eighth], 3 * [eighth]
    found = -sum(float(p) * math.log2(p) for p in listed)
    alone = -sum(float(p) * math.log2(p) for p in rest)
    mass = float(sum(rest))
    assert high[0] == pytest.approx(min(found + alone, math.log2(5)), abs=1e-12)
    apart = alone + mass * math.log2(mass)
    kept = 1 - mass
    assert low[0] == pytest.approx(found + kept * math.log2(kept) + apart, abs=1e-12)
    assert low[0] < truth <= high[0]


def test_both_kinds_of_interval_are_intersected(tmp_path: Path) -> None:
    history = History.index(tmp_path / "x.history", CoinLedger.from_transactions(mixed(40, 2)))
    rows = np.arange(history.manifest.rows)
    exact = score_rows(history.tape, rows, accuracy="exact")
    drawn = score_rows(history.tape, rows, draws=4096, seed=3)
    for maximum in (1, 4, 12):
        both = narrowed(history.tape, drawn, maximum)
        low, high = bounds_by_lists(history.tape, rows, maximum)
        assert np.all((both.bits_low <= exact.bits_high) & (exact.bits_low <= both.bits_high))
        np.testing.assert_array_equal(both.bits_low, np.maximum(low, drawn.bits_low))
        np.testing.assert_array_equal(both.bits_high, np.minimum(high, drawn.bits_high))
        proven = (both.bits_low == low) & (both.bits_high == high)
        np.testing.assert_array_equal(both.miss, np.where(proven, 0.0, drawn.miss))
        assert np.all((both.bits_low <= both.bits) & (both.bits <= both.bits_high))
        assert both.miss.any() == (maximum < 12)
    assert np.mean(both.bits_high - both.bits_low) < np.mean(drawn.bits_high - drawn.bits_low)


def test_a_drawn_interval_that_misses_gives_way_to_the_proven_one(tmp_path: Path) -> None:
    history = History.index(tmp_path / "x.history", CoinLedger.from_transactions(mixed(20, 1)))
    rows = np.arange(history.manifest.rows)
    low, high = bounds_by_lists(history.tape, rows, 12)
    off = high + 1.0
    wrong = RowScores(rows, off, off, off + 1.0, np.full(len(rows), 0.5), {"method": "wrong"})
    both = narrowed(history.tape, wrong, 12)
    np.testing.assert_array_equal(both.bits_low, low)
    np.testing.assert_array_equal(both.bits_high, high)
    assert not both.miss.any()


def test_pieces_and_months_change_nothing(tmp_path: Path) -> None:
    one = History.index_blocks(tmp_path / "one", bitcoin_history(4))
    cut = History.index_blocks(tmp_path / "cut", bitcoin_history(4), piece_rows=100)
    assert len(cut.manifest.pieces) > 1
    rows = np.arange(one.manifest.rows)
    for some, other in zip(
        bounds_by_lists(one.tape, rows, 3), bounds_by_lists(cut.tape, rows, 3), strict=True
    ):
        np.testing.assert_array_equal(some, other)
    scores = one.score(seed=1, top_sources=8, over_time=True)
    months = one.over_time()
    assert scores.about["method"] == "sketch (k=256) and lists of 8 sources"
    assert one.score(seed=1, over_time=True).about["method"] == "sketch (k=256)"
    assert one.over_time().equals(months)


def test_what_cannot_be_listed_is_refused(tmp_path: Path) -> None:
    history = History.index_blocks(tmp_path / "x", bitcoin_history(2))
    with pytest.raises(UsageError, match="exact bits need no lists"):
        history.score(accuracy="exact", top_sources=4)
    with pytest.raises(UsageError, match="one source or more, not 0"):
        history.score(seed=1, top_sources=0)
    with pytest.raises(ResourceError, match="allowed"):
        history.score(seed=1, top_sources=4, memory="1MB")
