"""Simulated wallets: who holds which coins as a technology turns intents into transactions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coinhaze.amounts import Bools
from coinhaze.errors import UsageError
from coinhaze.ledger.coins import Transaction
from coinhaze.simulate.coin_record import CoinRecord
from coinhaze.simulate.intents import Intents
from coinhaze.simulate.technology import FinalHolding, Realised

NOBODY = -1  # owner of what a coordinator takes
FAR = 1_000_000  # more transactions than are ever counted
DUST = 546  # satoshi: Bitcoin Core relays no smaller P2PKH output


@dataclass(frozen=True)
class Tariff:
    """The cost of a transaction by size: virtual bytes of its parts, and satoshi per byte.

    Sizes are those of P2WPKH (BIP 141); the rate is assumed, typical of a quiet week.
    """

    around: int = 11
    an_input: int = 68
    an_output: int = 31
    rate: int = 10

    def fee(self, inputs: int, outputs: int) -> int:
        """Return the fee of a transaction."""
        return self.rate * self.around + self.share(inputs, outputs)

    def share(self, inputs: int, outputs: int) -> int:
        """Return what some inputs and outputs add to the fee of a transaction."""
        return self.rate * (self.an_input * inputs + self.an_output * outputs)


USUAL = Tariff()


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedCoin:
    """A coin and what its owner records about it."""

    number: int
    name: str
    value: int
    address: str
    owner: int
    made: float  # hours
    rounds: int = 0  # how often it was mixed since its owner received it
    waited: float = 0.0  # hours it waited for mixing
    hops: int = FAR  # transactions since a joint one, 0 if a joint one created it


@dataclass(frozen=True, slots=True)
class Pay:
    """An output to create: to whom, how much, and what the owner will record about it."""

    owner: int
    value: int
    reuse: bool = False
    rounds: int = 0
    waited: float = 0.0


@dataclass
class SimulatedWallets:
    """Everybody's coins, and the transactions so far."""

    intents: Intents
    tariff: Tariff = USUAL
    coins: list[list[SimulatedCoin]] = field(default_factory=list)
    record: CoinRecord = field(default_factory=CoinRecord)
    fees: list[int] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    addresses: list[int] = field(default_factory=list)  # the number of fresh ones each person used

    @classmethod
    def open(
        cls, intents: Intents, *, tariff: Tariff = USUAL, reuse: Bools | None = None
    ) -> SimulatedWallets:
        """Distribute the opening coins, each from its own transaction before the window.

        `reuse` marks those at their owner's one reused address.
        """
        n = intents.people
        wallets = cls(intents, tariff, [[] for _ in range(n)], fees=[0] * n, addresses=[0] * n)
        again = np.zeros(len(intents.coin_owner), dtype=np.bool_) if reuse is None else reuse
        columns = (intents.coin_owner.tolist(), intents.coin_value.tolist(), again.tolist())
        for owner, value, same in zip(*columns, strict=True):
            address = wallets.address(owner, reuse=same)
            number = wallets.record.add_earlier(value, address)
            name = wallets.record.name(number)
            wallets.coins[owner].append(SimulatedCoin(number, name, value, address, owner, 0.0))
        return wallets

    @property
    def transactions(self) -> list[Transaction]:
        """Return the transactions so far."""
        return self.record.transactions()

    def address(self, owner: int, *, reuse: bool = False) -> str:
        """Return an owner's one reused address, or a fresh one."""
        if owner == NOBODY:
            return "coordinator"
        if reuse:
            return f"person{owner}"
        self.addresses[owner] += 1
        return f"person{owner}.{self.addresses[owner]}"

    def held(self, who: int) -> int:
        """Return what a person holds."""
        return sum(coin.value for coin in self.coins[who])

    def add(
        self,
        time: float,
        spent: Sequence[SimulatedCoin],
        paid: Sequence[Pay],
        *,
        pools: Mapping[str, int] | None = None,
        data: bool = False,
        joint: bool = False,
    ) -> list[SimulatedCoin]:
        """Record a transaction; return the coins it created.

        Everything a person brings beyond what the person gets counts as a fee: see `settle` for
        payments. `joint`: several people made it together.
        """
        record = self.record
        hops = 0 if joint else 1 + min((c.hops for c in spent), default=FAR)
        txid = record.txid(record.begin(time))
        for coin in spent:
            record.add_input(coin.number)
        made = []
        for vout, p in enumerate(paid):
            address = self.address(p.owner, reuse=p.reuse)
            number = record.add_output(vout, p.value, address)
            name = f"{txid}:{vout}"
            coin = SimulatedCoin(
                number, name, p.value, address, p.owner, time, p.rounds, p.waited, hops
            )
            made.append(coin)
        if data:
            record.add_data(len(paid))
        for pool, into in (pools or {}).items():
            record.add_flow(pool, into)
        for coin in spent:
            self.coins[coin.owner].remove(coin)
            self.fees[coin.owner] += coin.value
        for coin in made:
            if coin.owner != NOBODY:
                self.coins[coin.owner].append(coin)
                self.fees[coin.owner] -= coin.value
        return made

    def pay(
        self,
        i: int,
        *,
        wanted: Sequence[SimulatedCoin] | None = None,
        reuse: bool = False,
        reuse_change: bool = False,
    ) -> None:
        """Make payment i as an ordinary wallet does: a few coins in, the payee and change out.

        `wanted` are the coins to pay with if they are enough, else any. `reuse` pays to an address
        the payee has used before, `reuse_change` returns change to one of the payer's.
        """
        payer, payee, amount = self.intents.payment(i)
        chosen = self.choose(wanted, amount) if wanted else None
        chosen = chosen or self.choose(self.coins[payer], amount)
        if chosen is None:
            raise self.cannot_pay(i)
        rest = sum(c.value for c in chosen) - amount
        change = change_of(rest - self.tariff.fee(len(chosen), 2))
        paid = [Pay(payee, amount, reuse)]
        if change:
            paid.append(Pay(payer, change, reuse_change))
        self.add(float(self.intents.time[i]), chosen, paid)
        self.settle(i, chosen)

    def settle(self, i: int, spent: Iterable[SimulatedCoin]) -> None:
        """Deduct a payment from its payer's fees, and record how long its money waited."""
        payer, payee, amount = self.intents.payment(i)
        self.fees[payer] -= amount
        self.fees[payee] += amount
        own = [coin for coin in spent if coin.owner == payer]
        total = sum(coin.value for coin in own)
        self.waits.append(sum(c.value * c.waited for c in own) / total if total else 0.0)

    def choose(
        self, coins: Sequence[SimulatedCoin], amount: int, *, outputs: int = 2
    ) -> list[SimulatedCoin] | None:
        """Choose coins to pay an amount and its fee: the smallest sufficient one, or the largest.

        Many wallets look for one coin that fits and add large ones otherwise; there is no
        randomness, so two technologies make the same choice.
        """
        by_value = sorted(coins, key=lambda c: (c.value, c.number))
        one = self.tariff.fee(1, outputs)
        for coin in by_value:
            if coin.value >= amount + one:
                return [coin]
        chosen: list[SimulatedCoin] = []
        total = 0
        for coin in reversed(by_value):
            chosen.append(coin)
            total += coin.value
            if total >= amount + self.tariff.fee(len(chosen), outputs):
                return chosen
        return None

    def cannot_pay(self, i: int) -> UsageError:
        """Return the error for a payment that fees have made impossible."""
        payer, _, amount = self.intents.payment(i)
        return UsageError(
            f"payment {i}: person {payer} holds {self.held(payer)}, too little to pay {amount} and "
            "the fee: give intents a larger reserve"
        )

    def realised(
        self,
        *,
        adopters: Bools,
        settings: Mapping[str, Any],
        notes: tuple[str, ...] = (),
        hidden: bool = False,
    ) -> Realised:
        """Close the wallets; return the validated ledger, and what everybody holds.

        Money is in coins or, with `settings` of the address view, at addresses.
        """
        ledger = self.record.ledger(hidden=hidden)
        known = set(ledger.owners.to_pylist()) if settings.get("view") == "address" else None
        holdings = [
            FinalHolding(self._node(coin, known), who, coin.value)
            for who, coins in enumerate(self.coins)
            for coin in coins
        ]
        waits = np.array(self.waits)[adopters[self.intents.payer]] if self.waits else np.zeros(0)
        return Realised(
            ledger=ledger,
            holdings=tuple(holdings),
            adopters=adopters,
            fees=np.array(self.fees, dtype=np.int64),
            transactions=len(self.record.times),
            waiting=float(waits.mean()) if len(waits) else 0.0,
            settings=settings,
            notes=notes,
        )

    def _node(self, coin: SimulatedCoin, addresses: set[str] | None) -> str | None:
        if addresses is not None:
            return coin.address if coin.address in addresses else None
        return coin.name if coin.number >= self.record.earlier else None


def change_of(total: int) -> int:
    """Return the change that a remainder yields: nothing if it is dust."""
    return total if total >= DUST else 0
