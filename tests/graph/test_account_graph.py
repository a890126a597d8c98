import pytest

from coinhaze.errors import UnknownName
from coinhaze.graph import TransactionGraph, transaction_graph
from coinhaze.ledger import AccountLedger
from coinhaze.options import Time
from graph.tables import column, edges, kinds

ZERO = "0x" + "0" * 40
BOTH: tuple[Time, Time] = ("stationary", "temporal")
both_times = pytest.mark.parametrize("time", BOTH)

Transfers = list[tuple[str, str, int | str]]


def build(transfers: Transfers, time: Time = "stationary", mint: str = "each") -> TransactionGraph:
    ledger = AccountLedger.from_transfers(transfers)
    return transaction_graph(ledger, time=time, mint="one" if mint == "one" else "each")


# Stationary


def test_parallel_transfers_add_up_and_opposite_ones_both_stay() -> None:
    graph = build([("a", "b", 5), ("b", "a", 2), ("a", "b", 4)])
    assert edges(graph) == {("a", "b"): 9, ("b", "a"): 2}
    assert column(graph, "opening") == {"a": 7}
    assert column(graph, "balance") == {"b": 7}
    assert set(column(graph, "source")) == {"a"}
    assert set(column(graph, "sink")) == {"b"}


def test_the_order_of_transfers_does_not_matter_in_a_stationary_graph() -> None:
    graph = build([("a", "b", 5), ("c", "a", 5)])
    assert column(graph, "opening") == {"c": 5}


@both_times
def test_zero_amounts_are_dropped_and_an_account_seen_only_there_is_no_node(time: Time) -> None:
    graph = build([("x", "y", 0), ("a", "b", 5), ("a", "z", 0)], time)
    assert set(kinds(graph)) == {"a", "b"}
    assert edges(graph) == {("a", "b"): 5}


@both_times
def test_self_transfers_are_dropped_and_an_account_seen_only_there_is_no_node(time: Time) -> None:
    graph = build([("x", "x", 9), ("a", "b", 5), ("b", "b", 4)], time)
    assert set(kinds(graph)) == {"a", "b"}
    assert column(graph, "opening") == {"a": 5}
    assert edges(graph) == {("a", "b"): 5}


@both_times
def test_a_ledger_of_dropped_transfers_only_is_an_empty_graph(time: Time) -> None:
    for transfers in ([], [("a", "a", 5), ("a", "b", 0), (ZERO, "a", 0), (ZERO, ZERO, 1)]):
        graph = build(list(transfers), time)
        assert len(graph) == 0
        assert edges(graph) == {}
        assert kinds(graph) == {}


@both_times
def test_spending_exactly_what_came_in_is_no_source_even_at_the_largest_amounts(
    time: Time,
) -> None:
    big, small = 2**256 - 1, 1
    graph = build([("z", "a", big), ("z", "a", small), ("a", "b", big), ("a", "b", small)], time)
    assert {name.split(":")[0] for name in column(graph, "source")} == {"z"}
    assert column(graph, "balance") == {"b": big + small}


@both_times
def test_one_unit_beyond_what_came_in_is_a_source_even_at_the_largest_amounts(time: Time) -> None:
    big = 2**255
    graph = build([("z", "a", big), ("a", "b", big), ("a", "c", 1)], time)
    openings = column(graph, "opening")
    assert sorted(openings.values()) == [1, big]


# Temporal


def test_every_receipt_makes_a_snapshot_that_takes_over_what_is_left() -> None:
    graph = build([("a", "b", 5), ("b", "c", 3), ("a", "b", 2)], "temporal")
    assert edges(graph) == {("a", "b:1"): 5, ("b:1", "c"): 3, ("a", "b"): 2, ("b:1", "b"): 2}
    assert column(graph, "opening") == {"a": 7}
    assert column(graph, "balance") == {"b": 4, "c": 3}
    assert set(column(graph, "sink")) == {"b", "c"}


def test_nothing_left_means_no_edge_between_snapshots() -> None:
    graph = build([("a", "b", 5), ("b", "c", 5), ("a", "b", 2)], "temporal")
    assert edges(graph) == {("a", "b:1"): 5, ("b:1", "c"): 5, ("a", "b"): 2}


def test_the_opening_is_the_least_that_keeps_the_balance_at_zero_or_above() -> None:
    graph = build([("b", "x", 3), ("a", "b", 10), ("b", "x", 9), ("b", "x", 2)], "temporal")
    assert column(graph, "opening") == {"a": 10, "b:0": 4}
    assert edges(graph)["b:0", "b"] == 1


def test_money_spent_before_it_came_in_was_there_before() -> None:
    graph = build([("a", "b", 5), ("c", "a", 5)], "temporal")
    assert column(graph, "opening") == {"a:0": 5, "c": 5}
    assert edges(graph) == {("a:0", "b"): 5, ("c", "a"): 5}
    assert column(graph, "balance") == {"a": 5, "b": 5}


def test_the_single_transfer_is_the_unit_so_a_router_is_no_source() -> None:
    ledger = AccountLedger.from_columns(
        ["a", "router"], ["router", "b"], [5, 5], ids=["t:0", "t:1"]
    )
    graph = transaction_graph(ledger, time="temporal")
    assert column(graph, "opening") == {"a": 5}


def test_an_account_by_its_own_name_is_its_newest_snapshot() -> None:
    graph = build([("a", "b", 5), ("a", "b", 2), ("b", "a", 1)], "temporal")
    names = graph.names
    assert names.node("b") == names.node("b:2")
    assert names.node("a") == names.node("a:1")
    assert names.node("a:0") != names.node("a")
    assert len(names.nodes("b")) == 2
    assert names.of_sources(names.nodes("a")[:1]).to_pylist() == ["a:0"]


def test_a_source_in_a_temporal_graph_is_called_by_number_even_if_newest() -> None:
    graph = build([("a", "b", 5)], "temporal")
    node = graph.names.nodes("a")
    assert graph.names.of(node).to_pylist() == ["a"]
    assert graph.names.of_sources(node).to_pylist() == ["a:0"]


def test_a_source_in_a_stationary_graph_goes_by_its_own_name() -> None:
    graph = build([("a", "b", 5)])
    assert graph.names.of_sources(graph.names.nodes("a")).to_pylist() == ["a"]


@pytest.mark.parametrize("name", ["zz", "a:9", "a:", "a:x", "", ":", "a:-1", "a:\u0660"])
def test_a_name_that_is_not_in_the_graph_is_refused(name: str) -> None:
    graph = build([("a", "b", 5)], "temporal")
    with pytest.raises(UnknownName, match="no node"):
        graph.names.node(name)


def test_a_snapshot_number_of_a_stationary_graph_is_refused() -> None:
    with pytest.raises(UnknownName, match="'a:0'"):
        build([("a", "b", 5)]).names.node("a:0")


def test_walks_never_run_forward_in_time() -> None:
    graph = build(
        [("a", "b", 5), ("b", "a", 5), ("a", "b", 3), ("c", "b", 1), ("b", "c", 4)], "temporal"
    )
    assert (graph.tail < graph.head).all()


# Mints and burns


@both_times
def test_mints_and_burns_are_nodes_named_by_their_row_dropped_rows_included(time: Time) -> None:
    graph = build(
        [("a", "b", 0), (ZERO, "a", 5), (ZERO, "b", 0), (ZERO, "b", 7), ("a", ZERO, 2)], time
    )
    assert edges(graph) == {("mint:1", "a"): 5, ("mint:3", "b"): 7, ("a", "burn:4"): 2}
    assert kinds(graph)["mint:1"] == "mint"
    assert kinds(graph)["burn:4"] == "burn"
    assert column(graph, "opening") == {"mint:1": 5, "mint:3": 7}
    assert column(graph, "balance") == {"a": 3, "b": 7, "burn:4": 2}
    assert set(column(graph, "sink")) == {"a", "b", "burn:4"}
    assert ZERO not in kinds(graph)


@both_times
def test_mints_and_burns_go_by_the_id_of_their_transfer(time: Time) -> None:
    ledger = AccountLedger.from_columns([ZERO, "a"], ["a", ZERO], [5, 3], ids=["0xaa:7", "0xab:0"])
    graph = transaction_graph(ledger, time=time)
    assert edges(graph) == {("mint:0xaa:7", "a"): 5, ("a", "burn:0xab:0"): 3}
    assert graph.names.of_sources(graph.names.nodes("mint:0xaa:7")).to_pylist() == ["mint:0xaa:7"]


@both_times
def test_every_mint_to_one_account_is_a_source_of_its_own(time: Time) -> None:
    graph = build([(ZERO, "a", 5), (ZERO, "a", 5)], time)
    assert column(graph, "opening") == {"mint:0": 5, "mint:1": 5}


@both_times
def test_a_transfer_from_the_zero_address_to_itself_is_dropped(time: Time) -> None:
    graph = build([(ZERO, ZERO, 5), (ZERO, "a", 1)], time)
    assert set(kinds(graph)) == {"mint:1", "a"}


def test_the_zero_address_may_be_an_ordinary_account() -> None:
    graph = build([(ZERO, "a", 5), (ZERO, "b", 7), ("a", ZERO, 2)], mint="one")
    assert edges(graph) == {(ZERO, "a"): 5, (ZERO, "b"): 7, ("a", ZERO): 2}
    assert column(graph, "opening") == {ZERO: 10}
    assert set(column(graph, "sink")) == {"a", "b"}


def test_the_zero_address_as_an_ordinary_account_has_snapshots() -> None:
    graph = build([(ZERO, "a", 5), ("a", ZERO, 2)], "temporal", mint="one")
    assert edges(graph) == {(f"{ZERO}:0", "a"): 5, ("a", ZERO): 2}
    assert set(column(graph, "sink")) == {"a", ZERO}


# Fees


@both_times
def test_a_fee_lowers_the_closing_balance_and_is_no_edge(time: Time) -> None:
    ledger = AccountLedger.from_columns(["a", "b"], ["b", "c"], [10, 4], fees=[1, 5])
    graph = transaction_graph(ledger, time=time)
    assert sum(edges(graph).values()) == 14
    assert column(graph, "opening") == {"a": 10}
    assert column(graph, "balance") == {"b": 1, "c": 4}


@both_times
@pytest.mark.parametrize("fee", [6, 7, 2**255])
def test_a_fee_lowers_the_closing_balance_not_below_zero(time: Time, fee: int) -> None:
    ledger = AccountLedger.from_columns(["a", "b"], ["b", "c"], [10, 4], fees=[0, fee])
    graph = transaction_graph(ledger, time=time)
    assert column(graph, "balance") == {"c": 4}
    assert set(column(graph, "sink")) == {"c"}


@both_times
def test_the_fee_of_a_dropped_transfer_is_paid_too(time: Time) -> None:
    ledger = AccountLedger.from_columns(
        ["a", "b", "b"], ["b", "c", "b"], [10, 0, 5], fees=[0, 3, 2]
    )
    assert column(transaction_graph(ledger, time=time), "balance") == {"b": 5}


def test_the_fees_of_all_snapshots_lower_the_newest() -> None:
    ledger = AccountLedger.from_columns(
        ["a", "b", "a"], ["b", "c", "b"], [10, 4, 1], fees=[0, 2, 0]
    )
    graph = transaction_graph(ledger, time="temporal")
    assert column(graph, "balance") == {"b": 5, "c": 4}
