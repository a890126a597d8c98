"""Servers and a browser for the tests of the page: each once, for as long as tests run."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from coinhaze.ledger import write_folder
from coinhaze.simulate import simulate_town
from coinhaze.simulate.weeks.accounts import dai_week
from coinhaze.simulate.weeks.bitcoin import bitcoin_week
from coinhaze.web.answers import Answers
from coinhaze.web.app import make_app
from coinhaze.web.client import Client
from coinhaze.web.jobs import JobQueue
from coinhaze.web.registry import LedgerRegistry
from coinhaze.web.security.guard import Limits
from coinhaze.web.server import address_of, listen, new_token, server_of
from web.browsing import Browsing
from web.drawn import DrawnExplorer
from web.made import HOSTILE, MadeRegistry

# There is no proxy: what is not on this machine cannot be reached.
ALONE = ["--no-sandbox", "--proxy-server=http://127.0.0.1:9"]
QUICK = Limits(requests=5_000, changes=500, bad_tokens=100)


@dataclass(frozen=True)
class Site:
    """A running server: where it is, and its token."""

    address: str
    token: str

    def client(self) -> Client:
        return Client(self.address, token=self.token)


@contextmanager
def running(registry: LedgerRegistry, *, patience: float = 600.0) -> Iterator[Site]:
    """Serve ledgers from a thread until the end of the block.

    What takes longer than the patience is a job with a page of its own, which loads itself again:
    on a busy machine, or before kernels are compiled, any page would be such a one.
    """
    token = new_token()
    app = make_app(Answers(registry, jobs=JobQueue(patience=patience)), token=token, limits=QUICK)
    server = server_of(app)
    with listen("127.0.0.1", 0) as sock:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
        thread.start()
        until = time.monotonic() + 30
        while not server.started:
            assert time.monotonic() < until, "no server"
            time.sleep(0.02)
        yield Site(address_of(sock, "127.0.0.1").rstrip("/"), token)
        server.should_exit = True
        thread.join(10)


@pytest.fixture(scope="session")
def town_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Real ledgers: a town, three transfers, parts of two weeks, one that is gone; a list."""
    folder = tmp_path_factory.mktemp("served")
    os.environ.setdefault("XDG_CACHE_HOME", str(folder / "cache"))
    ledger = simulate_town(transactions=900, people=60)
    write_folder(ledger, folder / "town")
    (folder / "pay.csv").write_text("from,to,amount\nalice,bob,5\ncarol,bob,5\nbob,dave,3\n")
    (folder / "list.txt").write_text("miner0\nperson3\nperson7\n")
    (folder / "labels.csv").write_text(f'address,label\nperson1,"{HOSTILE}"\nexchange,Exchange\n')
    write_folder(dai_week(size=0.002), folder / "dai")
    write_folder(bitcoin_week(size=0.0005), folder / "week")
    registry = LedgerRegistry(
        [folder / name for name in ("town", "pay.csv", "dai", "week", "gone.csv")],
        lists={"sanctions": folder / "list.txt"},
        labels=[folder / "labels.csv"],
    )
    with running(registry) as site:
        yield site


@pytest.fixture(scope="session")
def drawn_site() -> Iterator[Site]:
    """Made-up answers: the example of the design, flows of every shape."""
    with running(MadeRegistry(DrawnExplorer())) as site:
        yield site


@pytest.fixture
def impatient_site() -> Iterator[Site]:
    """The same answers, of a server that soon makes a job of one: there a coin never ends."""
    with running(MadeRegistry(DrawnExplorer()), patience=0.3) as site:
        yield site


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A real Chromium; no longer than a module, since its loop keeps others from running theirs."""
    where = shutil.which("chromium") or shutil.which("chromium-browser")
    if where is None:
        pytest.skip("chromium is not installed")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=where, args=ALONE)
        yield browser
        browser.close()


@pytest.fixture
def browsing(chromium: Any) -> Iterator[Browsing]:
    """Open pages; at the end nothing was asked of any other host, and nothing was refused."""
    found = Browsing(chromium)
    yield found
    found.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The script of axe-core, which judges a page's accessibility."""
    nodes = Path(os.environ.get("COINHAZE_NODES", Path.home() / ".cache" / "coinhaze-nodes"))
    usual = nodes / "npm" / "node_modules" / "axe-core" / "axe.min.js"
    path = Path(os.environ.get("COINHAZE_AXE", usual))
    if not path.is_file():
        pytest.skip(f"axe-core is not installed: {path} is not there")
    return path.read_text(encoding="utf-8")
