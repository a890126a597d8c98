"""Workers of a command: the bytes of threads, and no process or file that outlives it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from coinhaze.ledger import write_folder
from coinhaze.simulate import simulate_week
from solve.economies import random_transfers

pytest.importorskip("distributed")
Run = Callable[..., tuple[int, str, str]]
LONG = ("--accuracy", "preview", "--seed", "1", "--draws", "6400000")


def test_scores_by_workers_are_those_of_threads(run: Run, tmp_path: Path) -> None:
    source = write_folder(random_transfers(60, 200, 5), tmp_path / "ledger")
    assert run("score", source, "-o", "threads.csv")[0] == 0
    code, _, err = run("score", source, "--workers", 1, "-o", "workers.csv")
    assert code == 0, err
    assert Path("workers.csv").read_bytes() == Path("threads.csv").read_bytes()


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--workers", "0"), 2, "workers are 1 or more"),
        (("--workers", "somewhere"), 2, "workers is a number or a scheduler's address"),
        (("--workers", "2", "--threads", "2"), 2, "workers take the place of threads"),
        (("--workers", "2", "--tls-ca", "x"), 2, "TLS takes three files"),
        (("--tls-ca", "x"), 2, "name workers"),
        (("--workers", "tcp://127.0.0.1:1"), 4, "no scheduler of dask answers there"),
    ],
)
def test_wrong_workers_are_one_line(
    run: Run,
    transfers: Path,
    options: tuple[str, ...],
    code: int,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("coinhaze.solve.pool.cluster.CONNECTING", 0.5)
    found, out, err = run("score", transfers, *options, "-o", "x.csv")
    assert (found, out) == (code, "")
    assert err.startswith("coinhaze: ")
    assert err.count("\n") == 1
    assert words in err
    assert not Path("x.csv").exists()


def alive(folder: Path) -> list[int]:
    """Find the processes that were started for a folder of workers."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                if str(folder).encode() in (process / "cmdline").read_bytes():
                    found.append(int(process.name))
            except OSError:
                continue
    return found


@pytest.mark.long
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_command_that_is_ended_leaves_no_process_and_no_file(
    tmp_path: Path, sent: signal.Signals, code: int
) -> None:
    source = write_folder(simulate_week("dai-week", size=0.02), tmp_path / "ledger")
    for_workers = tmp_path / "temporary"
    for_workers.mkdir()
    command = [sys.executable, "-m", "coinhaze", "score", str(source), "--workers", "2", *LONG]
    with subprocess.Popen(
        [*command, "-o", str(tmp_path / "scores.csv")],
        env=os.environ | {"TMPDIR": str(for_workers)},
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        until = time.monotonic() + 120
        while not list(for_workers.glob("*/*/work")) or len(alive(for_workers)) < 2:
            assert time.monotonic() < until
            assert running.poll() is None
            time.sleep(0.2)
        time.sleep(3)
        running.send_signal(sent)
        _, err = running.communicate(timeout=600)
    assert running.returncode == code
    assert code != 130 or err.lstrip() == "coinhaze: interrupted; nothing was left half-written\n"
    until = time.monotonic() + 120
    while (alive(for_workers) or any(for_workers.iterdir())) and time.monotonic() < until:
        time.sleep(0.2)
    assert alive(for_workers) == []
    assert [*for_workers.iterdir()] == []
    assert not re.findall("scores", " ".join(path.name for path in tmp_path.iterdir()))


@pytest.mark.long
def test_a_comparison_by_workers_is_that_of_threads(run: Run) -> None:
    asked = ("compare", "week:dai", "--size", "0.005", "--no-figures")
    assert run(*asked, "-o", "threads")[0] == 0
    code, _, err = run(*asked, "--workers", 2, "-o", "workers")
    assert code == 0, err
    for path in Path("threads").glob("*.csv"):
        assert path.read_bytes() == (Path("workers") / path.name).read_bytes()


@pytest.mark.long
def test_the_lab_by_workers_is_that_of_threads(run: Run) -> None:
    asked = ("lab", "rings", "--values", "1,4", "--seeds", 3, "--people", 10, "--payments", 20)
    outs = [run(*asked, "--json", *more)[1] for more in ((), ("--workers", 2))]
    plain = [re.sub(r'"command": "[^"]*"', "", out) for out in outs]
    assert plain[0] == plain[1]
    assert '"gained_bits"' in plain[0]
