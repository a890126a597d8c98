"""The files that a real node writes, held against what it answers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest

from coinhaze.formats.bitcoin_raw import blocks as bitcoin_blocks
from nodes.daemons import Daemon, bitcoin_daemon

Rows = list[dict[str, Any]]


@pytest.fixture
def node() -> Iterator[Daemon]:
    with bitcoin_daemon("bitcoind") as daemon:
        yield daemon


def read_copy(node: Daemon, folder: Path) -> dict[str, Rows]:
    """Read the files as they stand while the node runs."""
    for path in (node.folder / "regtest" / "blocks").glob("*.dat"):
        shutil.copy(path, folder)
    path = folder / "blk00000.dat"
    assert (folder / "rev00000.dat").is_file()
    assert any((folder / "xor.dat").read_bytes())
    assert bitcoin_blocks.recognises(path.read_bytes()[:4096])
    names = ("blocks", "stated_blocks", "transactions", "outputs", "inputs")
    tables: dict[str, Rows] = {name: [] for name in names}
    for batch in bitcoin_blocks.batches(path):
        for table, rows in batch.tables.items():
            tables[table] += rows.to_pylist()
    return tables


def answers(node: Daemon, height: int) -> dict[str, Any]:
    return cast(dict[str, Any], node.ask("getblock", node.text("getblockhash", height), 3))


def satoshi(coins: object) -> int:
    return round(Decimal(str(coins)) * 10**8)


def pay_every_kind(node: Daemon) -> None:
    """Make coins of each kind of address, and spend them all."""
    node.mine(105)
    for kind in ("legacy", "p2sh-segwit", "bech32", "bech32m"):
        node.ask("sendtoaddress", node.text("getnewaddress", "", kind), 3)
    node.mine(1)
    node.ask("sendall", [node.text("getnewaddress")])
    node.mine(3)


def test_rows_are_what_the_node_answers(node: Daemon, tmp_path: Path) -> None:
    pay_every_kind(node)
    read = read_copy(node, tmp_path)
    count = cast(int, node.ask("getblockcount"))
    assert [row["height"] for row in read["blocks"]] == list(range(count + 1))
    outputs, inputs = iter(read["outputs"]), iter(read["inputs"])
    for block in read["blocks"]:
        told = answers(node, block["height"])
        assert block["hash"] == told["hash"]
        assert block["time"] == told["time"]
        for tx in told["tx"]:
            for out in tx["vout"]:
                row = next(outputs)
                assert (row["txid"], row["value"]) == (tx["txid"], satoshi(out["value"]))
                address = out["scriptPubKey"].get("address")
                assert row["owner"] == address or out["scriptPubKey"]["type"] == "pubkey"
            for vin in tx["vin"] if "coinbase" not in tx["vin"][0] else []:
                row = next(inputs)
                assert (row["spent_txid"], row["spent_vout"]) == (vin["txid"], vin["vout"])
                assert row["value"] == satoshi(vin["prevout"]["value"])
                assert row["owner"] == vin["prevout"]["scriptPubKey"]["address"]
    assert next(outputs, None) is None
    assert next(inputs, None) is None
    assert len(read["inputs"]) > 8


def test_blocks_that_a_turn_of_the_chain_left_behind_are_left_out(
    node: Daemon, tmp_path: Path
) -> None:
    hashes = node.mine(20)
    node.ask("invalidateblock", hashes[14])
    kept = node.mine(9)
    names = [row["hash"] for row in read_copy(node, tmp_path)["blocks"]]
    assert len(names) == 1 + 14 + 9
    assert set(kept) <= set(names)
    assert not set(hashes[14:]) & set(names)
