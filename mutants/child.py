"""One run of pytest in a process of its own, on a copy of the package."""

from __future__ import annotations

import gc
import os
import re
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).parent.parent
# What every child needs and no mutant changes, imported once: half of a short run's time.
PRELOADED = [
    "_hypothesis_pytestplugin",
    "duckdb",
    "fastapi.testclient",
    "httpx2",
    "hypothesis",
    "msgspec",
    "numba.typed",
    "pyarrow.compute",
    "pyarrow.csv",
    "pyarrow.parquet",
    "pytest",
    "rich.console",
    "scipy.sparse.csgraph",
    "scipy.sparse.linalg",
    "uvicorn",
]
PASSED, FAILED, TIMED_OUT = 0, 1, -1
PATIENCE = 5  # seconds of waiting allowed for each second of CPU time
_context = get_context("forkserver")
_context.set_forkserver_preload([*PRELOADED, "mutants.child"])


@dataclass(frozen=True)
class Outcome:
    """How pytest ended: its exit code, what it printed, and how long it took."""

    code: int
    text: str
    seconds: float
    cpu: float

    @property
    def failed_test(self) -> str:
        """The first test that failed."""
        found = re.search(r"^(?:FAILED|ERROR) (\S+)", self.text, re.MULTILINE)
        return found[1] if found else ""


def pytest_on(
    source: Path, tests: Sequence[str], *, limit: float, interpreted: bool = False
) -> Outcome:
    """Run tests with the package found in `source`, for `limit` seconds of CPU time at most.

    Tests that hang use none: they have PATIENCE times as long by the clock.
    """
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        said, used = Path(folder, "said"), Path(folder, "used")
        child = _context.Process(target=_run, args=(source, tests, interpreted, folder, limit))
        child.start()
        child.join(PATIENCE * limit)
        code = child.exitcode
        if code is None:
            assert child.pid is not None
            os.killpg(child.pid, signal.SIGKILL)
            child.join()
        if code is None or code == -signal.SIGXCPU:
            code = TIMED_OUT
        text = said.read_text(errors="replace") if said.exists() else ""
        cpu = float(used.read_text()) if used.exists() else 0.0
    return Outcome(code, text, time.monotonic() - begun, cpu)


def _run(source: Path, tests: Sequence[str], interpreted: bool, folder: str, limit: float) -> None:
    os.setsid()  # so that processes a test started end with it
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit), resource.RLIM_INFINITY))
    said = os.open(Path(folder, "said"), os.O_WRONLY | os.O_CREAT)
    os.dup2(said, 1)
    os.dup2(said, 2)
    os.chdir(ROOT)
    os.environ["PYTHONPATH"] = str(source)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False  # all but the changed module is compiled once
    os.environ.pop("COINHAZE_DATA", None)  # tests on real ledgers are slow, and not everywhere
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = folder
    os.environ["TMPDIR"] = folder
    tempfile.tempdir = folder
    sys.path.insert(0, str(source))
    if interpreted:
        from coinhaze import kernels

        kernels.SMALL, kernels.MAX_SECONDS = sys.maxsize, float("inf")
    import pytest

    # Only what the tests need is loaded, and they are collected once, not for doctests too.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    options = ["-o", "addopts=--import-mode=importlib --strict-markers -q", "-m", "not long"]
    options += ["-x", "--tb=short", "-rfE", "--hypothesis-seed=0"]
    plugins = ("_hypothesis_pytestplugin", "mutants.unshrunk", "no:cacheprovider")
    options += [option for plugin in plugins for option in ("-p", plugin)]
    # Plugins were imported before pytest could rewrite them.
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    if interpreted:  # hashes wrap around, in compiled code without a word
        options += ["-W", "ignore:overflow:RuntimeWarning"]
    gc.freeze()  # what was imported before need not be looked through for garbage
    code = int(pytest.main([*options, *tests]))
    sys.stdout.flush()
    Path(folder, "used").write_text(str(sum(os.times()[:4])))
    os._exit(code)  # threads that a mutant left hanging do not matter
