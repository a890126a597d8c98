"""Mixtures: against rows of B in dense arithmetic, and every rule that they obey."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import coinhaze
from coinhaze.errors import InputError, UsageError
from coinhaze.measures.entropy import shannon
from coinhaze.measures.mixture import blend
from coinhaze.observer import AbsorbingChain
from coinhaze.solve.local.mixing import mix
from properties import strategies
from solve.dense import absorption

Ledger = list[dict[str, object]]


def chain_of(ledger: Ledger, **more: object) -> AbsorbingChain:
    graph = coinhaze.transaction_graph(coinhaze.CoinLedger.from_transactions(ledger))
    return coinhaze.absorbing_chain(graph, **more)  # type: ignore[arg-type]


@given(strategies.transactions(pools=True), st.data())
@settings(max_examples=60, deadline=None)
def test_a_mixture_is_the_weighted_row(ledger: Ledger, data: st.DataObject) -> None:
    chain = chain_of(ledger)
    rows, steps = absorption(chain, np.ones(len(chain), bool))
    certain = np.flatnonzero(np.abs(rows.sum(axis=1) - 1) < 1e-9).tolist()
    assume(certain)
    nodes = data.draw(st.lists(st.sampled_from(certain), min_size=1, max_size=4, unique=True))
    weights = [data.draw(st.integers(1, 9)) for _ in nodes]
    shares = np.array(weights) / sum(weights)
    expected = shares @ rows[nodes]
    found = mix(chain, nodes, weights)
    assert np.all(np.diff(found.probability) <= 0)
    row = np.zeros(len(chain.outcomes))
    row[found.outcomes] = found.probability
    assert row == pytest.approx(expected, abs=1e-12)
    assert found.bits == pytest.approx(shannon(expected), abs=1e-12)
    assert found.bits_low <= shannon(expected) + 1e-13
    assert found.bits_high >= shannon(expected) - 1e-13
    assert found.bits_high - found.bits_low < 1e-9
    assert found.steps == pytest.approx(float(shares @ steps[nodes]), rel=1e-12)
    parts = blend([mix(chain, [n], [1]) for n in nodes], shares.tolist())
    assert parts.bits == pytest.approx(found.bits, abs=1e-12)
    assert parts.probability == pytest.approx(found.probability, abs=1e-12)
    # Concave: never below the mean of the parts, never above it by more than the choice of a part.
    mean = sum(s * mix(chain, [n], [1]).bits for s, n in zip(shares, nodes, strict=True))
    assert mean - 1e-12 <= found.bits <= mean + shannon(shares) + 1e-12


COINS: Ledger = [
    {"txid": "a", "outputs": [{"value": 3, "address": "p"}]},
    {"txid": "b", "outputs": [{"value": 1, "address": "q"}]},
    {"txid": "c", "outputs": [{"value": 4, "address": "r"}]},
]


def test_weights_are_those_of_the_policy() -> None:
    assert mix(chain_of(COINS), ["a:0", "b:0"]).probability.tolist() == [0.75, 0.25]
    identical = mix(chain_of(COINS, policy="uniform"), ["a:0", "b:0"])
    assert identical.probability.tolist() == [0.5, 0.5]
    poison = chain_of(COINS, policy="poison", listed=["p", "q"])
    assert mix(poison, ["a:0", "c:0"]).sources().to_pylist() == [
        {"source": "p", "probability": 1.0}
    ]
    assert mix(poison, ["a:0", "b:0"]).bits == 1.0
    assert mix(poison, ["a:0", "b:0"]).exposure == 1.0
    clean = mix(poison, ["c:0"])
    assert math.isnan(clean.bits)
    assert clean.exposure == 0.0


def test_coins_the_ledger_does_not_know_are_sources_or_listed() -> None:
    found = mix(chain_of(COINS), ["a:0"], [3], others={"x:0": 1})
    assert found.sources().to_pylist() == [
        {"source": "tx:a", "probability": 0.75},
        {"source": "x:0", "probability": 0.25},
    ]
    assert found.bits == pytest.approx(shannon([0.75, 0.25]))
    assert found.top_probability == 0.75
    listed = chain_of(COINS, listed=["p"])
    assert mix(listed, ["a:0"], [3], others={"x:0": 1}).exposure == 0.75
    assert mix(listed, ["b:0"], [3], others={"p": 1}).exposure == 0.25
    assert mix(listed, [], [], others={"p": 1}).exposure == 1.0
    assert mix(chain_of(COINS), ["a:0"]).exposure is None


def test_a_blend_adds_up_unknown_coins_and_its_own_roundings() -> None:
    chain = chain_of(COINS)
    one, two = (mix(chain, [coin], [1], others={"x:0": 1.0}) for coin in ("a:0", "b:0"))
    both = blend([one, two], [0.5, 0.5])
    assert both.others == {"x:0": 0.5}
    assert both.top_probability == 0.5
    # A weight and a sum at least were rounded besides what the parts bring with them.
    assert both.error >= (one.error + two.error) / 2 + 4 * 2.0**-53


def test_a_history_adds_what_a_pools_past_hides() -> None:
    pool: Ledger = [{"txid": "w", "pools": {"sapling": -8}, "outputs": [{"value": 8}]}]
    chain = chain_of([*COINS, *pool], history={"sapling": [1, 1, 2]})
    exact = coinhaze.score(chain, nodes=["w:0"]).bits[0]
    assert mix(chain, ["w:0"]).bits == pytest.approx(exact, abs=1e-12)
    assert exact == pytest.approx(1.5)
    both = mix(chain, ["w:0", "a:0"], [1, 1])
    assert both.bits == pytest.approx(1 + 0.75, abs=1e-12)


def test_mass_may_end_in_part_and_is_never_lost() -> None:
    graph = chain_of(COINS).graph
    p = np.zeros((len(graph), len(graph) + 1))
    p[:, -1] = 1
    coin, maker = graph.names.node("a:0"), graph.names.node("tx:a")
    p[coin, -1], p[coin, maker] = 0.25, 0.75
    found = mix(coinhaze.absorbing_chain(graph, policy=p), ["a:0"], [1])
    assert found.probability.tolist() == [0.75, 0.25]
    poison = chain_of(COINS, policy="poison", listed=["p"])
    with pytest.raises(coinhaze.CoinhazeError, match="no answer"):
        mix(poison, ["a:0", "c:0"], [1, 1])
    with pytest.raises(InputError, match="not below 0"):
        mix(chain_of(COINS), ["a:0", "b:0"], [-1, 3])


def test_what_cannot_be_mixed_is_refused() -> None:
    chain = chain_of(COINS)
    with pytest.raises(InputError, match="named twice"):
        mix(chain, ["a:0", "a:0"])
    with pytest.raises(InputError, match="not all 0"):
        mix(chain, ["a:0"], [0])
    with pytest.raises(InputError, match="not below 0"):
        mix(chain, ["a:0", "b:0"], [1, -1])
    with pytest.raises(UsageError, match="1 weights for 2 coins"):
        mix(chain, ["a:0", "b:0"], [1])
    with pytest.raises(InputError, match="no node"):
        mix(chain, [99], [1])
    with pytest.raises(UsageError, match="no taint to weigh"):
        mix(chain_of(COINS, policy="poison", listed=["p"]), ["a:0"], [1], others={"x:0": 1})
    ring = coinhaze.AccountLedger.from_transfers([("a", "b", 5), ("b", "c", 3), ("c", "b", 1)])
    with pytest.raises(UsageError, match="never runs in a circle"):
        mix(coinhaze.absorbing_chain(coinhaze.transaction_graph(ring)), ["b"], [1])
