from typing import Any

import pytest

from coinhaze.graph import TransactionGraph, transaction_graph
from coinhaze.graph.clusters.merge import common_input_clusters
from coinhaze.ledger import AccountLedger, CoinLedger
from graph.tables import column, edges

ZERO = "0x" + "0" * 40
Transfers = list[tuple[str, str, int | str]]


def names(graph: TransactionGraph) -> set[str]:
    return set(graph.tables()["nodes"]["node"].to_pylist())


def accounts(transfers: Transfers, **settings: Any) -> TransactionGraph:
    return transaction_graph(AccountLedger.from_transfers(transfers), **settings)


def coins(*records: dict[str, Any], **settings: Any) -> TransactionGraph:
    return transaction_graph(CoinLedger.from_transactions(records), view="address", **settings)


def coin(txid: str, vout: int, value: int, address: str | None) -> dict[str, Any]:
    return {"txid": txid, "vout": vout, "value": value, "address": address}


def out(value: int, address: str | None) -> dict[str, Any]:
    return {"value": value, "address": address}


def test_members_of_a_cluster_are_one_node_and_transfers_inside_are_dropped() -> None:
    transfers: Transfers = [("a", "b", 9), ("b", "c", 5), ("x", "a", 2)]
    graph = accounts(transfers, clusters={"a": "ab", "b": "ab"})
    assert edges(graph) == {("ab", "c"): 5, ("x", "ab"): 2}
    assert names(graph) == {"ab", "c", "x"}


def test_the_surplus_is_taken_on_the_merged_node() -> None:
    transfers: Transfers = [("x", "a", 5), ("b", "c", 5)]
    assert column(accounts(transfers), "opening") == {"x": 5, "b": 5}
    merged = accounts(transfers, clusters={"a": "ab", "b": "ab"})
    assert column(merged, "opening") == {"x": 5}
    assert set(column(merged, "sink")) == {"c"}


def test_accounts_are_merged_before_snapshots() -> None:
    transfers: Transfers = [("x", "a", 5), ("x", "b", 3), ("a", "c", 7)]
    graph = accounts(transfers, clusters={"a": "ab", "b": "ab"}, time="temporal")
    assert edges(graph) == {
        ("x", "ab:1"): 5,
        ("x", "ab"): 3,
        ("ab:1", "ab"): 5,
        ("ab", "c"): 7,
    }


def test_a_transfer_inside_a_cluster_makes_no_snapshot() -> None:
    transfers: Transfers = [("x", "a", 5), ("a", "b", 5), ("b", "c", 5)]
    graph = accounts(transfers, clusters={"a": "ab", "b": "ab"}, time="temporal")
    assert edges(graph) == {("x", "ab"): 5, ("ab", "c"): 5}


def test_a_cluster_may_go_by_the_name_of_a_member() -> None:
    graph = accounts([("a", "b", 9), ("b", "c", 5)], clusters={"b": "a"})
    assert edges(graph) == {("a", "c"): 5}


def test_members_still_find_their_node_by_name() -> None:
    found = accounts([("a", "b", 9), ("b", "c", 5)], clusters={"a": "ab", "b": "ab"}).names
    assert found.node("a") == found.node("b") == found.node("ab")


def test_entries_for_accounts_not_in_the_ledger_do_no_harm() -> None:
    graph = accounts([("a", "b", 9)], clusters={"q": "Q", "a": "A"})
    assert names(graph) == {"A", "b"}
    assert graph.notes == ("cluster table: 1 of its addresses not in the ledger: q",)
    assert accounts([("a", "b", 9)], clusters={"a": "A"}).notes == ()


def test_an_empty_table_merges_nothing() -> None:
    assert edges(accounts([("a", "b", 9)], clusters={})) == {("a", "b"): 9}


def test_openings_of_members_add_up() -> None:
    table = {"a": 3, "b": 4}
    transfers: Transfers = [("a", "c", 6), ("b", "c", 1)]
    graph = accounts(transfers, clusters={"a": "ab", "b": "ab"}, opening=table)
    assert column(graph, "opening") == {"ab": 7}
    assert graph.notes == ()


def test_the_fees_of_members_add_up() -> None:
    ledger = AccountLedger.from_columns(
        ["x", "a", "b"], ["a", "c", "c"], [20, 1, 1], fees=[0, 2, 3]
    )
    graph = transaction_graph(ledger, clusters={"a": "ab", "b": "ab"})
    assert column(graph, "balance")["ab"] == 13


def test_mints_and_burns_of_members_stay_apart() -> None:
    transfers: Transfers = [(ZERO, "a", 5), (ZERO, "b", 6), ("b", ZERO, 2)]
    graph = accounts(transfers, clusters={"a": "ab", "b": "ab"})
    assert edges(graph) == {("mint:0", "ab"): 5, ("mint:1", "ab"): 6, ("ab", "burn:2"): 2}


SPENT_TOGETHER: dict[str, Any] = {
    "txid": "t",
    "inputs": [coin("x", 0, 5, "a"), coin("y", 0, 6, "b")],
    "outputs": [out(8, "c"), out(3, "b")],
}
SPENT_LATER: dict[str, Any] = {
    "txid": "u",
    "inputs": [{"txid": "t", "vout": 1}, coin("z", 0, 2, "d")],
    "outputs": [out(5, "e")],
}


def test_addresses_can_be_merged_by_a_table() -> None:
    graph = coins(SPENT_TOGETHER, clusters={"a": "K", "c": "K"})
    assert edges(graph) == {("K", "tx:t"): 5, ("b", "tx:t"): 6, ("tx:t", "K"): 8, ("tx:t", "b"): 3}


def test_addresses_spent_together_are_one_entity() -> None:
    graph = coins(SPENT_TOGETHER, clusters="common-input")
    assert edges(graph) == {("a", "tx:t"): 11, ("tx:t", "c"): 8, ("tx:t", "a"): 3}
    assert column(graph, "opening") == {"a": 8}


def test_addresses_spent_together_are_joined_over_transactions() -> None:
    ledger = CoinLedger.from_transactions([SPENT_TOGETHER, SPENT_LATER])
    clusters = common_input_clusters(ledger)
    assert set(clusters) == {"b", "d"}
    assert set(clusters.values()) == {"a"}
    graph = transaction_graph(ledger, view="address", clusters="common-input")
    assert names(graph) == {"a", "c", "e", "tx:t", "tx:u"}


def test_addresses_only_paid_together_are_not_joined() -> None:
    record = {"txid": "m", "outputs": [out(1, "a"), out(2, "b")]}
    assert common_input_clusters(CoinLedger.from_transactions([record])) == {}
    assert names(coins(record, clusters="common-input")) == {"tx:m", "a", "b"}


@pytest.mark.parametrize("time", ["stationary", "temporal"])
def test_observed_openings_of_members_add_up(time: str) -> None:
    graph = coins(SPENT_TOGETHER, clusters="common-input", opening="observed", time=time)
    assert list(column(graph, "opening").values()) == [11]


def test_a_cluster_with_a_coin_without_an_address_holds_money() -> None:
    record = {
        "txid": "t",
        "inputs": [coin("x", 0, 5, "a"), coin("y", 0, 6, None)],
        "outputs": [out(11, "a")],
    }
    graph = coins(record, clusters="common-input", time="temporal")
    assert edges(graph) == {("a:0", "tx:t"): 11, ("tx:t", "a"): 11}


def test_the_graph_says_how_it_was_clustered() -> None:
    assert coins(SPENT_TOGETHER, clusters="common-input").settings["clusters"] == "common-input"
    assert "1" in str(accounts([("a", "b", 9)], clusters={"a": "A"}).settings["clusters"])
