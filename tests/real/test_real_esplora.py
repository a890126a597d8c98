"""Esplora against recorded answers: transactions of Bitcoin's mempool, as a server gave them.

Recorded, and real: the JSON of every transaction, with the coins it spends (`prevout`). Made here:
the bytes of `/tx/:txid/raw`, put together from the recorded parts (their ids prove them), the
answers to `/address/...`, in the documented shape and summed up from the recorded transactions, and
the hash of the first block.
"""

from __future__ import annotations

import json
import lzma
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coinhaze.formats.bitcoin_raw.networks import BITCOIN, script_of
from coinhaze.nodes.best_chain import NETWORKS
from coinhaze.nodes.esplora import EsploraServer
from coinhaze.nodes.servers import Claim, ServerTransactions
from coinhaze.nodes.transactions import TransactionCache
from formats.block_samples import compact, text, twice
from nodes.fakes import Fake, Reply, Request

Recorded = dict[str, dict[str, Any]]
FIRST = next(first for first, network in NETWORKS.items() if network == "bitcoin")


@pytest.fixture
def recorded(data: Path) -> Recorded:
    with lzma.open(data / "btc_mempool_esplora" / "mempool_8131.jsonl.xz") as file:
        rows = [json.loads(line) for line in file]
    return {row["txid"]: row for row in rows}


def raw(row: dict[str, Any]) -> bytes:
    """The bytes that a transaction's id is the hash of; witnesses were not recorded."""
    parts = [row["version"].to_bytes(4, "little"), compact(len(row["vin"]))]
    for spent in row["vin"]:
        parts += [bytes.fromhex(spent["txid"])[::-1], spent["vout"].to_bytes(4, "little")]
        parts += [text(bytes.fromhex(spent["scriptsig"])), spent["sequence"].to_bytes(4, "little")]
    parts.append(compact(len(row["vout"])))
    for paid in row["vout"]:
        script = text(bytes.fromhex(paid["scriptpubkey"]))
        parts += [paid["value"].to_bytes(8, "little"), script]
    return b"".join([*parts, row["locktime"].to_bytes(4, "little")])


class Served:
    """What a server with these transactions in its mempool answers."""

    def __init__(self, recorded: Recorded) -> None:
        self.recorded = recorded
        self.coins: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.met: Counter[str] = Counter()
        spent = {(vin["txid"], vin["vout"]) for r in recorded.values() for vin in r["vin"]}
        for txid, row in recorded.items():
            owners = {vin["prevout"].get("scriptpubkey_address") for vin in row["vin"]}
            for number, paid in enumerate(row["vout"]):
                owner = paid.get("scriptpubkey_address")
                owners.add(owner)
                if owner and (txid, number) not in spent:
                    coin = {"txid": txid, "vout": number, "value": paid["value"]}
                    self.coins[owner].append(coin | {"status": {"confirmed": False}})
            self.met.update(owner for owner in owners if owner)

    def answer(self, request: Request) -> Reply:
        _, api, kind, *rest = request.path.split("/")
        assert api == "api"
        if kind == "block-height":
            return Reply(body=FIRST.encode())
        if kind == "tx" and rest[0] in self.recorded and rest[1] == "raw":
            return Reply(body=raw(self.recorded[rest[0]]))
        if kind == "address" and rest[-1] == "utxo":
            return Reply(body=json.dumps(self.coins[rest[0]]).encode())
        if kind == "address":
            counts = {
                "chain_stats": {"tx_count": 0},
                "mempool_stats": {"tx_count": self.met[rest[0]]},
            }
            return Reply(body=json.dumps({"address": rest[0]} | counts).encode())
        return Reply(404, b"Transaction not found")


@pytest.fixture
def served(recorded: Recorded) -> Iterator[tuple[Served, str]]:
    fake, server = Fake(), Served(recorded)
    fake.answer = server.answer
    yield server, f"{fake.url}/api"
    fake.close()


def test_recorded_transactions_have_the_ids_that_their_bytes_prove(recorded: Recorded) -> None:
    assert len(recorded) == 8131
    for txid, row in recorded.items():
        assert twice(raw(row))[::-1].hex() == txid


def test_coins_spent_are_what_the_recorded_answers_say(
    recorded: Recorded, served: tuple[Served, str]
) -> None:
    """Values and owners found by walking back equal `prevout`, which is not asked for."""
    inner = [t for t, r in recorded.items() if all(v["txid"] in recorded for v in r["vin"])]
    assert len(inner) > 100
    with EsploraServer(served[1], retries=0) as server, TransactionCache(":memory:", "x") as cache:
        found = ServerTransactions(server, cache).transactions(inner)
    for transaction in found:
        row = recorded[transaction.txid]
        spent, paid = row["vin"], row["vout"]
        assert [(i.txid, i.vout, i.value) for i in transaction.inputs] == [
            (v["txid"], v["vout"], v["prevout"]["value"]) for v in spent
        ]
        assert [o.value for o in transaction.outputs] == [o["value"] for o in paid]
        owners = [c.address for c in transaction.inputs]
        owners += [c.address for c in transaction.outputs]
        for owner, coin in zip(owners, [*(v["prevout"] for v in spent), *paid], strict=True):
            # Esplora shows no address of bare keys; here they are named by those of their hashes.
            bare = coin["scriptpubkey"].endswith(("ac", "ae")) and owner is not None
            shown = coin.get("scriptpubkey_address")
            assert owner == shown or (shown is None and bare)


def test_coins_of_recorded_addresses_are_found(
    recorded: Recorded, served: tuple[Served, str]
) -> None:
    known, url = served
    addresses = sorted(known.coins)[:60]
    scripts = [script_of(address, BITCOIN) for address in addresses]
    held = [script for script in scripts if script is not None]
    assert len(held) == len(addresses)
    with EsploraServer(url, retries=0) as server:
        assert server.network == "bitcoin"
        assert server.used(held) == [True] * len(held)
        claims = server.unspent(held)
        unknown = server.used([bytes.fromhex("0014") + bytes(20)])
    assert unknown == [False]
    for address, coins in zip(addresses, claims, strict=True):
        expected = [Claim(c["txid"], c["vout"], c["value"]) for c in known.coins[address]]
        assert coins == expected
        for coin in coins:
            paid = recorded[coin.txid]["vout"][coin.vout]
            assert (paid["value"], paid["scriptpubkey_address"]) == (coin.value, address)
