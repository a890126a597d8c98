from typing import Any

import pytest

from coinhaze.errors import UnknownName
from coinhaze.graph import TransactionGraph, transaction_graph
from coinhaze.ledger import CoinLedger
from graph.tables import column, edges, kinds

Record = dict[str, Any]


def coin(txid: str, vout: int, value: int | None = None, address: str | None = None) -> Record:
    return {"txid": txid, "vout": vout, "value": value, "address": address}


def out(value: int, address: str | None = None, spendable: bool = True) -> Record:
    return {"value": value, "address": address, "spendable": spendable}


MINED: Record = {"txid": "m", "outputs": [out(50, "miner")]}
PAID: Record = {
    "txid": "p",
    "inputs": [coin("m", 0)],
    "outputs": [out(20, "shop"), out(25, "miner"), out(0, "nobody"), out(4)],
}


def build(*records: Record, **settings: Any) -> TransactionGraph:
    pool_values = settings.pop("pool_values", None)
    ledger = CoinLedger.from_transactions(records, pool_values=pool_values)
    return transaction_graph(ledger, **settings)


every_view = pytest.mark.parametrize(
    "settings",
    [{}, {"view": "address"}, {"view": "address", "time": "temporal"}],
    ids=["coin", "address", "temporal"],
)


# Coins


def test_coins_and_transactions_are_nodes_named_by_their_ids() -> None:
    graph = build(MINED, PAID)
    assert edges(graph) == {
        ("tx:m", "m:0"): 50,
        ("m:0", "tx:p"): 50,
        ("tx:p", "p:0"): 20,
        ("tx:p", "p:1"): 25,
        ("tx:p", "p:3"): 4,
    }
    assert kinds(graph)["tx:p"] == "transaction"
    assert kinds(graph)["p:0"] == "coin"
    assert column(graph, "opening") == {"tx:m": 50}
    assert set(column(graph, "sink")) == {"p:0", "p:1", "p:3"}


def test_a_zero_value_coin_is_no_node() -> None:
    assert "p:2" not in kinds(build(MINED, PAID))
    assert "nobody" not in kinds(build(MINED, PAID, view="address"))


def test_spending_a_zero_value_coin_leaves_no_edge() -> None:
    spent = {"txid": "z", "inputs": [coin("p", 2), coin("p", 0)], "outputs": [out(20, "x")]}
    assert [pair for pair in edges(build(MINED, PAID, spent)) if pair[1] == "tx:z"] == [
        ("p:0", "tx:z")
    ]


@every_view
def test_a_transaction_keeps_its_fee_and_is_no_sink(settings: dict[str, Any]) -> None:
    graph = build(MINED, PAID, **settings)
    assert column(graph, "balance")["tx:p"] == 1
    assert "tx:p" not in column(graph, "sink")


@every_view
def test_a_coinbase_is_a_source_worth_its_outputs(settings: dict[str, Any]) -> None:
    graph = build({"txid": "m", "outputs": [out(50, "a"), out(7, "b")]}, **settings)
    assert column(graph, "opening") == {"tx:m": 57}
    assert set(column(graph, "source")) == {"tx:m"}


def test_an_unknown_coin_in_a_window_is_a_source_of_its_own() -> None:
    first: Record = {"txid": "t", "inputs": [coin("x", 0, 5, "a"), coin("x", 1, 6, "a")]}
    graph = build(first | {"outputs": [out(11, "a")]})
    assert column(graph, "opening") == {"x:0": 5, "x:1": 6}
    assert edges(graph) == {("x:0", "tx:t"): 5, ("x:1", "tx:t"): 6, ("tx:t", "t:0"): 11}
    assert set(column(graph, "sink")) == {"t:0"}
    # Who paid the earlier coins the ledger does not tell: no edge is theirs.
    assert graph.payment_edge[:2].tolist() == [-1, -1]
    assert graph.payment_edge[2] >= 0


def test_coins_have_no_snapshots() -> None:
    graph = build(MINED, PAID)
    assert graph.names.of_sources(graph.names.nodes("tx:m")).to_pylist() == ["tx:m"]
    assert not any(name.endswith(":p:0:1") for name in kinds(graph))


def test_an_address_stands_for_all_its_coins() -> None:
    names = build(MINED, PAID).names
    assert names.of(names.nodes("miner")).to_pylist() == ["m:0", "p:1"]
    assert names.of(names.nodes("shop")).to_pylist() == ["p:0"]
    assert names.node("shop") == names.node("p:0")
    with pytest.raises(UnknownName, match="'miner' names 2 nodes"):
        names.node("miner")


def test_the_coin_graph_is_acyclic() -> None:
    graph = build(MINED, PAID)
    assert (graph.tail < graph.head).all()


# Outputs that can never be spent


def test_a_coin_that_can_never_be_spent_is_no_sink() -> None:
    graph = build({"txid": "m", "outputs": [out(50, "a", spendable=False), out(7, "a")]})
    assert set(column(graph, "sink")) == {"m:1"}


@pytest.mark.parametrize("time", ["stationary", "temporal"])
def test_what_can_never_be_spent_is_no_part_of_an_address_balance(time: str) -> None:
    record = {"txid": "m", "outputs": [out(50, "a", spendable=False), out(7, "a")]}
    graph = build(record, view="address", time=time)
    assert column(graph, "balance")["a"] == 7
    graph = build({"txid": "m", "outputs": [out(50, "a", False)]}, view="address", time=time)
    assert column(graph, "sink") == {}
    graph = build({"txid": "m", "outputs": [out(50, None, False)]}, view="address", time=time)
    assert column(graph, "sink") == {}


# Addresses


def test_all_coins_of_an_address_are_one_node() -> None:
    graph = build(MINED, PAID, view="address")
    assert edges(graph) == {
        ("tx:m", "miner"): 50,
        ("miner", "tx:p"): 50,
        ("tx:p", "shop"): 20,
        ("tx:p", "miner"): 25,
        ("tx:p", "p:3"): 4,
    }
    assert column(graph, "balance") == {"miner": 25, "shop": 20, "p:3": 4, "tx:p": 1}


def test_several_outputs_to_one_address_are_one_edge() -> None:
    graph = build({"txid": "m", "outputs": [out(5, "a"), out(6, "a")]}, view="address")
    assert edges(graph) == {("tx:m", "a"): 11}


def test_an_output_without_an_address_is_its_own_owner_and_has_no_snapshots() -> None:
    graph = build(MINED, PAID, view="address", time="temporal")
    assert kinds(graph)["p:3"] == "coin"
    assert ("tx:p", "p:3") in edges(graph)
    with pytest.raises(UnknownName, match="p:3:1"):
        graph.names.node("p:3:1")


def test_an_unknown_coin_without_an_address_is_a_source_under_its_coin_name() -> None:
    record: Record = {"txid": "t", "inputs": [coin("x", 3, 5)], "outputs": [out(5, "a")]}
    graph = build(record, view="address", time="temporal")
    assert column(graph, "opening") == {"x:3": 5}
    assert graph.names.of_sources(graph.names.nodes("x:3")).to_pylist() == ["x:3"]


def test_a_transaction_spends_first_and_an_address_it_pays_several_times_receives_once() -> None:
    record: Record = {
        "txid": "t",
        "inputs": [coin("x", 0, 10, "a")],
        "outputs": [out(3, "a"), out(3, "b"), out(4, "a")],
    }
    graph = build(record, view="address", time="temporal")
    assert edges(graph) == {("a:0", "tx:t"): 10, ("tx:t", "a"): 7, ("tx:t", "b"): 3}
    assert graph.names.node("a") == graph.names.node("a:1")


def test_address_snapshots_carry_what_is_left() -> None:
    graph = build(MINED, MINED | {"txid": "n"}, PAID, view="address", time="temporal")
    assert edges(graph) == {
        ("tx:m", "miner:1"): 50,
        ("miner:1", "miner:2"): 50,
        ("tx:n", "miner:2"): 50,
        ("miner:2", "tx:p"): 50,
        ("miner:2", "miner"): 50,
        ("tx:p", "miner"): 25,
        ("tx:p", "shop"): 20,
        ("tx:p", "p:3"): 4,
    }
    assert (graph.tail < graph.head).all()


# Shielded pools


def shield(txid: str, value: int, pool: str = "sapling", fee: int = 0) -> Record:
    spent = [coin(f"before-{txid}", 0, value + fee, "a")]
    return {"txid": txid, "inputs": spent, "pools": {pool: value}}


def unshield(txid: str, value: int, pool: str = "sapling", fee: int = 0) -> Record:
    return {"txid": txid, "outputs": [out(value - fee, "b")], "pools": {pool: -value}}


def test_a_pool_has_snapshots_in_the_coin_view() -> None:
    graph = build(shield("s", 5), shield("t", 3), unshield("u", 4))
    pools = {pair: v for pair, v in edges(graph).items() if any("pool:" in n for n in pair)}
    assert pools == {
        ("tx:s", "pool:sapling:1"): 5,
        ("pool:sapling:1", "pool:sapling"): 5,
        ("tx:t", "pool:sapling"): 3,
        ("pool:sapling", "tx:u"): 4,
    }
    assert kinds(graph)["pool:sapling"] == "pool"
    assert column(graph, "balance")["pool:sapling"] == 4
    assert set(column(graph, "sink")) == {"pool:sapling", "u:0"}


def test_a_pool_has_snapshots_in_the_temporal_address_view() -> None:
    graph = build(shield("s", 5), shield("t", 3), view="address", time="temporal")
    assert edges(graph)["pool:sapling:1", "pool:sapling"] == 5


def test_a_pool_is_one_node_in_the_stationary_view() -> None:
    graph = build(shield("s", 5), shield("t", 3), unshield("u", 4), view="address")
    pools = {pair: v for pair, v in edges(graph).items() if any("pool:" in n for n in pair)}
    assert pools == {
        ("tx:s", "pool:sapling"): 5,
        ("tx:t", "pool:sapling"): 3,
        ("pool:sapling", "tx:u"): 4,
    }


def test_a_pool_that_gave_more_than_it_took_was_open_with_the_surplus() -> None:
    graph = build(unshield("u", 4), shield("s", 5))
    assert column(graph, "opening")["pool:sapling:0"] == 4
    graph = build(unshield("u", 4), shield("s", 5), view="address")
    assert "pool:sapling" not in column(graph, "opening")


@every_view
def test_value_out_of_a_pool_without_inputs_is_no_coinbase(settings: dict[str, Any]) -> None:
    graph = build(unshield("u", 4), **settings)
    assert "tx:u" not in column(graph, "source")
    assert {name.removesuffix(":0") for name in column(graph, "source")} == {"pool:sapling"}


@every_view
def test_a_fully_shielded_transfer_leaves_only_its_fee(settings: dict[str, Any]) -> None:
    graph = build({"txid": "f", "pools": {"orchard": -1}}, **settings)
    assert list(edges(graph).values()) == [1]
    assert [head for _, head in edges(graph)] == ["tx:f"]
    assert column(graph, "sink") == {}


@every_view
def test_a_coinbase_that_shields_is_worth_its_outputs_and_what_it_shields(
    settings: dict[str, Any],
) -> None:
    record: Record = {"txid": "c", "outputs": [out(10, "a")], "pools": {"sapling": 40}}
    graph = build(record, **settings)
    assert column(graph, "opening") == {"tx:c": 50}
    assert edges(graph)["tx:c", "pool:sapling"] == 40


CROSSING: Record = {
    "txid": "x",
    "outputs": [out(2, "b")],
    "pools": {"sprout": -10, "sapling": 7},
}


def test_each_pool_is_a_node_of_its_own() -> None:
    graph = build(CROSSING, view="address")
    assert edges(graph) == {
        ("pool:sprout", "tx:x"): 10,
        ("tx:x", "pool:sapling"): 7,
        ("tx:x", "b"): 2,
    }


def test_merged_pools_exchange_the_net_over_all_of_them() -> None:
    graph = build(CROSSING, view="address", pools="merged")
    assert edges(graph) == {("pool:shielded", "tx:x"): 3, ("tx:x", "b"): 2}


def test_merged_pools_whose_flows_cancel_leave_no_edge() -> None:
    record: Record = {"txid": "x", "pools": {"sprout": -10, "sapling": 10}}
    assert edges(build(record, pools="merged")) == {}
    assert len(build(record, pools="merged")) == 1


def test_merged_pools_can_take_in_on_balance() -> None:
    record: Record = {
        "txid": "x",
        "inputs": [coin("y", 0, 9, "a")],
        "pools": {"sprout": -1, "orchard": 10},
    }
    graph = build(record, pools="merged")
    assert edges(graph) == {("y:0", "tx:x"): 9, ("tx:x", "pool:shielded"): 9}


def test_a_pool_that_never_moves_is_no_node() -> None:
    graph = build(MINED, {"txid": "z", "pools": {"sapling": 0}})
    assert "pool:sapling" not in kinds(graph)


# Two coinbases with one id

TWICE = "d5d27987d2a3dfc724e359870c6644b40e497bdc0589a033220fe15429d88599"


@every_view
def test_of_two_coinbases_with_one_id_only_the_later_can_be_a_sink(
    settings: dict[str, Any],
) -> None:
    pair = [
        {"txid": TWICE, "height": height, "outputs": [out(50, f"at{height}")]}
        for height in (91812, 91842)
    ]
    graph = build(*pair, **settings)
    assert {f"tx:{TWICE}@91812", f"tx:{TWICE}"} <= set(kinds(graph))
    expected = "at91842" if settings else f"{TWICE}:0"
    assert set(column(graph, "sink")) == {expected}
    if not settings:
        assert f"{TWICE}@91812:0" in kinds(graph)


@every_view
def test_an_empty_ledger_is_an_empty_graph(settings: dict[str, Any]) -> None:
    graph = build(**settings)
    assert len(graph) == 0
    assert edges(graph) == {}
