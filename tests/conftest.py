from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from coinhaze import errors, kernels
from costs import Costs
from one_compiler import compiled_in_turn

# Where the tests are run in the background, Ctrl-C would be lost on the programs that they begin.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says how busy the machine is, not whether the test is any good.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

# Seconds after which a kernel that all tests have run as plain Python is compiled after all: about
# as long as compiling one takes.
PATIENCE = 3.0
# By how much fewer examples a property is tried on in make unit.
FEWER = 8
# Folders whose tests are of no unit: small benchmarks, and real ledgers. As all tests that read
# real ledgers they are long: these need the compiler, and those who have none skip nothing.
WHOLE = ("bench", "real")
# What takes longest begins first, or one process would still be at it when the other is done.
SLOWEST = tuple(
    f"tests/{name}.py"
    for name in (
        "distribution/test_distributions",
        "simulate/test_weeks",
        "formats/test_json_fuzz",
        "formats/test_ethereum_fuzz",
        "nodes/test_wallet_servers",
        "solve/test_cluster",
        "web/test_browser_answers",
        "docs/test_shell_blocks",
        "cache/test_layers",
        "docs/test_docs",
        "formats/test_hostile",
        "history/test_follow",
        "properties/test_against_twin",
        "history/test_accounts",
        "ledger/test_fuzz",
        "golden/test_golden",
        "web/test_browser_pages",
    )
)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Run kernels as plain Python where arrays are small, or all of them compiled.

    What modules make on import is plain in both: every process imports all of them.
    """
    if session.config.getoption("compiled"):
        kernels.SMALL = -1
    kernels.MAX_SECONDS = PATIENCE
    gc.freeze()  # modules and tests stay: nothing is gained by looking through them again and again


@pytest.fixture(autouse=True)
def _every_test_begins_uncompiled() -> Iterator[None]:
    """A large array has everything after it compiled, but not in the tests that follow.

    Nor in what is built for many of them, which comes before this.
    """
    kernels._compiling = False
    yield
    kernels._compiling = False


@pytest.fixture(scope="session", autouse=True)
def _one_process_compiles_a_kernel(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Where several processes test, those that want one kernel at once wait for one compiler."""
    if not hasattr(request.config, "workerinput"):
        yield
        return
    with compiled_in_turn(tmp_path_factory.getbasetemp().parent / "compiling"):
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the answers of tests/golden be stored again."""
    parser.addoption(
        "--rewrite-golden",
        choices=["words", "all"],
        help="store answers anew: where only words changed, or all",
    )
    parser.addoption(
        "--few-examples",
        action="store_true",
        help=f"an {FEWER}th of the examples of property tests; make test-long tries them all",
    )
    parser.addoption(
        "--compiled",
        action="store_true",
        help="compile all kernels, which otherwise run as plain Python where arrays are small",
    )
    parser.addoption(
        "--costs",
        type=Path,
        metavar="PATH",
        help="write what each test costs in CPU seconds, and show a table of the files",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("costs"):
        costs = Costs(config.getoption("costs"), worker=hasattr(config, "workerinput"))
        config.pluginmanager.register(costs)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the files that take longest, and try few examples where that is asked for."""
    for item in items:
        real = "data" in getattr(item, "fixturenames", ())
        if real or item.path.parent.name in WHOLE:
            item.add_marker("long")
    place = {name: k for k, name in enumerate(SLOWEST)}
    root = config.rootpath
    items.sort(key=lambda item: place.get(str(item.path.relative_to(root)), len(SLOWEST)))
    if config.getoption("few_examples"):
        functions = {getattr(item, "obj", None) for item in items}
        for function in functions:
            maximum = getattr(function, "_hypothesis_internal_use_settings", None)
            if maximum is not None:
                fewer = settings(maximum, max_examples=-(-maximum.max_examples // FEWER))
                function._hypothesis_internal_use_settings = fewer  # type: ignore[union-attr]


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
