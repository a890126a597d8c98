"""monerod and a wallet on loopback, and made-up answers of a node."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from coinhaze.errors import SourceUnreachable
from coinhaze.nodes.rpc import JsonRpc
from nodes.daemons import find_program, free_port, running


@dataclass
class Monero:
    """A chain of its own with a wallet that gets what is mined."""

    rpc: JsonRpc
    wallet: JsonRpc
    url: str
    address: str = ""

    def ask(self, method: str, **params: object) -> Any:
        return msgspec.json.decode(self.rpc.call(method, **params))

    def tell(self, method: str, **params: object) -> Any:
        """Tell the wallet."""
        return msgspec.json.decode(self.wallet.call(method, **params))

    def mine(self, blocks: int = 1) -> int:
        for start in range(0, blocks, 10):  # a busy machine takes long for a hundred
            some = min(10, blocks - start)
            self.ask("generateblocks", amount_of_blocks=some, wallet_address=self.address)
        return int(self.ask("get_info")["height"]) - 1

    def send(self, amount: int) -> str:
        """Send money back to the wallet, and give the transaction's id."""
        self.tell("refresh")
        to = [{"address": self.address, "amount": amount}]
        return str(self.tell("transfer", destinations=to, ring_size=16)["tx_hash"])


@contextmanager
def running_monero(folder: Path) -> Iterator[Monero]:
    """Start a node and a wallet, and stop both at the end of the block."""
    programs = find_program("monerod"), find_program("monero-wallet-rpc")
    port, peers, purse = str(free_port()), str(free_port()), str(free_port())
    node = [programs[0], "--regtest", "--offline", "--fixed-difficulty", "1", "--non-interactive"]
    node += ["--data-dir", str(folder / "chain"), "--rpc-bind-port", port, "--no-zmq", "--no-igd"]
    node += ["--p2p-bind-ip", "127.0.0.1", "--p2p-bind-port", peers, "--check-updates", "disabled"]
    node += ["--disable-dns-checkpoints", "--log-file", str(folder / "node.log")]
    wallet = [programs[1], "--rpc-bind-port", purse, "--disable-rpc-login", "--no-dns"]
    wallet += ["--wallet-dir", str(folder), "--daemon-address", f"127.0.0.1:{port}"]
    wallet += ["--trusted-daemon", "--log-file", str(folder / "wallet.log")]
    wallet += ["--shared-ringdb-dir", str(folder / "rings"), "--non-interactive"]
    (folder / "purse").mkdir()
    url = f"http://127.0.0.1:{port}"
    with (
        running(node, folder) as first,
        running(wallet, folder / "purse") as second,
        JsonRpc(f"{url}/json_rpc", retries=0, timeout=180) as rpc,
        JsonRpc(f"http://127.0.0.1:{purse}/json_rpc", retries=0, timeout=180) as purse_rpc,
    ):
        monero = Monero(rpc, purse_rpc, url)
        _until_ready(lambda: monero.ask("get_version"), lambda: first.poll() is None)
        _until_ready(lambda: monero.tell("get_version"), lambda: second.poll() is None)
        monero.tell("create_wallet", filename="wallet", language="English")
        monero.address = str(monero.tell("get_address", account_index=0)["address"])
        yield monero


def _until_ready(ask: Callable[[], object], alive: Callable[[], bool], seconds: int = 300) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            ask()
        except SourceUnreachable:
            assert alive(), "it ended before it answered"
            assert time.monotonic() < end, "it does not answer"
            time.sleep(0.1)
        else:
            return


def txid_of(number: int) -> str:
    return f"{number:064x}"


class MadeUpNode(JsonRpc):
    """A node of made-up blocks: each has a coinbase, and from the fifth on a ring of three."""

    def __init__(self) -> None:
        self.node = "http://fake"
        self.asked: list[str] = []
        self.change: Callable[[str, Any], Any] = lambda path, answer: answer
        self.spoil: Callable[[bytes], bytes] = lambda raw: raw

    def post(self, path: str, body: Any) -> bytes:
        name = body["method"] if path == "/json_rpc" else path
        self.asked.append(name)
        answer: Any = {"status": "OK", "untrusted": False}
        answer |= getattr(self, name.strip("/"))(
            **(body["params"] if path == "/json_rpc" else body)
        )
        answer = self.change(name, answer)
        if path == "/json_rpc":
            answer = {"jsonrpc": "2.0", "id": "0", "result": answer}
        return self.spoil(msgspec.json.encode(answer))

    def close(self) -> None: ...

    def get_info(self) -> dict[str, Any]:
        return {"height": 101}

    def get_block_header_by_height(self, height: int) -> dict[str, Any]:
        return {
            "block_header": {
                "height": height,
                "hash": txid_of(10_001 + height),
                "prev_hash": txid_of(10_000 + height),
                "timestamp": 1_400_000_000 + height,
                "miner_tx_hash": txid_of(100 + height),
            }
        }

    def get_block(self, height: int) -> dict[str, Any]:
        spends = [txid_of(500 + height)] if height >= 5 else []
        # monerod leaves empty lists out.
        return self.get_block_header_by_height(height) | ({"tx_hashes": spends} if spends else {})

    def transaction(self, number: int) -> dict[str, Any]:
        """Make up a transaction: coinbases make one coin, others two; two old blocks are v1."""
        coinbase = number < 500
        height = number - (100 if coinbase else 500)
        old = height < 2
        vin: Any = {"gen": {"height": height}}
        if not coinbase:
            vin = {"key": {"amount": 0, "key_offsets": [height - 3, 1, 1], "k_image": "aa"}}
        indices = [height] if coinbase else [1000 + 2 * height, 1001 + 2 * height]
        body = {
            "version": 1 if old else 2,
            "vin": [vin],
            "vout": [{"amount": 70 if coinbase else 0, "target": {"key": "ab"}} for _ in indices],
        }
        return {
            "tx_hash": txid_of(number),
            "as_json": msgspec.json.encode(body).decode(),
            "block_height": height,
            "in_pool": False,
            "output_indices": indices,
        }

    def get_transactions(self, txs_hashes: list[str], **_: object) -> dict[str, Any]:
        assert len(txs_hashes) <= 100
        return {"txs": [self.transaction(int(t, 16)) for t in txs_hashes]}

    def get_outs(self, outputs: list[dict[str, int]], **_: object) -> dict[str, Any]:
        assert len(outputs) <= 5000
        outs = [{"height": o["index"], "txid": txid_of(100 + o["index"])} for o in outputs]
        return {"outs": outs} if outs else {}
