"""Who learns what from a spend: the worked cases, and an obvious twin over sets of names."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vectors
from coinhaze.errors import UsageError
from coinhaze.wallet.who_learns import CoinKnowledge, Disclosure

CASES = vectors.load("who_learns")


def learns(found: Disclosure) -> dict[str, dict[str, Any]]:
    return {
        one.party: {
            "coins": list(one.coins),
            "then_value": one.then_value,
            "now_value": one.now_value,
        }
        for one in found.learns
    }


def spend(known: CoinKnowledge, case: dict[str, Any]) -> Disclosure:
    return known.spend(
        case["coins"],
        payees=[case["payee"]],
        change=case["change"] or "",
        change_value=case["change_value"],
        change_known=case["change_known"],
    )


@pytest.mark.parametrize("case", CASES["spends"])
def test_the_worked_spends(case: dict[str, Any]) -> None:
    found = spend(CoinKnowledge(CASES["coins"], CASES["known"]), case)
    assert learns(found) == case["learns"]
    assert found.nobody_but_payee is case["nobody_but_payee"]


def test_what_an_earlier_spend_linked() -> None:
    earlier = CASES["earlier_spend"]
    linked = [earlier["same_address"][old] for old in earlier["coins"]]
    known = CoinKnowledge(CASES["coins"], CASES["known"], [linked])
    assert {party: list(coins) for party, coins in known.known.items()} == earlier["known_after"]
    assert learns(spend(known, earlier["then_spend"])) == earlier["then_spend"]["learns"]


COINS = ["a", "b", "c", "d", "e"]
some = st.lists(st.sampled_from(COINS), max_size=3, unique=True)


def closed(coins: set[str], links: list[list[str]]) -> set[str]:
    """Whoever knows one coin of a link knows all, again and again."""
    while True:
        more = coins | {c for link in links if coins & set(link) for c in link}
        if more == coins:
            return coins
        coins = more


@given(
    st.lists(st.integers(1, 9), min_size=5, max_size=5),
    st.dictionaries(st.sampled_from(["p", "q", "r"]), some, max_size=3),
    st.lists(some, max_size=2),
    st.booleans(),
    st.sampled_from([(), ("p",), ("shop",), ("p", "shop")]),
)
@settings(max_examples=150, deadline=None)
def test_every_spend_of_a_small_wallet(
    values: list[int],
    known: dict[str, list[str]],
    links: list[list[str]],
    evident: bool,
    payees: tuple[str, ...],
) -> None:
    worth = dict(zip(COINS, values, strict=True))
    knowledge = CoinKnowledge(worth, known, links)
    before = {party: closed(set(coins), links) for party, coins in known.items()}
    assert {p: set(c) for p, c in knowledge.known.items()} == {p: c for p, c in before.items() if c}
    for size in range(1, 6):
        for spent in combinations(COINS, size):
            found = knowledge.spend(spent, payees=payees, change_value=4, change_known=evident)
            shown = closed(set(spent), links)
            expected = {}
            for party in {*before, *payees}:
                knew = before.get(party, set())
                if party in payees or knew & set(spent):
                    new = shown - knew
                    if new or evident:
                        expected[party] = (
                            new | ({"change"} if evident else set()),
                            sum(worth[c] for c in new & set(spent)),
                            sum(worth[c] for c in new - set(spent)) + (4 if evident else 0),
                            set(COINS) - shown - knew,
                        )
            assert {
                one.party: (set(one.coins), one.then_value, one.now_value, set(one.unknown))
                for one in found.learns
            } == expected
            assert found.nobody_but_payee == (not set(expected) - set(payees))
            for one in found.learns:
                assert one.is_payee == (one.party in payees)
                assert one.unknown_value == sum(worth[c] for c in one.unknown)


def test_hidden_values_and_foreign_coins() -> None:
    known = CoinKnowledge({"a": None, "b": 3}, {"p": ["b"]})
    assert known.spend(["a", "b"]).learns[0].then_value is None
    assert known.spend(["a", "b"]).learns[0].value == 0
    assert known.linked("a") == ("a",)
    assert known.knows("b") == ("p",)
    with pytest.raises(UsageError, match="x is no coin of this wallet"):
        known.spend(["x"])
    with pytest.raises(UsageError, match="needs a coin"):
        known.spend([])
