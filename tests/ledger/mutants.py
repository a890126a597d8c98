"""Damaged copies of good files, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence


def mutants(
    good: bytes,
    count: int,
    seed: int,
    *,
    pieces: Sequence[bytes],
    cuts: Sequence[int],
    repeats: Sequence[int],
) -> Iterator[bytes]:
    """Flip bits, cut, put pieces in and slices twice; some copies end early."""
    chance = random.Random(seed)
    for _ in range(count):
        data = bytearray(good)
        for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
            start = chance.randrange(len(data) + 1)
            end = min(start + chance.choice(cuts), len(data))
            match chance.randrange(6):
                case 0:
                    data[start:end] = bytes([chance.randrange(256)])
                case 1 | 2:
                    data[start:end] = chance.choice(pieces)
                case 3 if start < len(data):
                    data[start] ^= 1 << chance.randrange(8)
                case 4:
                    begin = chance.randrange(len(data) + 1)
                    size = repeats[0] if len(repeats) == 1 else chance.choice(repeats)
                    data[start:start] = data[begin : begin + size]
                case _:
                    data[start:end] = b""
        if chance.random() < 0.05:
            del data[chance.randrange(len(data) + 1) :]
        yield bytes(data)
