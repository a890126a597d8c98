from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coinhaze
from coinhaze.errors import UsageError
from coinhaze.graph.clusters.deposit_pools import short_pools
from coinhaze.ledger import AccountLedger, CoinLedger
from coinhaze.observer.decoys import MONERO
from coinhaze.simulate.intents import COIN, Intents, draw_intents
from coinhaze.simulate.technologies import TECHNOLOGIES
from coinhaze.simulate.technologies.deposit_pool import DENOMINATIONS, make_deposit_pool
from coinhaze.simulate.technologies.rings import FIRST_HEIGHT, ring_tariff
from coinhaze.simulate.technology import Realised
from coinhaze.simulate.wallets import SimulatedWallets
from simulate.economies import intents_of

NAMES = ("accounts", "stealth-accounts", "confidential-accounts", "deposit-pool", "rings")
RESERVE = 1_000_000


def small(seed: int = 1, people: int = 60, payments: int = 80) -> Intents:
    return draw_intents(people=people, payments=payments, hours=48.0, seed=seed)


def accounts(realised: Realised) -> AccountLedger:
    assert isinstance(realised.ledger, AccountLedger)
    return realised.ledger


def coins(realised: Realised) -> CoinLedger:
    assert isinstance(realised.ledger, CoinLedger)
    return realised.ledger


def same_ledger(one: Realised, two: Realised) -> bool:
    left, right = one.ledger.tables(), two.ledger.tables()
    return left.keys() == right.keys() and all(left[name].equals(right[name]) for name in left)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10_000), step=st.integers(0, 9))
def test_everybody_ends_with_what_the_book_says_less_his_fees(
    name: str, seed: int, step: int
) -> None:
    technology, intents = TECHNOLOGIES[name], small(seed)
    realised = technology.realise(intents, technology.values[step % len(technology.values)])
    assert realised.held().tolist() == (intents.closing - realised.fees).tolist()
    assert np.all(realised.fees >= 0)
    assert np.all(realised.fees <= intents.reserve)
    assert realised.transactions >= len(intents)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_makes_the_same_ledger(name: str) -> None:
    technology = TECHNOLOGIES[name]
    one, two, three = (technology.realise(small(seed)) for seed in (1, 1, 2))
    assert same_ledger(one, two)
    assert not same_ledger(one, three)
    assert np.array_equal(one.bits(), two.bits(), equal_nan=True)


@pytest.mark.parametrize("name", ["stealth-accounts", "confidential-accounts", "deposit-pool"])
def test_where_nobody_uses_it_the_ledger_is_that_of_plain_accounts(name: str) -> None:
    intents = small()
    without = TECHNOLOGIES[name].realise(intents, TECHNOLOGIES[name].without)
    plain = TECHNOLOGIES["accounts"].realise(intents)
    assert same_ledger(without, plain)
    assert without.settings == plain.settings
    assert without.holdings == plain.holdings


@pytest.mark.parametrize("name", ["stealth-accounts", "deposit-pool", "accounts"])
def test_the_ledger_s_own_balances_are_what_people_hold(name: str) -> None:
    intents = small()
    realised = TECHNOLOGIES[name].realise(intents)
    ledger = accounts(realised)
    assert ledger.fees is not None
    balance = dict(realised.settings["opening"])
    rows = zip(
        ledger.sender.tolist(),
        ledger.receiver.tolist(),
        ledger.amounts.ints(),
        ledger.fees.ints(),
        strict=True,
    )
    who = ledger.accounts.to_pylist()
    for sender, receiver, amount, fee in rows:
        balance[who[sender]] = balance.get(who[sender], 0) - amount - fee
        balance[who[receiver]] = balance.get(who[receiver], 0) + amount
        assert balance[who[sender]] >= 0
    held = {h.node: h.value for h in realised.holdings if h.node is not None}
    assert held == {name: b for name, b in balance.items() if b and name.startswith("person")}


def test_adopters_of_stealth_addresses_never_receive_twice_in_one_account() -> None:
    intents = small()
    realised = TECHNOLOGIES["stealth-accounts"].realise(intents, 0.5)
    ledger = accounts(realised)
    names = ledger.accounts.to_pylist()
    receivers = {names[r] for r in ledger.receiver.tolist()}
    adopted = {f"person{k}" for k in np.flatnonzero(realised.adopters).tolist()}
    assert not receivers & adopted
    received = int(realised.adopters[intents.payee].sum())
    assert sum("." in name for name in receivers) == received > 0


# Known answers.


@pytest.mark.parametrize("n", [1, 2, 3, 8, 11, 16])
def test_a_ring_of_n_coins_of_their_own_origin_hides_log2_n_bits(n: int) -> None:
    intents = intents_of(
        [(k, COIN + RESERVE) for k in range(16)], [(20.0, 0, 1, COIN)], people=16, reserve=RESERVE
    )
    realised = TECHNOLOGIES["rings"].realise(intents, n)
    made = [h.node for h in realised.holdings if h.node and h.node.startswith("t0:")]
    assert len(made) == 2
    bits = coinhaze.score(realised.ledger, nodes=made, **realised.settings).bits
    assert bits.tolist() == pytest.approx([math.log2(n)] * 2, abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 11, 16])
@pytest.mark.parametrize("denomination", DENOMINATIONS[:2])
def test_a_pool_of_n_equal_deposits_hides_log2_n_bits(n: int, denomination: int) -> None:
    intents = intents_of(
        [(k, denomination + 2 * RESERVE) for k in range(n)], [], people=n, reserve=RESERVE
    )
    # Nobody takes anything out before everybody has paid in.
    realised = make_deposit_pool(intents, 1.0, "amounts", wait=1e7)
    fresh = [h.node for h in realised.holdings if h.node and "." in h.node]
    assert len(fresh) == n
    bits = coinhaze.score(realised.ledger, nodes=fresh, **realised.settings).bits
    assert bits.tolist() == pytest.approx([math.log2(n)] * n, abs=1e-12)


def test_money_taken_out_before_others_pay_in_hides_among_none() -> None:
    intents = intents_of(
        [(k, COIN // 10 + 2 * RESERVE) for k in range(5)], [], people=5, reserve=RESERVE
    )
    realised = make_deposit_pool(intents, 1.0, "amounts", wait=1e-9)
    fresh = [h.node for h in realised.holdings if h.node and "." in h.node]
    bits = coinhaze.score(realised.ledger, nodes=fresh, **realised.settings).bits
    assert bits.tolist() == pytest.approx([0.0] * 5, abs=1e-9)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_rings_of_one_member_are_plain_tracing(seed: int) -> None:
    intents = small(seed)
    purses = SimulatedWallets.open(intents, tariff=ring_tariff(1))
    for i in range(len(intents)):
        purses.pay(i)
    plain = purses.realised(adopters=intents.adopters(1.0), settings={"policy": "uniform"})
    for observer in TECHNOLOGIES["rings"].observers:
        ringed = TECHNOLOGIES["rings"].realise(intents, 1, observer=observer)
        assert ringed.bits() == pytest.approx(plain.bits(), abs=1e-12)


def test_confidential_accounts_are_seen_as_uniform() -> None:
    # 3 has its money from two payers, one of whom paid far more.
    payments = [(1.0, 0, 3, 90 * COIN // 100), (2.0, 1, 3, COIN // 100)]
    intents = intents_of([(k, 2 * COIN) for k in range(3)], payments, people=4, reserve=RESERVE)
    seen, hidden = (TECHNOLOGIES["confidential-accounts"].realise(intents, v) for v in (0, 1))
    small_part = 1 / 91
    both = small_part * math.log2(91) + (1 - small_part) * math.log2(91 / 90)
    assert seen.bits()[3] == pytest.approx(both)
    assert hidden.bits()[3] == pytest.approx(1.0)


# Pools.


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_pools_pay_out_what_was_paid_in_and_no_more(seed: int) -> None:
    realised = TECHNOLOGIES["deposit-pool"].realise(small(seed), 0.5)
    ledger = accounts(realised)
    assert not short_pools(ledger)
    assert ledger.fees is not None
    names = np.array(ledger.accounts.to_pylist())
    amounts = np.array(ledger.amounts.ints())
    into = {n: amounts[names[ledger.receiver] == n].sum() for n in names if n.startswith("pool:")}
    out = {n: amounts[names[ledger.sender] == n].sum() for n in into}
    assert into == out
    relayed = amounts[np.char.startswith(names[ledger.receiver], "relayers:")].sum()
    assert realised.fees.sum() == sum(ledger.fees.ints()) + relayed


def test_deposits_into_a_pool_are_all_equal() -> None:
    ledger = accounts(TECHNOLOGIES["deposit-pool"].realise(small(), 0.5))
    names = ledger.accounts.to_pylist()
    paid: dict[str, set[int]] = {}
    for receiver, amount in zip(ledger.receiver.tolist(), ledger.amounts.ints(), strict=True):
        if names[receiver].startswith("pool:"):
            paid.setdefault(names[receiver], set()).add(amount)
    assert paid == {name: {round(float(name[5:]) * COIN)} for name in paid}
    assert len(paid) >= 2


def test_who_must_pay_takes_his_money_out_before_its_time() -> None:
    # All that 0 has beside his reserve lies in the pool when he is to pay.
    intents = intents_of(
        [(0, COIN // 10 + 2 * RESERVE), (1, COIN)],
        [(20.0, 0, 1, COIN // 20)],
        people=2,
        reserve=RESERVE,
        hours=10.0,
    )
    realised = make_deposit_pool(intents, 1.0, "amounts", wait=1e9)
    names = accounts(realised).accounts.to_pylist()
    assert "person0.1" in names
    assert 10.0 <= realised.waiting <= 20.0
    assert realised.held().tolist() == (intents.closing - realised.fees).tolist()


def test_the_walk_through_a_pool_knows_all_that_memoryless_waits_tell() -> None:
    # A slow twin: whenever money is taken out, each note still there is as likely to be it.
    order = "abc-d-e--f-"
    worlds: list[tuple[float, str]] = [(1.0, "")]  # the chance of each set of notes still there
    expected, transfers = [], []
    for step, what in enumerate(order):
        if what != "-":
            worlds = [(chance, there + what) for chance, there in worlds]
            transfers.append((what, "pool:1", 1))
            continue
        taken: dict[str, float] = {}
        after: dict[str, float] = {}
        for chance, there in worlds:
            for note in there:
                taken[note] = taken.get(note, 0.0) + chance / len(there)
                left = there.replace(note, "")
                after[left] = after.get(left, 0.0) + chance / len(there)
        worlds = [(chance, left) for left, chance in after.items()]
        expected.append(-sum(p * math.log2(p) for p in taken.values()))
        transfers.append(("pool:1", f"fresh{step}", 1))
    ledger = AccountLedger.from_transfers(transfers)
    fresh = [to for _, to, _ in transfers if to.startswith("fresh")]
    bits = coinhaze.score(ledger, nodes=fresh, time="temporal").bits
    assert bits.tolist() == pytest.approx(expected, abs=1e-12)


# Rings.


def members(ledger: CoinLedger) -> list[set[str]]:
    names = ledger.output_names().to_pylist()
    found: dict[tuple[int, int], set[str]] = {}
    for tx, vin, output in zip(ledger.ring_tx, ledger.ring_vin, ledger.ring_output, strict=True):
        found.setdefault((int(tx), int(vin)), set()).add(names[output])
    return list(found.values())


def test_larger_rings_hold_the_smaller_ones() -> None:
    intents = small(people=40, payments=30)
    rings = [members(coins(TECHNOLOGIES["rings"].realise(intents, n))) for n in (1, 4, 16)]
    assert len({len(r) for r in rings}) == 1
    for small_one, middle, large in zip(*rings, strict=True):
        assert small_one < middle < large
        assert (len(small_one), len(middle), len(large)) == (1, 4, 16)


def test_no_coin_is_spent_or_used_as_a_decoy_inside_its_lock() -> None:
    payments = [(1.0, 0, 1, COIN // 2), (1.01, 1, 2, COIN // 3), (1.02, 2, 3, COIN // 4)]
    owners = [(0, COIN), *((k, COIN) for k in range(4, 12))]
    reserved = [(o, v + RESERVE) for o, v in owners] + [(k, RESERVE) for k in (1, 2, 3)]
    intents = intents_of(reserved, payments, people=12, reserve=RESERVE)
    realised = TECHNOLOGIES["rings"].realise(intents, 4)
    ledger = coins(realised)
    height = ledger.heights.to_numpy(zero_copy_only=False)[ledger.inside]
    # Each has to wait for what the one before him paid: 20 minutes after one another.
    assert (height - FIRST_HEIGHT).tolist() == [30, 40, 50]
    assert realised.waiting == pytest.approx((0 + 10 + 20) / 30 / 3)
    made = ledger.output_tx[ledger.ring_output]
    known = ledger.inside[made]
    blocks = ledger.heights.to_numpy(zero_copy_only=False)
    ages = blocks[ledger.ring_tx[known]] - blocks[made[known]]
    assert ages.min() >= MONERO.lock_blocks


def test_decoys_are_drawn_as_often_as_the_wallet_s_ages_say() -> None:
    # One ring of two among the real coin and two others: which of them is the decoy?
    off = spread = 0.0
    for seed in range(150):
        intents = intents_of(
            [(0, COIN + RESERVE), (1, COIN), (2, COIN)],
            [(20.0, 0, 1, COIN)],
            people=3,
            seed=seed,
        )
        ring = members(coins(TECHNOLOGIES["rings"].realise(intents, 2)))[0]
        assert "before0:0" in ring
        gamma = intents.dice("ages of opening coins").gamma(MONERO.shape, 1 / MONERO.rate, 3)
        ages = (np.exp(gamma) // MONERO.block_seconds + 20 * 30) * MONERO.block_seconds
        mass = MONERO.decoys(ages + MONERO.block_seconds) - MONERO.decoys(ages)
        chance = mass[1] / (mass[1] + mass[2])
        # By how much age favours one of them, so that a draw that ignores age is told apart.
        favour = chance - 0.5
        off += favour * (("before1:0" in ring) - chance)
        spread += favour**2 * chance * (1 - chance)
    assert abs(off) < 4 * math.sqrt(spread)


def test_the_observer_of_ages_knows_more_than_the_one_of_members() -> None:
    intents = draw_intents(people=60, payments=200, seed=3)
    members_, ages = (
        TECHNOLOGIES["rings"].realise(intents, 8, observer=o) for o in ("members", "ages")
    )
    assert coins(ages).ring_probability is not None
    assert np.array_equal(coins(members_).ring_output, coins(ages).ring_output)
    assert np.nanmean(ages.bits()) < np.nanmean(members_.bits())


def test_rings_larger_than_the_economy_are_refused() -> None:
    intents = intents_of([(0, COIN), (1, COIN)], [], people=2)
    with pytest.raises(UsageError, match="rings of 16 need as many coins"):
        TECHNOLOGIES["rings"].realise(intents, 16)
