"""A shielded pool as in Zcash: money goes in and out in public, and moves unseen inside."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from coinhaze.amounts import Bools
from coinhaze.simulate.intents import Intents
from coinhaze.simulate.technology import FinalHolding, Realised, Technology
from coinhaze.simulate.wallets import Pay, SimulatedCoin, SimulatedWallets, change_of

POOL = "orchard"
# ZIP 317 charges an action of the pool like an input or output beside it, with a minimum of two.
ACTIONS = 2
FIRST = 24.0  # hours in which adopters shield what they have; assumed


def make_shielded(intents: Intents, share: float, observer: str) -> Realised:
    """Keep the money of adopters in the pool; they pay each other inside it."""
    pool = _Pool(SimulatedWallets.open(intents), intents.adopters(share))
    entries = pool.entries()
    for i in range(len(intents)):
        while entries and entries[0][0] <= intents.time[i]:
            pool.shield(*entries.pop(0))
        pool.pay(i)
    for moment, who in entries:
        pool.shield(moment, who)
    realised = pool.wallets.realised(adopters=pool.adopters, settings={})
    inside = tuple(
        FinalHolding(f"pool:{POOL}", who, value) for who, value in enumerate(pool.inside) if value
    )
    return replace(realised, holdings=realised.holdings + inside)


@dataclass
class _Pool:
    """Wallets, and what people hold in the pool in addition."""

    wallets: SimulatedWallets
    adopters: Bools
    inside: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.inside = [0] * len(self.adopters)

    def entries(self) -> list[tuple[float, int]]:
        """Return when each adopter shields the opening balance."""
        moments = self.wallets.intents.dice("shielded").random(len(self.adopters)) * FIRST
        who = np.flatnonzero(self.adopters).tolist()
        return sorted((float(moments[w]), w) for w in who)

    def fee(self, inputs: int, outputs: int) -> int:
        """Return the fee of a transaction that touches the pool."""
        return self.wallets.tariff.fee(inputs + ACTIONS, outputs + ACTIONS)

    def shield(self, time: float, who: int) -> None:
        """Move all coins of a person into the pool."""
        coins = list(self.wallets.coins[who])
        worth = sum(coin.value for coin in coins) - self.fee(len(coins), 0)
        if worth > 0:
            self._move(time, coins, [], {who: worth}, worth)

    def pay(self, i: int) -> None:
        """Make a payment out of the pool, into it, inside it or outside it."""
        payer, payee, amount = self.wallets.intents.payment(i)
        time = float(self.wallets.intents.time[i])
        into = {payee: amount} if self.adopters[payee] else {}
        if self.adopters[payer]:
            if self.wallets.coins[payer]:  # nothing is left outside at the first payment
                self.shield(time, payer)
            paid = [] if into else [Pay(payee, amount)]
            fee = self.fee(0, len(paid))
            if self.inside[payer] < amount + fee:
                raise self.wallets.cannot_pay(i)
            leaves = fee if into else amount + fee
            self._move(time, [], paid, {payer: -amount - fee, **into}, -leaves)
            self.wallets.settle(i, [])
        elif into:
            extra = self.fee(0, 0) - self.wallets.tariff.fee(0, 0)
            coins = self.wallets.choose(self.wallets.coins[payer], amount + extra, outputs=1)
            if coins is None:
                raise self.wallets.cannot_pay(i)
            rest = sum(c.value for c in coins) - amount - self.fee(len(coins), 1)
            change = change_of(rest)
            self._move(time, coins, [Pay(payer, change)] * bool(change), into, amount)
            self.wallets.settle(i, coins)
        else:
            self.wallets.pay(i)

    def _move(
        self,
        time: float,
        spent: list[SimulatedCoin],
        paid: list[Pay],
        notes: dict[int, int],
        flow: int,
    ) -> None:
        """Record a transaction that moves `flow` into the pool and changes holdings there."""
        self.wallets.add(time, spent, paid, pools={POOL: flow})
        for who, value in notes.items():
            self.inside[who] += value
            self.wallets.fees[who] -= value


SHIELDED = Technology(
    name="shielded",
    make=make_shielded,
    parameter="share of people who keep their money in the pool",
    minimum=0.0,
    maximum=1.0,
    values=(0.0, 0.1, 0.2, 0.3, 0.4, 0.5),
    usual=0.25,
    says="a shielded pool as in Zcash: people who adopt hold their money in it and pay from it",
    observers={
        "amounts": "walks by amounts, and takes what leaves the pool for a share of all in it"
    },
)
