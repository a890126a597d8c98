"""Processes in place of threads: the same bytes, also when some are killed, or one clear error."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import coinhaze
from coinhaze import absorbing_chain, transaction_graph
from coinhaze.errors import InputError, ResourceError, SourceUnreachable, UsageError
from coinhaze.lab.lab import lab
from coinhaze.simulate import simulate_week
from coinhaze.solve.exact.stream import BlockSums
from coinhaze.solve.pool import Budget, WorkerCluster, cluster
from coinhaze.solve.pool.cluster import ClusterWorkers, check_versions, opened
from coinhaze.solve.pool.packed import ALIGNED, bits_digest, map_packed, write_packed
from coinhaze.solve.pool.probe import Probe, make_probe
from coinhaze.solve.pool.worker import close_work, solve_piece
from coinhaze.solve.sketch.sketch import sketch
from coinhaze.solve.structure.structure import Structure
from coinhaze.solve.truncated.lists import SweptBlock
from solve.cluster_works import Acting
from solve.test_backends import same, solves

distributed = pytest.importorskip("distributed")
TESTS = str(Path(__file__).parent.parent)


@pytest.fixture(scope="module")
def two() -> Iterator[WorkerCluster]:
    """Two processes of this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", TESTS, prepend=os.pathsep)
        with WorkerCluster(2) as started:
            yield started


@contextlib.contextmanager
def scheduler(workers: int = 1) -> Iterator[Any]:
    """A scheduler at an address of loopback; its workers are threads of this process."""
    with distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=False,
        protocol="tcp://",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
    ) as made:
        yield made


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[WorkerCluster]:
    """Workers that are reached by an address alone."""
    with scheduler(2) as made, WorkerCluster(made.scheduler_address) as connected:
        yield connected


@pytest.fixture(scope="module")
def chain() -> coinhaze.AbsorbingChain:
    return absorbing_chain(transaction_graph(simulate_week("bitcoin-week", size=0.0003)))


@pytest.fixture(scope="module")
def by_threads(chain: coinhaze.AbsorbingChain) -> list[coinhaze.Scores]:
    return solves(chain, Budget(threads=2))


def map_all(workers: WorkerCluster, work: Any, pieces: Iterable[int]) -> list[Any]:
    asked = list(pieces)
    with workers.open(work, len(asked), Budget()) as solving:
        return list(solving.map(asked))


@pytest.mark.parametrize("where", ["two", "elsewhere"])
def test_tiles_lists_and_draws_are_those_of_threads(
    where: str,
    chain: coinhaze.AbsorbingChain,
    by_threads: list[coinhaze.Scores],
    request: pytest.FixtureRequest,
) -> None:
    workers: WorkerCluster = request.getfixturevalue(where)
    for one, other in zip(by_threads, solves(chain, Budget(backend=workers.open)), strict=True):
        same(one, other)


def test_accounts_with_cycles_are_those_of_threads(two: WorkerCluster) -> None:
    ledger = simulate_week("dai-week", size=0.002)
    for settings in ({}, {"accuracy": 0.1, "over": "mean"}, {"accuracy": "preview", "seed": 3}):
        given: Any = settings
        same(
            coinhaze.score(ledger, threads=1, **given), coinhaze.score(ledger, workers=two, **given)
        )


SOLVES: dict[str, Callable[..., coinhaze.Scores]] = {
    "tiles": coinhaze.eliminate,
    "lists": partial(coinhaze.sweep, width=0.1, over="mean"),
    "draws": partial(sketch, draws=64 * 8, seed=5),
}


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param("tiles", marks=pytest.mark.long),
        pytest.param("lists", marks=pytest.mark.long),
        "draws",
    ],
)
def test_a_killed_worker_changes_nothing(
    engine: str, chain: coinhaze.AbsorbingChain, two: WorkerCluster
) -> None:
    rows = np.flatnonzero(chain.graph.sinks)
    two.restart()
    two._client.wait_for_workers(2, timeout=600)
    victim = two._processes[0]

    def kill_midway(share: float) -> None:
        if 0.2 < share < 1 and victim.poll() is None:
            os.kill(victim.pid, signal.SIGKILL)
            victim.wait()

    expected = SOLVES[engine](chain, rows, budget=Budget(threads=1))
    budget = Budget(backend=two.open)
    found = SOLVES[engine](chain, rows, budget=budget, progress=kill_midway)
    assert victim.returncode == -signal.SIGKILL
    same(expected, found)


def test_a_limit_met_by_a_worker_is_the_same_error(two: WorkerCluster) -> None:
    with pytest.raises(ResourceError, match=r"^the lists of outcomes passed 1 GB$"):
        map_all(two, Acting("limit"), range(4))
    assert map_all(two, Acting(), range(5)) == [0, 1, 2, 3, 4]


def test_a_worker_out_of_memory_says_what_to_do(two: WorkerCluster) -> None:
    with pytest.raises(ResourceError, match=r"no room for 8 GB.*more memory \(a piece needs 1000"):
        map_all(two, Acting("memory"), range(4))


@pytest.mark.long
def test_a_piece_that_ends_every_worker_is_given_up() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", TESTS, prepend=os.pathsep)
        with WorkerCluster(1) as one:
            with pytest.raises(ResourceError, match=r"again and again|begun 4 times"):
                map_all(one, Acting("end"), range(3))
            processes = one._processes
    assert all(process.poll() is not None for process in processes)


def test_nothing_stays_when_it_is_closed(two: WorkerCluster, tmp_path: Path) -> None:
    assert [*two.folder.glob("*/work"), *two.folder.glob("*/*.part")] == []
    assert oct(two.folder.stat().st_mode)[-3:] == "700"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(tmp_path))
        with WorkerCluster(1) as one:
            process = one._processes[0]
            assert [*tmp_path.iterdir()] == [one.folder]
    assert process.returncode is not None
    assert [*tmp_path.iterdir()] == []


def test_few_pieces_are_begun_ahead_of_the_first(tmp_path: Path) -> None:
    """Parts are large: no more of them may wait than a work says."""
    begun: list[int] = []

    class Future:
        status = "finished"

        def __init__(self, piece: int) -> None:
            self.piece = piece

        def exception(self, timeout: float) -> None: ...

        def result(self, timeout: float) -> int:
            return self.piece

    class Still:
        count, local = 3, False

        def send(self, path: Path) -> str:
            return ""

        def received(self, part: int) -> int:
            return part

        def restart(self) -> None: ...

        def forget(self, name: str) -> None: ...

        def submit(self, name: str, packed: str, piece: int) -> Future:
            begun.append(piece)
            return Future(piece)

    still: Any = Still()
    workers = ClusterWorkers(still, tmp_path / "x.work", Acting(waiting=2), 20, Budget())
    for done, part in enumerate(workers.map(range(20))):
        assert part == done
        assert len(begun) <= done + 1 + 3 * 2


def test_packed_arrays_are_mapped_as_they_were(tmp_path: Path) -> None:
    fixed = np.arange(5.0)
    fixed.setflags(write=False)
    work = {"fixed": fixed, "free": np.arange(7, dtype=np.int32), "number": 3, "none": np.zeros(0)}
    write_packed(work, tmp_path / "work")
    before = (tmp_path / "work").read_bytes()
    mapped = map_packed(tmp_path / "work")
    assert bits_digest(mapped) == bits_digest(work)
    assert not mapped["fixed"].flags.writeable
    assert mapped["free"].flags.writeable
    assert not mapped["free"].flags.owndata
    assert all(mapped[name].ctypes.data % ALIGNED == 0 for name in ("fixed", "free"))
    mapped["free"][:] = 0
    assert (tmp_path / "work").read_bytes() == before


def test_digests_tell_works_apart() -> None:
    values = [np.zeros(2), np.zeros(2, np.float32), np.zeros((2, 1)), (1,), [1], 1, 1.0, "1", None]
    values += [Acting(), Acting(seconds=1.0), range(2), {1: np.ones(1)}, {2: np.ones(1)}]
    digests = [bits_digest(value) for value in values]
    assert len(set(digests)) == len(digests)
    assert bits_digest(Acting(), leave_out=["seconds"]) == bits_digest(
        Acting(seconds=1.0), leave_out=["seconds"]
    )
    with pytest.raises(TypeError, match="arrays and numbers, not of object"):
        bits_digest(object())


def test_workers_that_give_other_bits_are_refused(chain: coinhaze.AbsorbingChain) -> None:
    wrong = Probe(make_probe().pieces, "0" * 64)
    with scheduler() as made, WorkerCluster(made.scheduler_address) as connected:
        connected._probe = wrong
        with pytest.raises(UsageError, match=r"worker \S+ gives other last digits.*one kind"):
            map_all(connected, Acting(), range(3))
        connected._probe = None
        assert map_all(connected, Acting(), range(3)) == [0, 1, 2]


def test_a_probe_sees_every_engine() -> None:
    probe = make_probe()
    digests = set()
    for k, (work, piece) in enumerate(probe.pieces):
        part = work.solve(piece, work.room())
        digests.add(bits_digest(part))
        if isinstance(part, BlockSums):
            part = part.sums.entropy
        assert np.any(part.figures if isinstance(part, SweptBlock) else part), k
    assert len(digests) == 3
    assert not Probe(probe.pieces[:2], probe.expected).agrees()


def test_workers_of_another_version_are_refused() -> None:
    ours = coinhaze.__version__
    check_versions({"tcp://a:1": ours, "tcp://b:1": ours})
    with pytest.raises(UsageError, match=rf"worker tcp://b:1 has coinhaze 9\.9, not {ours}: inst"):
        check_versions({"tcp://a:1": ours, "tcp://b:1": "9.9"})
    with pytest.raises(UsageError, match=r"worker tcp://b:1 has no coinhaze, not"):
        check_versions({"tcp://a:1": ours, "tcp://b:1": ModuleNotFoundError()})


def test_a_scheduler_that_is_gone_is_one_error() -> None:
    with (
        scheduler(2) as made,
        WorkerCluster(made.scheduler_address) as connected,
        connected.open(Acting(seconds=0.05), 40, Budget()) as solving,
    ):
        parts = solving.map(range(40))
        assert [next(parts) for _ in range(3)] == [0, 1, 2]
        made.close()
        with pytest.raises(SourceUnreachable, match=r"tcp://\S+: the scheduler is gone: start it"):
            list(parts)


def test_a_work_that_is_lost_with_its_holder_is_sent_again() -> None:
    with scheduler(1) as made, WorkerCluster(made.scheduler_address) as connected:
        found = []
        with connected.open(Acting(seconds=0.05), 12, Budget()) as solving:
            for part in solving.map(range(12)):
                found.append(part)
                if part == 3:
                    made.sync(made.workers[0].close, nanny=False)
                    made.workers.clear()
                    made.worker_spec.clear()
                    made.scale(1)
    assert found == list(range(12))


def test_a_scheduler_without_workers_or_none_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "STARTING", 0.2)
    with scheduler(0) as made:
        address = made.scheduler_address
        with pytest.raises(SourceUnreachable, match="has no worker: start some, such as dask work"):
            WorkerCluster(address)
    monkeypatch.setattr(cluster, "CONNECTING", 0.5)
    with pytest.raises(SourceUnreachable, match=r"no scheduler of dask answers there \("):
        WorkerCluster(address)


@pytest.mark.parametrize("workers", [0, "-1", "here", "http://host:1", "tcp://host", "tls://:1"])
def test_workers_are_a_number_or_an_address(workers: int | str) -> None:
    with pytest.raises(UsageError, match=r"workers (is a number or|are 1 or more)"):
        WorkerCluster(workers)


def test_tls_files_are_all_three_and_there(tmp_path: Path) -> None:
    cert = tmp_path / "cert.pem"
    cert.touch()
    with pytest.raises(UsageError, match="three files: --tls-ca, --tls-cert and --tls-key"):
        WorkerCluster("tls://host:1", tls_ca=cert)
    with pytest.raises(InputError, match=r"key\.pem: cannot be read"):
        WorkerCluster("tls://host:1", tls_ca=cert, tls_cert=cert, tls_key=tmp_path / "key.pem")
    with pytest.raises(UsageError, match="tls://host:1 needs --tls-ca"):
        WorkerCluster("tls://host:1")
    with pytest.raises(UsageError, match="tcp://host:1 has no use for --tls-ca"):
        WorkerCluster("tcp://host:1", tls_ca=cert, tls_cert=cert, tls_key=cert)
    with pytest.raises(UsageError, match="name workers"), opened(None, tls_ca=cert):
        pass


def test_only_who_has_the_certificate_can_connect(two: WorkerCluster, tmp_path: Path) -> None:
    assert two.address.startswith("tls://127.0.0.1:")
    files = dict(zip(("tls_ca", "tls_cert", "tls_key"), two._files, strict=True))
    with WorkerCluster(two.address, **files) as other:
        assert map_all(other, Acting(), range(3)) == [0, 1, 2]
    others = cluster._own_certificate(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster, "CONNECTING", 1.0)
        with pytest.raises(SourceUnreachable, match="check the address and the TLS files"):
            WorkerCluster(two.address, **dict(zip(files, others, strict=True)))


def test_without_openssl_nothing_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UsageError, match=r"openssl, .* install it, or give --tls-ca"):
        WorkerCluster(1)


def test_without_dask_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    with pytest.raises(UsageError, match=r"pip install 'coinhaze\[cluster\]'"):
        coinhaze.score(ledger, workers=2)


def test_workers_are_in_the_place_of_threads_and_devices(two: WorkerCluster) -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    with pytest.raises(UsageError, match="take the place of threads"):
        coinhaze.score(ledger, workers=two, threads=2)
    with pytest.raises(UsageError, match="leave device out"):
        coinhaze.score(ledger, workers=two, device="auto")


def test_rooms_of_all_processes_of_this_machine_must_fit(two: WorkerCluster) -> None:
    work = Acting(room_bytes=1 << 40)
    with (
        pytest.raises(ResourceError, match=r"tiles of 2 workers would take 2048\.0 GB"),
        two.open(work, 5, Budget(memory=1 << 34)),
    ):
        pass


def test_a_work_is_opened_once_and_freed(tmp_path: Path) -> None:
    from coinhaze.solve.pool import worker

    write_packed(Acting(), tmp_path / "one")
    write_packed(Acting("limit"), tmp_path / "other")
    found = solve_piece("one", str(tmp_path / "one"), 5)
    assert (found.parent, map_packed(found)) == (tmp_path, 5)
    (tmp_path / "one").unlink()
    assert map_packed(solve_piece("one", str(tmp_path / "one"), 6)) == 6
    assert map_packed(solve_piece("other", str(tmp_path / "other"), 7)) == 7
    close_work("one")
    assert worker._opened is not None
    close_work("other")
    assert worker._opened is None


def test_seeds_of_the_lab_are_the_same_by_workers(two: WorkerCluster) -> None:
    asked: dict[str, Any] = {"values": [0, 0.5], "seeds": 3, "people": 20, "payments": 40}
    tables = [
        lab("deposit-pool", threads=1, **asked).trials(),
        lab("deposit-pool", threads=3, **asked).trials(),
        lab("deposit-pool", workers=two, **asked).trials(),
    ]
    for one, other in itertools.pairwise(tables):
        assert one.equals(other)


def test_a_plan_is_made_by_workers_too(chain: coinhaze.AbsorbingChain, two: WorkerCluster) -> None:
    assert coinhaze.plan(chain, workers=two).method == coinhaze.plan(chain).method
    structure = Structure(chain)
    same(coinhaze.score(structure, workers=two), coinhaze.score(structure))


class LostOnce:
    """A future that is done when looked at, and lost with its worker before it is fetched."""

    status = "finished"

    def __init__(self) -> None:
        self.lost = False

    def exception(self, timeout: float) -> None:
        assert timeout > 0

    def result(self, timeout: float) -> str:
        assert timeout > 0  # or it would be awaited for ever
        if not self.lost:
            self.lost = True
            raise TimeoutError
        return "part"


def test_a_part_lost_before_it_is_fetched_is_awaited_again() -> None:
    looks: list[str] = []
    workers = object.__new__(ClusterWorkers)
    workers.cluster = SimpleNamespace(  # type: ignore[assignment]
        restart=lambda: None, look_after=lambda: looks.append("looked"), received=lambda part: part
    )
    begun = deque([("piece", LostOnce())])
    assert workers._next(begun) == "part"
    assert (len(begun), looks) == (0, ["looked"])
