"""Exposure: no answer where there is none, proven bounds, which entries, and the flag they have."""

from __future__ import annotations

import math

import numpy as np
import pytest

import coinhaze
from coinhaze.explore.query import CoinQuery, Settings, TableQuery
from coinhaze.explore.table import Exposures
from web.explorers import assert_sums, explorer_of, town

LOOP = [("lp0", "lp1", 5), ("lp1", "lp2", 5), ("lp2", "lp0", 5), ("s", "t", 3)]


def gift_town() -> coinhaze.CoinLedger:
    """The ledger of docs/wallet.md, as far as its gift."""
    return coinhaze.CoinLedger.from_transactions(
        [
            {"txid": "mint3", "outputs": [{"value": 40_000, "address": "blog"}]},
            {
                "txid": "gift",
                "inputs": [{"txid": "mint3", "vout": 0}],
                "outputs": [
                    {"value": 30_000, "address": "me2"},
                    {"value": 10_000, "address": "me3"},
                ],
            },
        ]
    )


@pytest.mark.parametrize("few", [0, 20_000], ids=["by past", "solved"])
def test_a_closed_loop_has_no_exposure(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr("coinhaze.solve.planner.thresholds.MAX_LISTED_NODES", few)
    monkeypatch.setattr("coinhaze.solve.planner.thresholds.MAX_LOOPING_MOVES", 100_000)
    ledger = coinhaze.AccountLedger.from_transfers(LOOP)
    explorer = explorer_of(ledger, lists={"x": ["s"], "none": ["nobody"], "in": ["lp0"]})
    for listed in ("x", "none"):
        answer = explorer.coin("lp1", CoinQuery(list=listed, time="stationary"))
        assert answer.bits is None
        exposure = answer.exposure
        assert exposure is not None
        assert (exposure.share, exposure.share_low, exposure.share_high) == (None, None, None)
        assert exposure.amount is None
        assert exposure.text.startswith("no answer")
    rules = explorer.comparators("lp1", Settings(list="x", time="stationary")).rules
    assert [r.exposure for r in rules if r.policy in ("haircut", "uniform")] == [None, None]
    # A listed account of the loop ends the walk: there all is told.
    found = explorer.coin("lp1", CoinQuery(list="in", time="stationary")).exposure
    assert found is not None
    assert (found.share, found.share_high) == (1.0, 1.0)
    assert 1.0 - 1e-12 <= (found.share_low or 0.0) <= 1.0


@pytest.mark.parametrize("few", [0, 20_000], ids=["by past", "solved"])
def test_bounds_hold_the_exact_share(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr("coinhaze.solve.planner.thresholds.MAX_LISTED_NODES", few)
    ledger = town(300, 30)
    names = [str(name) for name in ledger.owners.to_pylist()[3:6]]
    explorer = explorer_of(ledger, lists={"x": names})
    graph = coinhaze.transaction_graph(ledger)
    truth = coinhaze.score(graph, listed=names)
    assert truth.exposure is not None
    inside = 0
    for row in range(0, len(truth), 7):
        name = str(graph.names.of(truth.nodes[[row]])[0].as_py())
        found = explorer.coin(name, CoinQuery(list="x")).exposure
        assert found is not None
        assert found.share_low is not None
        assert found.share_high is not None
        assert found.share_low <= truth.exposure[row] <= found.share_high
        assert found.share == pytest.approx(truth.exposure[row], abs=1e-10)
        if 0 < truth.exposure[row] < 1:
            inside += 1
            assert found.share_low < found.share_high <= found.share_low + 3e-9
        # Each entry has what it was the first to be met with: together that is all.
        assert math.fsum(e.share or 0.0 for e in found.largest) == pytest.approx(
            found.share, abs=1e-9
        )
    assert inside > 3


def test_entries_have_the_shares_of_the_listed_chain() -> None:
    ledger = town(300, 30)
    names = [str(name) for name in ledger.owners.to_pylist()[3:6]]
    explorer = explorer_of(ledger, lists={"x": names})
    chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger), listed=names)
    told = 0
    for node in chain.graph.sinks.nonzero()[0][:60:5].tolist():
        name = str(chain.graph.names.of(np.array([node]))[0].as_py())
        rows = coinhaze.origins(chain, node).sources().to_pylist()
        true = {r["source"]: r["probability"] for r in rows}
        found = explorer.coin(name, CoinQuery(list="x")).exposure
        assert found is not None
        for entry in found.largest:
            told += 1
            assert entry.share == pytest.approx(true[entry.name], abs=1e-9)
    assert told > 5


@pytest.mark.parametrize("policy", ["haircut", "fifo", "poison"])
def test_the_answer_names_the_listed_address(policy: str) -> None:
    explorer = explorer_of(gift_town(), lists={"known": ["blog"]})
    answer = explorer.coin("gift:0", CoinQuery(list="known", policy=policy))
    exposure = answer.exposure
    assert exposure is not None
    assert [entry.name for entry in exposure.largest] == ["blog"]
    assert exposure.largest[0].share == (None if policy == "poison" else 1.0)
    assert exposure.largest[0].href == "/l/made/address/blog"


def test_listed_money_has_its_flag_also_where_no_source_is_listed() -> None:
    explorer = explorer_of(gift_town(), lists={"known": ["blog"]})
    answer = explorer.coin("gift:0", CoinQuery(list="known"))
    assert_sums(answer)
    origin = next(node for node in answer.flow.nodes if node.id == "o0")
    assert (origin.kind, origin.listed) == ("listed", 1.0)
    assert "blog" in origin.words
    # The origin itself is not on the list, and is not said to be.
    assert answer.origins[0].kind == "mined"
    plain = explorer.coin("gift:0", CoinQuery())
    assert not any(node.kind == "listed" or node.listed for node in plain.flow.nodes)


def test_a_payment_to_a_listed_address_on_the_way_has_the_flag() -> None:
    coin = [("m", 0), ("a", 0), ("b", 0), ("c", 0)]
    transactions: list[dict[str, object]] = [
        {"txid": "m", "outputs": [{"value": 9, "address": "ann"}]}
    ]
    for (spent, _), (txid, _), owner in zip(coin, coin[1:], ("blog", "cat", "me"), strict=False):
        transactions.append(
            {
                "txid": txid,
                "inputs": [{"txid": spent, "vout": 0}],
                "outputs": [{"value": 9, "address": owner}],
            }
        )
    ledger = coinhaze.CoinLedger.from_transactions(transactions)
    answer = explorer_of(ledger, lists={"x": ["blog"]}).coin("c:0", CoinQuery(list="x"))
    assert_sums(answer)
    flagged = [n for n in answer.flow.nodes if n.kind == "listed" and n.id.startswith("h")]
    assert [node.name for node in flagged] == ["tx:a"]
    assert flagged[0].words.endswith(", to blog")


@pytest.mark.parametrize("policy", ["haircut", "uniform", "fifo"])
def test_the_table_tells_exposure_where_a_list_is_requested(policy: str) -> None:
    ledger = town(300, 30)
    names = [str(name) for name in ledger.owners.to_pylist()[3:6]]
    explorer = explorer_of(ledger, lists={"x": names, "none": ["nobody"]})
    own = {"haircut": "proportional"}.get(policy, policy)
    truth = coinhaze.score(ledger, policy=own, listed=names)
    assert truth.exposure is not None
    graph = coinhaze.transaction_graph(ledger)
    true = dict(zip(graph.names.of(truth.nodes).to_pylist(), truth.exposure.tolist(), strict=True))
    page = explorer.table(TableQuery(list="x", policy=policy, limit=1000))
    assert {row.name: row.exposure for row in page.rows} == pytest.approx(true, abs=1e-10)
    assert any(0 < (row.exposure or 0.0) < 1 for row in page.rows)
    ask = TableQuery(list="x", policy=policy)
    batches = list(explorer.table_batches(ask))
    assert batches[0].schema.names[-3:] == ["exposure", "exposure_low", "exposure_high"]
    for row in batches[1].to_pylist():
        assert row["exposure_low"] <= true[row["name"]] <= row["exposure_high"]
    assert "exposure" not in next(explorer.table_batches(TableQuery())).schema.names
    nothing = explorer.table(TableQuery(list="none", policy=policy))
    assert {row.exposure for row in nothing.rows} == {0.0}


def test_a_table_has_no_exposure_where_there_is_no_answer() -> None:
    graph = coinhaze.transaction_graph(coinhaze.AccountLedger.from_transfers(LOOP))
    scores = coinhaze.score(graph, nodes="all")
    lost = np.isnan(scores.bits)
    assert lost.any()
    assert not lost.all()
    for listed in (None, coinhaze.score(graph, nodes="all", listed=["s"])):
        found = Exposures.of(scores, listed)
        assert np.array_equal(np.isnan(found.exposure), lost)
    # Of rows that were not scored for the list nothing is told.
    some = Exposures.of(scores, coinhaze.score(graph, nodes=["t"], listed=["s"]))
    assert np.flatnonzero(~np.isnan(some.exposure)).tolist() == [graph.names.node("t")]


def test_origins_tell_how_much_of_each_came_through_the_list() -> None:
    explorer = explorer_of(gift_town(), lists={"known": ["blog"]})
    rows = [
        r for b in explorer.origin_batches("gift:0", Settings(list="known")) for r in b.to_pylist()
    ]
    assert [(row["origin"], row["share"], row["exposure"]) for row in rows] == [
        (rows[0]["origin"], 1.0, 1.0)
    ]
    group = explorer.group("transaction", "gift", Settings(list="known"), after=None, limit=10)
    assert {row.exposure for row in group.rows} == {1.0}
