"""Small real exports and blocks, each ingested, verified and scored."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coinhaze
from coinhaze.store.ingest import ingest
from coinhaze.store.store import Store
from coinhaze.store.verify import verify

STREAM = "tests/resources/test_stream/blocks_17173049_17173050"
EXPORTS = "tests/resources/test_export_blocks_job"
WETH = "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2"
FIXTURES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "transactions of ethereum-etl": ("ethereum", f"{STREAM}/expected_transactions.json", {}),
    "tokens of ethereum-etl": (
        "ethereum",
        f"{STREAM}/expected_token_transfers.json",
        {"token": WETH},
    ),
    "traces of ethereum-etl": (
        "ethereum",
        "tests/resources/test_export_traces_job/block_with_subtraces/expected_traces.csv",
        {},
    ),
    "enriched transactions of bitcoin-etl": (
        "bitcoin",
        f"{EXPORTS}/bitcoin/stream_50001_50002/expected_transactions.json",
        {},
    ),
    "transactions of bitcoin-etl before enrichment": (
        "bitcoin",
        f"{EXPORTS}/bitcoin/block_with_transactions/expected_transactions.json",
        {"unknown": "leave-out"},
    ),
}
BLOCKS = {
    "bitcoin_mainnet_951658": "f9beb4d9",
    "dogecoin_mainnet_371337": "c0c0c0c0",
    "dash_mainnet_844898": "bf0c6bbd",
}


def check(path: Path, **settings: Any) -> None:
    scores = coinhaze.score(path, **settings)
    assert len(scores) >= 2
    assert not np.isnan(scores.bits).any()
    assert scores.width <= 1e-9
    assert np.abs(scores.mass - 1).max() < 1e-10
    assert scores.conservation is not None
    assert scores.conservation < 1e-9


@pytest.mark.parametrize("name", FIXTURES)
def test_exports_are_ingested_verified_and_scored(data: Path, tmp_path: Path, name: str) -> None:
    kind, member, settings = FIXTURES[name]
    file, path = tmp_path / Path(member).name, tmp_path / "store"
    with tarfile.open(data / "etl_fixtures" / f"{kind}-etl_tests_resources.tar.xz") as packed:
        inside = packed.extractfile(member)
        assert inside is not None
        file.write_bytes(inside.read())
    with Store(path) as store:
        ingest([file], store)
        verify(store)
    check(path, **settings)


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_of_each_chain_is_ingested_verified_and_scored(
    data: Path, tmp_path: Path, name: str
) -> None:
    with tarfile.open(data / "etl_fixtures" / "electrumx_tests_blocks.tar.xz") as packed:
        inside = packed.extractfile(f"tests/blocks/{name}.json")
        assert inside is not None
        told = json.load(inside)
    block = bytes.fromhex(told["block"])
    file, path = tmp_path / "blk00000.dat", tmp_path / "store"
    file.write_bytes(bytes.fromhex(BLOCKS[name]) + len(block).to_bytes(4, "little") + block)
    with Store(path) as store:
        ingest([file], store)
        verify(store)
        names = store.ask("SELECT txid FROM transactions ORDER BY position")
        assert [txid for (txid,) in names] == told["tx"]
    check(path, unknown="leave-out")


def test_blocks_with_traces_are_ingested_verified_and_scored(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "store"
    with Store(path) as store:
        ingest([data / "eth_blocks_traces"], store)
        verify(store)
        heights = [h for (h,) in store.ask("SELECT DISTINCT height FROM transfers ORDER BY 1")]
        # Two of the five files tell of one block, the other with one trace more.
        assert heights == [10921991, 11930296, 12412732, 13298725]
    for time in ("stationary", "temporal"):
        check(path, time=time)
