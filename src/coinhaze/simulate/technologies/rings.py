"""Rings, as in Monero: every spend hides among decoys drawn by age, and amounts are hidden."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from coinhaze.amounts import Floats, Ints
from coinhaze.errors import UsageError
from coinhaze.ledger import CoinLedger
from coinhaze.ledger.coins import Input, Output, Transaction
from coinhaze.observer.decoys import MONERO, measured_ages, with_decoy_posterior
from coinhaze.observer.policies import UNIFORM
from coinhaze.simulate.intents import Intents
from coinhaze.simulate.technology import Realised, Technology
from coinhaze.simulate.wallets import SimulatedWallets, Tariff

BLOCKS_AN_HOUR = 3600 // MONERO.block_seconds
FIRST_HEIGHT = 3_000_000  # of the window; opening coins were created below it
# An observer who weighs by age knows how soon people spend, as shares of these steps in seconds.
AGE_BOUNDS = (0, *(900 * 2**k for k in range(12)), 1e7, 1e9)


def ring_tariff(ring: int) -> Tariff:
    """Return sizes of a CLSAG transaction with Bulletproofs+, roughly as in Monero's wallet2.

    A ring member takes 32 bytes of signature and about two to identify the coin. The rate is the
    lowest a node suggests, 20 000 of 10^12 per byte (monerod RPC, get_fee_estimate).
    """
    return Tariff(around=704, an_input=135 + 34 * ring, an_output=79, rate=2)


def make_rings(intents: Intents, ring: float, observer: str) -> Realised:
    """Make every payment as an ordinary wallet does, then add decoys to each coin spent."""
    size = int(ring)
    if size > len(intents.coin_owner):
        raise UsageError(
            f"rings of {size} need as many coins to begin with, and there are "
            f"{len(intents.coin_owner)}: ask for more people or smaller rings"
        )
    wallets = SimulatedWallets.open(intents, tariff=ring_tariff(size))
    for i in range(len(intents)):
        wallets.pay(i)
    realised = wallets.realised(adopters=intents.adopters(1.0), settings={})
    hidden = _Hidden(intents, wallets.transactions)
    return replace(
        realised,
        ledger=hidden.weighed(size) if observer == "ages" else hidden.ledger(size),
        waiting=hidden.waiting,
        settings={"policy": UNIFORM.name},
    )


class _Hidden:
    """An economy of open transactions, one per payment, that is to be hidden in rings."""

    def __init__(self, intents: Intents, transactions: Sequence[Transaction]) -> None:
        self.intents = intents
        wanted = (intents.time * BLOCKS_AN_HOUR).astype(np.int64)
        block = _after_locks(transactions, wanted)
        order = np.argsort(block, kind="stable")
        self.waiting = float((block - wanted).mean()) / BLOCKS_AN_HOUR if len(block) else 0.0
        self.transactions = [transactions[k] for k in order.tolist()]
        self.tx_block = block[order]
        # Coins in order of creation.
        before = -self._opening_ages()
        born = np.argsort(before, kind="stable")
        self.coins = [Input(f"before{k}", 0) for k in born.tolist()]
        self.coins += [Input(t.txid, v) for t in self.transactions for v in range(len(t.outputs))]
        made = np.repeat(self.tx_block, [len(t.outputs) for t in self.transactions])
        self.coin_block = np.concatenate([before[born], made])
        self.row = {(c.txid, c.vout): k for k, c in enumerate(self.coins)}

    def _opening_ages(self) -> Ints:
        """Draw how many blocks before the window opening coins were created, as for spends."""
        dice = self.intents.dice("ages of opening coins")
        gamma = dice.gamma(MONERO.shape, 1 / MONERO.rate, len(self.intents.coin_owner))
        blocks = (np.exp(gamma) / MONERO.block_seconds).astype(np.int64)
        return np.clip(blocks + MONERO.lock_blocks, 0, FIRST_HEIGHT - 1)

    def ledger(self, size: int) -> CoinLedger:
        """Return the ledger with rings of the given size around all coins spent."""
        dice = self.intents.dice("decoys")
        weigh = _Weights(self.coin_block)
        hidden = []
        for t, block in zip(self.transactions, self.tx_block.tolist(), strict=True):
            old = int(np.searchsorted(self.coin_block, block - MONERO.lock_blocks, "right"))
            weight = weigh(block, old)
            rings = []
            for spent in t.inputs:
                # The coins with the lowest of these are drawn one by one by weight, without
                # replacement (Efraimidis and Spirakis 2006); larger rings contain the smaller.
                wait = dice.standard_exponential(old) / weight
                wait[self.row[spent.txid, spent.vout]] = -1.0  # the real one is always included
                members = np.sort(np.argpartition(wait, size - 1)[:size])
                rings.append(tuple(self.coins[k] for k in members.tolist()))
            outputs = tuple(Output(None) for _ in t.outputs)
            height = FIRST_HEIGHT + block
            hidden.append(Transaction(t.txid, (), outputs, rings=tuple(rings), height=height))
        return CoinLedger.from_transactions(hidden)

    def weighed(self, size: int) -> CoinLedger:
        """Weigh members by age, for an observer who knows how soon people here spend."""
        ages = [
            (block - int(self.coin_block[self.row[c.txid, c.vout]]) - MONERO.lock_blocks)
            * MONERO.block_seconds
            for t, block in zip(self.transactions, self.tx_block.tolist(), strict=True)
            for c in t.inputs
        ]
        counts, _ = np.histogram(ages, AGE_BOUNDS)
        before = zip(self.coins, self.coin_block[: len(self.intents.coin_owner)], strict=False)
        heights = {coin.txid: FIRST_HEIGHT + int(block) for coin, block in before}
        real = measured_ages(AGE_BOUNDS, counts.tolist())
        return with_decoy_posterior(self.ledger(size), real=real, heights=heights)


class _Weights:
    """How likely a wallet draws each coin as a decoy: by age, divided among coins of one block."""

    def __init__(self, coin_block: Ints) -> None:
        self.coin_block = coin_block
        _, number, count = np.unique(coin_block, return_inverse=True, return_counts=True)
        self.share = 1.0 / count[number]

    def __call__(self, block: int, old: int) -> Floats:
        young = _young_masses()
        ages = block - MONERO.lock_blocks - self.coin_block[:old]
        mass = young[np.minimum(ages, len(young) - 1)]
        beyond = ages >= len(young)
        mass[beyond] = _decoy_mass(ages[beyond])
        weight: Floats = mass * self.share[:old]
        return weight


@lru_cache(maxsize=1)
def _young_masses() -> Floats:
    """Return the probability of each age below about a year, computed once."""
    return _decoy_mass(np.arange(2**18))


def _decoy_mass(blocks: Ints) -> Floats:
    first = (blocks * MONERO.block_seconds).astype(np.float64)
    mass: Floats = MONERO.decoys(first + float(MONERO.block_seconds)) - MONERO.decoys(first)
    # For great ages the difference is lost to rounding; such coins stay possible, if hardly ever
    # drawn.
    return np.maximum(mass, 1e-300)


def _after_locks(transactions: Sequence[Transaction], wanted: Ints) -> Ints:
    """Return the block of each transaction, after all that it spends is unlocked."""
    block: dict[str, int] = {}
    for t, at in zip(transactions, wanted.tolist(), strict=True):
        ready = [block[c.txid] + MONERO.lock_blocks for c in t.inputs if c.txid in block]
        block[t.txid] = max([at, *ready])
    return np.array(list(block.values()), dtype=np.int64)


RINGS = Technology(
    name="rings",
    make=make_rings,
    parameter="members of a ring",
    minimum=1.0,
    maximum=128.0,
    values=(1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0),
    usual=16.0,
    says="hidden amounts, and every coin spent among decoys that are drawn by age (Monero)",
    observers={
        "members": "counts the members of a ring as equally likely, and a transaction's rings too",
        "ages": "weighs members by age, and knows how soon people spend",
    },
    without=1.0,
    whole=True,
)
