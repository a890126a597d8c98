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
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from coinhaze.amounts import DIGIT_BITS, Amounts, Floats, Ints
from coinhaze.graph.order_kernels import sparse_rows
from coinhaze.observer import AbsorbingChain
from coinhaze.observer.chain import NO_COLUMN
from coinhaze.observer.policies import POLICIES
from coinhaze.solve.exact.factor import factorise
from coinhaze.solve.exact.fine_kernels import (
    count_roundings,
    divide_moves,
    long_chains,
    main_moves,
    scale_moves,
)
from coinhaze.solve.planner import thresholds
from coinhaze.solve.query import Query
from coinhaze.solve.structure.reduce import ENTRY_ERROR, Reduced
from coinhaze.solve.sums import Sums

if TYPE_CHECKING:
    from coinhaze.solve.structure.columns import Columns

# A scaled move is rounded once; its pair and those of the two units err far less.
SCALED_ERROR = 1.05
# The own absorption: its rounding, the unit's and that of their quotient.
OWN_ERROR = ENTRY_ERROR + 3.0
Pair = tuple[Floats, Floats]


@dataclass(frozen=True, eq=False)
class Fine:
    """A question in units of its own, and the roundings of a solve along its walks."""

    query: Query
    unit: Floats  # of the scored states: what their sums must be multiplied by
    expected: Floats  # roundings along walks from the scored states, on average ...
    maximum: Floats  # ... and along the worst walk

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
    expected, maximum = _roundings(query, columns, error + SCALED_ERROR, main, chains)
    scaled = replace(query, reduced=replace(reduced, data=data, own=own))
    factor = factorise(scaled.reduced)
    if carry:
        factor = factor.carrying(*chains)
    vars(scaled).update(factor=factor, excess=query.excess * unit)
    return Fine(scaled, unit[query.scored], expected, maximum)


def _moved_by(reduced: Reduced) -> Ints:
    """Count the moves that lead to each state."""
    return np.bincount(reduced.indices, minlength=len(reduced))


def _roundings(
    query: Query, columns: Columns, error: Floats, main: Ints, chains: tuple[Ints, Ints]
) -> tuple[Floats, Floats]:
    reduced, column = query.reduced, columns.of_state
    states_of = np.bincount(column[column != NO_COLUMN], minlength=len(columns))
    expected, maximum = count_roundings(
        reduced.indptr, reduced.indices, reduced.data, error, reduced.own, OWN_ERROR, column,
        states_of, _moved_by(reduced), main, *chains,
    )  # fmt: skip
    return expected[query.scored], maximum[query.scored]


class ExactMoves(NamedTuple):
    """The moves of a reduced chain as pairs of floats, and the relative error of each."""

    value: Floats
    low: Floats
    error: Floats  # times 2^53: nothing, or that of a move that stays as it was rounded


def exact_moves(chain: AbsorbingChain, reduced: Reduced) -> ExactMoves | None:
    """Give the moves of a reduced chain as pairs of floats; None where they are not known so well.

    They are known under the proportional policy without links. Where several nodes with moves that
    round to the same share a state, its moves stay as they are.
    """
    graph, settings = chain.graph, chain.settings
    policy = POLICIES.get(settings.get("policy"))
    known = policy is not None and policy.conserves and not settings.get("links")
    if not known or graph.amounts is None or graph.opening is None:
        return None
    n = len(graph)
    sigma = graph.opening + graph.amounts.total_by(graph.head, n)
    edge, tail = np.empty(len(graph.tail)), np.empty_like(graph.tail)
    numbers = np.arange(len(graph.tail), dtype=np.float64)
    start = sparse_rows(graph.head, graph.tail, numbers, n, tail, edge)
    node_of = _nodes(chain, reduced)
    value, low, as_rounded = divide_moves(
        start, edge.astype(np.int64), graph.tail, *as_pairs(graph.amounts), *as_pairs(sigma),
        node_of, reduced.state, reduced.indptr, reduced.indices, reduced.data,
        reduced.entry_error,
    )  # fmt: skip
    if not as_rounded:
        return None
    shared = np.repeat(node_of < 0, np.diff(reduced.indptr))
    return ExactMoves(value, low, np.where(shared, reduced.entry_error, 0.0))


def _nodes(chain: AbsorbingChain, reduced: Reduced) -> Ints:
    """Give the node each state stands for; none where there are several."""
    alias = (np.diff(chain.Q.indptr) == 1) & (chain.column == NO_COLUMN)
    nodes = np.flatnonzero(reduced.retained & ~alias)
    node_of = np.full(len(reduced), -1)
    state = reduced.state[nodes]
    node_of[state] = nodes
    node_of[np.bincount(state, minlength=len(reduced)) != 1] = -1
    return node_of


def as_pairs(amounts: Amounts) -> Pair:
    """Give amounts that are not negative as sums of two floats, right to 2^-100.

    >>> high, low = as_pairs(Amounts.of([2**80 + 1]))
    >>> int(high[0]) + int(low[0]) == 2**80 + 1
    True
    """
    high, low = np.zeros(len(amounts)), np.zeros(len(amounts))
    if amounts.digits.shape[1] == 1 and amounts.digits.max(initial=0) <= 2**53:
        return amounts.digits[:, 0].astype(np.float64), low
    for k in range(amounts.digits.shape[1] - 1, -1, -1):
        digit = amounts.digits[:, k]
        # The highest digit may have more bits than a float: take it in two parts.
        for part, shift in ((digit >> DIGIT_BITS, k + 1), (digit & ((1 << DIGIT_BITS) - 1), k)):
            term = part.astype(np.float64) * 2.0 ** (DIGIT_BITS * shift)
            total = high + term
            back = total - high
            low += (high - (total - back)) + (term - back)
            high = total
    total = high + low
    return total, low - (total - high)
