"""Intervals of drawn bits hold: rows, means, whole tables, whatever the chain."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coinhaze
from coinhaze import AbsorbingChain, Scores, absorbing_chain, transaction_graph
from coinhaze.errors import ResourceError, UsageError
from coinhaze.ledger import Ledger
from coinhaze.measures.confidence import Drawn, mean_ends, rounding_slack, row_ends
from coinhaze.simulate import simulate_hubs, simulate_week
from coinhaze.solve.exact.stream import tile_bytes
from coinhaze.solve.planner import thresholds
from coinhaze.solve.pool.limits import Budget
from coinhaze.solve.query import Query
from coinhaze.solve.sketch import sketch as sketches
from coinhaze.solve.sketch.rounding import SINGLE, TileRounding, max_roundings
from coinhaze.solve.sketch.sketch import Draws, precision, sketch
from coinhaze.solve.structure.lump import LumpedChain, lump
from properties import strategies as random
from properties.comparison import profile
from solve.economies import random_transfers
from solve.test_core import lingering
from vectors import coins

LONG = pytest.mark.long
Bools = npt.NDArray[np.bool_]


def chain_of(ledger: Ledger, **settings: object) -> AbsorbingChain:
    return absorbing_chain(transaction_graph(ledger, **settings))  # type: ignore[arg-type]


def outside(found: coinhaze.Scores, exact: coinhaze.Scores) -> Bools:
    """Tell which drawn rows miss what is proven."""
    missed: Bools = (found.bits_low > exact.bits_high) | (found.bits_high < exact.bits_low)
    return missed


@pytest.mark.parametrize(
    ("size", "seeds", "minimum"),
    [(0.001, 40, 300), pytest.param(0.1, 40, 50_000, marks=LONG)],
)
def test_rows_are_missed_at_most_as_often_as_stated(size: float, seeds: int, minimum: int) -> None:
    chain = chain_of(simulate_week("bitcoin-week", size=size))
    exact = coinhaze.score(chain)
    lumped = lump(Query.of(chain, exact.nodes), np.zeros(0))
    # Rows that are one state of the reduced chain are one row; those alone are not drawn.
    _, first = np.unique(lumped.query.row_of, return_index=True)
    rows = np.flatnonzero(lumped.query.answered)[first]
    low, high = exact.bits_low[rows], exact.bits_high[rows]
    rates = dict.fromkeys((0.05, 1e-3, 1e-9), 0.0)
    missed_means = 0
    truth = exact.summary().bits_mean
    for seed in range(seeds):
        told = draws_of(lumped, 256, seed)
        drawn = ~told.alone
        assert drawn.sum() >= minimum
        for miss in rates:
            min_bits, max_bits = told.rows(row_ends(256, miss))
            missed = (min_bits > high) | (max_bits < low)
            assert not missed[told.alone].any()
            rates[miss] += float(missed[drawn].mean()) / seeds
        weights = np.bincount(lumped.query.row_of).astype(np.float64)
        mean_low, mean_high = told.mean(weights, mean_ends(256, 0.05))
        missed_means += not mean_low <= truth <= mean_high
    print({stated: float(f"{rate:.2g}") for stated, rate in rates.items()}, f"{drawn.sum():,} rows")
    assert rates[0.05] <= 0.05
    assert rates[1e-3] <= 1e-3
    assert rates[1e-9] == 0
    assert missed_means <= 0.05 * seeds


def draws_of(lumped: LumpedChain, draws: int, seed: int) -> Drawn:
    """Take draws once, for intervals of any probability to miss."""
    work = Draws.of(lumped.query, lumped.columns, seed)
    taken = sketches._Taken.none(lumped.query, lumped.columns)
    sketches._take(taken, work, draws, Budget(), lambda done: None)
    return taken.drawn(work)


def test_means_over_rows_that_share_draws_are_missed_at_most_as_often_as_stated() -> None:
    chain = chain_of(simulate_hubs(people=300, seed=2, transfers=4))
    exact = coinhaze.score(chain)
    truth = exact.summary()
    lumped = lump(Query.of(chain, exact.nodes), np.zeros(0))
    missed = missed_by_value = 0
    for seed in range(200):
        found = sketch(chain, exact.nodes, draws=64, seed=seed, miss=0.05, lumped=lumped).summary()
        missed += not found.bits_mean_low <= truth.bits_mean <= found.bits_mean_high
        missed_by_value += (
            not found.bits_weighted_mean_low
            <= truth.bits_weighted_mean
            <= found.bits_weighted_mean_high
        )
    assert missed / 200 <= 0.05
    assert missed_by_value / 200 <= 0.05


def by_value_of_small_ledgers() -> Iterator[tuple[Scores, Scores]]:
    """Draw small ledgers, many times each: rows that differ much in what they hold."""
    for ledger in range(4):
        chain = chain_of(random_transfers(30, 120, ledger))
        exact = coinhaze.score(chain)
        for seed in range(60):
            yield exact, sketch(chain, exact.nodes, draws=64, seed=seed, miss=0.05)


def test_means_by_value_are_missed_at_most_as_often_as_stated() -> None:
    missed = total = 0
    for exact, found in by_value_of_small_ledgers():
        total += 1
        told = found.summary()
        closing = exact.chain.graph.closing
        assert closing is not None
        value = closing.take(exact.nodes).ints()
        whole = sum(value)
        truth = sum(v * bits for v, bits in zip(value, exact.bits.tolist(), strict=True)) / whole
        missed += not told.bits_weighted_mean_low <= truth <= told.bits_weighted_mean_high
        assert (
            told.bits_weighted_mean_low <= told.bits_weighted_mean <= told.bits_weighted_mean_high
        )
        # Rows that are known add nothing to the width; rounding adds less than 0.02.
        ends = mean_ends(64, 0.05)
        drawn = sum(v for v, miss in zip(value, found.miss.tolist(), strict=True) if miss) / whole
        width = told.bits_weighted_mean_high - told.bits_weighted_mean_low
        assert width <= ends.bits * drawn + 0.02
    print(f"{missed} of {total} means by value missed at 0.05")
    assert missed / total <= 0.05


def test_means_by_value_leave_burnt_money_and_unknown_values_out() -> None:
    burnt = coinhaze.AccountLedger.from_transfers(
        [
            ("a", "m", 1),
            ("b", "m", 1),
            ("a", "m2", 1),
            ("c", "m2", 2),
            ("m", "x", 2),
            ("m2", "0x0000000000000000000000000000000000000000", 3),
        ]
    )
    found = coinhaze.score(burnt, accuracy="preview", seed=1)
    told = found.summary()
    assert told.bits_weighted_mean_low <= told.bits_weighted_mean <= told.bits_weighted_mean_high
    without = replace(found.chain.graph, closing=None)
    chain = absorbing_chain(without)
    unknown = sketch(chain, found.nodes, seed=1).summary()
    assert math.isnan(unknown.bits_weighted_mean_low)
    assert unknown.bits_mean_low == told.bits_mean_low


def test_rows_with_one_column_are_known_and_miss_never() -> None:
    ledger = coinhaze.AccountLedger.from_transfers(
        [("a", "m", 1), ("b", "m", 1), ("m", "x", 1), ("m", "y", 1), ("c", "z", 3)]
    )
    exact = coinhaze.score(ledger)
    found = coinhaze.score(ledger, accuracy="preview", seed=3)
    assert found.miss.tolist() == [0.0] * 3
    assert found.width <= 1e-12
    assert not outside(found, exact).any()
    # All rows are known, so the mean is.
    told = found.summary()
    assert told.bits_mean_high - told.bits_mean_low < 1e-9
    assert told.bits_mean_low <= exact.summary().bits_mean <= told.bits_mean_high


def test_intervals_are_those_of_the_law_and_hold_the_estimate() -> None:
    chain = chain_of(random_transfers(300, 1500, 4))
    rows = np.flatnonzero(chain.graph.sinks)
    found = sketch(chain, rows, draws=128, seed=5, miss=1e-4)
    drawn = found.miss > 0
    assert set(found.miss[drawn].tolist()) == {1e-4}
    widths = (found.bits_high - found.bits_low)[drawn]
    expected = row_ends(128, 1e-4).bits
    inner = (found.bits_low > 0) & (found.bits_high < math.log2(len(chain.outcomes)) - 1e-9)
    assert np.all(widths <= expected + 0.02)
    np.testing.assert_allclose(widths[inner[drawn]], expected, atol=0.02)
    assert np.all((found.bits_low <= found.bits) & (found.bits <= found.bits_high))
    told = found.summary()
    assert told.bits_mean_high - told.bits_mean_low <= mean_ends(128, 1e-4).bits + 0.02
    assert (told.miss, told.mean_miss, told.joint_miss) == (1e-4, 1e-4, None)


def test_simultaneous_intervals_share_the_probability_among_distinct_rows() -> None:
    chain = chain_of(random_transfers(300, 1500, 4))
    rows = np.flatnonzero(chain.graph.sinks)
    one = sketch(chain, rows, seed=5, miss=1e-4)
    all_ = sketch(chain, rows, seed=5, miss=1e-4, simultaneous=True)
    drawn = int((~sketches.alone_states(Query.of(chain, rows))).sum())
    assert np.nanmax(all_.miss) == pytest.approx(1e-4 / drawn, rel=0.2)
    assert np.array_equal(one.bits[one.miss > 0], all_.bits[one.miss > 0])
    assert np.all(all_.bits_low <= one.bits_low)
    assert np.all(all_.bits_high >= one.bits_high)
    told = all_.summary()
    assert told.joint_miss == 1e-4
    assert told.bits_mean_low == one.summary().bits_mean_low
    assert "any of them misses with probability at most 1e-04" in told.line()


@pytest.mark.parametrize(
    "seed", [pytest.param(k, marks=[pytest.mark.long] if k else []) for k in range(3)]
)
def test_iterated_cores_count_the_mass_they_miss(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = chain_of(random_transfers(150, 1200, 3))
    exact = coinhaze.score(chain)
    monkeypatch.setattr(thresholds, "MAX_DENSE_CORE", 3)
    monkeypatch.setattr(thresholds, "PREVIEW_MISSING", 0.3)
    found = coinhaze.score(chain, accuracy="preview", draws=16384, seed=seed)
    assert not outside(found, exact).any()
    # Up to 0.09 of a row is missing: were it not counted, intervals would be too narrow.
    assert found.width > row_ends(16384, 1e-9).bits + 0.3
    told = found.summary()
    assert told.bits_mean_low <= exact.summary().bits_mean <= told.bits_mean_high


def test_histories_are_inside_too() -> None:
    chain = absorbing_chain(
        transaction_graph(coins("pools")), history={"sapling": list(range(1, 200))}
    )
    exact = coinhaze.score(chain, nodes="all")
    for seed in range(20):
        found = sketch(chain, exact.nodes, draws=1024, seed=seed)
        assert not outside(found, exact).any()


def hub(receipts: int) -> AbsorbingChain:
    """Make an account that pays between receipts, temporally: a chain of as many snapshots."""
    rows = [row for k in range(receipts) for row in ((f"s{k}", "hub", 10), ("hub", f"x{k}", 1))]
    return chain_of(coinhaze.AccountLedger.from_transfers(rows), time="temporal")


def test_precision_follows_the_bound_and_both_hold() -> None:
    short, long = hub(50), hub(1000)
    kinds = []
    for chain in (short, long):
        rows = np.flatnonzero(chain.graph.sinks)
        lumped = lump(Query.of(chain, rows), np.zeros(0))
        kind, error = precision(lumped.query, lumped.columns)
        kinds.append(kind)
        assert error.max() < 1e-3
        exact = coinhaze.score(chain)
        assert not outside(sketch(chain, rows, draws=4096, seed=1, lumped=lumped), exact).any()
    assert kinds == [np.float32, np.float64]


def test_single_precision_is_off_by_less_than_its_slack(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = hub(1000)
    rows = np.flatnonzero(chain.graph.sinks)
    lumped = lump(Query.of(chain, rows), np.zeros(0))
    double = sketch(chain, rows, draws=256, seed=1, lumped=lumped)
    monkeypatch.setattr(thresholds, "MAX_SINGLE_WIDTH", math.inf)
    single = sketch(chain, rows, draws=256, seed=1, lumped=lumped)
    slack = (single.bits_high - double.bits_high).max()
    off = np.abs(single.bits - double.bits).max()
    assert 0 < off < slack
    assert np.all(single.bits_low <= double.bits_low)
    assert np.all(single.bits_high >= double.bits_high)


def test_little_memory_changes_no_bit_of_a_preview(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = hub(2000)
    rows = np.flatnonzero(chain.graph.sinks)
    lumped = lump(Query.of(chain, rows), np.zeros(0))
    assert precision(lumped.query, lumped.columns)[0] is np.float64
    plenty = sketch(chain, rows, seed=3, lumped=lumped)
    tile = tile_bytes(lumped.query.factor.inner)
    monkeypatch.setattr(Budget, "room", lambda self: tile)
    just = sketch(chain, rows, seed=3, lumped=lumped, budget=Budget(memory=1))
    assert plenty.bits.tobytes() == just.bits.tobytes()
    assert plenty.bits_high.tobytes() == just.bits_high.tobytes()
    monkeypatch.setattr(Budget, "room", lambda self: tile - 1)
    with pytest.raises(ResourceError, match="a tile of columns would take"):
        sketch(chain, rows, seed=3, lumped=lumped, budget=Budget(memory=1))


def slow_most(chain: AbsorbingChain, rows: npt.NDArray[np.int64]) -> list[float]:
    """Count roundings along every walk of an acyclic chain, one after the other."""
    query = Query.of(chain, rows)
    r = query.reduced

    def worst(i: int) -> float:
        steps = r.indices[r.indptr[i] : r.indptr[i + 1]].tolist()
        if not steps:
            return 3.0
        terms = len(steps)
        return max(3.0, *(worst(j) for j in steps)) + min(terms, terms // 4 + 3) + 3.0

    return [worst(int(i)) for i in query.scored]


def test_the_most_roundings_are_those_of_the_worst_walk() -> None:
    rows_of = [("a", "b", 3), ("c", "b", 1), ("b", "d", 2), ("a", "d", 5), ("d", "e", 3)]
    chain = chain_of(coinhaze.AccountLedger.from_transfers(rows_of), time="temporal")
    rows = np.flatnonzero(chain.graph.sinks)
    query = Query.of(chain, rows)
    found = max_roundings(query.factor, SINGLE)[query.factor.place[query.scored]]
    assert found.tolist() == slow_most(chain, rows)


@pytest.mark.parametrize("cores", ["dense", "sparse"])
def test_cyclic_tiles_err_by_less_than_their_bound(
    cores: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = lingering(5)
    if cores == "sparse":
        monkeypatch.setattr(thresholds, "MAX_DENSE_CORE", 3)
        chain = chain_of(random_transfers(150, 1200, 3))
    rows = np.flatnonzero(chain.graph.sinks)
    lumped = lump(Query.of(chain, rows, missing=1e-14), np.zeros(0))
    rounding = TileRounding.of(lumped.query)
    assert rounding.fits_single
    assert np.all(rounding.double < 1e-9)
    monkeypatch.setattr(thresholds, "MAX_SINGLE_WIDTH", math.inf)
    single = Draws.of(lumped.query, lumped.columns, 3)
    monkeypatch.setattr(thresholds, "MAX_SINGLE_WIDTH", 0.0)
    double = Draws.of(lumped.query, lumped.columns, 3)
    assert (single.kind, double.kind) == (np.float32, np.float64)
    one, two = (-np.log(work.solve(0, work.room()) / 64) for work in (single, double))
    slack = rounding_slack(one, single.error)
    assert np.all(np.abs(one - two) <= slack)
    assert np.any(np.abs(one - two) > 0)


def test_drawing_until_a_mean_is_known_pays_for_looking() -> None:
    chain = chain_of(simulate_week("dai-week", size=0.02))
    rows = np.flatnonzero(chain.graph.sinks)
    looked = sketch(chain, rows, mean_error=0.05)
    k = 64 * len(looked.draw_means) if looked.draw_means is not None else 0
    fixed = sketch(chain, rows, draws=k)
    assert np.array_equal(looked.miss, fixed.miss, equal_nan=True)
    drawn = looked.miss > 0
    assert np.all(looked.bits_low[drawn] <= fixed.bits_low[drawn])
    assert looked.width > fixed.width
    assert not outside(looked, coinhaze.score(chain)).any()


def test_a_width_is_drawn_only_where_that_is_less_work_and_a_chance_to_miss_is_given() -> None:
    ledger = simulate_hubs(people=2000, seed=1, transfers=6)
    proven = coinhaze.plan(ledger, accuracy=0.5)
    assert proven.costs is None
    either = coinhaze.plan(ledger, accuracy=0.5, miss=1e-6)
    assert either.costs is not None
    assert either.costs.draws is not None
    assert any(line.startswith("choice    proven about ") for line in either.lines())
    assert either.method.startswith("sketch") == (either.costs.drawn < either.costs.proven)


@pytest.mark.parametrize("over", ["worst", "mean"])
def test_a_drawn_width_is_as_narrow_as_requested_and_holds(
    over: coinhaze.options.Over, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thresholds, "DRAW_NS", (0.0, 0.0, 0.0))
    ledger = simulate_hubs(people=500, seed=1, transfers=6)
    found = coinhaze.score(ledger, accuracy=0.6, over=over, miss=1e-6, seed=2)
    assert found.method.startswith("sketch (k=")
    told = found.summary()
    width = found.width if over == "worst" else told.bits_mean_high - told.bits_mean_low
    assert 0.5 < width <= 0.6
    assert not outside(found, coinhaze.score(ledger)).any()
    planned = coinhaze.plan(ledger, accuracy=0.6, over=over, miss=1e-6, seed=2)
    assert planned.width <= 0.6
    assert not coinhaze.score(ledger, accuracy=1e-5, miss=1e-6).method.startswith("sketch")


def test_a_seed_that_nobody_gave_is_random_and_reported_afterwards() -> None:
    ledger = random_transfers(60, 300, 1)
    one, two = (coinhaze.score(ledger, accuracy="preview") for _ in range(2))
    assert one.method != two.method
    seed = int(one.method.split("seed ")[1].rstrip(")"))
    again = coinhaze.score(ledger, accuracy="preview", seed=seed)
    assert np.array_equal(one.bits, again.bits)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"miss": 1e-9}, "goes with a preview"),
        ({"seed": 1}, "about draws"),
        ({"simultaneous": True, "accuracy": 0.1}, "about draws"),
        ({"accuracy": 0.1, "miss": 1e-9, "method": "eliminate"}, "no renyi, method"),
        ({"accuracy": "preview", "miss": 0.0}, "above 0 and below 1"),
        ({"accuracy": "preview", "miss": 1.5}, "above 0 and below 1"),
        ({"accuracy": "preview", "seed": -1}, "from 0 to 2"),
        ({"policy": "fifo", "miss": 1e-9}, "replay the ledger once"),
    ],
)
def test_what_has_no_meaning_is_refused(settings: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        coinhaze.score(random_transfers(10, 30, 1), **settings)  # type: ignore[arg-type]


def test_proven_scores_never_miss() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "b", 5), ("b", "a", 5), ("s", "t", 3)])
    exact = coinhaze.score(ledger, nodes="all")
    assert exact.to_arrow()["miss"].to_pylist() == [None, None, 0.0, 0.0]
    told = exact.summary()
    assert (told.miss, told.mean_miss) == (0.0, 0.0)
    assert told.bits_mean_low <= told.bits_mean <= told.bits_mean_high
    assert told.bits_weighted_mean_low <= told.bits_weighted_mean <= told.bits_weighted_mean_high
    assert "proven intervals within" in told.line()
    assert exact["t"].miss == 0.0


def test_some_rows_of_drawn_scores_have_no_interval_of_their_mean() -> None:
    found = coinhaze.score(random_transfers(60, 300, 1), accuracy="preview", seed=1)
    some = found.take(np.arange(3))
    assert math.isnan(some.summary().bits_mean_low)
    assert math.isnan(some.summary().bits_weighted_mean_low)
    assert some.miss.tolist() == found.miss[:3].tolist()


@given(transfers=random.transfers(), seed=st.integers(0, 2**63 - 1))
@profile(40)
def test_random_ledgers_lie_inside(transfers: list[random.Transfer], seed: int) -> None:
    ledger = coinhaze.AccountLedger.from_transfers(transfers)
    exact = coinhaze.score(ledger, nodes="all", threads=1)
    found = coinhaze.score(
        ledger, nodes="all", accuracy="preview", draws=64, miss=1e-9, seed=seed, threads=1
    )
    assert not outside(found, exact).any()


def test_a_figure_of_drawn_bits_says_so() -> None:
    pytest.importorskip("matplotlib")
    ledger = random_transfers(60, 300, 1)
    drawn = coinhaze.score(ledger, accuracy="preview", seed=1).plot()
    assert drawn.get_title().startswith("drawn, not proven: of the intervals each misses with")
    assert coinhaze.score(ledger).plot().get_title() == ""
