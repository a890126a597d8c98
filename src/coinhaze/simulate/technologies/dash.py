"""Dash PrivateSend (CoinJoin): money in five denominations, mixed round after round."""

from __future__ import annotations

import numpy as np

from coinhaze.amounts import Bools
from coinhaze.simulate.intents import COIN, Intents
from coinhaze.simulate.mixing import (
    OBSERVERS,
    KnownOwners,
    Seat,
    join,
    mixed_coins,
    realise_mixing,
    spare,
)
from coinhaze.simulate.technology import Realised, Technology
from coinhaze.simulate.wallets import Pay, SimulatedCoin, SimulatedWallets, change_of

SHARE = 0.25  # of people who mix; the parameter is the number of rounds
# Each denomination includes a little for fees: 10.0001, 1.00001, 0.100001, 0.0100001, 0.00100001
# (Dash Core, src/coinjoin/common.h).
DENOMINATIONS = tuple((COIN + COIN // 100_000) * 10 // 10**k for k in range(5))
MAX_EACH = 10  # assumed: coins of one denomination from one splitting transaction
MIN_PEOPLE, MAX_PEOPLE = 3, 20  # per session (Dash Core, chainparams.cpp)
MAX_INPUTS = 9  # per person (COINJOIN_ENTRY_MAX_SIZE)
HOURS = 1.0  # assumed: one round per hour
# One person in ten loses a collateral of a tenth of the smallest denomination to the miners.
CHARGED = 0.1
COLLATERAL = DENOMINATIONS[-1] // 10


def make_dash(intents: Intents, rounds: float, observer: str) -> Realised:
    """Split what adopters hold, mix every coin `rounds` times, and pay with those."""
    ready = int(rounds)

    def mix(
        wallets: SimulatedWallets,
        time: float,
        people: list[int],
        dice: np.random.Generator,
        known: KnownOwners,
    ) -> None:
        for who in people:
            _split(wallets, time, who)
        waiting: dict[int, dict[int, list[SimulatedCoin]]] = {v: {} for v in DENOMINATIONS}
        for who in people:
            for coin in wallets.coins[who]:
                if coin.rounds < ready and coin.value in waiting:
                    waiting[coin.value].setdefault(who, []).append(coin)
        for coins in waiting.values():
            _sessions(wallets, time, coins, ready, dice, known)

    def pay(
        wallets: SimulatedWallets,
        i: int,
        adopters: Bools,
        dice: np.random.Generator,
        known: KnownOwners,
    ) -> None:
        mixed = mixed_coins(wallets, i, adopters, ready=ready) if ready else []
        _pay_without_change(wallets, i, mixed)

    return realise_mixing(
        intents,
        intents.adopters(SHARE),
        observer,
        name="dash",
        interval=HOURS,
        make_round=mix if ready else None,
        pay=pay,
    )


def _split(wallets: SimulatedWallets, time: float, who: int) -> None:
    """Split coins that are not denominated into denominations, the largest first."""
    coins = [c for c in wallets.coins[who] if c.value not in DENOMINATIONS]
    left = sum(c.value for c in coins) - wallets.tariff.fee(len(coins), 1)
    each = wallets.tariff.share(0, 1)
    parts: list[int] = []
    for denomination in DENOMINATIONS:
        count = min(MAX_EACH, max(0, left - COLLATERAL) // (denomination + each))
        parts += [denomination] * count
        left -= count * (denomination + each)
    fee = wallets.tariff.fee(len(coins), len(parts) + 1)
    # A remainder is not split again and again by itself: it waits for more money to arrive.
    if max(parts, default=0) <= DENOMINATIONS[-1] or fee > spare(wallets, who):
        return
    total = sum(c.value for c in coins)
    waited = sum(c.value * (time - c.made) for c in coins) / total
    change = change_of(left)
    paid = [Pay(who, v, waited=waited) for v in parts] + [Pay(who, change)] * bool(change)
    wallets.add(time, coins, paid)


def _sessions(
    wallets: SimulatedWallets,
    time: float,
    waiting: dict[int, list[SimulatedCoin]],
    ready: int,
    dice: np.random.Generator,
    known: KnownOwners,
) -> None:
    """Hold sessions of one denomination: each person brings up to nine coins and gets as many."""
    people = list(waiting)
    people = [people[k] for k in dice.permutation(len(people))]
    while len(people) >= MIN_PEOPLE:
        size = int(dice.integers(MIN_PEOPLE, MAX_PEOPLE + 1))
        group, people = people[:size], people[size:]
        # No remainder is too small for a session: the last session takes those people as well.
        if len(people) < MIN_PEOPLE:
            group, people = (group + people)[:MAX_PEOPLE], []
        seats = []
        for who in group:
            coins = tuple(waiting[who][:MAX_INPUTS])
            seats.append(Seat(who, coins, tuple(coin.value for coin in coins)))
        join(wallets, time, seats, dice, known, ready=ready)
        for who in group:
            if dice.random() < CHARGED:
                _charge(wallets, time, who)


def _charge(wallets: SimulatedWallets, time: float, who: int) -> None:
    """Take the collateral of a session from a coin that is not mixed."""
    loose = [c for c in wallets.coins[who] if c.value not in DENOMINATIONS and c.value > COLLATERAL]
    if not loose or spare(wallets, who) < COLLATERAL:
        return
    coin = min(loose, key=lambda c: (c.value, c.name))
    change = change_of(coin.value - COLLATERAL)
    if change:
        wallets.add(time, [coin], [Pay(who, change)])


def _pay_without_change(wallets: SimulatedWallets, i: int, mixed: list[SimulatedCoin]) -> None:
    """Pay with mixed denominations alone, leaving the excess to miners; else as any wallet."""
    payer, payee, amount = wallets.intents.payment(i)
    chosen = _exactly(wallets, mixed, amount)
    if not chosen or sum(c.value for c in chosen) - amount > spare(wallets, payer):
        wallets.pay(i, wanted=mixed)
        return
    wallets.add(float(wallets.intents.time[i]), chosen, [Pay(payee, amount)])
    wallets.settle(i, chosen)


def _exactly(
    wallets: SimulatedWallets, mixed: list[SimulatedCoin], amount: int
) -> list[SimulatedCoin]:
    """Choose coins that pay an amount and its fee with an excess below the lowest denomination."""
    chosen: list[SimulatedCoin] = []
    missing = amount + wallets.tariff.fee(0, 1)
    each = wallets.tariff.share(1, 0)
    for coin in sorted(mixed, key=lambda c: (-c.value, -c.rounds, c.name)):
        if missing > 0 and (coin.value - each <= missing or coin.value == DENOMINATIONS[-1]):
            chosen.append(coin)
            missing -= coin.value - each
    return chosen if missing <= 0 else []


DASH = Technology(
    name="dash",
    make=make_dash,
    parameter="rounds of mixing",
    minimum=0,
    maximum=16,
    values=(0, 2, 4, 8, 16),
    usual=4,
    says="Dash PrivateSend: five denominations, 3 to 20 people a session, so many rounds a coin",
    observers=OBSERVERS,
    whole=True,
)
