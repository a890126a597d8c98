"""Real nodes, started on free ports of loopback in folders of their own, and stopped by process."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from coinhaze.errors import SourceUnreachable
from coinhaze.nodes.http import Credentials
from coinhaze.nodes.rpc import JsonRpc


def find_program(name: str) -> str:
    """Find a node's program where .ci/install-nodes puts it, or on the path; skip without it."""
    folder = os.environ.get("COINHAZE_NODES") or Path.home() / ".cache" / "coinhaze-nodes"
    found = shutil.which(name, path=str(Path(folder) / "bin")) or shutil.which(name)
    if not found:
        pytest.skip(f"no {name}: .ci/install-nodes fetches it")
    return found


def free_port() -> int:
    """Find a port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def quick_folder() -> Iterator[Path]:
    """Make a folder in memory where there is room: wallets wait for the disk at every block."""
    memory = Path("/dev/shm")
    roomy = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 1 << 30
    with tempfile.TemporaryDirectory(dir=memory if roomy else None) as folder:
        yield Path(folder)


@contextmanager
def running(command: Sequence[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a node until the end of the block; what it says goes to a file in its folder."""
    with open(folder / "said.txt", "wb") as said:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(120)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@dataclass(frozen=True)
class Daemon:
    """A regtest node of Bitcoin's family with a wallet, told what to do over its own RPC."""

    rpc: JsonRpc
    url: str
    folder: Path

    @property
    def cookie(self) -> Path:
        return self.folder / "regtest" / ".cookie"

    def ask(self, method: str, *params: object) -> object:
        return msgspec.json.decode(self.rpc.call(method, *params))

    def text(self, method: str, *params: object) -> str:
        answer = self.ask(method, *params)
        assert isinstance(answer, str)
        return answer

    def send(self, address: str, amount: str) -> str:
        """Pay from a wallet that has seen all blocks; the payment waits to be mined."""
        self.ask("syncwithvalidationinterfacequeue")
        txid = self.text("sendtoaddress", address, amount)
        if txid not in self.ask("getrawmempool"):  # type: ignore[operator]
            sent = self.ask("gettransaction", txid)
            assert isinstance(sent, dict)
            assert self.text("sendrawtransaction", sent["hex"]) == txid
        return txid

    def mine(self, blocks: int, address: str | None = None) -> list[str]:
        to = address or self.text("getnewaddress")
        hashes: list[str] = []
        while len(hashes) < blocks:
            some = self.ask("generatetoaddress", min(blocks - len(hashes), 100), to)
            assert isinstance(some, list)
            hashes += some
        return hashes


@contextmanager
def bitcoin_daemon(program: str, *options: str) -> Iterator[Daemon]:
    """Start a regtest node of Bitcoin's family and a wallet in it."""
    with quick_folder() as folder, started(program, folder, free_port(), *options) as daemon:
        daemon.ask("createwallet", "purse")
        yield daemon


@contextmanager
def started(program: str, folder: Path, port: int, *options: str) -> Iterator[Daemon]:
    """Start a regtest node of Bitcoin's family in a folder; another may have run there before."""
    command = [find_program(program), "-regtest", f"-datadir={folder}", f"-rpcport={port}"]
    command += ["-server", "-listen=0", "-dnsseed=0", "-fallbackfee=0.0001", "-printtoconsole=0"]
    with running([*command, *options], folder) as process:
        url = f"http://127.0.0.1:{port}"
        with _when_ready(process, url, folder) as rpc:
            yield Daemon(rpc, url, folder)


def _when_ready(
    process: subprocess.Popen[bytes], url: str, folder: Path, seconds: float = 300
) -> JsonRpc:
    cookie = folder / "regtest" / ".cookie"
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        if cookie.exists() and cookie.stat().st_size:
            rpc = JsonRpc(url, credentials=Credentials.from_cookie(cookie), timeout=120)
            try:
                rpc.call("getblockcount")
            except SourceUnreachable:
                rpc.close()
            else:
                return rpc
        time.sleep(0.05)
    said = (folder / "said.txt").read_text(errors="replace")
    raise AssertionError(f"{process.args!r} did not start: {said[-2000:]}")
