"""Measures beside the bits: columns, nulls, correlations."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

import coinhaze
from coinhaze import CoinLedger
from coinhaze.errors import UsageError
from coinhaze.measures.comparators.registry import COMPARATORS
from coinhaze.measures.comparators.side_by_side import (
    compare_measures,
    correlations,
    pearson,
    spearman,
)
from coinhaze.measures.comparators.system_anonymity import (
    permanent,
    staircase_anonymity,
    system_anonymity,
)


def coin(txid: str, vout: int = 0, value: int | None = None, address: str = "") -> dict[str, Any]:
    return {"txid": txid, "vout": vout, "value": value, "address": address or None}


@pytest.fixture
def mixed() -> CoinLedger:
    """Two coinbases and an earlier coin; two of them are mixed, with change; one only moves."""
    return CoinLedger.from_transactions(
        [
            {"txid": "a", "outputs": [{"value": 10, "address": "alice"}], "coinbase": True},
            {"txid": "b", "outputs": [{"value": 14, "address": "bob"}], "coinbase": True},
            {
                "txid": "j",
                "inputs": [coin("a"), coin("b")],
                "outputs": [
                    {"value": 10, "address": "alice 2"},
                    {"value": 10, "address": "bob 2"},
                    {"value": 4, "address": "bob 3"},
                ],
            },
            {
                "txid": "m",
                "inputs": [coin("j", 0), coin("old", 0, 7, "carol")],
                "outputs": [{"value": 17, "address": "dora"}],
            },
        ]
    )


def column(scores: coinhaze.Scores, name: str) -> dict[str, float]:
    names = scores.chain.graph.names.of(scores.nodes).to_pylist()
    return dict(zip(names, scores.comparators[name].tolist(), strict=True))


OWNERS = {"alice": "A", "alice 2": "A", "bob": "B", "bob 2": "B", "bob 3": "B"}


def test_every_measure_has_a_column_and_says_what_it_is(mixed: CoinLedger) -> None:
    scores = compare_measures(coinhaze.score(mixed), COMPARATORS.names(), owners=OWNERS)
    assert list(COMPARATORS.names()) == sorted(COMPARATORS.names())
    table = scores.to_arrow()
    for measure in COMPARATORS:
        assert len(measure.words) > 10
        assert len(table[measure.name.replace("-", "_")]) == len(scores)


def test_measures_of_a_small_mix_are_those_found_by_hand(mixed: CoinLedger) -> None:
    scores = compare_measures(coinhaze.score(mixed), COMPARATORS.names(), owners=OWNERS)
    assert column(scores, "k-anonymity") == {"j:1": 2, "j:2": 1, "m:0": 1}
    # 10, 14 -> 10, 10, 4: one block, or each 10 with the first input.
    assert column(scores, "boltzmann") == pytest.approx(
        {"j:1": math.log2(3), "j:2": math.log2(3), "m:0": 0.0}
    )
    assert column(scores, "mint-centrality") == {"j:1": 2, "j:2": 2, "m:0": 2}
    assert column(scores, "possible-sources") == {"j:1": 2, "j:2": 2, "m:0": 3}
    wasabi = column(scores, "wasabi")
    assert math.isnan(wasabi.pop("m:0"))
    # Bob's ten hides with Alice's: 1 + 1; nobody shares his change.
    assert wasabi == {"j:1": 2, "j:2": 1}
    assert math.isnan(column(scores, "matching")["j:1"])
    assert math.isnan(column(scores, "system-anonymity")["j:1"])
    links = column(scores, "link-bits")
    assert links["j:2"] < links["j:1"]


def test_the_anonymity_of_a_whole_transaction() -> None:
    ins = [coin(c, 0, 5) for c in "xyz"]
    ledger = CoinLedger.from_transactions(
        [{"txid": "t", "inputs": ins, "outputs": [{"value": 5}] * 3}]
    )
    scores = compare_measures(coinhaze.score(ledger), ["system-anonymity", "efficiency"])
    assert scores.comparators["system-anonymity"] == pytest.approx([1.0] * 3)
    assert scores.comparators["efficiency"] == pytest.approx([1.0] * 3)


def test_one_to_one_readings_are_those_of_the_permanent() -> None:
    chance = random.Random(1)
    for _ in range(500):
        n = chance.randint(2, 6)
        senders, receivers = ([chance.randint(1, 9) for _ in range(n)] for _ in range(2))
        feasible = [[int(r <= s) for r in receivers] for s in senders]
        found = staircase_anonymity(senders, receivers)
        if permanent(feasible) == 0:
            assert math.isnan(found)
        else:
            assert found == pytest.approx(system_anonymity(feasible), abs=1e-12)


def test_a_transaction_that_can_be_read_one_way_hides_nothing() -> None:
    ins = [coin("x", 0, 5), coin("y", 0, 9)]
    ledger = CoinLedger.from_transactions(
        [{"txid": "t", "inputs": ins, "outputs": [{"value": 9}, {"value": 5}]}]
    )
    scores = compare_measures(coinhaze.score(ledger), ["system-anonymity"])
    assert scores.comparators["system-anonymity"].tolist() == [0.0, 0.0]


def test_what_is_too_large_is_null_not_a_wrong_number() -> None:
    ins = [coin(f"x{k}", 0, 1000 + k) for k in range(40)]
    outs = [{"value": 1000 + k} for k in range(40)]
    ledger = CoinLedger.from_transactions([{"txid": "t", "inputs": ins, "outputs": outs}])
    scores = compare_measures(coinhaze.score(ledger), ["boltzmann", "k-anonymity"])
    assert np.isnan(scores.comparators["boltzmann"]).all()
    assert scores.to_arrow()["boltzmann"].null_count == 40
    assert (scores.comparators["k-anonymity"] == 1).all()


def test_rings_are_matched_over_the_whole_ledger() -> None:
    ledger = CoinLedger.from_transactions(
        [
            {"txid": "p", "rings": [["a:0", "b:0"]], "outputs": 1},
            {"txid": "q", "rings": [["a:0", "b:0"]], "outputs": 1},
            {"txid": "r", "rings": [["a:0", "b:0", "c:0"]], "outputs": 1},
        ]
    )
    scores = compare_measures(coinhaze.score(ledger), ["matching", "possible-sources"])
    assert column(scores, "matching") == {"p:0": 2, "q:0": 2, "r:0": 1}
    assert column(scores, "possible-sources")["r:0"] == 3


def test_a_measure_that_cannot_be_taken_is_refused(mixed: CoinLedger) -> None:
    scores = coinhaze.score(mixed)
    with pytest.raises(UsageError, match="no measure 'entropy': one of boltzmann"):
        compare_measures(scores, ["entropy"])
    with pytest.raises(UsageError, match="name a table of owners"):
        compare_measures(scores, ["wasabi"])
    accounts = coinhaze.AccountLedger.from_transfers([("a", "b", 1)])
    with pytest.raises(UsageError, match="needs a coin ledger, view=coin"):
        compare_measures(coinhaze.score(accounts), ["boltzmann"])
    with pytest.raises(UsageError, match="needs a coin ledger, view=coin"):
        compare_measures(coinhaze.score(mixed, view="address"), ["k-anonymity"])


def test_correlations_leave_nulls_apart(mixed: CoinLedger) -> None:
    scores = compare_measures(coinhaze.score(mixed), ["wasabi", "boltzmann"], owners=OWNERS)
    rows = {(r["measure"], r["with"]): r for r in correlations(scores).to_pylist()}
    assert len(rows) == 3
    assert rows["bits", "wasabi"]["n"] == 2
    assert rows["bits", "wasabi"]["nulls"] == 1
    assert rows["wasabi", "boltzmann"]["pearson"] is None  # the same wherever both are known
    assert rows["bits", "boltzmann"]["spearman"] == pytest.approx(-1.0)


def test_correlations_are_those_of_scipy() -> None:
    from scipy import stats

    rng = np.random.default_rng(1)
    x = rng.integers(0, 9, 50).astype(np.float64)
    y = x**2 + rng.normal(size=50)
    assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-12)
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    assert pearson(x, np.ones(50)) is None
    assert spearman(x[:1], y[:1]) is None
    assert pearson(np.array([1e300, 2e300]), np.array([1.0, 2.0])) == 1.0
