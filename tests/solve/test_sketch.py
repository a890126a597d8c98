from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

import coinhaze
from coinhaze import absorbing_chain, transaction_graph
from coinhaze.errors import UsageError
from coinhaze.ledger.text import text_hashes
from coinhaze.simulate import simulate_hubs, simulate_week
from coinhaze.solve.planner import thresholds
from coinhaze.solve.pool.limits import Budget
from coinhaze.solve.query import Query
from coinhaze.solve.sketch.kernels import fill_draws
from coinhaze.solve.sketch.sketch import SPREAD, sketch
from coinhaze.solve.structure.lump import lump
from coinhaze.solve.structure.structure import Structure
from solve.economies import random_transfers
from vectors import coins

ZERO = "0x0000000000000000000000000000000000000000"
LONG = pytest.mark.long


def slow_hash(name: str) -> int:
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = (h ^ byte) * 0x100000001B3 % 2**64
    return h


def mix(value: int) -> int:
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB % 2**64
    return value ^ (value >> 31)


def draw(source: int, seed: int, k: int) -> float:
    """Draw number k of a source, by the formula of the law."""
    golden = 0x9E3779B97F4A7C15
    state = mix(source ^ mix((seed * golden + k) % 2**64))
    v = ((state >> 12) + 0.5) * 2.0**-52
    e = -math.log(((mix((state + golden) % 2**64) >> 12) + 0.5) * 2.0**-52)
    angle = math.pi * (0.5 - v)
    return math.tan(angle) * math.pi * v + math.log(e * math.cos(angle) / (math.pi * v))


def draws(source: int, seed: int, first: int = 0) -> npt.NDArray[np.float64]:
    row = np.zeros(64)
    fill_draws(np.uint64(source), seed, first, 1.0, 0.0, row, True)
    return row


def test_draws_are_those_of_the_formula() -> None:
    for name in ("a", "tx:0", "x" * 50):
        expected = [draw(slow_hash(name), 5, k) for k in range(128, 192)]
        np.testing.assert_allclose(draws(slow_hash(name), 5, 128), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_a_short_row_has_the_first_draws_of_a_whole_one(kind: type[np.floating[Any]]) -> None:
    whole, few = np.zeros(64, kind), np.zeros(16, kind)
    for row in (whole, few):
        fill_draws(np.uint64(slow_hash("a")), 5, 0, 1.0, 0.25, row, True)
    assert few.tobytes() == whole[:16].tobytes()


def test_names_are_hashed_byte_by_byte_wherever_they_stand() -> None:
    names = ["", "a", "tx:0", "zażółć", "a" * 100]
    hashes = text_hashes(pa.array(["skipped", *names]).slice(1))
    assert [int(h) for h in hashes] == [slow_hash(n) for n in names]


def test_draws_follow_the_law_that_makes_the_sketch_work() -> None:
    x = np.concatenate([draws(slow_hash(f"s{k}"), 3) for k in range(200_000 // 64)])
    for c in (0.25, 0.5, 1.0):
        assert np.exp(c * x).mean() == pytest.approx(c**c, abs=5 * np.exp(c * x).std() / 447)


def test_propagated_draws_are_b_times_draws() -> None:
    chain = absorbing_chain(transaction_graph(random_transfers(40, 150, 1)))
    rows = np.flatnonzero(chain.graph.sinks)
    b = np.linalg.inv(np.eye(len(chain)) - chain.Q.toarray())[rows] @ chain.R.toarray()
    source = text_hashes(chain.outcomes.cast(pa.string()))
    x = np.array([[draw(int(s), 9, k) for k in range(64)] for s in source])
    expected = -np.log(np.exp(b @ x).mean(axis=1)) - 1.5 / 64
    plain = lump(Query.of(chain, rows), np.zeros(0), merge=False)
    got = sketch(chain, rows, draws=64, seed=9, lumped=plain)
    maximum = math.log2(len(chain.outcomes))
    # Tiles of draws are kept in single precision, far below the standard error.
    np.testing.assert_allclose(got.bits, np.clip(expected / math.log(2), 0, maximum), atol=1e-5)


def test_errors_follow_two_and_a_half_over_the_root_of_k() -> None:
    chain = absorbing_chain(transaction_graph(simulate_hubs(people=300, seed=2, transfers=4)))
    exact = coinhaze.score(chain)
    rows = np.array([exact.nodes[exact.order()[len(exact) // 4]]])
    truth = coinhaze.score(chain, nodes=chain.graph.names.of(rows).to_pylist()).bits[0]
    lumped = Structure(chain).lump(rows, np.zeros(0), missing=thresholds.PREVIEW_MISSING)
    for draws in (64, 256):
        errors = [
            sketch(chain, rows, draws=draws, seed=s, lumped=lumped).bits[0] - truth
            for s in range(300)
        ]
        spread = SPREAD / math.sqrt(draws)
        assert np.std(errors) == pytest.approx(spread, rel=0.25)
        assert abs(np.mean(errors)) < 4 * spread / math.sqrt(300) + 0.1 * spread
    assert pytest.approx(2.50, abs=0.005) == SPREAD


def test_threads_change_no_bit_of_the_sketch() -> None:
    chain = absorbing_chain(transaction_graph(random_transfers(300, 1500, 4)))
    rows = np.flatnonzero(chain.graph.sinks)
    one, two = (sketch(chain, rows, budget=Budget(threads=n)).bits for n in (1, 2))
    assert np.array_equal(one, two)


def test_a_history_shifts_the_draws_by_its_entropy() -> None:
    values = list(range(1, 200))
    chain = absorbing_chain(transaction_graph(coins("pools")), history={"sapling": values})
    exact = coinhaze.score(chain, nodes=["t2:0"])
    rows = exact.nodes
    got = np.mean([sketch(chain, rows, draws=256, seed=s).bits[0] for s in range(100)])
    assert got == pytest.approx(exact.bits[0], abs=4 * SPREAD / 160)


def test_preview_states_its_standard_error_and_an_honest_interval() -> None:
    ledger = simulate_hubs(people=2000, seed=1, transfers=6)
    exact = coinhaze.score(ledger)
    preview = coinhaze.score(ledger, accuracy="preview", seed=0)
    assert preview.bits_error is not None
    assert preview.bits_error.max() <= 0.16
    assert np.abs(preview.bits - exact.bits).mean() < 0.16
    assert np.all(preview.bits_low <= exact.bits)
    assert np.all(preview.bits_high >= exact.bits)
    table = preview.to_arrow()
    assert "bits_error" in table.column_names
    assert table["sources"].null_count == len(table)
    np.testing.assert_allclose(preview.steps, exact.steps, rtol=1e-9)


def test_nodes_without_an_answer_stay_null_in_a_preview() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "b", 5), ("b", "a", 5), ("s", "t", 3)])
    bits = coinhaze.score(ledger, nodes="all", accuracy="preview", seed=0).bits
    assert np.isnan(bits).tolist() == [True, True, False, False]


def test_a_preview_of_a_list_and_odd_numbers_of_draws_are_refused() -> None:
    chain = absorbing_chain(transaction_graph(random_transfers(10, 30, 1)))
    with pytest.raises(UsageError, match="multiple of 64"):
        sketch(chain, np.array([0]), draws=100)
    with pytest.raises(UsageError, match="exactly"):
        coinhaze.score(random_transfers(10, 30, 1), listed=["a1"], accuracy="preview")


def test_more_draws_are_taken_until_the_mean_is_known_as_well_as_requested() -> None:
    chain = absorbing_chain(transaction_graph(simulate_week("dai-week", size=0.02)))
    rows = np.flatnonzero(chain.graph.sinks)
    found = sketch(chain, rows, mean_error=0.04)
    assert found.mean_error is not None
    assert found.draw_means is not None
    assert found.mean_error <= 0.04
    assert len(found.draw_means) >= 16
    error = np.std(found.draw_means, ddof=1) / math.sqrt(len(found.draw_means))
    assert found.mean_error == pytest.approx(error)
    k = 64 * len(found.draw_means)
    assert found.method == f"sketch (k={k}, seed 0)"
    # They are the draws that one call for all of them takes.
    assert np.array_equal(found.bits, sketch(chain, rows, draws=k).bits)
    one = sketch(chain, rows, mean_error=0.04, budget=Budget(threads=1))
    assert np.array_equal(found.bits, one.bits)


def test_the_mean_that_draws_tell_of_is_that_of_the_summary() -> None:
    ledger = coinhaze.AccountLedger.from_transfers(
        [("a", "m", 1), ("b", "m", 1), ("m", ZERO, 1), ("m", "c", 1), ("d", "e", 1)]
    )
    preview = coinhaze.score(ledger, accuracy="preview", draws=64, seed=0)
    assert preview.draw_means is not None
    assert preview.draw_means[0] == pytest.approx(preview.summary().bits_mean)


def test_a_preview_tells_the_score_without_history_too() -> None:
    graph = transaction_graph(coins("pools"))
    chain = absorbing_chain(graph, history={"sapling": list(range(1, 200))})
    exact = coinhaze.score(chain)
    got = sketch(chain, exact.nodes, draws=64 * 200)
    assert got.bits_unmodified is not None
    assert exact.bits_unmodified is not None
    error = 5 * SPREAD / math.sqrt(64 * 200)
    np.testing.assert_allclose(got.bits_unmodified, exact.bits_unmodified, atol=error)
    np.testing.assert_allclose(
        got.bits - got.bits_unmodified, exact.bits - exact.bits_unmodified, atol=error
    )


def stated_and_true(size: float, seeds: int) -> tuple[npt.NDArray[np.float64], ...]:
    """Give stated errors of the mean of a dai-week, and true ones, over seeds."""
    chain = absorbing_chain(transaction_graph(simulate_week("dai-week", size=size)))
    rows = np.flatnonzero(chain.graph.sinks)
    lumped = lump(Query.of(chain, rows), np.zeros(0))
    truth = coinhaze.score(chain).summary().bits_mean
    stated, true = [], []
    for seed in range(seeds):
        found = sketch(chain, rows, seed=seed, mean_error=0.05, lumped=lumped)
        assert found.mean_error is not None
        stated.append(found.mean_error)
        true.append(found.summary().bits_mean - truth)
    return np.array(stated), np.array(true)


@pytest.mark.parametrize(("size", "seeds"), [(0.02, 60), pytest.param(1.0, 60, marks=LONG)])
def test_stated_and_true_errors_of_the_mean_agree_over_seeds(size: float, seeds: int) -> None:
    stated, true = stated_and_true(size, seeds)
    assert np.all(stated <= 0.05)
    spread = math.sqrt(float(np.mean(true**2)))
    expected = math.sqrt(float(np.mean(stated**2)))
    # A standard deviation measured over 60 seeds is right to a tenth.
    assert spread == pytest.approx(expected, rel=0.35)
    assert abs(true.mean()) < 4 * expected / math.sqrt(seeds)
    assert np.mean(np.abs(true) < 2 * stated) >= 0.85
