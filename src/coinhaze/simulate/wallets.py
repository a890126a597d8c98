"""Simulated wallets: who holds which coins as a technology turns intents into transactions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Bools, Ints
from coinhaze.errors import UsageError
from coinhaze.ledger import CoinLedger
from coinhaze.ledger.coins import Input, Output, Transaction
from coinhaze.simulate.intents import Intents
from coinhaze.simulate.technology import NOBODY, FinalHolding, Realised

FAR = 1_000_000  # more transactions than are ever counted
START = 1_612_137_600  # 1 February 2021, as in the simulated weeks
BLOCKS_AN_HOUR = 6
DUST = 546  # satoshi: Bitcoin Core relays no smaller P2PKH output


@dataclass
class CoinRecord:
    """The transactions so far; coins are numbered in order of creation, earlier coins first."""

    earlier: int = 0  # number of earlier coins, each from a transaction of its own
    times: list[float] = field(default_factory=list)  # hours, one per transaction
    tx: list[int] = field(default_factory=list)
    vout: list[int] = field(default_factory=list)
    value: list[int] = field(default_factory=list)
    address: list[str] = field(default_factory=list)
    spendable: list[bool] = field(default_factory=list)
    input_tx: list[int] = field(default_factory=list)
    input_coin: list[int] = field(default_factory=list)
    flow_tx: list[int] = field(default_factory=list)
    flow_pool: list[str] = field(default_factory=list)
    flow_into: list[int] = field(default_factory=list)

    def add_earlier(self, value: int, address: str) -> int:
        """Record a coin from before the window; return its number."""
        assert not self.times, "earlier coins come first"
        self.earlier += 1
        return self._add_coin(self.earlier - 1, 0, value, address)

    def begin(self, time: float) -> int:
        """Begin a transaction; return its number."""
        self.times.append(time)
        return len(self.times) - 1

    def add_input(self, coin: int) -> None:
        """Spend a coin in the current transaction."""
        self.input_tx.append(len(self.times) - 1)
        self.input_coin.append(coin)

    def add_output(self, vout: int, value: int, address: str) -> int:
        """Create a coin in the current transaction; return its number."""
        return self._add_coin(len(self.times) - 1, vout, value, address)

    def add_data(self, vout: int) -> None:
        """Create an output that holds data and can never be spent."""
        tx = len(self.times) - 1
        self._add_coin(tx, vout, 0, f"{self.txid(tx)}:{vout}", spendable=False)

    def add_flow(self, pool: str, into: int) -> None:
        """Move money into a pool, or out of it, in the current transaction."""
        self.flow_tx.append(len(self.times) - 1)
        self.flow_pool.append(pool)
        self.flow_into.append(into)

    def txid(self, tx: int) -> str:
        """Return the id of a transaction."""
        return f"t{tx}"

    def name(self, coin: int) -> str:
        """Return the name of a coin in the ledger."""
        if coin < self.earlier:
            return f"before{coin}:0"
        return f"{self.txid(self.tx[coin])}:{self.vout[coin]}"

    def transactions(self) -> list[Transaction]:
        """Return the recorded transactions."""
        inputs: list[list[Input]] = [[] for _ in self.times]
        outputs: list[list[Output]] = [[] for _ in self.times]
        pools: list[list[tuple[str, int]]] = [[] for _ in self.times]
        for tx, coin in zip(self.input_tx, self.input_coin, strict=True):
            txid = self.name(coin).partition(":")[0]
            inputs[tx].append(Input(txid, self.vout[coin], self.value[coin], self.address[coin]))
        for coin in range(self.earlier, len(self.value)):
            address, spendable = self.address[coin], self.spendable[coin]
            outputs[self.tx[coin]].append(
                Output(self.value[coin], address if spendable else None, spendable=spendable)
            )
        flows = zip(self.flow_tx, self.flow_pool, self.flow_into, strict=True)
        for tx, pool, into in flows:
            pools[tx].append((pool, into))
        return [
            Transaction(
                self.txid(tx),
                tuple(inputs[tx]),
                tuple(outputs[tx]),
                tuple(pools[tx]),
                height=int(hours * BLOCKS_AN_HOUR),
                time=START + int(hours * 3600),
            )
            for tx, hours in enumerate(self.times)
        ]

    def ledger(self, *, hidden: bool = False) -> CoinLedger:
        """Return the ledger, fully validated; with `hidden`, without amounts.

        Of the earlier coins, the ledger contains only those that were spent.
        """
        number = np.arange(len(self.value))
        retained = (number >= self.earlier) | np.isin(number, self.input_coin)
        row = np.cumsum(retained) - 1
        before = int(retained[: self.earlier].sum())
        outputs, owners = self._outputs(retained, before)
        if hidden:
            values = pa.nulls(len(outputs), pa.int64())
            outputs = outputs.set_column(outputs.column_names.index("value"), "value", values)
        inputs = {
            "tx": _numbers(self.input_tx) + before,
            "output": row[_numbers(self.input_coin)],
        }
        flows = {
            "tx": _numbers(self.flow_tx) + before,
            "pool": pa.array(self.flow_pool, pa.string()),
            "into_pool": _numbers(self.flow_into),
        }
        return CoinLedger.from_columns(
            {
                "transactions": self._transactions(np.flatnonzero(retained[: self.earlier])),
                "owners": owners,
                "outputs": outputs,
                "inputs": pa.table(inputs),
                "pool_flows": pa.table(flows),
                "rings": pa.table({c: _numbers([]) for c in ("tx", "vin", "output")}),
            }
        )

    def _outputs(self, retained: Bools, before: int) -> tuple[pa.Table, pa.Table]:
        """Return the tables of outputs and of their owners; data outputs are their own owners."""
        tx = _numbers(self.tx) + before
        tx[: self.earlier] = np.cumsum(retained[: self.earlier]) - 1
        address = pa.array(self.address, pa.string()).filter(pa.array(retained)).dictionary_encode()
        spendable = np.array(self.spendable, dtype=np.bool_)
        data = {self.address[k] for k in np.flatnonzero(~spendable).tolist()}
        is_coin = [name in data for name in address.dictionary.to_pylist()]
        outputs = {
            "tx": tx[retained],
            "vout": _numbers(self.vout)[retained],
            "value": _numbers(self.value)[retained],
            "owner": address.indices,
            "spendable": spendable[retained],
        }
        owners = {"name": address.dictionary, "is_coin": pa.array(is_coin, pa.bool_())}
        return pa.table(outputs), pa.table(owners)

    def _transactions(self, spent: Ints) -> pa.Table:
        """Return the table of transactions, after those of the earlier coins that were spent."""
        before, n = len(spent), len(self.times)
        hours = np.array(self.times, dtype=np.float64)
        names = [f"before{k}" for k in spent.tolist()] + [self.txid(k) for k in range(n)]
        missing = pa.nulls(before, pa.int64())
        height = (hours * BLOCKS_AN_HOUR).astype(np.int64)
        time = START + (hours * 3600).astype(np.int64)
        return pa.table(
            {
                "txid": pa.array(names, pa.string()),
                "inside": np.repeat([False, True], [before, n]),
                "coinbase": np.zeros(before + n, dtype=np.bool_),
                "height": pa.concat_arrays([missing, pa.array(height)]),
                "time": pa.concat_arrays([missing, pa.array(time)]),
            }
        )

    def _add_coin(
        self, tx: int, vout: int, value: int, address: str, *, spendable: bool = True
    ) -> int:
        self.tx.append(tx)
        self.vout.append(vout)
        self.value.append(value)
        self.address.append(address)
        self.spendable.append(spendable)
        return len(self.value) - 1


def _numbers(column: list[int]) -> Ints:
    return np.array(column, dtype=np.int64)


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
