from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest

from coinhaze import errors, kernels

# Kernels are tested as compiled code, which large ledgers run; tests/test_kernels.py compares it
# with plain Python.
kernels.SMALL = -1


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the answers of tests/golden be stored again."""
    parser.addoption(
        "--rewrite-golden",
        choices=["words", "all"],
        help="store answers anew: where only words changed, or all",
    )


# Importing these registers a policy and a comparator, which only their own tests want.
collect_ignore_glob = ["newcomers/*"]


@pytest.fixture
def data() -> Path:
    """The folder of real ledgers, named by COINHAZE_DATA."""
    folder = os.environ.get("COINHAZE_DATA")
    if not folder:
        pytest.skip("COINHAZE_DATA is not set: no real ledgers to test on")
    return Path(folder)


@pytest.fixture(autouse=True)
def _no_secrets_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passwords that one test gave must not be hidden in the messages another one reads."""
    monkeypatch.setattr(errors, "_secrets", set())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where COINHAZE_NO_SKIP is set a skip is a failure."""
    report = yield
    if report.skipped and os.environ.get("COINHAZE_NO_SKIP"):
        report.outcome = "failed"
        report.longrepr = f"skipped where nothing may be: {report.longrepr}"
    return report
