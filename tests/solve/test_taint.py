"""Listed money followed forward: no unit is lost, and policies agree where they must."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import coinhaze
import twin
import vectors
from coinhaze import AccountLedger, CoinLedger
from coinhaze.observer.policies import taint_policies
from coinhaze.solve.lots.tiho import shared
from properties import strategies as random
from properties.comparison import profile
from solve import lots_twin

Transactions = list[dict[str, Any]]
IN_ORDER = ("fifo", "lifo", "tiho")
some = profile(20)


def held_by(taint: coinhaze.Taint, policy: str) -> dict[str, dict[str, int]]:
    """Give the listed money of each node by entry."""
    result: dict[str, dict[str, int]] = {}
    for row in taint.sources(policy).to_pylist():
        result.setdefault(row["node"], {})[row["source"]] = int(row["amount"])
    return result


def assert_nothing_lost(taint: coinhaze.Taint) -> None:
    """Check what is listed against where it is, from the tables alone, for all sinks."""
    columns = taint.to_arrow().to_pylist()
    for total in taint.totals().to_pylist():
        listed, relisted, sinks, fees, other = (
            int(total[name]) for name in ("listed", "relisted", "sinks", "fees", "other")
        )
        assert listed == relisted + sinks + fees + other
        there = held_by(taint, total["policy"])
        assert sinks == sum(by.get(total["source"], 0) for by in there.values())
    for policy in taint.trails:
        there = held_by(taint, policy)
        for row in columns:
            assert int(row[policy]) == sum(there.get(row["node"], {}).values())
            assert 0 <= int(row[policy]) <= int(row["balance"])
            assert int(row[policy]) <= int(row["poison"])
    for row in columns:
        assert row["haircut"] == pytest.approx(row["exposure"] * int(row["balance"]), rel=1e-12)
        assert row["poison"] in ("0", row["balance"])


def names_in(data: st.DataObject, graph: twin.Graph) -> list[str]:
    owners = sorted(set(graph.owner.values()) - {n for n in graph.owner.values() if ":" in n})
    own = sorted(node for node in graph.nodes if not node.startswith("pool:"))
    return data.draw(random.listed(data.draw(st.sampled_from([own, owners or own]))))


@some
@given(st.data())
def test_no_unit_of_listed_coins_is_lost(data: st.DataObject) -> None:
    ledger = data.draw(random.transactions(maximum=9))
    graph = twin.coin_graph(ledger)
    names = names_in(data, graph)
    taint = coinhaze.taint(CoinLedger.from_transactions(ledger), names)
    assert taint.policies == ("haircut", "poison", *IN_ORDER)
    assert_nothing_lost(taint)
    labels = twin.listed_nodes(graph, names)
    expected = lots_twin.tiho(ledger, labels, taint.listed)
    sinks = {name: by for name, by in expected.items() if name in graph.sinks}
    assert held_by(taint, "tiho") == sinks
    for order in ("fifo", "lifo"):
        told = lots_twin.coin_queues(ledger, order, listed=labels)
        queues = {name: lots_twin.by_source(told.end[name]) for name in graph.sinks}
        for queue in queues.values():
            queue.pop(twin.ELSEWHERE, None)
        assert held_by(taint, order) == {name: queue for name, queue in queues.items() if queue}


@some
@given(st.data())
def test_no_unit_of_listed_money_in_pools_or_accounts_is_lost(data: st.DataObject) -> None:
    ledger = data.draw(random.transactions(maximum=9, pools=True))
    assume(any(flow for t in ledger for flow in t.get("pools", {}).values()))
    shielded = CoinLedger.from_transactions(ledger)
    taint = coinhaze.taint(shielded, names_in(data, twin.coin_graph(ledger)))
    assert "tiho" not in taint.policies
    assert_nothing_lost(taint)
    rows = data.draw(random.transfers(maximum=16))
    graph = twin.account_graph(rows, "temporal")
    names = data.draw(random.listed([*graph.newest]))
    assert_nothing_lost(coinhaze.taint(AccountLedger.from_transfers(rows), names))


@some
@given(random.transactions(maximum=9))
def test_all_policies_agree_where_all_money_is_listed(ledger: Transactions) -> None:
    sources = sorted(twin.coin_graph(ledger).opening)
    assume(sources)
    taint = coinhaze.taint(CoinLedger.from_transactions(ledger), sources)
    for row in taint.to_arrow().to_pylist():
        for policy in ("poison", *IN_ORDER):
            assert row[policy] == row["balance"]
        assert row["haircut"] == pytest.approx(int(row["balance"]), rel=1e-12)


@st.composite
def single_inputs(draw: st.DrawFn) -> Transactions:
    """Draw a ledger whose transactions spend one coin each: taint never meets clean money."""
    ledger = [{"txid": f"c{k}", "inputs": [], "outputs": [{"value": 50}]} for k in range(3)]
    unspent = [(f"c{k}", 0, 50) for k in range(3)]
    for number in range(draw(st.integers(1, 6))):
        txid, vout, value = unspent.pop(draw(st.integers(0, len(unspent) - 1)))
        first = draw(st.integers(0, value))
        parts = [first, draw(st.integers(0, value - first))]
        outputs = [{"value": part} for part in parts]
        spent = [{"txid": txid, "vout": vout}]
        ledger.append({"txid": f"t{number}", "inputs": spent, "outputs": outputs})
        unspent += [(f"t{number}", k, part) for k, part in enumerate(parts)]
    return ledger


@some
@given(single_inputs())
def test_all_policies_agree_where_inputs_are_wholly_tainted_or_clean(ledger: Transactions) -> None:
    taint = coinhaze.taint(CoinLedger.from_transactions(ledger), ["tx:c0"])
    for row in taint.to_arrow().to_pylist():
        assert len({row[policy] for policy in ("poison", *IN_ORDER)}) == 1, row
        assert row["haircut"] == pytest.approx(int(row["poison"]), abs=1e-9)


@some
@given(st.data())
def test_haircut_shares_out_as_much_as_the_others(data: st.DataObject) -> None:
    """Sources have nothing before them, so that no listed money passes another listed node."""
    ledger = data.draw(random.transactions(maximum=9))
    graph = twin.coin_graph(ledger)
    assume(graph.opening)
    names = data.draw(random.listed(sorted(graph.opening)))
    coins = CoinLedger.from_transactions(ledger)
    totals = coinhaze.taint(coins, names, policies=IN_ORDER).totals().to_pylist()
    per_policy = {policy: [t for t in totals if t["policy"] == policy] for policy in IN_ORDER}
    listed = sum(graph.opening[name] for name in names)
    for rows in per_policy.values():
        assert sum(int(row["listed"]) for row in rows) == listed
        assert all(row["relisted"] == "0" for row in rows)
    chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(coins), listed=names)
    scores = coinhaze.score(chain, nodes="all")
    assert scores.exposure is not None
    assert chain.graph.closing is not None
    exposed = float(np.nansum(scores.exposure * chain.graph.closing.floats()))
    assert exposed == pytest.approx(listed, rel=1e-12)


@given(st.lists(st.integers(1, 2**70), min_size=1, max_size=5), st.data())
@some
def test_shares_are_whole_and_within_one_unit_of_proportion(
    has: list[int], data: st.DataObject
) -> None:
    total = sum(has)
    amount = data.draw(st.integers(0, total))
    share = shared(dict(enumerate(has)), amount)
    assert sum(share.values()) == amount
    for entry, held in enumerate(has):
        assert 0 <= share.get(entry, 0) <= held
        assert abs(share.get(entry, 0) * total - amount * held) < total


def test_what_rounding_leaves_goes_to_the_largest_remainder() -> None:
    assert shared({0: 1, 1: 2}, 1) == {1: 1}
    assert shared({0: 2, 1: 1}, 1) == {0: 1}
    assert shared({0: 1, 1: 1}, 1) == {0: 1}


def test_tiho_is_left_out_where_there_are_no_outputs() -> None:
    accounts = coinhaze.AccountLedger.from_transfers([("a", "b", 1)])
    assert coinhaze.taint(accounts, ["a"]).policies == ("haircut", "poison", "fifo", "lifo")


def mixed() -> CoinLedger:
    """A theft of 6 meets 10 clean; outputs 3, 9 and 2, a fee of 2."""
    old = [
        {"txid": "theft", "vout": 0, "value": 6, "address": "thief"},
        {"txid": "pay", "vout": 0, "value": 10, "address": "bob"},
    ]
    outputs = [{"value": 3}, {"value": 9}, {"value": 2, "spendable": False}]
    return CoinLedger.from_transactions([{"txid": "t", "inputs": old, "outputs": outputs}])


def test_a_theft_followed_by_every_policy_side_by_side() -> None:
    taint = coinhaze.taint(mixed(), ["thief"])
    table = taint.to_arrow()
    assert table.column_names == [
        "node", "kind", "balance", "exposure", "haircut", "poison", "fifo", "lifo", "tiho",
    ]  # fmt: skip
    assert table.drop_columns(["kind", "balance"]).to_pylist() == [
        {"node": "t:0", "exposure": 0.375, "haircut": 1.125, "poison": "3", "fifo": "3",
         "lifo": "0", "tiho": "0"},
        {"node": "t:1", "exposure": 0.375, "haircut": 3.375, "poison": "9", "fifo": "3",
         "lifo": "2", "tiho": "6"},
    ]  # fmt: skip
    assert [
        (row["policy"], row["sinks"], row["fees"], row["other"])
        for row in taint.totals().to_pylist()
    ] == [("fifo", "6", "0", "0"), ("lifo", "2", "2", "2"), ("tiho", "6", "0", "0")]
    assert taint.tainted().tolist() == [0, 1]
    assert repr(taint) == "Taint(2 nodes, 1 listed: haircut, poison, fifo, lifo, tiho)"


@pytest.mark.parametrize("case", vectors.load("related")["taint_one_tx"], ids=["three", "two"])
def test_one_transaction_is_tainted_as_published(case: dict[str, Any]) -> None:
    transactions: Transactions = [
        {"txid": f"in{k}", "inputs": [], "outputs": [{"value": value}]}
        for k, (value, _) in enumerate(case["inputs"])
    ]
    spent = [{"txid": f"in{k}", "vout": 0} for k in range(len(case["inputs"]))]
    made = [{"value": int(value)} for value in case["outputs"]]
    transactions.append({"txid": "t", "inputs": spent, "outputs": made})
    listed = [f"in{k}:0" for k, (_, tainted) in enumerate(case["inputs"]) if tainted]
    rows = coinhaze.taint(CoinLedger.from_transactions(transactions), listed).to_arrow().to_pylist()
    assert [row["node"] for row in rows] == [f"t:{k}" for k in range(len(made))]
    for policy in (entry.column for entry in taint_policies()):
        assert [float(row[policy]) for row in rows] == pytest.approx(case[policy], abs=1e-12)


def test_haircut_and_poison_need_no_order() -> None:
    ledger = AccountLedger.from_transfers(
        [("thief", "a", 1), ("b", "a", 3), ("x", "y", 1), ("y", "x", 1)]
    )
    graph = coinhaze.transaction_graph(ledger, opening={"thief": 1, "b": 3, "x": 1})
    taint = coinhaze.taint(graph, ["thief"], policies=["haircut", "poison"], nodes=["a", "y"])
    assert taint.to_arrow().drop_columns(["kind", "balance"]).to_pylist() == [
        {"node": "a", "exposure": 0.25, "haircut": 1.0, "poison": "4"},
        {"node": "y", "exposure": 0.0, "haircut": 0.0, "poison": "0"},
    ]
    with pytest.raises(coinhaze.CoinhazeError, match="time=temporal"):
        coinhaze.taint(graph, ["thief"])


def test_only_requested_nodes_are_reported() -> None:
    taint = coinhaze.taint(mixed(), ["thief", "nobody"], nodes=["t:1", "t:1"], policies=["lifo"])
    assert taint.to_arrow().to_pylist() == [
        {"node": "t:1", "kind": "coin", "balance": "9", "lifo": "2"}
    ]
    assert taint.notes == ("list: 1 name not in the ledger: nobody",)


TRANSFERS = AccountLedger.from_transfers([("a", "b", 1), ("b", "c", 1)])
SHIELDED = CoinLedger.from_transactions(
    [{"txid": "t", "inputs": [], "outputs": [{"value": 1}], "pools": {"sprout": 5}}]
)


@pytest.mark.parametrize(
    ("ledger", "listed", "policies", "words"),
    [
        pytest.param(TRANSFERS, ["a"], ["tiho"], "accounts have no outputs", id="accounts"),
        pytest.param(SHIELDED, ["tx:t"], ["tiho"], "shielded pools", id="pools"),
        pytest.param(TRANSFERS, ["a"], ["filo"], "some of haircut", id="unknown policy"),
        pytest.param(TRANSFERS, ["a"], "fifo", "some of haircut", id="one policy as text"),
        pytest.param(TRANSFERS, "a", None, "a list of names", id="one name as text"),
        pytest.param(TRANSFERS, ["x"], None, "none of the listed", id="nobody listed"),
        pytest.param(TRANSFERS, [], None, "none of the listed", id="empty list"),
    ],
)
def test_what_cannot_be_followed_is_refused(
    ledger: Any, listed: Any, policies: Any, words: str
) -> None:
    with pytest.raises(coinhaze.CoinhazeError, match=words):
        coinhaze.taint(ledger, listed, policies=policies)


def test_the_rows_of_a_taint_stay_as_they_are() -> None:
    taint = coinhaze.taint(mixed(), ["thief"])
    with pytest.raises(ValueError, match="read-only"):
        taint.nodes[0] = 1
    assert np.all(taint.balance.floats() == [3.0, 9.0])
