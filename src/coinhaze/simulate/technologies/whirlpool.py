"""Whirlpool: coins split to one pool's amount, then mixed by five to eight, again and again."""

from __future__ import annotations

import numpy as np

from coinhaze.simulate.intents import COIN
from coinhaze.simulate.mixing import KnownOwners, Seat, join, mixing_technology, spare
from coinhaze.simulate.technology import NOBODY
from coinhaze.simulate.wallets import Pay, SimulatedCoin, SimulatedWallets, change_of

POOL = COIN // 20
# Figures are from March 2024, by the lists of Dumplings. A flat fee to enter, regardless of the sum
# (160 of 162 splits into this pool paid it), remixes free; no split made more than 70 coins.
ENTRY = 175_000
MAX_PARTS = 70
# What a new coin brings in addition to the pool's amount, for the miners of its first mix: two new
# coins pay for a mix of eight, at our rate.
EXTRA = 4_100
PREMIX = POOL + EXTRA
HOURS = 1.0  # assumed
# Of 1403 mixes 905 have eight coins, the others five to seven; 1372 have two new coins, and all
# others three.
MIN_PEOPLE, MAX_PEOPLE = 5, 8
NEW = 2


def mix(
    wallets: SimulatedWallets,
    time: float,
    people: list[int],
    dice: np.random.Generator,
    known: KnownOwners,
) -> None:
    """Split what is new, then hold mixes as long as there are people and new coins for them."""
    for who in people:
        _split(wallets, time, who)
    new = {who: [c for c in wallets.coins[who] if _is_premix(c)] for who in people}
    old = {who: [c for c in wallets.coins[who] if c.rounds] for who in people}
    while True:
        seats = _seats(new, old, dice)
        if not seats:
            return
        join(wallets, time, seats, dice, known)


def _is_premix(coin: SimulatedCoin) -> bool:
    return coin.value == PREMIX and coin.rounds == 0


def _split(wallets: SimulatedWallets, time: float, who: int) -> None:
    """Make one person's splitting transaction, if the person has enough and can pay for it."""
    coins = [c for c in wallets.coins[who] if c.rounds == 0 and not _is_premix(c)]
    total = sum(c.value for c in coins)
    tariff = wallets.tariff
    each = PREMIX + tariff.share(0, 1)
    # In addition to the parts: the coordinator's coin, the data that identifies it, and change.
    around = ENTRY + tariff.fee(len(coins), 3)
    parts = min(MAX_PARTS, (total - around) // each)
    if parts < 1 or around + parts * (EXTRA + tariff.share(0, 1)) > spare(wallets, who):
        return
    waited = sum(c.value * (time - c.made) for c in coins) / total
    change = change_of(total - around - parts * each)
    paid = [Pay(who, PREMIX, waited=waited)] * parts + [Pay(NOBODY, ENTRY)]
    wallets.add(time, coins, paid + [Pay(who, change)] * bool(change), data=True)


def _seats(
    new: dict[int, list[SimulatedCoin]],
    old: dict[int, list[SimulatedCoin]],
    dice: np.random.Generator,
) -> list[Seat]:
    """Choose who mixes next, each person once: two with new coins, others with mixed ones."""
    fresh, again = (_shuffled([w for w, c in coins.items() if c], dice) for coins in (new, old))
    entering = fresh[:NEW]
    remixing = [who for who in again if who not in entering][: MAX_PEOPLE - NEW]
    # A pool that begins has nothing to remix, hence more new coins.
    missing = max(0, MIN_PEOPLE - len(entering) - len(remixing))
    entering += [who for who in fresh[NEW:] if who not in remixing][:missing]
    if len(entering) < NEW or len(entering) + len(remixing) < MIN_PEOPLE:
        return []
    chosen = [(who, new[who].pop()) for who in entering]
    chosen += [(who, old[who].pop(int(dice.integers(len(old[who]))))) for who in remixing]
    return [Seat(who, (coin,), (POOL,)) for who, coin in chosen]


def _shuffled(people: list[int], dice: np.random.Generator) -> list[int]:
    return [people[k] for k in dice.permutation(len(people))]


# Split what adopters hold, mix it, and remix it as long as new coins pay for it.
WHIRLPOOL = mixing_technology(
    "whirlpool",
    mix,
    interval=HOURS,
    says="Whirlpool: coins split to 0.05 for a flat fee, then mixed by 5 to 8, remixes free",
)
