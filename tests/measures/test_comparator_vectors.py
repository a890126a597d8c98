"""Other people's measures against published values and slow twins."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coinhaze.errors import InputError, ResourceError
from coinhaze.measures import entropy
from coinhaze.measures.comparators.rings import admissible_edges
from coinhaze.measures.comparators.system_anonymity import permanent, system_anonymity
from coinhaze.measures.comparators.wasabi import wasabi_score
from vectors import load

RELATED: dict[str, Any] = load("related")
NAMED = {
    "J4": [[1] * 4] * 4,
    "I4": [[int(i == j) for j in range(4)] for i in range(4)],
    "J2+J2": [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]],
}


@pytest.mark.parametrize("number", range(len(RELATED["edman"])))
def test_the_systems_anonymity_is_the_published_one(number: int) -> None:
    case = RELATED["edman"][number]
    given = case.get("A", case.get("P"))
    matrix = NAMED[given] if isinstance(given, str) else given
    assert permanent(matrix) == case["per"]
    assert system_anonymity(matrix) == pytest.approx(case["d"], abs=1e-12)


@given(st.integers(1, 4).flatmap(lambda n: st.lists(
    st.lists(st.integers(0, 3), min_size=n, max_size=n), min_size=n, max_size=n)))  # fmt: skip
def test_a_permanent_is_the_sum_over_permutations(matrix: list[list[int]]) -> None:
    ways = itertools.permutations(range(len(matrix)))
    assert permanent(matrix) == sum(
        math.prod(row[k] for row, k in zip(matrix, way, strict=True)) for way in ways
    )


def test_a_system_that_has_no_answer_is_refused() -> None:
    assert math.isnan(system_anonymity([[1]]))
    with pytest.raises(InputError, match=r"row 0 of the matrix sums to 0\.75"):
        system_anonymity([[0.5, 0.25], [0.5, 0.75]])
    with pytest.raises(InputError, match="no matching"):
        system_anonymity([[1, 0], [1, 0]])
    with pytest.raises(InputError, match="as many rows as columns"):
        system_anonymity([[1, 0]])
    with pytest.raises(ResourceError, match="21 rows"):
        permanent([[1] * 21] * 21)


def incidence(rings: list[list[int]]) -> list[list[int]]:
    """Which coins, in columns, each ring has for members."""
    coins = sorted({coin for ring in rings for coin in ring})
    return [[int(coin in ring) for coin in coins] for ring in rings]


def admissible_members(rings: list[list[int]]) -> list[list[int]]:
    coins = sorted({coin for ring in rings for coin in ring})
    ring, coin = np.nonzero(np.array(incidence(rings)).reshape(len(rings), len(coins)))
    retained = admissible_edges(ring, coin, len(rings), len(coins))
    found = [{coins[c] for c in coin[retained & (ring == k)]} for k in range(len(rings))]
    return [[c for c in ring if c in some] for ring, some in zip(rings, found, strict=True)]


@pytest.mark.parametrize("number", range(len(RELATED["ring_matching"])))
def test_rings_restrain_each_other_as_published(number: int) -> None:
    case = RELATED["ring_matching"][number]
    assert admissible_members(case["rings"]) == case["admissible"]
    assert permanent(incidence(case["rings"])) == case["matchings"]


def matchings(rings: list[list[int]]) -> list[tuple[int, ...]]:
    return [way for way in itertools.product(*rings) if len(set(way)) == len(way)]


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True), max_size=5))
@settings(max_examples=200, deadline=None)
def test_a_member_is_admissible_if_some_matching_uses_it(rings: list[list[int]]) -> None:
    ways = matchings(rings)
    if not ways:
        with pytest.raises(InputError, match="a coin of its own"):
            admissible_members(rings)
        return
    expected = [[c for c in ring if any(w[k] == c for w in ways)] for k, ring in enumerate(rings)]
    assert admissible_members(rings) == expected
    assert permanent(incidence(rings)) == len(ways)


@pytest.mark.parametrize("case", RELATED["wasabi_classic"], ids=lambda c: c["case"])
def test_wasabis_score_is_the_published_one(case: dict[str, Any]) -> None:
    found = wasabi_score(
        [(value, score) for value, score in case["own_inputs"]],
        case["own_outputs"],
        foreign_outputs=case["foreign_outputs"],
        foreign_inputs=case.get("foreign_inputs"),
    )
    assert found == pytest.approx(case["expect"], abs=1e-12)


def test_the_degree_of_anonymity_is_the_published_one() -> None:
    case = RELATED["degree_of_anonymity"]
    bits = np.array([entropy.shannon(case["p"])])
    assert bits[0] == pytest.approx(case["H"], abs=1e-12)
    degree = entropy.degree_of_anonymity(bits, np.array([4.0]))
    assert degree[0] == pytest.approx(case["d"], abs=1e-12)
    assert entropy.effective_number(bits)[0] == pytest.approx(case["effective_size"], abs=1e-12)
    assert entropy.renyi(case["p"], math.inf) == pytest.approx(case["min_entropy"], abs=1e-12)
    assert entropy.renyi(case["p"], 2) == pytest.approx(case["renyi2"], abs=1e-12)
