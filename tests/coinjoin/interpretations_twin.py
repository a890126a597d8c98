"""The slow twin: every interpretation of a transaction, one by one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction


def partitions(n: int) -> Iterator[list[int]]:
    """Give every partition of n things, as the block each is in."""
    if n == 0:
        yield []
        return
    for block in partitions(n - 1):
        for k in range(max(block, default=-1) + 2):
            yield [*block, k]


def interpretations(
    inputs: Sequence[int], outputs: Sequence[int], *, maker: int = 0, taker: int = 0
) -> Iterator[tuple[list[int], tuple[int, ...]]]:
    """Give the block of every input and of every output, for each way that adds up."""
    maximum = sum(inputs) - sum(outputs) + taker
    for of_input in partitions(len(inputs)):
        blocks = max(of_input) + 1
        for of_output in itertools.product(range(blocks), repeat=len(outputs)):
            kept = [0] * blocks
            for value, block in zip(inputs, of_input, strict=True):
                kept[block] += value
            for value, block in zip(outputs, of_output, strict=True):
                kept[block] -= value
            if all(-maker <= fee <= maximum for fee in kept):
                yield of_input, of_output


def links_and_shares(
    inputs: Sequence[int], outputs: Sequence[int], *, maker: int = 0, taker: int = 0
) -> tuple[int, list[list[int]], list[list[Fraction]]]:
    """Count interpretations and links; share each output among its block's inputs by value."""
    n = 0
    links = [[0] * len(inputs) for _ in outputs]
    shares = [[Fraction(0)] * len(inputs) for _ in outputs]
    for of_input, of_output in interpretations(inputs, outputs, maker=maker, taker=taker):
        n += 1
        for o, block in enumerate(of_output):
            members = [i for i, b in enumerate(of_input) if b == block]
            worth = sum(inputs[i] for i in members)
            for i in members:
                links[o][i] += 1
                shares[o][i] += Fraction(inputs[i], worth)
    return n, links, [[share / n for share in row] for row in shares]
