import dataclasses
from typing import Any

import pytest

from coinhaze.errors import LedgerError, UsageError
from coinhaze.graph import TransactionGraph, transaction_graph
from coinhaze.graph.build import default_time
from coinhaze.ledger import AccountLedger, CoinLedger

ACCOUNTS = AccountLedger.from_transfers([("a", "b", 5), ("b", "c", 3)])
COINS = CoinLedger.from_transactions(
    [
        {"txid": "m", "outputs": [{"value": 50, "address": "a"}]},
        {
            "txid": "t",
            "inputs": [{"txid": "m", "vout": 0}],
            "outputs": [{"value": 49, "address": "b"}],
        },
    ]
)
HIDDEN = CoinLedger.from_transactions(
    [{"txid": "m", "outputs": 2}, {"txid": "t", "inputs": [{"txid": "m", "vout": 0}], "outputs": 1}]
)


def column(graph: TransactionGraph, name: str) -> set[str]:
    return {n["node"] for n in graph.tables()["nodes"].to_pylist() if n[name]}


@pytest.mark.parametrize(
    ("ledger", "settings", "words"),
    [
        (ACCOUNTS, {"view": "coin"}, "view 'coin'"),
        (ACCOUNTS, {"view": "address"}, "view 'address'"),
        (COINS, {"view": "account"}, "view 'account'"),
        (COINS, {"view": "coins"}, "view 'coins'"),
        (ACCOUNTS, {"time": "now"}, "'now'"),
        (COINS, {"time": "temporal"}, "coin view"),
        (COINS, {"view": "coin", "time": "stationary"}, "coin view"),
        (ACCOUNTS, {"opening": "observed"}, "observed"),
        (ACCOUNTS, {"opening": "guess"}, "'guess'"),
        (COINS, {"clusters": {"a": "b"}}, "clusters"),
        (COINS, {"clusters": "common-input"}, "clusters"),
        (COINS, {"view": "address", "clusters": "magic"}, "clusters"),
        (ACCOUNTS, {"clusters": "common-input"}, "clusters"),
        (ACCOUNTS, {"mint": "some"}, "mint"),
        (COINS, {"pools": "some"}, "pools"),
        (ACCOUNTS, {"sinks": "some"}, "sinks"),
        (HIDDEN, {"view": "address"}, "hides amounts"),
        ([("a", "b", 5)], {}, "list"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(
    ledger: Any, settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        transaction_graph(ledger, **settings)


def test_the_defaults_are_the_coin_view_and_the_stationary_accounts() -> None:
    assert transaction_graph(COINS).settings["view"] == "coin"
    assert transaction_graph(ACCOUNTS).settings["time"] == "stationary"
    assert transaction_graph(ACCOUNTS).settings["view"] == "account"
    assert transaction_graph(COINS, view="address").settings["time"] == "stationary"
    assert transaction_graph(ACCOUNTS).settings["opening"] == "surplus"


def test_the_sinks_of_the_paper_took_in_more_than_they_paid_out() -> None:
    assert column(transaction_graph(COINS), "sink") == {"t:0"}
    assert column(transaction_graph(COINS, sinks="paper"), "sink") == {"t:0", "tx:t"}
    graph = transaction_graph(COINS, view="address", sinks="paper")
    assert column(graph, "sink") == {"b", "tx:t"}


def test_the_sinks_of_the_paper_do_not_look_at_openings() -> None:
    ledger = AccountLedger.from_transfers([("a", "b", 5), ("b", "c", 5)])
    graph = transaction_graph(ledger, opening={"a": 9, "b": 9}, sinks="paper")
    assert column(graph, "sink") == {"c"}
    assert column(transaction_graph(ledger, opening={"a": 9, "b": 9}), "sink") == {"b", "c"}


def test_the_sinks_of_the_paper_do_not_look_at_fees_or_spendability() -> None:
    ledger = AccountLedger.from_columns(["a", "b"], ["b", "c"], [5, 3], fees=[0, 9])
    assert column(transaction_graph(ledger, sinks="paper"), "sink") == {"b", "c"}


def test_hidden_amounts_are_null_and_not_zero() -> None:
    graph = transaction_graph(HIDDEN)
    assert graph.amounts is None
    assert graph.opening is None
    assert graph.closing is None
    tables = graph.tables()
    assert set(tables["edges"]["amount"].to_pylist()) == {None}
    assert set(tables["nodes"]["balance"].to_pylist()) == {None}
    assert column(graph, "source") == {"tx:m"}


def test_building_a_graph_leaves_ledger_and_table_as_they_were() -> None:
    table = {"a": 9}
    before = ACCOUNTS.tables()
    first = transaction_graph(ACCOUNTS, opening=table, time="temporal").tables()
    assert table == {"a": 9}
    assert ACCOUNTS.tables() == before
    assert transaction_graph(ACCOUNTS, opening=table, time="temporal").tables() == first


@pytest.mark.parametrize(
    "settings", [{}, {"view": "address"}, {"view": "address", "time": "temporal"}]
)
def test_building_a_graph_of_coins_twice_gives_the_same(settings: dict[str, Any]) -> None:
    before = COINS.tables()
    first = transaction_graph(COINS, **settings).to_arrow()
    assert transaction_graph(COINS, **settings).to_arrow() == first
    assert COINS.tables() == before


def test_a_graph_cannot_be_changed() -> None:
    graph = transaction_graph(ACCOUNTS)
    with pytest.raises(dataclasses.FrozenInstanceError):
        graph.sinks = graph.sources  # type: ignore[misc]
    assert graph.amounts is not None
    assert graph.opening is not None
    for column in (graph.tail, graph.sinks, graph.amounts.digits, graph.opening.digits):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1


def test_a_name_that_looks_like_a_snapshot_of_another_is_refused_where_there_are_snapshots() -> (
    None
):
    ledger = AccountLedger.from_transfers([("s", "a", 5), ("a", "a:1", 3)])
    assert len(transaction_graph(ledger)) == 3
    with pytest.raises(LedgerError, match="taken for a snapshot of a"):
        transaction_graph(ledger, time="temporal")


def test_exposure_is_in_the_order_of_time_where_nobody_says() -> None:
    assert default_time("account") == default_time("address") == "stationary"
    assert default_time("account", exposure=True) == default_time("coin") == "temporal"
