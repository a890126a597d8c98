"""Decompose a transaction into blocks: inputs that can pay for some outputs by themselves.

A block is a set of inputs with the outputs they pay for; it is valid if the fee it leaves is within
bounds. Inputs of equal value are interchangeable, and so are outputs, so a block is described by
how many of each value it has: the digits of a code. The sums of all output codes are sorted once,
so the outputs that a choice of inputs can pay for are adjacent: meet in the middle over two lists
of sums, never their product.

A state is what remains to be decomposed. The block removed next is always the one that holds the
first remaining input of the highest value, so every interpretation is visited once, in one order.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from coinhaze.amounts import Ints
from coinhaze.errors import ResourceError

MAX_CODES = 2**22  # choices of inputs, and of outputs
MAX_STATES = 2**25


@dataclass(frozen=True, eq=False)
class Side:
    """The inputs or the outputs: distinct values, their multiplicities and every choice of them."""

    value: Ints
    count: Ints
    stride: Ints  # code = sum of digit x stride
    sums: Ints
    packed: Ints  # one spare bit per digit: x | guard - y leaves all guards set if y is within x
    guard: int
    digit: Ints  # shift and mask of each digit, lowest value first

    @classmethod
    def of(cls, amounts: Sequence[int]) -> Side:
        """Enumerate all choices of the given amounts."""
        multiplicity = sorted(Counter(amounts).items())
        sums, packed = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
        stride, digit, guard, shift = [], [], 0, 0
        for value, count in multiplicity:
            stride.append(len(sums))
            digit.append((shift, (1 << count.bit_length()) - 1))
            some = np.arange(count + 1)[:, None]
            sums = (some * value + sums).ravel()
            packed = ((some << shift) + packed).ravel()
            shift += count.bit_length() + 1
            guard |= 1 << (shift - 1)
        values, counts = zip(*multiplicity, strict=True)
        return cls(
            np.array(values), np.array(counts), np.array(stride), sums, packed, guard,
            np.array(digit),
        )  # fmt: skip

    def __len__(self) -> int:
        return int(self.count.sum())

    def digits(self, packed: Ints) -> Ints:
        """Return how many of each value the packed choices hold, one column per value."""
        return (packed[:, None] >> self.digit[:, 0]) & self.digit[:, 1]

    @property
    def repeated(self) -> Ints:
        """The shift and mask of digits that can exceed 1: the others allow only one choice."""
        return self.digit[self.count > 1]


class Blocks(NamedTuple):
    """All valid blocks and all states, as arrays for the kernels.

    Outputs are identified by rank, their position among all choices ordered by sum. The k-th choice
    of inputs that can pay for anything pays for the ranks from `block_begin[k]` to `block_end[k]`;
    the states with inputs of code c have ranks from `state_first[c]` on.
    """

    in_stride: Ints
    in_packed: Ints
    in_guard: int
    in_digit: Ints
    in_repeated: Ints
    in_block: Ints  # by code: its index in `block_inputs`, or -1
    out_stride: Ints
    out_digit: Ints
    out_sum: Ints  # by rank
    out_code: Ints  # by rank
    out_packed: Ints  # by rank
    out_rank: Ints  # by code
    out_guard: int
    out_repeated: Ints
    block_inputs: Ints
    block_sum: Ints
    block_begin: Ints
    block_end: Ints
    block_start: Ints  # where the blocks of those inputs start among all blocks
    state_start: Ints
    state_first: Ints
    minimum: int
    maximum: int


def blocks_of(inputs: Side, outputs: Side, *, minimum: int, maximum: int) -> Blocks:
    """Find the blocks that leave a fee between `minimum` (at most 0) and `maximum`."""
    order = np.argsort(outputs.sums, kind="stable")
    by_sum = outputs.sums[order]
    begin = np.searchsorted(by_sum, inputs.sums - maximum, "left")
    end = np.searchsorted(by_sum, inputs.sums - minimum, "right")
    begin[0] = end[0] = 0  # a block has at least one input
    some = np.flatnonzero(end > begin)
    start, first = _states(inputs, by_sum, minimum=minimum, maximum=maximum)
    total = int((end - begin).sum())
    if start[-1] > MAX_STATES or total > MAX_STATES:
        what = f"{max(int(start[-1]), total):,} parts could stand alone, not {MAX_STATES:,}"
        raise too_large(len(inputs), len(outputs), what)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    number = np.full(len(inputs.sums), -1)
    number[some] = np.arange(len(some))
    return Blocks(
        in_stride=inputs.stride,
        in_packed=inputs.packed,
        in_guard=inputs.guard,
        in_digit=inputs.digit,
        in_repeated=inputs.repeated,
        in_block=number,
        out_stride=outputs.stride,
        out_digit=outputs.digit,
        out_sum=by_sum,
        out_code=order,
        out_packed=outputs.packed[order],
        out_rank=rank,
        out_guard=outputs.guard,
        out_repeated=outputs.repeated,
        block_inputs=some,
        block_sum=inputs.sums[some],
        block_begin=begin[some],
        block_end=end[some],
        block_start=np.cumsum(end[some] - begin[some]) - (end[some] - begin[some]),
        state_start=start,
        state_first=first,
        minimum=minimum,
        maximum=maximum,
    )


def _states(inputs: Side, by_sum: Ints, *, minimum: int, maximum: int) -> tuple[Ints, Ints]:
    """Find which outputs can remain with each choice of inputs.

    A state with k inputs is decomposed into at most k blocks, and what was removed before had at
    most n - k: both bound the fee left in the state, since the fee of the whole is fixed.
    """
    k = inputs.digits(inputs.packed).sum(axis=1)
    n, whole = int(k[-1]), int(inputs.sums[-1] - by_sum[-1])
    low = np.maximum(k * minimum, whole - (n - k) * maximum)
    high = np.minimum(k * maximum, whole - (n - k) * minimum)
    first = np.searchsorted(by_sum, inputs.sums - high, "left")
    end = np.searchsorted(by_sum, inputs.sums - low, "right")
    return np.concatenate([[0], np.cumsum(np.maximum(end - first, 0))]), first


def choices(amounts: Sequence[int]) -> int:
    """Count the choices of the given amounts; equal amounts are interchangeable."""
    return math.prod(count + 1 for count in Counter(amounts).values())


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
