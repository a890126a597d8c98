from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coinhaze
from coinhaze import AbsorbingChain, Scores, absorbing_chain, transaction_graph
from coinhaze.amounts import Floats
from coinhaze.errors import AccuracyError, ResourceError
from coinhaze.simulate import simulate_hubs, simulate_town
from coinhaze.solve.certify import certified
from coinhaze.solve.exact.stream import stream_sums
from coinhaze.solve.pool.limits import UNLIMITED, Budget
from coinhaze.solve.progress import silent
from coinhaze.solve.query import Query
from coinhaze.solve.structure.columns import Columns, columns_of
from coinhaze.solve.structure.counting import Counting, possible_sources
from coinhaze.solve.structure.lump import lump
from coinhaze.solve.truncated.lists import ListWork, births_of, list_sums
from coinhaze.solve.truncated.truncate import truncated
from solve.economies import random_transfers
from vectors import coins

QUIET: dict[str, Any] = {"budget": Budget(threads=2), "progress": silent}


def temporal(seed: int, accounts: int = 60, transfers: int = 400) -> AbsorbingChain:
    ledger = random_transfers(accounts, transfers, seed)
    return absorbing_chain(transaction_graph(ledger, time="temporal"))


def plain(query: Query, orders: Any = ()) -> Columns:
    return columns_of(query, np.array(orders, dtype=float))


def bounds(query: Query, minimum: float, width: float = np.inf) -> Scores:
    columns = plain(query)
    sums, _ = list_sums(query, columns, np.zeros(0), minimum=minimum, **QUIET)
    counts = sources_of(query)
    return certified(query, columns, sums, counts, method="", width=width, renyi=(), weights=None)


def sources_of(query: Query) -> Floats:
    columns = plain(query)
    counting = Counting.of(query.reduced, columns.of_state, columns.priors.count)
    return possible_sources(query, counting)[0]


def asked_of(chain: AbsorbingChain) -> Query:
    return Query.of(chain, np.flatnonzero(chain.graph.sinks))


@pytest.mark.parametrize("seed", range(5))
def test_lists_and_tiles_give_the_same_sums(seed: int) -> None:
    query = asked_of(temporal(seed))
    orders = np.array([0.5, 2.0])
    tiles, tile_weights = stream_sums(
        query, plain(query, orders), orders, budget=UNLIMITED, progress=silent
    )
    for blocks in (1, 2, 7):
        lists, weights = list_sums(query, plain(query, orders), orders, blocks=blocks, **QUIET)
        for a, b in zip(tiles.arrays(), lists.arrays(), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(tile_weights, weights, rtol=1e-12)


def test_blocks_and_threads_change_no_bit_beyond_rounding() -> None:
    query = asked_of(absorbing_chain(transaction_graph(simulate_town(transactions=400))))
    none = np.zeros(0)
    one, two = (
        list_sums(query, plain(query), none, blocks=4, budget=Budget(threads=n), progress=silent)[0]
        for n in (1, 2)
    )
    for a, b in zip(one.arrays(), two.arrays(), strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("minimum", [0.3, 0.05, 1e-2, 1e-3, 1e-5])
def test_what_is_dropped_is_bounded_from_both_sides(seed: int, minimum: float) -> None:
    chain = temporal(seed)
    query = asked_of(chain)
    exact = coinhaze.score(chain)
    sums, _ = list_sums(query, plain(query), np.zeros(0), minimum=minimum, **QUIET)
    counts = sources_of(query)
    got = certified(
        query, plain(query), sums, counts, method="", width=np.inf, renyi=(), weights=None
    )
    assert np.all(got.bits_low <= exact.bits_high)
    assert np.all(got.bits_high >= exact.bits_low)
    assert np.all(got.mass <= 1 + 1e-12)
    if minimum >= 0.05:
        assert (1 - got.mass).max() > 0.01


def test_bounds_hold_with_a_history_too() -> None:
    values = list(range(1, 50))
    chain = absorbing_chain(transaction_graph(coins("pools")), history={"sapling": values})
    exact = coinhaze.score(chain)
    for minimum in (0.5, 0.25, 0.1):
        query = asked_of(chain)
        sums, _ = list_sums(query, plain(query), np.zeros(0), minimum=minimum, **QUIET)
        counts = sources_of(query)
        got = certified(
            query, plain(query), sums, counts, method="", width=np.inf, renyi=(), weights=None
        )
        assert np.all(got.bits_low <= exact.bits_high)
        assert np.all(got.bits_high >= exact.bits_low)


def test_an_requested_width_is_retained_by_every_row() -> None:
    ledger = simulate_hubs(people=3000, seed=1, transfers=4)
    chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger, time="temporal"))
    exact = coinhaze.score(chain)
    rough = truncated(lump(Query.of(chain, exact.nodes), np.zeros(0)), width=0.05)
    assert rough is not None
    assert rough.width <= 0.05
    assert np.all(rough.bits_low <= exact.bits_high)
    assert np.all(rough.bits_high >= exact.bits_low)
    assert np.abs(rough.bits - exact.bits).mean() < 0.01


@pytest.mark.parametrize("seed", range(3))
def test_each_list_is_last_read_where_counting_down_says_so(seed: int) -> None:
    query = asked_of(temporal(seed))
    columns = plain(query)
    work = ListWork.of(query, columns, births=births_of(columns))
    left = np.bincount(query.moves.indices, minlength=len(query.moves))
    assert np.array_equal(work.read, left > 0)
    for move, node in enumerate(query.moves.indices):
        assert work.ends[move] == (left[node] == 1)
        left[node] -= 1
    assert not left.any()


def test_a_worker_sweeps_a_block_again_as_it_did_in_a_room_of_its_own() -> None:
    query = asked_of(temporal(1))
    columns = plain(query)
    blocks = np.arange(len(columns), dtype=np.int16) % 3
    settings: dict[str, Any] = {"minimum": np.full(len(query.moves), 0.02), "draws": 16}
    work = ListWork.of(
        query, columns, births=births_of(columns), block_of=blocks, blocks=3, **settings
    )
    room = work.room()
    for block in (0, 1, 2, 1, 0):
        again, alone = work.solve(block, room), work.solve(block)
        for one, other in zip(again[:8], alone[:8], strict=True):
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def test_lists_that_outgrow_their_memory_are_refused() -> None:
    query = asked_of(temporal(1))
    with pytest.raises(ResourceError, match="passed 1000 bytes"):
        list_sums(query, plain(query), np.zeros(0), memory=1000, **QUIET)


def test_a_probability_too_small_for_floats_is_dropped_once() -> None:
    big = 2**200
    transfers = [("first", "n0", 1), ("second", "m", 1)]
    for k in range(8):
        transfers += [(f"s{k}", f"n{k}", big), (f"n{k}", f"n{k + 1}", 2)]
        transfers += [(f"n{k}", f"o{k}", 1), (f"o{k}", f"n{k + 1}", 1)]
    chain = absorbing_chain(
        transaction_graph(coinhaze.AccountLedger.from_transfers(transfers), time="temporal")
    )
    query = asked_of(chain)
    lists, _ = list_sums(query, plain(query), np.zeros(0), **QUIET)
    tiles, _ = stream_sums(query, plain(query), np.zeros(0), budget=UNLIMITED, progress=silent)
    np.testing.assert_allclose(lists.entropy, tiles.entropy, atol=1e-13)
    np.testing.assert_allclose(lists.mass, 1, atol=1e-12)


def test_too_wide_an_interval_is_refused() -> None:
    query = asked_of(temporal(2))
    with pytest.raises(AccuracyError, match="proven interval"):
        bounds(query, 0.2, width=1e-3)


@pytest.mark.parametrize("time", ["stationary", "temporal"])
@pytest.mark.parametrize("seed", range(4))
def test_lumping_columns_changes_no_answer(time: Any, seed: int) -> None:
    ledger = simulate_hubs(people=400, seed=seed, transfers=1.6)
    query = asked_of(absorbing_chain(transaction_graph(ledger, time=time)))
    orders = np.array([0.5, 2.0])
    counts = sources_of(query)
    answers = []
    for folding in (True, False):
        columns = columns_of(query, orders, lump=folding)
        sums, weights = stream_sums(query, columns, orders, budget=UNLIMITED, progress=silent)
        answers.append(
            certified(
                query,
                columns,
                sums,
                counts,
                method="",
                width=1e-9,
                renyi=(0.5, 2.0, np.inf),
                weights=weights,
            )
        )
    lumped, plain_answer = answers
    np.testing.assert_allclose(lumped.bits, plain_answer.bits, atol=1e-12)
    np.testing.assert_allclose(lumped.top_probability, plain_answer.top_probability, atol=1e-12)
    for order in (0.5, 2.0, np.inf):
        np.testing.assert_allclose(lumped.renyi[order], plain_answer.renyi[order], atol=1e-10)
    assert len(columns_of(query, orders)) < 0.9 * len(columns_of(query, orders, lump=False))
