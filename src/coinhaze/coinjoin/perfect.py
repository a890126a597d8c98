"""The perfect CoinJoin: all inputs of one value, all outputs of another that divides it."""

from __future__ import annotations

from functools import lru_cache
from math import comb

from coinhaze.errors import UsageError


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
