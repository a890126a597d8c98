"""People who regularly have their coins mixed, and pay with mixed coins where they can."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from coinhaze.amounts import Bools
from coinhaze.simulate.intents import Intents
from coinhaze.simulate.joins import KnownOwners
from coinhaze.simulate.technology import Realised
from coinhaze.simulate.wallets import SimulatedCoin, SimulatedWallets

# The part of the reserve that people who mix hold back for the fees of payments.
HELD_BACK = 4

OBSERVERS = {
    "amounts": "walks from coin to coin by amounts, through joint transactions as any others",
    "told": "is told who brought and who got each coin of joint transactions, but for equal ones",
}

# Makes the joint transactions of one moment: wallets, hours, participants, random generator, known
# owners.
Round = Callable[[SimulatedWallets, float, list[int], np.random.Generator, KnownOwners], None]
Payment = Callable[[SimulatedWallets, int, Bools, np.random.Generator, KnownOwners], None]


def spare(wallets: SimulatedWallets, who: int) -> int:
    """Return what a person can spend on mixing without risking a later payment."""
    reserve = int(wallets.intents.reserve[who])
    return reserve - wallets.fees[who] - reserve // HELD_BACK


def mixed_coins(
    wallets: SimulatedWallets, i: int, adopters: Bools, *, ready: int = 1
) -> list[SimulatedCoin]:
    """Return the payer's coins that were mixed `ready` times, if the payer is an adopter."""
    payer = int(wallets.intents.payer[i])
    return (
        [coin for coin in wallets.coins[payer] if coin.rounds >= ready] if adopters[payer] else []
    )


def pay_mixed_first(
    wallets: SimulatedWallets, i: int, adopters: Bools, dice: np.random.Generator, told: KnownOwners
) -> None:
    """Make a payment with mixed coins alone if those are enough."""
    wallets.pay(i, wanted=mixed_coins(wallets, i, adopters))


def realise_mixing(
    intents: Intents,
    adopters: Bools,
    observer: str,
    *,
    name: str,
    interval: float | None = None,
    make_round: Round | None = None,
    pay: Payment = pay_mixed_first,
) -> Realised:
    """Make payments at their times, and a mixing round every `interval` hours.

    Payments never wait: what is not mixed yet is paid as it is. Waiting is reported for money
    instead.
    """
    wallets, told, dice = SimulatedWallets.open(intents), KnownOwners(), intents.dice(name)
    who = np.flatnonzero(adopters).tolist()
    moments = deque[float]()
    if make_round is not None and interval is not None:
        moments.extend(np.arange(interval, intents.hours + 1e-9, interval).tolist())
    for i in range(len(intents) + 1):
        until = intents.time[i] if i < len(intents) else intents.hours
        while make_round is not None and moments and moments[0] <= until:
            make_round(wallets, moments.popleft(), who, dice, told)
        if i < len(intents):
            pay(wallets, i, adopters, dice, told)
    settings: dict[str, Any] = {"policy": told} if observer == "told" else {}
    return wallets.realised(adopters=adopters, settings=settings)
