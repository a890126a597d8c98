"""Servers over a real node: ElectrumX, and a small one that answers as Esplora does."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nodes.daemons import Daemon, find_program, free_port, quick_folder, running
from nodes.fakes import Fake, Reply, Request


def self_signed(folder: Path, host: str = "127.0.0.1") -> tuple[Path, Path, str]:
    """Make a certificate that nobody signed; also give its fingerprint."""
    program = shutil.which("openssl")
    if not program:
        pytest.skip("no openssl: install it")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    kind = "IP" if re.fullmatch(r"[\d.]+", host) else "DNS"
    command = [program, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += [
        "-nodes",
        "-days",
        "30",
        "-subj",
        "/CN=test",
        "-addext",
        f"subjectAltName={kind}:{host}",
    ]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    from ssl import PEM_cert_to_DER_cert

    return key, certificate, sha256(PEM_cert_to_DER_cert(certificate.read_text())).hexdigest()


@dataclass(frozen=True)
class Electrum:
    """ElectrumX over a node: its addresses, and its certificate."""

    tcp: str
    ssl: str
    certificate: Path
    fingerprint: str
    node: Daemon

    def catch_up(self) -> None:
        """Wait until it has the node's last block."""
        from coinhaze.nodes.electrum import ElectrumServer

        wanted = self.node.ask("getblockcount")
        with ElectrumServer(self.tcp.removeprefix("electrum+")) as server:
            for _ in range(2400):
                if server.height() == wanted:
                    return
                time.sleep(0.05)
        raise AssertionError("ElectrumX does not follow its node")


@contextmanager
def electrum_server(node: Daemon) -> Iterator[Electrum]:
    """Start ElectrumX on free ports, over a node that has some blocks."""
    program = find_program("electrumx_server")
    with quick_folder() as folder:
        key, certificate, fingerprint = self_signed(folder)
        tcp, ssl, rpc = free_port(), free_port(), free_port()
        login = node.cookie.read_text().strip()
        settings = {
            "COIN": "Bitcoin",
            "NET": "regtest",
            "DB_DIRECTORY": str(folder),
            "DAEMON_URL": f"http://{login}@{node.url.removeprefix('http://')}/",
            "SERVICES": f"tcp://127.0.0.1:{tcp},ssl://127.0.0.1:{ssl},rpc://127.0.0.1:{rpc}",
            "SSL_CERTFILE": str(certificate),
            "SSL_KEYFILE": str(key),
            "PEER_DISCOVERY": "off",
            "ALLOW_ROOT": "1",
            "COST_SOFT_LIMIT": "0",
            "COST_HARD_LIMIT": "0",
        }
        with pytest.MonkeyPatch.context() as patch:
            for name, value in settings.items():
                patch.setenv(name, value)
            with running([program], folder) as process:
                _wait(process, (tcp, ssl), folder)
                yield Electrum(
                    f"electrum+tcp://127.0.0.1:{tcp}",
                    f"electrum+ssl://127.0.0.1:{ssl}",
                    certificate,
                    fingerprint,
                    node,
                )


def _wait(process: subprocess.Popen[bytes], ports: tuple[int, ...], folder: Path) -> None:
    end = time.monotonic() + 300
    waiting = list(ports)
    while waiting and time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", waiting[0]), 1).close()
            waiting.pop(0)
        except OSError:
            time.sleep(0.05)
    said = (folder / "said.txt").read_text(errors="replace")
    assert not waiting, f"ElectrumX did not start: {said[-2000:]}"
    assert os.getpid() != process.pid


class Esplora:
    """Esplora's API of a regtest node, answered by looking through all of its blocks."""

    def __init__(self, node: Daemon, fake: Fake) -> None:
        self.node = node
        self.fake = fake
        self.source = f"esplora+{fake.url}/api"
        fake.answer = self.answer

    def answer(self, request: Request) -> Reply:
        path = request.path.removeprefix("/api/")
        if path == request.path:
            return Reply(404, b"Not Found")
        found = re.fullmatch(
            r"address/(\w+)(/utxo)?|tx/(\w+)/raw|(block-height/0)|(blocks/tip/height)", path
        )
        if found is None:
            return Reply(404, b"Not Found")
        address, unspent, txid, first, tip = found.groups()
        if first:
            return Reply(body=self.node.text("getblockhash", 0).encode())
        if tip:
            return Reply(body=str(self.node.ask("getblockcount")).encode())
        if txid:
            try:
                return Reply(body=bytes.fromhex(self.node.text("getrawtransaction", txid)))
            except Exception:
                return Reply(404, b"Transaction not found")
        return self._json(self._utxo(address) if unspent else self._address(address))

    def _transactions(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        tip = self.node.ask("getblockcount")
        assert isinstance(tip, int)
        for height in range(1, tip + 1):
            name = self.node.text("getblockhash", height)
            raw = self.node.rpc.call("getblock", name, 3)
            block = json.loads(raw, parse_float=Decimal)
            status = {"confirmed": True, "block_height": height, "block_hash": name,
                      "block_time": block["time"]}  # fmt: skip
            yield from ((transaction, status) for transaction in block["tx"])
        for txid in self.node.ask("getrawmempool"):  # type: ignore[attr-defined]
            raw = self.node.rpc.call("getrawtransaction", txid, 2)
            yield json.loads(raw, parse_float=Decimal), {"confirmed": False}

    def _address(self, address: str) -> dict[str, Any]:
        counts = {True: 0, False: 0}
        for transaction, status in self._transactions():
            coins = [
                *transaction["vout"],
                *(i["prevout"] for i in transaction["vin"] if "prevout" in i),
            ]
            counts[status["confirmed"]] += any(_pays(coin, address) for coin in coins)
        stats = {
            "funded_txo_count": 0,
            "funded_txo_sum": 0,
            "spent_txo_count": 0,
            "spent_txo_sum": 0,
        }
        return {
            "address": address,
            "chain_stats": stats | {"tx_count": counts[True]},
            "mempool_stats": stats | {"tx_count": counts[False]},
        }

    def _utxo(self, address: str) -> list[dict[str, Any]]:
        spent, coins = set(), []
        for transaction, status in self._transactions():
            spent |= {(i["txid"], i["vout"]) for i in transaction["vin"] if "txid" in i}
            for coin in transaction["vout"]:
                if _pays(coin, address):
                    value = int(coin["value"] * 100_000_000)
                    coins.append({"txid": transaction["txid"], "vout": coin["n"], "status": status,
                                  "value": value})  # fmt: skip
        return [coin for coin in coins if (coin["txid"], coin["vout"]) not in spent]

    def _json(self, value: object) -> Reply:
        return Reply(body=msgspec.json.encode(value))


def _pays(coin: dict[str, Any], address: str) -> bool:
    return bool(coin["scriptPubKey"].get("address") == address)


@contextmanager
def esplora_server(node: Daemon) -> Iterator[Esplora]:
    fake = Fake()
    try:
        yield Esplora(node, fake)
    finally:
        fake.close()
