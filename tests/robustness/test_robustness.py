"""Robustness: what is told is what `score` says, and the quick choice is the slow one's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coinhaze
from coinhaze.errors import InputError, UsageError
from coinhaze.robustness.robustness import Robustness, _Study, bits_gained, robustness
from coinhaze.simulate import simulate_town

TOWN = simulate_town(transactions=120, people=20, seed=3)
LEDGERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "coins": (TOWN, {}),
    "addresses": (TOWN, {"view": "address"}),
    "accounts in time": (
        coinhaze.AccountLedger.from_transfers(
            [("a", "m", 5), ("b", "m", 7), ("m", "c", 4), ("d", "m", 3), ("m", "e", 6),
             ("c", "n", 4), ("e", "n", 2), ("n", "f", 5), ("m", "f", 2)]
        ),
        {"time": "temporal"},
    ),
    "a circle": (
        coinhaze.AccountLedger.from_transfers(
            [("a", "m", 5), ("b", "m", 7), ("m", "c", 9), ("c", "m", 4), ("m", "d", 6)]
        ),
        {},
    ),
}  # fmt: skip


def bits(ledger: Any, coin: str | None, **settings: Any) -> float:
    if coin is None:
        return coinhaze.score(ledger, **settings).summary().bits_mean
    return float(coinhaze.score(ledger, nodes=[coin], **settings).bits[0])


@pytest.mark.parametrize("name", list(LEDGERS))
def test_gains_are_what_solving_anew_says(name: str) -> None:
    ledger, settings = LEDGERS[name]
    graph = coinhaze.transaction_graph(ledger, **settings)
    study = _Study(graph, {}, {}, None)
    found = robustness(ledger, learn=1, seeds=1, tries=12, **settings)
    world = worlds(found, ledger, settings)
    moves = study.moves(world)
    sinks = np.flatnonzero(graph.sinks)
    chance = np.random.default_rng(1)
    gains, sampled = bits_gained(study.chain({}), sinks, moves, maximum=10**6, chance=chance)
    assert not sampled
    before = coinhaze.score(study.chain({})).bits
    for k, payment in enumerate(world):
        after = coinhaze.score(study.chain({payment: world[payment]})).bits
        assert gains[k] == pytest.approx(np.sum(before - after), abs=1e-8)
    assert np.abs(gains).max() > 1e-3


def worlds(found: Robustness, ledger: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Draw the same world again, to look into it."""
    from coinhaze.robustness.robustness import _world

    graph = coinhaze.transaction_graph(ledger, **settings)
    count, links = _world(_Study(graph, {}, {}, None), None, np.random.default_rng(1), 12)
    assert (count, len(links)) == (found.doubtful, found.tried)
    return links


@pytest.mark.parametrize("name", list(LEDGERS))
def test_best_first_takes_the_link_that_lowers_bits_most(name: str) -> None:
    ledger, settings = LEDGERS[name]
    found = robustness(ledger, learn=3, seeds=2, tries=12, **settings)
    world = worlds(found, ledger, settings)
    learnt: dict[str, Any] = {}
    assert found.best[0] == bits(ledger, None, **settings)
    for step, payment in enumerate(found.learnt, 1):
        left = {p: link for p, link in world.items() if p not in learnt}
        tried = {p: bits(ledger, None, links={**learnt, p: left[p]}, **settings) for p in left}
        assert tried[payment] == pytest.approx(min(tried.values()), abs=1e-8)
        learnt[payment] = world[payment]
        assert found.best[step] == pytest.approx(tried[payment], abs=1e-9)
    assert found.random.shape == (2, len(found.best))
    assert np.all(found.random[:, 1] >= found.best[1] - 1e-8)


def test_a_link_that_closes_a_cycle_without_a_source_is_never_the_best() -> None:
    """Linking ann's money to eve, who has hers from bob, who has his from ann, leaves no source."""
    transfers = [("mint", "ann", 8), ("ann", "bob", 8), ("bob", "eve", 8), ("kim", "zoe", 8)]
    graph = coinhaze.transaction_graph(
        coinhaze.AccountLedger.from_transfers(transfers), time="stationary"
    )
    study = _Study(graph, {}, {}, None)
    moves = study.moves({"0": {"eve": 1.0}, "1": {"kim": 1.0}})
    gains, _ = bits_gained(
        study.first, study.coins_of_interest, moves, maximum=9, chance=np.random.default_rng(1)
    )
    assert gains[0] == -np.inf
    assert np.isfinite(gains[1])


def test_one_coin_is_followed() -> None:
    ledger = TOWN
    scores = coinhaze.score(ledger)
    coin = scores.chain.graph.names.of(scores.nodes[[int(np.argmax(scores.bits))]])[0].as_py()
    found = robustness(ledger, coin=coin, learn=4, seeds=2)
    assert found.of == coin
    assert found.best[0] == pytest.approx(scores.bits.max(), abs=1e-9)
    assert found.best[-1] < found.best[0]


def test_a_given_world_is_learnt_to_its_end() -> None:
    ledger = coinhaze.AccountLedger.from_transfers(
        [("a", "mix", 5), ("b", "mix", 5), ("mix", "c", 5), ("mix", "d", 5)]
    )
    truth = {"2": {"a": 1.0}, "3": {"b": 1.0}}
    found = robustness(ledger, world=truth, learn=9, time="temporal")
    assert found.best.tolist() == pytest.approx([1, 0.5, 0])
    assert found.random[:, -1].tolist() == pytest.approx([0] * 5)
    assert found.to_arrow()["payment"].to_pylist()[0] is None


def test_the_same_seed_gives_the_same_answer_and_another_another_world() -> None:
    ledger = TOWN
    first, again, other = (
        robustness(ledger, learn=2, seeds=2, tries=20, seed=s) for s in (1, 1, 2)
    )
    assert first.learnt == again.learnt
    assert np.array_equal(first.random, again.random)
    assert first.learnt != other.learnt
    assert first.sampled
    assert first.doubtful > first.tried == 20


def test_few_coins_to_choose_by_are_drawn_and_reported() -> None:
    found = robustness(TOWN, learn=2, seeds=1, tries=20, coins=3)
    assert found.sampled
    assert found.best[-1] <= found.best[0]


def test_known_links_are_known_from_the_start() -> None:
    ledger = coinhaze.AccountLedger.from_transfers(
        [("a", "mix", 5), ("b", "mix", 5), ("mix", "c", 5), ("mix", "d", 5)]
    )
    found = robustness(ledger, links={"2": {"a": 1.0}}, time="temporal")
    assert found.best[0] == pytest.approx(0.5)
    assert "2" not in found.learnt


def test_questions_without_an_answer_are_refused() -> None:
    lone = coinhaze.AccountLedger.from_transfers([("a", "b", 5)])
    with pytest.raises(InputError, match="no payment is in doubt"):
        robustness(lone)
    with pytest.raises(UsageError, match="1 or more"):
        robustness(lone, learn=0)
    with pytest.raises(UsageError, match="over all sources"):
        robustness(lone, listed=["a"])
    with pytest.raises(InputError, match="one origin for each"):
        robustness(lone, world={"0": {"a": 0.5, "b": 0.5}})
