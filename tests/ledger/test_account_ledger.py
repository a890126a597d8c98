import dataclasses
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from coinhaze.errors import InputError, LedgerError, UnknownName
from coinhaze.ledger import AccountLedger

ZERO = "0x" + "0" * 40


def rows(ledger: AccountLedger) -> list[tuple[str, str, int]]:
    table = ledger.tables()["transfers"].to_pylist()
    return [(r["from"], r["to"], int(r["amount"])) for r in table]


def test_transfers_come_back_as_they_were_given() -> None:
    given: list[tuple[str, str, int | str]] = [("a", "b", 5), ("b", "a", "7"), ("a", "b", 5)]
    ledger = AccountLedger.from_transfers(given)
    assert rows(ledger) == [("a", "b", 5), ("b", "a", 7), ("a", "b", 5)]
    assert ledger.accounts.to_pylist() == ["a", "b"]
    assert len(ledger) == 3


def test_no_transfers_are_an_empty_ledger() -> None:
    assert rows(AccountLedger.from_transfers([])) == []


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_arrow_columns_are_read(kind: pa.DataType) -> None:
    ledger = AccountLedger.from_columns(
        pa.array(["a", "b"], kind), pa.array(["b", "c"], kind), pa.array(["5", "6"], kind)
    )
    assert rows(ledger) == [("a", "b", 5), ("b", "c", 6)]


def test_chunked_columns_are_read() -> None:
    names = pa.chunked_array([["a"], ["b"]])
    ledger = AccountLedger.from_columns(names, names, pa.chunked_array([["5"], ["6"]]))
    assert rows(ledger) == [("a", "a", 5), ("b", "b", 6)]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint64()])
def test_arrow_integers_are_amounts(kind: pa.DataType) -> None:
    ledger = AccountLedger.from_columns(["a"], ["b"], pa.array([5], kind))
    assert rows(ledger) == [("a", "b", 5)]


def test_unsigned_amounts_above_int64_are_exact() -> None:
    ledger = AccountLedger.from_columns(["a"], ["b"], pa.array([2**64 - 1], pa.uint64()))
    assert rows(ledger) == [("a", "b", 2**64 - 1)]


def test_the_largest_amount_is_exact() -> None:
    ledger = AccountLedger.from_transfers([("a", "b", 2**256 - 1), ("a", "b", str(2**256 - 1))])
    assert [amount for _, _, amount in rows(ledger)] == [2**256 - 1] * 2


@pytest.mark.parametrize(
    ("amount", "rule"),
    [
        (-1, "amount is negative"),
        ("-1", "amount is negative"),
        (1.5, "amount is not a whole number"),
        (1.0, "amount is not a whole number"),
        (float("nan"), "amount is not a number"),
        (float("inf"), "amount is not a number"),
        ("", "amount is missing"),
        (True, "amount is not a number"),
        (2**256, "amount is above 2^256 - 1"),
        ("1e18", "amount is not a whole number"),
        (b"5", "amount is not a number"),
        ([5], "amount is not a number"),
    ],
)
def test_an_amount_that_is_none_is_refused(amount: Any, rule: str) -> None:
    with pytest.raises(LedgerError) as caught:
        AccountLedger.from_transfers([("a", "b", 1), ("a", "b", amount)])
    assert str(caught.value).startswith(f"row 1: {rule}")
    assert repr(amount) in str(caught.value)


def test_a_missing_amount_is_refused() -> None:
    missing: Any = None
    with pytest.raises(LedgerError, match="row 1: amount is missing"):
        AccountLedger.from_transfers([("a", "b", 1), ("a", "b", missing)])


@pytest.mark.parametrize(("amount", "fault"), [(-2, "is negative"), (None, "is missing")])
def test_a_column_of_integers_holds_amounts_alone(amount: int | None, fault: str) -> None:
    names = pa.array(["a", "b"])
    with pytest.raises(LedgerError, match=f"row 1: amount {fault}"):
        AccountLedger.from_columns(names, names, pa.array([1, amount], pa.int64()))


@pytest.mark.parametrize("letter", ["\x00", "\x1f", "\x7f"])
def test_a_name_with_a_control_character_is_refused(letter: str) -> None:
    with pytest.raises(LedgerError, match="row 1: to holds a control character"):
        AccountLedger.from_transfers([("a", "b", 1), ("a", f"b{letter}", 1)])


@pytest.mark.parametrize("amount", [np.int64(5), np.uint8(5), Decimal(5)])
def test_a_whole_number_of_another_type_is_read_or_refused_for_its_type(amount: Any) -> None:
    try:
        assert rows(AccountLedger.from_transfers([("a", "b", amount)])) == [("a", "b", 5)]
    except LedgerError as error:
        assert "above 2^256" not in str(error)  # noqa: PT017


@pytest.mark.parametrize("column", ["from", "to"])
@pytest.mark.parametrize("name", ["", None])
def test_a_missing_name_is_refused(column: str, name: Any) -> None:
    pair = (name, "b") if column == "from" else ("a", name)
    with pytest.raises(LedgerError, match=f"row 1: {column} is missing"):
        AccountLedger.from_transfers([("a", "b", 1), (*pair, 1)])


def test_a_name_that_is_no_text_is_refused() -> None:
    name: Any = 5
    with pytest.raises(InputError, match="5"):
        AccountLedger.from_transfers([("a", "b", 1), (name, "b", 1)])


@pytest.mark.parametrize(
    "columns",
    [
        (["a"], ["b", "c", "d"], [1, 2]),
        (["a", "b", "c"], ["d"], [1, 2]),
        (["a", "b"], ["b", "c"], [1]),
        (["a"], ["b"], [1, 2]),
        (["a", "b"], ["c"], [1]),
    ],
)
def test_columns_of_unequal_length_are_refused(
    columns: tuple[list[str], list[str], list[int]],
) -> None:
    with pytest.raises(InputError, match=r"length|rows"):
        AccountLedger.from_columns(*columns)


@pytest.mark.parametrize("extra", [{"ids": ["x"]}, {"fees": [1]}, {"times": pa.array([1])}])
def test_further_columns_of_unequal_length_are_refused(extra: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"length|rows"):
        AccountLedger.from_columns(["a", "b"], ["b", "c"], [1, 2], **extra)


@pytest.mark.parametrize("fee", [-1, 1.5, None, "", "1e3", 2**256])
def test_a_fee_that_is_none_is_refused(fee: Any) -> None:
    with pytest.raises(LedgerError, match="row 1: fee is"):
        AccountLedger.from_columns(["a", "b"], ["b", "c"], [1, 2], fees=[0, fee])


def test_one_id_with_two_contents_is_refused() -> None:
    with pytest.raises(LedgerError, match=r"t:0.*same id|same id.*t:0"):
        AccountLedger.from_columns(["a", "a"], ["b", "b"], [1, 2], ids=["t:0", "t:0"])


def test_identical_rows_with_one_id_are_merged() -> None:
    ledger = AccountLedger.from_columns(
        ["a", "b", "a"], ["b", "c", "b"], [1, 2, 1], ids=["t:0", "t:1", "t:0"]
    )
    assert rows(ledger) == [("a", "b", 1), ("b", "c", 2)]
    ledger = AccountLedger.from_columns(
        ["a", "a", "b"], ["b", "b", "c"], [1, 1, 2], ids=["t:0", "t:0", "t:1"], fees=[3, 3, 4]
    )
    assert rows(ledger) == [("a", "b", 1), ("b", "c", 2)]
    assert ledger.fees is not None
    assert ledger.fees.ints() == [3, 4]


def test_transfers_go_by_their_id_or_their_row() -> None:
    plain = AccountLedger.from_transfers([("a", "b", 1), ("b", "c", 2)])
    named = AccountLedger.from_columns(["a", "b"], ["b", "c"], [1, 2], ids=["t:0", "t:4"])
    assert plain.transfer_ids().to_pylist() == ["0", "1"]
    assert named.transfer_ids().to_pylist() == ["t:0", "t:4"]
    assert plain.payment_rows(["1", "0"]).tolist() == [1, 0]
    assert named.payment_rows(["t:4"]).tolist() == [1]
    with pytest.raises(UnknownName, match="'2'"):
        plain.payment_rows(["2"])


@pytest.mark.parametrize("name", [ZERO, "0" * 40])
def test_the_zero_address_is_known_with_and_without_prefix(name: str) -> None:
    ledger = AccountLedger.from_transfers([(name, "0", 1)])
    assert ledger.is_zero_address().tolist() == [True, False]


def test_a_ledger_cannot_be_changed() -> None:
    ledger = AccountLedger.from_transfers([("a", "b", 1)])
    with pytest.raises(dataclasses.FrozenInstanceError):
        ledger.sender = ledger.receiver  # type: ignore[misc]
    for column in (ledger.sender, ledger.receiver, ledger.amounts.digits):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1


def test_a_change_to_the_given_lists_does_not_reach_the_ledger() -> None:
    senders, receivers, amounts = ["a"], ["b"], np.array([5])
    ledger = AccountLedger.from_columns(senders, receivers, pa.array(amounts))
    senders[0], amounts[0] = "x", 9
    assert rows(ledger) == [("a", "b", 5)]
