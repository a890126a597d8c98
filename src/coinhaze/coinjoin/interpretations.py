"""Count the interpretations of a transaction and how often each block occurs in them, exactly.

Those of the perfect CoinJoin, all inputs of one value and all outputs of another that divides it,
are counted by a formula.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from math import comb
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from coinhaze.amounts import Ints
from coinhaze.coinjoin.blocks import MAX_STATES, Blocks, Side, max_interpretations, too_large
from coinhaze.coinjoin.link_matrix_kernels import count_down, count_up
from coinhaze.errors import UsageError

LARGEST_PLAIN = 2**62
PRIME_BITS = 30.99


class Counted(NamedTuple):
    """The number of interpretations, and how often each block occurs in them."""

    interpretations: int
    inputs: Ints  # packed choices
    outputs: Ints
    times: npt.NDArray[Any]  # int64, or Python integers where int64 would overflow


def count_blocks(blocks: Blocks, ins: Side, outs: Side, *, steps: int) -> Counted:
    """Count with 64-bit integers where they cannot overflow, otherwise modulo several primes.

    The remainders modulo enough primes determine a number below their product (Chinese remainder
    theorem).
    """
    n, m = len(ins), len(outs)
    # The largest number needed is the sum of inputs x outputs in a block over all interpretations.
    bound = max_interpretations(n, m) * n * m
    if bound >= LARGEST_PLAIN:
        bound = min(bound, _about(blocks, ins, outs, steps) * n * m)
    if bound < LARGEST_PLAIN:
        found = [_count(blocks, ins, outs, 0, steps)]
        at = np.flatnonzero(found[0][1])
        return _counted(blocks, at, int(found[0][0]), found[0][1][at])
    primes = _primes(math.ceil((bound.bit_length() + 1) / PRIME_BITS))
    if len(primes) * int(blocks.state_start[-1]) > 4 * MAX_STATES:
        what = f"{int(blocks.state_start[-1]):,} states with numbers of {bound.bit_length()} bits"
        raise too_large(n, m, what)
    parts = [_count(blocks, ins, outs, p, steps // len(primes)) for p in primes]
    at = np.flatnonzero(np.any([times for _, times in parts], axis=0))
    whole = _from_remainders([[n for n, _ in parts]], primes)[0]
    remainders = np.array([times[at] for _, times in parts]).T.tolist()
    times = np.array(_from_remainders(remainders, primes), dtype=object)
    return _counted(blocks, at, whole, times)


def _counted(blocks: Blocks, at: Ints, interpretations: int, times: npt.NDArray[Any]) -> Counted:
    a = np.searchsorted(blocks.block_start, at, "right") - 1
    rank = blocks.block_begin[a] + at - blocks.block_start[a]
    packed = blocks.in_packed[blocks.block_inputs[a]]
    return Counted(interpretations, packed, blocks.out_packed[rank], times)


def _count(blocks: Blocks, ins: Side, outs: Side, modulus: int, steps: int) -> tuple[int, Ints]:
    """Count interpretations and the occurrences of each block, modulo a prime or 2^64."""
    choose = _choose(ins, outs)
    wrapped = choose % modulus if modulus else (choose + 2**63) % 2**64 - 2**63
    table = wrapped.astype(np.int64)
    reached = np.zeros(int(blocks.state_start[-1]), dtype=np.int64)
    if count_down(blocks, table, modulus, reached, steps) < 0:
        raise too_large(len(ins), len(outs), f"more than {steps:,} steps")
    finished = np.zeros_like(reached)
    times = np.zeros(int((blocks.block_end - blocks.block_begin).sum()), dtype=np.int64)
    count_up(blocks, table, modulus, reached, finished, times)
    return int(finished[-1]), times


def _about(blocks: Blocks, ins: Side, outs: Side, steps: int) -> int:
    """Bound the number of interpretations from above by counting in floats.

    A sum of positive floats loses at most 2^-53 per step, and fewer than 2^40 steps are made.
    """
    try:
        table = _choose(ins, outs).astype(np.float64)
    except OverflowError:
        return 1 << (1 << 20)
    reached = np.zeros(int(blocks.state_start[-1]))
    if count_down(blocks, table, 0, reached, steps) < 0:
        raise too_large(len(ins), len(outs), f"more than {steps:,} steps")
    return math.ceil(reached[0] * 1.001) if math.isfinite(reached[0]) else 1 << (1 << 20)


def _choose(ins: Side, outs: Side) -> npt.NDArray[np.object_]:
    """Return C(n, k) for all n up to the highest multiplicity of a value."""
    highest = int(max(ins.count.max(), outs.count.max()))
    return np.array(
        [[math.comb(n, k) for k in range(highest + 1)] for n in range(highest + 1)], object
    )


def _primes(count: int) -> list[int]:
    """Return the largest primes below 2^31."""
    found: list[int] = []
    number = 2**31 - 1
    while len(found) < count:
        if _is_prime(number):
            found.append(number)
        number -= 2
    return found


def _is_prime(n: int) -> bool:
    """Return whether an odd n, 7 < n < 3 215 031 751, is prime (Miller-Rabin, enough bases)."""
    odd = n - 1
    twos = (odd & -odd).bit_length() - 1
    odd >>= twos
    for base in (2, 3, 5, 7):
        x = pow(base, odd, n)
        if x in (1, n - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


def _from_remainders(rows: Sequence[Sequence[int]], primes: Sequence[int]) -> list[int]:
    """Return the numbers below the product of the primes that leave these remainders."""
    product = math.prod(primes)
    parts = [product // p * pow(product // p, -1, p) for p in primes]
    return [sum(r * part for r, part in zip(row, parts, strict=True)) % product for row in rows]


def perfect_coinjoin(inputs: int, outputs: int) -> tuple[int, int]:
    """Count the interpretations of a perfect CoinJoin, and those that link an input to an output.

    With r outputs per input, f(0) = 1; the block of the first input has j inputs and jr outputs, so
    f(k) = sum over j of C(k-1, j-1) C(kr, jr) f(k-j). An output is in that block in C(kr-1, jr-1)
    of the C(kr, jr) ways to choose it. Exact for any size.

    >>> perfect_coinjoin(5, 5)
    (1496, 512)
    """
    if inputs < 1 or outputs < 1 or outputs % inputs:
        raise UsageError(
            f"a perfect CoinJoin has as many outputs to each input, not {inputs} to {outputs}"
        )
    ways, r = _interpretations(inputs, outputs // inputs), outputs // inputs
    linked = sum(
        comb(inputs - 1, j - 1) * comb(outputs - 1, j * r - 1) * ways[inputs - j]
        for j in range(1, inputs + 1)
    )
    return ways[inputs], linked


def closest_perfect(inputs: int, outputs: int) -> tuple[int, int]:
    """Return the size of the perfect CoinJoin with which a transaction is compared.

    The smaller side stays and the larger one grows to its next multiple (as in LaurentMT's
    Boltzmann); the sides may be swapped, which does not change the number of interpretations.

    >>> closest_perfect(5, 7)
    (5, 10)
    """
    few, many = sorted((inputs, outputs))
    return few, few * -(-many // few)


@lru_cache(maxsize=64)
def _interpretations(inputs: int, ratio: int) -> list[int]:
    ways = [1]
    for k in range(1, inputs + 1):
        chosen, total = 1, 0  # C(k-1, j-1), updated from j to j + 1
        for j in range(1, k + 1):
            total += chosen * comb(k * ratio, j * ratio) * ways[k - j]
            chosen = chosen * (k - j) // j
        ways.append(total)
    return ways
