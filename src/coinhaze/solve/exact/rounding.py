"""How far rounding can change rows of B, and how wide that makes an interval: before any solve."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from coinhaze.amounts import Floats
from coinhaze.measures.elementary import log2
from coinhaze.measures.intervals import (
    ROUNDING,
    slack_from_each,
    slack_from_total,
    slack_from_walks,
)
from coinhaze.solve.exact.stream_kernels import WIDTH
from coinhaze.solve.query import Query
from coinhaze.solve.structure.columns import Columns
from coinhaze.solve.structure.reduce import ENTRY_ERROR


class Rounding(NamedTuple):
    """How far rounding can change rows of B."""

    total: Floats  # each scored row, in total ...
    each: Floats  # ... and each of its probabilities, relative to itself; infinite if not bounded
    along_walks: bool  # whether they bound the error of a walk, on average and at worst

    @classmethod
    def of_factor(cls, query: Query, *, by_fours: bool) -> Rounding:
        """Bound the rounding of any solve with factors.

        An error of relative size c in one state's moves changes each probability by at most 2c
        (every spanning forest of the chain uses one move of each state), and changes the row of a
        walk by at most 2c in total for each time it visits that state. The first holds where one
        matrix near the given one is solved, as elimination does; sweeps over a core round anew each
        time they pass a state, and only the second holds for them.
        """
        factor = query.factor
        walks = factor.roundings(by_fours=by_fours, walks=True) * ROUNDING
        each = 1.01 * float((factor.roundings(by_fours=by_fours) * ROUNDING).sum())
        each = math.inf if factor.sweeps else each
        total = 1.01 * factor.solve(walks)[query.scored]
        return cls(total, np.full(len(total), each), along_walks=False)

    def part(self, rows: slice) -> Rounding:
        """Give some of the scored rows."""
        return Rounding(self.total[rows], self.each[rows], self.along_walks)

    @classmethod
    def of_walks(cls, expected: Floats, maximum: Floats) -> Rounding:
        """Bound the rounding of tiles of an acyclic chain, given roundings along its walks."""
        return cls(1.01 * ROUNDING * expected, 1.01 * ROUNDING * maximum, along_walks=True)

    def of_bits(self, bits: Floats, sources: Floats) -> Floats:
        """Bound the change of entropy: two proofs, and the narrower bound is taken."""
        if self.along_walks:
            by_total = slack_from_walks(self.total, self.each, sources)
        else:
            by_total = slack_from_total(self.total, sources)
        if np.any(np.isinf(self.each)):
            return by_total
        by_each = slack_from_each(self.each, bits)
        return np.minimum(by_total, by_each)

    def of_share(self, share: Floats) -> Floats:
        """Bound the change of a sum of some probabilities of a row."""
        if np.any(np.isinf(self.each)):
            return 1.01 * self.total
        by_each = self.each / np.maximum(1.0 - self.each, 0.5) * share
        return np.minimum(1.01 * self.total, by_each)


def terms_of(columns: Columns, sources: Floats, *, by_fours: bool) -> Floats:
    """Bound the roundings of adding a row up.

    A tile's terms, then tile by tile: lists add sources up one by one at worst; tiles carry what
    their sums lose, and round once for a block and once for all blocks.
    Inner entropies of columns err by the moves behind their gates. Logarithms are right to 2e-14
    each, 150 roundings.
    """
    tiles = np.full(len(sources), 2.0) if by_fours else -(-sources // WIDTH)
    return tiles + (WIDTH + ENTRY_ERROR + columns.inner_error + 48)


def summing(terms: Floats, bits: Floats) -> Floats:
    """Bound what adding up -p log2 p rounds."""
    return 4 * terms * ROUNDING * (bits + 2)


def foreseen_width(
    rounding: Rounding, columns: Columns, sources: Floats, *, by_fours: bool
) -> float:
    """Bound the widest interval that rounding can bring about, whatever the bits will be."""
    bits = log2(np.maximum(sources, 1))
    terms = terms_of(columns, sources, by_fours=by_fours)
    slack = rounding.of_bits(bits, sources) + summing(terms, bits)
    return 2 * float(slack.max(initial=0.0))
