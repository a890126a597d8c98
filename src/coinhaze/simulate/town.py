"""Small economies: a town that pays in coins, and hubs through which accounts are paid."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from coinhaze.ledger import AccountLedger, CoinLedger

SUBSIDY = 625_000_000
FEE = 1_500
MIX = 10_000_000


@dataclass
class _Town:
    rng: np.random.Generator
    transactions: list[dict[str, Any]] = field(default_factory=list)
    wallet: dict[str, list[tuple[str, int, int]]] = field(default_factory=dict)

    def receive(self, who: str, txid: str, vout: int, value: int) -> None:
        self.wallet.setdefault(who, []).append((txid, vout, value))

    def add(
        self, spent: list[tuple[str, tuple[str, int, int]]], paid: list[tuple[str, int]]
    ) -> None:
        txid = f"t{len(self.transactions)}"
        self.transactions.append(
            {
                "txid": txid,
                "inputs": [
                    {"txid": c[0], "vout": c[1], "value": c[2], "address": who} for who, c in spent
                ],
                "outputs": [{"value": value, "address": who} for who, value in paid],
            }
        )
        for vout, (who, value) in enumerate(paid):
            self.receive(who, txid, vout, value)

    def take(self, who: str, amount: int) -> tuple[list[tuple[str, tuple[str, int, int]]], int]:
        coins = self.wallet.get(who, [])
        taken: list[tuple[str, tuple[str, int, int]]] = []
        total = 0
        while coins and total < amount:
            coin = coins.pop(int(self.rng.integers(len(coins))))
            taken.append((who, coin))
            total += coin[2]
        if total < amount:
            coins.extend(c for _, c in taken)
            return [], 0
        return taken, total

    def pay(self, who: str, payments: list[tuple[str, int]]) -> bool:
        amount = sum(v for _, v in payments)
        taken, total = self.take(who, amount + FEE)
        if not taken:
            return False
        change = total - amount - FEE
        self.add(taken, payments + ([(who, change)] if change else []))
        return True

    def mix(self, people: list[str]) -> None:
        spent, paid, change = [], [], []
        for who in people:
            taken, total = self.take(who, MIX + FEE)
            if taken:
                spent += taken
                paid.append((who, MIX))
                if total > MIX + FEE:
                    change.append((who, total - MIX - FEE))
        if spent:
            self.add(spent, paid + change)


def simulate_town(*, transactions: int = 3000, people: int = 300, seed: int = 1) -> CoinLedger:
    """Simulate a ledger of about that many transactions, identical for the same seed.

    >>> len(simulate_town(transactions=50, people=10, seed=7)) >= 50
    True
    """
    rng = np.random.default_rng(seed)
    town = _Town(rng)
    names = [f"person{k}" for k in range(people)]
    shops = [f"shop{k}" for k in range(max(2, people // 30))]
    for k, who in enumerate([*names, "exchange"]):
        value = int(rng.lognormal(17, 1.5)) + MIX // 10
        town.receive(who, f"before{k}", 0, value * (200 if who == "exchange" else 1))
    while len(town.transactions) < transactions:
        town.add([], [(f"miner{int(rng.integers(4))}", SUBSIDY)])
        for _ in range(12):
            deed = rng.random()
            who = names[int(rng.integers(people))]
            amount = int(rng.lognormal(14, 1.2)) + 1000
            if deed < 0.55:
                town.pay(who, [(shops[int(rng.integers(len(shops)))], amount)])
            elif deed < 0.70:
                town.pay(who, [(names[int(rng.integers(people))], amount)])
            elif deed < 0.80:
                town.pay(who, [("exchange", amount * 3)])
            elif deed < 0.88:
                to = rng.choice(people, size=min(people, int(rng.integers(3, 20))), replace=False)
                town.pay("exchange", [(names[int(k)], int(rng.lognormal(15, 1))) for k in to])
            elif deed < 0.95:
                seller = (shops + [f"miner{k}" for k in range(4)])[
                    int(rng.integers(len(shops) + 4))
                ]
                town.pay(seller, [("exchange", amount * 20)])
            else:
                size = min(people, int(rng.integers(5, 25)))
                mixers = rng.choice(people, size=size, replace=False)
                town.mix([names[int(k)] for k in mixers])
    return CoinLedger.from_transactions(town.transactions)


def simulate_hubs(*, people: int, transfers: float = 1.6, seed: int = 1) -> AccountLedger:
    """Simulate `transfers` payments for each of the people, identical for the same seed.

    Two in five go into a hub, nine in twenty come out of one, the rest are between people. Hubs
    differ greatly in size: the k-th is 1/k as busy as the first. There is one for every 500 people.

    >>> len(simulate_hubs(people=100, transfers=2))
    200
    """
    rng = np.random.default_rng(seed)
    hubs = max(5, people // 500)
    names = pa.array([f"u{k}" for k in range(people)] + [f"hub{k}" for k in range(hubs)])
    n = int(transfers * people)
    payer, payee = rng.integers(0, people, n), rng.integers(0, people, n)
    size = 1 / np.arange(1, hubs + 1)
    into = people + rng.choice(hubs, n, p=size / size.sum())
    out_of = people + rng.choice(hubs, n, p=size / size.sum())
    kind = rng.random(n)
    sender = np.where(kind < 0.4, payer, np.where(kind < 0.85, out_of, payer))
    receiver = np.where(kind < 0.4, into, payee)
    amount = rng.lognormal(10, 2, n).astype(np.int64) + 1
    return AccountLedger.from_columns(
        names.take(pa.array(sender)), names.take(pa.array(receiver)), pa.array(amount)
    )
