"""Random chains of blocks with branches, made of plain dictionaries."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np

from coinhaze.history.journal import NamedBlock
from coinhaze.ledger.coin_blocks import CoinBlocks

Coin = tuple[bytes, int]


def digest(*parts: object) -> bytes:
    return sha256(repr(parts).encode()).digest()


@dataclass
class Branch:
    """A chain of blocks and the coins that are unspent at its end."""

    seed: int
    blocks: list[NamedBlock] = field(default_factory=list)
    unspent: list[dict[Coin, int]] = field(default_factory=list)  # after each block

    def grow(self, blocks: int, transactions: int = 6) -> Branch:
        """Add blocks."""
        for _ in range(blocks):
            self._add(transactions)
        return self

    def forked(self, depth: int, seed: int) -> Branch:
        """Begin another chain, without the last blocks of this one."""
        end = len(self.blocks) - depth
        return Branch(seed, self.blocks[:end], self.unspent[:end])

    def _add(self, transactions: int) -> None:
        height = len(self.blocks)
        draw = random.Random(self.seed * 1_000_003 + height)
        coins = dict(self.unspent[-1]) if self.unspent else {}
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
        )
        self.blocks.append(NamedBlock(digest(self.seed, height).hex(), before, content))
        self.unspent.append(coins)


def _octets(ids: Sequence[bytes]) -> np.ndarray:
    return np.frombuffer(b"".join(ids), np.uint8).reshape(-1, 32)
