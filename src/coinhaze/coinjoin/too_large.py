"""Transactions too large to decompose, and the bounds that still hold for them."""

from __future__ import annotations

import math

from coinhaze.errors import ResourceError


def max_interpretations(inputs: int, outputs: int) -> int:
    """Count the interpretations if every block were valid: an upper bound for any amounts.

    The sum over k of S(n, k) k^m: inputs in k blocks, each output in one of them.

    >>> max_interpretations(2, 2)
    5
    """
    stirling = [1]
    for _ in range(inputs):
        stirling = [0, *(stirling[k - 1] + k * s for k, s in enumerate([*stirling[1:], 0], 1))]
    return sum(s * k**outputs for k, s in enumerate(stirling))


def too_large(inputs: int, outputs: int, why: str) -> ResourceError:
    """Return the error that names what was refused and why, with bounds that hold for any amounts.

    >>> print(too_large(2, 2, "more than 1 steps"))
    2 inputs and 2 outputs: too much to take apart, more than 1 steps; between 0 and 2.3 bits
    """
    bits = math.log2(max_interpretations(inputs, outputs))
    return ResourceError(
        f"{inputs} inputs and {outputs} outputs: too much to take apart, {why}; "
        f"between 0 and {bits:.1f} bits"
    )
