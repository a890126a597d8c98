"""Transactions from the inside: interpretations, links and shares."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vectors
from coinhaze.coinjoin import blocks, interpretations
from coinhaze.coinjoin.blocks import max_interpretations
from coinhaze.coinjoin.interpretations import closest_perfect, perfect_coinjoin
from coinhaze.coinjoin.link_matrix import intra_fees, link_matrix
from coinhaze.errors import InputError, ResourceError, UsageError
from coinjoin.interpretations_twin import links_and_shares

CASES: list[dict[str, Any]] = vectors.load("related")["boltzmann"]
WITH_AMOUNTS = [c for c in CASES if "inputs" in c]
PERFECT = [c for c in CASES if "n" in c]


def fees(case: dict[str, Any]) -> dict[str, int]:
    if "intrafee" not in case["name"] or "no intrafee" in case["name"]:
        return {}
    maker, taker = intra_fees(case["outputs"], 0.005)
    assert [maker, taker] == case.get("intrafees", [maker, taker])
    return {"maker": maker, "taker": taker}


@pytest.mark.parametrize("case", WITH_AMOUNTS, ids=lambda c: c["name"])
def test_a_published_transaction_has_its_interpretations(case: dict[str, Any]) -> None:
    found = link_matrix(case["inputs"], case["outputs"], **fees(case))
    assert sum(case["inputs"]) - sum(case["outputs"]) == case["fee"]
    assert found.interpretations == case["n_combinations"]
    assert found.bits == pytest.approx(case["entropy_bits"], abs=1e-12)
    if "link_counts_rows_outputs" in case:
        assert [list(row) for row in found.links] == case["link_counts_rows_outputs"]
    if "link_counts_sorted_desc" in case:
        ins, outs = (sorted(case[side], reverse=True) for side in ("inputs", "outputs"))
        sorted_ = link_matrix(ins, outs, **fees(case))
        assert [list(row) for row in sorted_.links] == case["link_counts_sorted_desc"]


@pytest.mark.parametrize("case", PERFECT, ids=lambda c: c["name"])
def test_a_perfect_coinjoin_follows_the_recurrence(case: dict[str, Any]) -> None:
    n = case["n"]
    assert perfect_coinjoin(n, n)[0] == case["n_combinations"]
    if "entropy_bits" in case:
        bits = link_matrix([5] * n, [5] * n).bits
        assert bits == pytest.approx(case["entropy_bits"], abs=1e-12)


@pytest.mark.parametrize(("inputs", "outputs"), [(2, 2), (3, 3), (4, 4), (2, 4), (2, 6), (3, 6)])
def test_the_recurrence_counts_what_the_twin_counts(inputs: int, outputs: int) -> None:
    ins, outs = [outputs] * inputs, [inputs] * outputs
    n, links, _ = links_and_shares(ins, outs)
    assert perfect_coinjoin(inputs, outputs) == (n, links[0][0])
    assert perfect_coinjoin(inputs, outputs)[0] == links_and_shares(outs, ins)[0]


def test_a_perfect_coinjoin_of_any_size_is_exact() -> None:
    n, linked = perfect_coinjoin(150, 150)
    assert n > 2**1000
    assert 0 < linked < n
    # Counted another way: a penny for the miner rules the recurrence out, but changes nothing.
    counted = link_matrix([10**6] * 40, [10**6] * 39 + [10**6 - 1])
    assert counted.interpretations == perfect_coinjoin(40, 40)[0]
    assert counted.interpretations > 2**63


amounts = st.lists(st.integers(1, 12), min_size=1, max_size=4)


@given(amounts, amounts, st.integers(0, 4), st.integers(0, 4))
@settings(max_examples=150, deadline=None)
def test_links_and_shares_are_those_of_the_twin(
    inputs: list[int], outputs: list[int], maker: int, taker: int
) -> None:
    missing = sum(outputs) - sum(inputs)
    if missing > 0:
        inputs = [*inputs, missing]
    n, links, shares = links_and_shares(inputs, outputs, maker=maker, taker=taker)
    found = link_matrix(inputs, outputs, maker=maker, taker=taker)
    assert found.interpretations == n
    assert [list(row) for row in found.links] == links
    assert found.shares == pytest.approx(np.array(shares, dtype=np.float64), abs=1e-12)
    assert found.shares.sum(axis=1) == pytest.approx(1, abs=1e-12)
    assert found.probabilities.max() <= 1
    assert found.efficiency >= 0


@given(amounts, amounts, st.integers(1, 10**9))
@settings(max_examples=50, deadline=None)
def test_scaling_all_amounts_changes_nothing(
    inputs: list[int], outputs: list[int], factor: int
) -> None:
    inputs = [*inputs, sum(outputs)]
    found = link_matrix(inputs, outputs)
    scaled = link_matrix([v * factor for v in inputs], [v * factor for v in outputs])
    assert scaled.links == found.links
    assert scaled.shares == pytest.approx(found.shares, abs=1e-12)


@pytest.mark.parametrize("lookup", [0, 10**9], ids=["by outputs", "by inputs"])
def test_both_ways_to_find_blocks_count_the_same(
    lookup: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from coinhaze.coinjoin import link_matrix_kernels as kernels

    for name in ("count_down", "count_up"):
        monkeypatch.setattr(interpretations, name, getattr(kernels, name).py_func)
    for name in ("_take", "_by_inputs", "_by_outputs", "_fitting", "_move"):
        monkeypatch.setattr(kernels, name, getattr(kernels, name).py_func)
    monkeypatch.setattr(kernels, "LOOKUP", lookup)
    inputs, outputs = [4, 4, 6, 7, 9], [3, 3, 5, 5, 12]
    n, links, _ = links_and_shares(inputs, outputs)
    found = link_matrix(inputs, outputs)
    assert found.interpretations == n
    assert [list(row) for row in found.links] == links


def test_large_counts_agree_with_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, outputs = [10, 10, 2, 7, 7], [8, 2, 2, 8, 2, 14]
    plain = link_matrix(inputs, outputs)
    monkeypatch.setattr(interpretations, "LARGEST_PLAIN", 0)
    by_remainders = link_matrix(inputs, outputs)
    assert by_remainders.links == plain.links
    assert by_remainders.interpretations == plain.interpretations
    assert by_remainders.shares == pytest.approx(plain.shares, abs=1e-12)


def test_identical_users_with_a_payment_and_change_are_counted_exactly() -> None:
    # Twenty users: 4702 in, 3000 out, 1701 change, 1 to the miner. Blocks are unions of users,
    # their payments and their changes told apart: f(k) = sum C(k-1, j-1) C(k, j)^2 f(k-j).
    n = 20
    ways = [1]
    for k in range(1, n + 1):
        ways.append(
            sum(math.comb(k - 1, j - 1) * math.comb(k, j) ** 2 * ways[k - j]
                for j in range(1, k + 1))
        )  # fmt: skip
    found = link_matrix([4702] * n, [3000] * n + [1701] * n)
    assert found.interpretations == ways[n]
    assert found.shares == pytest.approx(1 / n, abs=1e-12)


def test_outputs_of_one_coinjoin_differ() -> None:
    # Two users mix 10 each; the second gets change from a coin of 14.
    found = link_matrix([10, 14], [10, 10, 4])
    assert found.shares[0] == pytest.approx(found.shares[1])
    assert found.shares[2, 1] > found.shares[0, 1]


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        ([], [1], "has inputs and outputs"),
        ([1], [], "has inputs and outputs"),
        ([1, 0], [1], "above 0, not 0"),
        ([1], [3], "outputs are 2 above inputs"),
    ],
)
def test_what_is_no_transaction_is_refused(
    inputs: list[int], outputs: list[int], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        link_matrix(inputs, outputs)


def test_what_is_too_large_is_refused_with_a_bound() -> None:
    with pytest.raises(
        ResourceError, match=r"60 inputs and 60 outputs.*between 0 and \d+\.\d bits"
    ):
        link_matrix(list(range(1, 61)), list(range(1, 61)))
    with pytest.raises(ResourceError, match="more than 10 steps"):
        link_matrix([4, 4, 6, 7, 9], [3, 3, 5, 5, 12], steps=10)
    with pytest.raises(ResourceError, match="too large to take apart"):
        link_matrix([2**61, 2**61], [2**61, 5])
    with pytest.raises(InputError, match="intra-fees are not below 0"):
        link_matrix([2, 2], [2, 2], maker=-1)
    with pytest.raises(UsageError, match="not 3 to 4"):
        perfect_coinjoin(3, 4)


def test_too_many_states_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "MAX_STATES", 100)
    with pytest.raises(ResourceError, match="parts could stand alone, not 100"):
        link_matrix(list(range(1, 9)), list(range(1, 9)))


def test_the_upper_bound_is_what_a_free_choice_gives() -> None:
    # A fee that swallows everything lets every block stand.
    n, _, _ = links_and_shares([100, 101, 102], [1, 2, 3], taker=10**6, maker=10**6)
    assert max_interpretations(3, 3) == n


def test_the_closest_perfect_coinjoin() -> None:
    assert closest_perfect(5, 5) == (5, 5)
    assert closest_perfect(7, 5) == (5, 10)
    assert link_matrix([5] * 4, [5] * 4).efficiency == 1.0
    assert link_matrix([10, 10], [8, 2, 3, 7]).efficiency == pytest.approx(3 / 7)
    assert link_matrix([10], [5, 5]).efficiency == 0.0


def test_seven_equal_are_not_counted_one_by_one() -> None:
    assert link_matrix([5] * 7, [5] * 7).interpretations == 426_833


@pytest.mark.long  # as it compiles
def test_nine_equal_and_twelve_distinct_are_quick() -> None:
    """Counted one by one, or set by set, these would take hours: no clock is needed to notice."""
    assert link_matrix([5] * 9, [5] * 9).interpretations == 277006192
    found = link_matrix(range(1, 13), range(1, 13))
    assert found.interpretations == 771624931
