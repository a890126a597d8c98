"""The schedule of a GPU, run here by its twin; on a GPU where there is one (`make test-gpu`)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import coinhaze
from coinhaze import absorbing_chain, transaction_graph
from coinhaze.amounts import Floats, Ints
from coinhaze.errors import ResourceError, UsageError
from coinhaze.measures.intervals import surprise
from coinhaze.simulate import simulate_week
from coinhaze.solve.exact.engines import score_exactly
from coinhaze.solve.exact.fine import exact_moves, fine
from coinhaze.solve.exact.stream import Tiles, stream_sums
from coinhaze.solve.exact.stream_kernels import WIDTH
from coinhaze.solve.gpu import backend, device
from coinhaze.solve.gpu.backend import TileWorkers, schedule_of
from coinhaze.solve.gpu.schedule import Schedule, can_schedule
from coinhaze.solve.gpu.schedule_kernels import BACK, CARRY, READ
from coinhaze.solve.planner import thresholds
from coinhaze.solve.pool import Budget, register_backend
from coinhaze.solve.structure.structure import Structure
from solve.dense import absorption
from solve.economies import random_transfers

TILES = ("entropy", "mass", "prior", "top", "top_column", "elsewhere")


class TwinDevice:
    """What `DeviceTiles` does, by the twin of its kernels."""

    def __init__(
        self,
        schedule: Schedule,
        law: device.Law,
        *,
        maximum: int,
        weigh: bool,
        threads: int | None = None,
    ) -> None:
        self.schedule, self.law = schedule, law
        self.at_once = min(maximum, self.limit)
        self.total = np.zeros((6, schedule.rows))
        self.total[4] = -1

    limit = 5

    def run(self, first: int, tiles: int) -> None:
        assert 1 <= tiles <= self.at_once
        starts = range(first, first + tiles * WIDTH, WIDTH)
        self.solved = [self.schedule.run_tile(start) for start in starts]

    def add(self, first: int, begin: int, end: int) -> None:
        law = self.law
        assert law.prior_top is not None
        assert law.prior_bits is not None
        for tile in range(begin, end):
            start = first + tile * WIDTH
            columns = slice(start, min(start + WIDTH, len(law.inner)))
            rows, found, _ = self.solved[tile]
            p = rows[:, : columns.stop - start] * found[:, None]
            tops = p * law.prior_top[columns]
            best = tops.max(axis=1)
            better = best > self.total[3]
            self.total[3, better] = best[better]
            self.total[4, better] = start + tops.argmax(axis=1)[better]
            if columns.start <= law.elsewhere < columns.stop:
                self.total[5] += p[:, law.elsewhere - start]
                p[:, law.elsewhere - start] = 0.0
            self.total[0] += (surprise(p) + p * law.inner[columns]).sum(axis=1)
            self.total[1] += p.sum(axis=1)
            self.total[2] += p @ law.prior_bits[columns]

    def weighed(self, tiles: int) -> Floats:
        return np.concatenate([weighed for _, _, weighed in self.solved])

    def take_totals(self) -> tuple[Floats | Ints, ...]:
        *found, column, elsewhere = self.total.copy()
        self.total[:] = 0.0
        self.total[4] = -1
        return (*found, column.astype(np.int64), elsewhere)


@contextmanager
def open_twin(work: Any, pieces: int, budget: Budget) -> Iterator[Any]:
    """A backend as the GPU's, on the twin."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend, "DeviceTiles", TwinDevice)
        yield TileWorkers(work)


register_backend("twin", open_twin)

CHAINS: dict[str, tuple[str, float, dict[str, Any]]] = {
    "coins": ("bitcoin-week", 0.0004, {}),
    "addresses": ("bitcoin-week", 0.002, {"view": "address"}),
    "accounts": ("dai-week", 0.05, {"time": "stationary"}),
    "snapshots": ("dai-week", 0.01, {"time": "temporal"}),
    "pools": ("zcash-week", 0.005, {}),
}


@pytest.fixture(scope="module", params=CHAINS)
def chain(request: pytest.FixtureRequest) -> coinhaze.AbsorbingChain:
    week, size, settings = CHAINS[request.param]
    return absorbing_chain(transaction_graph(simulate_week(week, size=size), **settings))


def tiles_of(chain: coinhaze.AbsorbingChain, *, carry: bool = False) -> Tiles:
    lumped = Structure(chain).lump(np.flatnonzero(chain.graph.sinks), np.zeros(0))
    query, columns = lumped.query, lumped.columns
    if carry:
        exact = exact_moves(query.chain, query.reduced)
        assert exact is not None
        query = fine(query, columns, exact, carry=True).query
    return Tiles.of(query, columns, np.zeros(0))[0]


def test_the_twin_of_the_kernels_gives_the_rows_of_b(chain: coinhaze.AbsorbingChain) -> None:
    """Without lumping, columns are outcomes: rows are those of the dense product N R."""
    rows = np.flatnonzero(chain.graph.sinks)
    lumped = Structure(chain).lump(rows, np.zeros(0))
    query, columns = lumped.query, lumped.columns
    tiles, _ = Tiles.of(query, columns, np.zeros(0))
    schedule = schedule_of(tiles)
    whole = query.factor.solve
    for first in range(0, min(len(columns), 3 * WIDTH), WIDTH):
        found, any_of, _ = schedule.run_tile(first)
        for column in range(first, min(first + WIDTH, len(columns)), 7):
            ends = np.where(columns.of_state == column, query.reduced.own, 0.0)
            expected = whole(ends)[query.scored]
            got = found[:, column - first] * any_of
            assert np.abs(got - expected).max() < 1e-13


def test_rows_of_the_dense_product_where_nothing_is_lumped() -> None:
    ledger = coinhaze.AccountLedger.from_transfers(
        [("a", "b", 3), ("b", "c", 2), ("c", "b", 1), ("d", "c", 5), ("c", "e", 4), ("b", "e", 1)]
    )
    chain = absorbing_chain(transaction_graph(ledger))
    rows = np.flatnonzero(chain.graph.sinks)
    b, _ = absorption(chain, np.ones(len(chain), dtype=np.bool_))
    scores = coinhaze.Session(chain, backend="twin")
    exact = score_exactly(chain, rows, budget=Budget(backend="twin"))
    expected = surprise(b[rows]).sum(axis=1)
    assert np.allclose(exact.bits, expected, atol=1e-12)
    assert np.allclose(coinhaze.score(scores).bits, expected, atol=1e-12)


def test_slots_are_read_only_while_they_hold_the_row(chain: coinhaze.AbsorbingChain) -> None:
    """A row written to a slot is not overwritten before all who read it have done so."""
    carries = [False, True] if not tiles_of(chain).factor.cores else [False]
    for carry in carries:
        tiles = tiles_of(chain, carry=carry)
        schedule = schedule_of(tiles)
        op, entries = schedule.operations, schedule.entries
        level = np.repeat(np.arange(len(schedule.level_start) - 1), np.diff(schedule.level_start))
        written = np.full(schedule.slots, -1)  # the level that wrote each slot last
        cores = {
            slot
            for core in schedule.cores
            for slot in range(core.slot, core.slot + len(core.inverse))
        }
        for start, end in zip(schedule.level_start[:-1], schedule.level_start[1:], strict=True):
            for k in range(start, end):
                count, flags = op["counted"][k] >> 3, op["counted"][k] & 7
                read = entries["slot"][op["begin"][k] : op["begin"][k] + count].tolist()
                if flags & (BACK | READ):
                    read.append(op["slot"][k])
                for slot in read:
                    assert 0 <= written[slot] < level[k]
            for k in range(start, end):
                if op["slot"][k] >= 0 and not op["counted"][k] & (BACK | READ):
                    assert op["slot"][k] not in cores or written[op["slot"][k]] < 0
                    written[op["slot"][k]] = level[k]
        scored = op["score"][op["score"] >= 0]
        assert sorted(scored.tolist()) == list(range(schedule.rows))
        assert schedule.slots <= tiles.factor.inner


def test_chains_with_cycles_have_cores_here(chain: coinhaze.AbsorbingChain) -> None:
    tiles = tiles_of(chain)
    assert bool(schedule_of(tiles).cores) == bool(len(tiles.factor.upper_at))


def test_slots_are_used_again() -> None:
    week = simulate_week("dai-week", size=0.05)
    tiles = tiles_of(absorbing_chain(transaction_graph(week, time="temporal")))
    assert schedule_of(tiles).slots < tiles.factor.inner / 3


def test_the_backend_gives_the_sums_of_threads(chain: coinhaze.AbsorbingChain) -> None:
    lumped = Structure(chain).lump(np.flatnonzero(chain.graph.sinks), np.zeros(0))
    given: Any = (lumped.query, lumped.columns, np.zeros(0))
    seen: list[float] = []
    threads, weights = stream_sums(*given, budget=Budget(), progress=lambda share: None)
    twin, weighed = stream_sums(*given, budget=Budget(backend="twin"), progress=seen.append)
    for name in TILES:
        assert np.abs(getattr(threads, name) - getattr(twin, name)).max() < 1e-12, name
    assert np.allclose(weights, weighed, rtol=1e-12, atol=0)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_how_many_tiles_run_at_once_changes_no_bit(
    chain: coinhaze.AbsorbingChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    lumped = Structure(chain).lump(np.flatnonzero(chain.graph.sinks), np.zeros(0))
    given: Any = (lumped.query, lumped.columns, np.zeros(0))
    monkeypatch.setattr(backend, "MIN_TILES", 3)  # so that there are several parts
    found = []
    for limit in (1, 2, 7, 1000):
        monkeypatch.setattr(TwinDevice, "limit", limit)
        sums, weights = stream_sums(*given, budget=Budget(backend="twin"), progress=lambda _: None)
        found.append([getattr(sums, name).tobytes() for name in TILES] + [weights.tobytes()])
    assert all(other == found[0] for other in found)


@pytest.mark.parametrize(
    ("tiles", "fit", "level", "threads", "at_once"),
    [
        (1205, 3000, 30.0, 256, 1205),  # all fit: one launch, and levels have few operations
        (640, 3000, 9000.0, 512, 640),  # ... or many
        (400, 3000, 30.0, 512, 400),  # too few tiles for smaller groups of threads
        (11738, 311, 30.0, 512, 264),  # too little memory for them; no tile runs alone at the end
        (11738, 1500, 30.0, 256, 1056),
        (11738, 700, 9000.0, 512, 528),
        (11738, 100, 30.0, 512, 100),
        (3, 0, 30.0, 512, 0),
    ],
)
def test_how_many_tiles_and_threads_are_launched(
    tiles: int, fit: int, level: float, threads: int, at_once: int
) -> None:
    assert device.Launch.of(tiles, fit, 132, level) == (threads, at_once)
    for given in (256, 512):
        assert device.Launch.of(tiles, fit, 132, level, given).threads == given


@pytest.mark.parametrize("settings", [{}, {"listed": ["a0", "a3"]}])
def test_scores_of_the_backend_lie_in_the_intervals_of_threads(settings: dict[str, Any]) -> None:
    graph = transaction_graph(random_transfers(300, 3000, 7))
    chain = absorbing_chain(graph, **settings)
    rows = np.flatnonzero(graph.sinks)
    threads = score_exactly(chain, rows)
    twin = score_exactly(chain, rows, budget=Budget(backend="twin"))
    assert np.all((threads.bits_low <= twin.bits_high) & (twin.bits_low <= threads.bits_high))
    assert np.abs(threads.bits - twin.bits).max() < 1e-12
    assert np.array_equal(threads.top, twin.top)


def test_chains_that_carry_what_sums_lose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "MIN_CARRIED_CHAIN", 8)
    week = simulate_week("dai-week", size=0.02)
    chain = absorbing_chain(transaction_graph(week, time="temporal"))
    tiles = tiles_of(chain, carry=True)
    schedule = schedule_of(tiles)
    assert schedule.chains > 0
    assert np.any(schedule.operations["counted"] & CARRY)
    part = tiles.solve(range(WIDTH), tiles.room())
    found, any_of, _ = schedule.run_tile(0)
    mass = (found * any_of[:, None]).sum(axis=1)
    assert np.abs(mass - part.sums.mass).max() < 1e-15


def test_a_core_solved_by_sweeps_is_left_to_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "MAX_DENSE_CORE", 10)
    tiles = tiles_of(absorbing_chain(transaction_graph(random_transfers(300, 3000, 7))))
    assert not can_schedule(tiles.factor)
    with pytest.raises(ResourceError, match="leave --device at cpu"):
        schedule_of(tiles)


def test_without_cupy_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    device.cupy.cache_clear()
    with pytest.raises(UsageError, match=r"coinhaze\[gpu\]") as refused:
        device.cupy()
    assert "\n" not in str(refused.value)
    device.cupy.cache_clear()


class NoGpu:
    """CuPy on a machine without a GPU or with a driver it cannot use."""

    class cuda:
        class runtime:
            class CUDARuntimeError(RuntimeError):
                pass

            @staticmethod
            def getDeviceCount() -> int:
                raise NoGpu.cuda.runtime.CUDARuntimeError(
                    "cudaErrorInsufficientDriver: CUDA driver version is insufficient"
                )


def test_a_driver_that_does_not_do_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", NoGpu)
    device.cupy.cache_clear()
    with pytest.raises(ResourceError, match=r"InsufficientDriver.*leave --device at cpu"):
        device.cupy()
    device.cupy.cache_clear()


@pytest.mark.gpu
def test_the_gpu_gives_the_sums_of_its_twin(chain: coinhaze.AbsorbingChain) -> None:
    lumped = Structure(chain).lump(np.flatnonzero(chain.graph.sinks), np.zeros(0))
    given: Any = (lumped.query, lumped.columns, np.zeros(0))
    gpu, weights = stream_sums(*given, budget=Budget(backend="gpu"), progress=lambda _: None)
    twin, weighed = stream_sums(*given, budget=Budget(backend="twin"), progress=lambda _: None)
    for name in TILES:
        assert np.abs(getattr(gpu, name) - getattr(twin, name)).max() < 1e-12, name
    assert np.allclose(weights, weighed, rtol=1e-12, atol=0)


@pytest.mark.parametrize("given", ["gpu", "auto"])
def test_a_device_that_is_not_there(given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    device.cupy.cache_clear()
    ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    expected = coinhaze.score(ledger)
    if given == "gpu":
        with pytest.raises(UsageError, match=r"coinhaze\[gpu\]"):
            coinhaze.score(ledger, device=given)
    else:
        found = coinhaze.score(ledger, device=given)
        assert (found.bits.tobytes(), found.method) == (expected.bits.tobytes(), expected.method)
    device.cupy.cache_clear()


def test_an_unknown_device_is_refused() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    unknown: Any = "tpu"
    with pytest.raises(UsageError, match="device is cpu, gpu or auto, not 'tpu'"):
        coinhaze.score(ledger, device=unknown)


@pytest.mark.gpu
def test_scores_of_the_gpu_name_it_and_lie_in_the_intervals_of_the_cpu() -> None:
    ledger = random_transfers(300, 3000, 7)
    cpu, gpu = coinhaze.score(ledger), coinhaze.score(ledger, device="gpu")
    assert np.all((cpu.bits_low <= gpu.bits_high) & (gpu.bits_low <= cpu.bits_high))
    assert "CuPy" in gpu.method
    drawn = coinhaze.score(ledger, accuracy="preview", seed=3, device="gpu")
    assert np.abs(drawn.bits - coinhaze.score(ledger, accuracy="preview", seed=3).bits).max() < 1e-4
