"""Acyclic chains with long walks, measured so that rounding does not add up along them.

An account with thousands of receipts is a chain of as many snapshots, and a walk through it rounds
at every one. Each state's row of B is therefore measured in a unit of its own, chosen so that the
likeliest move is a power of two: a product with it is exact. Units are products of exact moves
(two integers divided), known to 106 bits. The longest of such chains of likeliest moves also carry
along what their sums lose. What rounds then is a walk's turns from one chain to another, not its
steps. Proofs: docs/accuracy.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from coinhaze.amounts import Floats, Ints
from coinhaze.observer.chain import NO_COLUMN
from coinhaze.solve.exact.factor import factorise
from coinhaze.solve.exact.fine_kernels import count_roundings, long_chains, main_moves, scale_moves
from coinhaze.solve.exact.moves import ExactMoves
from coinhaze.solve.planner import thresholds
from coinhaze.solve.query import Query
from coinhaze.solve.structure.columns import Columns
from coinhaze.solve.structure.reduce import ENTRY_ERROR, Reduced
from coinhaze.solve.sums import Sums

# A scaled move is rounded once; its pair and those of the two units err far less.
SCALED_ERROR = 1.05
# The own absorption: its rounding, the unit's and that of their quotient.
OWN_ERROR = ENTRY_ERROR + 3.0


@dataclass(frozen=True, eq=False)
class Fine:
    """A question in units of its own, and the roundings of a solve along its walks."""

    query: Query
    unit: Floats  # of the scored states: what their sums must be multiplied by
    expected: Floats  # roundings along walks from the scored states, on average ...
    most: Floats  # ... and along the worst walk

    def restore(self, sums: Sums, orders: Floats) -> None:
        """Bring sums over scaled rows back: m x log2(m x) is m (x log2 x) + m x log2 m."""
        unit = self.unit
        sums.entropy[:] = unit * (sums.entropy - np.log2(unit) * sums.mass)
        for values in (sums.mass, sums.prior, sums.top, sums.elsewhere):
            values *= unit
        sums.powers[:] *= unit[:, None] ** orders


def plain_roundings(query: Query, columns: Columns) -> tuple[Floats, Floats]:
    """Bound the roundings of tiles along walks of an acyclic chain: on average, and at worst."""
    none = np.full(len(query.reduced), -1)
    return _roundings(query, columns, query.reduced.entry_error, none, (none, none))


def fine(query: Query, columns: Columns, exact: ExactMoves, *, carry: bool) -> Fine:
    """Measure an acyclic chain in units of its own, given its exact moves.

    `carry`: long chains carry along what their sums lose.
    """
    reduced = query.reduced
    value, low, error = exact
    main = main_moves(reduced.indptr, value, error, _moved_by(reduced) > 0)
    data, own, unit = scale_moves(reduced.indptr, reduced.indices, value, low, reduced.own, main)
    none = np.full(len(reduced), -1)
    chains = (
        long_chains(reduced.indptr, reduced.indices, main, thresholds.MIN_CARRIED_CHAIN)
        if carry
        else (none, none)
    )
    expected, most = _roundings(query, columns, error + SCALED_ERROR, main, chains)
    scaled = replace(query, reduced=replace(reduced, data=data, own=own))
    factor = factorise(scaled.reduced)
    if carry:
        factor = factor.carrying(*chains)
    vars(scaled).update(factor=factor, excess=query.excess * unit)
    return Fine(scaled, unit[query.scored], expected, most)


def _moved_by(reduced: Reduced) -> Ints:
    """Count the moves that lead to each state."""
    return np.bincount(reduced.indices, minlength=len(reduced))


def _roundings(
    query: Query, columns: Columns, error: Floats, main: Ints, chains: tuple[Ints, Ints]
) -> tuple[Floats, Floats]:
    reduced, column = query.reduced, columns.of_state
    states_of = np.bincount(column[column != NO_COLUMN], minlength=len(columns))
    expected, most = count_roundings(
        reduced.indptr, reduced.indices, reduced.data, error, reduced.own, OWN_ERROR, column,
        states_of, _moved_by(reduced), main, *chains,
    )  # fmt: skip
    return expected[query.scored], most[query.scored]
