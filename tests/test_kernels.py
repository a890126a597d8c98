"""Kernels as plain Python and compiled: the same bits, and no compiler for small ledgers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coinhaze
from both_ways import compared
from coinhaze import kernels
from coinhaze.kernels import Kernel
from coinhaze.solve.exact.stream_kernels import QUARTER, fma, row_sums
from properties import strategies
from properties.comparison import profile

PACKAGE = Path(coinhaze.__file__).parent
SETTINGS: list[dict[str, Any]] = [
    {},
    {"method": "eliminate", "renyi": (0.5, 2.0)},
    {"accuracy": 0.1, "over": "mean"},
    {"accuracy": "preview", "seed": 3, "draws": 64},
]


@pytest.mark.parametrize("asked", SETTINGS, ids=str)
@pytest.mark.parametrize("time", ["stationary", "temporal"])
@given(rows=strategies.transfers())
@profile(15)
def test_small_ledgers_have_the_same_bits_plain_and_compiled(
    rows: list[tuple[str, str, int]], time: Any, asked: dict[str, Any]
) -> None:
    ledger = coinhaze.AccountLedger.from_transfers(rows)
    with compared() as calls:
        scores = coinhaze.score(ledger, time=time, nodes="all", threads=1, **asked)
        coinhaze.origins(scores.chain, next(iter(scores)).node)
    assert len(calls) > 5


@given(
    st.lists(st.floats(0, 1) | st.just(0.0), min_size=64, max_size=64),
    st.lists(st.floats(-5, 5), min_size=64, max_size=64),
    st.booleans(),
)
@profile(200)
def test_sums_of_a_row_skip_zeros_without_changing_a_bit(
    row: list[float], inner: list[float], has_priors: bool
) -> None:
    rows, weights = np.array([row]), np.array(inner)
    asked = (rows, 0, weights, abs(weights), has_priors, np.zeros(2 * QUARTER))
    plain = np.array(row_sums.plain(*asked))
    assert plain.tobytes() == np.array(row_sums.compiled(*asked)).tobytes()


@given(*[st.floats(-1e100, 1e100)] * 3)
@profile(200)
def test_fused_sums_round_once(a: float, b: float, c: float) -> None:
    from fractions import Fraction

    assert fma.plain(a, b, c) == float(Fraction(a) * Fraction(b) + Fraction(c))


def double(values: Any) -> float:
    return 2.0 * float(values[0])


def counting(
    monkeypatch: pytest.MonkeyPatch, entries: Callable[..., int] | None = None
) -> tuple[Kernel, list[str]]:
    """Give a kernel that writes down how it ran, with the usual limits."""
    ran: list[str] = []

    def plain(values: Any) -> float:
        ran.append("plain")
        return double(values)

    def compiler(function: Any) -> Any:
        def compiled(values: Any) -> Any:
            ran.append("compiled")
            return double(values)

        return compiled

    monkeypatch.setattr(kernels, "_compiling", False)
    monkeypatch.setattr(kernels, "SMALL", 100)
    return Kernel(double, compiler, plain, entries), ran


def test_everything_is_compiled_once_an_array_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, ran = counting(monkeypatch)
    for size in (100, 101, 1):
        loop(np.ones(size))
    assert ran == ["plain", "compiled", "compiled"]


def test_a_kernel_may_count_what_it_goes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, ran = counting(monkeypatch, entries=lambda values: int(values[0]))
    for used in (7, 100, 101):
        room = np.zeros(1000)
        room[0] = used
        loop(values=room)
    assert ran == ["plain", "plain", "compiled"]


def test_a_loop_that_has_taken_long_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, ran = counting(monkeypatch)
    moments = iter([0.0, kernels.MAX_SECONDS])
    monkeypatch.setattr("coinhaze.kernels.time.thread_time", lambda: next(moments))
    loop(np.ones(3))
    loop(np.ones(3))
    assert ran == ["plain", "compiled"]
    assert not kernels._compiling


def test_arrays_in_tuples_count() -> None:
    assert kernels._entries((np.ones((2, 3)), (np.ones(4), [np.ones(5)]), 1.0, True)) == 17


def test_only_one_module_imports_the_compiler() -> None:
    found = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for line in path.read_text().splitlines()
        if line.startswith(("import numba", "from numba", "from llvmlite"))
    ]
    assert found == []


def run(tmp_path: Path, rows: int, script: str) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "transfers.csv"
    lines = [f"a{k % 97},a{k % 89 + 40},{k % 13 + 1}" for k in range(rows)]
    path.write_text("\n".join(["from,to,amount", *lines]) + "\n")
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, str(path)],
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("rows", [4, 1000])
def test_a_small_ledger_is_scored_without_the_compiler(tmp_path: Path, rows: int) -> None:
    script = "import sys; sys.argv[1:1] = ['score']\nfrom coinhaze.cli import main\ntry: main()\n"
    script += "finally: print({'numba', 'pandas', 'scipy.linalg', 'asyncio'} & set(sys.modules))"
    done = run(tmp_path, rows, script)
    assert done.stdout.endswith("set()\n")
    assert done.stderr == ""


def test_a_command_says_that_it_compiles(tmp_path: Path) -> None:
    script = "from coinhaze import kernels\nkernels.SMALL = -1\n"
    script += "import sys; sys.argv[1:1] = ['info']\nfrom coinhaze.cli import main; main()"
    first, again = run(tmp_path, 4, script), run(tmp_path, 4, script)
    assert first.stderr.count("note: compiling for this machine, once") == 1
    assert "compiling" not in again.stderr
    assert first.stdout == again.stdout


@pytest.mark.parametrize("words", ["--help", "--version", "score --help", "wallet --help"])
def test_help_does_without_the_engine(words: str) -> None:
    script = f"import sys; sys.argv = ['coinhaze', *{words.split()}]\n"
    script += "from coinhaze.cli import main\ntry: main()\nfinally: "
    script += "print({'numpy', 'numba', 'pyarrow', 'duckdb', 'rich'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True)
    assert done.stdout.endswith("set()\n"), done.stdout + done.stderr
