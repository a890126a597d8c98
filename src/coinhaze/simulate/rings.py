"""A synthetic ring economy, in which the member really spent in each ring is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from coinhaze.amounts import Ints
from coinhaze.errors import UsageError
from coinhaze.ledger import CoinLedger
from coinhaze.observer.decoys import MONERO, DecoySelection

FIRST_HEIGHT = 3_000_000

# Draws the number of seconds between a coin's unlocking and its spend.
SpendAge = Callable[[np.random.Generator], float]
_Place = tuple[int, int]  # a coin: its block, and its number in the block


@dataclass(frozen=True, eq=False)
class RingEconomy:
    """Ring transactions in blocks, with facts that are hidden from observers."""

    ledger: CoinLedger
    real: Ints  # the row of the member spent in each ring, in order
    heights: dict[str, int]  # of transactions from before the window
    churned: tuple[str, ...]  # one coin: at first, and after each time its owner sent it on


def ring_economy(
    *,
    blocks: int = 400,
    per_block: int = 4,
    ring: int = 16,
    hops: int = 0,
    wait: int = 20,
    wallet: DecoySelection = MONERO,
    spend_age: SpendAge | None = None,
    seed: int = 1,
) -> RingEconomy:
    """Simulate blocks of transactions with one ring and two outputs, identical for the same seed.

    Decoys are drawn as the wallet does, ages of spends by `spend_age` (default: as the wallet
    assumes). One owner sends on a coin of the first block `hops` times, every `wait` blocks.

    >>> economy = ring_economy(blocks=30, ring=3, hops=1)
    >>> len(economy.ledger.ring_tx), len(economy.real), len(economy.churned)
    (363, 121, 2)
    """
    if wait < wallet.lock_blocks or hops * wait >= blocks:
        raise UsageError(
            f"{hops} hops of {wait} blocks each do not fit: wait at least {wallet.lock_blocks} "
            f"blocks, and make more than hops x wait = {hops * wait} blocks"
        )
    if ring < 1 or per_block < 1:
        raise UsageError("a ring has a member or more, a block a transaction or more")
    draws = _Draws(wallet, np.random.default_rng(seed), 2 * per_block)
    age = spend_age or draws.spend_age
    records: list[dict[str, object]] = []
    real, churned = [], [_name((0, 0))]
    for block in range(blocks):
        hop = block > 0 and block % wait == 0 and block <= hops * wait
        for number in range(per_block + hop):
            spends_on = hop and number == per_block
            place = _place(churned[-1]) if spends_on else draws.unspent(block, age)
            members = draws.ring_around(place, block, ring)
            real.append(len(records) * ring + members.index(place))
            txid = f"{block}.{number}"
            rings = [[_name(member) for member in members]]
            height = FIRST_HEIGHT + block
            records.append({"txid": txid, "rings": rings, "outputs": 2, "height": height})
            if spends_on:
                churned.append(f"{txid}:0")
                draws.made[block] = 2 * (per_block + 1)
                draws.taken.add((block, 2 * per_block))
    ledger = CoinLedger.from_transactions(records)
    names = ledger.txids.filter(~ledger.inside).to_pylist()
    heights = {name: FIRST_HEIGHT + int(name.partition(".")[0]) for name in names}
    return RingEconomy(ledger, np.array(real), heights, tuple(churned))


class _Draws:
    """Coins drawn by age; blocks before the window have as many coins as those in it."""

    def __init__(self, wallet: DecoySelection, rng: np.random.Generator, per_block: int) -> None:
        self.wallet = wallet
        self.rng = rng
        self.per_block = per_block
        self.made: dict[int, int] = {}
        # The coin that is sent on is reserved for its owner.
        self.taken: set[_Place] = {(0, 0)}

    def spend_age(self, rng: np.random.Generator) -> float:
        """Draw seconds since unlocking from the wallet's fit; none are within the lock."""
        while True:
            seconds = self._gamma(rng) - self.wallet.lock
            if seconds > 0:
                return seconds

    def unspent(self, block: int, age: SpendAge) -> _Place:
        """Draw an unspent coin, and spend it."""
        while True:
            place = self._coin_at(block, age(self.rng))
            if place is not None and place not in self.taken:
                self.taken.add(place)
                return place

    def ring_around(self, real: _Place, block: int, size: int) -> list[_Place]:
        """Add decoys until the ring is full; members are in order of number."""
        members = {real}
        while len(members) < size:
            place = self._coin_at(block, self._decoy_age())
            if place is not None:
                members.add(place)
        return sorted(members)

    def _decoy_age(self) -> float:
        seconds = self._gamma(self.rng) - self.wallet.lock
        if seconds > 0:
            return seconds
        return float(self.rng.random() * self.wallet.recent_blocks * self.wallet.block_seconds)

    def _gamma(self, rng: np.random.Generator) -> float:
        return float(np.exp(rng.gamma(self.wallet.shape, 1 / self.wallet.rate)))

    def _coin_at(self, block: int, seconds: float) -> _Place | None:
        """Draw one of the coins created that many seconds before the newest spendable one."""
        made = block - self.wallet.lock_blocks - int(seconds // self.wallet.block_seconds)
        if made <= -FIRST_HEIGHT:
            return None
        return made, int(self.rng.integers(self.made.get(made, self.per_block)))


def _name(place: _Place) -> str:
    block, number = place
    return f"{block}.{number // 2}:{number % 2}"


def _place(name: str) -> _Place:
    block, _, rest = name.partition(".")
    number, _, vout = rest.partition(":")
    return int(block), 2 * int(number) + int(vout)
