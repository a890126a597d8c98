"""Every view of random ledgers, against the model in exact fractions."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coinhaze
import twin
from properties import strategies as random
from properties.comparison import (
    TIGHT,
    assert_same_answers,
    assert_same_graph,
    assert_same_row,
    node_names,
    profile,
)

Time = Literal["stationary", "temporal"]
Mint = Literal["each", "one"]
Pools = Literal["each", "merged"]
Observed = Literal["surplus", "observed"]
Transfers = list[random.Transfer]
Transactions = list[random.Transaction]

few = profile(10)
some = profile(20)
times = pytest.mark.parametrize("time", ["stationary", "temporal"])


def account_graph(transfers: Transfers, **settings: Any) -> coinhaze.TransactionGraph:
    ledger = coinhaze.AccountLedger.from_transfers(transfers)
    return coinhaze.transaction_graph(ledger, **settings)


def coin_graph(transactions: Transactions, **settings: Any) -> coinhaze.TransactionGraph:
    ledger = coinhaze.CoinLedger.from_transactions(transactions)
    return coinhaze.transaction_graph(ledger, **settings)


def assert_all_same(graph: coinhaze.TransactionGraph, expected: twin.Graph) -> None:
    """Check the graph and its proportional and uniform walks."""
    assert_same_graph(graph, expected)
    names = node_names(graph, expected)
    chain = coinhaze.absorbing_chain(graph)
    scores = assert_same_answers(chain, names, twin.solve(twin.proportional(expected)))
    assert scores.conservation is None or scores.conservation <= TIGHT
    uniform = coinhaze.absorbing_chain(graph, policy="uniform")
    assert_same_answers(uniform, names, twin.solve(twin.uniform(expected)))


def owners_of(transactions: Transactions) -> list[str]:
    """Name the addresses that own a coin of some value."""
    coins = [c for t in transactions for c in (*t["inputs"], *t["outputs"]) if c.get("value")]
    return sorted({coin["address"] for coin in coins if coin["address"]})


def min_openings(expected: twin.Graph) -> dict[str, int]:
    """Give what each account of a graph opened with at least, 0 for those that needed nothing."""
    accounts = {expected.owner.get(node, node) for node in expected.nodes}
    needed = dict.fromkeys(accounts, 0)
    for node, amount in expected.opening.items():
        needed[expected.owner.get(node, node)] += amount
    return {name: amount for name, amount in needed.items() if not name.startswith("mint:")}


# ---------------------------------------------------------------- views and openings


@times
@pytest.mark.parametrize("mint", ["each", "one"])
@given(transfers=random.transfers())
@some
def test_accounts_score_as_the_twin_says(time: Time, mint: Mint, transfers: Transfers) -> None:
    graph = account_graph(transfers, time=time, mint=mint)
    assert_all_same(graph, twin.account_graph(transfers, time=time, mint=mint))


@times
@pytest.mark.parametrize("mint", ["each", "one"])
@given(transfers=random.transfers(), data=st.data())
@few
def test_a_complete_table_gives_the_openings_of_accounts(
    time: Time, mint: Mint, transfers: Transfers, data: st.DataObject
) -> None:
    needed = min_openings(twin.account_graph(transfers, time=time, mint=mint))
    table = data.draw(random.tables(needed, complete=True))
    graph = account_graph(transfers, time=time, mint=mint, opening=table)
    assert_all_same(graph, twin.account_graph(transfers, time, table, mint=mint))


@times
@given(transfers=random.transfers(), data=st.data())
@few
def test_a_table_below_the_surplus_is_refused_or_topped_up(
    time: Time, transfers: Transfers, data: st.DataObject
) -> None:
    needed = min_openings(twin.account_graph(transfers, time=time))
    table = data.draw(random.tables(needed, complete=False))
    if any(table.get(name, 0) < minimum for name, minimum in needed.items() if name != twin.ZERO):
        with pytest.raises(coinhaze.CoinhazeError, match="short"):
            account_graph(transfers, time=time, opening=table)
    graph = account_graph(transfers, time=time, opening=table, top_up=True)
    assert_all_same(graph, twin.account_graph(transfers, time, table, top_up=True))


@times
@given(transfers=random.transfers(), amount=random.SMALL)
@few
def test_a_table_makes_no_node_of_an_account_that_moved_nothing(
    time: Time, transfers: Transfers, amount: int
) -> None:
    idle = [("idle", "idle", 4), ("a", "empty", 0), ("empty", "a", 0)]
    transfers = [*idle[:1], *transfers, *idle[1:]]
    table = {"idle": amount, "empty": amount, twin.ZERO: amount}
    graph = account_graph(transfers, time=time, opening=table, top_up=True)
    assert_all_same(graph, twin.account_graph(transfers, time, table, top_up=True))


@given(transactions=random.transactions())
@some
def test_coins_score_as_the_twin_says(transactions: Transactions) -> None:
    assert_all_same(coin_graph(transactions), twin.coin_graph(transactions))


@pytest.mark.parametrize("view", ["coin", "address"])
def test_every_transaction_is_a_node(view: Literal["coin", "address"]) -> None:
    paid = {"txid": "t0", "inputs": [], "outputs": [{"value": 5, "address": "p"}]}
    empty = {"txid": "old0", "vout": 0, "value": 0, "address": "q"}
    transactions = [paid, {"txid": "t1", "inputs": [empty], "outputs": []}]
    graph = coin_graph(transactions, view=view)
    names = graph.names.of(np.arange(len(graph))).to_pylist()
    assert {"tx:t0", "tx:t1"} <= set(names)


@times
@pytest.mark.parametrize("opening", ["surplus", "observed"])
@given(transactions=random.transactions())
@some
def test_addresses_score_as_the_twin_says(
    time: Time, opening: Observed, transactions: Transactions
) -> None:
    graph = coin_graph(transactions, view="address", time=time, opening=opening)
    assert_all_same(graph, twin.address_graph(transactions, time=time, opening=opening))


@times
@given(transactions=random.transactions(), data=st.data())
@few
def test_a_table_gives_the_openings_of_addresses(
    time: Time, transactions: Transactions, data: st.DataObject
) -> None:
    addresses = owners_of(transactions)
    needed = min_openings(twin.address_graph(transactions, time=time))
    table = data.draw(random.tables({a: needed.get(a, 0) for a in addresses}, complete=False))
    graph = coin_graph(transactions, view="address", time=time, opening=table, top_up=True)
    assert_all_same(graph, twin.address_graph(transactions, time, table, top_up=True))


# ---------------------------------------------------------------- pools and rings


@pytest.mark.parametrize("pools", ["each", "merged"])
@given(transactions=random.transactions(pools=True))
@some
def test_coins_and_pools_score_as_the_twin_says(pools: Pools, transactions: Transactions) -> None:
    graph = coin_graph(transactions, pools=pools)
    assert_all_same(graph, twin.coin_graph(transactions, pools=pools))


@times
@pytest.mark.parametrize("pools", ["each", "merged"])
@pytest.mark.parametrize("opening", ["surplus", "observed"])
@given(transactions=random.transactions(pools=True))
@few
def test_addresses_and_pools_score_as_the_twin_says(
    time: Time, pools: Pools, opening: Observed, transactions: Transactions
) -> None:
    graph = coin_graph(transactions, view="address", time=time, pools=pools, opening=opening)
    expected = twin.address_graph(transactions, time=time, pools=pools, opening=opening)
    assert_all_same(graph, expected)


@pytest.mark.parametrize("pools", ["each", "merged"])
@given(transactions=random.transactions(pools=True), data=st.data())
@few
def test_a_table_gives_the_openings_of_pools_in_the_coin_view(
    pools: Pools, transactions: Transactions, data: st.DataObject
) -> None:
    openings = min_openings(twin.coin_graph(transactions, pools=pools))
    needed = {name: minimum for name, minimum in openings.items() if name.startswith("pool:")}
    table = data.draw(random.tables(needed, complete=False))
    graph = coin_graph(transactions, pools=pools, opening=table, top_up=True)
    assert_all_same(graph, twin.coin_graph(transactions, pools, table, top_up=True))


@times
@pytest.mark.parametrize("pools", ["each", "merged"])
@given(transactions=random.transactions(pools=True), extra=st.sampled_from([0, 1, 2**70]))
@few
def test_pools_open_with_the_value_the_chain_gives(
    time: Time, pools: Pools, transactions: Transactions, extra: int
) -> None:
    each = min_openings(twin.address_graph(transactions, time=time))
    values = {pool: each.get(f"pool:{pool}", 0) + extra for pool in random.POOLS}
    ledger = coinhaze.CoinLedger.from_transactions(transactions, pool_values=values)
    graph = coinhaze.transaction_graph(
        ledger, view="address", time=time, pools=pools, opening="observed"
    )
    observed = min_openings(twin.address_graph(transactions, time, "observed"))
    table = {name: minimum for name, minimum in observed.items() if not name.startswith("pool:")}
    table |= {f"pool:{pool}": value for pool, value in values.items()}
    table["pool:shielded"] = sum(values.values())
    assert_all_same(graph, twin.address_graph(transactions, time, table, pools=pools))


@given(transactions=random.ring_transactions())
@some
def test_rings_score_as_the_twin_says(transactions: Transactions) -> None:
    graph = coin_graph(transactions)
    expected = twin.ring_graph(transactions)
    assert_same_graph(graph, expected)
    assert graph.closing is None
    answers = twin.solve(twin.proportional(expected))
    scores = assert_same_answers(
        coinhaze.absorbing_chain(graph), node_names(graph, expected), answers
    )
    assert scores.conservation is None


@given(transactions=random.ring_transactions(), data=st.data())
@some
def test_ring_members_count_by_their_posterior(
    transactions: Transactions, data: st.DataObject
) -> None:
    posteriors = data.draw(random.posteriors(transactions))
    expected = twin.ring_graph(transactions)
    rows = twin.proportional(expected)
    told = []
    for transaction, chances in zip(transactions, posteriors, strict=True):
        told.append(transaction | {"posteriors": [[float(p) for p in ring] for ring in chances]})
        for vin, (ring, shares) in enumerate(zip(transaction["rings"], chances, strict=True)):
            row = dict(zip(ring, shares, strict=True))
            rows[f"ring:{transaction['txid']}:{vin}"] = {m: p for m, p in row.items() if p > 0}
    chain = coinhaze.absorbing_chain(coin_graph(told))
    assert_same_answers(chain, node_names(chain.graph, expected), twin.solve(rows))


# ---------------------------------------------------------------- clusters


@times
@pytest.mark.parametrize("mint", ["each", "one"])
@given(transfers=random.transfers(), data=st.data())
@few
def test_clusters_of_accounts_are_one_node(
    time: Time, mint: Mint, transfers: Transfers, data: st.DataObject
) -> None:
    table = data.draw(random.clusters(random.ACCOUNTS))
    graph = account_graph(transfers, time=time, mint=mint, clusters=table)
    assert_all_same(graph, twin.account_graph(transfers, time, mint=mint, clusters=table))


@times
@pytest.mark.parametrize("opening", ["surplus", "observed"])
@given(transactions=random.transactions(pools=True), data=st.data())
@few
def test_clusters_of_addresses_are_one_node(
    time: Time, opening: Observed, transactions: Transactions, data: st.DataObject
) -> None:
    table = data.draw(random.clusters(random.ADDRESSES))
    graph = coin_graph(transactions, view="address", time=time, opening=opening, clusters=table)
    assert_all_same(graph, twin.address_graph(transactions, time, opening, clusters=table))


@given(transfers=random.transfers(), data=st.data())
@few
def test_a_table_may_name_members_of_clusters(transfers: Transfers, data: st.DataObject) -> None:
    clusters = data.draw(random.clusters(random.ACCOUNTS))
    seen = {name for sender, receiver, _ in transfers for name in (sender, receiver)}
    members = sorted(seen - {twin.ZERO})
    table = data.draw(random.tables(dict.fromkeys(members, 0), complete=False))
    graph = account_graph(transfers, clusters=clusters, opening=table, top_up=True)
    expected = twin.account_graph(transfers, opening=table, top_up=True, clusters=clusters)
    assert_all_same(graph, expected)


# ---------------------------------------------------------------- source sets and poison


def conditional_bits(answer: twin.Answer) -> float | None:
    """Give the entropy given that the walk ended in the list; None if it never does."""
    inside = {n: p for n, p in answer.distribution.items() if n != twin.ELSEWHERE and p > 0}
    total = sum(inside.values())
    return twin.entropy({n: p / total for n, p in inside.items()}) if total else None


def assert_same_exposure(
    scores: coinhaze.Scores, names: list[str], answers: Mapping[str, twin.Answer | None]
) -> None:
    assert scores.exposure is not None
    assert scores.conditional_bits is not None
    for row, name in enumerate(names):
        answer = answers[name]
        if answer is None:
            assert math.isnan(scores.conditional_bits[row]), name
            continue
        outside = answer.distribution.get(twin.ELSEWHERE, Fraction(0))
        assert abs(scores.exposure[row] - (1 - outside)) <= TIGHT, name
        conditional = conditional_bits(answer)
        if conditional is None:
            assert math.isnan(scores.conditional_bits[row]), name
        elif 1 - outside > Fraction(1, 2**900):  # below that the list's share is no float
            assert abs(scores.conditional_bits[row] - conditional) <= TIGHT, name


def listable(expected: twin.Graph) -> list[str]:
    """Name all that may be listed: nodes, accounts and owners."""
    return sorted(expected.nodes | set(expected.owner.values()))


def assert_lists_agree(
    graph: coinhaze.TransactionGraph,
    expected: twin.Graph,
    policy: Literal["proportional", "uniform"],
    data: st.DataObject,
) -> None:
    listed = data.draw(random.listed(listable(expected)))
    # Two entries for the very same nodes are one; which of the names it goes by is not said.
    stands_for: dict[frozenset[str], str] = {}
    for name in listed:
        nodes = frozenset(n for n in expected.nodes if n == name or expected.owner.get(n) == name)
        if nodes in stands_for:
            listed = [other for other in listed if other != name]
        stands_for.setdefault(nodes, name)
    labels = twin.listed_nodes(expected, listed)
    chain = coinhaze.absorbing_chain(graph, policy=policy, listed=listed)
    rows = twin.proportional(expected) if policy == "proportional" else twin.uniform(expected)
    answers = twin.solve(twin.with_sources(expected, rows, listed))
    names = node_names(graph, expected)
    scores = assert_same_answers(chain, names, answers)
    assert_same_exposure(scores, names, answers)
    assert scores.exposure is not None
    assert scores.conservation is None
    for row, name in enumerate(names):
        if answers[name] is None:
            assert math.isnan(scores.exposure[row]), name
        if name in labels:
            assert scores.steps[row] == 1
            assert scores.exposure[row] == 1


def assert_poison_agrees(
    graph: coinhaze.TransactionGraph, expected: twin.Graph, data: st.DataObject
) -> None:
    listed = data.draw(random.listed(sorted(expected.nodes)))
    chain = coinhaze.absorbing_chain(graph, policy="poison", listed=listed)
    answers = twin.solve(twin.poison(expected, listed))
    names = node_names(graph, expected)
    scores = assert_same_answers(chain, names, answers)
    assert_same_exposure(scores, names, answers)
    assert scores.exposure is not None
    assert scores.conservation is None
    for row, name in enumerate(names):
        if answers[name] is None:
            assert scores.exposure[row] == 0, name
        else:
            assert abs(scores.exposure[row] - 1) <= TIGHT, name


walks = pytest.mark.parametrize("policy", ["proportional", "uniform"])


@times
@walks
@given(transfers=random.transfers(), data=st.data())
@few
def test_listed_accounts_absorb_on_arrival(
    time: Time,
    policy: Literal["proportional", "uniform"],
    transfers: Transfers,
    data: st.DataObject,
) -> None:
    graph = account_graph(transfers, time=time)
    assert_lists_agree(graph, twin.account_graph(transfers, time), policy, data)


@walks
@given(transactions=random.transactions(pools=True), data=st.data())
@few
def test_listed_addresses_stand_for_their_coins(
    policy: Literal["proportional", "uniform"], transactions: Transactions, data: st.DataObject
) -> None:
    assert_lists_agree(coin_graph(transactions), twin.coin_graph(transactions), policy, data)


@times
@given(transactions=random.transactions(pools=True), data=st.data())
@few
def test_listed_addresses_absorb_on_arrival(
    time: Time, transactions: Transactions, data: st.DataObject
) -> None:
    graph = coin_graph(transactions, view="address", time=time)
    assert_lists_agree(graph, twin.address_graph(transactions, time), "proportional", data)


@times
@given(transfers=random.transfers(), data=st.data())
@few
def test_poison_spreads_over_accounts(
    time: Time, transfers: Transfers, data: st.DataObject
) -> None:
    graph = account_graph(transfers, time=time)
    assert_poison_agrees(graph, twin.account_graph(transfers, time), data)


@given(transactions=random.transactions(pools=True), data=st.data())
@few
def test_poison_spreads_over_coins(transactions: Transactions, data: st.DataObject) -> None:
    assert_poison_agrees(coin_graph(transactions), twin.coin_graph(transactions), data)


@given(transactions=random.ring_transactions(), data=st.data())
@few
def test_poison_spreads_over_rings(transactions: Transactions, data: st.DataObject) -> None:
    assert_poison_agrees(coin_graph(transactions), twin.ring_graph(transactions), data)


# ---------------------------------------------------------------- links


Payments = Mapping[str, tuple[str, str, int]]
Moment = tuple[int, int]
BEFORE: Moment = (-1, 0)


def assert_links_agree(
    graph: coinhaze.TransactionGraph,
    expected: twin.Graph,
    payments: Payments,
    policy: Literal["proportional", "uniform"],
    data: st.DataObject,
    born: Mapping[str, Moment] | None = None,
) -> None:
    """Check linked payments; each is given as (tail, head, amount) of the twin's graph.

    Where time counts, `born` says when each node came to be, and links lead to earlier nodes only.
    """
    nodes = sorted(expected.nodes)
    origins = {
        payment: [n for n in nodes if born is None or born[n] < born[head]]
        for payment, (_, head, _) in payments.items()
    }
    links = data.draw(random.links(origins))
    plain = twin.proportional(expected) if policy == "proportional" else twin.uniform(expected)
    rows = plain
    for payment, distribution in links.items():
        tail, head, amount = payments[payment]
        share = plain[head][tail] * Fraction(amount, expected.edges[tail, head])
        rows = twin.with_link(rows, head, tail, share, distribution)
    given_links = {
        payment: {node: float(share) for node, share in distribution.items()}
        for payment, distribution in links.items()
    }
    names = node_names(graph, expected)
    chain = coinhaze.absorbing_chain(graph, policy=policy, links=given_links)
    scores = assert_same_answers(chain, names, twin.solve(rows))
    assert scores.conservation is None
    listed = data.draw(st.sampled_from(nodes))
    chain = coinhaze.absorbing_chain(graph, policy=policy, links=given_links, listed=[listed])
    answers = twin.solve(twin.with_sources(expected, rows, [listed]))
    assert_same_exposure(assert_same_answers(chain, names, answers), names, answers)
    assert_later_origins_are_refused(graph, payments, nodes, names, born)


def assert_later_origins_are_refused(
    graph: coinhaze.TransactionGraph,
    payments: Payments,
    nodes: list[str],
    names: list[str],
    born: Mapping[str, Moment] | None,
) -> None:
    """Check that no link runs forward in time; mints and coinbases have a test of their own."""
    heads = {names[k] for k in graph.head.tolist()}
    nodes = [node for node in nodes if node in heads]
    for payment, (_, head, _) in payments.items():
        for node in nodes:
            if born is not None and born[node] >= born[head]:
                with pytest.raises(coinhaze.CoinhazeError, match="after that payment"):
                    coinhaze.absorbing_chain(graph, links={payment: {node: 1.0}})


def account_payments(
    transfers: Transfers, expected: twin.Graph
) -> tuple[dict[str, tuple[str, str, int]], dict[str, Moment]]:
    """Find the edge of the twin's graph that each transfer is part of, and when nodes were born."""
    receipts: dict[str, int] = {}
    payments = {}
    born = dict.fromkeys(expected.nodes, BEFORE)
    for row, (sender, receiver, amount) in enumerate(transfers):
        if amount == 0 or sender == receiver:
            continue
        tail = f"mint:{row}" if sender == twin.ZERO else sender
        head = f"burn:{row}" if receiver == twin.ZERO else receiver
        if sender == twin.ZERO:
            born[tail] = (row, 0)
        if tail in expected.newest:
            tail = f"{tail}:{receipts.get(tail, 0)}"
        if head in expected.newest:
            receipts[head] = receipts.get(head, 0) + 1
            head = f"{head}:{receipts[head]}"
        born[head] = (row, 1)
        payments[str(row)] = (tail, head, amount)
    return payments, born


def coin_payments(
    transactions: Transactions, expected: twin.Graph
) -> tuple[dict[str, tuple[str, str, int]], dict[str, Moment]]:
    """Find the edge of the coin graph that each output is, and when nodes were born."""
    receipts: dict[str, int] = {}
    payments = {}
    born = dict.fromkeys(expected.nodes, BEFORE)
    for row, transaction in enumerate(transactions):
        node = f"tx:{transaction['txid']}"
        born[node] = (row, 0)
        for vout, output in enumerate(transaction["outputs"]):
            name = f"{transaction['txid']}:{vout}"
            if output["value"] > 0:
                payments[name] = (node, name, output["value"])
                born[name] = (row, 1)
        for pool, flow in transaction.get("pools", {}).items():
            if flow > 0:
                receipts[pool] = receipts.get(pool, 0) + 1
                born[f"pool:{pool}:{receipts[pool]}"] = (row, 1)
    return payments, born


@times
@walks
@given(transfers=random.transfers(), data=st.data())
@few
def test_linked_transfers_go_where_they_are_known_to_come_from(
    time: Time,
    policy: Literal["proportional", "uniform"],
    transfers: Transfers,
    data: st.DataObject,
) -> None:
    graph = account_graph(transfers, time=time)
    expected = twin.account_graph(transfers, time)
    payments, born = account_payments(transfers, expected)
    timed = born if time == "temporal" else None
    assert_links_agree(graph, expected, payments, policy, data, timed)


def test_a_link_to_money_made_later_is_refused() -> None:
    graph = account_graph([("a", "b", 1), (twin.ZERO, "c", 1)], time="temporal")
    with pytest.raises(coinhaze.CoinhazeError, match="after that payment"):
        coinhaze.absorbing_chain(graph, links={"0": {"mint:1": 1.0}})
    made = [{"txid": t, "inputs": [], "outputs": [{"value": 1}]} for t in ("t0", "t1")]
    with pytest.raises(coinhaze.CoinhazeError, match="after that payment"):
        coinhaze.absorbing_chain(coin_graph(made), links={"t0:0": {"tx:t1": 1.0}})


def test_a_link_may_name_an_earlier_snapshot() -> None:
    transfers = [("a", "b", 1), ("b", "c", 2)]
    graph = account_graph(transfers, time="temporal")
    chain = coinhaze.absorbing_chain(graph, links={"1": {"b:0": 1.0}})
    assert coinhaze.origins(chain, "c").sources().to_pylist() == [
        {"source": "b:0", "probability": 1.0}
    ]


@walks
@given(transactions=random.transactions(pools=True), data=st.data())
@few
def test_linked_outputs_of_one_transaction_may_differ(
    policy: Literal["proportional", "uniform"], transactions: Transactions, data: st.DataObject
) -> None:
    expected = twin.coin_graph(transactions)
    payments, born = coin_payments(transactions, expected)
    if payments:
        assert_links_agree(coin_graph(transactions), expected, payments, policy, data, born)


@given(transactions=random.transactions(), data=st.data())
@few
def test_linked_outputs_move_their_share_of_an_address(
    transactions: Transactions, data: st.DataObject
) -> None:
    payments = {}
    for t in transactions:
        for vout, output in enumerate(t["outputs"]):
            name = f"{t['txid']}:{vout}"
            if output["value"] > 0:
                payments[name] = (f"tx:{t['txid']}", output["address"] or name, output["value"])
    if payments:
        graph = coin_graph(transactions, view="address")
        expected = twin.address_graph(transactions)
        assert_links_agree(graph, expected, payments, "proportional", data)


# ---------------------------------------------------------------- histories


def assert_history_agrees(
    graph: coinhaze.TransactionGraph, expected: twin.Graph, data: st.DataObject
) -> None:
    plain = twin.solve(twin.proportional(expected))
    source = data.draw(st.sampled_from(sorted(expected.opening)))
    values = data.draw(random.histories())
    names = node_names(graph, expected)
    chain = coinhaze.absorbing_chain(graph, history={source: values})
    scores = coinhaze.score(chain, nodes="all", renyi=(0, 0.5, 1, 2, math.inf), threads=1)
    assert scores.bits_unmodified is not None
    for row, name in enumerate(names):
        answer = plain[name]
        if answer is None:
            assert_same_row(scores, row, None, name)
            assert math.isnan(scores.bits_unmodified[row]), name
            continue
        told = twin.expanded(answer, source, values)
        bits = twin.with_history(answer, source, values)
        assert abs(bits - twin.entropy(told)) <= TIGHT
        assert abs(scores.bits[row] - bits) <= TIGHT, name
        assert_same_row(scores, row, twin.Answer(told, answer.steps, twin.entropy(told)), name)
        assert abs(scores.bits_unmodified[row] - answer.bits) <= TIGHT, name


@pytest.mark.parametrize("pools", ["each", "merged"])
@given(transactions=random.transactions(pools=True), data=st.data())
@few
def test_a_history_adds_its_own_uncertainty_to_coins(
    pools: Pools, transactions: Transactions, data: st.DataObject
) -> None:
    expected = twin.coin_graph(transactions, pools)
    if expected.opening:
        assert_history_agrees(coin_graph(transactions, pools=pools), expected, data)


@times
@given(transactions=random.transactions(pools=True), data=st.data())
@few
def test_a_history_adds_its_own_uncertainty_to_addresses(
    time: Time, transactions: Transactions, data: st.DataObject
) -> None:
    expected = twin.address_graph(transactions, time)
    if expected.opening:
        graph = coin_graph(transactions, view="address", time=time)
        assert_history_agrees(graph, expected, data)


# ---------------------------------------------------------------- the comparison itself


def test_the_comparison_notices_a_wrong_answer() -> None:
    transfers = [("a", "c", 1), ("b", "c", 3), ("c", "a", 1)]
    graph = account_graph(transfers)
    expected = twin.account_graph(transfers)
    chain = coinhaze.absorbing_chain(graph)
    names = node_names(graph, expected)
    answers = twin.solve(twin.proportional(expected))
    assert_same_answers(chain, names, answers)
    right = answers["c"]
    assert right is not None
    shares = {"b": Fraction(1, 2), "a": Fraction(1, 2)}
    for wrong in (
        None,
        twin.Answer(right.distribution, right.steps, right.bits + 1e-11),
        twin.Answer(right.distribution, right.steps * (1 + Fraction(1, 10**11)), right.bits),
        twin.Answer(shares, right.steps, right.bits),
        twin.Answer(right.distribution | {"c": Fraction(1, 10**9)}, right.steps, right.bits),
    ):
        with pytest.raises(AssertionError):
            assert_same_answers(chain, names, {**answers, "c": wrong})
    for change in ("opening", "sinks", "edges"):
        other = twin.account_graph(transfers)
        if change == "opening":
            other.opening["b"] += 1
        elif change == "sinks":
            other.sinks ^= {"a"}
        else:
            other.edges["b", "c"] += 1
        with pytest.raises(AssertionError):
            assert_same_graph(graph, other)
    assert np.all(coinhaze.score(chain, threads=1).bits >= 0)
