import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from coinhaze.amounts import Ints
from coinhaze.graph.order_kernels import group_rows, merge_pairs, sparse_rows
from coinhaze.graph.temporal_kernels import number_born

PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=60)


def columns(pairs: list[tuple[int, int]]) -> tuple[Ints, Ints]:
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return table[:, 0].copy(), table[:, 1].copy()


@settings(deadline=None)
@given(PAIRS)
def test_pairs_are_numbered_as_if_sorted(pairs: list[tuple[int, int]]) -> None:
    pair, tail, head = merge_pairs(*columns(pairs), 6)
    distinct = sorted(set(pairs))
    assert list(zip(tail.tolist(), head.tolist(), strict=True)) == distinct
    assert pair.tolist() == [distinct.index(p) for p in pairs]


@settings(deadline=None)
@given(PAIRS)
def test_rows_are_grouped_in_their_order(pairs: list[tuple[int, int]]) -> None:
    key, _ = columns(pairs)
    start, order = group_rows(key, 6)
    assert order.tolist() == np.argsort(key, kind="stable").tolist()
    assert start.tolist() == [int((key < k).sum()) for k in range(7)]


@settings(deadline=None)
@given(PAIRS)
def test_sparse_rows_are_those_of_a_dense_matrix(pairs: list[tuple[int, int]]) -> None:
    row, column = columns(sorted(set(pairs), key=lambda p: p[::-1]))
    value = np.arange(1.0, len(row) + 1)
    indices, data = np.empty(len(row), dtype=np.int64), np.empty(len(row))
    start = sparse_rows(row, column, value, 6, indices, data)
    dense = np.zeros((6, 6))
    dense[row, column] = value
    for k in range(6):
        at = slice(start[k], start[k + 1])
        assert indices[at].tolist() == np.flatnonzero(dense[k]).tolist()
        assert data[at].tolist() == dense[k][dense[k] > 0].tolist()


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(-1, 5)), max_size=60))
def test_slots_are_numbered_by_birth(slots: list[tuple[bool, int]]) -> None:
    used = np.array([use for use, _ in slots], dtype=np.bool_)
    born = np.array([step for _, step in slots], dtype=np.int32)
    number = np.full(len(slots), -1)
    found = number_born(used, born, int(born.max(initial=-1)) + 2, number)
    order = sorted(np.flatnonzero(used).tolist(), key=lambda slot: slots[slot][1])
    assert found.tolist() == [slots[slot][1] for slot in order]
    assert [number[slot] for slot in order] == list(range(len(order)))
    assert np.all(number[~used] == -1)
