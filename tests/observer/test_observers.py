from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import coinhaze
from coinhaze import AccountLedger, CoinLedger, absorbing_chain, transaction_graph
from coinhaze.errors import InputError, PolicyError, UnknownName, UsageError
from coinhaze.observer.walks import poison
from vectors import accounts, coins


def mixed() -> AccountLedger:
    return AccountLedger.from_transfers([("a", "m", 4), ("b", "m", 4), ("m", "c", 6)])


def bits_of(ledger: Any, node: str, **settings: Any) -> float:
    return float(coinhaze.score(ledger, nodes=[node], **settings).bits[0])


def test_a_function_of_the_graph_is_a_policy() -> None:
    def first_only(graph: coinhaze.TransactionGraph) -> Any:
        p = np.zeros((len(graph), len(graph) + 1))
        for node in range(len(graph)):
            edges = np.flatnonzero(graph.head == node)
            if graph.sources[node] or len(edges) == 0:
                p[node, -1] = 1
            else:
                p[node, graph.tail[edges[0]]] = 1
        return p

    assert bits_of(mixed(), "c", policy=first_only) == 0
    chain = absorbing_chain(transaction_graph(mixed()), policy=first_only)
    assert coinhaze.score(chain).conservation is None


def test_a_matrix_is_a_policy_and_may_be_sparse() -> None:
    graph = transaction_graph(mixed())
    names = graph.names.of(np.arange(len(graph))).to_pylist()
    p = scipy.sparse.lil_array((len(graph), len(graph) + 1))
    p[names.index("a"), -1] = p[names.index("b"), -1] = 1
    p[names.index("m"), names.index("a")] = 0.25
    p[names.index("m"), names.index("b")] = 0.75
    p[names.index("c"), names.index("m")] = 1
    chain = absorbing_chain(graph, policy=p)
    assert coinhaze.score(chain, nodes=["c"]).bits[0] == pytest.approx(0.8112781244591328)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda p: p * 0.5, "sums to 0.5"),
        (lambda p: p * (1 + 1e-8), "sums to 1.00000001"),
        (lambda p: p - 2 * np.eye(*p.shape), "negative"),
        (lambda p: p * math.nan, "non-finite"),
        (lambda p: p[:, :-1], "shape"),
    ],
)
def test_a_policy_that_is_no_walk_is_refused(change: Any, fault: str) -> None:
    graph = transaction_graph(mixed())
    p = np.zeros((len(graph), len(graph) + 1))
    p[:, -1] = 1
    with pytest.raises(PolicyError, match=fault):
        absorbing_chain(graph, policy=change(p))


def test_a_policy_that_traps_the_walk_has_no_answer() -> None:
    graph = transaction_graph(mixed())
    p = np.zeros((len(graph), len(graph) + 1))
    p[:, 0] = 1
    scores = coinhaze.score(absorbing_chain(graph, policy=p), nodes="all")
    assert np.isnan(scores.bits).all()


def test_poison_without_a_list_and_unknown_policies_are_refused() -> None:
    graph = transaction_graph(mixed())
    with pytest.raises(UsageError, match="needs a list"):
        absorbing_chain(graph, policy="poison")
    with pytest.raises(UsageError, match="unknown policy 'fairy'"):
        absorbing_chain(graph, policy="fairy")
    with pytest.raises(UsageError, match="links have no meaning"):
        absorbing_chain(graph, policy="poison", listed=["a"], links={"0": {"a": 1.0}})
    with pytest.raises(UsageError, match="not both"):
        absorbing_chain(graph, listed=["a"], history={"a": [1, 2]})


def test_a_walk_that_may_be_trapped_has_no_answer_either() -> None:
    ledger = AccountLedger.from_transfers([("a", "c", 1), ("t", "c", 1), ("c", "d", 2)])
    graph = transaction_graph(ledger)
    node = graph.names.node
    p = np.zeros((len(graph), len(graph) + 1))
    p[node("a"), -1] = p[node("t"), node("t")] = p[node("d"), node("a")] = 1
    p[node("c"), node("a")] = p[node("c"), node("t")] = 0.5
    chain = absorbing_chain(graph, policy=p)
    scores = coinhaze.score(chain, nodes=["a", "c", "d", "t"])
    assert np.isnan(scores.bits).tolist() == [False, True, False, True]


def test_listed_names_not_in_the_ledger_are_named() -> None:
    chain = absorbing_chain(transaction_graph(mixed()), listed=["a", "nobody"])
    assert chain.notes == ("list: 1 name not in the ledger: nobody",)
    with pytest.raises(InputError, match="none of the listed names"):
        absorbing_chain(transaction_graph(mixed()), listed=["nobody"])


def test_a_listed_address_stands_for_all_its_coins_as_one() -> None:
    graph = transaction_graph(coins("utxo"))
    chain = absorbing_chain(graph, listed=["addr2"])
    assert chain.outcomes.to_pylist() == ["addr2", "elsewhere"]
    by_coin = absorbing_chain(graph, listed=["old1:0", "old5:0", "t1:1"])
    one, each = (coinhaze.score(c, nodes=["t12:0"]) for c in (chain, by_coin))
    assert one.exposure is not None
    assert each.exposure is not None
    assert one.exposure[0] == pytest.approx(each.exposure[0], abs=1e-12)
    assert one.steps[0] == pytest.approx(each.steps[0], abs=1e-12)


def test_a_listed_account_stands_for_all_its_snapshots_and_absorbs_in_one_step() -> None:
    graph = transaction_graph(accounts("account_temporal"), time="temporal")
    chain = absorbing_chain(graph, listed=["acct0"])
    scores = coinhaze.score(chain, nodes=["acct0", "acct0:1", "acct4"])
    assert scores.steps[:2].tolist() == [1, 1]
    assert scores.exposure is not None
    assert scores.exposure[:2].tolist() == [1, 1]
    assert 0 < scores.exposure[2] < 1


def test_poison_never_walks_on_from_what_is_listed() -> None:
    ledger = AccountLedger.from_transfers([("a", "b", 1), ("b", "c", 1)])
    graph = transaction_graph(ledger)
    listed = np.isin(graph.names.of(np.arange(len(graph))).to_pylist(), ["a", "b"])
    walk, clean = poison(graph, listed)
    assert np.diff(walk.q.indptr)[listed].tolist() == [0, 0]
    assert not clean.any()
    scores = coinhaze.score(ledger, nodes=["b", "c"], policy="poison", listed=["a", "b"])
    assert scores.to_arrow()["top_source"].to_pylist() == ["b", "b"]
    assert scores.steps.tolist() == [1, 2]


def test_a_coin_listed_beside_its_address_is_reported_by_itself() -> None:
    spent = [{"txid": f"old{k}", "vout": 0, "value": 5, "address": "A"} for k in range(2)]
    ledger = CoinLedger.from_transactions([{"txid": "t", "inputs": spent, "outputs": []}])
    for listed in (["A", "old0:0"], ["old0:0", "A"]):
        chain = absorbing_chain(transaction_graph(ledger), listed=listed)
        top = coinhaze.score(chain, nodes=["old0:0", "old1:0"]).to_arrow()["top_source"]
        assert top.to_pylist() == ["old0:0", "A"]


def test_two_members_of_one_cluster_are_one_entry_of_a_list() -> None:
    ledger = AccountLedger.from_transfers([("m1", "x", 5), ("m2", "x", 5), ("y", "x", 10)])
    graph = transaction_graph(ledger, clusters={"m1": "E", "m2": "E"})
    chain = absorbing_chain(graph, listed=["m1", "m2"])
    assert chain.outcomes.to_pylist() == ["m1", "elsewhere"]
    assert chain.settings["listed"] == 1


def test_exposure_nowhere_has_no_conditional_bits() -> None:
    ledger = AccountLedger.from_transfers([("a", "b", 1), ("c", "d", 1)])
    row = coinhaze.score(ledger, nodes=["d"], listed=["a"]).to_arrow().to_pylist()[0]
    assert row["exposure"] == 0
    assert row["bits"] == 0
    assert row["conditional_bits"] is None


def test_a_link_moves_only_its_own_payments_share() -> None:
    ledger = AccountLedger.from_transfers(
        [("a", "m", 4), ("b", "m", 4), ("m", "c", 2), ("m", "c", 6)]
    )
    chain = absorbing_chain(transaction_graph(ledger), links={"2": {"a": 1.0}})
    shares = coinhaze.origins(chain, "c").sources().to_pylist()
    assert [(s["source"], s["probability"]) for s in shares] == [("a", 0.625), ("b", 0.375)]
    both = {"2": {"a": 1.0}, "3": {"a": 0.5, "b": 0.5}}
    chain = absorbing_chain(transaction_graph(ledger), links=both)
    scores = coinhaze.score(chain, nodes=["c"])
    assert scores.steps[0] == 2
    assert scores.mass[0] == 1


def test_outputs_of_one_transaction_may_differ_by_links() -> None:
    ledger = CoinLedger.from_transactions(
        [
            {
                "txid": "mix",
                "inputs": [
                    {"txid": "x", "vout": 0, "value": 5, "address": "a"},
                    {"txid": "y", "vout": 0, "value": 5, "address": "b"},
                ],
                "outputs": [{"value": 5, "address": "c"}, {"value": 5, "address": "d"}],
            }
        ]
    )
    links = {"mix:0": {"x:0": 1.0}}
    scores = coinhaze.score(ledger, nodes=["mix:0", "mix:1"], links=links)
    assert scores.bits.tolist() == [0, 1]
    by_address = {"mix:0": {"a": 0.5, "b": 0.5}}
    assert bits_of(ledger, "c", view="address", links=by_address) == 1


def test_a_link_in_a_temporal_graph_means_the_account_before_the_payment() -> None:
    transfers = [("s", "a", 5), ("m", "c", 5), ("t", "a", 5)]
    ledger = AccountLedger.from_transfers(transfers)
    chain = absorbing_chain(transaction_graph(ledger, time="temporal"), links={"1": {"a": 1.0}})
    assert coinhaze.origins(chain, "c").sources().to_pylist() == [
        {"source": "s:0", "probability": 1.0}
    ]
    with pytest.raises(InputError, match="no money before"):
        absorbing_chain(transaction_graph(ledger, time="temporal"), links={"0": {"c": 1.0}})


def test_a_link_in_a_temporal_graph_means_the_newest_snapshot_before_the_payment() -> None:
    ledger = AccountLedger.from_transfers([("s", "a", 5), ("t", "a", 5), ("m", "c", 5)])
    chain = absorbing_chain(transaction_graph(ledger, time="temporal"), links={"2": {"a": 1.0}})
    assert coinhaze.score(chain, nodes=["c"]).bits[0] == 1


@pytest.mark.parametrize(
    ("links", "error", "fault"),
    [
        ({"9": {"a": 1.0}}, UnknownName, "no transfer '9'"),
        ({"0": {"zoe": 1.0}}, UnknownName, "no node 'zoe'"),
        ({"0": {"a": 0.5}}, InputError, "sum to 0.5"),
        ({"0": {}}, InputError, "sum to 0"),
    ],
)
def test_links_that_make_no_sense_are_refused(links: Any, error: Any, fault: str) -> None:
    with pytest.raises(error, match=fault):
        absorbing_chain(transaction_graph(mixed()), links=links)


def test_a_payment_that_moved_nothing_cannot_be_linked() -> None:
    ledger = AccountLedger.from_transfers([("a", "b", 0), ("a", "b", 5)])
    with pytest.raises(UnknownName, match="moved nothing"):
        absorbing_chain(transaction_graph(ledger), links={"0": {"a": 1.0}})


def test_a_link_back_to_the_receiver_leaves_its_bits_alone() -> None:
    ledger = AccountLedger.from_transfers([("a", "m", 4), ("b", "c", 4), ("m", "c", 4)])
    plain = coinhaze.score(ledger, nodes=["c"])
    chain = absorbing_chain(transaction_graph(ledger), links={"2": {"c": 1.0}})
    looped = coinhaze.score(chain, nodes=["c"])
    assert plain.bits[0] == 1
    assert looped.bits[0] == 0
    assert looped.steps[0] == 3


def test_pool_history_works_by_pool_name_and_counts_every_origin() -> None:
    ledger = coins("pools")
    plain = coinhaze.score(ledger, nodes=["t2:0"])
    values = [3, 5, 8, 16]
    scores = coinhaze.score(
        ledger, nodes=["t2:0"], history={"sapling": values}, renyi=(2, math.inf)
    )
    spread = [0.5, 0.2, *(0.3 * v / 32 for v in values)]
    assert scores.bits[0] == pytest.approx(-sum(p * math.log2(p) for p in spread), abs=1e-12)
    assert scores.bits_unmodified is not None
    assert scores.bits_unmodified[0] == pytest.approx(plain.bits[0], abs=1e-12)
    assert scores.sources[0] == 6
    assert scores.renyi[2][0] == pytest.approx(-math.log2(sum(p * p for p in spread)), abs=1e-12)
    assert scores.renyi[math.inf][0] == pytest.approx(1, abs=1e-12)


def test_a_history_of_something_unknown_is_refused_and_of_a_poor_pool_is_noted() -> None:
    with pytest.raises(UnknownName, match="orchard"):
        coinhaze.score(coins("pools"), history={"orchard": [1]})
    with pytest.raises(InputError, match="add up to more than 0"):
        coinhaze.score(coins("pools"), history={"sapling": [0]})
    scores = coinhaze.score(coins("utxo"), history={"t1:0": [1, 1]})
    assert scores.chain.notes == ("history of t1:0 has no effect: it opened with nothing",)


def test_hidden_amounts_need_the_uniform_policy_and_the_coin_view() -> None:
    graph = transaction_graph(coins("rings"))
    with pytest.raises(UsageError, match="hides amounts"):
        absorbing_chain(graph, policy="proportional")
    with pytest.raises(UsageError, match="view=coin"):
        transaction_graph(coins("rings"), view="address")
    assert graph.closing is None


def test_a_posterior_over_ring_members_counts_instead_of_equal_shares() -> None:
    ledger = CoinLedger.from_transactions(
        [
            {
                "txid": "t",
                "rings": [["old:0", "old:1", "old:2"]],
                "posteriors": [[0.5, 0.25, 0.25]],
                "outputs": 1,
            }
        ]
    )
    assert bits_of(ledger, "t:0") == 1.5


def test_rings_of_a_transaction_count_equally_however_many_members_they_have() -> None:
    ledger = CoinLedger.from_transactions(
        [
            {"txid": "a", "outputs": 1}
            | {"rings": [["old:0"], ["old:1", "old:2", "old:3", "old:4"]]},
        ]
    )
    scores = coinhaze.score(ledger, nodes=["a:0"])
    assert scores.bits[0] == pytest.approx(2)  # 1/2 and four times 1/8
    assert scores.top_probability[0] == pytest.approx(0.5)
    graph = scores.chain.graph
    assert np.all(graph.tail < graph.head), "money never runs back in time"


def test_a_link_to_change_of_the_same_transaction_means_the_address_before_it() -> None:
    ledger = CoinLedger.from_transactions(
        [
            {"txid": "c1", "inputs": [], "outputs": [{"value": 10, "address": "A"}]},
            {"txid": "c2", "inputs": [], "outputs": [{"value": 10, "address": "C"}]},
            {
                "txid": "t",
                "inputs": [{"txid": "c1", "vout": 0}, {"txid": "c2", "vout": 0}],
                "outputs": [{"value": 10, "address": "A"}, {"value": 10, "address": "B"}],
            },
        ]
    )
    graph = transaction_graph(ledger, view="address", time="temporal")
    chain = absorbing_chain(graph, links={"t:1": {"A": 1.0}})
    found = coinhaze.origins(chain, "B").sources().to_pylist()
    assert found == [{"source": "tx:c1", "probability": 1.0}]
    with pytest.raises(InputError, match="came after that payment"):
        absorbing_chain(transaction_graph(ledger), links={"c1:0": {"t:0": 1.0}})


def test_links_on_a_custom_policy_move_nothing_else() -> None:
    ledger = AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 1), ("c", "d", 2)])
    graph = transaction_graph(ledger)
    node = graph.names.node
    p = np.zeros((len(graph), len(graph) + 1))
    p[node("a"), -1] = p[node("b"), -1] = 1
    p[node("c"), node("a")] = p[node("c"), node("b")] = 0.5
    # a is no predecessor of d, but this observer thinks it is.
    p[node("d"), node("a")] = p[node("d"), node("c")] = 0.5
    chain = absorbing_chain(graph, policy=p, links={"2": {"b": 1.0}})
    row = chain.Q.toarray()[node("d")]
    assert row[node("a")] == row[node("b")] == 0.5
    assert row[node("c")] == 0
    # What this observer thinks impossible stays so: there is no share to move.
    p[node("d")] = 0
    p[node("d"), node("d")], p[node("d"), -1] = 0.5, 0.5
    chain = absorbing_chain(graph, policy=p, links={"2": {"b": 1.0}})
    assert chain.Q.toarray()[node("d")].tolist() == [0, 0, 0, 0.5]


def test_a_history_may_name_a_member_of_a_cluster_but_one_source_once() -> None:
    ledger = AccountLedger.from_transfers([("m1", "x", 5), ("m2", "x", 5), ("y", "x", 10)])
    graph = transaction_graph(ledger, clusters={"m1": "E", "m2": "E"})
    scores = coinhaze.score(absorbing_chain(graph, history={"m1": [1, 1]}), nodes=["x"])
    assert scores.bits[0] == 1.5
    with pytest.raises(InputError, match="already"):
        absorbing_chain(graph, history={"m1": [1, 1], "E": [1]})
    assert coinhaze.score(ledger, nodes=["x"], history={"y": [1, 0, 1]}).sources[0] == 4
    spent = [{"txid": f"old{k}", "vout": 0, "value": 5, "address": "A"} for k in range(2)]
    coins_of_one = CoinLedger.from_transactions([{"txid": "t", "inputs": spent, "outputs": []}])
    with pytest.raises(InputError, match="names 2 sources"):
        coinhaze.score(coins_of_one, history={"A": [1, 1]})
    with pytest.raises(InputError, match="value is not a number"):
        absorbing_chain(graph, history={"E": [1, math.nan]})  # type: ignore[list-item]


def test_one_name_is_no_list() -> None:
    with pytest.raises(UsageError, match="a list of names"):
        absorbing_chain(transaction_graph(mixed()), listed="a")


@pytest.mark.parametrize("posteriors", [[[1.0]], [[math.nan, 1.0], [1.0]], [[0.5, 0.5], [0.7]]])
def test_posteriors_that_fit_no_ring_are_refused(posteriors: Any) -> None:
    with pytest.raises(InputError, match="no distribution"):
        CoinLedger.from_transactions(
            [
                {"txid": "a", "rings": [], "outputs": 3},
                {
                    "txid": "b",
                    "rings": [["a:0", "a:1"], ["a:2"]],
                    "posteriors": posteriors,
                    "outputs": 1,
                },
            ]
        )
