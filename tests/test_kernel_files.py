"""Compiled kernels on disk: never other code than what the sources say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from coinhaze.kernel_files import CompiledFiles

CALLED = """
from coinhaze.kernels import kernel
from constants import STEP

@kernel()
def raised(value):
    return value + {more} * STEP
"""
CALLER = """
from coinhaze import kernels
from coinhaze.kernels import kernel
from called import raised

@kernel()
def twice(value):
    return 2 * raised(value)

print(twice.compiled(1), sum(twice.compiled.stats.cache_hits.values()))
"""


def run(folder: Path, more: int, step: int) -> tuple[int, int]:
    """Write the modules, run them, and give the answer and how many files were loaded."""
    (folder / "constants.py").write_text(f"STEP = {step}\n")
    (folder / "called.py").write_text(CALLED.format(more=more))
    (folder / "caller.py").write_text(CALLER)
    # The caller's own file stays as it is, to the second.
    os.utime(folder / "caller.py", (1e9, 1e9))
    done = subprocess.run(
        [sys.executable, "caller.py"],
        cwd=folder,
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    answer, loaded = done.stdout.split()
    return int(answer), int(loaded)


def test_changes_in_other_modules_count(tmp_path: Path) -> None:
    assert run(tmp_path, more=1, step=1) == (4, 0)
    assert run(tmp_path, more=1, step=1) == (4, 1)
    assert run(tmp_path, more=2, step=1) == (6, 0)  # a kernel it calls
    assert run(tmp_path, more=2, step=5) == (22, 0)  # a constant that kernel sees
    assert run(tmp_path, more=2, step=5) == (22, 1)
    # What was compiled before is gone.
    assert len(list((tmp_path / "cache").rglob("*.nbc"))) == 2


def test_each_combination_of_types_has_a_file_of_its_own(tmp_path: Path) -> None:
    one, other = (CompiledFiles(tmp_path, "loop", "a" * 64) for _ in range(2))
    one.save(("int64",), "code of integers")
    other.save(("float64",), "code of floats")
    assert one.load(("float64",)) == "code of floats"
    assert other.load(("int64",)) == "code of integers"
    assert one.load(("float32",)) is None
    one.flush()
    assert other.load(("int64",)) is None
    assert list(tmp_path.iterdir()) == []


def test_damaged_files_are_not_loaded(tmp_path: Path) -> None:
    files = CompiledFiles(tmp_path, "loop", "a" * 64)
    files.save(("int64",), list(range(100)))
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for damaged in (b"", whole[:20], whole[:-1], whole[:50] + b"?" + whole[51:]):
        path.write_bytes(damaged)
        assert files.load(("int64",)) is None
    path.write_bytes(whole)
    assert files.load(("int64",)) == list(range(100))


def test_a_full_disk_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = CompiledFiles(tmp_path, "loop", "a" * 64)

    def full(*given: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        files.save(("int64",), "code")
    assert files.load(("int64",)) is None
    assert list(tmp_path.iterdir()) == []
    CompiledFiles(tmp_path / "nowhere", "loop", "a" * 64).save(("int64",), "code")


def test_kernels_run_where_the_compiler_is_switched_off(tmp_path: Path) -> None:
    program = """
from coinhaze import kernels
kernels.SMALL = -1
from coinhaze.solve.exact.pairs_kernels import exact_sum
import numpy as np
print(exact_sum(np.array([1e100, 1.0, -1e100])))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert (done.stdout, done.stderr) == ("1.0\n", "")
    assert not list(tmp_path.rglob("*.nbc"))
