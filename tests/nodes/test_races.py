"""Reorganisations of a real node's chain in the middle of reading it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from random import Random
from threading import Lock
from typing import Any

import pytest

from coinhaze.nodes import best_chain
from coinhaze.nodes.bitcoin import PLAIN, PREVOUTS, REST, BitcoinNode
from coinhaze.nodes.http import Credentials, HttpResponse
from coinhaze.nodes.rpc import JsonRpc
from coinhaze.store import sync as follow
from coinhaze.store.store import Store
from coinhaze.store.sync import catch_up
from nodes.daemons import Daemon

DEEPEST = 6  # blocks of a reorganisation
WINDOW = 12  # blocks of a store before a race


class Racing(JsonRpc):
    """A client between two of whose requests something happens to the chain."""

    def __init__(self, daemon: Daemon) -> None:
        super().__init__(daemon.url, credentials=Credentials.from_cookie(daemon.cookie))
        self.events: list[tuple[int, Any]] = []  # after how many requests, and what
        self.happened = 0
        self._lock = Lock()
        self._requests = 0

    def plan(self, *events: tuple[int, Any]) -> None:
        self.events = sorted(events, key=lambda event: event[0])
        self.happened = self._requests = 0

    def _patiently(self, url: str, body: bytes | None) -> HttpResponse:
        with self._lock:  # other threads of the reader wait, or are in the middle of an answer
            self._requests += 1
            while self.events and self.events[0][0] <= self._requests:
                self.events.pop(0)[1]()
                self.happened += 1
        return super()._patiently(url, body)


class Branches:
    """What can happen to a chain."""

    def __init__(self, daemon: Daemon, random: Random) -> None:
        self.daemon = daemon
        self.random = random
        self.invalid: list[str] = []

    def height(self) -> int:
        height = self.daemon.ask("getblockcount")
        assert isinstance(height, int)
        return height

    def leave(self, lowest: int) -> int:
        """Leave some of the newest blocks, none below a height; give how many."""
        height = self.height()
        depth = self.random.randint(1, max(1, min(DEEPEST, height - lowest)))
        name = self.daemon.text("getblockhash", height - depth + 1)
        self.daemon.ask("invalidateblock", name)
        self.invalid.append(name)
        return depth

    def replace(self, lowest: int) -> None:
        """Take another branch, shorter or longer."""
        depth = self.leave(lowest)
        self.daemon.mine(self.random.randint(1, depth + 3))

    def come_back(self) -> None:
        """Take a branch back that was left, if it is the longer one."""
        if self.invalid:
            self.daemon.ask("reconsiderblock", self.invalid.pop())


def race(daemon: Daemon, client: Racing, seed: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Reorganise the chain while it is read; give how often that was in the middle of reading."""
    random = Random(seed)
    branches = Branches(daemon, random)
    monkeypatch.setattr(follow, "ROWS", random.choice([4, 20, 100_000]))
    monkeypatch.setattr(best_chain, "BLOCKS_AT_ONCE", random.choice([1, 3, 2_000]))
    monkeypatch.setattr(follow, "pause_after", lambda attempt: 0.01)
    node = BitcoinNode(client, way=random.choice([REST, PREVOUTS, PLAIN]))
    first = branches.height() - WINDOW
    with Store(None) as store, Store(None) as fresh:
        catch_up(store, node, name="node", first=first)
        for _ in range(random.randint(1, 3)):
            daemon.text("sendtoaddress", daemon.text("getnewaddress"), "0.1")
            daemon.mine(random.randint(1, 5))
        if random.random() < 0.3:
            branches.replace(first + 2)  # the race is for a replacement, then
        moments = sorted(random.sample(range(1, 16), 3))
        events = [lambda: branches.leave(first + 2), lambda: branches.replace(first + 2)]
        happenings = [random.choice([*events, branches.come_back]) for _ in moments]
        client.plan(*zip(moments, happenings, strict=True))
        catch_up(store, node, name="node", first=first)
        happened, client.events = client.happened, []
        links = store.ask("SELECT hash, previous FROM blocks ORDER BY height")
        assert all(link[1] == below[0] for below, link in pairwise(links))
        for _ in range(4):
            branches.come_back()
        if branches.height() < first + 3:
            daemon.mine(3)
        catch_up(store, node, name="node", first=first)
        catch_up(fresh, node, name="node", first=first)
        assert max(store.headers()) == branches.height()
        assert store.digest() == fresh.digest()
        daemon.mine(max(0, first + WINDOW - branches.height()))
    return happened


@pytest.fixture
def racing(own_bitcoin: Daemon) -> Iterator[Racing]:
    own_bitcoin.mine(110 + WINDOW)
    with Racing(own_bitcoin) as client:
        yield client


def check_races(
    daemon: Daemon, client: Racing, monkeypatch: pytest.MonkeyPatch, seeds: range
) -> None:
    happened = [race(daemon, client, seed, monkeypatch) for seed in seeds]
    # Nearly all are real races: the chain changed before the last request.
    assert sum(n > 0 for n in happened) >= 0.8 * len(seeds)


def test_a_few_races_leave_a_store_equal_to_a_fresh_one(
    own_bitcoin: Daemon, racing: Racing, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_races(own_bitcoin, racing, monkeypatch, range(3))


@pytest.mark.long
def test_a_hundred_races_leave_a_store_equal_to_a_fresh_one(
    own_bitcoin: Daemon, racing: Racing, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_races(own_bitcoin, racing, monkeypatch, range(100, 200))
