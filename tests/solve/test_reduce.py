"""Reduction: what is merged, and that merging changes no answer."""

from __future__ import annotations

import itertools
from dataclasses import fields

import numpy as np
import pytest

import coinhaze
from coinhaze import AccountLedger, absorbing_chain, transaction_graph
from coinhaze.solve.exact.engines import score_exactly
from coinhaze.solve.query import Query
from coinhaze.solve.structure.lump import lump
from coinhaze.solve.structure.reduce import Reduced, reduce_chain
from coinhaze.solve.structure.reduce_kernels import (
    find_equal,
    is_in_order,
    number_in_order,
    turn,
)
from solve.economies import random_transfers


def test_nodes_with_the_same_moves_are_one_state() -> None:
    rows = [
        ("a", "x", 3),
        ("b", "x", 1),
        ("a", "y", 6),
        ("b", "y", 2),
        ("a", "z", 1),
        ("b", "z", 1),
    ]
    graph = transaction_graph(AccountLedger.from_transfers(rows))
    chain = absorbing_chain(graph)
    nodes = np.array([graph.names.node(n) for n in "xyz"])
    query = Query.of(chain, nodes)
    x, y, z = query.reduced.state[nodes]
    assert x == y != z
    assert len(query.reduced) == 4
    scores = coinhaze.score(chain, nodes=["x", "y", "z"])
    assert scores.bits[0] == scores.bits[1] == pytest.approx(0.811278, abs=1e-6)
    assert scores.bits[2] == 1.0


def test_sources_with_the_same_moves_stay_apart() -> None:
    ledger = AccountLedger.from_transfers([("a", "x", 1), ("a", "y", 1)])
    scores = coinhaze.score(ledger, nodes=["x", "y"], opening={"a": 2, "x": 3, "y": 3})
    assert scores.to_arrow()["top_source"].to_pylist() == ["x", "y"]
    assert scores.top_probability.tolist() == [0.75, 0.75]


def test_equal_moves_by_ways_of_unequal_length_keep_their_steps() -> None:
    rows = [("a", "x", 1), ("b", "x", 1), ("a", "m", 1), ("m", "y", 1), ("b", "y", 1)]
    graph = transaction_graph(AccountLedger.from_transfers(rows))
    scores = coinhaze.score(graph, nodes=["x", "y"])
    assert scores.bits.tolist() == [1.0, 1.0]
    assert scores.steps.tolist() == [2.0, 2.5]


@pytest.mark.parametrize("time", ["stationary", "temporal"])
@pytest.mark.parametrize("seed", range(4))
def test_merging_changes_no_answer(time: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    amounts = [1, 2, 2, 4]
    rows = [
        (f"a{int(rng.integers(12))}", f"a{int(rng.integers(60))}", int(rng.choice(amounts)))
        for _ in range(160)
    ]
    ledger = AccountLedger.from_transfers(rows)
    chain = absorbing_chain(transaction_graph(ledger, time=time))  # type: ignore[arg-type]
    nodes = np.flatnonzero(chain.graph.sinks)
    merged, apart = (
        score_exactly(
            chain,
            nodes,
            method="",
            lumped=lump(Query.of(chain, nodes, merge=merge), np.zeros(0), merge=merge),
        )
        for merge in (True, False)
    )
    np.testing.assert_allclose(merged.bits, apart.bits, atol=1e-12)
    np.testing.assert_allclose(merged.steps, apart.steps, rtol=1e-12)
    assert np.array_equal(merged.sources, apart.sources)
    assert len(np.unique(Query.of(chain, nodes).row_of)) < len(nodes)


def test_equal_rows_are_found_as_a_dictionary_finds_them() -> None:
    rng = np.random.default_rng(5)
    n = 400
    lengths = rng.choice([0, 1, 2, 3, 40], n)
    start = np.concatenate([[0], np.cumsum(lengths)])
    to = np.concatenate([rng.permutation(50)[:k] for k in lengths]).astype(np.int64)
    value = rng.choice([0.25, 0.5, 0.125], len(to))
    can = rng.random(n) < 0.8
    rows = [
        tuple(sorted(zip(to[a:b].tolist(), value[a:b].tolist(), strict=True)))
        for a, b in itertools.pairwise(start)
    ]
    first: dict[object, int] = {}
    expected = [first.setdefault(rows[i], i) if can[i] else i for i in range(n)]
    assert find_equal(start, to, value, np.ones(len(to)), can).tolist() == expected


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_moves_in_order_are_reduced_as_any_others_are(seed: int, merge: bool) -> None:
    graph = transaction_graph(random_transfers(30, 200, seed), time="temporal")
    chain = absorbing_chain(graph)
    rows = np.flatnonzero(graph.sinks)[::2]
    quick, slow = (
        reduce_chain(chain, rows, merge=merge, ordered=ordered) for ordered in (True, False)
    )
    assert merge == bool(quick.extra_steps.max() > 0)
    assert len(quick) < len(chain)
    for field in fields(Reduced):
        one, other = getattr(quick, field.name), getattr(slow, field.name)
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)


def test_a_source_with_one_move_is_no_alias() -> None:
    # Node 0 ends, 1 is a source that moves to it, 2 and 3 stand for 1, 4 for 0; 5 is not kept.
    indptr, indices = np.array([0, 0, 1, 2, 3, 4, 5]), np.array([0, 1, 2, 0, 4], dtype=np.int32)
    column = np.array([0, 1, -1, -1, -1, -1])
    retained = np.array([True, True, True, True, True, False])
    number, extra, states = number_in_order(indptr, indices, column, retained, True)
    assert number.tolist() == [0, 1, 1, 1, 0, -1]
    assert extra.tolist() == [0, 0, 1, 2, 1, 0]
    assert states.tolist() == [0, 1]
    number, extra, states = number_in_order(indptr, indices, column, retained, False)
    assert number.tolist() == [0, 1, 2, 3, 4, -1]
    assert not extra.any()
    assert states.tolist() == [0, 1, 2, 3, 4]


def test_moves_are_turned_round() -> None:
    chain = absorbing_chain(transaction_graph(random_transfers(30, 90, 3)))
    start, back = turn(chain.Q.indptr, chain.Q.indices, len(chain))
    turned = chain.Q.T.tocsr()
    turned.sort_indices()
    assert np.array_equal(start, turned.indptr)
    assert np.array_equal(back, turned.indices)
    assert not is_in_order(chain.Q.indptr, chain.Q.indices)
    temporal = absorbing_chain(transaction_graph(random_transfers(30, 90, 3), time="temporal"))
    assert is_in_order(temporal.Q.indptr, temporal.Q.indices)
