"""Ordered policies against lists of lots moved by hand, and against the worked cases."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import coinhaze
import twin
from coinhaze import AccountLedger, CoinLedger
from coinhaze.solve.lots.lots_kernels import MADE
from coinhaze.solve.lots.payments import payments_of
from properties import strategies as random
from properties.comparison import ORDERS, TIGHT, node_names, profile
from solve import lots_twin
from vectors import coins, load

Order = Literal["fifo", "lifo"]
Transactions = list[dict[str, Any]]
POOLS: tuple[twin.Pools, ...] = ("each", "merged")
orders = pytest.mark.parametrize("order", ["fifo", "lifo"])
some = profile(15)


@orders
def test_the_worked_case_comes_out_exactly(order: Order) -> None:
    held = coinhaze.lots(coins("utxo"), order=order)
    answers = load("utxo_ordered")[order]
    assert sorted(answers) == sorted(
        held.graph.names.of(np.flatnonzero(held.graph.sinks)).to_pylist()
    )
    scores = coinhaze.score(held, nodes=list(answers))
    for row, (name, answer) in enumerate(answers.items()):
        parts = held.of(name).to_pylist()
        total = sum(int(part["amount"]) for part in parts)
        shares: dict[str, Fraction] = {}
        for part in parts:
            share = Fraction(int(part["amount"]), total)
            shares[part["source"]] = shares.get(part["source"], Fraction(0)) + share
        assert shares == {
            source: Fraction(exact) for source, (exact, _) in answer["sources"].items()
        }
        assert scores.bits[row] == pytest.approx(answer["bits"], rel=0, abs=TIGHT)
        assert scores.bits_low[row] <= answer["bits"] + 1e-16
        assert scores.bits_high[row] >= answer["bits"] - 1e-16
        assert scores.sources[row] == len(shares)
        assert scores.top_probability[row] == pytest.approx(float(max(shares.values())), abs=TIGHT)
        assert math.isnan(scores.steps[row])
        found = coinhaze.origins(held, name)
        assert found.bits == pytest.approx(answer["bits"], rel=0, abs=TIGHT)
        assert {r["source"]: r["probability"] for r in found.sources().to_pylist()} == {
            source: float(share) for source, share in shares.items()
        }
    assert scores.width <= 1e-13


def assert_same_lots(held: coinhaze.Lots, told: lots_twin.Told, expected: twin.Graph) -> None:
    """Check every node's lots, their order, and what is scored and summed of them."""
    names = node_names(held.graph, expected)
    scores = coinhaze.score(held, nodes="all", renyi=ORDERS)
    for row, name in enumerate(names):
        queue = told.of(name)
        found = [(part["source"], int(part["amount"])) for part in held.of(row).to_pylist()]
        assert lots_twin.merged(found) == queue, name
        assert_same_score(scores, row, lots_twin.by_source(queue))
    owner, label, amounts = held.held(np.arange(len(held)))
    assert np.all(held.holding()[owner])
    outcomes = held.outcomes.to_pylist()
    found = [(outcomes[k], a) for k, a in zip(label, amounts.ints(), strict=True)]
    found += zip(outcomes, held.fees().ints(), strict=True)
    assert nonzero(lots_twin.by_source(found)) == nonzero(told.everything())
    assert nonzero(told.everything()) or not held.live
    payments = held.payments
    assert held.live <= held.queues.count[MADE] <= len(payments.openers) + payments.cuts()


def nonzero(amounts: Mapping[str, int]) -> dict[str, int]:
    return {name: amount for name, amount in amounts.items() if amount}


def assert_same_score(scores: coinhaze.Scores, row: int, queue: Mapping[str, int]) -> None:
    total = sum(queue.values())
    if total == 0:
        assert math.isnan(scores.bits[row])
        assert math.isnan(scores.bits_low[row])
        assert scores.top[row] == -1
        return
    shares = {source: Fraction(amount, total) for source, amount in queue.items()}
    bits = twin.entropy(shares)
    assert abs(scores.bits[row] - bits) <= TIGHT
    assert scores.bits_low[row] <= bits <= scores.bits_high[row]
    assert scores.sources[row] == len(shares)
    assert scores.chain.outcomes[int(scores.top[row])].as_py() in [
        source for source, share in shares.items() if share == max(shares.values())
    ]
    for order, values in scores.renyi.items():
        assert abs(values[row] - twin.renyi(shares, order)) <= TIGHT, order
    if scores.exposure is not None and scores.conditional_bits is not None:
        listed = {source: share for source, share in shares.items() if source != twin.ELSEWHERE}
        exposure = sum(listed.values(), Fraction(0))
        assert abs(scores.exposure[row] - exposure) <= TIGHT
        if exposure == 0:
            assert math.isnan(scores.conditional_bits[row])
        else:
            given = {source: share / exposure for source, share in listed.items()}
            assert abs(scores.conditional_bits[row] - twin.entropy(given)) <= 1e-9


@orders
@some
@given(random.transactions(maximum=9))
def test_coins_move_as_lists_do(order: Order, ledger: Transactions) -> None:
    held = coinhaze.lots(CoinLedger.from_transactions(ledger), order=order)
    told = lots_twin.coin_queues(ledger, order)
    assert_same_lots(held, told, twin.coin_graph(ledger))


@orders
@pytest.mark.parametrize("pools", POOLS)
@some
@given(random.transactions(maximum=9, pools=True))
def test_pools_are_queues_or_stacks_after_the_coins(
    order: Order, pools: twin.Pools, ledger: Transactions
) -> None:
    held = coinhaze.lots(CoinLedger.from_transactions(ledger), order=order, pools=pools)
    told = lots_twin.coin_queues(ledger, order, pools=pools)
    assert_same_lots(held, told, twin.coin_graph(ledger, pools))


@orders
@pytest.mark.parametrize("mint", ["each", "one"])
@some
@given(random.transfers(maximum=16))
def test_accounts_are_queues_or_stacks(
    order: Order, mint: Literal["each", "one"], rows: list[random.Transfer]
) -> None:
    held = coinhaze.lots(AccountLedger.from_transfers(rows), order=order, mint=mint)
    told = lots_twin.account_queues(rows, order, mint=mint)
    assert_same_lots(held, told, twin.account_graph(rows, "temporal", mint=mint))


@orders
@some
@given(st.data())
def test_a_table_of_openings_comes_first(order: Order, data: st.DataObject) -> None:
    rows = data.draw(random.transfers(zero=False))
    graph = twin.account_graph(rows, "temporal")
    needed = {name: graph.opening.get(f"{name}:0", 0) for name in graph.newest}
    table = data.draw(random.tables(needed, complete=True))
    held = coinhaze.lots(AccountLedger.from_transfers(rows), order=order, opening=table)
    told = lots_twin.account_queues(rows, order, opening=table)
    assert_same_lots(held, told, twin.account_graph(rows, "temporal", opening=table))


@orders
@some
@given(st.data())
def test_listed_coins_make_money_their_own(order: Order, data: st.DataObject) -> None:
    ledger = data.draw(random.transactions(pools=True))
    graph = twin.coin_graph(ledger)
    owners = sorted(set(graph.owner.values()))
    own = sorted(node for node in graph.nodes if not node.startswith("pool:"))
    names = data.draw(random.listed(data.draw(st.sampled_from([own, owners or own]))))
    labels = twin.listed_nodes(graph, names)
    held = coinhaze.lots(CoinLedger.from_transactions(ledger), order=order, listed=names)
    assert_same_lots(held, lots_twin.coin_queues(ledger, order, listed=labels), graph)


@orders
@some
@given(st.data())
def test_listed_accounts_make_money_their_own(order: Order, data: st.DataObject) -> None:
    rows = data.draw(random.transfers(maximum=16))
    graph = twin.account_graph(rows, "temporal")
    names = data.draw(random.listed([*graph.newest, *(n for n in graph.nodes if "t:" in n)]))
    labels = twin.listed_nodes(graph, names)
    held = coinhaze.lots(AccountLedger.from_transfers(rows), order=order, listed=names)
    assert_same_lots(held, lots_twin.account_queues(rows, order, listed=labels), graph)


@orders
@some
@given(random.transactions(maximum=9))
def test_amounts_of_any_size_move_the_same(order: Order, ledger: Transactions) -> None:
    """What fits 64 bits and what does not take one code: scaling changes no share."""
    assume(all(c.get("value", 0) < 2**20 for t in ledger for c in t["inputs"] + t["outputs"]))
    small = coinhaze.lots(CoinLedger.from_transactions(ledger), order=order)
    large = coinhaze.lots(CoinLedger.from_transactions(scaled(ledger, 3**60)), order=order)
    if len(small.payments.openers):
        assert large.queues.amount.shape[1] > small.queues.amount.shape[1]
    for node in range(len(small)):
        few, many = small.of(node).to_pylist(), large.of(node).to_pylist()
        assert [p | {"amount": str(int(p["amount"]) * 3**60)} for p in few] == many
    first, second = (coinhaze.score(held, nodes="all") for held in (small, large))
    np.testing.assert_allclose(first.bits, second.bits, rtol=0, atol=TIGHT)


def scaled(ledger: Transactions, factor: int) -> Transactions:
    def worth(coin: dict[str, Any]) -> dict[str, Any]:
        return coin | ({"value": coin["value"] * factor} if "value" in coin else {})

    return [
        t | {"inputs": [worth(i) for i in t["inputs"]], "outputs": [worth(o) for o in t["outputs"]]}
        for t in ledger
    ]


def swap(first: int, second: int, *, fee: int = 0) -> Transactions:
    """One transaction with two old coins, which pays 6 and the rest less the fee."""
    old = [
        {"txid": "x", "vout": 0, "value": first},
        {"txid": "y", "vout": 0, "value": second},
    ]
    outputs = [{"value": 6}, {"value": first + second - 6 - fee}]
    return [{"txid": "t", "inputs": old, "outputs": outputs}]


def test_the_fee_takes_what_is_left_last() -> None:
    ledger = CoinLedger.from_transactions(swap(5, 5, fee=3))
    first, last = (coinhaze.lots(ledger, order=order) for order in ("fifo", "lifo"))
    assert dict(zip(first.outcomes.to_pylist(), first.fees().ints(), strict=True)) == {
        "x:0": 0,
        "y:0": 3,
    }
    assert dict(zip(last.outcomes.to_pylist(), last.fees().ints(), strict=True)) == {
        "x:0": 3,
        "y:0": 0,
    }


def test_outputs_are_paid_by_number_not_by_row() -> None:
    tables = CoinLedger.from_transactions(swap(5, 5)).tables()
    made = tables["outputs"].slice(2)
    assert made["vout"].to_pylist() == [0, 1]
    tables["outputs"] = pa.concat_tables([tables["outputs"].slice(0, 2), made.take([1, 0])])
    held = coinhaze.lots(CoinLedger.from_columns(tables))
    assert held.of("t:0").to_pylist() == [
        {"source": "x:0", "amount": "5"},
        {"source": "y:0", "amount": "1"},
    ]
    assert held.of("t:1").to_pylist() == [{"source": "y:0", "amount": "4"}]


@orders
def test_what_can_never_be_spent_is_no_sink_but_keeps_its_lots(order: Order) -> None:
    ledger = swap(5, 5)
    ledger[0]["outputs"][0]["spendable"] = False
    held = coinhaze.lots(CoinLedger.from_transactions(ledger), order=order)
    assert len(coinhaze.score(held)) == 1
    assert sum(int(part["amount"]) for part in held.of("t:0").to_pylist()) == 6


@orders
@pytest.mark.parametrize("fee", [0, 1, 4, 9])
def test_fees_of_accounts_are_paid_last(order: Order, fee: int) -> None:
    ledger = AccountLedger.from_columns(
        ["a", "b", "c"], ["c", "c", "d"], [2, 3, 1], fees=[0, 0, fee]
    )
    held = coinhaze.lots(ledger, order=order)
    assert held.graph.closing is not None
    left = sum(int(part["amount"]) for part in held.of("c").to_pylist())
    if fee < 4:
        assert left == held.graph.closing[held.graph.names.node("c")] == 4 - fee
    else:
        assert not held.holding()[held.graph.names.node("c")]
    assert sum(held.fees().ints()) == min(fee, 4)
    _, _, amounts = held.held(np.arange(len(held)))
    assert sum(amounts.ints()) + sum(held.fees().ints()) == 5


def test_clusters_are_one_queue() -> None:
    ledger = AccountLedger.from_transfers([("a", "b1", 2), ("c", "b2", 3), ("b1", "d", 4)])
    held = coinhaze.lots(ledger, clusters={"b1": "b", "b2": "b"})
    assert held.of("d").to_pylist() == [
        {"source": "a:0", "amount": "2"},
        {"source": "c:0", "amount": "2"},
    ]


def test_splitting_a_coin_can_lower_its_bits() -> None:
    scores = coinhaze.score(CoinLedger.from_transactions(swap(6, 4)), policy="fifo")
    assert scores.bits.tolist() == [0.0, 0.0]


def test_the_policy_is_a_setting_of_score_and_origins() -> None:
    ledger = AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 1), ("c", "d", 1)])
    scores = coinhaze.score(ledger, policy="lifo")
    assert scores.method == "lots, lifo"
    assert scores.to_arrow()["top_source"].to_pylist() == ["a:0", "b:0"]
    assert scores.to_arrow()["steps"].null_count == 2
    assert "steps are null" in scores.notes[-1]
    found = coinhaze.origins(ledger, "d", policy="fifo")
    assert found.sources().to_pylist() == [{"source": "a:0", "probability": 1.0}]
    assert found.way(0) == []
    assert found.as_dict()["steps"] is None


RING = [{"txid": "t", "rings": [["old:0", "old:1"]], "outputs": 1}]
TRANSFERS = AccountLedger.from_transfers([("a", "b", 1), ("b", "c", 1)])
REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "addresses": (CoinLedger.from_transactions(swap(5, 5)), {"view": "address"}, "view=coin"),
    "no order": (TRANSFERS, {"time": "stationary"}, "time=temporal"),
    "hidden amounts": (CoinLedger.from_transactions(RING), {}, "hides amounts"),
    "nothing listed is there": (TRANSFERS, {"listed": ["nobody"]}, "none of the listed"),
    "links": (TRANSFERS, {"links": {"0": {"a": 1.0}}}, "links have no meaning"),
    "history": (TRANSFERS, {"history": {"a": [1]}}, "history have no meaning"),
    "a method": (TRANSFERS, {"method": "series"}, "no method"),
    "a preview": (TRANSFERS, {"accuracy": "preview"}, "no preview"),
    "a preset": (TRANSFERS, {"preset": "paper"}, "no preset"),
    "a limit": (TRANSFERS, {"memory": "1GB"}, "leave memory"),
    "an unknown setting": (TRANSFERS, {"wiew": "coin"}, "unknown setting 'wiew'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_meaning_in_order_is_refused(case: str) -> None:
    ledger, settings, words = REFUSED[case]
    with pytest.raises(coinhaze.CoinhazeError, match=words):
        coinhaze.score(ledger, policy="fifo", **settings)


def test_an_account_is_listed_as_a_whole() -> None:
    ledger = AccountLedger.from_transfers([("a", "b", 1), ("c", "b", 1)])
    with pytest.raises(coinhaze.CoinhazeError, match="some snapshots of b"):
        coinhaze.lots(ledger, listed=["b:1"])


def test_an_order_is_fifo_or_lifo() -> None:
    with pytest.raises(coinhaze.CoinhazeError, match="fifo or lifo"):
        coinhaze.lots(TRANSFERS, order="filo")  # type: ignore[arg-type]


def test_lots_take_no_more_settings() -> None:
    with pytest.raises(coinhaze.CoinhazeError, match="lots are given"):
        coinhaze.score(coinhaze.lots(TRANSFERS), listed=["a"])


def test_payments_know_how_many_may_cut() -> None:
    ledger = CoinLedger.from_transactions(swap(5, 5))
    payments = payments_of(coinhaze.transaction_graph(ledger))
    assert (len(payments), payments.cuts(), len(payments.openers)) == (4, 2, 2)
