"""Who wants to pay whom, drawn once, before any ledger: one economy for every technology."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.errors import UsageError
from coinhaze.ledger.frozen import freeze

COIN = 100_000_000
WEEK = 168.0  # hours
# Reserved in addition to what may be spent, so that everyone who can pay can also afford the fees:
# an amount for each payment made or received, and one to begin with. Assumed: some hundred times
# what ordinary wallets need, and enough for the most expensive technology.
RESERVE_BASE = COIN // 50
RESERVE_EACH = COIN // 1_000
MIN_PAYMENT = COIN // 10_000  # the smallest payment


@dataclass(frozen=True, eq=False)
class Intents:
    """People, the coins they begin with, and their payments in order of time.

    Every payment can be made: at its time its payer holds `amount` in addition to the `reserve`,
    which is for fees alone. Amounts are in the smallest unit, times in hours.
    """

    people: int
    coin_owner: Ints
    coin_value: Ints
    reserve: Ints  # each person's money that no payment relies on
    time: Floats
    payer: Ints
    payee: Ints
    amount: Ints
    hours: float
    seed: int

    def __post_init__(self) -> None:
        freeze(self)
        free = self.opening - self.reserve
        for i in range(len(self)):
            payer, payee, amount = self.payment(i)
            if payer == payee or amount <= 0 or free[payer] < amount:
                raise UsageError(
                    f"payment {i}: person {payer} cannot pay {amount} to {payee}: he has "
                    f"{free[payer]} beside his reserve"
                )
            free[payer] -= amount
            free[payee] += amount
        if np.any(np.diff(self.time) < 0):
            raise UsageError("payments come in order of time")

    def __len__(self) -> int:
        return len(self.time)

    @property
    def opening(self) -> Ints:
        """What each person begins with."""
        return _sums(self.people, self.coin_owner, self.coin_value)

    @property
    def closing(self) -> Ints:
        """What each person would end with if there were no fees."""
        received = _sums(self.people, self.payee, self.amount)
        return self.opening + received - _sums(self.people, self.payer, self.amount)

    def payment(self, i: int) -> tuple[int, int, int]:
        """Return payer, payee and amount of a payment, as Python integers."""
        return int(self.payer[i]), int(self.payee[i]), int(self.amount[i])

    def dice(self, purpose: str) -> np.random.Generator:
        """Return a random generator for one purpose, independent of all other purposes."""
        return np.random.default_rng([self.seed, *purpose.encode()])

    def adopters(self, share: float) -> Bools:
        """Return who adopts a technology that a share of people use; a larger share only adds some.

        >>> intents = draw_intents(people=10, payments=5)
        >>> bool(np.all(intents.adopters(0.3) <= intents.adopters(0.5)))
        True
        """
        order = self.dice("adopters").permutation(self.people)
        adopt = np.zeros(self.people, dtype=np.bool_)
        adopt[order[: round(share * self.people)]] = True
        return adopt


def draw_intents(
    *, people: int = 200, payments: int = 2000, hours: float = WEEK, seed: int = 1
) -> Intents:
    """Draw an economy of people who pay each other, identical for the same seed.

    A payment is a share of what its payer holds at the time, so it can always be made; those that
    would be too small, or to oneself, are left out, so there may be fewer. All of this is assumed:
    heavy tails, and enough turnover for coins to meet.

    >>> intents = draw_intents(people=20, payments=50, seed=7)
    >>> len(intents) <= 50, int(intents.opening.sum() - intents.closing.sum())
    (True, 0)
    """
    if people < 2 or payments < 0 or not 0 < hours < float("inf") or seed < 0:
        raise UsageError("intents need two people or more, payments, hours and seed not below 0")
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(people), 1 + rng.poisson(2, people))
    value = (0.2 * COIN * np.exp(rng.standard_normal(len(owner)))).astype(np.int64) + COIN // 50
    active, popular = (np.exp(rng.standard_normal(people)) for _ in range(2))
    payer = rng.choice(people, payments, p=active / active.sum())
    payee = rng.choice(people, payments, p=popular / popular.sum())
    time = np.sort(rng.random(payments)) * hours
    amount = _amounts(_sums(people, owner, value), payer, payee, rng.beta(1, 5, payments))
    valid = amount > 0
    payer, payee = payer[valid], payee[valid]
    uses = np.bincount(payer, minlength=people) + np.bincount(payee, minlength=people)
    reserve = RESERVE_BASE + RESERVE_EACH * uses
    value[np.searchsorted(owner, np.arange(people))] += reserve
    return Intents(
        people, owner, value, reserve, time[valid], payer, payee, amount[valid], float(hours), seed
    )


def _amounts(free: Ints, payer: Ints, payee: Ints, share: Floats) -> Ints:
    """Return each payment's amount: a share of its payer's money at the time, if that is enough."""
    amount = np.zeros(len(payer), dtype=np.int64)
    for i in range(len(payer)):
        wanted = int(share[i] * free[payer[i]])
        if payer[i] != payee[i] and wanted >= MIN_PAYMENT:
            amount[i] = wanted
            free[payer[i]] -= wanted
            free[payee[i]] += wanted
    return amount


def _sums(people: int, who: Ints, amount: Ints) -> Ints:
    total = np.zeros(people, dtype=np.int64)
    np.add.at(total, who, amount)
    return total
