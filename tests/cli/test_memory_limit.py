"""Under a memory limit a command ends with one line and exit 6, whatever a library would do."""

from __future__ import annotations

import errno
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from coinhaze.errors import InputError
from coinhaze.memory_limit import is_out_of_memory
from store.made_stores import transfers

MB = 1 << 20


def _run(arguments: list[str], *, folder: Path, megabytes: int) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes * MB, megabytes * MB))

    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, preexec_fn=limit, capture_output=True,
        text=True, timeout=600, check=False,
    )  # fmt: skip


def _code(body: str) -> list[str]:
    start = "import os, sys; from coinhaze.memory_limit import work_in_a_child; work_in_a_child(); "
    return ["-c", start + body]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [("0x00", "a", 10**9), *(("a", f"b{k}", 5) for k in range(2000))]
    transfers(rows, tmp_path / "store.duckdb").close()
    lines = [f"{sender},{recipient},{amount}" for sender, recipient, amount in rows]
    (tmp_path / "rows.csv").write_text("\n".join(["from,to,amount", *lines]) + "\n")
    return tmp_path


COMMANDS = (
    ["info", "store.duckdb"],
    ["score", "rows.csv", "--time", "temporal"],
    ["verify", "store.duckdb"],
    ["ingest", "rows.csv", "-o", "new.duckdb"],
)


def _check(arguments: list[str], folder: Path, megabytes: int) -> bool:
    """Run a command under a limit; tell whether it was enough."""
    (folder / "new.duckdb").unlink(missing_ok=True)
    done = _run(["-m", "coinhaze", *arguments], folder=folder, megabytes=megabytes)
    if done.returncode == 0:
        return True
    assert done.returncode == 6, (megabytes, done.stderr[-2000:])
    assert done.stderr.startswith("coinhaze: ")
    assert done.stderr.count("\n") == 1
    return False


@pytest.mark.parametrize(("arguments", "megabytes"), [(COMMANDS[1], 350), (COMMANDS[2], 500)])
def test_too_little_memory_is_one_line_and_exit_6(
    folder: Path, arguments: list[str], megabytes: int
) -> None:
    assert not _check(arguments, folder, megabytes)


@pytest.mark.long
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_any_limit_is_enough_or_exit_6(folder: Path, arguments: list[str]) -> None:
    enough = [_check(arguments, folder, megabytes) for megabytes in range(250, 1250, 125)]
    assert not enough[0]
    assert _check(arguments, folder, 8000)


@pytest.mark.parametrize(
    "body",
    [
        "os.write(2, b'cannot allocate memory for thread-local data: ABORT\\n'); os._exit(127)",
        "os.write(2, b'malloc failed\\nABORT\\n'); os.abort()",
        "os.kill(os.getpid(), 11)",
    ],
)
def test_a_library_that_ends_the_process_is_exit_6_too(tmp_path: Path, body: str) -> None:
    done = _run(_code(body), folder=tmp_path, megabytes=2000)
    assert done.returncode == 6
    assert done.stderr.startswith("coinhaze: ended for want of memory, 2,097 MB at the most")
    assert done.stderr.count("\n") == 1
    assert ("ABORT" in body) == ("ABORT)" in done.stderr)


def test_under_a_limit_all_else_is_as_without(tmp_path: Path) -> None:
    body = "print('out'); print('err', file=sys.stderr); os.write(2, b'library\\n'); sys.exit(3)"
    done = _run(_code(body), folder=tmp_path, megabytes=2000)
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\nlibrary\n")
    assert _run(_code("os._exit(130)"), folder=tmp_path, megabytes=2000).returncode == 130


def test_signals_reach_the_work_and_it_ends_with_its_parent(tmp_path: Path) -> None:
    body = "import time; print(os.getpid(), flush=True); time.sleep(60)"
    for sent, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -9)):
        with subprocess.Popen(
            ["bash", "-c", 'ulimit -v 2000000; exec "$@"', "-", sys.executable, *_code(body)],
            cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            child = int(process.stdout.readline())
            assert child != process.pid
            process.send_signal(sent)
            assert process.wait(timeout=300) == code
            process.stdout.read()  # ends when nobody has the pipe open any more


def test_want_of_memory_is_distinguished_from_other_faults() -> None:
    for error in (
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        ImportError("libx.so: failed to map segment from shared object"),
        RuntimeError("can't start new thread"),
        pa.ArrowMemoryError("malloc of size 8388608 failed"),
        pa.ArrowInvalid("In CSV column #0: realloc of size 3674304 failed"),
    ):
        assert is_out_of_memory(error)
    for other in (None, ValueError("out of memory"), OSError("no such file"), InputError("x")):
        assert not is_out_of_memory(other)


def _raise_in_place_of(error: Exception) -> None:
    try:
        raise error
    except Exception:
        raise InputError("rows.csv: cannot be read") from None


def test_an_error_raised_in_place_of_want_of_memory_counts() -> None:
    with pytest.raises(InputError) as caught:
        _raise_in_place_of(MemoryError())
    assert is_out_of_memory(caught.value)
    with pytest.raises(InputError) as caught:
        _raise_in_place_of(ValueError("no number"))
    assert not is_out_of_memory(caught.value)
