"""A wallet weighed: figures equal to `score`, groups and suggestions that keep their rule."""

from __future__ import annotations

import math
import time
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import coinhaze
from coinhaze.errors import InputError, UnknownName, UsageError
from coinhaze.graph import TransactionGraph
from coinhaze.graph.clusters.change import ROUND
from coinhaze.ledger import CoinLedger
from coinhaze.ledger.coins import Transaction
from coinhaze.units import SMALLEST
from coinhaze.wallet import suggestion
from coinhaze.wallet.holdings import WalletCoin, exposed_chain, find_coin, origin_words
from coinhaze.wallet.report import WalletReport
from coinhaze.wallet.suggestion import needed_sets, suggest_coins
from coinhaze.wallet.wallet import MAX_PAIRED, Wallet, weigh_wallet
from coinhaze.wallet.what_if import Proposal, named_coins, propose
from coinhaze.wallet.words import learns_words
from properties import strategies

Records = list[dict[str, Any]]


def unspent(graph: TransactionGraph) -> list[WalletCoin]:
    ledger = graph.ledger
    assert isinstance(ledger, CoinLedger)
    rows = np.setdiff1d(np.flatnonzero(ledger.inside[ledger.output_tx]), ledger.input_output)
    rows = rows[ledger.output_spendable[rows] & (graph.names.newest[rows] >= 0)]
    return [find_coin(graph, name) for name in ledger.output_names(rows).to_pylist()]


def graph_of(records: Records) -> TransactionGraph:
    return coinhaze.transaction_graph(CoinLedger.from_transactions(records))


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
        assert not groups["exposed"].taints(limit)
    if "not exposed" in groups:
        # A mean of shares may be a rounding above the largest of them.
        assert (groups["not exposed"].exposure or 0.0) <= limit + 1e-15
    for pair in wallet.pairs or ():
        assert pair.after.bits >= min(pair.bits_before) - 1e-12


def minimal(group: list[str], value: dict[str, int], amount: int) -> list[tuple[str, ...]]:
    """Return all sets worth the amount that are no more so without any one of their coins."""
    return [
        some
        for size in range(1, len(group) + 1)
        for some in combinations(group, size)
        if (total := sum(value[name] for name in some)) >= amount
        and all(total - value[name] < amount for name in some)
    ]


def slow_cost(wallet: Wallet, some: tuple[str, ...], amount: int) -> tuple[int, ...]:
    """Compute what the rule compares, from sets of names alone."""
    value = {h.coin.name: h.coin.value or 0 for h in wallet.holdings}
    knowledge = wallet.parties.knowledge
    spent = set(some)
    shown = {other for name in some for other in knowledge.linked(name)}
    change = sum(value[name] for name in some) - amount
    minimum = min(value[name] for name in some)
    signs = set()
    if change and amount % ROUND == 0 and change % ROUND:
        signs.add("change")
    if change and amount % ROUND and change % ROUND == 0:
        signs.add("payment")
    if change and len(some) > 1 and (change < minimum) != (amount < minimum):
        signs.add("change" if change < minimum else "payment")
    evident = change if signs == {"change"} else None
    learnt = {}
    for party, knows in knowledge.known.items():
        if spent & set(knows) and (shown - set(knows) or evident is not None):
            learnt[party] = sum(value[name] for name in shown - set(knows)) + (evident or 0)
    paid = sum(value[name] for name in shown) + (evident or 0)
    return len(learnt), sum(learnt.values()), paid, len(some), change


@given(strategies.transactions(), st.integers(1, 60), st.booleans(), st.data())
@settings(max_examples=120, deadline=None)
def test_a_suggestion_keeps_its_rule(
    records: Records, amount: int, with_list: bool, data: st.DataObject
) -> None:
    """Compared with the slow obvious search: all sets, and what each tells from plain sets."""
    assume(has_coins_and(records, ["p", "q"]))
    names = [coin.name for coin in unspent(graph_of(records))]
    some = st.lists(st.sampled_from(names), max_size=3, unique=True)
    known = data.draw(st.dictionaries(st.sampled_from(["ann", "ben"]), some, max_size=2))
    wallet = wallet_of(records, listed=["p", "q"] if with_list else None, known=known)
    found = suggest_coins(wallet, amount)
    value = {h.coin.name: h.coin.value or 0 for h in wallet.holdings}
    exposed = [h.coin.name for h in wallet.holdings if wallet.is_exposed(h)]
    for group in ([n for n in value if n not in exposed], exposed):
        sets = minimal(group, value, amount)
        if sets:
            costs = {some: slow_cost(wallet, some, amount) for some in sets}
            best = min(costs.values())
            assert found.chosen is not None
            assert found.chosen.cost == best
            tied = [list(some) for some in sets if costs[some] == best]
            assert sorted([list(found.chosen.coins), *(list(t.coins) for t in found.tied)]) == (
                sorted(tied)
            )
            place = {name: k for k, name in enumerate(value)}
            assert list(found.chosen.coins) == min(tied, key=lambda s: [place[n] for n in s])
            assert found.compared == len(sets)
            assert found.whole
            assert any("a tie" in line for line in found.why) == (len(tied) > 1)
            return
    assert found.chosen is None


@given(st.lists(st.integers(1, 9), max_size=7), st.integers(1, 30))
@settings(max_examples=200, deadline=None)
def test_sets_without_a_needless_coin(values: list[int], amount: int) -> None:
    held = [
        SimpleNamespace(coin=SimpleNamespace(name=str(k), value=v)) for k, v in enumerate(values)
    ]
    found = [sorted(h.coin.name for h in some) for some in needed_sets(held, amount)]  # type: ignore[arg-type]
    assert [len(some) for some in found] == sorted(len(some) for some in found)
    value = {str(k): v for k, v in enumerate(values)}
    assert sorted(found) == sorted(sorted(s) for s in minimal(list(value), value, amount))


def test_ties_are_called_ties_and_go_to_the_first() -> None:
    wallet = wallet_of(MADE[3:])
    assert wallet.total == 24
    found = suggest_coins(wallet, 12)
    assert found.chosen is not None
    assert found.chosen.coins == ("c:0",)
    assert [choice.coins for choice in found.tied] == [("d:0",)]
    assert found.why == (
        "It is a tie with coin 2 (d:0): they differ in nothing that is compared, and the first in "
        "your list was taken.",
    )


THREE: Records = [
    {"txid": f"t{k}", "inputs": [{"txid": "x", "vout": k, "value": v, "address": payer}]}
    | {"outputs": [{"value": v, "address": f"1me{k}"}]}
    for k, (payer, v) in enumerate([("1ann", 50), ("1ben", 30), ("1ann", 30), ("1cat", 100)])
]


def test_merging_coins_of_several_payers_is_not_safe_though_bits_rise() -> None:
    wallet = wallet_of(THREE)
    assert wallet.parties.knowledge.known == {
        "1ann": ("t0:0", "t2:0"), "1ben": ("t1:0",), "1cat": ("t3:0",),
    }  # fmt: skip
    everything = wallet.groups[-1][1]
    assert everything.gain > 1
    assert not wallet.is_safe(everything)
    learns = {one.party: one for one in wallet.merging(everything).learns}
    assert learns["1ben"].coins == ("t0:0", "t2:0", "t3:0")
    assert learns["1ben"].then_value == 180
    assert learns["1ann"].unknown == ()
    pairs = {pair.coins: wallet.is_safe(pair) for pair in wallet.pairs or ()}
    assert [coins for coins, safe in pairs.items() if safe] == [("t0:0", "t2:0")]
    text = " ".join(WalletReport(wallet).sections()[0].lines)
    assert "Do not merge all coins: 1ann learns coins 2, 4 (130 spent)" in text
    assert "1 of 6 pairs can be merged without that." in text
    same = WalletReport(wallet_of(THREE[:1] + THREE[2:3])).sections()[0].lines[0]
    assert same.startswith("Merging all coins is safe, as far as is known")
    assert "one owner held these coins" in same


def test_parties_that_know_or_learn_the_same_are_said_once_and_none_is_left_out() -> None:
    payers = [f"payer{k}" for k in range(50)]  # more than a table has rows
    wallet = wallet_of(THREE, known={name: ["t1:0"] for name in payers})
    report = WalletReport(wallet)
    (knows,) = (s for s in report.sections() if s.title == "Who knows which coins")
    assert len(knows.rows) == len(set(wallet.parties.knowledge.known.values())) == 3
    assert [row[1:] for row in knows.rows if "payer0" in row[0] or "1ben" in row[0]] == [
        ("coin 2", "3", "180")
    ]
    assert any(row[0].endswith("and 48 more") for row in knows.rows)  # of 51, three are named
    everything = wallet.groups[-1][1]
    short = learns_words(wallet, wallet.merging(everything).learns, SMALLEST, limit=2)
    assert "1ann learns coins 2, 4 (130 spent)" in short
    assert "1ben and 50 other parties each learn coins 1, 3, 4 (180 spent)" in short
    assert short.endswith("; 1 other party learns something else")


def test_a_payment_from_one_payer_is_better_than_from_two() -> None:
    # One coin of 100 would do, but is dearer to show than two that ann paid.
    found = suggest_coins(wallet_of(THREE), 80)
    assert found.chosen is not None
    assert found.chosen.coins == ("t0:0", "t2:0")
    assert found.chosen.disclosure.nobody_but_payee
    assert [role for role, _ in found.others] == ["fewest coins", "instead"]
    assert "lets the payee learn more: 100 instead of 80." in found.why[-1]
    # To ann herself, her own coins say nothing new at all.
    paid = suggest_coins(wallet_of(THREE), 80, payee="1ann").chosen
    assert paid is not None
    assert paid.disclosure.learns == ()


@pytest.mark.parametrize(
    ("kind", "nobody"),
    [("payment", False), ("coinbase", True), ("coinjoin", True)],
)
def test_who_knows_a_coin_by_default(kind: str, nobody: bool) -> None:
    spent = [{"txid": "x", "vout": k, "value": 100_000 + k, "address": f"1{k}"} for k in range(5)]
    made: dict[str, Any] = {
        "payment": {"inputs": spent[:1], "outputs": [{"value": 90_000, "address": "1me"}]},
        "coinbase": {"inputs": [], "outputs": [{"value": 90_000, "address": "1me"}]},
        "coinjoin": {"inputs": spent, "outputs": [{"value": 100_000, "address": "1me"}]
                     + [{"value": 100_000, "address": f"1o{k}"} for k in range(4)]},
    }[kind]  # fmt: skip
    graph = graph_of([{"txid": "t", **made}])
    wallet = weigh_wallet(coinhaze.absorbing_chain(graph), [find_coin(graph, "t:0")])
    assert (wallet.parties.knowledge.known == {}) is nobody


def test_own_change_is_known_by_those_who_saw_the_coins_spent_for_it() -> None:
    # ann paid 1a; it is spent to a shop seen before, so that the new address 1b is its change.
    records: Records = [
        {"txid": "s", "outputs": [{"value": 5, "address": "3shop"}]},
        {"txid": "t", "inputs": [{"txid": "x", "vout": 0, "value": 900, "address": "1ann"}],
         "outputs": [{"value": 900, "address": "1a"}]},
        {"txid": "u", "inputs": [{"txid": "t", "vout": 0}],
         "outputs": [{"value": 300, "address": "3shop"}, {"value": 590, "address": "1b"}]},
    ]  # fmt: skip
    graph = graph_of(records)
    coins, chain = [find_coin(graph, "u:1")], coinhaze.absorbing_chain(graph)
    # Unless 1a is said to be yours, its owner is taken for somebody who paid you.
    assert weigh_wallet(chain, coins).parties.knowledge.known == {"1a": ("u:1",)}
    mine = weigh_wallet(chain, coins, known={"me": ["1a"]})
    assert mine.parties.knowledge.known == {"1ann": ("u:1",), "3shop": ("u:1",)}
    by_spend = weigh_wallet(chain, coins, known={"me": ["u"]})
    assert by_spend.parties.knowledge.known == mine.parties.knowledge.known
    # Change that is not evident, since both addresses are new and of one type, nobody knows.
    records[2]["outputs"][0]["address"] = "1new"
    graph = graph_of(records)
    hidden = weigh_wallet(
        coinhaze.absorbing_chain(graph), [find_coin(graph, "u:1")], known={"me": ["1a"]}
    )
    assert hidden.parties.knowledge.known == {}


def test_coins_on_one_address_and_earlier_spends_are_linked() -> None:
    records: Records = [
        {"txid": "a", "outputs": [{"value": 4, "address": "1a"}]},
        {"txid": "b", "outputs": [{"value": 6, "address": "1b"}]},
        {"txid": "c", "outputs": [{"value": 7, "address": "1a"}]},
        {"txid": "d", "outputs": [{"value": 8, "address": "1b"}]},
        {"txid": "e", "outputs": [{"value": 9, "address": "1c"}]},
        {"txid": "f", "inputs": [{"txid": "a", "vout": 0}, {"txid": "b", "vout": 0}],
         "outputs": [{"value": 10, "address": "3shop"}]},
    ]  # fmt: skip
    graph = graph_of(records)
    coins = [find_coin(graph, name) for name in ("c:0", "d:0", "e:0")]
    wallet = weigh_wallet(
        coinhaze.absorbing_chain(graph), coins, known={"ann": ["d:0"], "ben": ["e", "nowhere"]}
    )
    assert wallet.parties.knowledge.known == {
        "3shop": ("c:0", "d:0"), "ann": ("c:0", "d:0"), "ben": ("e:0",),
    }  # fmt: skip
    assert wallet.parties.notes == ("parties: 1 entries name none of these coins, such as nowhere",)
    lines = WalletReport(wallet).sections()[2].lines
    assert any("Linked already, for everybody to see: coins 1, 2" in line for line in lines)


def pay(wallet: Wallet, coins: list[str], outputs: list[tuple[int, str]]) -> Proposal:
    record = {
        "txid": "n",
        "inputs": [
            {"txid": c.rpartition(":")[0], "vout": int(c.rpartition(":")[2])} for c in coins
        ],
        "outputs": [{"value": value, "address": address} for value, address in outputs],
    }
    return propose(wallet, Transaction.of(record), what="pay.psbt")


def test_a_proposal_tells_the_verdict_first() -> None:
    wallet = wallet_of(THREE)
    # 95 to a script, 4 back to a key as the coins were: one coin would do, and change is evident.
    found = pay(wallet, ["t0:0", "t1:0", "t2:0"], [(90, "3shop"), (15, "1new")])
    assert found.one_coin == "t3:0"
    assert found.unneeded == ()
    assert found.change == 1
    assert found.change_known
    assert {one.party: one.coins for one in found.disclosure.learns} == {
        "1ann": ("t1:0", "change"), "1ben": ("t0:0", "t2:0", "change"),
        "3shop": ("t0:0", "t1:0", "t2:0", "change"),
    }  # fmt: skip
    assert not found.disclosure.nobody_but_payee
    lines = WalletReport(wallet, proposal=found).sections()[0].lines
    assert lines[0].startswith("Who learns what: 1ann learns coin 2 and the change (30 spent, 15 s")
    assert lines[1].startswith("One coin would do: coin 4 pays this alone")
    assert lines[2] == (
        "Change is evident: the 15 to 1new, because its address is of the type of the coins spent; "
        "and it is less than every coin spent: as a payment, it would not need them all."
    )
    assert lines[3].startswith("Without change (a payment of all of it, or coins that match) 45 le")
    alone = pay(wallet, ["t3:0"], [(60, "1shop"), (39, "1new")])
    assert alone.disclosure.nobody_but_payee
    assert alone.evidence.signs == ()
    first = WalletReport(wallet, proposal=alone).sections()[0].lines[0]
    assert first == "No known party but the payee learns anything from it."


def test_needless_coins_of_a_proposal_are_named() -> None:
    wallet = wallet_of(THREE)
    found = pay(wallet, ["t0:0", "t1:0", "t3:0"], [(120, "3shop"), (59, "1new")])
    assert found.one_coin is None
    assert found.unneeded == ("t1:0",)
    back = pay(wallet, ["t0:0"], [(20, "3shop"), (29, "1me0")])
    assert back.evidence.reasons == ("it goes back to an address that coins came from",)
    assert back.change == 1
    none = pay(wallet, ["t0:0"], [(49, "3shop")])
    assert none.change is None
    lines = WalletReport(wallet, proposal=none).sections()[0].lines
    assert "It has no change: nothing of yours can be followed from here." in lines


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
    assert alone.chosen.after is not None
    assert alone.chosen.after.exposure == 0.5


def test_where_not_all_sets_are_compared_that_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suggestion, "MAX_SETS", 2)
    told = suggest_coins(wallet_of(MADE), 31)
    assert told.compared == 2
    assert not told.whole
    assert "the 2 choices compared (there are more)" in told.why[-1]


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
    part = weigh_wallet(chain, coins, exposed=exposed, max_origins=1000)
    assert [part.is_exposed(h) for h in part.holdings] == [True, False]
    assert part.pairs is not None
    assert part.pairs[0].taints(0.0)
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


def test_origins_are_reported_in_words() -> None:
    wallet = wallet_of(MADE)
    graph = wallet.chain.graph
    labels = {"shop": "The Shop", "blog": "my blog"}
    assert origin_words(graph, "tx:m", labels) == "newly mined by my blog in block 7: tx:m"
    assert origin_words(graph, "x:1", labels) == "a coin of The Shop from before this ledger: x:1"
    assert origin_words(graph, "x:2", labels) == "a coin from before this ledger: x:2"
    assert origin_words(graph, "blog", labels) == "my blog: blog"
    assert origin_words(graph, "elsewhere", labels) == "anywhere not listed"
    assert origin_words(graph, "pool:sapling", {}) == "the shielded pool:sapling"


def test_a_single_origin_beyond_the_largest_is_named() -> None:
    held = [{"txid": "xyz"[k], "vout": 0, "value": 3 - k} for k in range(3)]
    spent = {"txid": "a", "inputs": held, "outputs": [{"value": 6, "address": "me"}]}
    smallest = ("1", "16.67%", "a coin from before this ledger: z:0")
    others = ("1", "50.00%", "2 other origins")
    for top, last in ((1, others), (2, smallest), (3, smallest)):
        sections = WalletReport(wallet_of([spent], top=top)).sections()
        (found,) = (s.rows for s in sections if s.title == "Where they came from")
        assert (len(found), found[-1]) == (min(top + 1, 3), last)


def test_a_proposal_warns_of_what_it_does() -> None:
    wallet = wallet_of(MADE, listed=["blog"])
    told = propose(wallet, ["a:0", "b:0"], what="x")
    assert told.answer.exposure == pytest.approx(12.5 / 55)
    assert "ties b:0, exposed, to a:0, not exposed: 22.73%" in told.warnings[0]
    lone = propose(wallet, ["b:0"], what="x").warnings
    assert lone == ("It spends exposed money: 50.00% of it is.",)
    assert propose(wallet, ["a:0"], what="x").warnings == ()
    mixed = propose(wallet, ["b:0", "c:0", "d:0"], what="x")
    assert mixed.answer.after.bits > 1
    outputs = [{"value": 20, "address": "blog"}, {"value": 10, "address": "me"}]
    record = {"txid": "n", "inputs": [{"txid": "a", "vout": 0}], "outputs": outputs}
    paid = propose(wallet, Transaction.of(record), what="x").warnings
    assert paid[0] == "It pays blog, which is listed: that payment is exposed."


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
def test_one_coin_of_a_real_set_takes_well_below_a_second(
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
        begin = time.process_time()
        coin = find_coin(graph, coins[place].name)
        wallet = weigh_wallet(chain, [coin], exposed=exposed)
        seconds.append(time.process_time() - begin)
        exact = coinhaze.score(chain, nodes=[coin.name])
        assert wallet.holdings[0].row.bits == pytest.approx(exact.bits[0], abs=1e-9)
    print(f"one coin of {len(coins):,}: median {1000 * float(np.median(seconds)):.1f} ms")
    assert np.median(seconds) < 0.5  # benchmarks.one_coin has the figures
