"""What-ifs, wallets and other measures: the numbers of the library's own calls."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coinhaze
from coinhaze.errors import InputError, UsageError
from coinhaze.explore.explorer import Explorer
from coinhaze.explore.query import Settings, TableQuery, WalletQuery, WhatIfQuery
from coinhaze.explore.what_if import CoinSets
from coinhaze.wallet.holdings import exposed_chain, find_coin
from coinhaze.wallet.suggestion import suggest_coins
from coinhaze.wallet.wallet import weigh_wallet
from coinhaze.wallet.what_if import what_if
from properties import strategies
from properties.comparison import profile
from steps import counted_steps
from web.explorers import assert_no_nan, explorer_of, town


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    return explorer_of(town(), lists={"l": ["person3", "person7"]})


def some_coins(explorer: Explorer, count: int) -> tuple[str, ...]:
    rows = explorer.table(TableQuery(sort="-bits", limit=count * 7)).rows
    return tuple(row.name for row in rows[::7])


def test_a_what_if_is_the_library_s(explorer: Explorer) -> None:
    coins = some_coins(explorer, 4)
    answer = explorer.what_if(WhatIfQuery(coins=coins, list="l"))
    chain = explorer.views.chain
    listed = exposed_chain(chain.graph, ["person3", "person7"])
    truth = what_if(chain, coins, exposed=listed)
    assert answer.after.bits == pytest.approx(truth.after.bits, abs=1e-12)
    assert answer.after.exposure == pytest.approx(truth.exposure, abs=1e-12)
    assert answer.steps == pytest.approx(truth.steps)
    for before, expected in zip(answer.before, truth.coins, strict=True):
        assert before.bits == pytest.approx(expected.bits, abs=1e-12)
        assert before.exposure == pytest.approx(expected.exposure, abs=1e-12)
    assert "one person holds these coins" in answer.ownership


def test_a_what_if_without_a_list_tells_no_exposure(explorer: Explorer) -> None:
    answer = explorer.what_if(WhatIfQuery(coins=some_coins(explorer, 2)))
    assert answer.after.exposure is None
    assert answer.after.ties is None
    uniform = explorer.what_if(WhatIfQuery(coins=some_coins(explorer, 2), policy="uniform"))
    assert uniform.after.bits != answer.after.bits


def test_what_cannot_be_put_together_is_refused(explorer: Explorer) -> None:
    coin = some_coins(explorer, 1)[0]
    with pytest.raises(InputError, match="twice"):
        explorer.what_if(WhatIfQuery(coins=(coin, coin)))
    with pytest.raises(InputError, match="no coin"):
        explorer.what_if(WhatIfQuery(coins=("nothing:0",)))
    with pytest.raises(UsageError, match="order of a transaction"):
        explorer.what_if(WhatIfQuery(coins=(coin,), policy="fifo"))
    with pytest.raises(UsageError, match="coin view"):
        explorer.what_if(WhatIfQuery(coins=(coin,), view="address"))
    accounts = explorer_of(coinhaze.AccountLedger.from_transfers([("a", "b", 1)]))
    with pytest.raises(UsageError, match="a wallet needs a ledger of coins"):
        accounts.what_if(WhatIfQuery(coins=("b",)))


def test_a_wallet_is_the_library_s(explorer: Explorer) -> None:
    names = some_coins(explorer, 6)
    ask = WalletQuery(coins="\n".join(names), exposed="person3\nperson7 # mine", amount="12000000")
    answer = explorer.wallet(ask)
    chain = explorer.views.chain
    coins = [find_coin(chain.graph, name) for name in names]
    listed = exposed_chain(chain.graph, ["person3", "person7"])
    truth = weigh_wallet(chain, coins, exposed=listed)
    chosen = suggest_coins(truth, 12_000_000)
    assert answer.total is not None
    assert int(answer.total.smallest) == truth.total
    assert [c.bits for c in answer.coins] == [h.row.bits for h in truth.holdings]
    assert [c.exposure for c in answer.coins] == [h.exposure for h in truth.holdings]
    assert [g.kind for g in answer.groups] == [kind for kind, _ in truth.groups]
    assert answer.pairs is not None
    assert truth.pairs is not None
    assert [p.bits for p in answer.pairs] == [p.after.bits for p in truth.pairs]
    assert answer.suggestion is not None
    assert answer.suggestion.why == chosen.why
    spend = answer.suggestion.spend
    assert (spend.coins if spend else None) == (chosen.chosen.coins if chosen.chosen else None)
    assert_no_nan(answer.model_dump())


def test_an_address_stands_for_its_coins_and_a_list_for_exposed_ones(explorer: Explorer) -> None:
    answer = explorer.wallet(WalletQuery(coins="person5\n", list="l"))
    assert len(answer.coins) > 0
    assert all(c.exposure is not None for c in answer.coins)
    with pytest.raises(UsageError, match="not both"):
        explorer.wallet(WalletQuery(coins="person5", exposed="person3", list="l"))
    with pytest.raises(UsageError, match="no shares"):
        explorer.wallet(WalletQuery(coins="person5", policy="poison", list="l"))
    with pytest.raises(InputError, match="coins:2"):
        explorer.wallet(WalletQuery(coins="person5\nt0:99"))


@given(strategies.transactions(), st.data())
@profile(15)
def test_what_ifs_of_small_ledgers_are_the_library_s(
    rows: list[strategies.Transaction], data: st.DataObject
) -> None:
    chain = coinhaze.absorbing_chain(
        coinhaze.transaction_graph(coinhaze.CoinLedger.from_transactions(rows))
    )
    names = chain.graph.names.of(np.flatnonzero(chain.graph.sinks)).to_pylist()
    if not names:
        return
    coins = tuple(data.draw(strategies.listed(names)))
    answer = explorer_of(chain.graph.ledger).what_if(WhatIfQuery(coins=coins))
    assert answer.after.bits == pytest.approx(what_if(chain, coins).after.bits, abs=1e-12)


def join(values: list[int]) -> list[dict[str, object]]:
    """Make a transaction that pays out what it takes in, coin by coin."""
    spent = [
        {"txid": f"x{k}", "vout": 0, "value": value, "address": f"p{k}"}
        for k, value in enumerate(values)
    ]
    return [{"txid": "t", "inputs": spent, "outputs": [{"value": v} for v in values]}]


def test_other_measures_are_the_library_s_for_the_one_coin() -> None:
    ledger = coinhaze.CoinLedger.from_transactions(join([5] * 4))
    explorer = explorer_of(ledger)
    found = {m.name: m for m in explorer.comparators("t:2", Settings()).measures}
    names = [n for n in found if n != "mint-centrality"]
    truth = coinhaze.compare_measures(coinhaze.score(ledger, nodes=["t:2"]), names).comparators
    for name in names:
        assert found[name].value == pytest.approx(float(truth[name][0])), name
        assert found[name].refused is None
    assert found["mint-centrality"].value == 0
    assert found["k-anonymity"].value == 4
    assert found["boltzmann"].unit == "bits"


@given(strategies.transactions(pools=True))
@profile(20)
def test_measures_of_every_coin_are_the_library_s(rows: list[strategies.Transaction]) -> None:
    ledger = coinhaze.CoinLedger.from_transactions(rows)
    explorer = explorer_of(ledger)
    scores = explorer.views.scores(explorer.views.default)
    measures = ["boltzmann", "k-anonymity", "link-bits", "degree", "mint-centrality"]
    truth = coinhaze.compare_measures(scores, measures).comparators
    names = scores.chain.graph.names.of(scores.nodes).to_pylist()
    for k, name in enumerate(names):
        found = {m.name: m for m in explorer.comparators(name, Settings()).measures}
        for measure in measures:
            value, expected = found[measure].value, float(truth[measure][k])
            if np.isnan(expected) or found[measure].refused:
                assert found[measure].refused
            else:
                assert value == pytest.approx(expected, abs=1e-9), measure


def test_a_transaction_too_large_to_take_apart_is_refused_politely() -> None:
    values = [10**6 + (k * 7919) % 104_729 for k in range(60)]
    explorer = explorer_of(coinhaze.CoinLedger.from_transactions(join(values)))
    explorer.comparators("t:2", Settings())
    with counted_steps() as steps:
        found = {m.name: m for m in explorer.comparators("t:2", Settings()).measures}
    assert found["boltzmann"].value is None
    assert found["boltzmann"].refused is not None
    assert "too many" in found["boltzmann"].refused
    assert found["k-anonymity"].value == 1
    assert steps[0] < 500_000


def test_every_rule_has_its_bits_or_says_why_not(explorer: Explorer) -> None:
    name = some_coins(explorer, 1)[0]
    rules = {r.policy: r for r in explorer.comparators(name, Settings(list="l")).rules}
    assert list(rules) == ["haircut", "uniform", "poison", "fifo", "lifo"]
    graph = explorer.views.chain.graph
    for policy in ("uniform", "fifo", "lifo"):
        truth = coinhaze.origins(graph, name, policy=policy)
        assert rules[policy].bits == pytest.approx(truth.bits, abs=1e-9)
    assert rules["poison"].touched is not None
    assert rules["poison"].exposure is None
    bare = {r.policy: r for r in explorer.comparators(name, Settings()).rules}
    assert bare["poison"].refused == "needs a list"


@given(strategies.ring_transactions())
@profile(5)
def test_measures_of_hidden_coins_are_reported_or_refused(
    rows: list[strategies.Transaction],
) -> None:
    ledger = coinhaze.CoinLedger.from_transactions(rows)
    explorer = explorer_of(ledger)
    for row in explorer.table(TableQuery(limit=4)).rows:
        found = {m.name: m for m in explorer.comparators(row.name, Settings()).measures}
        assert found["boltzmann"].refused == "amounts are hidden"
        if not ledger.has_rings:
            continue
        one = coinhaze.score(ledger, nodes=[row.name])
        try:
            truth = coinhaze.compare_measures(one, ["matching"]).comparators["matching"][0]
        except InputError:
            assert "every ring a coin" in (found["matching"].refused or "")
        else:
            assert found["matching"].value == (None if np.isnan(truth) else truth)


def test_a_large_ledger_s_what_if_holds_the_exact_one(explorer: Explorer) -> None:
    coins = some_coins(explorer, 3)
    ask = WhatIfQuery(coins=coins, list="l")
    options = explorer.views.options(ask)
    coin_sets = CoinSets(explorer.views, explorer._nodes(options), options)
    nearly = coin_sets.what_if(ask, ask.settings, large=0)
    exact = coin_sets.what_if(ask, ask.settings)
    assert exact.after.bits is not None
    assert nearly.after.bits_low is not None
    assert nearly.after.bits_high is not None
    assert nearly.after.bits_low <= exact.after.bits <= nearly.after.bits_high
    assert nearly.after.exposure == pytest.approx(exact.after.exposure, abs=1e-9)
    assert nearly.after.ties == exact.after.ties
    assert nearly.steps == pytest.approx(exact.steps)
    for one, two in zip(nearly.before, exact.before, strict=True):
        assert one.exposure == pytest.approx(two.exposure, abs=1e-9)
        assert one.bits == pytest.approx(two.bits, abs=0.1)
