"""A history that follows a real node: blocks, reorganisations, restarts and watched coins."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from coinhaze import History
from coinhaze.errors import InputError, LedgerError, UsageError
from coinhaze.history.follow import DeepReorganisation, Follower
from coinhaze.history.index.row_kernels import LIVE
from coinhaze.history.node import NodeFollower, Watch
from coinhaze.nodes.bitcoin import BitcoinNode
from nodes.daemons import Daemon


def pay(daemon: Daemon, count: int) -> list[str]:
    """Let the wallet pay itself."""
    return [daemon.text("sendtoaddress", daemon.text("getnewaddress"), 1) for _ in range(count)]


def unspent(daemon: Daemon) -> set[str]:
    """Give the wallet's coins, which are all there are."""
    listed = daemon.ask("listunspent", 0)
    immature = daemon.ask("listtransactions", "*", 100_000)
    assert isinstance(listed, list)
    assert isinstance(immature, list)
    made = {f"{c['txid']}:{c['vout']}" for c in listed}
    return made | {f"{c['txid']}:{c['vout']}" for c in immature if c["category"] == "immature"}


def assert_same(follower: Follower, daemon: Daemon, path: Path) -> None:
    """Hold it against a history that is indexed at once, and against the node's own coins."""
    node = BitcoinNode(daemon.rpc)
    History.index_node(path, node, node.tip()[0])
    with Follower(path, draws=64, seed=follower.seed) as fresh:
        one, other = follower.indexer.live, fresh.indexer.live
        for name, table in one.tables().items():
            assert table.equals(other.tables()[name]), name
        assert follower.height == fresh.height == node.tip()[0]
        # The node counts no genesis coin, which can never be spent.
        told = daemon.ask("gettxoutsetinfo")
        assert isinstance(told, dict)
        worth = int((one.coins[: one.counts[9], 0] > 0).sum())
        assert worth <= int(one.counts[LIVE])
        assert told["txouts"] in (worth, worth - 1)
        for coin in sorted(unspent(daemon))[:20]:
            assert follower.coin(coin) == fresh.coin(coin) is not None


def test_a_history_follows_a_real_node_through_reorganisations(
    own_bitcoin: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = own_bitcoin
    daemon.mine(220)
    node = BitcoinNode(daemon.rpc)
    path = tmp_path / "x.history"
    History.index_node(path, node, 20)
    told: list[tuple[str, int]] = []
    with Follower(path, draws=64, seed=3) as follower:
        followed = NodeFollower(
            follower,
            node,
            lambda figures, seconds: told.append(("block", figures.height)),
            lambda height, blocks: told.append(("left", blocks)),
        )
        assert followed.step() == 200
        seen = time.perf_counter()
        assert followed.step() == 0
        daemon.mine(1)
        time.sleep(0.05)
        with monkeypatch.context() as patch:
            late: list[float] = []
            patch.setattr(followed, "block_added", lambda figures, seconds: late.append(seconds))
            assert followed.step() == 1
        # The time in which it had the block and nobody looked counts.
        assert 0.05 <= late[0] <= time.perf_counter() - seen
        assert followed.step() == 0
        pay(daemon, 12)
        daemon.mine(1)
        assert followed.step() == 1
        assert told[-1] == ("block", 222)
        assert_same(follower, daemon, tmp_path / "one")
        for depth in (1, 7, 100):
            first = daemon.text("getblockhash", daemon.ask("getblockcount") - depth + 1)  # type: ignore[operator]
            daemon.ask("invalidateblock", first)
            pay(daemon, 2)
            daemon.mine(depth + 1)
            assert followed.step() == depth + 1
            assert ("left", depth) in told
            assert_same(follower, daemon, tmp_path / str(depth))
    # Started again, it stands where it stood.
    with Follower(path, draws=64, seed=3) as follower:
        assert NodeFollower(follower, node).step() == 0
        assert_same(follower, daemon, tmp_path / "again")
    daemon.ask("invalidateblock", daemon.text("getblockhash", 15))
    daemon.mine(220)
    with (
        Follower(path, draws=64) as follower,
        pytest.raises(
            DeepReorganisation, match="has left block 20, up to which the history is committed"
        ),
    ):
        NodeFollower(follower, node)


def test_a_node_behind_the_history_is_refused(own_bitcoin: Daemon, tmp_path: Path) -> None:
    daemon = own_bitcoin
    daemon.mine(10)
    node = BitcoinNode(daemon.rpc)
    History.index_node(tmp_path / "x", node, 10)
    daemon.ask("invalidateblock", daemon.text("getblockhash", 9))
    with (
        Follower(tmp_path / "x") as follower,
        pytest.raises(LedgerError, match="ends at block 8, before block 10"),
    ):
        NodeFollower(follower, node)


class Hook:
    """A server that takes what is posted."""

    def __init__(self) -> None:
        posted: list[dict[str, object]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                posted.append(json.loads(body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self.posted = posted
        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/coins"
        Thread(target=self.server.serve_forever, daemon=True).start()


@contextmanager
def following(daemon: Daemon, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run the command, with the node's password in its environment."""
    user, password = daemon.cookie.read_text().split(":")
    words = ["history", "follow", *arguments, "--node", f"bitcoin+{daemon.url}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "coinhaze", *words],
        env=os.environ
        | {"COINHAZE_RPC_USER": user, "COINHAZE_RPC_PASSWORD": password, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def lines_until(process: subprocess.Popen[str], wanted: str) -> list[str]:
    """Read lines up to one that holds some words."""
    lines: list[str] = []
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line.rstrip())
        if wanted in line:
            return lines
    raise AssertionError(f"ended without {wanted!r}: {lines}")


def test_the_command_tells_blocks_and_watched_coins(own_bitcoin: Daemon, tmp_path: Path) -> None:
    daemon = own_bitcoin
    daemon.mine(115)
    listed = daemon.ask("listunspent")
    assert isinstance(listed, list)
    coin = f"{listed[0]['txid']}:{listed[0]['vout']}"
    (tmp_path / "coins.txt").write_text(f"# mine\n{coin}\n\n")
    hook = Hook()
    path = tmp_path / "x.history"
    options = (str(path), "--watch", str(tmp_path / "coins.txt"), "--post", hook.url, "--seed", "5")
    with following(daemon, *options) as process:
        lines = lines_until(process, "block 115:")
        daemon.ask(
            "sendall", [daemon.text("getnewaddress")], None, "unset", None,
            {"inputs": [{"txid": listed[0]["txid"], "vout": listed[0]["vout"]}]},
        )  # fmt: skip
        daemon.mine(1)
        lines += lines_until(process, '"unspent": false')
        documents = [json.loads(line) for line in lines if line.startswith("{")]
        end = time.monotonic() + 300
        while hook.posted != documents and time.monotonic() < end:
            time.sleep(0.01)
    assert hook.posted == documents
    # The newest hundred blocks are followed one by one, from those that were indexed at once.
    assert [line.split(":")[0] for line in lines if line.startswith("block")] == [
        f"block {height}" for height in range(16, 117)
    ]
    blocks = [line for line in lines if line.startswith("block")]
    assert all(re.search(r"; within [0-9]+ ms$", line.strip()) for line in blocks), blocks[-1]
    assert [d["unspent"] for d in documents][-2:] == [True, False]
    assert documents[-2]["node"] == coin
    assert (documents[-2]["bits"], documents[-2]["balance"]) == (0.0, 50 * 10**8)
    hook.server.shutdown()
    hook.server.server_close()


def test_lists_of_coins_are_checked(tmp_path: Path) -> None:
    (tmp_path / "coins.txt").write_text("abc:0\n")
    with pytest.raises(LedgerError, match="no coin: name it txid:vout"):
        Watch.read(tmp_path / "coins.txt")
    with pytest.raises(InputError, match="cannot be read"):
        Watch.read(tmp_path / "none.txt")


def test_what_to_post_needs_coins_to_watch(tmp_path: Path) -> None:
    from coinhaze.cli import cli

    with pytest.raises(UsageError, match="give both"):
        cli.main(
            ["history", "follow", str(tmp_path), "--node", "bitcoin+http://127.0.0.1:1",
             "--post", "http://127.0.0.1:2"],
            standalone_mode=False,
        )  # fmt: skip
