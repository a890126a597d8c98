"""Raw blocks whose earlier coins have no values: what can be scored is, and the rest is counted."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

import numpy as np
import pytest

import coinhaze
from coinhaze.errors import InputError
from coinhaze.store.ingest import ingest
from coinhaze.store.store import Store
from coinhaze.store.verify import verify

# By folder: transactions, those that spend unknown coins alone, both kinds, all left out; sinks.
SETS = {
    "btc_raw_560062_560069": (20_988, 10_694, 1_144, 1_883, 32_095),
    "zcash_main_663150_663250": (303, 87, 9, 21, 982),
    "zcash_test_1028400_1028600": (237, 11, 6, 17, 617),
    "zcash_blocks_zebra": (205, 116, 1, 3, 2_560),
}


def files_of(folder: Path, to: Path) -> Path:
    """Give a folder of blocks; Zebra's are unpacked, without the one that is wrong on purpose."""
    archives = list(folder.glob("*.tar.xz"))
    if not archives:
        return folder
    with tarfile.open(archives[0]) as packed:
        members = [m for m in packed.getmembers() if m.isfile() and "bad" not in m.name]
        packed.extractall(to, members, filter="data")
    return to


def replayed(store: Store) -> tuple[int, int, int, int]:
    """Go through the transactions one by one and count them by what is known of their coins."""
    made = {coin for (coin,) in store.ask("SELECT txid || ':' || vout FROM outputs")}
    spends: dict[str, list[str]] = {
        txid: [] for (txid,) in store.ask("SELECT txid FROM transactions ORDER BY height, position")
    }
    for txid, coin in store.ask("SELECT txid, spent_txid || ':' || spent_vout FROM inputs"):
        spends[txid].append(coin)
    alone = both = 0
    lost: set[str] = set()
    for txid, coins in spends.items():
        unknown = [coin for coin in coins if coin not in made]
        if unknown and len(unknown) == len(coins):
            alone += 1
        elif unknown:
            both += 1
            lost.add(txid)
        elif any(coin.rpartition(":")[0] in lost for coin in coins):
            lost.add(txid)
    return len(spends), alone, both, len(lost)


@pytest.mark.parametrize("name", SETS)
def test_raw_blocks_are_ingested_verified_and_scored_as_far_as_they_tell(
    data: Path, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "store"
    with Store(path) as store:
        ingest([files_of(data / name, tmp_path / "blocks")], store)
        said = verify(store)
        assert any(re.match("ledger: values of .* coins spent are unknown", s) for s in said)
        whole, alone, both, left = counts = replayed(store)
        assert counts == SETS[name][:4]
    with pytest.raises(InputError, match=r"values of .* coins spent .* are not known"):
        coinhaze.score(path)
    scores = coinhaze.score(path, unknown="leave-out")
    (note,) = (note for note in scores.notes if "unknown value" in note)
    assert f"{alone:,} of {whole:,} transactions spend only coins of unknown value" in note
    assert f"{left:,} are left out: {both:,} that spend" in note
    assert len(scores) == SETS[name][4]
    assert not np.isnan(scores.bits).any()
    assert scores.width <= 1e-9
    assert np.abs(scores.mass - 1).max() < 1e-10
    assert scores.conservation is not None
    assert scores.conservation < 1e-9
    assert scores.bits.max() > 1


def test_in_zcash_the_pool_is_scored_and_so_is_what_leaves_it(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "store"
    with Store(path) as store:
        ingest([data / "zcash_main_663150_663250"], store)
        out = {t for (t,) in store.ask("SELECT txid FROM pool_flows WHERE into_pool < 0")}
    scores = coinhaze.score(path, unknown="leave-out", nodes="all").to_arrow().to_pylist()
    bits = {row["node"]: row["bits"] for row in scores}
    left = [bits[f"tx:{txid}"] for txid in out]
    assert len(left) == 27
    # Money out of a pool comes from what the pool held before, and what came in meanwhile.
    assert max(left) > 0.5
    pools = {row["top_source"] for row in scores if row["node"].removeprefix("tx:") in out}
    assert any(name.startswith("pool:") for name in pools if name)
