"""Real ledgers prove themselves complete, and no longer do with a block of five gone."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from coinhaze.ledger.completeness import (
    COINBASES,
    HEIGHTS,
    INDEXES,
    LINKS,
    LOGS,
    MERKLE,
    TRANSACTIONS,
)
from coinhaze.store.checks import account_completeness, coin_completeness
from coinhaze.store.ingest import ingest
from coinhaze.store.store import Store

WHOLE = {HEIGHTS, LINKS, COINBASES, INDEXES, TRANSACTIONS, MERKLE}
SETS = {
    "btc_utxo_100000_104000/[ve]*.csv.gz": (4_001, {HEIGHTS, COINBASES, INDEXES}),
    "btc_raw_560062_560069/*": (8, WHOLE),
    "zcash_main_663150_663250/*": (101, WHOLE),
    "zcash_test_1028400_1028600/*": (201, WHOLE),
}


def remove_every_fifth(store: Store) -> list[int]:
    heights = [h for (h,) in store.ask("SELECT DISTINCT height FROM transactions ORDER BY height")]
    gone = heights[2:-1:5]
    with store.transaction():
        for table in store.tables:
            store.ask(f"DELETE FROM {table} WHERE height IN (SELECT unnest(?))", [gone])
    return gone


def check(store: Store, blocks: int, passed: set[str]) -> None:
    record = coin_completeness(store)
    assert {c.name for c in record.checks if c.status == "passed"} == passed
    assert not record.failed
    assert record.checks[0].detail == f"{blocks:,} heights"
    gone = remove_every_fifth(store)
    record = coin_completeness(store)
    assert [(c.name, c.failures, c.first) for c in record.failed] == [
        (HEIGHTS, len(gone), f"height {gone[0]}")
    ]
    assert record.holes == tuple((h, h) for h in gone)


@pytest.mark.parametrize("files", SETS)
def test_blocks_are_complete_until_some_are_removed(data: Path, tmp_path: Path, files: str) -> None:
    with Store(tmp_path / "store") as store:
        ingest([str(data / files)], store)
        check(store, *SETS[files])


def test_the_emulated_chain_is_complete(data: Path, tmp_path: Path) -> None:
    archive = next((data / "btc_wasabi2_emulation_truth").glob("*.tar.xz"))
    with tarfile.open(archive) as packed:
        for member in packed.getmembers():
            if Path(member.name).name.startswith("block_") and member.isfile():
                member.name = Path(member.name).name
                packed.extract(member, tmp_path / "blocks", filter="data")
    with Store(tmp_path / "store") as store:
        ingest([tmp_path / "blocks"], store)
        check(store, 324, WHOLE)


def test_logs_of_a_day_are_in_order(data: Path, tmp_path: Path) -> None:
    with Store(tmp_path / "store") as store:
        ingest([str(data / "erc20_dai_2019_12_12" / "*.csv.gz")], store)
        record = account_completeness(store)
        assert [(c.name, c.detail) for c in record.checks if c.status == "passed"] == [
            (LOGS, "4,926 logs")
        ]
        assert not record.failed


def test_what_bitcoin_etls_fixtures_say_of_transactions_is_so(data: Path, tmp_path: Path) -> None:
    """Of Zcash too, whose counts and values include what went into pools and came out."""
    packed = next((data / "etl_fixtures").glob("bitcoin-etl*"))
    found = 0
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path / "fixtures", filter="data")
    for path in sorted((tmp_path / "fixtures").rglob("*transactions*.json")):
        with Store(None) as store:
            ingest([path], store, format="bitcoin-etl")
            if not store.ask("SELECT 1 FROM stated_transactions LIMIT 1"):
                continue
            record = coin_completeness(store)
            wrong = [c for c in record.failed if "says" in c.name]
            assert not wrong, (path.name, [c.words() for c in wrong])
            found += 1
    assert found >= 5
