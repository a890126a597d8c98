"""Anvil on loopback, a few lines of assembler for its contracts, and made-up answers of nodes."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from coinhaze.errors import SourceUnreachable
from coinhaze.nodes.rpc import JsonRpc
from nodes.daemons import find_program, free_port, running

MINER = "0x" + "c0" * 20
OPCODES = {
    "STOP": 0x00, "ADD": 0x01, "SUB": 0x03, "DIV": 0x04, "LT": 0x10, "EQ": 0x14, "SHR": 0x1C,
    "ADDRESS": 0x30, "CALLER": 0x33, "CALLVALUE": 0x34, "CALLDATALOAD": 0x35, "CODECOPY": 0x39,
    "SELFBALANCE": 0x47, "POP": 0x50, "MSTORE": 0x52, "SLOAD": 0x54, "SSTORE": 0x55, "JUMPI": 0x57,
    "GAS": 0x5A, "JUMPDEST": 0x5B, "DUP1": 0x80, "DUP2": 0x81, "SWAP1": 0x90, "LOG3": 0xA3,
    "CREATE": 0xF0, "CALL": 0xF1, "CALLCODE": 0xF2, "RETURN": 0xF3, "DELEGATECALL": 0xF4,
    "REVERT": 0xFD, "SELFDESTRUCT": 0xFF,
}  # fmt: skip


def assemble(source: str) -> bytes:
    """Turn opcodes, numbers to push (0x..) and labels (`:x` is here, `@x` pushes it) to code."""
    code, labels, holes = bytearray(), {}, []
    for token in source.split():
        if token.startswith(":"):
            labels[token[1:]] = len(code)
            code.append(OPCODES["JUMPDEST"])
        elif token.startswith("@"):
            holes.append((len(code) + 1, token[1:]))
            code += b"\x61\x00\x00"  # PUSH2
        elif token.startswith("0x"):
            digits = token[2:]
            number = bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits)
            code += bytes([0x5F + len(number)]) + number
        else:
            code.append(OPCODES[token])
    for place, name in holes:
        code[place : place + 2] = labels[name].to_bytes(2, "big")
    return bytes(code)


def creation(runtime: bytes, before: str = "") -> str:
    """Wrap code so that a transaction that creates a contract leaves it there."""
    start = assemble(before)
    size, place = len(runtime), len(start) + 15
    copy = assemble(f"0x{size:04x} 0x{place:04x} 0x00 CODECOPY 0x{size:04x} 0x00 RETURN")
    assert len(start) + len(copy) == place
    return "0x" + (start + copy + runtime).hex()


def send(to: str, amount: str, *, how: str = "CALL") -> str:
    """Write a call of another account, its answer dropped."""
    value = "" if how == "DELEGATECALL" else amount
    return f"0x00 0x00 0x00 0x00 {value} {to} GAS {how} POP"


TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
# Balances lie in the storage at the number that is the account's address.
TOKEN = assemble(f"""
    0x00 CALLDATALOAD 0xe0 SHR DUP1 0xa9059cbb EQ @transfer JUMPI
    0x70a08231 EQ @balance JUMPI 0x00 0x00 REVERT
    :balance 0x04 CALLDATALOAD SLOAD 0x00 MSTORE 0x20 0x00 RETURN
    :poor 0x00 0x00 REVERT
    :transfer 0x24 CALLDATALOAD CALLER SLOAD LT @poor JUMPI
    0x24 CALLDATALOAD CALLER SLOAD SUB CALLER SSTORE
    0x24 CALLDATALOAD 0x04 CALLDATALOAD SLOAD ADD 0x04 CALLDATALOAD SSTORE
    0x24 CALLDATALOAD 0x00 MSTORE
    0x04 CALLDATALOAD CALLER {TRANSFER} 0x20 0x00 LOG3
    0x01 0x00 MSTORE 0x20 0x00 RETURN
""")


def token_creation(supply: int) -> str:
    """Make a token whose whole supply the creator gets, with the log that says so."""
    return creation(
        TOKEN,
        f"0x{supply:064x} DUP1 CALLER SSTORE 0x00 MSTORE CALLER 0x00 {TRANSFER} 0x20 0x00 LOG3",
    )


def token_payment(to: str, amount: int) -> str:
    """Write the data of a call of `transfer`."""
    return f"0xa9059cbb{to[2:]:0>64}{amount:064x}"


class Anvil:
    """A chain of its own: transactions wait until `mine`."""

    def __init__(self, url: str) -> None:
        self.rpc = JsonRpc(url, retries=0, timeout=180)
        self.accounts: list[str] = self("eth_accounts")

    def __call__(self, method: str, *params: object) -> Any:
        return msgspec.json.decode(self.rpc.call(method, *params))

    def transact(self, sender: str, **fields: Any) -> str:
        """Send a transaction, whatever becomes of it."""
        fields = {"value": 0, "gas": 500_000} | fields
        given = {k: hex(v) if isinstance(v, int) else v for k, v in fields.items()}
        return str(self("eth_sendTransaction", {"from": sender} | given))

    def mine(self) -> int:
        """Make a block of what waits and give its height."""
        self("evm_mine")
        return self.height()

    def height(self) -> int:
        return int(self("eth_blockNumber"), 16)

    def create(self, sender: str, data: str, value: int = 0) -> str:
        """Create a contract in a block of its own and give its address."""
        txid = self.transact(sender, data=data, value=value)
        self.mine()
        receipt = self("eth_getTransactionReceipt", txid)
        assert receipt["status"] == "0x1", receipt
        return str(receipt["contractAddress"])

    def balance(self, account: str, height: int) -> int:
        return int(self("eth_getBalance", account, hex(height)), 16)


@contextmanager
def running_anvil(folder: Path, *options: str) -> Iterator[Anvil]:
    """Start a chain, and stop it at the end of the block."""
    port = str(free_port())
    command = [find_program("anvil"), "--host", "127.0.0.1", "--port", port, "--no-mining"]
    command += options
    with running(command, folder) as process:
        anvil = _connect(f"http://127.0.0.1:{port}", process)
        with anvil.rpc:
            anvil("anvil_setCoinbase", MINER)
            yield anvil


def _connect(url: str, process: subprocess.Popen[bytes]) -> Anvil:
    end = time.monotonic() + 300
    while True:
        try:
            return Anvil(url)
        except SourceUnreachable:
            if process.poll() is not None or time.monotonic() > end:
                raise
            time.sleep(0.05)


class FakeNode(JsonRpc):
    """A node whose answers are made by methods `eth_...` of a subclass, called in this process."""

    def __init__(self) -> None:
        self.node = "http://fake"
        self.calls: list[str] = []

    def call(self, method: str, /, *params: object, **named: object) -> bytes:
        self.calls.append(method)
        return msgspec.json.encode(getattr(self, method)(*params))

    def batch(self, calls: Any) -> list[bytes]:
        return [self.call(method, *params) for method, params in calls]

    def close(self) -> None: ...


def hash_of(number: int) -> str:
    return f"0x{number:064x}"


def account(number: int) -> str:
    return f"0x{number:040x}"


def made_block(height: int = 7, **changes: Any) -> dict[str, Any]:
    """Make up a block of mainnet's shape after Cancun, with two transactions and a withdrawal."""
    return {
        "number": hex(height),
        "hash": hash_of(1000 + height),
        "parentHash": hash_of(999 + height),
        "timestamp": "0x65000000",
        "miner": account(0xAA),
        "difficulty": "0x0",
        "baseFeePerGas": hex(10),
        "excessBlobGas": "0x0",
        "transactions": [
            {"hash": hash_of(1), "from": account(1), "to": account(2), "value": hex(500)},
            {"hash": hash_of(2), "from": account(3), "to": None, "value": hex(60)},
        ],
        "withdrawals": [{"address": account(9), "amount": hex(3)}],
        "uncles": [],
    } | changes


def made_receipts(height: int = 7, **changes: Any) -> list[dict[str, Any]]:
    """Make up the receipts of that block; changes are of the first."""
    common = {
        "blockHash": hash_of(1000 + height),
        "gasUsed": hex(100),
        "effectiveGasPrice": hex(12),
        "status": "0x1",
    }
    blobs = {"blobGasUsed": hex(1000), "blobGasPrice": hex(4)}
    first = common | blobs | {"transactionHash": hash_of(1), "contractAddress": None} | changes
    return [first, common | {"transactionHash": hash_of(2), "contractAddress": account(4)}]


def made_trace(height: int = 7) -> list[dict[str, Any]]:
    """Make up its traces by trace_block."""

    def trace(position: int, kind: str, path: list[int], **rest: Any) -> dict[str, Any]:
        return {
            "type": kind,
            "traceAddress": path,
            "transactionPosition": position,
            "transactionHash": hash_of(position + 1),
            "blockHash": hash_of(1000 + height),
            "blockNumber": height,
        } | rest

    def call(sender: int, to: int, value: int, how: str = "call") -> dict[str, Any]:
        return {
            "from": account(sender), "to": account(to), "value": hex(value), "callType": how
        }  # fmt: skip

    end = {"address": account(4), "refundAddress": account(8), "balance": hex(55)}
    return [
        trace(0, "call", [], action=call(1, 2, 500)),
        trace(0, "call", [0], action=call(2, 5, 30), error="Reverted"),
        trace(0, "call", [0, 0], action=call(5, 6, 20)),
        trace(0, "call", [1], action=call(2, 7, 500, "delegatecall")),
        trace(0, "call", [1, 0], action=call(2, 6, 1)),
        trace(1, "create", [], action=call(3, 0, 60), result={"address": account(4)}),
        trace(1, "call", [0], action=call(4, 6, 5)),
        trace(1, "suicide", [1], action=end, result=None),
    ]


def made_calls() -> list[dict[str, Any]]:
    """Make up the same traces by callTracer."""

    def call(kind: str, sender: int, to: int, value: int, **rest: Any) -> dict[str, Any]:
        return {
            "type": kind, "from": account(sender), "to": account(to), "value": hex(value)
        } | rest  # fmt: skip

    failed = call("CALL", 2, 5, 30, error="execution reverted", calls=[call("CALL", 5, 6, 20)])
    borrowed = call("DELEGATECALL", 2, 7, 500, calls=[call("CALL", 2, 6, 1)])
    ends = [call("CALL", 4, 6, 5), call("SELFDESTRUCT", 4, 8, 55)]
    return [
        {"txHash": hash_of(1), "result": call("CALL", 1, 2, 500, calls=[failed, borrowed])},
        {"txHash": hash_of(2), "result": call("CREATE", 3, 4, 60, calls=ends)},
    ]


def made_log(height: int, index: int, **changes: Any) -> dict[str, Any]:
    """Make up a log of a transfer of the token at address 0x..70."""
    return {
        "address": account(0x70),
        "topics": [TRANSFER, hash_of(index + 1), hash_of(index + 2)],
        "data": hash_of(10 + index),
        "blockNumber": hex(height),
        "blockHash": hash_of(1000 + height),
        "transactionHash": hash_of(height * 100 + index),
        "transactionIndex": hex(index),
        "logIndex": hex(index),
        "removed": False,
    } | changes
