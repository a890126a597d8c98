from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from coinhaze.amounts import Floats
from coinhaze.errors import UsageError
from coinhaze.measures.bands import mean_band, paired_band, ratio_band

WORLDS = 4000
# Four standard deviations of a share of 4000 worlds whose chance is 0.9 or more.
SLACK = 4 * math.sqrt(0.9 * 0.1 / WORLDS)


@pytest.mark.parametrize("level", [0.9, 0.95])
@pytest.mark.parametrize("seeds", [3, 8, 20])
def test_the_band_holds_the_true_mean_as_often_as_it_says(seeds: int, level: float) -> None:
    rng = np.random.default_rng(7)
    truth = 0.3
    held = 0
    for _ in range(WORLDS):
        economy = rng.normal(5, 2, seeds)
        without = economy + rng.normal(0, 0.2, seeds)
        band = paired_band(economy + rng.normal(truth, 0.2, seeds), without, level=level)
        held += band.low <= truth <= band.high
    assert abs(held / WORLDS - level) < SLACK


def unpaired_half(with_: Floats, without: Floats) -> float:
    """Half the band that the difference has if the worlds share nothing (Welch's t)."""
    band = scipy.stats.ttest_ind(with_, without, equal_var=False).confidence_interval(0.95)
    return float(band.high - band.low) / 2


def test_what_pairs_share_goes_out_of_their_band() -> None:
    rng = np.random.default_rng(3)
    economy = rng.normal(5, 2, 20)
    with_, without = economy + rng.normal(0.3, 0.1, 20), economy
    paired = paired_band(with_, without)
    assert paired.mean == pytest.approx(with_.mean() - without.mean())
    assert paired.half < unpaired_half(with_, without) / 10


def test_without_anything_shared_both_bands_are_about_as_wide() -> None:
    rng = np.random.default_rng(3)
    halves = [
        [half(rng.normal(0, 1, 20), rng.normal(0, 1, 20)) for _ in range(200)]
        for half in (lambda *pair: paired_band(*pair).half, unpaired_half)
    ]
    assert np.mean(halves[0]) == pytest.approx(np.mean(halves[1]), rel=0.08)


def test_the_band_is_student_s() -> None:
    # 2.2622 is the 97.5 % point of t with nine degrees of freedom in printed tables.
    values = np.arange(10.0)
    error = np.std(values, ddof=1) / math.sqrt(10)
    assert mean_band(values).half == pytest.approx(2.262157 * error, rel=1e-6)


def test_equal_values_have_a_band_without_width_and_exactly_their_mean() -> None:
    band = mean_band(np.full(7, 0.1))
    assert (band.mean, band.low, band.high) == (0.1, 0.1, 0.1)


def test_the_ratio_s_band_holds_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(11)
    held = 0
    for _ in range(WORLDS):
        costs = rng.normal(4, 0.4, 20)
        gains = 0.5 * costs + rng.normal(0, 0.3, 20)
        band = ratio_band(gains, costs)
        held += band.low <= 0.5 <= band.high
    assert abs(held / WORLDS - 0.95) < 2 * SLACK  # the ratio's band is not exact, but near


def test_gains_in_proportion_to_costs_have_a_ratio_without_doubt() -> None:
    costs = np.array([1.0, 2.0, 4.0, 8.0])
    band = ratio_band(3 * costs, costs)
    assert band.mean == 3
    assert band.half == pytest.approx(0, abs=1e-12)


def test_one_seed_has_a_mean_and_no_band() -> None:
    band = mean_band(np.array([2.0]))
    assert band.mean == 2.0
    assert math.isnan(band.low)
    assert math.isnan(band.high)


def test_what_costs_nothing_has_no_ratio() -> None:
    assert math.isnan(ratio_band(np.ones(3), np.zeros(3)).mean)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_levels_lie_between_0_and_1(level: float) -> None:
    with pytest.raises(UsageError, match="between 0 and 1"):
        mean_band(np.ones(3), level=level)


def test_pairs_come_in_equal_numbers() -> None:
    with pytest.raises(UsageError, match="2 and 3"):
        paired_band(np.ones(2), np.ones(3))
    with pytest.raises(UsageError, match="a value or more"):
        mean_band(np.ones(0))
