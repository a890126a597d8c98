"""A chain of five blocks as bitcoin-etl and Blockchair write it."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

Record = dict[str, Any]
Spent = Sequence[tuple[str, int, int]]  # maker, number, value


def name(height: int, index: int) -> str:
    return f"{height * 10 + index:064x}"


def transaction(height: int, index: int, spent: Spent, values: Sequence[int]) -> Record:
    """A transaction that says of itself what is so; each output has an owner of its own."""
    return {
        "hash": name(height, index),
        "block_number": height,
        "block_hash": f"{height:064x}",
        "block_timestamp": 1_600_000_000 + 600 * height,
        "index": index,
        "is_coinbase": not spent,
        "input_count": len(spent),
        "output_count": len(values),
        "input_value": sum(value for _, _, value in spent),
        "output_value": sum(values),
        "inputs": [
            {
                "index": n,
                "spent_transaction_hash": maker,
                "spent_output_index": vout,
                "value": value,
                "type": "pubkeyhash",
                "addresses": ["somebody"],
            }
            for n, (maker, vout, value) in enumerate(spent)
        ],
        "outputs": [
            {
                "index": n,
                "value": value,
                "type": "pubkeyhash",
                "addresses": [f"{height}.{index}.{n}"],
            }
            for n, value in enumerate(values)
        ],
    }


def five_blocks() -> list[Record]:
    """Two coinbases are mixed in block 3, and what came of it is spent in block 4: 1 bit."""
    coinbases = [transaction(height, 0, [], [50]) for height in range(1, 6)]
    mix = transaction(3, 1, [(name(1, 0), 0, 50), (name(2, 0), 0, 50)], [60, 40])
    spend = transaction(4, 1, [(name(3, 1), 0, 60)], [60])
    return sorted([*coinbases, mix, spend], key=lambda r: (r["block_number"], r["index"]))


def write_etl(path: Path, records: Sequence[Record], *, without: Collection[int] = ()) -> Path:
    """Write transactions, those of some heights left out."""
    kept = [r for r in records if r["block_number"] not in without]
    path.write_text("".join(json.dumps(r) + "\n" for r in kept))
    return path


def write_blockchair(
    folder: Path, records: Sequence[Record], *, without: Collection[int] = ()
) -> Path:
    """Write the four tables of Blockchair, rows of some heights left out."""
    folder.mkdir()
    rows: dict[str, list[Record]] = {n: [] for n in ("blocks", "transactions", "outputs", "inputs")}
    kept = [r for r in records if r["block_number"] not in without]
    for height in sorted({r["block_number"] for r in kept}):
        inside = [r for r in kept if r["block_number"] == height]
        block = {"id": height, "hash": f"{height:064x}", "time": _time(inside[0])}
        block |= {"merkle_root": f"{height:064x}", "nonce": 0, "bits": 0}
        rows["blocks"].append(block | {"transaction_count": len(inside)})
    for r in kept:
        made = {
            "block_id": r["block_number"],
            "time": _time(r),
            "is_coinbase": int(r["is_coinbase"]),
        }
        made |= {"input_count": r["input_count"] or 1, "output_count": r["output_count"]}
        made |= {"input_total": r["input_value"], "output_total": r["output_value"]}
        rows["transactions"].append({"hash": r["hash"]} | made)
        for o in r["outputs"]:
            rows["outputs"].append(
                {"block_id": r["block_number"], "transaction_hash": r["hash"], "index": o["index"]}
                | {"time": _time(r), "value": o["value"], "recipient": o["addresses"][0]}
                | {"type": "pubkeyhash", "is_from_coinbase": int(r["is_coinbase"])}
                | {"is_spendable": -1}
            )
        for i in r["inputs"]:
            rows["inputs"].append(
                {"spending_block_id": r["block_number"], "index": i["spent_output_index"]}
                | {"transaction_hash": i["spent_transaction_hash"], "value": i["value"]}
                | {"recipient": "somebody", "spending_transaction_hash": r["hash"]}
                | {"spending_index": i["index"], "spending_time": _time(r)}
            )
    for table, some in rows.items():
        lines = ["\t".join(some[0]), *("\t".join(map(str, row.values())) for row in some)]
        (folder / f"{table}.tsv").write_text("\n".join(lines))
    return folder


def _time(record: Record) -> str:
    seconds = record["block_timestamp"] - 1_600_000_000
    return f"2020-09-13 {seconds // 3600:02}:{seconds // 60 % 60:02}:00"
