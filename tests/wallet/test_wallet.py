"""A wallet weighed: figures equal to `score`, groups and suggestions that keep their rule."""

from __future__ import annotations

import math
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import coinhaze
from coinhaze.errors import InputError, UnknownName, UsageError
from coinhaze.graph import TransactionGraph
from coinhaze.ledger import CoinLedger
from coinhaze.ledger.coins import Transaction
from coinhaze.wallet import suggestion
from coinhaze.wallet.holdings import WalletCoin, exposed_chain, find_coin, origin_words
from coinhaze.wallet.report import WalletReport
from coinhaze.wallet.suggestion import TIE, suggest_coins
from coinhaze.wallet.wallet import MAX_PAIRED, Wallet, weigh_wallet
from coinhaze.wallet.what_if import named_coins, propose
from properties import strategies

Records = list[dict[str, Any]]


def unspent(graph: TransactionGraph) -> list[WalletCoin]:
    ledger = graph.ledger
    assert isinstance(ledger, CoinLedger)
    rows = np.setdiff1d(np.flatnonzero(ledger.inside[ledger.output_tx]), ledger.input_output)
    rows = rows[ledger.output_spendable[rows] & (graph.names.newest[rows] >= 0)]
    return [find_coin(graph, name) for name in ledger.output_names(rows).to_pylist()]


def wallet_of(records: Records, *, listed: list[str] | None = None, **more: Any) -> Wallet:
    graph = coinhaze.transaction_graph(CoinLedger.from_transactions(records))
    exposed = None if listed is None else exposed_chain(graph, listed)
    return weigh_wallet(coinhaze.absorbing_chain(graph), unspent(graph), exposed=exposed, **more)


def has_coins_and(records: Records, listed: list[str]) -> bool:
    graph = coinhaze.transaction_graph(CoinLedger.from_transactions(records))
    return bool(unspent(graph)) and any(len(graph.names.nodes(name)) for name in listed)


MADE: Records = [
    {"txid": "m", "outputs": [{"value": 40, "address": "blog"}], "height": 7},
    {"txid": "a", "inputs": [{"txid": "x", "vout": 1, "value": 30, "address": "shop"}]}
    | {"outputs": [{"value": 30, "address": "me"}]},
    {"txid": "b", "inputs": [{"txid": "m", "vout": 0}, {"txid": "x", "vout": 2, "value": 40}]}
    | {"outputs": [{"value": 25, "address": "me"}, {"value": 20, "address": "me"}]},
    {"txid": "c", "outputs": [{"value": 12, "address": "me"}]},
    {"txid": "d", "outputs": [{"value": 12, "address": "me"}]},
]


@given(strategies.transactions(), st.sampled_from([0.0, 0.3]))
@settings(max_examples=40, deadline=None)
def test_every_figure_is_that_of_score(records: Records, limit: float) -> None:
    assume(has_coins_and(records, ["p", "q"]))
    wallet = wallet_of(records, listed=["p", "q"], limit=limit)
    names = [h.coin.name for h in wallet.holdings]
    exact = coinhaze.score(wallet.chain, nodes=names)
    assert wallet.coin_set.exposed is not None
    taken = coinhaze.score(wallet.coin_set.exposed, nodes=names).exposure
    assert taken is not None
    for row, holding in enumerate(wallet.holdings):
        assert holding.row.bits == pytest.approx(exact.bits[row], abs=1e-11)
        assert holding.row.steps == pytest.approx(exact.steps[row], rel=1e-11)
        assert holding.exposure == pytest.approx(taken[row], abs=1e-11)
        assert holding.row.bits_low <= exact.bits_high[row] + 1e-13
        assert exact.bits_low[row] - 1e-13 <= holding.row.bits_high


@given(strategies.transactions(), st.sampled_from([0.0, 0.3]))
@settings(max_examples=40, deadline=None)
def test_coins_of_a_group_never_taint_each_other(records: Records, limit: float) -> None:
    assume(has_coins_and(records, ["p", "q"]))
    wallet = wallet_of(records, listed=["p", "q"], limit=limit)
    groups = dict(wallet.groups)
    if "exposed" in groups:
        assert groups["exposed"].is_safe(limit)
    if "not exposed" in groups:
        # A mean of shares may be a rounding above the largest of them.
        assert (groups["not exposed"].exposure or 0.0) <= limit + 1e-15
    for pair in wallet.pairs or ():
        assert pair.after.bits >= min(pair.bits_before) - 1e-12


@given(strategies.transactions(), st.integers(1, 60), st.booleans())
@settings(max_examples=80, deadline=None)
def test_a_suggestion_keeps_its_rule(records: Records, amount: int, with_list: bool) -> None:
    """Compared with the slow obvious search: all sets, smallest first."""
    assume(has_coins_and(records, ["p", "q"]))
    wallet = wallet_of(records, listed=["p", "q"] if with_list else None)
    told = suggest_coins(wallet, amount)
    value = {h.coin.name: h.coin.value or 0 for h in wallet.holdings}
    exposed = [h.coin.name for h in wallet.holdings if wallet.is_exposed(h)]
    groups = [[n for n in value if n not in exposed], exposed]
    for group in groups:
        for size in range(1, len(group) + 1):
            sets = [s for s in combinations(group, size) if sum(map(value.get, s)) >= amount]  # type: ignore[arg-type]
            if sets:
                best = max(wallet.coin_set.together(s).after.bits for s in sets)
                assert told.chosen is not None
                assert told.chosen.coins in sets
                assert told.chosen.after.bits >= best - 2 * TIE
                assert told.weighed is None
                return
    assert told.chosen is None


def test_ties_go_to_least_change_then_to_the_first() -> None:
    wallet = wallet_of(MADE)
    assert [h.coin.name for h in wallet.holdings] == ["a:0", "b:0", "b:1", "c:0", "d:0"]
    assert suggest_coins(wallet, 26).chosen.coins == ("a:0",)  # type: ignore[union-attr]
    assert suggest_coins(wallet, 18).chosen.coins == ("b:1",)  # type: ignore[union-attr]
    # Coins worth exactly the amount suffice: one of several, the fewest, and all there are.
    assert suggest_coins(wallet, 20).chosen.coins == ("b:1",)  # type: ignore[union-attr]
    assert suggest_coins(wallet, 55).chosen.coins == ("a:0", "b:0")  # type: ignore[union-attr]
    assert len(suggest_coins(wallet, 99).chosen.coins) == 5  # type: ignore[union-attr]
    assert wallet_of(MADE[3:]).total == 24
    assert suggest_coins(wallet_of(MADE[3:]), 12).chosen.coins == ("c:0",)  # type: ignore[union-attr]


def test_pairs_and_exposure_are_weighed_by_what_coins_are() -> None:
    wallet = wallet_of(MADE, listed=["blog"])
    assert wallet.pairs is not None
    pairs = {pair.coins: pair for pair in wallet.pairs}
    # Of one transaction, a bit each: together no more than each alone.
    assert pairs["b:0", "b:1"].gain == pytest.approx(0, abs=1e-12)
    assert wallet.coin_set.exposed_through("b:0") == [("blog", 0.5)]
    assert wallet.coin_set.exposed_through("a:0") == []


def test_hidden_amounts_are_worth_nobody_knows_what() -> None:
    wallet = wallet_of([{"txid": "a", "outputs": [{"value": None, "address": "me"}]}])
    assert wallet.total is None
    with pytest.raises(UsageError, match="hides amounts"):
        suggest_coins(wallet, 1)
    rings = CoinLedger.from_transactions([{"txid": "b", "rings": [["a:0"]], "outputs": 1}])
    with pytest.raises(UsageError, match="rings do not tell which coins are spent"):
        find_coin(coinhaze.transaction_graph(rings), "b:0")


def test_exposed_coins_come_last_and_alone() -> None:
    wallet = wallet_of(MADE, listed=["blog"])
    told = suggest_coins(wallet, 54)
    assert told.group == "not exposed"
    assert told.chosen is not None
    assert told.chosen.coins == ("a:0", "c:0", "d:0")
    none = suggest_coins(wallet, 55)
    assert none.chosen is None
    assert "Only exposed coins together with others" in none.why[0]
    assert "less than 1,000" in suggest_coins(wallet, 1000).why[0]
    alone = suggest_coins(wallet_of(MADE[:3], listed=["blog"]), 44)
    assert alone.group == "exposed"
    assert alone.chosen is not None
    assert alone.chosen.exposure == 0.5


def test_where_not_all_sets_are_compared_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suggestion, "MAX_WEIGHED", 2)
    told = suggest_coins(wallet_of(MADE), 31)
    assert told.weighed == 2
    assert "Of 2 choices compared (there are up to 10)" in told.why[-1]


def test_what_was_not_followed_may_be_exposed() -> None:
    # Of z:0 only the last step was fetched: in truth all of its money was at the bad address.
    graph = coinhaze.transaction_graph(
        CoinLedger.from_transactions(
            [
                {
                    "txid": "z",
                    "inputs": [{"txid": "p", "vout": 0, "value": 9, "address": "q"}],
                    "outputs": [{"value": 9, "address": "me"}],
                },
                {"txid": "m", "outputs": [{"value": 5, "address": "me2"}]},
                {"txid": "n", "outputs": [{"value": 1, "address": "bad"}]},
            ]
        )
    )
    coins = [find_coin(graph, name) for name in ("z:0", "m:0")]
    chain, exposed = coinhaze.absorbing_chain(graph), exposed_chain(graph, ["bad"])
    whole = weigh_wallet(chain, coins, exposed=exposed)
    assert not any(map(whole.is_exposed, whole.holdings))
    part = weigh_wallet(chain, coins, exposed=exposed, most_origins=1000)
    assert [part.is_exposed(h) for h in part.holdings] == [True, False]
    assert part.pairs is not None
    assert not part.pairs[0].is_safe()
    chosen = suggest_coins(part, 4).chosen
    assert chosen is not None
    assert chosen.coins == ("m:0",)
    assert suggest_coins(part, 12).chosen is None


def test_many_coins_are_weighed_without_their_pairs() -> None:
    records = [{"txid": f"t{k}", "outputs": [{"value": 1}]} for k in range(MAX_PAIRED + 1)]
    wallet = wallet_of(records)
    assert wallet.pairs is None
    assert wallet.groups[-1][1].after.bits == pytest.approx(math.log2(MAX_PAIRED + 1))
    told = WalletReport(wallet).sections()
    assert any("ask with --spend" in line for section in told for line in section.lines)


def test_origins_are_told_in_words() -> None:
    wallet = wallet_of(MADE)
    graph = wallet.chain.graph
    labels = {"shop": "The Shop", "blog": "my blog"}
    assert origin_words(graph, "tx:m", labels) == "newly mined by my blog in block 7: tx:m"
    assert origin_words(graph, "x:1", labels) == "a coin of The Shop from before this ledger: x:1"
    assert origin_words(graph, "x:2", labels) == "a coin from before this ledger: x:2"
    assert origin_words(graph, "blog", labels) == "my blog: blog"
    assert origin_words(graph, "elsewhere", labels) == "anywhere not listed"
    assert origin_words(graph, "pool:sapling", {}) == "the shielded pool:sapling"


def test_a_proposal_warns_of_what_it_does() -> None:
    wallet = wallet_of(MADE, listed=["blog"])
    told = propose(wallet, ["a:0", "b:0"], what="x")
    assert told.answer.exposure == pytest.approx(12.5 / 55)
    assert "ties b:0, exposed, to a:0, not exposed: 22.73%" in told.warnings[0]
    assert any("one person's" in line for line in told.warnings)
    lone = propose(wallet, ["b:0"], what="x").warnings
    assert lone == ("It spends exposed money: 50.00% of it is.",)
    assert propose(wallet, ["a:0"], what="x").warnings == ()
    mixed = propose(wallet, ["b:0", "c:0", "d:0"], what="x")
    assert mixed.answer.after.bits > 1
    outputs = [{"value": 20, "address": "blog"}, {"value": 10, "address": "me"}]
    record = {"txid": "n", "inputs": [{"txid": "a", "vout": 0}], "outputs": outputs}
    paid = propose(wallet, Transaction.of(record), what="x").warnings
    assert paid[0] == "It pays blog, which is listed: that payment is exposed."
    assert paid[1] == "It pays back to me, which shows that output to be change."


def test_lost_bits_and_strangers_coins_are_named() -> None:
    graph = coinhaze.transaction_graph(CoinLedger.from_transactions(MADE))
    chain = coinhaze.absorbing_chain(graph)
    wallet = weigh_wallet(chain, [find_coin(graph, "a:0")])
    lines = propose(wallet, ["a:0", "b:0"], what="x").warnings
    assert "Not in your list of coins: b:0." in lines
    many = [*MADE, {"txid": "e", "outputs": [{"value": 5000, "address": "me"}]}]
    lost = propose(wallet_of(many), ["b:0", "e:0"], what="x").warnings[0]
    assert lost.startswith("b:0 has 1.0000 bits, the payment would have 0.0")


def test_refusals_say_why() -> None:
    wallet = wallet_of(MADE)
    with pytest.raises(UsageError, match="above 0"):
        suggest_coins(wallet, 0)
    with pytest.raises(UsageError, match="from 0 to below 1"):
        wallet_of(MADE, limit=1.0)
    with pytest.raises(InputError, match="list of coins to spend is empty"):
        named_coins(" , ")
    with pytest.raises(InputError, match="me is no coin"):
        named_coins("a:0,me")
    with pytest.raises(UnknownName, match="no coin 'zz:0'"):
        propose(wallet, ["zz:0"], what="x")
    with pytest.raises(InputError, match="nothing listed as exposed is found: address 0xabab"):
        exposed_chain(wallet.chain.graph, ["0x" + "ab" * 20])


@pytest.mark.parametrize(
    "files", ["btc_utxo_100000_104000/[ve]*.csv.gz", "btc_mempool_esplora/*.xz"],
    ids=["blocks", "mempool"],
)  # fmt: skip
def test_one_coin_of_a_real_set_takes_less_than_a_tenth_of_a_second(
    data: Path, files: str, record_property: Any
) -> None:
    graph = coinhaze.transaction_graph(coinhaze.read(sorted(data.glob(files))))
    chain = coinhaze.absorbing_chain(graph)
    coins = unspent(graph)
    names = graph.ledger.owners.slice(0, 50).to_pylist()  # type: ignore[union-attr]
    exposed = exposed_chain(graph, names)
    weigh_wallet(chain, coins[:2], exposed=exposed)
    rng, seconds = np.random.default_rng(1), []
    for place in rng.choice(len(coins), 40, replace=False).tolist():
        begin = time.perf_counter()
        coin = find_coin(graph, coins[place].name)
        wallet = weigh_wallet(chain, [coin], exposed=exposed)
        seconds.append(time.perf_counter() - begin)
        exact = coinhaze.score(chain, nodes=[coin.name])
        assert wallet.holdings[0].row.bits == pytest.approx(exact.bits[0], abs=1e-9)
    print(f"one coin of {len(coins):,}: median {1000 * float(np.median(seconds)):.1f} ms")
    assert np.median(seconds) < 0.1
