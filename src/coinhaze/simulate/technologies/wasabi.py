"""Wasabi 1: rounds of many people who each get a coin of about 0.1, another of twice that, ..."""

from __future__ import annotations

import numpy as np

from coinhaze.simulate.intents import COIN
from coinhaze.simulate.mixing import KnownOwners, Seat, join, mixing_technology, spare
from coinhaze.simulate.wallets import SimulatedCoin, SimulatedWallets, change_of

BASE = COIN // 10
LEVELS = tuple(BASE << k for k in range(8))
NEEDED = BASE + BASE // 50  # to take part: the coin and any fees
# Of the 196 listed rounds of August 2021 (Dumplings) half came within an hour of the one before,
# each of 10 to 70 people, with 1.4 coins per person.
HOURS = 1.0
MIN_PEOPLE, MAX_PEOPLE = 10, 100
# The coordinator takes 0.003 % of an equal coin per coin it equals: notes to release 0.8.0.
FEE_PART, FEE_WHOLE = 3, 100_000
MAX_INPUTS = 7  # per person: WalletWasabi, MaximumInputCountPerPeer


def mix(
    wallets: SimulatedWallets,
    time: float,
    people: list[int],
    dice: np.random.Generator,
    known: KnownOwners,
) -> None:
    """Hold the rounds of one moment: everybody who has enough to mix, 100 people at a time."""
    brought = {who: _to_mix(wallets, who) for who in people}
    ready = [who for who in people if sum(c.value for c in brought[who]) >= NEEDED]
    ready = [ready[k] for k in dice.permutation(len(ready))]
    for first in range(0, len(ready), MAX_PEOPLE):
        group = ready[first : first + MAX_PEOPLE]
        if len(group) >= MIN_PEOPLE:
            _hold(wallets, time, {who: brought[who] for who in group}, dice, known)


def _to_mix(wallets: SimulatedWallets, who: int) -> list[SimulatedCoin]:
    """Choose what a person brings: the largest of the unmixed coins, until they are enough."""
    fresh = [coin for coin in wallets.coins[who] if coin.rounds == 0]
    chosen: list[SimulatedCoin] = []
    for coin in sorted(fresh, key=lambda c: (-c.value, c.number))[:MAX_INPUTS]:
        if sum(c.value for c in chosen) < NEEDED:
            chosen.append(coin)
    return chosen


def _hold(
    wallets: SimulatedWallets,
    time: float,
    brought: dict[int, list[SimulatedCoin]],
    dice: np.random.Generator,
    known: KnownOwners,
) -> None:
    """Hold one round. A level counts if two people can pay it, and the first always does."""
    worth = {who: sum(c.value for c in coins) for who, coins in brought.items()}
    levels: dict[int, list[int]] = {who: [] for who in brought}
    left = dict(worth)
    for level in LEVELS:
        # The coordinator takes at most 0.3 % of a coin, miners less than the rest of 2 %.
        able = [who for who in brought if left[who] >= level + level // 50]
        if len(able) < 2:
            break
        for who in able:
            levels[who].append(level)
            left[who] -= level
    count = {v: sum(v in got for got in levels.values()) for v in LEVELS}
    seats, taken = [], 0
    for who, coins in brought.items():
        service = sum(v * count[v] * FEE_PART // FEE_WHOLE for v in levels[who])
        fee = service + wallets.tariff.share(len(coins), len(levels[who]) + 1)
        if fee > spare(wallets, who):
            continue
        change = change_of(left[who] - fee)
        seats.append(Seat(who, tuple(coins), tuple(levels[who]), change))
        taken += service
    if len(seats) >= MIN_PEOPLE:
        join(wallets, time, seats, dice, known, coordinator=taken)


# Mix everything adopters receive once, in coins of equal size, with separate change.
WASABI = mixing_technology(
    "wasabi",
    mix,
    interval=HOURS,
    says="Wasabi 1: hourly rounds of 10 to 100 people, equal coins of 0.1 and its doubles, change",
)
