"""The files and the node that command blocks of the documentation refer to, in small."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from pathlib import Path

from formats.block_samples import pay_to_key_hash
from formats.psbt_samples import record, transaction
from ledger import etl_chain
from nodes.fakes import FakeNode

FIRST, LAST = 800_000, 800_143
REWARD = 625_000_000


def name(height: int, index: int) -> str:
    """Return the id of a transaction; index 0 is the coinbase."""
    return etl_chain.name(height, index)


def owner(height: int, index: int, vout: int) -> str:
    return f"owner-{height}-{index}-{vout}"


class Heights(list[str]):
    """The hash of every block from height 0 on, none of them stored."""

    def __len__(self) -> int:
        return LAST + 1

    def __getitem__(self, height: object) -> str:  # type: ignore[override]
        assert isinstance(height, int)
        return f"{height % len(self):064x}"


def node() -> FakeNode:
    """Return a node of Bitcoin with a day of blocks; each mixes a new coin with an older one."""
    blocks = {f"{height:064x}": _block(height) for height in range(FIRST, LAST + 1)}
    found = FakeNode([], blocks)
    found.hashes = Heights()
    return found


def _block(height: int) -> str:
    payments = [_transaction(height, 0, [{"coinbase": "51"}], [REWARD])]
    if height > FIRST:
        coins = [(name(height - 1, 0), 0, REWARD)]
        if height > FIRST + 1:
            coins.append((name(height - 1, 1), 0, _mixed(height - 1)))
        spent: list[Mapping[str, object]] = [{"txid": t, "vout": v} for t, v, _ in coins]
        rest = sum(value for *_, value in coins) - 1_000 - _mixed(height)
        payments.append(_transaction(height, 1, spent, [_mixed(height), rest]))
    return json.dumps(
        {
            "hash": f"{height:064x}",
            "previousblockhash": f"{height - 1:064x}",
            "height": height,
            "time": 1_690_000_000 + 600 * (height - FIRST),
            "nTx": len(payments),
            "confirmations": 1,
            "tx": payments,
        }
    )


def _mixed(height: int) -> int:
    return 400_000_000 + height % 7 * 1_000_000


def _transaction(
    height: int, index: int, vin: list[Mapping[str, object]], values: list[int]
) -> dict[str, object]:
    return {
        "txid": name(height, index),
        "vin": vin,
        "vout": [
            {
                "n": vout,
                "value": value / 10**8,
                "scriptPubKey": {
                    "type": "pubkeyhash",
                    "hex": pay_to_key_hash(height % 251).hex(),
                    "address": owner(height, index, vout),
                },
            }
            for vout, value in enumerate(values)
        ],
    }


def write_dumps(folder: Path) -> None:
    """Write Blockchair's tables of the five blocks before the node's."""
    records = []
    for height in range(FIRST - 5, FIRST):
        records.append(etl_chain.transaction(height, 0, [], [REWARD]))
        records[-1]["block_timestamp"] = 1_600_000_000 + 600 * (height - FIRST + 5)
    spent = [(name(FIRST - 5, 0), 0, REWARD)]
    payment = etl_chain.transaction(FIRST - 1, 1, spent, [REWARD - 5_000])
    payment["block_timestamp"] = records[-1]["block_timestamp"]
    tables = etl_chain.write_blockchair(folder / "dumps", [*records, payment])
    for table in sorted(tables.iterdir()):
        packed = folder / f"blockchair_bitcoin_{table.stem}_20230723.tsv.gz"
        packed.write_bytes(gzip.compress(table.read_bytes()))
        table.unlink()
    tables.rmdir()


def write_lists(folder: Path) -> None:
    """Write lists of a wallet's coins, of addresses and of owners, and a transaction to sign."""
    coins = [(name(height, 1), 1) for height in (FIRST + 20, FIRST + 60, FIRST + 100)]
    (folder / "mine.txt").write_text("".join(f"{txid}:{vout}\n" for txid, vout in coins))
    (folder / "known.txt").write_text(owner(FIRST + 60, 1, 1) + "\n")
    (folder / "sanctioned.txt").write_text(owner(FIRST + 2, 0, 0) + "\n")
    (folder / "owners.csv").write_text(
        "address,cluster\n"
        + "".join(f"{owner(h, 1, 1)},person{h % 3}\n" for h in range(FIRST + 1, LAST + 1))
    )
    (folder / "labels.csv").write_text(f"address,label\n{owner(FIRST + 2, 0, 0)},a miner\n")
    spends = [(bytes.fromhex(txid)[::-1], vout) for txid, vout in coins[:2]]
    unsigned = transaction(spends, [(5_000_000, pay_to_key_hash(3))])
    psbt = b"psbt\xff" + record(0, unsigned) + b"\0" * (len(spends) + 2)
    (folder / "draft.psbt").write_bytes(base64.b64encode(psbt))
