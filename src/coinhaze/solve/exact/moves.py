"""Moves of a chain as they are before they are rounded: two integers divided, to 106 bits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coinhaze.amounts import DIGIT_BITS, Amounts, Floats, Ints
from coinhaze.graph.order_kernels import sparse_rows
from coinhaze.observer import AbsorbingChain
from coinhaze.observer.chain import NO_COLUMN
from coinhaze.observer.policies import POLICIES
from coinhaze.solve.exact.fine_kernels import divide_moves
from coinhaze.solve.structure.reduce import Reduced

Pair = tuple[Floats, Floats]


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
    nodes = np.flatnonzero(reduced.kept & ~alias)
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
