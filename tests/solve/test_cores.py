"""Threads and memory decide when blocks are swept and how many at once, and change no bit."""

from __future__ import annotations

import subprocess
import sys
import threading
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import coinhaze
from coinhaze import AbsorbingChain, Scores, absorbing_chain, transaction_graph
from coinhaze.amounts import Ints
from coinhaze.errors import ResourceError
from coinhaze.graph.build import building_bytes
from coinhaze.ledger import write_folder
from coinhaze.report import files
from coinhaze.report.files import write_scores
from coinhaze.simulate import simulate_hubs, simulate_town, simulate_week
from coinhaze.solve import certify
from coinhaze.solve.planner import thresholds
from coinhaze.solve.pool import limits
from coinhaze.solve.pool.limits import Budget
from coinhaze.solve.structure import reduce, reduce_kernels
from coinhaze.solve.structure.reduce import reduce_chain
from coinhaze.solve.structure.structure import Structure
from coinhaze.solve.truncated import lists
from coinhaze.solve.truncated.lists import list_sums
from coinhaze.solve.truncated.topological_kernels import add_rows
from coinhaze.solve.truncated.truncate import Truncation
from coinhaze.working_folder import python_command, python_environment


@cache
def week() -> AbsorbingChain:
    return absorbing_chain(transaction_graph(simulate_week("bitcoin-week", size=0.01)))


def rows() -> Ints:
    return np.flatnonzero(week().graph.sinks)


def told(scores: Scores) -> bytes:
    return b"".join(v.tobytes() for v in (scores.bits, scores.bits_low, scores.bits_high))


def attempt(budget: Budget) -> Scores:
    question = Truncation.of(Structure(week()).lump(rows(), np.zeros(0)), over="mean")
    return question.attempt(1e-3, budget=budget).scores


def test_a_certified_sweep_is_the_same_for_any_threads_and_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_once: list[int] = []
    before = lists._sweep

    def sweep(work: Any, budget: Budget, progress: Any) -> Any:
        at_once.append(budget.threads or 0)
        return before(work, budget, progress)

    monkeypatch.setattr(lists, "_sweep", sweep)
    one = told(attempt(Budget(threads=1)))
    assert told(attempt(Budget(threads=2))) == one
    assert told(attempt(Budget(threads=7))) == one
    assert at_once == [1, 2, 7]
    # Enough for a few blocks at once, not for seven; what was tried in vain is tried again.
    monkeypatch.setattr(Budget, "room", lambda self, usual=0: 8 << 20)
    assert told(attempt(Budget(threads=7, memory=1))) == one
    assert at_once[3:] != [7]
    assert at_once[-1] < 7


def test_what_threads_share_out_is_what_one_does_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = coinhaze.score(week(), accuracy=0.1, over="mean", threads=1)
    whole = reduce_chain(week(), rows(), budget=Budget(threads=1))
    monkeypatch.setattr(reduce, "MIN_ROWS", 500)
    monkeypatch.setattr(certify, "PART", 1000)
    monkeypatch.setattr(lists, "MIN_ADDED", 100)
    adders: list[int] = []

    def counted(rows: Any, *given: Any) -> None:
        adders.append(len(rows))
        add_rows(rows, *given)

    monkeypatch.setattr(lists, "add_rows", counted)
    for threads in (1, 3, 5):
        shared = reduce_chain(week(), rows(), budget=Budget(threads=threads))
        assert len(shared) > 5 * 500
        for name in ("state", "extra_steps", "indptr", "indices", "data", "entry_error", "cost"):
            assert getattr(shared, name).tobytes() == getattr(whole, name).tobytes()
        adders.clear()
        found = coinhaze.score(week(), accuracy=0.1, over="mean", threads=threads)
        assert told(found) == told(alone)
        for name in ("steps", "mass", "top", "top_probability"):
            assert getattr(found, name).tobytes() == getattr(alone, name).tobytes()
        assert found.method == alone.method
        assert (len(adders) > 32) == (threads > 1)  # each block is added by several
    assert alone.method.startswith("sweep (dropping")


def test_a_row_adds_up_moves_to_one_state_however_long_it_is() -> None:
    """Short rows are looked through, long ones note where each state stands: the same sums."""
    rng = np.random.default_rng(5)
    states = 4 * reduce_kernels.SHORT_ROW
    lengths = rng.integers(1, 3 * reduce_kernels.SHORT_ROW, 60)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indices = rng.integers(0, 60, indptr[-1])
    data, error = rng.random(indptr[-1]), rng.integers(1, 9, indptr[-1]).astype(float)
    number, extra = rng.integers(0, states, 60), rng.integers(0, 3, 60).astype(float)
    some = np.sort(rng.choice(60, 40, replace=False))
    start = reduce_kernels.row_starts(indptr, some)
    to = np.empty(start[-1], dtype=np.int64)
    value, worst, cost = np.empty(start[-1]), np.empty(start[-1]), np.empty(40)
    reduce_kernels.add_moves(
        indptr, indices, data, error, some, number, extra, states, start, to, value, worst, cost
    )
    for row, node in enumerate(some.tolist()):
        sums: dict[int, tuple[float, float]] = {}
        steps = 1.0
        for e in range(indptr[node], indptr[node + 1]):
            state = int(number[indices[e]])
            steps += data[e] * extra[indices[e]]
            if state in sums:
                sums[state] = (sums[state][0] + data[e], max(sums[state][1], error[e]) + 1.0)
            else:
                sums[state] = (data[e], error[e])
        part = slice(start[row], start[row + 1])
        assert to[part].tolist() == list(sums)
        assert list(zip(value[part], worst[part], strict=True)) == list(sums.values())
        assert cost[row] == steps


def test_exact_lists_are_the_same_for_any_memory() -> None:
    chain = absorbing_chain(transaction_graph(simulate_town(transactions=400)))
    lumped = Structure(chain).lump(np.flatnonzero(chain.graph.sinks), np.zeros(0))
    settings: dict[str, Any] = {"blocks": 4, "progress": lambda share: None}
    found = [
        list_sums(
            lumped.query,
            lumped.columns,
            np.zeros(0),
            memory=memory,
            budget=Budget(threads=4),
            **settings,
        )[0]
        for memory in (None, 2_000_000, 600_000)
    ]
    for other in found[1:]:
        for a, b in zip(found[0].arrays(), other.arrays(), strict=True):
            assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("time", ["temporal", "stationary"])
def test_sources_are_counted_where_that_is_quick_or_requested(
    time: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = simulate_hubs(people=300, seed=1, transfers=2)
    quick = coinhaze.score(ledger, time=time)
    assert np.all(quick.sources >= 1)
    assert not [note for note in quick.notes if "possible sources" in note]
    monkeypatch.setattr(thresholds, "QUICK_WORDS", 0.0)
    bounded = coinhaze.score(ledger, time=time)
    assert np.all(np.isnan(bounded.sources))
    assert np.all(np.isnan(bounded.hartley))
    assert [note for note in bounded.notes if "count_sources" in note]
    assert bounded.to_arrow()["sources"].null_count == len(bounded)
    np.testing.assert_array_equal(bounded.effective_sources, quick.effective_sources)
    np.testing.assert_allclose(bounded.bits_high, quick.bits_high, atol=1e-9)
    for threads in (1, 3):
        asked = coinhaze.score(ledger, time=time, count_sources=True, threads=threads)
        assert asked.sources.tobytes() == quick.sources.tobytes()
        assert told(asked) == told(quick)
    # The entropy of order 0 is that number.
    of_order = coinhaze.score(ledger, time=time, renyi=(0,))
    np.testing.assert_allclose(of_order.renyi[0], quick.hartley)


def test_a_preview_counts_no_sources() -> None:
    with pytest.raises(coinhaze.errors.UsageError, match="no count of sources"):
        coinhaze.score(week(), accuracy="preview", count_sources=True)


def test_scores_are_written_the_same_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = coinhaze.score(simulate_town(transactions=60))
    write_scores(scores, tmp_path / "whole.csv", {})
    whole = (tmp_path / "whole.csv").read_bytes()
    assert whole.count(b"\n") == len(scores) + 1
    monkeypatch.setattr(files, "AT_ONCE", 7)
    monkeypatch.setattr(files, "TEXT_ROWS", 3)
    monkeypatch.setattr(files, "ROW_SECONDS", 1.0)  # worth all threads
    assert len(scores) > 7
    packed = set()
    for budget in (Budget(threads=1), Budget(threads=3), Budget(threads=3, memory=1)):
        write_scores(scores, tmp_path / "pieces.csv", {}, budget=budget)
        write_scores(scores, tmp_path / "pieces.parquet", {"a": 1}, budget=budget)
        assert whole == (tmp_path / "pieces.csv").read_bytes()
        table = pq.read_table(tmp_path / "pieces.parquet")
        assert table.replace_schema_metadata() == scores.to_arrow()
        assert b'"a": 1' in table.schema.metadata[b"coinhaze"]
        packed.add((tmp_path / "pieces.parquet").read_bytes())
    assert len(packed) == 1


def test_rows_are_made_by_all_threads_and_by_one_where_memory_is_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scores = coinhaze.score(simulate_town(transactions=60))
    monkeypatch.setattr(files, "AT_ONCE", 7)
    monkeypatch.setattr(files, "ROW_SECONDS", 1.0)
    work = files.RowWork(scores, as_text=True)
    by: list[set[int]] = []
    for budget in (Budget(threads=3), Budget(threads=3, memory=1)):
        seen: set[int] = set()
        by.append(seen)
        barrier = threading.Barrier(3 if budget.memory is None else 1)

        def solve(
            self: object,
            first: int,
            room: None = None,
            *,
            seen: set[int] = seen,
            barrier: threading.Barrier = barrier,
        ) -> int:
            seen.add(threading.get_ident())
            if first < 3 * 7:  # three threads wait here for each other
                barrier.wait(60)
            return first

        monkeypatch.setattr(files.RowWork, "solve", solve)
        with files.threads_for(work, budget) as pieces:
            assert list(pieces) == list(work.pieces)
    assert [len(seen) for seen in by] == [3, 1]


# The most memory is told by the process itself: what its parent can ask for includes the parent's.
RUN = """
import atexit, re, runpy, sys
status = "/proc/self/status"
told = lambda: re.search("VmHWM:[^0-9]*([0-9]+)", open(status).read())[1]
atexit.register(lambda: print("\\npeak", told()))
sys.argv = ["coinhaze", *sys.argv[1:]]
runpy.run_module("coinhaze", run_name="__main__")
"""


def peak_of(*given: str) -> tuple[int, int, str]:
    """Run the command; give its exit code, the most bytes it held, and what it said."""
    done = subprocess.run(
        python_command("-c", RUN, *given),
        capture_output=True,
        env=python_environment(),
        text=True,
        check=False,
    )
    said, _, peak = done.stdout.rpartition("peak ")
    return done.returncode, int(peak) * 1024, said + done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="a process tells its peak on Linux only")
@pytest.mark.parametrize(
    "close", [(620 << 20,), pytest.param((580 << 20, 660 << 20), marks=pytest.mark.long)]
)
def test_memory_bounds_the_whole_process(tmp_path: Path, close: tuple[int, ...]) -> None:
    ledger = simulate_week("bitcoin-week", size=0.1)
    week = write_folder(ledger, tmp_path / "week")
    asked = ("score", str(week), "--accuracy", "0.1", "--over", "mean", "--threads", "2")
    where = ("-o", str(tmp_path / "out.csv"))
    code, peak, said = peak_of(*asked, *where)
    assert code == 0, said
    free = (tmp_path / "out.csv").read_bytes()
    limit = 700 << 20
    code, peak, said = peak_of(*asked, *where, "--memory", str(limit))
    assert code == 0, said
    assert peak <= limit
    assert (tmp_path / "out.csv").read_bytes() == free
    # What would pass the limit is refused before it begins, in one line that says what it takes.
    for limit, what in ((300 << 20, "the ledger"), (540 << 20, "building the graph")):
        code, peak, said = peak_of(*asked, *where, "--memory", str(limit))
        assert code == 6
        assert f"{what} would take" in said
        assert peak <= limit
    # What reading leaves behind differs between machines: where the limit is close, it is either
    # enough for the same bytes or refused, but it is never passed.
    for limit in close:
        (tmp_path / "out.csv").unlink(missing_ok=True)
        code, peak, said = peak_of(*asked, *where, "--memory", str(limit))
        assert peak <= limit
        if code == 0:
            assert (tmp_path / "out.csv").read_bytes() == free
        else:
            assert code == 6
            assert "would take" in said
    assert building_bytes(ledger) > 150 << 20


def test_reducing_is_refused_before_it_passes_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = absorbing_chain(transaction_graph(simulate_week("dai-week", size=0.01)))
    size = thresholds.LUMPING_BYTES * (len(chain) + chain.Q.nnz)
    monkeypatch.setattr(limits, "memory_now", lambda: 1000)
    rows, orders = np.flatnonzero(chain.graph.sinks), np.zeros(0)
    enough = 1000 + size
    while enough - (enough >> limits.SPARED) < 1000 + size:
        enough += 1
    assert Structure(chain).lump(rows, orders, budget=Budget(memory=enough)).columns
    with pytest.raises(ResourceError, match="reducing the chain would take"):
        Structure(chain).lump(rows, orders, budget=Budget(memory=enough - 1))
