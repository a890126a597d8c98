"""The slow twin: a tape numbered with plain dictionaries, and rows mixed in exact fractions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from coinhaze.ledger.coins import POOLS

Name = tuple[str, int]
Distribution = dict[str, Fraction]


@dataclass
class Row:
    """A row of the tape: its slot, what it is mixed from, and what it is."""

    slot: int
    terms: list[tuple[int, Fraction]]
    distribution: Distribution


@dataclass
class Coin:
    """A live coin: what it is worth, the number of its row, and its expected steps."""

    value: int
    row: int
    steps: Fraction


@dataclass
class Pool:
    """A shielded pool: what it is worth, the number of its row, and its expected steps."""

    value: int = 0
    row: int = -1
    steps: Fraction = Fraction(1)


@dataclass
class Twin:
    """A tape and what is live, after some transactions."""

    rows: list[Row] = field(default_factory=list)
    coins: dict[Name, Coin] = field(default_factory=dict)
    free: list[int] = field(default_factory=list)
    used: int = 0
    openings: Mapping[str, int] = field(default_factory=dict)
    pools: dict[str, Pool] = field(default_factory=dict)

    def new_row(self, terms: list[tuple[int, Fraction]], source: str = "") -> int:
        """Take the slot freed last, or a new one."""
        distribution: Distribution = {source: Fraction(1)} if source else {}
        for row, weight in terms:
            for name, share in self.rows[row].distribution.items():
                distribution[name] = distribution.get(name, Fraction(0)) + weight * share
        if self.free:
            slot = self.free.pop()
        else:
            slot = self.used
            self.used += 1
        slots = [(self.rows[row].slot, weight) for row, weight in terms]
        self.rows.append(Row(slot, slots, distribution))
        return len(self.rows) - 1

    def hangs(self, row: int) -> bool:
        """Tell whether a live coin hangs on a row."""
        held: list[Coin | Pool] = [*self.coins.values(), *self.pools.values()]
        return any(thing.row == row and thing.value > 0 for thing in held)

    def add(self, transaction: Mapping[str, Any]) -> None:
        """Index one transaction."""
        txid = transaction["txid"]
        amounts: dict[int, int] = {}
        moved = Fraction(0)
        for spent in transaction["inputs"]:
            name = (spent["txid"], spent["vout"])
            coin = self.coins.pop(name, None)
            if coin is None and spent["value"] > 0:
                row = self.new_row([], f"{name[0]}:{name[1]}")
                coin = Coin(spent["value"], row, Fraction(1))
            if coin is not None and coin.value > 0:
                amounts[coin.row] = amounts.get(coin.row, 0) + coin.value
                moved += coin.value * coin.steps
        into = self._take_out(transaction.get("pools", {}), amounts)
        moved -= sum(self.pools[p].steps * value for p, value in into.items() if value < 0)
        total = sum(amounts.values())
        made = [
            (k if o.get("vout") is None else o["vout"], o)
            for k, o in enumerate(transaction["outputs"])
        ]
        coins = {(txid, k): o["value"] for k, o in made if o.get("spendable", True)}
        holds = any(value > 0 for value in coins.values())
        steps = Fraction(1)
        row = -1
        if not transaction["inputs"] and not any(value < 0 for value in into.values()):
            if any(o["value"] > 0 for _, o in made) or into:
                row = self.new_row([], f"tx:{txid}")
        elif total:
            steps = 1 + moved / total
            if len(amounts) == 1:
                (row,) = amounts
            else:
                terms = [(r, Fraction(amount, total)) for r, amount in amounts.items()]
                # Slots of rows that nothing hangs on any more are free before the new one is taken.
                self.free += [self.rows[r].slot for r in amounts if not self.hangs(r)]
                row = self.new_row(terms)
        for pool, value in into.items():
            if value > 0:
                self._put_in(self.pools[pool], value, row, steps)
        if row >= 0 and not holds and not self.hangs(row):
            self.free.append(self.rows[row].slot)
        for name, value in coins.items():
            self.coins[name] = Coin(value, row, 1 + steps)

    def _take_out(self, flows: Mapping[str, int], amounts: dict[int, int]) -> dict[str, int]:
        """Take out of pools what a transaction takes; give all its flows, pool by pool."""
        into = {pool: flows[pool] for pool in POOLS if flows.get(pool, 0) != 0}
        for name, value in into.items():
            if name not in self.pools:
                self.pools[name] = Pool()
                if self.openings.get(name, 0):
                    row = self.new_row([], f"pool:{name}:0")
                    self.pools[name] = Pool(self.openings[name], row)
            if value < 0:
                pool = self.pools[name]
                pool.value += value
                amounts[pool.row] = amounts.get(pool.row, 0) - value
        return into

    def _put_in(self, pool: Pool, value: int, row: int, steps: Fraction) -> None:
        """Mix what enters a pool with what it holds."""
        total = pool.value + value
        pool.steps = 1 + (pool.value * pool.steps + value * steps) / total
        held, old = pool.value, pool.row
        pool.value, pool.row = total, row
        if held and old != row:
            if not self.hangs(old):
                self.free.append(self.rows[old].slot)
            terms = [(old, Fraction(held, total)), (row, Fraction(value, total))]
            pool.row = self.new_row(terms)


def openings_of(transactions: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Give what pools must have held before, so that none ever holds less than nothing."""
    held = dict.fromkeys(POOLS, 0)
    lowest = dict(held)
    for transaction in transactions:
        for pool, value in transaction.get("pools", {}).items():
            held[pool] += value
            lowest[pool] = min(lowest[pool], held[pool])
    return {pool: -low for pool, low in lowest.items()}


def twin_of(transactions: Sequence[Mapping[str, Any]]) -> Twin:
    """Index transactions; every input has its value, unless its coin was made here."""
    twin = Twin(openings=openings_of(transactions))
    for transaction in transactions:
        twin.add(transaction)
    return twin
