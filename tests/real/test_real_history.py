"""Real blocks as histories: the tape gives what the solver gives."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc
import pytest

import coinhaze
from coinhaze import CoinLedger, History, InputError
from coinhaze.ledger.coins import UNKNOWN
from history.test_tape import compare


def test_blocks_of_2011_have_the_scores_of_the_solver(data: Path, tmp_path: Path) -> None:
    files = sorted((data / "btc_utxo_100000_104000").glob("[ev]*"))
    ledger = coinhaze.read(files)
    assert isinstance(ledger, CoinLedger)
    history = compare(ledger, tmp_path / "x.history", draws=1024, piece_rows=1000)
    assert len(history.manifest.pieces) > 3
    assert history.manifest.coins == 11_542
    # About a third of a row for every coin, as on the whole chain.
    assert history.manifest.slots / history.manifest.coins == pytest.approx(0.32, abs=0.02)


def test_transactions_of_a_mempool_have_them_too(data: Path, tmp_path: Path) -> None:
    (file,) = sorted((data / "btc_mempool_esplora").iterdir())
    ledger = coinhaze.read(file)
    assert isinstance(ledger, CoinLedger)
    compare(ledger, tmp_path / "x.history", draws=256)


@pytest.mark.parametrize(
    ("archive", "name"),
    [
        ("dumplings__sw_202403.zip", "SamouraiCoinJoins.txt"),
        ("dumplings__ww1_202405.zip", "WasabiCoinJoins.txt"),
    ],
)
def test_coinjoins_have_them_too(data: Path, tmp_path: Path, archive: str, name: str) -> None:
    with zipfile.ZipFile(data / "btc_coinjoin_dumplings" / archive) as packed:
        (inside,) = (entry for entry in packed.namelist() if entry.endswith(name))
        (tmp_path / name).write_bytes(packed.read(inside))
    ledger = coinhaze.read(tmp_path / name)
    assert isinstance(ledger, CoinLedger)
    compare(ledger, tmp_path / "x.history", draws=256)


def test_raw_blocks_without_what_came_before_are_refused(data: Path, tmp_path: Path) -> None:
    file = next((data / "btc_raw_560062_560069").glob("*.xz"))
    with pytest.raises(InputError, match="values of 28945 coins spent in the window are not known"):
        History.index(tmp_path / "x.history", file)


@pytest.mark.parametrize(
    ("folder", "pools", "opened"),
    [
        ("zcash_main_663150_663250", {"pool:sapling", "pool:sprout"}, True),
        ("zcash_test_1028400_1028600", {"pool:sapling"}, False),
    ],
)
def test_shielded_pools_have_the_scores_of_the_solver(
    folder: str, pools: set[str], opened: bool, data: Path, tmp_path: Path
) -> None:
    ledger = coinhaze.read(sorted((data / folder).glob("*")), unknown="leave-out")
    assert isinstance(ledger, CoinLedger)
    # Coins whose values the blocks do not tell are joined into one of what its transaction pays.
    named = pc.replace_substring(ledger.txids, UNKNOWN, "earlier ")
    ledger = replace(ledger, txids=named)
    history = compare(ledger, tmp_path / "x.history", draws=256, piece_rows=100)
    assert len(history.manifest.pieces) > 1
    names = history.scores().to_arrow()["node"].to_pylist()
    assert {name for name in names if name.startswith("pool:")} == pools
    sources = {o.source for name in names for o in history.origins(name).origins}
    assert bool({f"{pool}:0" for pool in pools} & sources) == opened
    graph = coinhaze.transaction_graph(ledger)
    for name in (*pools, *names[:: len(names) // 20]):
        expected = coinhaze.origins(graph, name).sources().to_pydict()
        wanted = dict(zip(expected["source"], expected["probability"], strict=True))
        found = {o.source: o.probability for o in history.origins(name).origins}
        assert found == pytest.approx(wanted, abs=1e-12)
