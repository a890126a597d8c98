"""Sums over the outcomes of each scored state, all that is kept of B, and what outcomes add to it.

An outcome may stand for many origins, which have a distribution of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from coinhaze.amounts import Floats, Ints
from coinhaze.measures.intervals import surprise
from coinhaze.observer import AbsorbingChain
from coinhaze.observer.chain import NO_COLUMN


@dataclass(frozen=True, eq=False)
class Priors:
    """For each column its inner entropy, largest part, sums of powers and number of origins."""

    bits: Floats  # of a history ...
    inner: Floats  # ... and of what was folded into the column
    top: Floats
    powers: Floats  # orders x outcomes
    count: Floats

    @classmethod
    def of(cls, chain: AbsorbingChain, orders: Floats) -> Priors:
        """Take the histories of a chain; an outcome without one is a single origin."""
        n = len(chain.outcomes)
        bits, top, count = np.zeros(n), np.ones(n), np.ones(n)
        powers = np.ones((len(orders), n))
        for column, q in chain.history.items():
            bits[column] = float(surprise(q).sum())
            top[column] = q.max()
            count[column] = len(q)
            powers[:, column] = [(q**o).sum() for o in orders]
        return cls(bits, np.zeros(n), top, powers, count)

    def take(self, columns: Ints) -> Priors:
        """Select outcomes."""
        return Priors(
            self.bits[columns],
            self.inner[columns],
            self.top[columns],
            np.ascontiguousarray(self.powers[:, columns]),  # or kernels are compiled once more
            self.count[columns],
        )

    @property
    def total(self) -> Floats:
        """Give the whole inner entropy of each column."""
        return self.bits + self.inner

    def expanded(self, chain: AbsorbingChain, orders: Floats, likeliest: Ints) -> Priors:
        """Put the histories of a chain in, whose outcomes are columns by themselves."""
        if not chain.history:
            return self
        theirs = Priors.of(chain, orders).take(likeliest)
        many = np.isin(likeliest, list(chain.history))
        return Priors(
            np.where(many, theirs.bits, 0.0),
            self.inner,
            np.where(many, theirs.top, self.top),
            np.where(many, theirs.powers, self.powers),
            np.where(many, theirs.count, self.count),
        )


@dataclass(frozen=True, eq=False)
class Sums:
    """What one engine found: parts over some outcomes add up to the whole."""

    entropy: Floats  # of the outcomes but `elsewhere`
    mass: Floats  # likewise
    prior: Floats  # what inner distributions of outcomes add
    top: Floats
    top_column: Ints
    powers: Floats  # rows x orders
    elsewhere: Floats
    missing: Floats  # mass dropped on the way ...
    above: Floats  # ... and bounds on what it adds to the entropy
    below: Floats
    slack: Floats  # bound on the rounding of inner entropies found on the way
    tail: Floats  # estimate of what dropped mass adds to the entropy

    @classmethod
    def zeros(cls, rows: int, orders: int) -> Sums:
        """Make sums to begin with."""
        return cls(
            entropy=np.zeros(rows),
            mass=np.zeros(rows),
            prior=np.zeros(rows),
            top=np.zeros(rows),
            top_column=np.full(rows, NO_COLUMN),
            powers=np.zeros((rows, orders)),
            elsewhere=np.zeros(rows),
            missing=np.zeros(rows),
            above=np.zeros(rows),
            below=np.zeros(rows),
            slack=np.zeros(rows),
            tail=np.zeros(rows),
        )

    @classmethod
    def of_tiles(cls, rows: int, orders: int) -> Sums:
        """Make sums that tiles fill in; they drop nothing, and so have none of what is dropped."""
        none = np.zeros(0)
        return cls(
            entropy=np.empty(rows),
            mass=np.empty(rows),
            prior=np.empty(rows),
            top=np.empty(rows),
            top_column=np.empty(rows, dtype=np.int64),
            powers=np.empty((rows, orders)),
            elsewhere=np.empty(rows),
            missing=none,
            above=none,
            below=none,
            slack=none,
            tail=none,
        )

    @classmethod
    def size(cls, rows: int, orders: int = 0) -> int:
        """Give the bytes that sums of so many rows take."""
        return 8 * rows * (len(fields(cls)) - 1 + orders)

    def arrays(self) -> tuple[Floats | Ints, ...]:
        """Give what the kernels fill, in their order."""
        return (
            self.entropy, self.mass, self.prior, self.top, self.top_column, self.powers,
            self.elsewhere, self.missing, self.above, self.below, self.slack, self.tail,
        )  # fmt: skip

    def part(self, rows: slice) -> Sums:
        """Give some of the rows: the same memory."""
        return Sums(*(values[rows] for values in self.in_order()))

    def in_order(self) -> tuple[Any, ...]:
        """Give all of it, in the order it is declared in."""
        return tuple(getattr(self, field.name) for field in fields(self))

    def add(self, other: Sums) -> None:
        """Take another part's outcomes in; of equal largest entries the earlier one stays."""
        better = other.top > self.top
        self.top[better] = other.top[better]
        self.top_column[better] = other.top_column[better]
        for mine, theirs in zip(self.arrays(), other.arrays(), strict=True):
            if mine is not self.top and mine is not self.top_column:
                mine += theirs
