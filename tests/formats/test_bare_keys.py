"""Coins of bare keys: one owner, whichever way a block came."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coinhaze.errors import LedgerError
from coinhaze.formats.bitcoin_raw.networks import BITCOIN, BITCOIN_MAGICS, Network
from coinhaze.formats.bitcoin_raw.scripts import owners_of
from coinhaze.formats.compression import open_plain
from coinhaze.formats.json import bitcoin as bitcoin_json
from coinhaze.formats.json import esplora
from coinhaze.formats.json.records import RecordFormat
from formats.block_samples import ODD_SCRIPTS
from formats.json_samples import (
    CORE_MINT,
    Record,
    block,
    core,
    lines,
    payment,
    rows,
    spend,
    txid,
)

KEY_HASH = bytes.fromhex("76a914" + "11" * 20 + "88ac")
SCRIPT_HASH = bytes.fromhex("a914" + "11" * 20 + "87")
KEYS = {"p2pk": "pubkey", "multisig": "multisig"}
TESTNET = next(n for n in BITCOIN_MAGICS.values() if n.name == "bitcoin testnet3")


def owner(script: bytes, network: Network) -> str:
    name: str = owners_of([script], network)[0][0].as_py()
    return name


def paid(n: int, script: bytes, kind: str, address: str | None = None) -> Record:
    shown = {"hex": script.hex(), "type": kind} | ({} if address is None else {"address": address})
    return {"value": 1, "n": n, "scriptPubKey": shown}


def key_hash(n: int, network: Network) -> Record:
    return paid(n, KEY_HASH, "pubkeyhash", owner(KEY_HASH, network))


def read(path: Path, blocks: list[Record]) -> dict[str, list[str | None]]:
    path.write_bytes(lines(blocks))
    found = rows(bitcoin_json.batches(path))
    keys = {"outputs": ("height", "txid", "vout"), "inputs": ("height", "txid", "vin")}
    return {
        name: [row["owner"] for row in sorted(found[name], key=lambda r: [r[k] for k in by])]
        for name, by in keys.items()
        if name in found
    }


@pytest.mark.parametrize("network", BITCOIN_MAGICS.values(), ids=lambda n: n.name)
@pytest.mark.parametrize("kind", KEYS)
def test_blocks_of_getblock_name_owners_as_raw_blocks_do(
    tmp_path: Path, network: Network, kind: str
) -> None:
    bare = paid(0, ODD_SCRIPTS[kind], KEYS[kind])
    spending = {"txid": txid(7), "vout": 0, "prevout": bare}
    blocks = [
        block(7, [core(1, [CORE_MINT], [bare])]),
        block(8, [core(2, [CORE_MINT], [key_hash(0, network)]), core(3, [spending], [bare])]),
    ]
    wanted = owner(ODD_SCRIPTS[kind], network)
    found = read(tmp_path / "f.json", blocks)
    assert found == {"outputs": [wanted, owner(KEY_HASH, network), wanted], "inputs": [wanted]}


def test_a_network_reported_late_in_a_file_counts_from_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bitcoin_json, "ROWS", 1)
    bare = paid(0, ODD_SCRIPTS["p2pk"], "pubkey")
    blocks = [block(n, [core(n, [CORE_MINT], [bare])]) for n in range(1, 5)]
    blocks.append(block(5, [core(5, [CORE_MINT], [key_hash(0, TESTNET)])]))
    wanted = owner(ODD_SCRIPTS["p2pk"], TESTNET)
    assert read(tmp_path / "f.json", blocks)["outputs"][:4] == [wanted] * 4


def test_where_nothing_tells_the_network_bare_keys_have_no_owner(tmp_path: Path) -> None:
    bare = paid(0, ODD_SCRIPTS["p2pk"], "pubkey")
    # Addresses of scripts' hashes were the same on Litecoin; those of Bitcoin Cash are not known.
    shared = paid(1, SCRIPT_HASH, "scripthash", owner(SCRIPT_HASH, BITCOIN))
    cash = paid(2, KEY_HASH, "pubkeyhash", "bitcoincash:qqgekzvw96vq5g57zwdfa5q6g609rrn0ycp33uc325")
    found = read(tmp_path / "f.json", [block(7, [core(1, [CORE_MINT], [bare, shared, cash])])])
    assert found["outputs"][0] is None


def test_the_first_blocks_of_bitcoin_tell_their_network_by_their_work(tmp_path: Path) -> None:
    bare = paid(0, ODD_SCRIPTS["p2pk"], "pubkey")
    early = block(7, [core(1, [CORE_MINT], [bare])], hash="00000000" + "a" * 56, time=1231469665)
    wanted = owner(ODD_SCRIPTS["p2pk"], BITCOIN)
    assert read(tmp_path / "f.json", [early])["outputs"] == [wanted]
    for change in ({"time": 1296688602}, {"hash": "0000000a" + "a" * 56}):
        assert read(tmp_path / "f.json", [early | change])["outputs"] == [None]


def test_a_script_of_a_key_that_is_no_hex_is_refused(tmp_path: Path) -> None:
    broken = paid(0, b"", "pubkey") | {"scriptPubKey": {"hex": "zz", "type": "pubkey"}}
    blocks = [block(7, [core(1, [CORE_MINT], [broken, key_hash(1, BITCOIN)])])]
    with pytest.raises(LedgerError, match=r"f\.json:1 transaction 0: a script that is no hex"):
        read(tmp_path / "f.json", blocks)


@pytest.mark.parametrize("kind", KEYS)
def test_esplora_names_owners_as_raw_blocks_do(tmp_path: Path, kind: str) -> None:
    bare = {"scriptpubkey": ODD_SCRIPTS[kind].hex(), "scriptpubkey_type": kind, "value": 5}
    shown = {"scriptpubkey": KEY_HASH.hex(), "scriptpubkey_type": "p2pkh", "value": 5}
    shown |= {"scriptpubkey_address": owner(KEY_HASH, TESTNET)}
    path = tmp_path / "f.json"
    path.write_bytes(
        lines([payment(1, [spend(9, 0, bare)], [bare]), payment(2, [spend(8)], [shown])])
    )
    found = rows(esplora.batches(path))
    wanted = owner(ODD_SCRIPTS[kind], TESTNET)
    assert {o["owner"] for o in found["outputs"]} == {wanted, owner(KEY_HASH, TESTNET)}
    assert {i["owner"] for i in found["inputs"]} == {wanted, None}


def test_owners_of_a_real_mempool_are_those_of_its_scripts(data: Path) -> None:
    path = next((data / "btc_mempool_esplora").glob("*.xz"))
    told: dict[tuple[str, int], tuple[str, Any]] = {}
    with open_plain(path) as file:
        for line in file:
            t = json.loads(line)
            for n, o in enumerate(t["vout"]):
                told[t["txid"], n] = (o["scriptpubkey"], o.get("scriptpubkey_address"))
    named, _ = owners_of([bytes.fromhex(script) for script, _ in told.values()], BITCOIN)
    by_script = dict(zip(told, named.to_pylist(), strict=True))
    found = {(o["txid"], o["vout"]): o["owner"] for o in rows(esplora.batches(path))["outputs"]}
    assert found == by_script
    bare = [key for key, (_, address) in told.items() if address is None and by_script[key]]
    assert len(bare) > 0


def test_files_without_bare_keys_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []
    whole = RecordFormat.records

    def counting(*arguments: Any) -> Any:
        reads.append(arguments)
        return whole(*arguments)

    monkeypatch.setattr(RecordFormat, "records", counting)
    read(tmp_path / "f.json", [block(7, [core(1, [CORE_MINT], [key_hash(0, BITCOIN)])])])
    assert len(reads) == 1
