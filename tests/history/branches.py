"""Random chains of blocks with branches, made of plain dictionaries."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np

from coinhaze.history.journal import NamedBlock
from coinhaze.ledger.coin_blocks import CoinBlocks, PoolFlows
from coinhaze.ledger.coins import POOLS

Coin = tuple[bytes, int]


def digest(*parts: object) -> bytes:
    return sha256(repr(parts).encode()).digest()


@dataclass
class Branch:
    """A chain of blocks and the coins that are unspent at its end."""

    seed: int
    blocks: list[NamedBlock] = field(default_factory=list)
    unspent: list[dict[Coin, int]] = field(default_factory=list)  # after each block
    pools: list[list[int]] = field(default_factory=list)  # what each pool holds after each block

    def grow(self, blocks: int, transactions: int = 6) -> Branch:
        """Add blocks."""
        for _ in range(blocks):
            self._add(transactions)
        return self

    def forked(self, depth: int, seed: int) -> Branch:
        """Begin another chain, without the last blocks of this one."""
        end = len(self.blocks) - depth
        return Branch(seed, self.blocks[:end], self.unspent[:end], self.pools[:end])

    def _add(self, transactions: int) -> None:
        height = len(self.blocks)
        draw = random.Random(self.seed * 1_000_003 + height)
        coins = dict(self.unspent[-1]) if self.unspent else {}
        pools = list(self.pools[-1]) if self.pools else [0] * len(POOLS)
        flows: list[tuple[int, int, int]] = []
        ids, inputs, outputs = [digest(self.seed, height, 0)], [0], [4]
        spent: list[tuple[bytes, int]] = []
        made: list[tuple[int, int, bool]] = [(0, 30_000, True), (1, 0, False), (2, 20_000, True)]
        made.append((3, 0, True))
        coins |= {(ids[0], 0): 30_000, (ids[0], 2): 20_000, (ids[0], 3): 0}
        for k in range(1, draw.randint(1, transactions)):
            names = list(coins)
            if not names:
                break
            some = draw.sample(names, min(len(names), draw.choice([1, 1, 1, 2, 2, 5])))
            total = sum(coins.pop(name) for name in some)
            ids.append(digest(self.seed, height, k))
            total += self._move(k, total, pools, flows, draw)
            pays = draw.randint(1, 4)
            parts = sorted(draw.randint(0, total) for _ in range(pays - 1))
            values = [b - a for a, b in zip([0, *parts], [*parts, total], strict=True)]
            inputs.append(len(some))
            outputs.append(pays)
            spent += some
            for vout, value in enumerate(values):
                lost = draw.random() < 0.1
                made.append((vout, value, not lost))
                if not lost:
                    coins[ids[-1], vout] = value
        before = self.blocks[-1].hash if self.blocks else ""
        content = CoinBlocks(
            heights=np.array([height]),
            times=np.array([1_300_000_000 + 600 * height]),
            sizes=np.array([len(ids)]),
            ids=_octets(ids),
            coinbase=np.arange(len(ids)) == 0,
            inputs=np.array(inputs),
            outputs=np.array(outputs),
            spent_ids=_octets([name for name, _ in spent]),
            spent_vouts=np.array([vout for _, vout in spent], dtype=np.int64),
            spent_values=np.full(len(spent), -1),
            made_vouts=np.array([vout for vout, _, _ in made]),
            made_values=np.array([value for _, value, _ in made]),
            made_spendable=np.array([spendable for _, _, spendable in made]),
            made_scripts=np.array([draw.randrange(9) for _ in made], np.uint8),
            pools=_flows(flows),
        )
        self.blocks.append(NamedBlock(digest(self.seed, height).hex(), before, content))
        self.unspent.append(coins)
        self.pools.append(pools)

    @staticmethod
    def _move(
        k: int, total: int, pools: list[int], flows: list[tuple[int, int, int]], draw: random.Random
    ) -> int:
        """Let a transaction move value into or out of some pools; give what that adds to it."""
        added = 0
        for pool in sorted(draw.sample(range(3), draw.choice([0, 0, 1, 2]))):
            into = draw.choice([-pools[pool], -(pools[pool] // 3), (total + added) // 2])
            if into:
                flows.append((k, pool, into))
                pools[pool] += into
                added -= into
        return added


def _flows(flows: list[tuple[int, int, int]]) -> PoolFlows | None:
    if not flows:
        return None
    tx, pool, into = (np.array(column, dtype=np.int64) for column in zip(*flows, strict=True))
    return PoolFlows(tx, pool, into, np.zeros(len(POOLS), np.int64))


def _octets(ids: Sequence[bytes]) -> np.ndarray:
    return np.frombuffer(b"".join(ids), np.uint8).reshape(-1, 32)
