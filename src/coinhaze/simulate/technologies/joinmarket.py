"""JoinMarket: payers have others join in, for a small fee, with coins of the same amount."""

from __future__ import annotations

from itertools import islice

import numpy as np

from coinhaze.amounts import Bools
from coinhaze.simulate.intents import Intents
from coinhaze.simulate.mixing import OBSERVERS, KnownOwners, Seat, join, realise_mixing, spare
from coinhaze.simulate.technology import Realised, Technology
from coinhaze.simulate.wallets import SimulatedWallets, change_of

# The fee of a maker: 0.002 % of the amount, the default of JoinMarket's yield generators.
FEE_PART, FEE_WHOLE = 2, 100_000
MIN_MAKERS, MAX_MAKERS = 2, 8  # three to nine people including the taker


def make_joinmarket(intents: Intents, share: float, observer: str) -> Realised:
    """Make the payments of adopters jointly with other adopters."""
    return realise_mixing(
        intents, intents.adopters(share), observer, name="joinmarket", pay=_pay_together
    )


def _pay_together(
    wallets: SimulatedWallets,
    i: int,
    adopters: Bools,
    dice: np.random.Generator,
    known: KnownOwners,
) -> None:
    """Pay jointly with makers, if enough of them hold that much, else as an ordinary wallet."""
    payer, payee, amount = wallets.intents.payment(i)
    wanted = int(dice.integers(MIN_MAKERS, MAX_MAKERS + 1))
    order = dice.permutation(len(adopters)).tolist()
    makers = []
    if adopters[payer]:
        able = (w for w in order if adopters[w] and w not in (payer, payee))
        found = ((who, wallets.choose(wallets.coins[who], amount)) for who in able)
        makers = list(islice(((who, coins) for who, coins in found if coins), wanted))
    earned = amount * FEE_PART // FEE_WHOLE
    inputs = sum(len(coins) for _, coins in makers)
    fee = earned * len(makers) + wallets.tariff.share(inputs, 2 * len(makers))
    chosen = wallets.choose(wallets.coins[payer], amount + fee)
    if len(makers) < MIN_MAKERS or chosen is None or fee > spare(wallets, payer):
        wallets.pay(i)
        return
    rest = sum(c.value for c in chosen) - amount - fee - wallets.tariff.fee(len(chosen), 2)
    seats = [Seat(payer, tuple(chosen), (amount,), change_of(rest), payee)]
    for who, coins in makers:
        change = sum(c.value for c in coins) - amount + earned
        seats.append(Seat(who, tuple(coins), (amount,), change))
    join(wallets, float(wallets.intents.time[i]), seats, dice, known, ready=0)
    wallets.settle(i, chosen)


JOINMARKET = Technology(
    name="joinmarket",
    make=make_joinmarket,
    parameter="share of people who pay and offer to join",
    minimum=0.0,
    maximum=0.5,
    values=(0.0, 0.1, 0.2, 0.3, 0.4, 0.5),
    usual=0.25,
    says="JoinMarket: every payment of a taker is joined by 2 to 8 makers, who are paid for it",
    observers=OBSERVERS,
)
