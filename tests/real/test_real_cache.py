"""Real ledgers kept and opened again: the same graph, chain and scores, to the last bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cache.layers_twin import differences
from coinhaze.cache.layers import LedgerCache
from coinhaze.store.ingest import ingest
from coinhaze.store.store import Store

SETS: dict[str, tuple[str, dict[str, Any]]] = {
    "coins of Bitcoin": ("btc_utxo_100000_104000/[ve]*.csv.gz", {}),
    "addresses of Bitcoin": (
        "btc_utxo_100000_104000/[ve]*.csv.gz", {"view": "address", "clusters": "common-input"},
    ),
    "dai in time": ("erc20_dai_2019_12_12/*.csv.gz", {"time": "temporal"}),
    "pools of Zcash": ("zcash_main_663150_663250/*.xz", {"unknown": "leave-out"}),
}  # fmt: skip


@pytest.mark.parametrize("name", SETS)
def test_a_real_store_comes_back_as_it_was_built(
    data: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    files, settings = SETS[name]
    path = tmp_path / "real.duckdb"
    with Store(path) as store:
        ingest([str(data / files)], store)
    built = LedgerCache(path, **settings).build()
    assert built.is_cached
    opened = LedgerCache(path, **settings).open()
    assert opened is not None
    for part in ("ledger", "graph", "chain", "scores"):
        assert differences(getattr(built, part), getattr(opened, part), part) == []
