"""Real dumps and blocks, end to end: ingested into a store, verified, scored."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coinhaze
from coinhaze.errors import InputError
from coinhaze.store.ingest import Ingested, ingest
from coinhaze.store.read import read_store
from coinhaze.store.store import Store
from coinhaze.store.verify import verify


@dataclass(frozen=True)
class Set:
    """Files of one real set, and what its ledger must count."""

    files: str
    facts: dict[str, Any]
    settings: dict[str, Any] = field(default_factory=dict)


SETS = {
    "4 001 blocks of Bitcoin, with values of earlier coins": Set(
        "btc_utxo_100000_104000/[ve]*.csv.gz",
        {"transactions": 24_194, "coinbases": 4_001},
    ),
    "a mempool": Set(
        "btc_mempool_esplora/*.xz", {"transactions": 8_131, "inputs": 33_534, "outputs": 19_922}
    ),
    "ether of 20 000 blocks": Set("eth_480000_499999/transactions.parquet", {"transfers": 26_674}),
    "dai of a day": Set(
        "erc20_dai_2019_12_12/*.csv.gz", {"transfers": 4_926, "mints": 347, "burns": 190}
    ),
}


@pytest.mark.parametrize("name", SETS)
def test_a_real_set_is_ingested_verified_and_scored(data: Path, tmp_path: Path, name: str) -> None:
    real, path = SETS[name], tmp_path / "store"
    sources = [str(data / real.files)]
    with Store(path) as store:
        done = ingest(sources, store)
        assert done.rows > 1000
        verify(store)
        facts = read_store(store).facts()
        assert {k: facts[k] for k in real.facts} == real.facts
        assert ingest(sources, store) == Ingested(0, 0, done.files)
    scores = coinhaze.score(path, **real.settings)
    answered = ~np.isnan(scores.bits)
    assert answered.sum() > 100
    assert scores.width <= 1e-9
    assert np.abs(scores.mass[answered] - 1).max() < 1e-10
    assert scores.conservation is not None
    assert scores.conservation < 1e-9


def test_every_token_of_the_first_year_is_scored(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "store"
    with Store(path) as store:
        assert ingest([data / "eth_480000_499999" / "token_transfers.parquet"], store).rows >= 60
        verify(store)
        tokens = store.ask("SELECT token, count(*) FROM transfers GROUP BY token ORDER BY token")
    assert sum(count for _, count in tokens) == 60
    for token, _ in tokens:
        scores = coinhaze.score(path, token=token)
        assert len(scores.bits) > 0
        assert scores.width <= 1e-9
        assert np.abs(scores.mass - 1).max() < 1e-10


def test_wasabis_blocks_are_scored_and_its_coins_are_there(data: Path, tmp_path: Path) -> None:
    archive = next((data / "btc_wasabi2_emulation_truth").glob("*.tar.xz"))
    with tarfile.open(archive) as packed:
        for member in packed.getmembers():
            if Path(member.name).name.startswith("block_") and member.isfile():
                member.name = Path(member.name).name
                packed.extract(member, tmp_path / "blocks", filter="data")
    path = tmp_path / "store"
    with Store(path) as store:
        ingest([tmp_path / "blocks"], store)
        verify(store)
        ((blocks,),) = store.ask("SELECT count(*) FROM blocks")
        assert blocks == 324
    scores = coinhaze.score(path)
    # Mixed coins are in doubt; a coinbase nobody spent is not.
    assert scores.bits.max() > 2.5
    assert scores.bits.min() == 0
    assert scores.width <= 1e-9


def test_raw_blocks_without_undo_name_the_coins_they_cannot_know(
    data: Path, tmp_path: Path
) -> None:
    with Store(tmp_path / "store") as store:
        ingest([data / "btc_raw_560062_560069"], store)
        ((blocks,),) = store.ask("SELECT count(*) FROM blocks")
        assert blocks == 8
        with pytest.raises(
            InputError, match=r"values of .* coins spent in the window are not known"
        ):
            read_store(store)


@pytest.mark.parametrize(
    ("folder", "blocks", "flows"),
    [("zcash_main_663150_663250", 101, 50), ("zcash_test_1028400_1028600", 201, 1)],
)
def test_blocks_of_zcash_are_ingested_with_their_pools(
    data: Path, tmp_path: Path, folder: str, blocks: int, flows: int
) -> None:
    with Store(tmp_path / "store") as store:
        ingest([data / folder], store, format="zcash-blocks")
        ((count,),) = store.ask("SELECT count(*) FROM blocks")
        assert count == blocks
        ((links,),) = store.ask(
            "SELECT count(*) FROM blocks b JOIN blocks a ON a.height = b.height - 1 "
            "AND b.previous = a.hash"
        )
        assert links == blocks - 1
        ((pools,),) = store.ask("SELECT count(*) FROM pool_flows")
        assert pools >= flows


def test_blocks_of_dash_follow_each_other_and_the_calendar(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "store"
    with Store(path) as store:
        assert ingest([data / "blockchair_dash_blocks"], store).rows == 1_650
        verify(store)
        rows = store.ask("SELECT height, hash, time FROM blocks ORDER BY height")
        with pytest.raises(InputError, match="holds blocks but no transactions"):
            read_store(store)
    heights, hashes, times = zip(*rows, strict=True)
    assert list(heights) == list(range(1_414_549, 1_416_199))
    assert len(set(hashes)) == len(hashes)
    # Work: the first digits of the hash. A block's time may lie before that of the block below,
    # but not before the median of the eleven below it.
    assert all(name.startswith("0" * 12) for name in hashes)
    assert all(times[k] > sorted(times[k - 11 : k])[5] for k in range(11, len(times)))
    day = 86_400
    assert {time // day for time in times} == {18_659, 18_660, 18_661}
    result = run("score", str(path))
    assert result.returncode == 3
    assert "holds blocks but no transactions" in result.stderr


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "coinhaze", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
