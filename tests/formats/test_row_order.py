"""Rows are put in order by what orders them, as the slow twin does it."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coinhaze.errors import LedgerError
from coinhaze.formats.transfers.row_order import Key, OrderColumns, put_in_order
from formats.order_twin import Keys, in_order


def keyed(files: list[list[Keys]], *names: str) -> tuple[list[int], list[Key]]:
    rows = [key for keys in files for key in keys]
    columns = [Key(n, np.array([r[k] for r in rows], np.int64)) for k, n in enumerate(names)]
    return [len(keys) for keys in files], columns


small = st.integers(0, 3)
tables = st.lists(st.lists(st.tuples(small, small), max_size=7), min_size=1, max_size=3)


@settings(max_examples=400, deadline=None)
@given(tables)
def test_rows_stand_where_the_twin_puts_them(files: list[list[Keys]]) -> None:
    lengths, (height, index) = keyed(files, "height", "log_index")
    found = put_in_order(OrderColumns(lengths, [height], [index]), str)
    expected, undecided = in_order(files)
    rows = list(range(sum(lengths))) if found.rows is None else found.rows.tolist()
    assert rows == expected
    assert (found.rows is None) == (expected == sorted(expected))
    counted = [int(m[1]) for note in found.notes if (m := re.match("(.+) rows share", note))]
    assert sum(counted) == undecided


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(small, small), min_size=2, max_size=8))
def test_columns_that_disagree_are_refused_and_name_two_such_rows(rows: list[Keys]) -> None:
    lengths, when = keyed([rows], "height", "time")
    wrong = {
        (a, b)
        for a, one in enumerate(rows)
        for b, other in enumerate(rows)
        if one[0] < other[0] and one[1] > other[1]
    }
    if not wrong:
        put_in_order(OrderColumns(lengths, when), str)
        return
    with pytest.raises(LedgerError, match=r"height says .* time that it comes before") as caught:
        put_in_order(OrderColumns(lengths, when), str)
    after, before = re.findall(r"^(\d+): .* comes after (\d+),", str(caught.value))[0]
    assert (int(before), int(after)) in wrong


@settings(max_examples=200, deadline=None)
@given(st.permutations(range(8)), st.lists(st.integers(0, 2), min_size=8, max_size=8))
def test_steps_order_the_rows_of_a_transaction_which_stand_together(
    order: list[int], groups: list[int]
) -> None:
    step, group = np.array(order, np.int64), np.array(groups, np.int64)
    found = put_in_order(OrderColumns([8], step=Key("step", step), group=group), str)
    rows = list(range(8)) if found.rows is None else found.rows.tolist()
    assert sorted(rows) == list(range(8))
    for number in set(groups):
        places = [k for k, row in enumerate(rows) if groups[row] == number]
        assert places == list(range(places[0], places[0] + len(places)))
        steps = [order[rows[k]] for k in places]
        assert steps == sorted(steps)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), small), min_size=1, max_size=8),
    st.booleans(),
)
def test_nonces_order_the_rows_of_one_sender_and_no_others(
    rows: list[tuple[int, int]], timed: bool
) -> None:
    sender = np.array([s for s, _ in rows], np.int64)
    nonce = np.array([n for _, n in rows], np.int64)
    when = [Key("time", np.zeros(len(rows), np.int64))] if timed else []
    found = put_in_order(
        OrderColumns([len(rows)], when, nonce=Key("nonce", nonce), sender=sender), str
    )
    order = list(range(len(rows))) if found.rows is None else found.rows.tolist()
    for who in set(sender.tolist()):
        of_one = [nonce[row] for row in order if sender[row] == who]
        assert of_one == sorted(of_one)
    # Who comes when is left as it was, or turned round as a whole.
    assert [sender[row] for row in order] in (sender.tolist(), sender.tolist()[::-1])


def test_a_nonce_against_time_is_refused() -> None:
    columns = OrderColumns(
        [2],
        [Key("time", np.array([1, 2]))],
        nonce=Key("nonce", np.array([9, 8])),
        sender=np.array([0, 0]),
    )
    with pytest.raises(LedgerError, match=r"^1: time says .* after 0, nonce that it comes before"):
        put_in_order(columns, str)


def test_rows_without_a_time_stay_between_their_neighbours_or_are_refused() -> None:
    missing = np.array([False, True, False, False])
    for times, rows in (([1, 0, 2, 3], None), ([3, 0, 2, 1], [3, 2, 1, 0])):
        found = put_in_order(
            OrderColumns([4], [Key("time", np.array(times))], unplaced=missing), str
        )
        assert (found.rows if rows is None else found.rows.tolist()) == rows  # type: ignore[union-attr]
        assert "1 row without a time" in found.notes[-1]
    with pytest.raises(LedgerError, match=r"^1: time is missing"):
        put_in_order(
            OrderColumns([4], [Key("time", np.array([2, 0, 1, 3]))], unplaced=missing), str
        )


def test_numbers_beyond_doubles_are_distinguished() -> None:
    large = np.array([2**62 + 1, 2**62])
    found = put_in_order(OrderColumns([2], [Key("height", large)]), str)
    assert found.rows is not None
    assert found.rows.tolist() == [1, 0]
