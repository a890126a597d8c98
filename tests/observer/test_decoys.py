"""Rings weighed by age: against plain integration, calibration on known truth, and refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

import coinhaze
from coinhaze.errors import InputError, LedgerError, UsageError
from coinhaze.ledger import CoinLedger
from coinhaze.measures.comparators.rings import ring_sizes
from coinhaze.observer.decoys import (
    MONERO,
    DecoySelection,
    decoy_posterior,
    measured_ages,
    ring_starts,
    with_decoy_posterior,
)
from coinhaze.simulate.rings import RingEconomy, ring_economy

HOUR = 3600.0


def density_of_decoys(seconds: float) -> float:
    """The picker, step by step: a gamma draw is ln of an age; what is locked is spread evenly."""
    fit = scipy.stats.gamma(19.28, scale=1 / 1.61)
    age = seconds + 1200
    recent = fit.cdf(math.log(1200)) / 1800 if seconds < 1800 else 0.0
    return float(fit.pdf(math.log(age)) / age + recent)


def density_of_spends(seconds: float) -> float:
    fit = scipy.stats.gamma(19.28, scale=1 / 1.61)
    age = seconds + 1200
    return float(fit.pdf(math.log(age)) / age / fit.sf(math.log(1200)))


def share(density: object, first: float) -> float:
    value, _ = scipy.integrate.quad(density, first, first + 120, epsabs=0, epsrel=1e-11)
    return float(value)


def economy_of_spenders_in_haste() -> RingEconomy:
    return ring_economy(
        blocks=200, ring=8, spend_age=lambda rng: float(rng.exponential(HOUR)), seed=3
    )


def test_chances_are_those_of_the_densities_integrated_one_by_one() -> None:
    heights = [1_000_000, 1_999_000, 1_999_960, 1_999_985, 1_999_989]
    ledger = CoinLedger.from_transactions(
        [
            {"txid": "s", "height": 2_000_000, "outputs": 1}
            | {"rings": [[f"o{k}:0" for k in range(len(heights))]]}
        ]
    )
    told = {f"o{k}": height for k, height in enumerate(heights)}
    found = with_decoy_posterior(ledger, heights=told).ring_probability
    assert found is not None
    ages = [(2_000_000 - height - 10) * 120.0 for height in heights]
    weights = [share(density_of_spends, a) / share(density_of_decoys, a) for a in ages]
    assert found == pytest.approx([w / sum(weights) for w in weights], rel=1e-8)
    # The first half hour holds decoys that the lock pushed there: real spends are rarer.
    assert found[-1] < 0.7 * found[0]


def test_decoys_as_drawn_by_the_made_up_wallet_have_that_distribution() -> None:
    economy = ring_economy(blocks=300, per_block=4, ring=11, seed=5)
    ledger = economy.ledger
    height = np.array(
        [
            economy.heights.get(t) or h
            for t, h in zip(ledger.txids.to_pylist(), ledger.heights.to_pylist(), strict=True)
        ]
    )
    made = height[ledger.output_tx[ledger.ring_output]]
    blocks = height[ledger.ring_tx] - made - 10
    decoy = np.ones(len(blocks), bool)
    decoy[economy.real] = False
    ages = np.sort(blocks[decoy])
    assert ages.min() >= 0
    for edge in (1, 5, 15, 100, 1000, 20_000):
        expected = float(MONERO.decoys(np.array([edge * 120.0]))[0])
        error = 4 * math.sqrt(expected * (1 - expected) / len(ages))
        assert np.mean(ages < edge) == pytest.approx(expected, abs=error)


def test_a_distribution_of_spends_equal_to_the_decoys_leaves_rings_uniform() -> None:
    economy = ring_economy(blocks=30, ring=5)
    posterior = decoy_posterior(economy.ledger, real=MONERO.decoys, heights=economy.heights)
    assert posterior.ledger.ring_probability == pytest.approx(0.2)
    assert not posterior.assumed
    sizes = ring_sizes(posterior.ledger)
    assert sizes["effective"].to_pylist() == pytest.approx([5.0] * posterior.rings)


def test_the_right_distribution_says_as_often_as_it_is_right() -> None:
    """Calibration: of members given chance p about a share p were spent, where truth is known."""
    economy = economy_of_spenders_in_haste()
    real = lambda seconds: -np.expm1(-np.maximum(seconds, 0) / HOUR)  # noqa: E731
    posterior = decoy_posterior(economy.ledger, real=real, heights=economy.heights)
    chance = posterior.ledger.ring_probability
    assert chance is not None
    spent = np.zeros(len(chance), bool)
    spent[economy.real] = True
    for low, high in ((0.0, 0.05), (0.05, 0.3), (0.3, 0.7), (0.7, 0.95), (0.95, 1.01)):
        some = (chance >= low) & (chance < high)
        assert some.sum() > 50
        error = 4 * math.sqrt(0.25 / some.sum())
        assert spent[some].mean() == pytest.approx(chance[some].mean(), abs=error)
    # Most rings of people in haste hide little: far fewer than eight members in effect.
    assert np.median(ring_sizes(posterior.ledger)["effective"].to_numpy()) < 2.5
    starts = ring_starts(economy.ledger)
    members = chance.reshape(len(starts), -1)
    right = np.mean(starts + members.argmax(axis=1) == economy.real)
    assert right == pytest.approx(members.max(axis=1).mean(), abs=4 * math.sqrt(0.25 / len(starts)))
    assert right > 0.5  # where a guess is right in one ring of eight
    scores = coinhaze.score(posterior.ledger)
    assert scores.notes == ("rings weighed by age, with the ages of real spends given",)


def test_a_measured_histogram_stands_for_the_distribution() -> None:
    economy = economy_of_spenders_in_haste()
    edges = [*np.arange(0, 24 * HOUR, 120.0), 1e9]
    exact = -np.expm1(-np.array(edges) / HOUR)
    histogram = measured_ages(edges, np.diff(exact).tolist())
    one = with_decoy_posterior(economy.ledger, real=histogram, heights=economy.heights)
    two = with_decoy_posterior(
        economy.ledger,
        real=lambda seconds: -np.expm1(-np.maximum(seconds, 0) / HOUR),
        heights=economy.heights,
    )
    assert one.ring_probability == pytest.approx(two.ring_probability, abs=1e-4)


def ring_of(**times: int | None) -> CoinLedger:
    old, new = times.pop("old"), times.pop("new")
    return CoinLedger.from_transactions(
        [
            {"txid": "a", "outputs": 1, "time": old},
            {"txid": "b", "outputs": 1, "time": new},
            {"txid": "c", "rings": [["a:0", "b:0"]], "outputs": 1, "time": 10_000_000},
        ]
    )


def test_block_times_serve_where_heights_are_unknown() -> None:
    by_time = with_decoy_posterior(ring_of(old=4_000_000, new=9_998_700))
    by_height = with_decoy_posterior(
        CoinLedger.from_transactions(
            [
                {"txid": "a", "outputs": 1, "height": 83_333 - 50_000},
                {"txid": "b", "outputs": 1, "height": 83_333 - 10},
                {"txid": "c", "rings": [["a:0", "b:0"]], "outputs": 1, "height": 83_333},
            ]
        )
    )
    assert by_time.ring_probability == pytest.approx(by_height.ring_probability, abs=1e-12)
    # A miner's clock that runs ahead makes a coin as young as can be, not younger.
    ahead = with_decoy_posterior(ring_of(old=4_000_000, new=10_000_500))
    assert ahead.ring_probability == pytest.approx(by_time.ring_probability, abs=1e-12)


def test_heights_given_are_for_what_the_ledger_does_not_tell() -> None:
    ledger = CoinLedger.from_transactions(
        [
            {"txid": "a", "outputs": 1, "height": 1},
            {"txid": "b", "outputs": 1, "height": 99_990},
            {"txid": "c", "rings": [["a:0", "b:0"]], "outputs": 1, "height": 100_000},
        ]
    )
    told = with_decoy_posterior(ledger, heights={"b": 2}).ring_probability
    assert told == pytest.approx(with_decoy_posterior(ledger).ring_probability)
    assert told is not None
    assert told[0] > 0.55


def test_all_spends_and_all_decoys_come_some_time() -> None:
    ever = np.array([0.0, 1e30])
    assert MONERO.spends(ever) == pytest.approx([0, 1])
    assert MONERO.decoys(ever) == pytest.approx([0, 1])


def test_a_member_of_unknown_age_is_refused_or_leaves_its_ring_uniform() -> None:
    ledger = CoinLedger.from_transactions(
        [
            {"txid": "a", "outputs": 1, "height": 1},
            {"txid": "b", "outputs": 1, "height": 99_990},
            {"txid": "c", "outputs": 1, "height": 100_000}
            | {"rings": [["a:0", "old:0"], ["a:0", "b:0"]]},
        ]
    )
    with pytest.raises(LedgerError, match="ring:c:0: a member of unknown age: 'old:0'"):
        with_decoy_posterior(ledger)
    posterior = decoy_posterior(ledger, unknown="uniform")
    chances = posterior.ledger.ring_probability
    assert chances is not None
    assert chances[:2].tolist() == [0.5, 0.5]
    assert chances[2] > 0.55
    assert (posterior.rings, posterior.uniform) == (2, 1)
    assert posterior.note() == (
        "rings weighed by age, with assumed ages of real spends; 1 of 2 left uniform: no age"
    )
    assert ring_starts(ledger).tolist() == [0, 2]


def test_a_member_inside_the_lock_is_an_error_unless_the_chain_has_another() -> None:
    ledger = CoinLedger.from_transactions(
        [
            {"txid": "a", "outputs": 1, "height": 95},
            {"txid": "b", "rings": [["a:0"]], "outputs": 1, "height": 100},
        ]
    )
    with pytest.raises(LedgerError, match="younger than the 10 blocks"):
        with_decoy_posterior(ledger)
    assert with_decoy_posterior(ledger, wallet=DecoySelection(lock_blocks=4)).ring_probability == [
        1.0
    ]


def test_what_cannot_be_weighed_is_refused() -> None:
    with pytest.raises(UsageError, match="no rings"):
        with_decoy_posterior(
            CoinLedger.from_transactions([{"txid": "a", "outputs": [{"value": 1}]}])
        )
    with pytest.raises(UsageError, match="no rings"):
        ring_sizes(CoinLedger.from_transactions([{"txid": "a", "outputs": [{"value": 1}]}]))
    with pytest.raises(UsageError, match="unknown is refuse or uniform"):
        with_decoy_posterior(ring_of(old=1, new=2), unknown="drop")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no member is of an age ever spent"):
        with_decoy_posterior(ring_of(old=1, new=2), real=measured_ages([0, 10], [1]))
    for edges, counts in (([0, 1], [1, 2]), ([1, 0], [1]), ([0, 1], [-1]), ([0, 1], [0])):
        with pytest.raises(InputError, match="a histogram of ages"):
            measured_ages(edges, counts)
