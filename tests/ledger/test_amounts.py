from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from coinhaze import amounts, amounts_kernels
from coinhaze.amounts import LARGEST
from coinhaze.errors import LedgerError
from coinhaze.ledger import Amounts
from coinhaze.ledger.checks import exact_amount

EDGES = sorted(
    {
        sign * (2**power + step)
        for power in (0, 16, 30, 31, 32, 33, 61, 62, 63, 64, 65, 95, 96, 127, 128, 192, 255, 256)
        for step in (-2, -1, 0, 1, 2)
        for sign in (-1, 1)
    }
)
signed = st.one_of(
    st.sampled_from(EDGES),
    st.integers(-(2**33), 2**33),
    st.integers(-(2**64), 2**64),
    st.integers(-(2**260), 2**260),
)
whole = signed.map(abs)
columns = st.lists(signed, max_size=12)
pairs = st.lists(st.tuples(signed, signed), max_size=12)
grouped = st.integers(1, 5).flatmap(
    lambda n: st.tuples(st.just(n), st.lists(st.tuples(st.integers(0, n - 1), signed), max_size=12))
)


def int64(values: list[int]) -> np.typing.NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def split(rows: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [a for a, _ in rows], [b for _, b in rows]


def sign(value: int) -> int:
    return (value > 0) - (value < 0)


@given(columns)
def test_a_column_gives_back_the_integers_it_was_made_of(values: list[int]) -> None:
    column = Amounts.of(values)
    assert column.ints() == values
    assert len(column) == len(values)
    assert [column[row] for row in range(len(values))] == values


@pytest.mark.parametrize("value", EDGES)
def test_every_edge_size_survives_alone_and_beside_small_ones(value: int) -> None:
    assert Amounts.of([value]).ints() == [value]
    assert Amounts.of([1, value, -1, 0]).ints() == [1, value, -1, 0]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=12))
def test_an_array_of_int64_is_read_exactly(values: list[int]) -> None:
    column = Amounts.of(int64(values))
    assert column.ints() == values
    assert (-column).ints() == [-v for v in values]
    assert (column + column).ints() == [2 * v for v in values]


@pytest.mark.parametrize("compiled", [False, True])
@given(grouped, st.data())
def test_what_groups_pay_less_what_they_receive_is_exact(
    compiled: bool, given: tuple[int, list[tuple[int, int]]], data: st.DataObject
) -> None:
    n, rows = given
    tail, values = split(rows)
    head = data.draw(st.lists(st.integers(0, n - 1), min_size=len(rows), max_size=len(rows)))
    with pytest.MonkeyPatch.context() as patch:
        if compiled:
            for name in ("add_by_group", "move_by_group", "take_rows"):
                patch.setattr(amounts, name, getattr(amounts_kernels, name).compiled)
        column = Amounts.of(values)
        moved = column.net_by(int64(tail), int64(head), n)
        into = column.total_by(int64(head), n)
        taken = column.take(int64(list(range(len(rows)))[::-1]))
    paid, received = [0] * n, [0] * n
    for value, a, b in zip(values, tail, head, strict=True):
        paid[a] += value
        received[b] += value
    assert into.ints() == received
    assert moved.ints() == [a - b for a, b in zip(paid, received, strict=True)]
    assert taken.ints() == values[::-1]


@pytest.mark.parametrize("row", [3, -1])
def test_rows_that_are_not_there_cannot_be_taken(row: int) -> None:
    with pytest.raises(IndexError, match="of 3"):
        Amounts.of([1, 2, 3]).take(int64([0, row]))


def test_the_lowest_int64_can_be_negated() -> None:
    assert (-Amounts.of(int64([-(2**63)]))).ints() == [2**63]


@given(st.lists(st.integers(0, 2**64 - 1), max_size=12))
def test_an_array_of_uint64_is_read_exactly_or_refused(values: list[int]) -> None:
    array = np.array(values, dtype=np.uint64)
    try:
        column = Amounts.of(array)
    except (OverflowError, TypeError, ValueError):
        assert any(v >= 2**63 for v in values)
        return
    assert column.ints() == values


def test_a_change_to_the_given_array_does_not_reach_the_column() -> None:
    array = int64([1, 2, 3])
    column = Amounts.of(array)
    array[0] = 99
    assert column.ints() == [1, 2, 3]


def test_a_generator_is_read_once() -> None:
    assert Amounts.of(v for v in (1, 2**200)).ints() == [1, 2**200]


@given(pairs)
def test_addition_and_subtraction_are_those_of_integers(rows: list[tuple[int, int]]) -> None:
    a, b = split(rows)
    assert (Amounts.of(a) + Amounts.of(b)).ints() == [x + y for x, y in rows]
    assert (Amounts.of(a) - Amounts.of(b)).ints() == [x - y for x, y in rows]
    assert (Amounts.of(a) - Amounts.of(a)).signs().tolist() == [0] * len(a)


@given(columns)
def test_negation_is_that_of_integers(values: list[int]) -> None:
    assert (-Amounts.of(values)).ints() == [-v for v in values]
    back = -Amounts.of(values)
    assert (-back).ints() == values


@given(columns)
def test_signs_and_positive_are_those_of_integers(values: list[int]) -> None:
    column = Amounts.of(values)
    assert column.signs().tolist() == [sign(v) for v in values]
    assert column.positive().tolist() == [v > 0 for v in values]
    assert column.where_positive().ints() == [max(v, 0) for v in values]


@given(pairs)
def test_maximum_is_that_of_integers(rows: list[tuple[int, int]]) -> None:
    a, b = split(rows)
    assert Amounts.of(a).maximum(Amounts.of(b)).ints() == [max(x, y) for x, y in rows]


@given(columns, st.data())
def test_take_selects_rows_by_index_and_by_mask(values: list[int], data: st.DataObject) -> None:
    assume(values)
    rows = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=8))
    mask = data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    column = Amounts.of(values)
    assert column.take(int64(rows)).ints() == [values[r] for r in rows]
    kept = column.take(np.array(mask, dtype=np.bool_))
    assert kept.ints() == [v for v, keep in zip(values, mask, strict=True) if keep]


@given(st.lists(columns, min_size=1, max_size=4))
def test_concat_puts_columns_of_any_width_below_one_another(parts: list[list[int]]) -> None:
    joined = Amounts.concat([Amounts.of(p) for p in parts])
    assert joined.ints() == [v for p in parts for v in p]


@given(grouped)
def test_total_by_adds_up_groups(case: tuple[int, list[tuple[int, int]]]) -> None:
    n, rows = case
    groups, values = split(rows)
    expected = [sum(v for g, v in rows if g == k) for k in range(n)]
    assert Amounts.of(values).total_by(int64(groups), n).ints() == expected


@given(st.lists(st.tuples(st.integers(0, 3), signed), max_size=12), columns)
def test_results_of_results_stay_exact(rows: list[tuple[int, int]], more: list[int]) -> None:
    groups, values = split(rows)
    totals = [sum(v for g, v in rows if g == k) for k in range(4)]
    column = Amounts.of(values).total_by(int64(groups), 4)
    joined = Amounts.concat([column, Amounts.of(more)])
    every = [*totals, *more]
    assert joined.signs().tolist() == [sign(v) for v in every]
    assert (joined + joined - joined).ints() == every
    one = np.zeros(len(every), dtype=np.int64)
    assert joined.total_by(one, 1).ints() == [sum(every)]


def test_many_of_the_largest_amount_add_up_exactly() -> None:
    n = 100_000
    column = Amounts.of([LARGEST]).take(np.zeros(n, dtype=np.int64))
    everything = np.zeros(n, dtype=np.int64)
    assert column.total_by(everything, 1).ints() == [n * LARGEST]


def test_doubling_many_times_never_overflows() -> None:
    value, column = -(2**31), Amounts.of([-(2**31), 2**31])
    for _ in range(300):
        value, column = value * 2, column + column
    assert column.ints() == [value, -value]


@given(st.lists(whole, max_size=12))
def test_floats_are_right_to_one_part_in_2_to_the_52(values: list[int]) -> None:
    for got, value in zip(Amounts.of(values).floats().tolist(), values, strict=True):
        assert abs(Fraction(got) - value) <= Fraction(value) / 2**52


@given(columns)
def test_text_is_decimal_digits(values: list[int]) -> None:
    assert Amounts.of(values).text().to_pylist() == [str(v) for v in values]


@given(columns)
def test_arrow_and_back_changes_nothing(values: list[int]) -> None:
    column = Amounts.of(values).to_arrow()
    assert [int(v) for v in column.to_pylist()] == values
    assert Amounts.from_arrow(column).ints() == values
    assert Amounts.from_arrow(pa.chunked_array([column, column])).ints() == values * 2


def test_a_slice_of_packed_amounts_is_read_from_where_it_begins() -> None:
    values = [2**200, 7, 2**64 + 1]
    assert Amounts.from_arrow(Amounts.of(values).packed().slice(1)).ints() == values[1:]


def test_amounts_of_all_satoshi_go_to_arrow_as_int64() -> None:
    assert Amounts.of([21_000_000 * 10**8, 0]).to_arrow().type == pa.int64()


def test_what_does_not_fit_int64_goes_to_arrow_as_text() -> None:
    assert Amounts.of([2**63]).to_arrow().to_pylist() == [str(2**63)]


@pytest.mark.parametrize("width", [pa.int8(), pa.int32(), pa.uint32(), pa.int64()])
def test_arrow_integers_of_other_widths_are_read(width: pa.DataType) -> None:
    assert Amounts.from_arrow(pa.array([0, 100], width)).ints() == [0, 100]


def test_an_arrow_column_of_uint64_above_int64_is_read_exactly_or_refused() -> None:
    try:
        column = Amounts.from_arrow(pa.array([2**64 - 1], pa.uint64()))
    except (OverflowError, ValueError):
        return
    assert column.ints() == [2**64 - 1]


@pytest.mark.parametrize(
    "operation",
    [
        lambda a: a + a,
        lambda a: -a,
        lambda a: a - a,
        lambda a: a.where_positive(),
        lambda a: a.maximum(a),
        lambda a: Amounts.concat([a, a]),
        lambda a: a.total_by(np.zeros(0, dtype=np.int64), 0),
        lambda a: Amounts.from_arrow(a.to_arrow()),
        lambda a: Amounts.from_arrow(a.text()),
    ],
)
def test_an_empty_column_stays_empty(operation: Callable[[Amounts], Amounts]) -> None:
    assert operation(Amounts.of([])).ints() == []
    assert operation(Amounts.zeros(0)).ints() == []


def test_zeros_are_zero_and_groups_without_rows_total_zero() -> None:
    assert Amounts.zeros(3).ints() == [0, 0, 0]
    assert Amounts.of([2**90]).total_by(int64([1]), 3).ints() == [0, 2**90, 0]


def test_operations_leave_their_operands_as_they_were() -> None:
    a, b = Amounts.of([5, -(2**40)]), Amounts.of([2**100, 1])
    for _ in (a + b, a - b, -a, a.maximum(b), a.where_positive(), Amounts.concat([a, b])):
        assert a.ints() == [5, -(2**40)]
        assert b.ints() == [2**100, 1]


def test_digits_refuse_to_be_overwritten() -> None:
    column = Amounts.of([1, 2, 3])
    with pytest.raises(ValueError, match="read-only"):
        column.digits[0, 0] = 99


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0.5", "--decimals N reads N places after a point"),
        ("1,500", "without commas, if they separate thousands"),
        ("5.0e18", "spreadsheet"),
    ],
)
def test_what_mends_an_amount_is_said(text: str, words: str) -> None:
    with pytest.raises(LedgerError, match=words) as caught:
        exact_amount(text, "t.csv:2", field="amount")
    assert ("--decimals" in str(caught.value)) == (text == "0.5")
