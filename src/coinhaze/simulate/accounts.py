"""Simulated account wallets: who holds how much in which account as intents become transfers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coinhaze.amounts import Bools
from coinhaze.errors import UsageError
from coinhaze.ledger import AccountLedger
from coinhaze.simulate.intents import COIN, Intents
from coinhaze.simulate.technology import NOBODY, FinalHolding, Realised

TRANSFER_GAS = 21_000  # for a plain transfer (Ethereum yellow paper, appendix G)


def gas_fee(gas: int) -> int:
    """Return the cost of gas in the smallest unit, at 1 gwei, assumed for a quiet week."""
    return gas * COIN // 10**9


@dataclass(slots=True)
class Account:
    """An account and what its owner records about it."""

    name: str
    owner: int
    balance: int = 0
    waited: float = 0.0  # hours its money waited in a pool


@dataclass
class SimulatedAccounts:
    """Everybody's accounts, the main one of each person first, and the transfers so far."""

    intents: Intents
    transfer_fee: int = gas_fee(TRANSFER_GAS)
    accounts: list[list[Account]] = field(default_factory=list)
    moves: list[tuple[str, str, int, int]] = field(default_factory=list)  # from, to, amount, fee
    fees: list[int] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    transactions: int = 0

    @classmethod
    def open(
        cls, intents: Intents, *, transfer_fee: int = gas_fee(TRANSFER_GAS)
    ) -> SimulatedAccounts:
        """Open a main account for every person, with the opening balance."""
        wallets = cls(intents, transfer_fee, fees=[0] * intents.people)
        for who, value in enumerate(intents.opening.tolist()):
            wallets.accounts.append([Account(f"person{who}", who, value)])
        return wallets

    def main(self, who: int) -> Account:
        """Return a person's main account."""
        return self.accounts[who][0]

    def fresh(self, who: int) -> Account:
        """Open a new account for a person."""
        account = Account(f"person{who}.{len(self.accounts[who])}", who)
        self.accounts[who].append(account)
        return account

    def transfer(self, sender: Account, receiver: Account, amount: int, *, fee: int = 0) -> None:
        """Move money and pay the fee from the sender's account."""
        if sender.balance < amount + fee:
            raise UsageError(
                f"{sender.name} holds {sender.balance}, too little to pay {amount} and a fee of "
                f"{fee}: give intents a larger reserve"
            )
        sender.balance -= amount + fee
        receiver.balance += amount
        self.moves.append((sender.name, receiver.name, amount, fee))
        if sender.owner != NOBODY:
            self.fees[sender.owner] += fee

    def pay(self, i: int, *, to: Account | None = None, more_fee: int = 0) -> None:
        """Make payment i to the payee's main account, or to another, from few accounts.

        Fresh accounts come before the main one, which reveals its owner. A payment from several
        accounts is several transfers, each of which costs `more_fee` in addition to the usual fee.
        """
        payer, payee, amount = self.intents.payment(i)
        receiver = to or self.main(payee)
        fee = self.transfer_fee + more_fee
        main, *fresh = self.accounts[payer]
        left, waited = amount, 0.0
        for account in _chosen(fresh, main, amount, fee):
            part = min(left, account.balance - fee)
            self.transfer(account, receiver, part, fee=fee)
            self.transactions += 1
            waited += account.waited * part / amount
            left -= part
        if left:
            raise UsageError(
                f"payment {i}: person {payer} lacks {left} of {amount}: give intents a larger "
                "reserve"
            )
        self.waits.append(waited)

    def realised(
        self,
        *,
        adopters: Bools,
        settings: Mapping[str, Any] | None = None,
        notes: tuple[str, ...] = (),
    ) -> Realised:
        """Close the wallets; return the ledger in order, and what everybody holds."""
        senders, receivers, amounts, fees = (
            zip(*self.moves, strict=True) if self.moves else ((),) * 4
        )
        seen = {*senders, *receivers}
        opening = zip(self.intents.opening.tolist(), self.accounts, strict=True)
        table = {own[0].name: value for value, own in opening if own[0].name in seen}
        waits = np.array(self.waits)[adopters[self.intents.payer]] if self.waits else np.zeros(0)
        return Realised(
            ledger=AccountLedger.from_columns(senders, receivers, amounts, fees=fees),
            holdings=tuple(
                FinalHolding(account.name if account.name in seen else None, who, account.balance)
                for who, own in enumerate(self.accounts)
                for account in own
                if account.balance
            ),
            adopters=adopters,
            fees=np.array(self.fees, dtype=np.int64),
            transactions=self.transactions,
            waiting=float(waits.mean()) if len(waits) else 0.0,
            settings={"time": "temporal", "opening": table} | dict(settings or {}),
            notes=notes,
        )


def _chosen(fresh: Sequence[Account], main: Account, amount: int, fee: int) -> list[Account]:
    """Choose the smallest sufficient account or the largest: of the fresh, else main, else all."""
    for accounts in (fresh, [main], [*fresh, main]):
        able = sorted((a for a in accounts if a.balance > fee), key=lambda a: a.balance)
        for account in able:
            if account.balance >= amount + fee:
                return [account]
        chosen: list[Account] = []
        left = amount
        for account in reversed(able):
            chosen.append(account)
            left -= account.balance - fee
            if left <= 0:
                return chosen
    return chosen
