"""Pools of equal deposits, such as Tornado Cash: deposit, wait, withdraw to a fresh account."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from coinhaze.ledger.accounts import POOL, RELAYERS
from coinhaze.simulate.accounts import Account, SimulatedAccounts, gas_fee
from coinhaze.simulate.intents import COIN, Intents
from coinhaze.simulate.technology import NOBODY, Realised, Technology

# Pools of 0.1, 1, 10 and 100, as Tornado Cash has for ether; its README (tornado-core, Specs) gives
# the gas of a deposit and of a withdrawal.
DENOMINATIONS = tuple(COIN // 10 * 10**k for k in range(4))
DEPOSIT_GAS, WITHDRAW_GAS = 1_088_354, 301_233
# A relayer pays the gas of a withdrawal, and is reimbursed with a share on top. The share is
# assumed: half of the withdrawals by relayer from the pool of 100 ether cost 0.125 % or less, gas
# included (tests/real/test_real_relayers.py).
RELAYER_PER_MILLE = 1
# Assumed, as no measurement is available: deposits begin in the first hours, and wait for a day.
FIRST_HOURS, WAIT = 24.0, 24.0


@dataclass(order=True, slots=True)
class _Note:
    due: float
    number: int
    owner: int = field(compare=False)
    pool: Account = field(compare=False)
    amount: int = field(compare=False)
    made: float = field(compare=False)


class _Pools:
    """The pools, and the notes that people hold on them."""

    def __init__(self, wallets: SimulatedAccounts, wait: float) -> None:
        self.wallets = wallets
        self.wait = wait
        # A random generator for each person: an adopter's waiting times do not depend on other
        # adopters.
        self.dice = [
            wallets.intents.dice(f"waits of {who}") for who in range(wallets.intents.people)
        ]
        self.pools = [Account(f"{POOL}{d / COIN:g}", NOBODY) for d in DENOMINATIONS]
        self.relayers = Account(f"{RELAYERS}all", NOBODY)
        self.notes: list[_Note] = []
        self.count = 0
        # Pool fees may take half of the reserve for fees: payments need the rest.
        self.budget = (wallets.intents.reserve // 2).tolist()

    def deposit(self, who: int, time: float) -> None:
        """Deposit the money of a person's main account in pools, the largest that fit first."""
        main = self.wallets.main(who)
        reserve = int(self.wallets.intents.reserve[who])
        fee = gas_fee(DEPOSIT_GAS)
        for pool, amount in reversed(list(zip(self.pools, DENOMINATIONS, strict=True))):
            cost = fee + _relayer_fee(amount)
            while main.balance - reserve >= amount + cost and self.budget[who] >= cost:
                self.budget[who] -= cost
                self.wallets.transfer(main, pool, amount, fee=fee)
                self.wallets.transactions += 1
                due = time + float(self.dice[who].exponential(self.wait))
                heapq.heappush(self.notes, _Note(due, self.count, who, pool, amount, time))
                self.count += 1

    def withdraw_due(self, time: float) -> None:
        """Withdraw all notes that are due."""
        while self.notes and self.notes[0].due <= time:
            self._withdraw(heapq.heappop(self.notes), None)

    def withdraw_for(self, i: int) -> None:
        """Withdraw a payer's oldest notes early if the payment cannot be made otherwise."""
        payer, _, amount = self.wallets.intents.payment(i)
        time = float(self.wallets.intents.time[i])
        for note in sorted((n for n in self.notes if n.owner == payer), key=lambda n: n.number):
            if self._ready(payer) >= amount:
                return
            self.notes.remove(note)
            heapq.heapify(self.notes)
            self._withdraw(note, time)

    def _ready(self, who: int) -> int:
        """Return what a person can pay at once in addition to the reserve for fees."""
        fee = self.wallets.transfer_fee
        main, *fresh = self.wallets.accounts[who]
        reserve = int(self.wallets.intents.reserve[who])
        return max(0, main.balance - reserve) + sum(max(0, a.balance - fee) for a in fresh)

    def _withdraw(self, note: _Note, time: float | None) -> None:
        fresh = self.wallets.fresh(note.owner)
        fresh.waited = (note.due if time is None else time) - note.made
        fee = _relayer_fee(note.amount)
        self.wallets.transfer(note.pool, fresh, note.amount - fee)
        self.wallets.transfer(note.pool, self.relayers, fee)
        self.wallets.fees[note.owner] += fee
        self.wallets.transactions += 1


def make_deposit_pool(
    intents: Intents, share: float, observer: str, *, wait: float = WAIT
) -> Realised:
    """Let adopters deposit what they hold and receive in pools, and pay from fresh accounts."""
    wallets = SimulatedAccounts.open(intents)
    pools = _Pools(wallets, wait)
    adopters = intents.adopters(share)
    begin = intents.dice("first deposits").random(intents.people) * min(FIRST_HOURS, intents.hours)
    starts = [(float(begin[who]), "first", who) for who in adopters.nonzero()[0].tolist()]
    pays = [(float(time), "pay", i) for i, time in enumerate(intents.time)]
    for time, what, i in sorted(starts + pays, key=lambda event: event[0]):
        pools.withdraw_due(time)
        if what == "first":
            pools.deposit(i, time)
            continue
        pools.withdraw_for(i)
        wallets.pay(i)
        _, payee, _ = intents.payment(i)
        if adopters[payee] and begin[payee] <= time:
            pools.deposit(payee, time)
    pools.withdraw_due(float("inf"))
    return wallets.realised(adopters=adopters)


def _relayer_fee(amount: int) -> int:
    return gas_fee(WITHDRAW_GAS) + amount * RELAYER_PER_MILLE // 1000


DEPOSIT_POOL = Technology(
    name="deposit-pool",
    make=make_deposit_pool,
    parameter="share of people who use the pools",
    minimum=0.0,
    maximum=1.0,
    values=(0.0, 0.1, 0.2, 0.3, 0.4, 0.5),
    usual=0.25,
    says="accounts; adopters pay money into pools of equal deposits and take it out, by a relayer, "
    "to fresh accounts about a day later (Tornado Cash)",
    observers={
        "amounts": "walks back in time from account to account by amounts; which deposit a "
        "withdrawal was he cannot tell"
    },
)
