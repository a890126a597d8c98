"""Large chains with closed answers, where roundings add up: intervals must hold the truth."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, getcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import coinhaze
from coinhaze.errors import AccuracyError, UsageError
from coinhaze.solve.structure.lump_kernels import exact_sums

getcontext().prec = 60


def entropy(weights: list[tuple[int, int]]) -> Decimal:
    """Give the entropy of `count` sources of each weight, exactly enough."""
    total = Decimal(sum(count * weight for count, weight in weights))
    nats = sum(
        (count * weight / total * (total / weight).ln() for count, weight in weights), Decimal(0)
    )
    return nats / Decimal(2).ln()


def holds(scores: coinhaze.Scores, truth: Decimal) -> bool:
    return Decimal(float(scores.bits_low[0])) <= truth <= Decimal(float(scores.bits_high[0]))


@pytest.mark.parametrize(("many", "few"), [(1000, 100), (10_000, 100), (100_000, 1)])
def test_thousands_of_moves_merged_into_one(many: int, few: int) -> None:
    # A pays 3 to each of many accounts that all pay the hub, B pays 1 to each of a few.
    a, b = [f"a{k}" for k in range(many)], [f"b{k}" for k in range(few)]
    ledger = coinhaze.AccountLedger.from_columns(
        pa.array(["A"] * many + a + ["B"] * few + b),
        pa.array(a + ["hub"] * many + b + ["hub"] * few),
        pa.array([3] * (2 * many) + [1] * (2 * few)),
    )
    truth = entropy([(1, 3 * many), (1, few)])
    scores = coinhaze.score(ledger, nodes=["hub"])
    assert holds(scores, truth)
    assert scores.width < 1e-9
    if many <= 10_000:
        assert holds(coinhaze.score(ledger, nodes=["hub"], method="series"), truth)


@pytest.mark.parametrize(("fan", "depth"), [(64, 3), (10, 5), (20, 4), (300, 2)])
@pytest.mark.parametrize("part", [0.001, 0.1, 0.5])
def test_trees_of_a_hundred_thousand_sources(fan: int, depth: int, part: float) -> None:
    senders, receivers, amounts = [], [], []
    for level in range(depth, 0, -1):
        senders += [f"{level}.{k}" for k in range(fan**level)]
        receivers += [f"{level - 1}.{k // fan}" for k in range(fan**level)]
        amounts += [fan ** (depth - level)] * fan**level
    extra = max(1, int(part * fan**depth))
    ledger = coinhaze.AccountLedger.from_columns(
        pa.array([*senders, "X"]), pa.array([*receivers, "0.0"]), pa.array([*amounts, extra])
    )
    scores = coinhaze.score(ledger, nodes=["0.0"])
    assert holds(scores, entropy([(fan**depth, 1), (1, extra)]))
    assert scores.width < 1e-9


def escape(n: int) -> coinhaze.AbsorbingChain:
    """Two ways out of a loop, each of probability about 3^-n; one half as likely again."""
    transfers = [("z", "w", 10 * n)]
    for path, source in (("p", "s"), ("q", "t")):
        nodes = [source, *(f"{path}{k}" for k in range(1, n + 1)), "z"]
        transfers += [(a, b, 100 * n) for a, b in itertools.pairwise(nodes)]
        for node in nodes[1:-1]:
            transfers.append(("z", node, 1))
            if node != "q1":
                transfers.append(("w", node, 1))
    graph = coinhaze.transaction_graph(coinhaze.AccountLedger.from_transfers(transfers))
    return coinhaze.absorbing_chain(graph, policy="uniform")


@pytest.mark.parametrize("n", [10, 100, 600])
def test_absorption_down_to_the_end_of_floats_keeps_its_digits(n: int) -> None:
    scores = coinhaze.score(escape(n), nodes=["z"])
    truth = entropy([(1, 2), (1, 3)])
    assert holds(scores, truth)
    assert scores.bits[0] == pytest.approx(float(truth), abs=1e-12)


@pytest.mark.parametrize("n", [640, 674, 700])
def test_absorption_beyond_the_end_of_floats_is_refused(n: int) -> None:
    with pytest.raises(AccuracyError, match="rarer than floats can hold"):
        coinhaze.score(escape(n), nodes=["z"])


def test_the_series_keeps_what_was_requested_or_says_what_it_reached() -> None:
    names = [f"v{k}" for k in range(110)]
    there = [(a, b, 2) for a, b in itertools.pairwise(names)]
    back = [(b, a, 1) for a, b in itertools.pairwise(names)]
    ledger = coinhaze.AccountLedger.from_transfers([("s", "v0", 5), ("t", "v99", 5), *there, *back])
    with pytest.raises(AccuracyError, match="above the requested"):
        coinhaze.score(ledger, method="series", accuracy=1e-13)
    scores = coinhaze.score(ledger, method="series", accuracy=1e-6)
    assert scores.width <= 1e-6


def test_renyi_orders_that_cannot_be_had_are_refused() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([(f"s{k}", "x", 1) for k in range(150)])
    for order in (-1.0, math.nan, 1 + 1e-13):
        with pytest.raises(UsageError, match="order of a Renyi entropy"):
            coinhaze.score(ledger, renyi=(order,))
    with pytest.raises(AccuracyError, match="too small for floats"):
        coinhaze.score(ledger, renyi=(200,))
    with pytest.raises(UsageError, match="Shannon entropy only"):
        coinhaze.score(ledger, renyi=(2,), method="series")


def test_sums_by_group_round_once() -> None:
    rng = np.random.default_rng(1)
    values, group = 10.0 ** rng.uniform(-20, 3, 5000), rng.integers(0, 3, 5000)
    got = exact_sums(group, values, 3)
    for g in range(3):
        assert got[g] == pytest.approx(math.fsum(values[group == g]), rel=2**-52)


def test_origins_of_a_long_chain_take_no_more_than_its_length() -> None:
    names = [f"n{k}" for k in range(30_000)]
    hops = [(a, b, 7) for a, b in itertools.pairwise(names)]
    ledger = coinhaze.AccountLedger.from_transfers(hops)
    chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    found = coinhaze.origins(chain, names[-1])
    assert len(found.way(0)) == 30_000
    assert found.flow_share.tolist() == [1.0] * 29_999
    with pytest.raises(coinhaze.CoinhazeError, match="no node 99999"):
        coinhaze.origins(chain, 99_999)


def test_every_source_has_its_way() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([(f"s{k}", "x", 1 + k) for k in range(150)])
    chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    document = coinhaze.origins(chain, "x", accuracy=1e-6).as_dict()
    sources = document["sources"]
    assert isinstance(sources, list)
    assert [s["way"] for s in sources[:2]] == [["s149", "x"], ["s148", "x"]]
    assert len(sources) == 150


@pytest.mark.parametrize("accuracy", ["fine", -1, 0, None])
def test_origins_refuse_an_accuracy_that_is_none(accuracy: Any) -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "b", 1)])
    with pytest.raises(UsageError, match="accuracy is exact"):
        coinhaze.origins(ledger, "b", accuracy=accuracy)
