"""WabiSabi (Wasabi 2): any number of coins in, sums split into amounts that others get as well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache

import numpy as np

from coinhaze.graph.clusters.coinjoins import split_amounts
from coinhaze.simulate.intents import COIN
from coinhaze.simulate.mixing import KnownOwners, Seat, join, mixing_technology, spare
from coinhaze.simulate.wallets import SimulatedCoin, SimulatedWallets

HOURS = 6.0  # assumed: a town has too few people for the hourly rounds of the real one
# Coordinator settings: 0.3 % of coins above 0.01, no output below 5000, as in the rounds recorded
# in the tests of Trezor Suite's CoinJoin client. No fee for coins from a joint transaction or from
# one payment after it (Wasabi's documentation on fees).
FEE_PART, FEE_WHOLE = 3, 1_000
NO_FEE = COIN // 100
NO_FEE_HOPS = 1
MIN_OUTPUT = 5_000
MAX_INPUTS, MAX_OUTPUTS = 10, 10  # per person; assumed
WORTH = COIN // 200  # assumed: the smallest worth of a participant
MIN_PEOPLE = 5  # Wasabi 2.1.0 signs no round of fewer than 5 inputs


def mix(
    wallets: SimulatedWallets,
    time: float,
    people: list[int],
    dice: np.random.Generator,
    known: KnownOwners,
) -> None:
    """Hold one round of everybody who has coins to mix and can pay for it."""
    brought: dict[int, list[SimulatedCoin]] = {}
    left: dict[int, int] = {}  # after all fees except those of outputs
    for who in people:
        coins = [coin for coin in wallets.coins[who] if coin.rounds == 0]
        coins = sorted(coins, key=lambda c: (-c.value, c.number))[:MAX_INPUTS]
        total, service = sum(c.value for c in coins), sum(_service_fee(c) for c in coins)
        fee = service + wallets.tariff.share(len(coins), 0)
        maximum = fee + wallets.tariff.share(0, MAX_OUTPUTS + 1) + MIN_OUTPUT
        if total >= WORTH and maximum <= spare(wallets, who):
            brought[who], left[who] = coins, total - fee
    if len(brought) < MIN_PEOPLE:
        return
    each = wallets.tariff.share(0, 1)
    first = [_split(sum_, _amounts(), each)[0] for sum_ in left.values()]
    wanted = Counter(v for parts in first for v in set(parts))
    common = [v for v in _amounts() if wanted[v] > 1]
    seats = []
    for who, coins in brought.items():
        parts, rest = _split(left[who], common, each)
        change = rest - each if rest - each >= MIN_OUTPUT else 0
        seats.append(Seat(who, tuple(coins), tuple(parts), change))
    taken = sum(_service_fee(coin) for coins in brought.values() for coin in coins)
    join(wallets, time, seats, dice, known, coordinator=taken)


def _service_fee(coin: SimulatedCoin) -> int:
    free = coin.value <= NO_FEE or coin.hops <= NO_FEE_HOPS
    return 0 if free else coin.value * FEE_PART // FEE_WHOLE


@cache
def _amounts() -> tuple[int, ...]:
    return tuple(v for v in split_amounts().tolist()[::-1] if v >= MIN_OUTPUT)


def _split(total: int, amounts: Sequence[int], each: int) -> tuple[list[int], int]:
    """Take the largest amount that fits, again and again, each output paying for itself.

    >>> _split(70_000, [50_000, 20_000, 10_000], 100)
    ([50000, 10000], 9800)
    """
    parts: list[int] = []
    for value in amounts:
        while total >= value + each and len(parts) < MAX_OUTPUTS:
            parts.append(value)
            total -= value + each
    return parts, total


# Mix everything adopters receive once; mix the change of a round again.
WABISABI = mixing_technology(
    "wabisabi",
    mix,
    interval=HOURS,
    says="WabiSabi (Wasabi 2): four rounds a day, up to 10 coins in and out, common amounts",
)
