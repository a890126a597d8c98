from typing import Any

import pytest

from coinhaze.errors import InputError, OpeningError
from coinhaze.graph import TransactionGraph, transaction_graph
from coinhaze.ledger import AccountLedger, CoinLedger
from coinhaze.options import Time
from graph.tables import column, edges

ZERO = "0x" + "0" * 40
Transfers = list[tuple[str, str, int | str]]
CHAIN: Transfers = [("a", "b", 5), ("b", "c", 3)]
both_times = pytest.mark.parametrize("time", ["stationary", "temporal"])


def accounts(transfers: Transfers, **settings: Any) -> TransactionGraph:
    return transaction_graph(AccountLedger.from_transfers(transfers), **settings)


# A table


@both_times
def test_a_table_says_what_every_account_began_with(time: Time) -> None:
    graph = accounts(CHAIN, time=time, opening={"a": 20})
    assert column(graph, "opening") == {"a": 20}
    assert column(graph, "balance") == {"a": 15, "b": 2, "c": 3}


@both_times
def test_an_account_that_received_nothing_is_no_sink_whatever_it_has_left(time: Time) -> None:
    assert set(column(accounts(CHAIN, time=time, opening={"a": 20}), "sink")) == {"b", "c"}


def test_an_account_with_an_entry_is_a_source_even_if_it_is_a_sink() -> None:
    graph = accounts(CHAIN, opening={"a": 5, "c": 9})
    assert column(graph, "opening") == {"a": 5, "c": 9}
    assert column(graph, "balance") == {"b": 2, "c": 12}
    assert set(column(graph, "source")) == {"a", "c"}
    assert "c" in column(graph, "sink")


def test_an_entry_sits_in_the_first_snapshot_and_is_carried_on() -> None:
    graph = accounts(CHAIN, time="temporal", opening={"a": 5, "c": 9})
    assert column(graph, "opening") == {"a": 5, "c:0": 9}
    assert edges(graph) == {("a", "b"): 5, ("b", "c"): 3, ("c:0", "c"): 9}
    assert column(graph, "balance") == {"b": 2, "c": 12}


@both_times
def test_an_entry_of_zero_is_no_source(time: Time) -> None:
    graph = accounts(CHAIN, time=time, opening={"a": 5, "c": 0})
    assert set(column(graph, "source")) == {"a"}


@both_times
def test_entries_are_exact_to_the_largest(time: Time) -> None:
    big = 2**256 - 1
    graph = accounts([("a", "b", big)], time=time, opening={"a": big, "b": big})
    assert sum(column(graph, "opening").values()) == 2 * big
    assert column(graph, "balance") == {"b": 2 * big}


@both_times
@pytest.mark.parametrize(("table", "short"), [({"a": 3}, 2), ({"b": 9}, 5), ({}, 5)])
def test_a_table_below_what_was_spent_is_refused_with_account_and_shortfall(
    time: Time, table: dict[str, int], short: int
) -> None:
    with pytest.raises(OpeningError) as caught:
        accounts(CHAIN, time=time, opening=table)
    assert "opening balance of a " in str(caught.value)
    assert f"{short} short" in str(caught.value)
    assert "top_up" in str(caught.value)


def test_a_table_short_by_one_in_2_to_the_200_is_refused() -> None:
    with pytest.raises(OpeningError, match=r"opening balance of a .* 1 short"):
        accounts([("a", "b", 2**200)], opening={"a": 2**200 - 1})


def test_all_accounts_in_want_are_counted() -> None:
    with pytest.raises(OpeningError, match=r"2 more"):
        accounts([("a", "z", 1), ("b", "z", 1), ("c", "z", 1)], opening={})


def test_a_table_that_is_enough_without_time_may_fall_short_with_it() -> None:
    transfers: Transfers = [("a", "b", 5), ("c", "a", 5)]
    assert column(accounts(transfers, opening={"c": 5}), "opening") == {"c": 5}
    with pytest.raises(OpeningError, match=r"opening balance of a .* 5 short"):
        accounts(transfers, opening={"c": 5}, time="temporal")


@both_times
def test_a_table_can_be_topped_up_to_the_surplus(time: Time) -> None:
    graph = accounts(CHAIN, time=time, opening={"a": 3, "b": 1}, top_up=True)
    assert sorted(column(graph, "opening").values()) == [1, 5]
    assert column(graph, "balance") == {"b": 3, "c": 3}


@both_times
def test_topping_up_leaves_entries_above_the_surplus(time: Time) -> None:
    graph = accounts(CHAIN, time=time, opening={"a": 8}, top_up=True)
    assert column(graph, "opening") == {"a": 8}


@both_times
def test_entries_for_accounts_not_in_the_ledger_are_ignored_and_counted(time: Time) -> None:
    graph = accounts(CHAIN, time=time, opening={"a": 5, "y": 1, "z": 2})
    assert column(graph, "opening") == {"a": 5}
    assert len(graph.notes) == 1
    assert graph.notes[0].startswith("opening balances: 2 ")
    assert "y, z" in graph.notes[0]


@both_times
def test_an_entry_for_what_only_passes_money_on_is_ignored_and_counted(time: Time) -> None:
    ledger = CoinLedger.from_transactions(
        [{"txid": "m", "outputs": [{"value": 5, "address": "a"}, {"value": 3}]}]
    )
    table = {"a": 0, "tx:m": 9, "m:1": 9}
    graph = transaction_graph(ledger, view="address", time=time, opening=table)
    assert column(graph, "opening") == {"tx:m": 8}
    assert graph.notes[0].startswith("opening balances: 2 ")


@both_times
def test_a_table_whose_entries_are_all_known_leaves_no_note(time: Time) -> None:
    assert accounts(CHAIN, time=time, opening={"a": 5, "c": 1}).notes == ()
    assert accounts(CHAIN, time=time).notes == ()


@both_times
@pytest.mark.parametrize("dropped", [("d", "d", 7), ("d", "a", 0), ("a", "d", 0)])
def test_an_account_seen_only_in_dropped_transfers_is_no_node_whatever_the_table_says(
    time: Time, dropped: tuple[str, str, int | str]
) -> None:
    graph = accounts([*CHAIN, dropped], time=time, opening={"a": 5, "d": 9})
    names = graph.tables()["nodes"]["node"].to_pylist()
    assert set(names) == {"a", "b", "c"}
    assert column(graph, "opening") == {"a": 5}


@both_times
def test_the_zero_address_is_no_node_whatever_the_table_says(time: Time) -> None:
    graph = accounts([(ZERO, "a", 5)], time=time, opening={ZERO: 100})
    assert column(graph, "opening") == {"mint:0": 5}
    assert set(graph.tables()["nodes"]["node"].to_pylist()) == {"mint:0", "a"}


@both_times
def test_mints_need_no_entry(time: Time) -> None:
    graph = accounts([(ZERO, "a", 5)], time=time, opening={})
    assert column(graph, "opening") == {"mint:0": 5}


@pytest.mark.parametrize("entry", [-1, 1.5, float("nan"), None, "x", True, 2**256])
def test_an_entry_that_is_no_amount_is_refused_with_its_account(entry: Any) -> None:
    with pytest.raises(InputError, match="opening of c"):
        accounts(CHAIN, opening={"a": 5, "c": entry})


# Coins from before the window


def coin(txid: str, vout: int, value: int, address: str | None) -> dict[str, Any]:
    return {"txid": txid, "vout": vout, "value": value, "address": address}


def out(value: int, address: str | None) -> dict[str, Any]:
    return {"value": value, "address": address}


# a is paid 10 before it spends a coin of 10 that it had before the window.
WINDOW: list[dict[str, Any]] = [
    {"txid": "t", "inputs": [coin("x", 0, 10, "b")], "outputs": [out(10, "a")]},
    {"txid": "u", "inputs": [coin("y", 0, 10, "a")], "outputs": [out(10, "c")]},
]


def window(*more: dict[str, Any], pool_values: Any = None, **settings: Any) -> TransactionGraph:
    ledger = CoinLedger.from_transactions([*WINDOW, *more], pool_values=pool_values)
    return transaction_graph(ledger, **settings)


def test_surplus_sees_only_the_difference() -> None:
    graph = window(view="address")
    assert column(graph, "opening") == {"b": 10}
    assert set(column(graph, "sink")) == {"c"}


def test_observed_takes_earlier_coins_for_the_opening_of_their_address() -> None:
    graph = window(view="address", opening="observed")
    assert column(graph, "opening") == {"a": 10, "b": 10}
    assert column(graph, "balance") == {"a": 10, "c": 10}
    assert set(column(graph, "sink")) == {"a", "c"}
    assert graph.notes == ()


def test_observed_sits_in_the_first_snapshot() -> None:
    graph = window(view="address", time="temporal", opening="observed")
    assert column(graph, "opening") == {"a:0": 10, "b": 10}
    assert edges(graph)["a:0", "a"] == 10
    graph = window(view="address", time="temporal")
    assert column(graph, "opening") == {"b": 10}


@pytest.mark.parametrize("opening", ["surplus", "observed", {"a": 99}, {}])
def test_in_the_coin_view_each_earlier_coin_is_its_own_source_always(opening: Any) -> None:
    graph = window(opening=opening)
    assert column(graph, "opening") == {"x:0": 10, "y:0": 10}


UNSHIELD: dict[str, Any] = {"txid": "p", "outputs": [out(4, "d")], "pools": {"sapling": -4}}
SHIELD: dict[str, Any] = {
    "txid": "q",
    "inputs": [coin("z", 0, 6, "e")],
    "pools": {"sapling": 6},
}


@pytest.mark.parametrize("settings", [{}, {"view": "address"}])
def test_observed_pools_take_the_surplus_where_no_value_is_given(settings: Any) -> None:
    graph = window(UNSHIELD, opening="observed", **settings)
    assert {n: v for n, v in column(graph, "opening").items() if "pool" in n} == {"pool:sapling": 4}


@pytest.mark.parametrize("settings", [{}, {"view": "address"}])
def test_observed_pools_take_the_value_of_the_chain_where_it_is_given(settings: Any) -> None:
    graph = window(UNSHIELD, SHIELD, opening="observed", pool_values={"sapling": 100}, **settings)
    pools = {n.removesuffix(":0"): v for n, v in column(graph, "opening").items() if "pool" in n}
    assert pools == {"pool:sapling": 100}
    assert column(graph, "balance")["pool:sapling"] == 102


def test_merged_pools_are_worth_the_sum_of_their_values() -> None:
    graph = window(
        UNSHIELD,
        opening="observed",
        pools="merged",
        pool_values={"sapling": 100, "sprout": 7},
        view="address",
    )
    assert column(graph, "opening")["pool:shielded"] == 107


def test_surplus_does_not_look_at_the_value_of_the_chain() -> None:
    graph = window(UNSHIELD, pool_values={"sapling": 100})
    assert column(graph, "opening")["pool:sapling"] == 4


def test_a_pool_value_below_what_came_out_is_refused_with_pool_and_shortfall() -> None:
    with pytest.raises(OpeningError, match=r"pool:sapling .* 1 short"):
        window(UNSHIELD, opening="observed", pool_values={"sapling": 3})


def test_the_value_of_a_pool_that_does_not_move_is_no_account_in_want() -> None:
    graph = window(UNSHIELD, opening="observed", pool_values={"sapling": 9, "sprout": 5})
    assert "pool:sprout" not in graph.tables()["nodes"]["node"].to_pylist()


def test_a_table_covers_addresses_and_pools() -> None:
    table = {"a": 10, "b": 10, "pool:sapling": 50}
    graph = window(UNSHIELD, view="address", opening=table)
    assert column(graph, "opening") == table


def test_a_table_without_a_pool_that_paid_is_incomplete() -> None:
    with pytest.raises(OpeningError, match=r"pool:sapling .* 4 short"):
        window(UNSHIELD, view="address", opening={"a": 10, "b": 10})


@both_times
def test_coinbases_and_coins_without_an_address_need_no_entry(time: Time) -> None:
    ledger = CoinLedger.from_transactions(
        [
            {"txid": "m", "outputs": [out(5, "a")]},
            {"txid": "t", "inputs": [coin("x", 0, 7, None)], "outputs": [out(7, "a")]},
        ]
    )
    graph = transaction_graph(ledger, view="address", time=time, opening={})
    assert column(graph, "opening") == {"tx:m": 5, "x:0": 7}
