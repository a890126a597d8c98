"""Small files of Ethereum-like ledgers for tests, and what is read from them."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from coinhaze.ledger.batches import SCHEMAS, Batch

Row = dict[str, Any]
ZERO = "0x" + "0" * 40


def address(name: str) -> str:
    """Make an address that begins with a name's letters in hexadecimal."""
    return "0x" + name.encode().hex().ljust(40, "0")


def txid(number: int) -> str:
    return f"0x{number:064x}"


def transaction(**changes: Any) -> Row:
    row: Row = {
        "hash": txid(1),
        "nonce": 3,
        "block_hash": txid(0xB10C),
        "block_number": 100,
        "transaction_index": 2,
        "from_address": address("ann"),
        "to_address": address("bob"),
        "value": 10**20,
        "gas": 21000,
        "input": "0x",
        "block_timestamp": 1446561880,
    }
    return row | changes


def trace(**changes: Any) -> Row:
    row: Row = {
        "block_number": 100,
        "transaction_hash": txid(1),
        "transaction_index": 2,
        "from_address": address("ann"),
        "to_address": address("bob"),
        "value": 5,
        "input": "0x",
        "trace_type": "call",
        "call_type": "call",
        "reward_type": None,
        "trace_address": "",
        "error": None,
        "status": 1,
        "trace_id": None,
    }
    return row | changes


def reward(**changes: Any) -> Row:
    return (
        trace(
            transaction_hash=None,
            transaction_index=None,
            from_address=None,
            to_address=address("miner"),
            trace_type="reward",
            call_type=None,
            reward_type="block",
            trace_id="reward_100_0",
        )
        | changes
    )


def token_transfer(**changes: Any) -> Row:
    row: Row = {
        "token_address": address("token"),
        "from_address": address("ann"),
        "to_address": address("bob"),
        "value": 7,
        "transaction_hash": txid(1),
        "log_index": 4,
        "block_number": 100,
    }
    return row | changes


CALL = (
    "block_id", "transaction_hash", "index", "depth", "time", "failed", "fail_reason", "type",
    "sender", "recipient", "child_call_count", "value", "value_usd", "transferred", "input_hex",
    "output_hex",
)  # fmt: skip
BLOCKCHAIR_TRANSACTION = (
    "block_id", "index", "hash", "time", "failed", "type", "sender", "recipient", "call_count",
    "value", "value_usd", "internal_value", "internal_value_usd", "fee", "fee_usd", "gas_used",
    "gas_limit", "gas_price", "input_hex", "nonce", "v", "r", "s",
)  # fmt: skip
ERC20 = (
    "block_id", "transaction_hash", "time", "token_address", "token_name", "token_symbol",
    "token_decimals", "sender", "recipient", "value",
)  # fmt: skip


def bare(text: str) -> str:
    return text.removeprefix("0x")


def call(**changes: Any) -> Row:
    row: Row = dict.fromkeys(CALL) | {
        "block_id": 100,
        "transaction_hash": bare(txid(1)),
        "index": "0",
        "depth": 0,
        "time": "2019-12-12 00:00:57",
        "failed": 0,
        "type": "call",
        "sender": bare(address("ann")),
        "recipient": bare(address("bob")),
        "value": 5,
        "value_usd": "7.5462962962963e-7",
        "transferred": 1,
    }
    return row | changes


def coinbase_call(**changes: Any) -> Row:
    fields = {"transaction_hash": None, "type": "synthetic_coinbase", "sender": None}
    return call(**fields) | {"recipient": bare(address("miner"))} | changes


def blockchair_transaction(**changes: Any) -> Row:
    row: Row = dict.fromkeys(BLOCKCHAIR_TRANSACTION) | {
        "block_id": 100,
        "index": 2,
        "hash": bare(txid(1)),
        "time": "2019-12-12 00:00:57",
        "failed": 0,
        "type": "call",
        "sender": bare(address("ann")),
        "recipient": bare(address("bob")),
        "value": 5,
    }
    return row | changes


def erc20(**changes: Any) -> Row:
    row: Row = dict.fromkeys(ERC20) | {
        "block_id": 100,
        "transaction_hash": bare(txid(1)),
        "time": "2019-12-12 00:00:57",
        "token_address": bare(address("token")),
        "token_name": 'A "quoted" token',
        "sender": bare(address("ann")),
        "recipient": bare(address("bob")),
        "value": 5,
    }
    return row | changes


def csv_text(rows: Sequence[Mapping[str, Any]]) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def tsv_text(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Write as Blockchair does: tabs, no quotes, \\N for null, no line break at the end."""
    lines = ["\t".join(rows[0])]
    lines += ["\t".join("\\N" if v is None else str(v) for v in row.values()) for row in rows]
    return "\n".join(lines).encode()


def json_text(rows: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def parquet(path: Path, columns: dict[str, Any]) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def columns_of(rows: list[Row], **changes: pa.Array) -> dict[str, Any]:
    return {name: [row[name] for row in rows] for name in rows[0]} | changes


def transfers(reader: ModuleType, path: Path) -> list[Row]:
    """Read all transfers of a file, in the order of the ledger."""
    found = [b.tables["transfers"] for b in read(reader, path) if "transfers" in b.tables]
    rows = [row for table in found for row in table.to_pylist()]
    return sorted(rows, key=lambda r: (r["height"], r["position"], r["txid"], r["step"]))


def blocks(reader: ModuleType, path: Path) -> list[Row]:
    found = [b.tables["blocks"] for b in read(reader, path) if "blocks" in b.tables]
    return [row for table in found for row in table.to_pylist()]


def read(reader: ModuleType, path: Path) -> list[Batch]:
    """Read a file and hold every row against the rules of the schema."""
    found = list(reader.batches(path))
    for batch in found:
        for name, table in batch.tables.items():
            check(name, table)
            for row in {0, len(table) - 1} if len(table) else set():
                assert str(path) in batch.where(name, row)
    assert [b.read for b in found] == sorted(b.read for b in found)
    return found


def check(name: str, table: pa.Table) -> None:
    assert table.schema.equals(SCHEMAS[name])
    table.validate(full=True)
    for field in SCHEMAS[name]:
        assert field.nullable or table[field.name].null_count == 0, field.name
    for row in table.to_pylist():
        assert 0 <= row["height"] < 2**31
        assert row["time"] is None or row["time"] >= 0
        if name == "transfers":
            check_transfer(row)
        else:
            assert re.fullmatch("0x[0-9a-f]{64}", row["hash"])


def check_transfer(row: Row) -> None:
    assert 0 <= row["position"] < 2**31
    assert row["step"] >= 0
    assert re.fullmatch("0|[1-9][0-9]{0,77}", row["amount"])
    assert 0 < int(row["amount"]) < 2**256
    assert re.fullmatch("0x[0-9a-f]{64}|[0-9]+:[0-9]+|[a-z]+:[0-9]+", row["txid"])
    assert re.fullmatch("0x[0-9a-f]{40}", row["sender"])
    assert re.fullmatch("0x[0-9a-f]{40}|created by 0x[0-9a-f]{64}", row["recipient"])
    assert re.fullmatch("(0x[0-9a-f]{40}|unnamed)?", row["token"])
    assert row["kind"] in {
        "transaction", "call", "create", "selfdestruct", "reward", "uncle", "genesis",
        "withdrawal", "token",
    }  # fmt: skip


# What `transaction` is read as.
EXPECTED = {
    "height": 100,
    "position": 2,
    "step": 0,
    "txid": txid(1),
    "token": "",
    "sender": address("ann"),
    "recipient": address("bob"),
    "amount": str(10**20),
    "kind": "transaction",
    "time": 1446561880,
}
