"""Two coins: worked cases, an exact twin in fractions, and intervals that hold."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import coinhaze
import twin
from coinhaze.errors import UnknownName, UsageError
from coinhaze.measures.pairs import FIGURES, SourceRow, compare_rows
from observer.test_owners import by_person, economy, told_owners
from vectors import coins, load

SEEDS = [seed for seed in range(28) if len(twin.coin_graph(economy(seed)).sinks) > 1]


def test_worked_cases() -> None:
    ledger, answers = coins("utxo"), load("pairs")["answers"]
    names = sorted({answer[end] for answer in answers for end in "ab"})
    found = coinhaze.shared(ledger, names)
    for answer in answers:
        figures = found.pair(answer["a"], answer["b"])
        for name in FIGURES:
            value = getattr(figures, name).value
            if answer[name] is None:
                assert value is None
            else:
                assert value == pytest.approx(answer[name], abs=1e-12)
    table = found.to_arrow()
    assert len(table) == len(names) * (len(names) - 1) // 2 * 3
    assert set(table["observer"].to_pylist()) == {"naive", "common-input-no-coinjoins", "change"}
    assert np.allclose(found.matrix("overlap").diagonal(), 1.0)


def slow(p: dict[str, Fraction], q: dict[str, Fraction], prior: dict[str, Fraction]) -> Any:
    """Compute the four figures as they are defined, source by source."""
    sources = sorted(p.keys() | q.keys())
    pairs = [(p.get(s, Fraction(0)), q.get(s, Fraction(0))) for s in sources]
    middle = {s: (x + y) / 2 for s, (x, y) in zip(sources, pairs, strict=True)}
    divergence = twin.entropy(middle) - (twin.entropy(p) + twin.entropy(q)) / 2
    weight = sum(x * y / prior[s] for s, (x, y) in zip(sources, pairs, strict=True))
    return {
        "collision": float(sum(x * y for x, y in pairs)),
        "overlap": float(sum(min(x, y) for x, y in pairs)),
        "divergence": divergence,
        "evidence": math.log2(weight) if weight else None,
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_figures_are_what_fractions_give_for_every_observer(seed: int) -> None:
    records = economy(seed)
    ledger = coinhaze.CoinLedger.from_transactions(records)
    graph = twin.coin_graph(records)
    exact = twin.solve(twin.proportional(graph))
    sinks = sorted(graph.sinks)[:6]
    found = coinhaze.shared(ledger, sinks, owners={"addr0": "Ann", "addr1": "Ann"})
    owners = [[], *told_owners(ledger, records, {"addr0": "Ann", "addr1": "Ann"})]
    total = sum(graph.opening.values())
    openings = {s: Fraction(amount, total) for s, amount in graph.opening.items()}
    for seen, one in zip(found.seen, owners, strict=True):

        def grouped(row: Any, one: Any = one, naive: bool = seen.observer is None) -> Any:
            return row if naive else by_person(row, records, one)

        prior = grouped(openings)
        for a in sinks:
            for b in sinks:
                p, q = exact[a], exact[b]
                assert p is not None
                assert q is not None
                truth = slow(grouped(p.distribution), grouped(q.distribution), prior)
                figures = found.pair(a, b, seen.name)
                for name in FIGURES:
                    value = getattr(figures, name).value
                    if truth[name] is None:
                        assert value is None
                    else:
                        assert value == pytest.approx(truth[name], abs=1e-11)


@pytest.mark.parametrize("seed", range(200))
def test_intervals_hold_whatever_was_not_followed(seed: int) -> None:
    chance = np.random.default_rng(seed)
    n = int(chance.integers(2, 7))
    prior = chance.dirichlet(np.ones(n))
    rows, short = [], []
    for _ in range(2):
        whole = chance.dirichlet(np.full(n, 0.4))
        part = whole * chance.choice([0.0, 0.5, 0.99, 1.0], n)
        rows.append(SourceRow(np.arange(n), whole))
        there = np.flatnonzero(part)
        short.append(SourceRow(there, part[there], max(1.0 - float(part.sum()), 0.0)))
    truth, found = compare_rows(rows[0], rows[1], prior), compare_rows(short[0], short[1], prior)
    for name in FIGURES:
        value, bounded = getattr(truth, name).value, getattr(found, name)
        if bounded.low is not None:
            assert bounded.low <= value + 1e-12
            assert bounded.low <= bounded.value <= bounded.high
        assert value is None or value <= bounded.high + 1e-12


def test_common_origins_that_are_rare_come_first() -> None:
    ledger = coins("utxo")
    found = coinhaze.shared(ledger, ["t11:0", "t12:2"])
    rows = found.common("t11:0", "t12:2").to_pylist()
    weights = [row["weight"] for row in rows]
    assert weights == sorted(weights, reverse=True)
    assert sum(weights) == pytest.approx(1.0)
    terms = [
        row["share_of_first"] * row["share_of_second"] / row["share_of_openings"] for row in rows
    ]
    evidence = found.pair("t11:0", "t12:2").evidence.value
    assert math.log2(sum(terms)) == pytest.approx(evidence)


def test_what_cannot_be_compared_is_refused() -> None:
    ledger = coins("utxo")
    with pytest.raises(UsageError, match="at least two"):
        coinhaze.shared(ledger, ["t11:0"])
    with pytest.raises(UsageError, match="named twice"):
        coinhaze.shared(ledger, ["t11:0", "t11:0"])
    with pytest.raises(UsageError, match="leave lists out"):
        coinhaze.shared(ledger, ["t11:0", "t12:2"], listed=["addr0"])
    found = coinhaze.shared(ledger, ["t11:0", "t12:2"])
    with pytest.raises(UnknownName, match="was not compared"):
        found.pair("t11:0", "t13:0")
    with pytest.raises(UnknownName, match="no observer"):
        found.pair("t11:0", "t12:2", "nobody")
