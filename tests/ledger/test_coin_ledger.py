import dataclasses
from typing import Any

import pytest

from coinhaze.errors import InputError, LedgerError, UnknownName
from coinhaze.ledger import CoinLedger
from coinhaze.ledger.coins import Input, Output, Transaction

Record = dict[str, Any]

MINED: Record = {"txid": "mined", "outputs": [{"value": 50, "address": "miner"}]}
PAID: Record = {
    "txid": "paid",
    "inputs": [{"txid": "mined", "vout": 0}],
    "outputs": [{"value": 20, "address": "shop"}, {"value": 29, "address": "miner"}],
}


def build(*records: Record | Transaction, **settings: Any) -> CoinLedger:
    return CoinLedger.from_transactions(records, **settings)


def values(ledger: CoinLedger) -> dict[str, int]:
    assert ledger.output_value is not None
    names = ledger.output_names().to_pylist()
    return dict(zip(names, ledger.output_value.ints(), strict=True))


def refused(*records: Record | Transaction, says: list[str], **settings: Any) -> None:
    with pytest.raises(LedgerError) as caught:
        build(*records, **settings)
    for words in says:
        assert words in str(caught.value)


def test_transactions_come_back_as_they_were_given() -> None:
    ledger = build(MINED, PAID)
    assert values(ledger) == {"mined:0": 50, "paid:0": 20, "paid:1": 29}
    assert ledger.tables()["inputs"].to_pylist() == [{"tx": 1, "output": 0}]
    assert ledger.tables()["transactions"]["coinbase"].to_pylist() == [True, False]


def test_records_and_mappings_are_the_same() -> None:
    record = Transaction("paid", (Input("mined", 0),), (Output(20, "shop"), Output(29, "miner")))
    assert build(MINED, record).tables() == build(MINED, PAID).tables()


def test_no_transactions_are_an_empty_ledger() -> None:
    assert len(build()) == 0
    assert all(len(table) == 0 for table in build().tables().values())


def test_an_earlier_coin_is_retained_with_its_value_and_owner() -> None:
    ledger = build({"txid": "t", "inputs": [{"txid": "x", "vout": 7, "value": 5, "address": "a"}]})
    assert values(ledger) == {"x:7": 5}
    assert ledger.inside.tolist() == [False, True]
    assert ledger.owners.to_pylist() == ["a"]


def test_several_coins_of_one_earlier_transaction_are_separate() -> None:
    spent = [{"txid": "x", "vout": n, "value": n + 1} for n in (4, 2)]
    ledger = build({"txid": "t", "inputs": spent})
    assert values(ledger) == {"x:4": 5, "x:2": 3}
    assert ledger.txids.to_pylist() == ["x", "t"]


def test_values_to_the_largest_are_exact() -> None:
    top = 2**256 - 1
    ledger = build(
        {"txid": "a", "outputs": [{"value": top}, {"value": top}]},
        {
            "txid": "b",
            "inputs": [{"txid": "a", "vout": 0}, {"txid": "a", "vout": 1}],
            "outputs": [{"value": top}, {"value": top - 1}, {"value": 1}],
        },
    )
    assert sum(values(ledger).values()) == 4 * top


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (-5, "negative"),
        (1.5, "not a whole number"),
        (float("nan"), "not a number"),
        (True, "not a number"),
        (2**256, "above 2^256 - 1"),
        ("", "missing"),
    ],
)
def test_a_value_that_is_none_is_refused(value: Any, rule: str) -> None:
    bad = {"txid": "t", "outputs": [{"value": 1}, {"value": value}]}
    refused(MINED, bad, says=["transaction t", "output 1", rule, repr(value)])
    bad = {"txid": "t", "inputs": [{"txid": "x", "vout": 0, "value": value}]}
    refused(MINED, bad, says=["transaction t", "input 0", rule, repr(value)])


def test_a_missing_txid_is_refused() -> None:
    for record in ({"outputs": [{"value": 5}]}, {"txid": "", "outputs": [{"value": 5}]}):
        with pytest.raises(InputError, match="txid"):
            build(MINED, record)


def test_an_output_without_the_key_value_is_refused() -> None:
    with pytest.raises(InputError, match="value"):
        build({"txid": "t", "outputs": [{"address": "a"}]})


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(InputError, match="valeu"):
        build({"txid": "t", "outputs": [{"value": 5, "valeu": 5}]})


@pytest.mark.parametrize(
    "record",
    [
        {"txid": 5, "outputs": [{"value": 5}]},
        {"txid": "t", "outputs": [{"value": 5, "address": 5}]},
        {"txid": "t", "outputs": [{"value": 5}], "height": 2**70},
        {"txid": "t", "outputs": [{"value": 5}], "time": 2**70},
        {"txid": "t", "rings": [["no number"]], "outputs": 1},
    ],
)
def test_a_field_of_the_wrong_kind_is_refused(record: Record) -> None:
    with pytest.raises(InputError):
        build(MINED, record)


@pytest.mark.parametrize("vout", [-1, 2**32, 2**70, True, "0"])
def test_a_spent_output_number_out_of_range_is_refused(vout: Any) -> None:
    bad = {"txid": "t", "inputs": [{"txid": "x", "vout": vout, "value": 5}]}
    refused(bad, says=["transaction t", "out of range", repr(vout)])


def test_a_control_character_is_refused_with_its_transaction() -> None:
    bad: Record = {"txid": "t", "outputs": [{"value": 5, "address": "a\0"}]}
    refused(MINED, bad, says=["transaction t", "control character", "a\\x00"])
    bad = {"txid": "t", "inputs": [{"txid": "x\0", "vout": 0, "value": 5}]}
    refused(MINED, bad, says=["transaction t", "control character", "x\\x00"])


def test_spent_twice_is_refused() -> None:
    again = PAID | {"txid": "again"}
    refused(MINED, PAID, again, says=["transaction again", "spent twice", "mined:0", "paid"])


def test_spent_before_made_is_refused() -> None:
    refused(PAID, MINED, says=["transaction paid", "before it is made", "mined:0"])


def test_what_can_never_be_spent_is_not_spent() -> None:
    lost = {"txid": "mined", "outputs": [{"value": 50, "spendable": False}]}
    refused(lost, PAID, says=["transaction paid", "can never be spent", "mined:0"])


def test_a_payment_without_inputs_is_no_coinbase() -> None:
    refused(MINED | {"coinbase": False}, says=["transaction mined", "no inputs given", "50 out"])


def test_two_outputs_with_one_number_are_refused() -> None:
    twice = {"txid": "t", "outputs": [{"value": 5, "vout": 1}, {"value": 6, "vout": 1}]}
    refused(twice, says=["transaction t", "two outputs with one number", "1"])


def test_a_coin_has_one_value() -> None:
    spent = [{"txid": "mined", "vout": 0, "value": 49}]
    says = ["transaction paid", "mined:0 with two values", "49 here, 50 where made"]
    refused(MINED, PAID | {"inputs": spent}, says=says)


def test_a_ring_has_members_with_chances() -> None:
    made = {"txid": "a", "outputs": 2}
    refused(made, {"txid": "b", "rings": [[]]}, says=["transaction b, ring 0", "no member"])
    negative = {"txid": "b", "rings": [["a:0", "a:1"]], "posteriors": [[-0.5, 1.5]]}
    refused(made, negative, says=["transaction b, ring 0", "no distribution"])


def test_outputs_above_inputs_are_refused() -> None:
    bad = PAID | {"outputs": [{"value": 51}]}
    refused(MINED, bad, says=["transaction paid", "outputs above inputs", "51", "50"])


def test_outputs_above_inputs_in_a_window_are_refused() -> None:
    spent = [{"txid": "x", "vout": 0, "value": 5}]
    bad = {"txid": "t", "inputs": spent, "outputs": [{"value": 6}]}
    refused(bad, says=["transaction t", "outputs above inputs", "6", "5"])


def test_what_goes_into_a_pool_counts_as_paid_out() -> None:
    spent = [{"txid": "x", "vout": 0, "value": 5}]
    build({"txid": "t", "inputs": spent, "pools": {"sapling": 5}})
    bad = {"txid": "t", "inputs": spent, "outputs": [{"value": 1}], "pools": {"sapling": 5}}
    refused(bad, says=["transaction t", "outputs above inputs", "6", "5"])


def test_what_comes_out_of_a_pool_counts_as_taken_in() -> None:
    ledger = build({"txid": "t", "outputs": [{"value": 4}], "pools": {"sapling": -5}})
    assert ledger.coinbase.tolist() == [False]
    bad = {"txid": "t", "outputs": [{"value": 6}], "pools": {"sapling": -5}}
    refused(bad, says=["transaction t", "outputs above inputs", "6", "5"])


def test_a_coinbase_that_spends_is_refused() -> None:
    refused(MINED, PAID | {"coinbase": True}, says=["transaction paid", "coinbase"])


def test_an_unknown_coin_without_a_value_is_refused() -> None:
    refused(PAID, says=["transaction paid", "without a value", "mined:0"])


def test_an_unknown_coin_in_a_complete_ledger_is_refused() -> None:
    bad = {"txid": "t", "inputs": [{"txid": "x", "vout": 0, "value": 5}]}
    refused(bad, says=["transaction t", "unknown coin", "x:0"], complete=True)
    assert build(MINED, PAID, complete=True).complete


def test_one_id_with_two_contents_is_refused_and_identical_ones_are_merged() -> None:
    other: Record = {"txid": "mined", "outputs": [{"value": 51, "address": "miner"}]}
    refused(MINED, other, says=["transaction mined", "the same id with other contents", "50", "51"])
    assert build(MINED, PAID, MINED, PAID).tables() == build(MINED, PAID).tables()


def test_an_unknown_pool_is_refused() -> None:
    refused({"txid": "t", "pools": {"mweb": 5}}, says=["transaction t", "unknown pool", "mweb"])
    with pytest.raises(InputError, match="mweb"):
        build(MINED, pool_values={"mweb": 5})


@pytest.mark.parametrize("value", [-1, 1.5, True, 2**256])
def test_a_pool_value_that_is_none_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="sapling"):
        build(MINED, pool_values={"sapling": value})


@pytest.mark.parametrize("flow", [1.5, True, "5", 2**256])
def test_a_pool_flow_that_is_none_is_refused(flow: Any) -> None:
    refused({"txid": "t", "pools": {"sapling": flow}}, says=["transaction t", repr(flow)])


def test_outputs_are_found_by_name_where_they_were_made() -> None:
    ledger = build(MINED, PAID)
    assert ledger.payment_rows(["paid:1", "mined:0"]).tolist() == [2, 0]
    with pytest.raises(UnknownName, match="'paid:2'"):
        ledger.payment_rows(["paid:2"])
    window = build({"txid": "t", "inputs": [{"txid": "x", "vout": 0, "value": 5}]})
    with pytest.raises(UnknownName, match="'x:0'"):
        window.payment_rows(["x:0"])


def test_a_ledger_cannot_be_changed() -> None:
    pool_values = {"sapling": 5}
    ledger = build(MINED, PAID, pool_values=pool_values)
    with pytest.raises(dataclasses.FrozenInstanceError):
        ledger.complete = True  # type: ignore[misc]
    pool_values["sapling"] = 6
    assert ledger.pool_values == {"sapling": 5}
    for column in (ledger.inside, ledger.output_tx, ledger.output_owner, ledger.input_output):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1
