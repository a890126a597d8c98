"""Sweeps with lists of tokens: collapsing, truncation, tail sketches, what they cost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import coinhaze
from built_late import BuiltLate
from coinhaze import AbsorbingChain, AccountLedger, absorbing_chain, transaction_graph
from coinhaze.amounts import Floats, Ints
from coinhaze.errors import AccuracyError, UsageError
from coinhaze.simulate import simulate_hubs, simulate_town
from coinhaze.solve.exact.stream_kernels import surprise
from coinhaze.solve.planner import thresholds
from coinhaze.solve.planner.cost import ExactCost, SweepCost, sweep_cost
from coinhaze.solve.pool.limits import Budget
from coinhaze.solve.progress import silent
from coinhaze.solve.query import Query
from coinhaze.solve.structure.columns import columns_of
from coinhaze.solve.structure.lump import LumpedChain, lump
from coinhaze.solve.sums import Sums
from coinhaze.solve.truncated import truncate
from coinhaze.solve.truncated.lists import (
    ListWork,
    Swept,
    Tails,
    births_of,
    blocks_of,
    sweep_blocks,
)
from coinhaze.solve.truncated.truncate import (
    DRAWS,
    Truncation,
    Widths,
    first_level,
    list_worth,
    narrowing,
    sweep,
    truncated,
)
from solve.dense import absorption, entropy
from solve.economies import random_transfers

NONE = np.zeros(0)


def folded_of(chain: AbsorbingChain) -> LumpedChain:
    return lump(asked_of(chain), NONE)


def asked_of(chain: AbsorbingChain, rows: Ints | None = None) -> Query:
    return Query.of(chain, np.flatnonzero(chain.graph.sinks) if rows is None else rows)


def random_acyclic(seed: int, n: int = 120) -> AbsorbingChain:
    """Make a chain by hand: moves lead back, some of weight 1e-300, some zero, many shared.

    Every third node is a source; nodes 1 and 2 are private to one node each, and the rest has
    diamonds in plenty.
    """
    rng = np.random.default_rng(seed)
    names = [f"n{k}" for k in range(n)]
    transfers, moves = [], np.zeros((n, n))
    for i in range(3, n):
        back = np.unique(rng.integers(max(0, i - 25), i, size=rng.integers(1, 5)))
        for j in back[back != i]:
            weight = rng.choice([1.0, 1.0, 1.0, 1e-9, 1e-300])
            transfers.append((names[j], names[i], 1))
            moves[i, j] = weight * rng.random()
    transfers += [(names[1], names[3], 1), (names[2], names[3], 1), (names[0], names[3], 1)]
    moves[3, :3] = 1.0
    ledger = AccountLedger.from_transfers(transfers)
    graph = transaction_graph(ledger)
    order = np.array([graph.names.node(name) for name in names])
    source = (np.arange(n) % 3 == 0) | (moves.sum(axis=1) == 0)
    own = np.where(source, rng.random(n) + 1e-3, 0.0)
    total = moves.sum(axis=1) + own
    matrix = np.zeros((n, n + 1))
    matrix[np.ix_(order, order)] = moves / total[:, None]
    matrix[order, n] = own / total
    return absorbing_chain(graph, policy=matrix)


def swept(query: Query, orders: Floats = NONE, *, minimum: float = 0.0, **settings: Any) -> Swept:
    chosen: dict[str, Any] = {"budget": Budget(threads=2), "progress": silent} | settings
    thresholds = np.full(len(query.reduced), minimum)
    return sweep_blocks(query, columns_of(query, orders), orders, minimum=thresholds, **chosen)


def transfers_in_time(**settings: Any) -> AbsorbingChain:
    graph = transaction_graph(random_transfers(50, 500, 3), time="temporal")
    return absorbing_chain(graph, **settings)


CHAINS = BuiltLate[AbsorbingChain](
    {
        "town": lambda: absorbing_chain(transaction_graph(simulate_town(transactions=500))),
        "hubs": lambda: absorbing_chain(
            transaction_graph(simulate_hubs(people=300, transfers=4), time="temporal")
        ),
        "transfers": transfers_in_time,
        "listed": lambda: transfers_in_time(listed=["a1", "a2", "a7"]),
        "by hand": lambda: random_acyclic(1),
    }
)
each_chain = pytest.mark.parametrize("name", CHAINS)


@each_chain
@pytest.mark.parametrize("blocks", [1, 3])
def test_collapsing_changes_no_sum(name: str, blocks: int) -> None:
    chain = CHAINS[name]
    for rows in (np.flatnonzero(chain.graph.sinks), np.arange(len(chain))):
        query = asked_of(chain, rows)
        orders = np.array([0.5, 2.0])
        on, off = (swept(query, orders, blocks=blocks, collapse=c) for c in (True, False))
        assert on.entries <= off.entries
        for field in ("entropy", "mass", "prior", "top", "powers", "elsewhere"):
            np.testing.assert_allclose(
                getattr(on.sums, field), getattr(off.sums, field), rtol=1e-12, atol=1e-13
            )
        np.testing.assert_allclose(on.weights, off.weights, rtol=1e-12)
        assert np.all(on.sums.slack < 1e-11)


def test_collapsing_saves_work_and_memory() -> None:
    query = asked_of(CHAINS["town"])
    on, off = (swept(query, collapse=c) for c in (True, False))
    assert on.entries < 0.8 * off.entries
    assert on.peak < off.peak


def test_a_history_is_distinguished_from_what_collapsed() -> None:
    # Two pools' worth of money meet, so their tokens collapse; only one has a history.
    transfers = [("p", "x", 3), ("q", "x", 1), ("x", "y", 2), ("x", "z", 2), ("r", "z", 5)]
    graph = transaction_graph(AccountLedger.from_transfers(transfers), time="temporal")
    chain = absorbing_chain(graph)
    history = {int(chain.column[graph.names.node("p:0")]): np.array([0.25, 0.75])}
    object.__setattr__(chain, "history", history)
    scores = coinhaze.score(chain, nodes=["y"])
    plain = float(-(0.75 * np.log2(0.75) + 0.25 * np.log2(0.25)))
    assert scores.bits_unmodified is not None
    assert scores.bits_unmodified[0] == pytest.approx(plain, abs=1e-12)
    assert scores.bits[0] == pytest.approx(plain + 0.75 * plain, abs=1e-12)


@each_chain
def test_threads_change_no_bit(name: str) -> None:
    query = asked_of(CHAINS[name])
    one, two = (
        swept(query, minimum=1e-3, blocks=4, draws=8, budget=Budget(threads=n)).sums.arrays()
        for n in (1, 2)
    )
    for a, b in zip(one, two, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_intervals_hold_the_dense_truth(seed: int, blocks: int) -> None:
    chain = random_acyclic(seed)
    rows = np.arange(len(chain))
    truth = entropy(absorption(chain, np.ones(len(chain), dtype=np.bool_))[0])
    query = asked_of(chain, rows)
    for minimum in (0.4, 0.1, 0.02, 1e-3):
        for collapse in (True, False):
            low, high, missing = bounds(
                swept(query, minimum=minimum, blocks=blocks, collapse=collapse)
            )
            assert np.all(query.spread(low) <= truth + 1e-12)
            assert np.all(query.spread(high) >= truth - 1e-12)
            assert minimum < 0.1 or missing.max() > 0.01


def bounds(found: Swept) -> tuple[Floats, Floats, Floats]:
    """Give the bare bounds of lists.py, with no slack for rounding."""
    sums = found.sums
    bits = sums.entropy + sums.prior
    rest = np.array([surprise(p) for p in 1 - sums.missing])
    return bits + sums.below - rest, bits + sums.above, sums.missing


@pytest.mark.parametrize("over", ["worst", "mean"])
@pytest.mark.parametrize("name", ["town", "hubs", "transfers"])
@pytest.mark.parametrize("width", [1.0, 0.1, 0.003])
def test_what_is_requested_is_retained(name: str, over: Any, width: float) -> None:
    chain = CHAINS[name]
    rows = np.flatnonzero(chain.graph.sinks)
    exact = coinhaze.score(chain)
    scores = sweep(chain, rows, width=width, over=over)
    widths = Widths.of(scores)
    assert widths.over(over) <= width
    assert np.all(scores.bits_low <= exact.bits_high)
    assert np.all(scores.bits_high >= exact.bits_low)
    assert np.all((scores.bits_low <= scores.bits) & (scores.bits <= scores.bits_high))
    np.testing.assert_array_equal(scores.sources, exact.sources)


def test_a_mean_may_be_had_with_less_work_than_the_worst() -> None:
    lumped = folded_of(CHAINS["hubs"])
    entries: dict[str, int] = {}
    for over in ("worst", "mean"):
        question = Truncation.of(lumped, over=over)
        *_, last = narrowing(question, width=0.02, over=over)
        assert last.widths.over(over) <= 0.02
        entries[over] = last.swept.entries
    assert entries["mean"] < entries["worst"]


def test_lists_that_many_rows_lead_to_keep_more() -> None:
    query = asked_of(CHAINS["hubs"])
    worth = list_worth(query)
    minimum, maximum = np.quantile(worth, [0.05, 0.95])
    assert 0 < minimum < 1 < maximum


def test_more_work_than_exact_scores_take_is_not_done() -> None:
    lumped = folded_of(CHAINS["hubs"])
    cheap = ExactCost(lumped.query, lumped.columns)
    assert cheap.seconds < 0.1
    assert truncated(lumped, width=1e-3, over="mean", exact=cheap) is None
    assert truncated(lumped, width=1e-3, over="mean") is not None


def test_too_little_memory_is_refused_with_what_was_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lumped = folded_of(CHAINS["hubs"])
    monkeypatch.setitem(truncate.FIRST, "mean", 0.05)  # so that one try is not enough
    monkeypatch.setattr(truncate, "BLOCKS", 1)  # so that lists pass what they begin with
    first = Truncation.of(lumped, over="mean").attempt(first_level(1e-4, "mean"))
    # Enough for the first try (its lists while they grow), too little for the next.
    beside = Sums.size(len(lumped.query.scored)) + Tails.size(len(lumped.query.moves), DRAWS)
    monkeypatch.setattr(thresholds, "LIST_MEMORY", 2 * first.swept.memory + beside)
    monkeypatch.setattr(thresholds, "BLOCK_MEMORY", 0)
    monkeypatch.setattr(thresholds, "LIST_SHARE", 1)
    with pytest.raises(
        AccuracyError, match=r"on average, .* for 99 % of the rows, .* at worst; .* more memory"
    ) as caught:
        truncated(lumped, width=1e-4, over="mean")
    wider = float(str(caught.value).split("accuracy=")[1].split()[0])
    assert truncated(lumped, width=wider, over="mean") is not None


def test_what_a_block_found_stays_while_its_room_is_used_again() -> None:
    ledger = simulate_hubs(people=1500, transfers=4)
    chain = absorbing_chain(transaction_graph(ledger, time="temporal"))
    query = asked_of(chain, np.arange(len(chain)))
    columns = columns_of(query, NONE)
    work = ListWork.of(
        query,
        columns,
        births=births_of(columns),
        block_of=blocks_of(len(columns), 3),
        blocks=3,
        minimum=np.full(len(query.moves), 0.001),
        draws=4,
    )
    room = work.room()
    found = [work.solve(block, room) for block in (0, 1, 2, 1)]
    # More than a room begins with, so that it grew.
    assert max(len(part.rows) for part in found) > 1024
    assert max(len(part.dropping) for part in found) > 1024
    for block, part in zip((0, 1, 2, 1), found, strict=True):
        alone = work.solve(block)
        for one, other in zip(part[:8], alone[:8], strict=True):
            assert np.array_equal(np.asarray(one), np.asarray(other))


def test_over_is_worst_or_mean() -> None:
    chain = CHAINS["town"]
    with pytest.raises(UsageError, match="over is worst or mean"):
        sweep(chain, np.arange(3), over="median")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["town", "hubs", "transfers"])
def test_the_tail_sketch_errs_by_its_law(name: str) -> None:
    # Estimates of sum phi(r) have a standard error of 2.50 m / sqrt(k); tails that meet heads
    # again are taken for apart, so the truth is the mean over seeds, not the exact score.
    query = asked_of(CHAINS[name])
    draws, seeds = 16, 60
    runs = [swept(query, minimum=0.02, draws=draws, seed=s) for s in range(seeds)]
    tails = np.array([r.sums.tail for r in runs])
    missing, above = runs[0].sums.missing, runs[0].sums.above
    some = missing > 0.01
    assert some.sum() > 20
    law = math.sqrt(3 / draws) / math.log(2) * missing[some]
    spread = tails[:, some].std(axis=0)
    assert 0.75 < float(np.median(spread / law)) < 1.25
    # Pieces that met again on the way lower it below `above`, never raise it beyond.
    mean, error = tails[:, some].mean(axis=0), 5 * law / math.sqrt(seeds)
    assert np.all(mean <= above[some] + error + 0.02 * law)


@pytest.mark.parametrize("name", ["town", "hubs", "transfers"])
def test_the_tail_sketch_is_closer_than_either_bound(name: str) -> None:
    chain = CHAINS[name]
    exact = coinhaze.score(chain)
    question = Truncation.of(folded_of(chain), over="worst")
    scores = question.attempt(0.01).scores
    assert Widths.of(scores).mean > 0.01
    error = np.abs(scores.bits - exact.bits).mean()
    assert error < 0.5 * np.abs(scores.bits_low - exact.bits).mean()
    assert error < np.abs(scores.bits_high - exact.bits).mean()


def test_a_tail_takes_no_more_draws_than_a_tile() -> None:
    with pytest.raises(UsageError, match="up to 64 draws, not 65"):
        swept(asked_of(CHAINS["town"]), draws=65)


def test_the_same_seed_gives_the_same_bits() -> None:
    question = Truncation.of(folded_of(CHAINS["hubs"]), over="mean")
    one, again, other = (question.attempt(0.1, seed=s).scores.bits for s in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("name", ["town", "hubs", "transfers"])
def test_the_cost_of_an_exact_sweep_is_known_beforehand(name: str) -> None:
    query = asked_of(CHAINS[name])
    columns = columns_of(query, NONE)
    cost, found = sweep_cost(query, columns), swept(query)
    assert 0.5 < cost.entries / found.entries < 2
    assert 0.5 < cost.alive / found.peak < 2


def test_blocks_fit_their_memory() -> None:
    cost = SweepCost(entries=1e9, alive=1e9)
    assert cost.blocks * thresholds.BLOCK_MEMORY >= 2e9 * thresholds.LIST_ENTRY_BYTES
    assert SweepCost(1e3, 1e3).blocks == thresholds.MIN_LIST_BLOCKS
