"""Small files of coin ledgers in JSON, and their rows as the obvious twin reads them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from decimal import Decimal
from types import ModuleType
from typing import Any

import pyarrow as pa

from coinhaze.formats.bitcoin_etl import batches as bitcoin_etl_batches
from coinhaze.formats.json import bitcoin as bitcoin_json
from coinhaze.formats.json import esplora
from coinhaze.ledger.batches import SCHEMAS, Batch

GENESIS = "4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b"
Record = dict[str, Any]
Tables = dict[str, list[Record]]


def txid(number: int) -> str:
    return f"{number:064x}"


def rows(batches: Iterable[Batch]) -> Tables:
    """All rows of all batches, in an order that does not depend on how they were cut."""
    found: dict[str, list[pa.Table]] = {}
    for batch in batches:
        for name, table in batch.tables.items():
            table.validate(full=True)
            assert table.schema.equals(SCHEMAS[name])
            found.setdefault(name, []).append(table)
    return {name: ordered(pa.concat_tables(t).to_pylist()) for name, t in found.items()}


def ordered(table: Iterable[Record]) -> list[Record]:
    unique = {repr(sorted(row.items())): row for row in table}
    return [unique[key] for key in sorted(unique)]


def lines(records: Iterable[Record]) -> bytes:
    return b"".join(json.dumps(r, separators=(",", ":")).encode() + b"\n" for r in records)


# Esplora


def coin(value: object, address: str | None = "a", script: str = "0014") -> Record:
    made = {"scriptpubkey": script, "scriptpubkey_type": "v0_p2wpkh", "value": value}
    return made if address is None else made | {"scriptpubkey_address": address}


def spend(number: int, vout: object = 0, prevout: Record | None = None) -> Record:
    return {"txid": txid(number), "vout": vout, "prevout": prevout, "is_coinbase": False}


def mint() -> Record:
    return {"txid": txid(0), "vout": 2**32 - 1, "prevout": None, "is_coinbase": True}


def confirmed(height: object, time: object = 1231006505) -> Record:
    name = txid(height) if isinstance(height, int) and height >= 0 else "bb"
    return {"confirmed": True, "block_height": height, "block_hash": name, "block_time": time}


def payment(number: int, vin: list[Record], vout: list[Record], status: object = None) -> Record:
    made = {"txid": txid(number), "version": 2, "vin": vin, "vout": vout}
    return made if status is None else made | {"status": status}


ESPLORA = [
    payment(1, [mint()], [coin(50, "miner"), coin(0, None, "6a24aa")], confirmed(7)),
    payment(2, [spend(1, 0, coin(50, "miner"))], [coin(20, "a"), coin(29, None)], confirmed(8)),
    payment(3, [spend(2, 1), spend(99, 5, coin(3, None))], [coin(31, "b")], {"confirmed": False}),
    payment(4, [spend(3, 0, coin(31, "b"))], [coin(30, "c")]),
]


def twin_of_esplora(records: list[Record]) -> Tables:
    """Rows one by one, as the docstring of the reader tells them."""
    status = [r.get("status") or {"confirmed": False} for r in records]
    tip = max((s["block_height"] for s in status if s["confirmed"]), default=-1)
    found: Tables = {"transactions": [], "outputs": [], "inputs": [], "blocks": []}
    for record, s in zip(records, status, strict=True):
        height = s["block_height"] if s["confirmed"] else tip + 1
        time = s.get("block_time")
        key = {"height": height, "txid": record["txid"]}
        minted = record["vin"][0]["is_coinbase"]
        position = 0 if minted else None
        found["transactions"].append(key | {"coinbase": minted, "position": position, "time": time})
        if s.get("block_hash"):
            found["blocks"].append(
                {"height": height, "hash": s["block_hash"], "previous": None, "time": time}
            )
        for n, o in enumerate(record["vout"]):
            data = o["scriptpubkey"].startswith("6a")
            found["outputs"].append(
                key
                | {
                    "vout": n,
                    "spendable": not data and not (minted and height == 0),
                    "value": o["value"],
                    "owner": o.get("scriptpubkey_address"),
                }
            )
        for n, i in enumerate([] if minted else record["vin"]):
            prevout = i["prevout"] or {}
            spent = {"vin": n, "spent_txid": i["txid"], "spent_vout": i["vout"]}
            known = {
                "value": prevout.get("value"),
                "owner": prevout.get("scriptpubkey_address"),
            }
            found["inputs"].append(key | spent | known)
    return {name: ordered(table) for name, table in found.items() if table}


# bitcoin-etl


def etl_end(value: object, *addresses: str, index: object = 0, **more: object) -> Record:
    return {"index": index, "type": "pubkeyhash", "addresses": list(addresses), "value": value} | (
        more
    )


def etl_input(number: int, vout: object, value: object, *addresses: str, **more: object) -> Record:
    spent = {"spent_transaction_hash": txid(number), "spent_output_index": vout}
    return etl_end(value, *addresses) | spent | more


def etl(
    number: int, height: object, inputs: list[Record], outputs: list[Record], **m: Any
) -> Record:
    return {
        "hash": txid(number),
        "block_number": height,
        "block_hash": f"b{height}",
        "block_timestamp": 1231006505,
        "is_coinbase": not inputs,
        "index": 0 if not inputs else 1,
        "inputs": inputs,
        "outputs": outputs,
        "fee": -20240000,
    } | m


ETL = [
    etl(1, 5, [], [etl_end(50, "m", script_hex="76a9")]),
    etl(
        2,
        6,
        [
            etl_input(1, 0, None, type=None),
            etl_input(9, 3, 7, "x", index=1),
            etl_end(4, type="shielded", index=2),
        ],
        [
            etl_end(20, "b", "a", "b", type="multisig"),
            etl_end(0, type="nulldata", index=1),
            etl_end(30, "c", index=2, script_hex="6a00"),
            etl_end(9, type="shielded", index=3),
            etl_end(1, index=4, type="nonstandard"),
        ],
    ),
]


def twin_of_etl(records: list[Record]) -> Tables:
    found: Tables = {
        name: [] for name in ("blocks", "transactions", "outputs", "inputs", "pool_flows")
    }
    for r in records:
        height, time = r["block_number"], r["block_timestamp"]
        key = {"height": height, "txid": r["hash"]}
        found["transactions"].append(
            key | {"coinbase": r["is_coinbase"], "position": r["index"], "time": time}
        )
        found["blocks"].append(
            {"height": height, "hash": r["block_hash"], "previous": None, "time": time}
        )
        into = 0
        for o in r["outputs"]:
            if o["type"] == "shielded":
                into += o["value"]
                continue
            data = o["type"] == "nulldata" or str(o.get("script_hex")).startswith("6a")
            found["outputs"].append(
                key
                | {"vout": o["index"], "spendable": not data, "value": o["value"]}
                | {"owner": ",".join(sorted(set(o["addresses"]))) or None}
            )
        for i in r["inputs"]:
            if i["type"] == "shielded":
                into -= i["value"]
                continue
            coin = {
                "spent_txid": i["spent_transaction_hash"],
                "spent_vout": i["spent_output_index"],
            }
            owner = ",".join(sorted(set(i["addresses"]))) or None
            found["inputs"].append(
                key | {"vin": i["index"]} | coin | {"value": i["value"], "owner": owner}
            )
        if into:
            found["pool_flows"].append(key | {"pool": "shielded", "into_pool": into})
    return {name: ordered(table) for name, table in found.items() if table}


# getblock


def script(address: str | None = "a", **more: object) -> Record:
    made = {"asm": "", "hex": "0014", "type": "witness_v0_keyhash"} | more
    return made if address is None else made | {"address": address}


def paid(value: object, n: int = 0, address: str | None = "a", **more: object) -> Record:
    return {"value": value, "n": n, "scriptPubKey": script(address, **more)}


def core(number: int, vin: list[Record], vout: list[Record]) -> Record:
    return {"txid": txid(number), "hash": txid(number + 1000), "vin": vin, "vout": vout}


def block(height: int, tx: list[Record], **more: object) -> Record:
    return {
        "hash": txid(height + 70),
        "confirmations": 3,
        "height": height,
        "merkleroot": txid(5),
        "time": 1700000000 + height,
        "difficulty": 4.656542373906925e-10,
        "nTx": len(tx),
        "previousblockhash": txid(height + 69),
        "tx": tx,
    } | more


CORE_MINT = {"coinbase": "04ff", "sequence": 4294967295}
BLOCKS = [
    block(7, [core(1, [CORE_MINT], [paid(25.0), paid(0, 1, None, hex="6a24", type="nulldata")])]),
    block(
        8,
        [
            core(2, [CORE_MINT], [paid(25.00473021)]),
            core(
                3,
                [
                    {"txid": txid(1), "vout": 0},
                    {
                        "txid": txid(77),
                        "vout": 4,
                        "prevout": {"value": 1e-08, "scriptPubKey": script("p")},
                    },
                ],
                [paid(0.1, 0, None, addresses=["z", "y"]), paid(1.5e-07, 1, None)],
            ),
        ],
    ),
]


def twin_of_blocks(text: bytes) -> Tables:
    names = ("blocks", "stated_blocks", "transactions", "outputs", "inputs")
    found: Tables = {name: [] for name in names}
    for line in text.splitlines():
        b = json.loads(line, parse_float=Decimal)
        told = {"height": b["height"], "time": b["time"]}
        found["blocks"].append(told | {"hash": b["hash"], "previous": b["previousblockhash"]})
        stated = {"transaction_count": b.get("nTx"), "merkle_root": b.get("merkleroot")}
        if any(stated.values()):
            found["stated_blocks"].append({"height": b["height"]} | stated)
        for place, t in enumerate(b["tx"]):
            found["transactions"].append(
                told | {"txid": t["txid"], "coinbase": place == 0, "position": place}
            )
            key = {"height": b["height"], "txid": t["txid"]}
            for o in t["vout"]:
                data = o["scriptPubKey"]["hex"].startswith("6a")
                lost = data or (place == 0 and b["height"] == 0)
                found["outputs"].append(key | {"vout": o["n"], "spendable": not lost} | seen(o))
            for n, i in enumerate(t["vin"] if place else []):
                spent = {"vin": n, "spent_txid": i["txid"], "spent_vout": i["vout"]}
                found["inputs"].append(key | spent | seen(i.get("prevout")))
    return {name: ordered(in_order(name, table)) for name, table in found.items() if table}


def seen(o: Record | None) -> Record:
    if o is None:
        return {"value": None, "owner": None}
    s = o["scriptPubKey"]
    owner = s.get("address") or ",".join(sorted(set(s.get("addresses", [])))) or None
    return {"value": int(o["value"] * 100_000_000), "owner": owner}


def in_order(name: str, table: Iterable[Record]) -> Iterator[Record]:
    return ({f.name: row[f.name] for f in SCHEMAS[name]} for row in table)


READERS: dict[str, tuple[ModuleType, bytes]] = {
    "esplora": (esplora, lines(ESPLORA)),
    "etl": (bitcoin_etl_batches, lines(ETL)),
    "getblock": (bitcoin_json, lines(BLOCKS)),
}
