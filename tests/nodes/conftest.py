from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from coinhaze.nodes.http import LARGEST_ANSWER
from coinhaze.nodes.rpc import JsonRpc
from nodes.daemons import Daemon, bitcoin_daemon
from nodes.fakes import Fake


@pytest.fixture
def fake() -> Iterator[Fake]:
    """A server that answers as the test tells it to."""
    server = Fake()
    yield server
    server.close()


@pytest.fixture
def connect() -> Iterator[Callable[..., JsonRpc]]:
    """Makes connections, without retries, that are closed at the end of the test."""
    made: list[JsonRpc] = []

    def make(url: str, *, retries: int = 0, largest: int = LARGEST_ANSWER) -> JsonRpc:
        made.append(JsonRpc(url, retries=retries, largest=largest))
        return made[-1]

    yield make
    for rpc in made:
        rpc.close()


@pytest.fixture(scope="module")
def bitcoin() -> Iterator[Daemon]:
    """Bitcoin Knots on regtest, with REST; the tests of a module share it."""
    with bitcoin_daemon("bitcoind", "-rest") as daemon:
        yield daemon


@pytest.fixture
def own_bitcoin() -> Iterator[Daemon]:
    """Bitcoin Knots on regtest for one test, whose chain it may turn over."""
    with bitcoin_daemon("bitcoind", "-rest") as daemon:
        yield daemon


@pytest.fixture(scope="module")
def litecoin() -> Iterator[Daemon]:
    """Litecoin Core on regtest; the tests of a module share it."""
    with bitcoin_daemon("litecoind", "-rest") as daemon:
        yield daemon
