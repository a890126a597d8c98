"""Scenarios whose answer a pencil can find."""

from __future__ import annotations

from dataclasses import replace
from math import log2

import numpy as np
import pytest

import coinhaze
from coinhaze.measures.entropy import shannon
from coinhaze.simulate.intents import COIN, Intents
from coinhaze.simulate.mixing import KnownOwners, Seat, join
from coinhaze.simulate.technologies.confidential import make_confidential
from coinhaze.simulate.technologies.dash import make_dash
from coinhaze.simulate.technologies.joinmarket import make_joinmarket
from coinhaze.simulate.technologies.plain import make_plain
from coinhaze.simulate.technologies.shielded import make_shielded
from coinhaze.simulate.technologies.stealth import make_stealth
from coinhaze.simulate.technologies.wabisabi import WABISABI
from coinhaze.simulate.technologies.wasabi import WASABI
from coinhaze.simulate.technologies.whirlpool import WHIRLPOOL
from coinhaze.simulate.technology import Realised
from coinhaze.simulate.wallets import SimulatedCoin, SimulatedWallets
from simulate.economies import intents_of

EXACT = 1e-12


def alike(people: int, value: int, *, hours: float = 24.0) -> Intents:
    """Give everybody one coin of the same value, and nothing to pay."""
    coins = [(who, value) for who in range(people)]
    return intents_of(coins, [], people=people, reserve=value // 5, hours=hours)


def bits_of(realised: Realised) -> dict[str, float]:
    table = coinhaze.score(realised.ledger, **realised.settings).to_arrow()
    return dict(zip(table["node"].to_pylist(), table["bits"].to_pylist(), strict=True))


def value_of(realised: Realised) -> dict[str, int]:
    return {h.node: h.value for h in realised.holdings if h.node is not None}


@pytest.mark.parametrize("k", [5, 8, 50, 100])
def test_a_perfect_mix_of_k_coins_has_log2_k_bits(k: int) -> None:
    purses, told = SimulatedWallets.open(alike(k, COIN)), KnownOwners()
    seats = [Seat(who, tuple(purses.coins[who]), (COIN,)) for who in range(k)]
    join(purses, 1.0, seats, np.random.default_rng(1), told)
    realised = purses.realised(adopters=np.ones(k, dtype=np.bool_), settings={"policy": told})
    assert list(bits_of(realised).values()) == pytest.approx([log2(k)] * k, abs=EXACT)
    assert realised.bits().tolist() == pytest.approx([log2(k)] * k, abs=EXACT)


@pytest.mark.parametrize("observer", ["amounts", "told"])
def test_a_round_of_wasabi_hides_equal_coins_and_change_only_from_who_knows_nothing(
    observer: str,
) -> None:
    realised = WASABI.make(alike(16, COIN * 15 // 100), 1.0, observer)
    bits, value = bits_of(realised), value_of(realised)
    equal = [b for node, b in bits.items() if value.get(node) == COIN // 10]
    change = [b for node, b in bits.items() if node in value and value[node] != COIN // 10]
    assert len(equal) == len(change) == 16
    assert equal == pytest.approx([4.0] * 16, abs=EXACT)
    assert change == pytest.approx([4.0 if observer == "amounts" else 0.0] * 16, abs=EXACT)


@pytest.mark.parametrize("observer", ["amounts", "told"])
@pytest.mark.parametrize("make", [WABISABI.make, make_dash], ids=["wabisabi", "dash"])
def test_people_who_bring_equal_coins_have_equal_bits(make: object, observer: str) -> None:
    # Everybody gets the same coins; eight sources stay eight however often they are mixed.
    how_much = 3 if make is make_dash else 1.0
    intents = alike(32 if make is make_dash else 8, COIN // 2)
    realised = make(intents, how_much, observer)  # type: ignore[operator]
    mixed = realised.bits()[realised.adopters]
    assert np.all(mixed <= 3 + EXACT)
    assert np.all(mixed > 2.5)


def test_rounds_of_the_same_people_add_nothing() -> None:
    purses, told, dice = (
        SimulatedWallets.open(alike(4, COIN)),
        KnownOwners(),
        np.random.default_rng(1),
    )
    for hour in range(5):
        seats = [Seat(who, tuple(purses.coins[who]), (COIN,)) for who in range(4)]
        join(purses, float(hour), seats, dice, told)
    realised = purses.realised(adopters=np.ones(4, dtype=np.bool_), settings={})
    assert realised.bits().tolist() == pytest.approx([2.0] * 4, abs=EXACT)


def test_rounds_of_people_who_never_met_multiply() -> None:
    # Four by four by four: in round m each meets three whose pasts have nothing in common.
    people, k = 64, 4
    purses, told, dice = (
        SimulatedWallets.open(alike(people, COIN)),
        KnownOwners(),
        np.random.default_rng(1),
    )
    for m in range(3):
        groups: dict[int, list[int]] = {}
        for who in range(people):
            groups.setdefault(who - who // k**m % k * k**m, []).append(who)
        for group in groups.values():
            seats = [Seat(who, tuple(purses.coins[who]), (COIN,)) for who in group]
            join(purses, float(m), seats, dice, told)
        realised = purses.realised(adopters=np.ones(people, dtype=np.bool_), settings={})
        expected = [(m + 1) * log2(k)] * people
        assert realised.bits().tolist() == pytest.approx(expected, abs=EXACT)


def test_whirlpool_of_five_has_log2_5_bits_in_its_first_mix() -> None:
    realised = WHIRLPOOL.make(alike(5, COIN * 6 // 100, hours=1.0), 1.0, "amounts")
    value = value_of(realised)
    mixed = [b for node, b in bits_of(realised).items() if value.get(node) == COIN // 20]
    assert mixed == pytest.approx([log2(5)] * 5, abs=EXACT)


def test_a_payment_by_joinmarket_hides_among_its_makers_and_no_further() -> None:
    coins = [(who, COIN) for who in range(4)]
    intents = intents_of(coins, [(1.0, 0, 4, COIN // 4)], people=5, reserve=COIN // 10)
    for seed in range(1, 6):  # two makers or three, as the dice fall
        economy = replace(intents, seed=seed)
        amounts, told = (make_joinmarket(economy, 1.0, who) for who in ("amounts", "told"))
        value = value_of(told)
        parties = len(told.ledger.input_tx)  # type: ignore[union-attr]
        by_amounts, by_told = bits_of(amounts), bits_of(told)
        for node, found in value.items():
            is_equal = found == COIN // 4
            assert by_told[node] == pytest.approx(log2(parties) if is_equal else 0.0, abs=EXACT)
            assert by_amounts[node] == pytest.approx(log2(parties), abs=EXACT)


@pytest.mark.parametrize("n", [4, 10, 64])
def test_a_pool_of_n_equal_deposits_has_log2_n_bits(n: int) -> None:
    bare = intents_of([(w, COIN) for w in range(n + 1)], [], people=n + 1)
    share = n / (n + 1)
    inside = np.flatnonzero(bare.adopters(share)).tolist()
    (outside,) = np.flatnonzero(~bare.adopters(share)).tolist()
    payments = [(30.0, inside[0], outside, COIN // 3), (31.0, inside[1], outside, COIN // 5)]
    intents = intents_of(
        [(w, COIN) for w in range(n + 1)], payments, people=n + 1, reserve=COIN // 10, hours=48.0
    )
    realised = make_shielded(intents, share, "amounts")
    bits = bits_of(realised)
    withdrawn = [h.node for h in realised.holdings if h.person == outside and h.node is not None]
    assert len(withdrawn) == 2
    assert [bits[node] for node in withdrawn] == pytest.approx([log2(n)] * 2, abs=EXACT)
    assert realised.bits()[inside].tolist() == pytest.approx([log2(n)] * n, abs=EXACT)


def test_a_later_deposit_counts_by_its_share_of_the_pool() -> None:
    people = 4
    bare = intents_of([(w, COIN) for w in range(people)], [], people=people)
    inside = np.flatnonzero(bare.adopters(0.5)).tolist()
    out = np.flatnonzero(~bare.adopters(0.5)).tolist()
    payments = [
        (30.0, inside[0], out[0], COIN // 2),  # out of two equal deposits
        (31.0, out[1], inside[0], COIN // 4),  # a third one comes
        (32.0, inside[0], out[0], COIN // 8),
    ]
    intents = intents_of(
        [(w, COIN) for w in range(people)], payments, people=people, reserve=COIN // 10, hours=48.0
    )
    realised = make_shielded(intents, 0.5, "amounts")
    fee = 10 * (11 + 68 * 3 + 31 * 2)  # to shield one coin, and to bring it out again
    left = 2 * (COIN - fee) - COIN // 2 - 10 * (11 + 68 * 2 + 31 * 3)
    total = left + COIN // 4
    expected = shannon(np.array([left / 2, left / 2, COIN // 4]) / total)
    bits, value = bits_of(realised), value_of(realised)
    (last,) = [node for node in bits if value.get(node) == COIN // 8]
    assert bits[last] == pytest.approx(expected, abs=EXACT)


def test_an_address_used_again_blurs_what_stealth_addresses_keep_apart() -> None:
    # Two customers pay a shop the same; it pays a supplier out of the first one's coin.
    coins = [(0, COIN), (1, COIN)]
    payments = [(1.0, 0, 2, COIN // 2), (2.0, 1, 2, COIN // 2), (3.0, 2, 3, COIN // 4)]
    intents = intents_of(coins, payments, people=4)
    supplier = 3
    again, stealth = (make_stealth(intents, share, "addresses") for share in (0.0, 1.0))
    assert again.bits()[supplier] == pytest.approx(1.0, abs=EXACT)
    assert stealth.bits()[supplier] == 0.0
    # Coins tell more than either, whatever the addresses.
    for share in (0.0, 1.0):
        assert make_stealth(intents, share, "amounts").bits()[supplier] == 0.0
    # Coins and addresses used once are one graph: bit for bit the same.
    by_coin = make_plain(intents, 0.0, "amounts").bits()
    assert stealth.bits().tolist() == by_coin.tolist()


def test_hidden_amounts_make_a_large_and_a_small_coin_equal() -> None:
    coins = [(0, COIN), (1, 3 * COIN)]
    payments = [(1.0, 0, 2, COIN // 2), (2.0, 1, 2, 3 * COIN // 2), (3.0, 2, 3, 7 * COIN // 4)]
    intents = intents_of(coins, payments, people=4)
    supplier = 3
    seen, hidden = (make_confidential(intents, value, "amounts") for value in (0, 1))
    assert seen.bits()[supplier] == pytest.approx(shannon(np.array([0.25, 0.75])), abs=EXACT)
    assert hidden.bits()[supplier] == pytest.approx(1.0, abs=EXACT)


def test_money_that_never_moved_has_no_node_and_no_bits() -> None:
    intents = intents_of([(0, COIN), (1, COIN)], [(1.0, 0, 1, COIN // 4)], people=3)
    realised = make_plain(intents, 0.0, "amounts")
    assert [h.node for h in realised.holdings if h.person == 1 and h.value == COIN] == [None]
    assert realised.bits()[1] == 0.0
    assert np.isnan(realised.bits()[2])  # holds nothing


def test_a_coin_knows_what_it_is_called_in_the_ledger() -> None:
    purses = SimulatedWallets.open(alike(2, COIN))
    coin: SimulatedCoin = purses.coins[1][0]
    assert coin.name == "before1:0"
