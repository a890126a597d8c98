"""The link matrix of a transaction: how often an input and an output belong together (Boltzmann).

An interpretation is a partition of the inputs into blocks, with every output assigned to one of
them, such that each block pays for its outputs and a fee within bounds. Without further knowledge
all interpretations are equally likely. Definition: LaurentMT, "Bitcoin Transactions & Privacy",
parts 1 to 3.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coinhaze.amounts import Floats
from coinhaze.coinjoin.blocks import MAX_CODES, Blocks, Side, blocks_of, choices, too_large
from coinhaze.coinjoin.interpretations import (
    Counted,
    closest_perfect,
    count_blocks,
    perfect_coinjoin,
)
from coinhaze.errors import InputError, ResourceError

LARGEST = 2**61
# A hundred million steps take about a second; the count makes a pass down and a pass up.
MAX_STEPS = 1_000_000_000


@dataclass(frozen=True)
class LinkMatrix:
    """The interpretations of a transaction, and how many of them link an input to an output."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    interpretations: int
    links: tuple[tuple[int, ...], ...]  # one row per output, one column per input
    shares: Floats  # the share of an output that came from each input: rows sum to 1

    @property
    def bits(self) -> float:
        """The entropy of the transaction, all interpretations being equally likely."""
        return math.log2(self.interpretations)

    @cached_property
    def probabilities(self) -> Floats:
        """The share of interpretations that link an output (row) to an input (column)."""
        return np.array([[n / self.interpretations for n in row] for row in self.links])

    @property
    def efficiency(self) -> float:
        """Interpretations relative to the closest perfect CoinJoin's; 0 if there is only one."""
        if self.interpretations == 1:
            return 0.0
        perfect, _ = perfect_coinjoin(*closest_perfect(len(self.inputs), len(self.outputs)))
        return self.interpretations / perfect

    def __repr__(self) -> str:
        return (
            f"LinkMatrix({len(self.inputs)} inputs, {len(self.outputs)} outputs: "
            f"{self.interpretations} interpretations, {self.bits:.4f} bits)"
        )


def link_matrix(
    inputs: Sequence[int],
    outputs: Sequence[int],
    *,
    maker: int = 0,
    taker: int = 0,
    steps: int = MAX_STEPS,
) -> LinkMatrix:
    """Count the interpretations of a transaction exactly, and those that link each pair.

    The fee is the excess of inputs over outputs. With intra-fees (see `intra_fees`) a block may
    fall short by `maker`, or leave `taker` above the fee. `steps` bounds the work; a ResourceError
    is raised where more would be needed.

    >>> link_matrix([10, 10], [8, 2, 3, 7])
    LinkMatrix(2 inputs, 4 outputs: 3 interpretations, 1.5850 bits)
    """
    fee = _fee(inputs, outputs, maker, taker)
    if _is_one_block(inputs, outputs, maximum=fee + taker):
        return _one_block(inputs, outputs)
    if maker == taker == fee == 0 and _is_perfect(inputs, outputs):
        return _perfect(inputs, outputs)
    _refuse_larger(inputs, outputs)
    ins, outs = Side.of(inputs), Side.of(outputs)
    blocks = blocks_of(ins, outs, minimum=-maker, maximum=fee + taker)
    counted = count_blocks(blocks, ins, outs, steps=steps)
    return _matrix(inputs, outputs, ins, outs, blocks, counted)


def intra_fees(outputs: Sequence[int], ratio: float) -> tuple[int, int]:
    """Return the highest gain of a maker and cost of the taker in a CoinJoin that pays its makers.

    A maker earns `ratio` of the value that outputs share, rounded down; the taker pays all makers.
    (0, 0) where no two outputs are equal.

    >>> intra_fees([84077613] * 4 + [14868890, 15369204, 177252160], 0.005)
    (420388, 1261164)
    """
    (value, count), *_ = sorted(Counter(outputs).items(), key=lambda p: (-p[1], -p[0])) or [(0, 0)]
    if count < 2:
        return 0, 0
    maker = math.floor(value * ratio)
    return maker, maker * (count - 1)


def _fee(inputs: Sequence[int], outputs: Sequence[int], maker: int, taker: int) -> int:
    if not inputs or not outputs:
        raise InputError("a transaction to take apart has inputs and outputs")
    for value in (*inputs, *outputs):
        if value <= 0:
            raise InputError(f"amounts of a transaction to take apart are above 0, not {value}")
    fee = sum(inputs) - sum(outputs)
    if fee < 0:
        raise InputError(f"outputs are {-fee} above inputs")
    if maker < 0 or taker < 0:
        raise InputError(f"intra-fees are not below 0: maker {maker}, taker {taker}")
    if (sum(inputs) + maker + taker) * (len(inputs) + 1) > LARGEST:
        raise ResourceError(f"amounts add up to {sum(inputs)}: too large to take apart")
    return fee


def _is_one_block(inputs: Sequence[int], outputs: Sequence[int], *, maximum: int) -> bool:
    """Return whether, as is quickly seen, no two blocks can be valid: all belongs together."""
    if len(inputs) == 1:
        return True
    # A block without outputs leaves all it has as a fee; if none can, there are no more blocks than
    # outputs.
    return len(outputs) == 1 and min(inputs) > maximum


def _one_block(inputs: Sequence[int], outputs: Sequence[int]) -> LinkMatrix:
    share = np.array(inputs, dtype=np.float64) / sum(inputs)
    links = ((1,) * len(inputs),) * len(outputs)
    return LinkMatrix(tuple(inputs), tuple(outputs), 1, links, np.tile(share, (len(outputs), 1)))


def _is_perfect(inputs: Sequence[int], outputs: Sequence[int]) -> bool:
    return len(set(inputs)) == len(set(outputs)) == 1 and len(outputs) % len(inputs) == 0


def _perfect(inputs: Sequence[int], outputs: Sequence[int]) -> LinkMatrix:
    n, linked = perfect_coinjoin(len(inputs), len(outputs))
    links = ((linked,) * len(inputs),) * len(outputs)
    shares = np.full((len(outputs), len(inputs)), 1 / len(inputs))
    return LinkMatrix(tuple(inputs), tuple(outputs), n, links, shares)


def _refuse_larger(inputs: Sequence[int], outputs: Sequence[int]) -> None:
    for what, amounts in (("inputs", inputs), ("outputs", outputs)):
        if choices(amounts) > MAX_CODES:
            why = f"{choices(amounts):.1e} choices of {what}, not {MAX_CODES:,}"
            raise too_large(len(inputs), len(outputs), why)


def _matrix(
    inputs: Sequence[int],
    outputs: Sequence[int],
    ins: Side,
    outs: Side,
    blocks: Blocks,
    counted: Counted,
) -> LinkMatrix:
    """Convert block counts to links and shares.

    Over all occurrences of a block, each of its a_t inputs of value t and b_u outputs of value u
    takes part equally often, since equal amounts are interchangeable. An interpretation that puts
    an output into a block of inputs worth s gives input i the share v_i / s of it: the shares of
    one interpretation sum to 1, so their mean does too.
    """
    a, b = ins.digits(counted.inputs), outs.digits(counted.outputs)
    worth = a @ ins.value
    pairs = outs.count[:, None] * ins.count
    n = counted.interpretations
    linked = (b * counted.times[:, None]).T @ a
    weight = np.array([t / n for t in counted.times.tolist()]) / worth
    shares = ((b * weight[:, None]).T @ (a * ins.value)) / pairs
    row = np.searchsorted(outs.value, np.array(outputs))
    column = np.searchsorted(ins.value, np.array(inputs))
    links = tuple(
        tuple(int(linked[u, t]) // int(pairs[u, t]) for t in column.tolist()) for u in row.tolist()
    )
    return LinkMatrix(tuple(inputs), tuple(outputs), n, links, shares[np.ix_(row, column)])
