"""The query of a solve: rows of a chain, and the states of its reduced form that answer them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.errors import AccuracyError
from coinhaze.observer import AbsorbingChain
from coinhaze.solve.exact.factor import Factor, factorise
from coinhaze.solve.planner import thresholds
from coinhaze.solve.structure.moves import Moves
from coinhaze.solve.structure.reduce import Reduced, reduce_chain, retained_excess
from coinhaze.solve.structure.reduce_kernels import number_scored


@dataclass(frozen=True, eq=False)
class Query:
    """Rows, the reduced chain that answers them, and the states scored."""

    chain: AbsorbingChain
    rows: Ints
    reduced: Reduced
    answered: Bools  # which rows have an answer
    scored: Ints  # the states that hold those answers ...
    row_of: Ints  # ... and which of them each answered row has
    missing: float = thresholds.EXACT_MISSING  # what sweeps over cores may leave out of a row

    @classmethod
    def of(
        cls,
        chain: AbsorbingChain,
        rows: Ints,
        *,
        merge: bool = True,
        missing: float = thresholds.EXACT_MISSING,
    ) -> Query:
        """Reduce the chain to what the rows need."""
        return cls.by(chain, rows, reduce_chain(chain, rows, merge=merge), missing=missing)

    @classmethod
    def by(cls, chain: AbsorbingChain, rows: Ints, reduced: Reduced, *, missing: float) -> Query:
        """Find the states of a reduced chain that answer the rows."""
        answered, scored, row_of = number_scored(reduced.state, rows, len(reduced))
        return cls(chain, rows, reduced, answered, scored, row_of, missing)

    @cached_property
    def factor(self) -> Factor:
        """The factors to solve with."""
        return factorise(self.reduced, missing=self.missing)

    @cached_property
    def moves(self) -> Moves:
        """The chain as moves without cycles."""
        if self.reduced.acyclic:
            return Moves.straight(self.reduced)
        return Moves.unrolled(self.reduced, self.factor)

    def spread(self, values: Floats | Ints, missing: float = np.nan) -> Floats:
        """Spread values of scored states over the requested rows, null where there is no answer."""
        if len(self.row_of) == len(self.rows):
            everywhere: Floats = values.astype(np.float64, copy=False).take(self.row_of)
            return everywhere
        result = np.full(len(self.rows), missing)
        result[self.answered] = values[self.row_of]
        return result

    @cached_property
    def steps_by_state(self) -> Floats:
        """The expected steps of every scored state."""
        by_state: Floats = self.factor.solve(self.reduced.cost)[self.scored]
        if not np.all(np.isfinite(by_state)):
            raise AccuracyError("walks are longer than a float can count: no score is given")
        return by_state

    def steps(self) -> Floats:
        """Give the expected steps of every requested row."""
        return self.spread(self.steps_by_state) + self.reduced.extra_steps

    @cached_property
    def excess(self) -> Floats:
        """Give x of x^T B = b for every state; all zero where the law does not apply."""
        total = np.zeros(len(self.reduced))
        if self.chain.conserves:
            x, retained = retained_excess(self.chain, self.reduced.retained), self.reduced.retained
            np.add.at(total, self.reduced.state[retained], x[retained])
        return total
