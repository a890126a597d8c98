"""Keeping up with a node that is restarted, and what still ends it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Event, Lock, Thread
from types import SimpleNamespace

import click
import pytest

from coinhaze.cli import cli
from coinhaze.cli import ingest as ingest_command
from coinhaze.errors import CoinhazeError, InputError, NotAnswering
from coinhaze.nodes import http as connection
from coinhaze.nodes.best_chain import PrunedBlocks
from coinhaze.nodes.bitcoin import BitcoinNode
from coinhaze.nodes.http import AccessRefused, Credentials, HttpResponse
from coinhaze.nodes.monero import MoneroNode
from coinhaze.nodes.rpc import JsonRpc, WarmingUp
from coinhaze.store import sync as follow
from coinhaze.store.store import Store
from coinhaze.store.sync import catch_up
from nodes.daemons import Daemon, free_port, quick_folder, started
from nodes.fakes import Fake, FakeNode, Reply, Request
from nodes.monero_fixtures import MadeUpNode
from nodes.test_bitcoin_node import fake_chain

Step = Callable[[], object]


def stop() -> None:
    raise KeyboardInterrupt


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[float]]:
    """Plans what happens in the waits of `--follow`, which are not waited; the last one ends it."""

    def plan(*happenings: Step) -> list[float]:
        waits: list[float] = []
        left = [*happenings, stop]

        def sleep(seconds: float) -> None:
            waits.append(seconds)
            left.pop(0)()

        monkeypatch.setattr(ingest_command, "time", SimpleNamespace(sleep=sleep))
        return waits

    return plan


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the pauses between tries short."""
    monkeypatch.setattr(connection, "pause_after", lambda attempt: 0.01)
    monkeypatch.setattr("coinhaze.nodes.rpc.pause_after", lambda attempt: 0.01)


def run(*arguments: str) -> None:
    cli.main(["ingest", *arguments], standalone_mode=False)


def quiet() -> None: ...


class Restarted:
    """A real node that can be stopped and started again, with the same chain and another cookie."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.source = f"bitcoin+http://127.0.0.1:{self.port}"
        self.node: Daemon
        self.running = ExitStack()
        self.start()
        self.node.ask("createwallet", "purse")
        self.address = self.node.text("getnewaddress")

    def start(self) -> None:
        self.node = self.running.enter_context(started("bitcoind", self.folder, self.port, "-rest"))

    def stop(self) -> None:
        self.running.close()

    def digest(self) -> str:
        with Store(None) as fresh:
            catch_up(fresh, BitcoinNode(self.node.rpc), name="fresh")
            return fresh.digest()


@pytest.fixture
def restarted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Restarted]:
    with quick_folder() as folder:
        node = Restarted(folder)
        monkeypatch.setenv("COINHAZE_RPC_COOKIE", str(node.node.cookie))
        yield node
        node.stop()


def test_following_survives_a_restart_of_the_node(
    restarted: Restarted,
    steps: Callable[..., list[float]],
    hasty: None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    restarted.node.mine(20, restarted.address)
    old = restarted.node.cookie.read_text()

    def start_again() -> None:
        restarted.start()
        restarted.node.mine(5, restarted.address)

    waits = steps(restarted.stop, quiet, quiet, start_again)
    with pytest.raises(click.Abort):
        run(restarted.source, "--follow", "-o", str(tmp_path / "store"))
    said = capsys.readouterr().err.splitlines()
    assert said[0].endswith("up to block 20")
    assert "no answer in 6 tries" in said[1]
    assert said[1].endswith("waiting until it answers again")
    assert said[2].endswith("answers again")
    assert said[3].endswith("up to block 25")
    assert said[4].startswith("to go on where it stopped: ")
    assert len(said[5:]) <= 1  # an empty line, after which the shell goes on
    assert waits == [5, 5, 10, 20, 5]
    assert restarted.node.cookie.read_text() != old
    with Store(tmp_path / "store", read_only=True) as store:
        assert store.digest() == restarted.digest()


def test_a_short_restart_in_mid_read_is_waited_for_without_following(
    restarted: Restarted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    restarted.node.mine(60, restarted.address)
    plain, requests, lock = connection.Connection._patiently, [0], Lock()
    away, refused, back = Event(), Event(), Event()

    def start_again() -> None:
        assert refused.wait(60)
        restarted.start()
        back.set()

    again = Thread(target=start_again)

    def pause(attempt: int) -> float:
        """Let the node be back before it is tried again, however long it takes to start."""
        if away.is_set():
            refused.set()
            assert back.wait(300)
        return 0.01

    monkeypatch.setattr(connection, "pause_after", pause)
    monkeypatch.setattr("coinhaze.nodes.rpc.pause_after", pause)

    def patiently(self: connection.Connection, url: str, body: bytes | None) -> HttpResponse:
        with lock:
            requests[0] += 1
            if requests[0] == 30:  # a third of the blocks
                away.set()
                restarted.stop()
                again.start()
        return plain(self, url, body)

    monkeypatch.setattr(connection.Connection, "_patiently", patiently)
    run(restarted.source, "-o", str(tmp_path / "store"))
    again.join()
    monkeypatch.undo()
    with Store(tmp_path / "store", read_only=True) as store:
        assert max(store.headers()) == 60
        assert store.digest() == restarted.digest()


def warming_up(request: Request) -> Reply:
    calls = json.loads(request.body)
    fault = {"code": -28, "message": "Loading block index..."}
    one = isinstance(calls, dict)
    answers = [{"id": c["id"], "error": fault} for c in ([calls] if one else calls)]
    return Reply(500, json.dumps(answers[0] if one else answers).encode())


OUTAGES = {
    "loading block index": lambda request: Reply(503, b"Loading block index..."),
    "warming up": warming_up,
    "a proxy without its node": lambda request: Reply(502, b"Bad Gateway"),
}


@pytest.mark.parametrize("outage", OUTAGES)
def test_following_waits_for_a_node_that_is_starting(
    outage: str,
    fake: Fake,
    steps: Callable[..., list[float]],
    hasty: None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    chain, longer = fake_chain(10), fake_chain(14)
    fake.answer = chain

    def then(answer: Callable[[Request], Reply]) -> Step:
        return lambda: setattr(fake, "answer", answer)

    waits = steps(then(OUTAGES[outage]), quiet, then(longer), then(OUTAGES[outage]), then(longer))
    with pytest.raises(click.Abort):
        run(f"bitcoin+{fake.url}", "--follow", "-o", str(tmp_path / "store"))
    said = capsys.readouterr().err
    assert said.count("waiting until it answers again") == 2  # once for each outage
    assert said.count(": answers again") == 2
    assert waits == [5, 5, 10, 5, 5, 5]
    with Store(tmp_path / "store", read_only=True) as store:
        assert sorted(store.headers().values()) == sorted(longer.hashes)


def definite(kind: str) -> Callable[[Request], Reply]:
    longer = fake_chain(14)
    if kind == "wrong password":
        return lambda request: Reply(401)
    if kind == "pruned":
        longer.info = {"pruned": True, "pruneheight": 12}
        return longer
    return FakeNode([name[::-1] for name in longer.hashes], {})


@pytest.mark.parametrize(
    ("kind", "error", "code"),
    [
        ("wrong password", AccessRefused, 4),
        ("pruned", PrunedBlocks, 4),
        ("another network", InputError, 3),
    ],
)
def test_a_definite_error_ends_following(
    kind: str,
    error: type[CoinhazeError],
    code: int,
    fake: Fake,
    steps: Callable[..., list[float]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fake.answer = fake_chain(10)
    waits = steps(lambda: setattr(fake, "answer", definite(kind)))
    with pytest.raises(error) as caught:
        run(f"bitcoin+{fake.url}", "--follow", "-o", str(tmp_path / "store"))
    assert caught.value.exit_code == code
    assert not isinstance(caught.value, NotAnswering)
    assert waits == [5]
    assert "waiting" not in capsys.readouterr().err


def test_without_following_a_node_that_stays_away_is_an_error(
    fake: Fake, hasty: None, tmp_path: Path
) -> None:
    fake.answer = warming_up
    with pytest.raises(WarmingUp, match="Loading block index") as caught:
        run(f"bitcoin+{fake.url}", "-o", str(tmp_path / "store"))
    assert caught.value.exit_code == 4
    assert len(fake.requests) == 6


def test_following_goes_on_after_a_chain_that_would_not_rest(
    fake: Fake,
    steps: Callable[..., list[float]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(follow, "pause_after", lambda attempt: 0.0)
    torn = fake_chain(10)
    name = torn.hashes[5]
    torn.blocks[name] = torn.blocks[name].replace(torn.hashes[4], "ab" * 32)
    fake.answer = torn
    waits = steps(lambda: setattr(fake, "answer", fake_chain(10)))
    with pytest.raises(click.Abort):
        run(f"bitcoin+{fake.url}", "--follow", "-o", str(tmp_path / "store"))
    said = capsys.readouterr().err
    assert "the chain changed while it was read, 8 times in a row" in said
    assert waits == [5, 5]
    with Store(tmp_path / "store", read_only=True) as store:
        assert sorted(store.headers()) == list(range(10))


@pytest.mark.parametrize("status", ["BUSY", "error -9"])
def test_a_monero_node_that_is_starting_may_answer_later(status: str) -> None:
    rpc = MadeUpNode()
    if status == "BUSY":
        rpc.change = lambda path, answer: answer | {"status": "BUSY"}
    else:
        rpc.spoil = lambda raw: b'{"error":{"code":-9,"message":"Core is busy"}}'
    with pytest.raises(NotAnswering, match=r"(?i)busy"):
        MoneroNode(rpc).tip()


def test_a_cookie_that_changed_is_read_again_and_another_refusal_is_definite(
    fake: Fake, tmp_path: Path
) -> None:
    cookie = tmp_path / ".cookie"
    cookie.write_text("__cookie__:first")
    with JsonRpc(fake.url, credentials=Credentials.from_cookie(cookie), retries=0) as rpc:
        rpc.call("getit")
        before = fake.requests[-1].headers["authorization"]
        usual = fake.answer

        def answer(request: Request) -> Reply:
            old = request.headers["authorization"] == before
            return Reply(401) if old else usual(request)

        fake.answer = answer
        cookie.write_text("__cookie__:second")
        rpc.call("getit")
        assert len(fake.requests) == 3
        rpc.call("getit")
        assert len(fake.requests) == 4
        fake.always(Reply(401))
        with pytest.raises(AccessRefused):
            rpc.call("getit")
        assert len(fake.requests) == 5
        cookie.unlink()
        with pytest.raises(AccessRefused):
            rpc.call("getit")
