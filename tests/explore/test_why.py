"""Why a coin has its bits: merges add up, against every walk counted one by one."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest

import coinhaze
from coinhaze.explore.coin.origins import added_bits
from coinhaze.explore.explorer import Explorer
from coinhaze.simulate import simulate_town
from coinhaze.solve.local.past import Past, past_of


def entropy(shares: list[float]) -> float:
    return -sum(p * math.log2(p) for p in shares if p > 0)


def every_walk(past: Past, place: int) -> list[tuple[float, int]]:
    """Follow every walk back to its end, one by one: its probability, and where it ends."""
    found = []
    if past.own[place] > 0:
        found.append((float(past.own[place]), int(past.column[place])))
    for k in range(int(past.first[place]), int(past.first[place + 1])):
        for share, end in every_walk(past, int(past.to[k])):
            found.append((float(past.chance[k]) * share, end))
    return found


def number_of_walks(past: Past) -> int:
    """Count walks: in order of time moves lead to lower numbers only."""
    count: list[int] = []
    for place in range(len(past)):
        moves = past.to[past.first[place] : past.first[place + 1]].tolist()
        count.append(int(past.own[place] > 0) + sum(count[to] for to in moves))
    return count[past.start]


@pytest.mark.parametrize("seed", range(4))
def test_bits_of_merges_are_those_of_every_walk_less_what_leads_to_one_origin(seed: int) -> None:
    ledger = simulate_town(transactions=30, people=8, seed=seed)
    chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    explorer = Explorer(ledger)
    looked = 0
    for node in np.flatnonzero(chain.graph.sinks).tolist():
        past = past_of(chain, node)
        if number_of_walks(past) > 5_000:
            continue
        walks = every_walk(past, past.start)
        by_origin: dict[int, float] = defaultdict(float)
        for share, end in walks:
            by_origin[end] += share
        all_walks, origins = (
            entropy([share for share, _ in walks]),
            entropy(list(by_origin.values())),
        )
        assert added_bits(past).sum() == pytest.approx(all_walks, abs=1e-9)
        name = str(chain.graph.names.of(np.array([node]))[0].as_py())
        answer = explorer.coin(name)
        assert answer.why is not None
        merged = sum(each.bits for each in answer.why.merges) + answer.why.others_bits
        assert merged == pytest.approx(all_walks, abs=1e-9)
        assert answer.why.again == pytest.approx(all_walks - origins, abs=1e-9)
        assert merged - answer.why.again == pytest.approx(answer.bits, abs=1e-9)
        looked += len(by_origin) > 1
    assert looked


def test_each_merge_says_what_it_added_and_how_far_back_it_is() -> None:
    coin = {"vout": 0, "value": 1}
    ledger = coinhaze.CoinLedger.from_transactions(
        [
            {"txid": "old", "inputs": [{"txid": "x", **coin}, {"txid": "y", **coin}],
             "outputs": [{"value": 2}]},
            {"txid": "new", "inputs": [{"txid": "old", "vout": 0}, {"txid": "z", "vout": 0,
             "value": 2}], "outputs": [{"value": 4}]},
        ]
    )  # fmt: skip
    why = Explorer(ledger).coin("new:0").why
    assert why is not None
    found = [(each.name, each.hops, each.inputs, each.passing, each.bits) for each in why.merges]
    assert found == [("tx:new", 1, 2, 1.0, 1.0), ("tx:old", 2, 2, 0.5, 0.5)]
    assert (why.others, why.others_bits, why.again) == (0, 0.0, 0.0)


def test_one_origin_has_nothing_to_explain() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "b", 1), ("b", "c", 1)])
    why = Explorer(ledger).coin("c").why
    assert why is not None
    assert why.merges == ()
    assert why.again == 0


def test_rules_in_order_are_not_made_of_merges() -> None:
    explorer = Explorer(simulate_town(transactions=40, people=8))
    from coinhaze.explore.query import CoinQuery

    name = explorer.table().rows[0].name
    assert explorer.coin(name, CoinQuery(policy="fifo")).why is None
