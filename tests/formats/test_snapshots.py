"""UTXO snapshots beside raw blocks: as good as undo data, and what is said when they do not fit."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coinhaze
from coinhaze.errors import CoinhazeError
from coinhaze.formats.bitcoin_raw import snapshot as reader
from coinhaze.formats.bitcoin_raw.networks import BITCOIN
from coinhaze.formats.bitcoin_raw.scripts import owners_of
from coinhaze.ledger.coins import CoinLedger
from coinhaze.options import View
from coinhaze.store.ingest import ingest
from coinhaze.store.store import Store
from formats import block_samples as samples
from formats.block_samples import REGTEST, file_of, pay, pay_to_key_hash, spend, transaction, twice
from formats.snapshot_samples import snapshot

FIRST = 300_000
BEFORE = b"\7" * 32  # the block before the first
SCRIPTS = [s for name, s in samples.ODD_SCRIPTS.items() if name != "data"]
# Every length of the compressed form: no zeros at the end, some, nine, and nothing.
VALUES = [1, 10, 1_234_567_890, 5_000_000_000, 2_100_000_000_000_000, 0, 99, 7, 600, 546, 10**9]
EARLIER = {
    bytes([20 + i]) * 32: [(i, VALUES[i], script, 1000 + i), (i + 1, 77, SCRIPTS[0], 5)]
    for i, script in enumerate(SCRIPTS)
}


def blocks_of_window() -> tuple[list[bytes], list[bytes]]:
    """Two blocks that spend earlier coins of every script, alone and mixed; and their undo."""
    coins = [(txid, own[0][0]) for txid, own in EARLIER.items()]
    spent = [(own[0][1], own[0][2]) for own in EARLIER.values()]
    mixed = transaction(
        [spend(c) for c in coins[:5]],
        [pay(1_000_000_000, pay_to_key_hash(1)), pay(2_000_000_000, pay_to_key_hash(2))],
    )
    rest = transaction([spend(c) for c in coins[5:]], [pay(400, pay_to_key_hash(3))])
    later = transaction(
        [spend((twice(mixed), 0)), spend((twice(rest), 0))],
        [pay(900_000_000, pay_to_key_hash(4)), pay(5, pay_to_key_hash(5))],
    )
    one = samples.block(BEFORE, [samples.coinbase(FIRST), mixed, rest])
    two = samples.block(samples.name(one), [samples.coinbase(FIRST + 1), later])
    own = [(1_000_000_000, pay_to_key_hash(1)), (400, pay_to_key_hash(3))]
    undos = [samples.undo([spent[:5], spent[5:]]), samples.undo([own])]
    return [one, two], undos


@pytest.fixture
def blocks(tmp_path: Path) -> Path:
    path = tmp_path / "blk00000.dat"
    path.write_bytes(file_of(blocks_of_window()[0]))
    return path


@pytest.fixture
def with_undo(tmp_path: Path) -> Path:
    folder = tmp_path / "undo"
    folder.mkdir()
    made, undos = blocks_of_window()
    (folder / "blk00000.dat").write_bytes(file_of(made))
    records = (samples.undo_frame(u, b[4:36]) for u, b in zip(undos, made, strict=True))
    (folder / "rev00000.dat").write_bytes(b"".join(records))
    return folder / "blk00000.dat"


def written(folder: Path, octets: bytes, name: str = "utxo.dat") -> Path:
    path = folder / name
    path.write_bytes(octets)
    return path


def good(**changes: Any) -> bytes:
    return snapshot(EARLIER, **{"block": BEFORE} | changes)


def tables(ledger: CoinLedger) -> dict[str, list[dict[str, Any]]]:
    return {name: table.to_pylist() for name, table in ledger.tables().items()}


def scored(*paths: Path, view: View = "coin") -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = coinhaze.score(list(paths), view=view).to_arrow().to_pylist()
    assert table
    return table


class TestEqualToUndo:
    @pytest.mark.parametrize("view", ["coin", "address"])
    def test_a_window_scores_as_with_undo_data(
        self, tmp_path: Path, blocks: Path, with_undo: Path, view: View
    ) -> None:
        beside = written(tmp_path, good())
        assert scored(blocks, beside, view=view) == scored(with_undo, view=view)

    def test_the_ledger_is_the_same_row_by_row(
        self, tmp_path: Path, blocks: Path, with_undo: Path
    ) -> None:
        filled = coinhaze.read([written(tmp_path, good()), blocks])  # in whatever order
        known = coinhaze.read(with_undo)
        assert isinstance(filled, CoinLedger)
        assert isinstance(known, CoinLedger)
        assert tables(filled) == tables(known)
        assert filled.completeness == known.completeness

    def test_without_it_the_window_cannot_be_scored(self, blocks: Path) -> None:
        with pytest.raises(CoinhazeError, match=r"values of 11 coins.*rollback=299999"):
            coinhaze.read(blocks)

    @pytest.mark.parametrize("pack", [lzma.compress, gzip.compress])
    def test_it_may_be_packed(
        self, tmp_path: Path, blocks: Path, with_undo: Path, pack: Callable[[bytes], bytes]
    ) -> None:
        assert scored(blocks, written(tmp_path, pack(good()))) == scored(with_undo)

    def test_a_store_is_filled_later_and_again(
        self, tmp_path: Path, blocks: Path, with_undo: Path
    ) -> None:
        beside = written(tmp_path, good())
        with Store(tmp_path / "s.duckdb") as store:
            ingest([blocks], store)
            done = ingest([beside], store)
            assert done.notes == ("utxo.dat: values of 11 of 11 coins come from the UTXO snapshot",)
            again = ingest([beside, blocks], store)
            assert again.notes == ("utxo.dat: values of 0 of 0 coins come from the UTXO snapshot",)
            assert [s.format for s in store.sources()] == ["bitcoin-blocks", "utxo-snapshot"]
        assert scored(tmp_path / "s.duckdb") == scored(with_undo)


class TestValues:
    def test_owners_are_named_as_in_blocks(self, tmp_path: Path) -> None:
        rows = _all_coins(written(tmp_path, good()))
        expected = owners_of(SCRIPTS, BITCOIN)[0].to_pylist()
        found = {(row["txid"], row["vout"]): row for row in rows}
        assert len(rows) == 2 * len(EARLIER)
        for (txid, own), owner in zip(EARLIER.items(), expected, strict=True):
            vout, value, _, height = own[0]
            row = found[txid[::-1].hex(), vout]
            assert (row["value"], row["height"], row["owner"]) == (value, height, owner)

    def test_amounts_are_exact(self, tmp_path: Path) -> None:
        draw = np.random.default_rng(1)
        values = [0, 1, 9, 10, 99, 21 * 10**14, *(10**k for k in range(16))]
        values += draw.integers(0, 21 * 10**14, 400).tolist()
        values += [int(v) * 10**9 for v in draw.integers(1, 2_100_000, 100)]
        own = [(i, v, SCRIPTS[0], 7) for i, v in enumerate(values)]
        rows = _all_coins(written(tmp_path, snapshot({b"\3" * 32: own}, BEFORE)))
        assert [row["value"] for row in rows] == values

    def test_pieces_of_a_file_are_as_the_whole(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = written(tmp_path, good())
        whole = _all_coins(path)
        for size in (1, 7, 100):
            monkeypatch.setattr(reader, "_CHUNK", size)
            assert _all_coins(path) == whole

    def test_only_coins_that_are_wanted_are_given(self, tmp_path: Path) -> None:
        txid = next(iter(EARLIER))[::-1].hex()
        header = reader.read_header(written(tmp_path, good()))
        prefixes = np.array([reader.prefix_of(txid)], np.uint64)
        rows = [r for table in reader.coins_of(header, prefixes) for r in table.to_pylist()]
        assert [row["txid"] for row in rows] == [txid, txid]


def _all_coins(path: Path) -> list[dict[str, Any]]:
    header = reader.read_header(path)
    ids = {txid[::-1].hex() for txid in EARLIER} | {"03" * 32}
    prefixes = np.array([reader.prefix_of(txid) for txid in ids], np.uint64)
    return [row for table in reader.coins_of(header, prefixes) for row in table.to_pylist()]


def _made_at(height: int) -> bytes:
    """Make a snapshot in which all coins were made at a height."""
    made = {
        txid: [(vout, value, script, height) for vout, value, script, _ in own]
        for txid, own in EARLIER.items()
    }
    return snapshot(made, BEFORE)


FIRST_NAME = samples.name(blocks_of_window()[0][0])
# What is wrong, the file, and the words that say so and how to mend it.
MISTAKES: dict[str, tuple[bytes, tuple[str, ...]]] = {
    "cut short": (good()[:-3], ("ends after 20 of 22 coins", "copy it again")),
    "cut in its beginning": (good()[:40], ("begins with 51 bytes", "cut short")),
    "counts more": (good(count=23), ("ends after 22 of 23 coins", "cut short")),
    "counts fewer": (good(count=20), ("more coins than the 20 that its header says",
        "write it again")),
    "something behind": (good() + b"\0", ("more coins than the 22", "write it again")),
    "another network": (
        good(magic=REGTEST),
        ("another network than the blocks", "bitcoin regtest", "node that the blocks are of"),
    ),
    "an unknown network": (good(magic=b"abcd"), ("61626364", "bitcoin testnet4")),
    "another version": (good(version=1), ("another version than 2: 1", "Bitcoin Core 28")),
    "of a later block": (
        snapshot({b"\x63" * 32: [(0, 5, SCRIPTS[0], 7)]}, FIRST_NAME),
        (
            f"none of the 11 coins of unknown value that the blocks spend is in it: it is of block "
            f"{FIRST}, when they were spent already; score only the blocks after it",
            f"--from {FIRST + 1}",
            f"dumptxoutset FILE rollback={FIRST - 1}",
        ),
    ),
    "of an unknown block": (
        snapshot({b"\x63" * 32: [(0, 5, SCRIPTS[0], 7)]}, b"\x11" * 32),
        (f"its block hash {'11' * 32} is not among the blocks", f"rollback={FIRST - 1}"),
    ),
    "of another chain": (
        _made_at(FIRST + 9), ("younger than the block which spends it", "another chain"),
    ),
    "of the block that spends": (
        _made_at(FIRST), ("younger than the block which spends it", "another chain"),
    ),
    "the same coins twice": (
        good(count=44) + good()[51:],
        ("the same coin twice", "the file is damaged"),
    ),
    "a transaction without coins": (
        good()[:51] + bytes(33) + good()[51:],
        ("byte 51: a transaction without coins",),
    ),
    "a size in too many bytes": (
        good()[:83] + b"\xfd\1\0" + good()[84:],
        ("byte 51: a size that takes more bytes",),
    ),
}  # fmt: skip


class TestMistakes:
    @pytest.mark.parametrize("mistake", MISTAKES)
    def test_the_message_names_the_file_and_the_fix(
        self, tmp_path: Path, blocks: Path, mistake: str
    ) -> None:
        octets, words = MISTAKES[mistake]
        path = written(tmp_path, octets)
        with pytest.raises(CoinhazeError) as caught:
            coinhaze.read([blocks, path])
        for said in (str(path), *words):
            assert said in str(caught.value)
        assert caught.value.exit_code == 3

    def test_a_snapshot_alone_is_no_ledger(self, tmp_path: Path) -> None:
        path = written(tmp_path, good())
        with pytest.raises(CoinhazeError, match=r"no ledger.*22 coins of bitcoin.*blk\*\.dat"):
            coinhaze.read(path)

    def test_another_file_forced_to_be_one(self, tmp_path: Path, blocks: Path) -> None:
        with pytest.raises(CoinhazeError, match="does not begin with utxo"):
            coinhaze.read(blocks, format="utxo-snapshot")

    def test_coins_that_are_missing_are_counted(self, tmp_path: Path, blocks: Path) -> None:
        some = dict(list(EARLIER.items())[:4])
        path = written(tmp_path, snapshot(some, BEFORE))
        ledger = coinhaze.read([blocks, path], unknown="leave-out")
        (note,) = [note for note in ledger.notes if "snapshot" in note]
        assert "values of 4 of 11 coins" in note
        assert "7 are not in it" in note
        with pytest.raises(CoinhazeError, match="values of 7 coins"):
            coinhaze.read([blocks, path])

    def test_blocks_after_a_snapshot_among_them_are_scored(
        self, tmp_path: Path, with_undo: Path, blocks: Path
    ) -> None:
        """A file of blocks begins before the snapshot: the window after it is whole."""
        made, _ = blocks_of_window()
        own = [(1, 2_000_000_000, pay_to_key_hash(2), FIRST)]
        mixed = EARLIER | {b"\x63" * 32: own}
        path = written(tmp_path, snapshot(mixed, samples.name(made[0])))
        read = coinhaze.read([blocks, path], first=FIRST + 1)
        known = coinhaze.read(with_undo, first=FIRST + 1)
        assert isinstance(read, CoinLedger)
        assert isinstance(known, CoinLedger)
        assert tables(read) == tables(known)
