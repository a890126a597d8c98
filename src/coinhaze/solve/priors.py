"""Outcomes that stand for many origins each: what their inner distributions add to a row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coinhaze.amounts import Floats, Ints
from coinhaze.measures.intervals import surprise
from coinhaze.observer import AbsorbingChain


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
            self.powers[:, columns],
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
