"""A coin's page: every number is the library's own, whatever the ledger, rule and view."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coinhaze
from coinhaze.errors import CoinhazeError, UnknownName, UsageError
from coinhaze.explore.explorer import Explorer
from coinhaze.explore.models import CoinAnswer, Origin
from coinhaze.explore.query import CoinQuery, Settings, TableQuery
from coinhaze.observer import AbsorbingChain
from properties import strategies
from properties.comparison import profile
from web.explorers import assert_sums, explorer_of, explorer_on, town

POLICIES = {"haircut": "proportional", "uniform": "uniform"}


def check_all(chain: AbsorbingChain, listed: list[str], *, policy: str = "haircut") -> None:
    """Hold every node's page against score and origins of the library."""
    own = coinhaze.absorbing_chain(chain.graph, policy=POLICIES[policy])
    met = coinhaze.absorbing_chain(chain.graph, policy=POLICIES[policy], listed=listed)
    explorer = explorer_on(chain, lists={"l": listed})
    truth = coinhaze.score(own, nodes="all")
    exposed = coinhaze.score(met, nodes="all").exposure
    assert exposed is not None
    names = chain.graph.names.of(np.arange(len(chain))).to_pylist()
    # Exposure is in the order of time unless a time is chosen: test_one_number.py.
    time = chain.settings["time"]
    for row, name in enumerate(names):
        ask = CoinQuery(policy=policy, list="l", top=3, time=time)  # type: ignore[arg-type]
        answer = explorer.coin(name, ask)
        assert_sums(answer)
        assert answer.name == name
        if math.isnan(truth.bits[row]):
            assert answer.bits is None
            assert answer.steps is None
            continue
        assert_bits(answer, float(truth.bits[row]))
        assert answer.steps == pytest.approx(truth.steps[row], rel=1e-9)
        assert answer.sources == truth.sources[row]
        assert answer.top_share == pytest.approx(truth.top_probability[row], abs=1e-10)
        found = coinhaze.origins(own, row).sources().to_pylist()
        shares = {r["source"]: r["probability"] for r in found}
        for origin in answer.origins:
            assert origin.share == pytest.approx(shares[origin.name], abs=1e-10)
        assert answer.exposure is not None
        assert answer.exposure.share is not None
        assert answer.exposure.share == pytest.approx(exposed[row], abs=1e-10)
        low, high = answer.exposure.share_low, answer.exposure.share_high
        assert low is not None
        assert high is not None
        assert low - 1e-12 <= exposed[row] <= high + 1e-12
        # The thread that arrives at the coin is the exposure.
        coin = answer.flow.nodes[0]
        assert coin.listed == pytest.approx(exposed[row], abs=1e-10)


def assert_bits(answer: CoinAnswer, true: float) -> None:
    assert answer.bits is not None
    assert answer.bits_low is not None
    assert answer.bits_high is not None
    assert answer.bits_low - 1e-9 <= true <= answer.bits_high + 1e-9
    assert answer.bits == pytest.approx(true, abs=max(answer.bits_high - answer.bits_low, 1e-9))


def chain_of(ledger: Any, **graph: str) -> AbsorbingChain:
    return coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger, **graph))  # type: ignore[arg-type]


@given(strategies.transfers(), st.sampled_from(["stationary", "temporal"]), st.data())
@profile(25)
def test_pages_of_accounts_have_the_library_s_numbers(
    rows: list[strategies.Transfer], time: str, data: st.DataObject
) -> None:
    chain = chain_of(coinhaze.AccountLedger.from_transfers(rows), time=time)
    names = chain.graph.names.of(np.arange(len(chain))).to_pylist()
    check_all(chain, data.draw(strategies.listed(names)))


@given(strategies.transactions(pools=True), st.sampled_from(["haircut", "uniform"]), st.data())
@profile(15)
def test_pages_of_coins_and_pools_have_the_library_s_numbers(
    rows: list[strategies.Transaction], policy: str, data: st.DataObject
) -> None:
    chain = chain_of(coinhaze.CoinLedger.from_transactions(rows))
    names = chain.graph.names.of(np.arange(len(chain))).to_pylist()
    check_all(chain, data.draw(strategies.listed(names)), policy=policy)


@given(strategies.transactions(), st.sampled_from(["stationary", "temporal"]), st.data())
@profile(15)
def test_pages_of_addresses_have_the_library_s_numbers(
    rows: list[strategies.Transaction], time: str, data: st.DataObject
) -> None:
    chain = chain_of(coinhaze.CoinLedger.from_transactions(rows), view="address", time=time)
    names = chain.graph.names.of(np.arange(len(chain))).to_pylist()
    check_all(chain, data.draw(strategies.listed(names)))


@given(strategies.ring_transactions(), st.data())
@profile(15)
def test_pages_of_hidden_coins_have_the_library_s_numbers_and_no_amounts(
    rows: list[strategies.Transaction], data: st.DataObject
) -> None:
    chain = chain_of(coinhaze.CoinLedger.from_transactions(rows))
    names = chain.graph.names.of(np.arange(len(chain))).to_pylist()
    check_all(chain, data.draw(strategies.listed(names)), policy="uniform")
    answer = explorer_on(chain).coin(names[-1], CoinQuery())
    assert answer.settings.policy == "uniform"
    assert answer.amount is None
    assert all(o.amount is None for o in answer.origins)


@given(strategies.transactions(pools=True), st.sampled_from(["fifo", "lifo"]), st.data())
@profile(15)
def test_ordered_rules_have_the_library_s_lots(
    rows: list[strategies.Transaction], order: str, data: st.DataObject
) -> None:
    chain = chain_of(coinhaze.CoinLedger.from_transactions(rows))
    graph = chain.graph
    names = graph.names.of(np.flatnonzero(graph.sinks)).to_pylist()
    if not names:
        return
    owners = sorted(set(graph.names.of(np.arange(len(graph))).to_pylist()))
    listed = data.draw(
        strategies.listed([n for n in owners if not n.startswith("pool:")] or owners)
    )
    explorer = explorer_on(chain, lists={"l": listed})
    ask = CoinQuery(policy=order, list="l")
    for name in names:
        try:
            exposed = coinhaze.score(graph, nodes=[name], policy=order, listed=listed).exposure
        except CoinhazeError as error:
            with pytest.raises(type(error)):
                explorer.coin(name, ask)
            continue
        found = coinhaze.origins(graph, name, policy=order)
        answer = explorer.coin(name, ask)
        assert_sums(answer)
        assert answer.bits == found.bits
        assert answer.steps is None
        assert [c.title for c in answer.flow.columns][-1] == "Origins"
        assert exposed is not None
        assert answer.exposure is not None
        assert answer.exposure.share == pytest.approx(exposed[0], abs=1e-12)


@given(strategies.transactions(), st.data())
@profile(15)
def test_poison_says_touched_or_not_and_never_a_share(
    rows: list[strategies.Transaction], data: st.DataObject
) -> None:
    chain = chain_of(coinhaze.CoinLedger.from_transactions(rows))
    names = chain.graph.names.of(np.arange(len(chain))).to_pylist()
    listed = data.draw(strategies.listed(names))
    poison = coinhaze.absorbing_chain(chain.graph, policy="poison", listed=listed)
    truth = coinhaze.score(poison, nodes="all")
    assert poison.clean is not None
    explorer = explorer_on(chain, lists={"l": listed})
    for row, name in enumerate(names):
        answer = explorer.coin(name, CoinQuery(policy="poison", list="l"))
        assert_sums(answer)
        assert answer.exposure is not None
        assert answer.exposure.share is None
        assert answer.exposure.amount is None
        assert answer.exposure.touched == (not poison.clean[row])
        assert "%" not in answer.exposure.text + answer.sentence.text
        if poison.clean[row]:
            assert answer.bits is None
            assert not answer.origins
        else:
            assert_bits(answer, float(truth.bits[row]))
            assert all(origin.kind == "listed" for origin in answer.origins)


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    labels = {"exchange": "Exchange North"}
    return explorer_of(town(), lists={"l": ["person3", "person7", "nobody"]}, labels=labels)


def max_bits(explorer: Explorer) -> str:
    return explorer.table(TableQuery(sort="-bits", limit=1)).rows[0].name


def test_a_label_makes_a_service_and_a_listed_origin_is_always_shown(explorer: Explorer) -> None:
    answer = explorer.coin(max_bits(explorer), CoinQuery(top=1, list="l"))
    kinds = {origin.kind for origin in explorer.coin(max_bits(explorer), CoinQuery(top=60)).origins}
    assert {"service", "earlier"} <= kinds
    assert answer.exposure is not None
    assert answer.exposure.share
    assert [o.kind for o in answer.origins][1:] == ["listed"] * (len(answer.origins) - 1)
    assert answer.exposure.listed == 3


def test_opening_a_box_shows_eight_more_of_it(explorer: Explorer) -> None:
    name = max_bits(explorer)
    closed = explorer.coin(name, CoinQuery()).flow
    bucket = next(node for node in closed.nodes if node.folded and node.id.startswith("h2x"))
    opened = explorer.coin(name, CoinQuery(open=(bucket.id,))).flow
    here = [n for n in opened.nodes if n.column == 2]
    before = [n for n in closed.nodes if n.column == 2]
    assert len(here) == len(before) + 8 or not here[-1].folded
    assert [n.id for n in here][: len(before) - 1] == [n.id for n in before][:-1]
    deep = next(node for node in closed.nodes if node.id == "d")
    assert deep.opens
    deeper = explorer.coin(name, CoinQuery(open=("d",))).flow
    assert len(deeper.columns) == len(closed.columns) + 1


def test_a_flow_never_has_more_than_300_boxes(explorer: Explorer) -> None:
    every = [f"h{k}x" for k in range(1, 9) for _ in range(4)] + ["d"] * 8
    answer = explorer.coin(max_bits(explorer), CoinQuery(open=tuple(every[:40]), top=100))
    assert_sums(answer)
    assert 100 < len(answer.flow.nodes) <= 300


def test_a_party_at_several_hops_is_tagged_at_each(explorer: Explorer) -> None:
    flow = explorer.coin(max_bits(explorer), CoinQuery(open=("h2x", "h3x"))).flow
    twice = [node for node in flow.nodes if node.also]
    assert twice
    for node in twice:
        others = {n.column for n in flow.nodes if n.twin == node.twin and n.id != node.id}
        assert others == set(node.also)


def test_a_coin_with_one_origin_has_one_band(explorer: Explorer) -> None:
    answer = explorer.coin(explorer.ledger(Settings()).fewest[0].name, CoinQuery())
    assert answer.sentence.text == "One possible origin under this rule."
    assert answer.sentence.range == "exact"
    assert len(answer.origins) == 1
    assert answer.other.share == 0
    assert answer.flow.text.startswith("One possible origin.")


def test_the_place_counts_coins_with_fewer_bits(explorer: Explorer) -> None:
    answer = explorer.coin(max_bits(explorer), CoinQuery())
    table = explorer.histogram(Settings())
    assert answer.place is not None
    assert answer.bits is not None
    assert table.values is not None
    fewer = sum(v < answer.bits - 1e-9 for v in table.values) / len(table.values)
    assert answer.place.fewer == fewer
    assert answer.place.bin == len(table.counts) - 1


def test_a_coin_seen_by_address_is_its_owner(explorer: Explorer) -> None:
    coin = explorer.coin(max_bits(explorer), CoinQuery())
    answer = explorer.coin(coin.name, CoinQuery(view="address"))
    assert answer.name == coin.owner
    assert answer.kind == "address"
    assert any("is seen as its address" in note for note in answer.notes)
    assert_sums(answer)


def test_a_spent_coin_says_who_spent_it_and_has_bits_all_the_same(explorer: Explorer) -> None:
    ledger = explorer.index.coins
    made_here = ledger.inside[ledger.output_tx[ledger.input_output]]
    row = int(np.flatnonzero(made_here)[-1])
    spender = ledger.txids[int(ledger.input_tx[row])].as_py()
    name = ledger.output_names(ledger.input_output[[row]])[0].as_py()
    answer = explorer.coin(name, CoinQuery())
    assert answer.spent_by == spender
    assert answer.made_by == name.rpartition(":")[0]
    assert_bits(answer, float(coinhaze.score(explorer.views.chain, nodes=[name]).bits[0]))
    spends = explorer.group("transaction", spender, Settings(), after=None, limit=5).spends
    assert name in [coin.name for coin in spends]


def test_without_scores_a_coin_has_no_place_but_the_same_bits(explorer: Explorer) -> None:
    bare = explorer_of(town(), scored=False)
    name = max_bits(explorer)
    with_scores, without = explorer.coin(name, CoinQuery()), bare.coin(name, CoinQuery())
    assert without.place is None
    assert with_scores.place is not None
    assert without.bits == pytest.approx(with_scores.bits, abs=1e-9)


def test_times_are_reported_and_a_flow_by_time_needs_them(explorer: Explorer) -> None:
    rows = [
        {"txid": "a", "time": 1000, "height": 1, "outputs": [{"value": 5, "address": "m"}]},
        {"txid": "b", "time": 2000, "height": 2, "inputs": [{"txid": "a", "vout": 0}],
         "outputs": [{"value": 5, "address": "n"}]},
    ]  # fmt: skip
    timed = explorer_of(coinhaze.CoinLedger.from_transactions(rows))
    answer = timed.coin("b:0", CoinQuery(by="time"))
    assert answer.flow.by == "time"
    assert answer.time == 2000
    assert answer.height == 2
    assert {node.time for node in answer.flow.nodes} == {1000, 2000}
    assert answer.origins[0].words == "Mined, block 1"
    untimed = explorer.coin(max_bits(explorer), CoinQuery(by="time"))
    assert untimed.flow.by == "hop"
    assert any("no times" in note for note in untimed.notes)


def test_what_cannot_be_requested_is_refused_with_the_reason(explorer: Explorer) -> None:
    name = max_bits(explorer)
    for ask, why in (
        (CoinQuery(policy="poison"), "needs a list"),
        (CoinQuery(view="account"), "does not fit"),
        (CoinQuery(time="stationary"), "own time"),
        (CoinQuery(policy="fifo", view="address"), "follows coins"),
    ):
        with pytest.raises(UsageError, match=why):
            explorer.coin(name, ask)
    with pytest.raises(UnknownName, match="nothing"):
        explorer.coin("nothing:0", CoinQuery())
    with pytest.raises(UnknownName, match="no list"):
        explorer.coin(name, CoinQuery(list="other"))


def test_origins_come_in_pages_that_make_the_whole(explorer: Explorer) -> None:
    name = max_bits(explorer)
    rows: list[Origin] = []
    after = None
    while True:
        page = explorer.origins(name, Settings(), after=after, limit=7)
        assert sum(r.share for r in page.rows) + page.other.share == pytest.approx(1.0, abs=1e-9)
        rows += page.rows
        after = page.after
        if after is None:
            break
    assert [r.rank for r in rows] == list(range(page.total))
    assert sum(r.share for r in rows) == pytest.approx(1.0, abs=1e-9)
    batches = list(explorer.origin_batches(name, Settings()))
    assert batches[0].num_rows == 0
    assert sum(b.num_rows for b in batches) == page.total


def test_many_threads_asking_at_once_get_the_same_answers(explorer: Explorer) -> None:
    from concurrent.futures import ThreadPoolExecutor

    names = [row.name for row in explorer.ledger(Settings()).most]
    asks = [(n, CoinQuery(policy=p)) for n in names for p in ("haircut", "uniform", "fifo")]
    alone = [explorer.coin(*ask).model_dump_json() for ask in asks]
    fresh = explorer_of(town(), lists={"l": []}, labels={"exchange": "Exchange North"})
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda ask: fresh.coin(*ask).model_dump_json(), asks))
    assert together == alone
