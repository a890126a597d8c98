"""Unrolled chains: the same rows of B, without cycles."""

from __future__ import annotations

import numpy as np
import pytest

from coinhaze import absorbing_chain, transaction_graph
from coinhaze.solve.exact.triangles_kernels import gather_rows, place_rows
from coinhaze.solve.query import Query
from solve.dense import absorption
from solve.economies import random_transfers


@pytest.mark.parametrize("time", ["stationary", "temporal"])
@pytest.mark.parametrize("seed", range(5))
def test_moves_give_the_rows_of_b(time: str, seed: int) -> None:
    graph = transaction_graph(random_transfers(40, 120, seed), time=time)  # type: ignore[arg-type]
    chain = absorbing_chain(graph)
    query = Query.of(chain, np.flatnonzero(graph.sinks))
    moves = query.moves
    columns = moves.columns(query.reduced.column)
    b = np.zeros((len(moves), len(chain.outcomes)))
    for i in range(len(moves)):
        if columns[i] >= 0:
            b[i, columns[i]] = moves.own[i]
        for e in range(moves.indptr[i], moves.indptr[i + 1]):
            assert moves.indices[e] < i
            b[i] += moves.data[e] * b[moves.indices[e]]
    exact, _ = absorption(chain, np.ones(len(chain), dtype=np.bool_))
    got = b[moves.node[query.scored]][query.row_of]
    np.testing.assert_allclose(got, exact[query.rows], rtol=1e-9, atol=1e-15)


def test_rows_are_placed_as_their_triples_are_gathered() -> None:
    rng = np.random.default_rng(3)
    n = 90
    lengths = rng.choice([0, 1, 2, 5, 40], n)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indices = np.concatenate([rng.permutation(n)[:k] for k in lengths])
    values = rng.random(len(indices))
    back = rng.permutation(n)
    place = np.argsort(back)
    rows = np.repeat(np.arange(n), lengths)
    placed = place_rows(indptr, indices, values, place, back)
    gathered = gather_rows(place[rows], place[indices], values, n)
    for one, other in zip(placed, gathered, strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
