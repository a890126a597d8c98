"""Bounds on an entropy hold, and are reached where they should be."""

from __future__ import annotations

import numpy as np
import pytest

from coinhaze.amounts import Floats
from coinhaze.measures.intervals import (
    at_least,
    from_missing_mass,
    slack_from_each,
    slack_from_total,
    surprise,
)


def bits(p: Floats) -> float:
    return float(surprise(p).sum())


def one(value: float) -> Floats:
    return np.array([value])


def test_a_change_in_total_moves_bits_by_no_more_than_its_bound() -> None:
    chance = np.random.default_rng(1)
    for n in (2, 3, 50):
        for _ in range(50):
            p, q = chance.dirichlet(np.full(n, 0.3), 2)
            slack = slack_from_total(one(np.abs(p - q).sum()), one(n))[0]
            assert abs(bits(p) - bits(q)) <= slack * (1 + 1e-12)


@pytest.mark.parametrize("moved", [1e-9, 0.01, 0.3])
def test_the_bound_on_a_change_in_total_is_reached(moved: float) -> None:
    n = 20
    spread = np.full(n, moved / (n - 1))
    spread[0] = 1 - moved
    assert slack_from_total(one(2 * moved), one(n))[0] == pytest.approx(bits(spread), rel=1e-6)


@pytest.mark.parametrize("error", [1e-12, 1e-6, 1e-2])
def test_a_relative_change_of_each_moves_bits_by_no_more_than_its_bound(error: float) -> None:
    chance = np.random.default_rng(2)
    for p in (np.ones(1), np.full(64, 1 / 64), chance.dirichlet(np.full(30, 0.2))):
        slack = float(slack_from_each(error, one(bits(p)))[0])
        for q in (p * (1 - error), p * (1 + error)):
            # Rounding of the sums themselves is no part of the bound.
            assert abs(bits(q) - bits(p)) <= slack + 1e-14


def test_missing_mass_is_bounded_by_its_best_and_its_worst_place() -> None:
    found, missing = np.array([0.5, 0.2]), 0.3
    for sources in (3, 10):
        low, high = from_missing_mass(one(bits(found)), one(missing), one(0.5), one(sources))
        assert low[0] == pytest.approx(bits(np.array([0.8, 0.2])))
        spread = np.concatenate([found, np.full(sources, missing / sources)])
        assert high[0] == pytest.approx(bits(spread))


def test_nothing_missing_leaves_no_doubt() -> None:
    low, high = from_missing_mass(one(1.5), one(0.0), one(0.5), one(3.0))
    assert low[0] == high[0] == 1.5


@pytest.mark.parametrize("width", [0.0421, 2.0, 3.14159e-9, 9.96e-5, 0.1])
def test_a_width_to_ask_for_is_wider_by_little(width: float) -> None:
    assert width < float(at_least(width)) <= 1.11 * width
