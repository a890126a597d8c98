"""Killed at any moment, and resumed, an ingest leaves the store that an undisturbed one does.

The process that is killed is a fork of one that has loaded everything, so kills fall on the work.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

KILLS = 100  # of each kind


def _write(kind: str, folder: Path) -> list[Path]:
    """Write files to ingest: dumps of a small week of coins, or tables of transfers."""
    folder.mkdir()
    if kind == "coins":
        from benchmarks.blockchair_files import write_blockchair

        from coinhaze.simulate import simulate_week

        write_blockchair(simulate_week("bitcoin-week", size=0.001), folder)  # type: ignore[arg-type]
        return sorted(folder.iterdir())
    head = "token_address,from_address,to_address,value,transaction_hash,log_index,block_number\n"
    for number in range(12):
        rows = "".join(
            f"0x{1:040x},0x{k % 7 + 1:040x},0x{k + 9:040x},{k + 1},0x{number:032x}{k:032x},{k},"
            f"{100 * number + k // 4}\n"
            for k in range(400)
        )
        (folder / f"{number:02}.csv").write_text(head + rows)
    return sorted(folder.iterdir())


def _ingest(files: list[Path], path: Path) -> str:
    from coinhaze.store.ingest import ingest
    from coinhaze.store.store import Store

    with Store(path) as store:
        ingest(files, store)
        return store.digest()


def _killed(files: list[Path], path: Path, after: float) -> bool:
    """Ingest in a process of its own and kill it; tell whether it was still at work."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            _ingest(files, path)
            os._exit(0)
        os._exit(1)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), status
    return status != 0


def _copy(path: Path, target: Path) -> None:
    for old in target.parent.glob(f"{target.name}*"):
        old.unlink() if old.is_file() else shutil.rmtree(old)
    for file in path.parent.glob(f"{path.name}*"):
        if file.is_file():
            shutil.copy(file, target.with_name(target.name + file.name.removeprefix(path.name)))


def run_kills(kind: str, kills: int) -> None:
    """Kill so many times, each time checking what a copy of the store is when it is resumed."""
    folder = Path.cwd()
    files = _write(kind, folder / "files")
    _ingest(files, folder / "warm")  # everything is loaded and compiled
    begun = time.perf_counter()
    right = _ingest(files, folder / "fresh")
    whole = time.perf_counter() - begun
    chance = random.Random(kind)
    store, killed, finished = folder / "store", 0, 0
    while killed < kills:
        if _killed(files, store, chance.uniform(0, whole)):
            killed += 1
            _copy(store, folder / "copy")
            found = _ingest(files, folder / "copy")
            print(f"kill {killed}: {'right' if found == right else 'WRONG'}", flush=True)
        else:
            finished += 1
        # Several kills fall on one store, until it is whole; then another is begun.
        if killed % 5 == 0 or finished > killed + 20:
            _copy(folder / "absent", store)
    print(f"done {killed}", flush=True)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["coins", "accounts"])
def test_an_ingest_killed_at_any_moment_is_resumed_to_the_same_store(
    tmp_path: Path, kind: str
) -> None:
    tests = Path(__file__).resolve().parents[1]
    here = os.pathsep.join([str(tests), str(tests.parent)])
    code = f"from store.test_kills import run_kills; run_kills({kind!r}, {KILLS})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=os.environ | {"PYTHONPATH": here},
        capture_output=True, text=True, timeout=1200, check=False,
    )  # fmt: skip
    said = done.stdout.splitlines()
    assert done.returncode == 0, (said[-1:], done.stderr[-2000:])
    assert said[-1] == f"done {KILLS}"
    assert said[:-1] == [f"kill {k}: right" for k in range(1, KILLS + 1)]
